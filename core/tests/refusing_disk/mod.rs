//! A disk that refuses what a test tells it to refuse.

use ironleaf::env::{BoxFuture, DirectoryLock, Disk, DiskError, DiskErrorKind, DiskResult, File, OpenMode};
use std::path::Path;
use std::sync::Arc;

/// A call that a test may refuse. The others are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Create,
    Rename,
    SyncDirectory,
}

/// Asks `refuse` before each [`Call`], and fails with the kind that it gives.
pub struct RefusingDisk<F> {
    pub disk: Arc<dyn Disk>,
    pub refuse: F,
}

impl<F: Fn(Call) -> Option<DiskErrorKind> + Send + Sync> RefusingDisk<F> {
    fn ask<T: Send + 'static>(
        &self,
        call: Call,
        path: &Path,
        pass_on: impl FnOnce() -> BoxFuture<'static, DiskResult<T>>,
    ) -> BoxFuture<'static, DiskResult<T>> {
        let Some(kind) = (self.refuse)(call) else { return pass_on() };
        let error = DiskError::new(kind, "refused call", path);
        Box::pin(async move { Err(error) })
    }
}

impl<F: Fn(Call) -> Option<DiskErrorKind> + Send + Sync> Disk for RefusingDisk<F> {
    fn create_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.create_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> BoxFuture<'static, DiskResult<Arc<dyn File>>> {
        let pass_on = || self.disk.open(path, mode);
        if mode == OpenMode::CreateNew { self.ask(Call::Create, path, pass_on) } else { pass_on() }
    }

    fn rename(&self, from: &Path, to: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.ask(Call::Rename, from, || self.disk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.remove(path)
    }

    fn list(&self, path: &Path) -> BoxFuture<'static, DiskResult<Vec<String>>> {
        self.disk.list(path)
    }

    fn sync_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.ask(Call::SyncDirectory, path, || self.disk.sync_dir(path))
    }

    fn lock(&self, path: &Path) -> BoxFuture<'static, DiskResult<Box<dyn DirectoryLock>>> {
        self.disk.lock(path)
    }
}
