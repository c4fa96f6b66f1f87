use crate::env::DirectoryLock;
use crate::sync::{Arc, Mutex, Weak};
use rustix::fs::{FlockOperation, Mode, OFlags, fstat, stat};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Names a directory whatever the path to it: device and inode.
type DirectoryId = (u64, u64);

/// The `flock` on a directory's own descriptor; nothing is written into the directory. Let go when the last owner
/// is gone: the lock that was handed out, or an operation in flight.
pub(super) struct Hold {
    directory: OwnedFd,
}

impl Hold {
    /// Makes the directory's entries durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.directory)?)
    }
}

/// What the opener of a directory holds.
struct OsDirectoryLock {
    _hold: Arc<Hold>,
}

impl DirectoryLock for OsDirectoryLock {}

/// The directories that are locked through this environment.
#[derive(Default)]
pub(super) struct Locks(Mutex<BTreeMap<DirectoryId, Weak<Hold>>>);

impl Locks {
    /// Takes the lock of `directory`, or fails with `WouldBlock`.
    pub(super) fn take(&self, directory: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(directory, flags, Mode::empty())?;
        rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
        let status = fstat(&fd)?;
        let hold = Arc::new(Hold { directory: fd });
        let mut held = self.0.lock();
        held.retain(|_, hold| hold.strong_count() > 0);
        held.insert((status.st_dev, status.st_ino), Arc::downgrade(&hold));
        Ok(Box::new(OsDirectoryLock { _hold: hold }))
    }

    /// The lock that covers the entries of `directory`, if it was taken here and is still held.
    pub(super) fn covering(&self, directory: &Path) -> Option<Arc<Hold>> {
        if self.0.lock().is_empty() {
            return None;
        }
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let status = stat(directory).ok()?;
        self.0.lock().get(&(status.st_dev, status.st_ino)).and_then(Weak::upgrade)
    }
}
