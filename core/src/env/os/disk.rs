use super::blocking::Call;
use super::file::OsFile;
use super::lock::Locks;
use crate::env::{BoxFuture, DirectoryLock, Disk, DiskResult, File, OpenMode};
use crate::sync::Arc;
use rustix::fs::{Dir, FileType, Mode, OFlags};
use std::io;
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// The machine's file systems.
pub(super) struct OsDisk {
    runtime: Handle,
    locks: Locks,
}

impl OsDisk {
    pub(super) fn new(runtime: Handle) -> Self {
        Self { runtime, locks: Locks::default() }
    }

    /// A call that changes or reads the entry `path` of its directory.
    fn on_entry(&self, operation: &'static str, path: &Path) -> Call {
        let hold = path.parent().and_then(|directory| self.locks.covering(directory));
        Call { operation, path: path.to_path_buf(), hold }
    }

    /// A call on the directory `path` itself.
    fn on_directory(&self, operation: &'static str, path: &Path) -> Call {
        Call { operation, path: path.to_path_buf(), hold: self.locks.covering(path) }
    }
}

impl Disk for OsDisk {
    fn create_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        let call = self.on_entry("create directory", path);
        call.blocking(&self.runtime, |call| Ok(rustix::fs::mkdir(&call.path, Mode::from(0o777))?))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> BoxFuture<'static, DiskResult<Arc<dyn File>>> {
        let (operation, flags) = match mode {
            OpenMode::Read => ("open", OFlags::RDONLY),
            OpenMode::ReadWrite => ("open", OFlags::RDWR),
            OpenMode::CreateNew => ("create", OFlags::RDWR | OFlags::CREATE | OFlags::EXCL),
        };
        let call = self.on_entry(operation, path);
        let runtime = self.runtime.clone();
        call.blocking(&self.runtime, move |call| {
            // Without `NONBLOCK` a pipe in the place of a file would wait for whoever writes into it.
            let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let fd = rustix::fs::open(&call.path, flags, Mode::from(0o666))?;
            if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) != FileType::RegularFile {
                return Err(io::Error::other("it is not a regular file"));
            }
            let file: Arc<dyn File> =
                Arc::new(OsFile::new(fd, call.path.clone(), call.hold.as_ref(), runtime));
            Ok(file)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> BoxFuture<'static, DiskResult<()>> {
        let to: PathBuf = to.to_path_buf();
        self.on_entry("rename", from)
            .blocking(&self.runtime, move |call| Ok(rustix::fs::rename(&call.path, &to)?))
    }

    fn remove(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.on_entry("remove", path).blocking(&self.runtime, |call| Ok(rustix::fs::unlink(&call.path)?))
    }

    fn list(&self, path: &Path) -> BoxFuture<'static, DiskResult<Vec<String>>> {
        self.on_directory("list", path).blocking(&self.runtime, |call| names(&call.path))
    }

    fn sync_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.on_directory("sync directory", path).blocking(&self.runtime, |call| match &call.hold {
            // It takes no further descriptor, so it cannot fail for want of one.
            Some(hold) => hold.sync(),
            None => Ok(rustix::fs::fsync(open_directory(&call.path)?)?),
        })
    }

    fn lock(&self, path: &Path) -> BoxFuture<'static, DiskResult<Box<dyn DirectoryLock>>> {
        let call = Call { operation: "lock", path: path.to_path_buf(), hold: None };
        call.inline(|call| self.locks.take(&call.path))
    }
}

fn open_directory(path: &Path) -> io::Result<std::os::fd::OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Names that are not UTF-8 are kept with replacement characters: a foreign file must not go unnoticed.
fn names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::new(open_directory(path)?)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if name != "." && name != ".." {
            names.push(name.into_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}
