use super::blocking::Call;
use super::lock::Hold;
use super::transfer::{read_whole, write_whole};
use crate::env::{BoxFuture, DiskError, DiskResult, File};
use crate::sync::{Arc, Weak};
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, fallocate, fdatasync, fstat, ftruncate};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use std::future::ready;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use tokio::runtime::Handle;

/// Transfers of up to this many bytes are carried out on the calling thread.
const INLINE_BYTES_MAX: usize = 64 << 10;
/// Unit in which zeros are written where the file system cannot preallocate.
const ZEROS: &[u8] = &[0; 64 << 10];

/// An open file of the machine.
pub(super) struct OsFile {
    inner: Arc<Inner>,
    runtime: Handle,
}

struct Inner {
    fd: OwnedFd,
    path: PathBuf,
    /// The lock of the directory that the file was opened in. An idle file does not keep it; an operation does.
    hold: Weak<Hold>,
}

impl OsFile {
    pub(super) fn new(fd: OwnedFd, path: PathBuf, hold: Option<&Arc<Hold>>, runtime: Handle) -> Self {
        let hold = hold.map_or_else(Weak::new, Arc::downgrade);
        Self { inner: Arc::new(Inner { fd, path, hold }), runtime }
    }

    fn blocking<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Inner) -> io::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, DiskResult<T>> {
        let inner = self.inner.clone();
        let call = Call { operation, path: inner.path.clone(), hold: inner.hold.upgrade() };
        call.blocking(&self.runtime, move |_| work(&inner))
    }
}

impl File for OsFile {
    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'static, DiskResult<Vec<u8>>> {
        let inner = self.inner.clone();
        if len <= INLINE_BYTES_MAX {
            return Box::pin(ready(
                inner.read(offset, len).map_err(|error| inner.failed("read", offset, len, error)),
            ));
        }
        let outcome = self.blocking("read", move |inner| {
            // The range is checked before memory for it is taken.
            if offset.checked_add(len as u64).is_none_or(|end| end > inner.bytes().unwrap_or(u64::MAX)) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            inner.read(offset, len)
        });
        Box::pin(async move { outcome.await.map_err(|error| ranged(error, offset, len)) })
    }

    fn write_at(&self, offset: u64, data: Bytes) -> BoxFuture<'static, DiskResult<()>> {
        let len = data.len();
        if len <= INLINE_BYTES_MAX {
            let inner = &self.inner;
            let outcome =
                inner.write(offset, &data).map_err(|error| inner.failed("write", offset, len, error));
            return Box::pin(ready(outcome));
        }
        let outcome = self.blocking("write", move |inner| inner.write(offset, &data));
        Box::pin(async move { outcome.await.map_err(|error| ranged(error, offset, len)) })
    }

    fn sync_data(&self) -> BoxFuture<'static, DiskResult<()>> {
        // Not retried, even when interrupted: after a failed sync the unsynced bytes may be gone, and a second sync
        // would report success without them.
        self.blocking("sync", |inner| Ok(fdatasync(&inner.fd)?))
    }

    fn set_len(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.blocking("set length", move |inner| Ok(retry_on_intr(|| ftruncate(&inner.fd, len))?))
    }

    fn preallocate(&self, len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.blocking("preallocate", move |inner| inner.preallocate(len))
    }

    fn len(&self) -> BoxFuture<'static, DiskResult<u64>> {
        let inner = &self.inner;
        let outcome = inner.bytes().map_err(|error| DiskError::from_io("read length", &inner.path, error));
        Box::pin(ready(outcome))
    }
}

impl Inner {
    fn bytes(&self) -> io::Result<u64> {
        Ok(fstat(&self.fd)?.st_size.cast_unsigned())
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut data = Vec::new();
        data.try_reserve_exact(len)?;
        read_whole(&mut data, offset, len, |data, at| Ok(pread(&self.fd, spare_capacity(data), at)?))?;
        Ok(data)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        write_whole(data, offset, |part, at| Ok(pwrite(&self.fd, part, at)?))
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match retry_on_intr(|| fallocate(&self.fd, FallocateFlags::empty(), 0, len)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.fill_with_zeros(len),
            Err(error) => Err(error.into()),
        }
    }

    fn fill_with_zeros(&self, len: u64) -> io::Result<()> {
        let mut at = self.bytes()?;
        while at < len {
            let part = usize::try_from(len - at).map_or(ZEROS.len(), |missing| missing.min(ZEROS.len()));
            self.write(at, &ZEROS[..part])?;
            at += part as u64;
        }
        Ok(())
    }

    fn failed(&self, operation: &'static str, offset: u64, len: usize, error: io::Error) -> DiskError {
        ranged(DiskError::from_io(operation, &self.path, error), offset, len)
    }
}

fn ranged(error: DiskError, offset: u64, len: usize) -> DiskError {
    error.at(offset, len as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};

    #[test]
    fn preallocation_without_the_file_systems_help_keeps_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let fd = rustix::fs::open(&path, OFlags::RDWR | OFlags::CREATE, Mode::from(0o666)).unwrap();
        let inner = Inner { fd, path, hold: Weak::new() };
        inner.write(0, b"kept").unwrap();
        inner.fill_with_zeros(200_000).unwrap();
        assert_eq!(inner.bytes().unwrap(), 200_000);
        let data = inner.read(0, 200_000).unwrap();
        assert_eq!(data[..4], *b"kept");
        assert!(data[4..].iter().all(|byte| *byte == 0));
        inner.fill_with_zeros(10).unwrap();
        assert_eq!(inner.bytes().unwrap(), 200_000, "preallocation never cuts");
    }
}
