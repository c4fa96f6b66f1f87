//! A machine without surprises: what is written is there at once. Models are about threads, not about the disk.

use crate::env::{
    BoxFuture, Clock, DirectoryLock, Disk, DiskError, DiskErrorKind, DiskResult, Entropy, Env, File,
    NoNetwork, OpenMode, Spawner, TaskHandle,
};
use crate::sync::Arc;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// An environment whose files are in memory.
pub(super) fn environment() -> Env {
    Env {
        clock: Arc::new(Machine),
        disk: Arc::new(MemoryDisk::default()),
        network: Arc::new(NoNetwork),
        entropy: Arc::new(Machine),
        spawner: Arc::new(Machine),
        #[cfg(ironleaf_lab)]
        hooks: None,
    }
}

struct Machine;

impl Clock for Machine {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn wall_now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

impl Entropy for Machine {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

impl Spawner for Machine {
    fn spawn(&self, name: &'static str, _future: BoxFuture<'static, ()>) -> TaskHandle {
        unreachable!("a model names its threads; nobody starts {name}")
    }
}

/// What a call gives that is over when it returns.
fn done<T: Send + 'static>(value: DiskResult<T>) -> BoxFuture<'static, DiskResult<T>> {
    Box::pin(async { value })
}

fn poison_free<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().expect("no holder of this lock panics")
}

/// Its locks are the standard library's: no thread of a model is ever switched while one is held.
#[derive(Default)]
struct MemoryDisk(Mutex<BTreeMap<PathBuf, Arc<MemoryFile>>>);

impl Disk for MemoryDisk {
    fn create_dir(&self, _path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        done(Ok(()))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> BoxFuture<'static, DiskResult<Arc<dyn File>>> {
        let mut files = poison_free(&self.0);
        if mode == OpenMode::CreateNew {
            files.insert(path.to_path_buf(), Arc::new(MemoryFile::default()));
        }
        let missing = || DiskError::new(DiskErrorKind::NotFound, "open", path);
        done(files.get(path).map(|file| file.clone() as Arc<dyn File>).ok_or_else(missing))
    }

    fn rename(&self, from: &Path, to: &Path) -> BoxFuture<'static, DiskResult<()>> {
        let mut files = poison_free(&self.0);
        if let Some(file) = files.remove(from) {
            files.insert(to.to_path_buf(), file);
        }
        done(Ok(()))
    }

    fn remove(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        poison_free(&self.0).remove(path);
        done(Ok(()))
    }

    fn list(&self, _path: &Path) -> BoxFuture<'static, DiskResult<Vec<String>>> {
        unreachable!("models do not open directories")
    }

    fn sync_dir(&self, _path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        done(Ok(()))
    }

    fn lock(&self, _path: &Path) -> BoxFuture<'static, DiskResult<Box<dyn DirectoryLock>>> {
        unreachable!("models do not open directories")
    }
}

#[derive(Default)]
struct MemoryFile(Mutex<Vec<u8>>);

impl MemoryFile {
    fn grow(&self, len: u64) {
        let mut bytes = poison_free(&self.0);
        let len = bytes.len().max(len as usize);
        bytes.resize(len, 0);
    }
}

impl File for MemoryFile {
    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'static, DiskResult<Vec<u8>>> {
        let bytes = poison_free(&self.0).get(offset as usize..offset as usize + len).map(<[u8]>::to_vec);
        done(bytes.ok_or_else(|| DiskError::new(DiskErrorKind::UnexpectedEnd, "read", "memory")))
    }

    fn write_at(&self, offset: u64, data: Bytes) -> BoxFuture<'static, DiskResult<()>> {
        let end = offset + data.len() as u64;
        self.grow(end);
        poison_free(&self.0)[offset as usize..end as usize].copy_from_slice(&data);
        done(Ok(()))
    }

    fn sync_data(&self) -> BoxFuture<'static, DiskResult<()>> {
        done(Ok(()))
    }

    fn set_len(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        poison_free(&self.0).resize(len as usize, 0);
        done(Ok(()))
    }

    fn preallocate(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.grow(len);
        done(Ok(()))
    }

    fn len(&self) -> BoxFuture<'static, DiskResult<u64>> {
        done(Ok(poison_free(&self.0).len() as u64))
    }
}
