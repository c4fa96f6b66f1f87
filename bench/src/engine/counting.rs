//! A disk that counts what goes through it.

use bytes::Bytes;
use ironleaf::env::{BoxFuture, DirectoryLock, Disk, DiskResult, File, OpenMode};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What went through a [`CountingDisk`].
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) syncs: AtomicU64,
    pub(super) bytes_written: AtomicU64,
}

impl Counts {
    /// Both counts, as of now.
    pub(super) fn now(&self) -> (u64, u64) {
        (self.syncs.load(Relaxed), self.bytes_written.load(Relaxed))
    }
}

/// Passes everything on.
pub(super) struct CountingDisk {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) counts: Arc<Counts>,
}

struct CountingFile {
    file: Arc<dyn File>,
    counts: Arc<Counts>,
}

impl Disk for CountingDisk {
    fn create_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.create_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> BoxFuture<'static, DiskResult<Arc<dyn File>>> {
        let (opening, counts) = (self.disk.open(path, mode), self.counts.clone());
        Box::pin(async move {
            let file: Arc<dyn File> = Arc::new(CountingFile { file: opening.await?, counts });
            Ok(file)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.remove(path)
    }

    fn list(&self, path: &Path) -> BoxFuture<'static, DiskResult<Vec<String>>> {
        self.disk.list(path)
    }

    fn sync_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> BoxFuture<'static, DiskResult<Box<dyn DirectoryLock>>> {
        self.disk.lock(path)
    }
}

impl File for CountingFile {
    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'static, DiskResult<Vec<u8>>> {
        self.file.read_at(offset, len)
    }

    fn write_at(&self, offset: u64, data: Bytes) -> BoxFuture<'static, DiskResult<()>> {
        self.counts.bytes_written.fetch_add(data.len() as u64, Relaxed);
        self.file.write_at(offset, data)
    }

    fn sync_data(&self) -> BoxFuture<'static, DiskResult<()>> {
        self.counts.syncs.fetch_add(1, Relaxed);
        self.file.sync_data()
    }

    fn set_len(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.file.set_len(len)
    }

    fn preallocate(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.file.preallocate(len)
    }

    fn len(&self) -> BoxFuture<'static, DiskResult<u64>> {
        self.file.len()
    }
}
