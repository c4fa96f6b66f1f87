//! The disk as one life of the machine sees it.

use super::operation::{Operation, Outcome};
use super::tree::OpenFile;
use super::volume::{Submitted, Volume, VolumeState};
use crate::ground::Ground;
use bytes::Bytes;
use ironleaf::env::{BoxFuture, DirectoryLock, Disk, DiskResult, File, OpenMode};
use std::path::Path;
use std::sync::Arc;

/// The disk of one life. Once that life has ended, every operation is refused.
#[derive(Clone)]
pub(crate) struct Front {
    ground: Arc<dyn Ground>,
    volume: Arc<Volume>,
}

impl Front {
    pub(crate) const fn new(ground: Arc<dyn Ground>, volume: Arc<Volume>) -> Self {
        Self { ground, volume }
    }

    fn submit(&self, operation: impl FnOnce(&VolumeState) -> Operation) -> Submitted {
        self.volume.submit(&*self.ground, operation)
    }

    fn submit_unit(
        &self,
        operation: impl FnOnce(&VolumeState) -> Operation,
    ) -> BoxFuture<'static, DiskResult<()>> {
        let submitted = self.submit(operation);
        Box::pin(async move { submitted.await.map(drop) })
    }
}

const MISMATCH: &str = "each operation has its own kind of outcome";

impl Disk for Front {
    fn create_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.submit_unit(|_| Operation::CreateDir { path: path.to_owned() })
    }

    fn open(&self, path: &Path, mode: OpenMode) -> BoxFuture<'static, DiskResult<Arc<dyn File>>> {
        let submitted = self.submit(|_| Operation::Open { path: path.to_owned(), mode });
        let front = self.clone();
        Box::pin(async move {
            match submitted.await? {
                Outcome::Opened(file) => Ok(Arc::new(SimFile { front, file }) as Arc<dyn File>),
                _ => unreachable!("{MISMATCH}"),
            }
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.submit_unit(|_| Operation::Rename { from: from.to_owned(), to: to.to_owned() })
    }

    fn remove(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.submit_unit(|_| Operation::Remove { path: path.to_owned() })
    }

    fn list(&self, path: &Path) -> BoxFuture<'static, DiskResult<Vec<String>>> {
        let submitted = self.submit(|_| Operation::List { path: path.to_owned() });
        Box::pin(async move {
            match submitted.await? {
                Outcome::Names(names) => Ok(names),
                _ => unreachable!("{MISMATCH}"),
            }
        })
    }

    fn sync_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.submit_unit(|volume| Operation::SyncDir { path: path.to_owned(), order: volume.completed() })
    }

    fn lock(&self, path: &Path) -> BoxFuture<'static, DiskResult<Box<dyn DirectoryLock>>> {
        let submitted = self.submit(|_| Operation::Lock { path: path.to_owned() });
        Box::pin(async move {
            match submitted.await? {
                Outcome::Locked(hold) => Ok(Box::new(hold) as Box<dyn DirectoryLock>),
                _ => unreachable!("{MISMATCH}"),
            }
        })
    }
}

/// An open file of one life.
struct SimFile {
    front: Front,
    file: Arc<OpenFile>,
}

impl SimFile {
    fn file(&self) -> Arc<OpenFile> {
        Arc::clone(&self.file)
    }
}

impl File for SimFile {
    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'static, DiskResult<Vec<u8>>> {
        let submitted = self.front.submit(|_| Operation::Read { file: self.file(), offset, len });
        Box::pin(async move {
            match submitted.await? {
                Outcome::Bytes(bytes) => Ok(bytes),
                _ => unreachable!("{MISMATCH}"),
            }
        })
    }

    fn write_at(&self, offset: u64, data: Bytes) -> BoxFuture<'static, DiskResult<()>> {
        self.front.submit_unit(|_| Operation::Write { file: self.file(), offset, bytes: data })
    }

    fn sync_data(&self) -> BoxFuture<'static, DiskResult<()>> {
        self.front.submit_unit(|volume| Operation::Sync { file: self.file(), order: volume.completed() })
    }

    fn set_len(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.front.submit_unit(|_| Operation::SetLen { file: self.file(), len })
    }

    fn preallocate(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.front.submit_unit(|_| Operation::Preallocate { file: self.file(), len })
    }

    fn len(&self) -> BoxFuture<'static, DiskResult<u64>> {
        let submitted = self.front.submit(|_| Operation::Len { file: self.file() });
        Box::pin(async move {
            match submitted.await? {
                Outcome::Len(len) => Ok(len),
                _ => unreachable!("{MISMATCH}"),
            }
        })
    }
}
