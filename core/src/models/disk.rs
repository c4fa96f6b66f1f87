//! A machine without surprises: what is written is there at once. Models are about threads, not about the disk.

use crate::env::{
    BoxFuture, Clock, DirectoryLock, Disk, DiskError, DiskErrorKind, DiskResult, Entropy, Env, File,
    NoNetwork, OpenMode, Spawner, TaskHandle,
};
use crate::sync::Arc;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

/// When a sync answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Syncs {
    /// In the call.
    #[default]
    AtOnce,
    /// When it is asked a second time, so that who waits for it can be dropped.
    Later,
}

/// An environment whose files are in memory.
pub(super) fn environment(syncs: Syncs) -> Env {
    Env {
        clock: Arc::new(Machine),
        disk: Arc::new(MemoryDisk { syncs, files: Mutex::default() }),
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
struct MemoryDisk {
    syncs: Syncs,
    files: Mutex<BTreeMap<PathBuf, Arc<MemoryFile>>>,
}

impl Disk for MemoryDisk {
    fn create_dir(&self, _path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        done(Ok(()))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> BoxFuture<'static, DiskResult<Arc<dyn File>>> {
        let mut files = poison_free(&self.files);
        if mode == OpenMode::CreateNew {
            let file = MemoryFile { syncs: self.syncs, bytes: Mutex::default() };
            files.insert(path.to_path_buf(), Arc::new(file));
        }
        let missing = || DiskError::new(DiskErrorKind::NotFound, "open", path);
        done(files.get(path).map(|file| file.clone() as Arc<dyn File>).ok_or_else(missing))
    }

    fn rename(&self, from: &Path, to: &Path) -> BoxFuture<'static, DiskResult<()>> {
        let mut files = poison_free(&self.files);
        if let Some(file) = files.remove(from) {
            files.insert(to.to_path_buf(), file);
        }
        done(Ok(()))
    }

    fn remove(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        poison_free(&self.files).remove(path);
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

struct MemoryFile {
    syncs: Syncs,
    bytes: Mutex<Vec<u8>>,
}

impl MemoryFile {
    fn grow(&self, len: u64) {
        let mut bytes = poison_free(&self.bytes);
        let len = bytes.len().max(len as usize);
        bytes.resize(len, 0);
    }
}

impl File for MemoryFile {
    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'static, DiskResult<Vec<u8>>> {
        let bytes = poison_free(&self.bytes).get(offset as usize..offset as usize + len).map(<[u8]>::to_vec);
        done(bytes.ok_or_else(|| DiskError::new(DiskErrorKind::UnexpectedEnd, "read", "memory")))
    }

    fn write_at(&self, offset: u64, data: Bytes) -> BoxFuture<'static, DiskResult<()>> {
        let end = offset + data.len() as u64;
        self.grow(end);
        poison_free(&self.bytes)[offset as usize..end as usize].copy_from_slice(&data);
        done(Ok(()))
    }

    fn sync_data(&self) -> BoxFuture<'static, DiskResult<()>> {
        let mut is_asked = self.syncs == Syncs::AtOnce;
        Box::pin(poll_fn(move |context| {
            if mem::replace(&mut is_asked, true) {
                return Poll::Ready(Ok(()));
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    fn set_len(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        poison_free(&self.bytes).resize(len as usize, 0);
        done(Ok(()))
    }

    fn preallocate(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.grow(len);
        done(Ok(()))
    }

    fn len(&self) -> BoxFuture<'static, DiskResult<u64>> {
        done(Ok(poison_free(&self.bytes).len() as u64))
    }
}
