//! Files and directories.

use super::BoxFuture;
use crate::sync::Arc;
use bytes::Bytes;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of a disk operation.
pub type DiskResult<T> = Result<T, DiskError>;

/// What went wrong on the disk, as far as a caller acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskErrorKind {
    /// The file or directory does not exist.
    NotFound,
    /// The file or directory exists already.
    AlreadyExists,
    /// The operating system refuses access.
    PermissionDenied,
    /// No space is left (or the quota is used up).
    Full,
    /// The process, or the machine, has as many files open as it may.
    TooManyFiles,
    /// The file ends before the range that was asked for.
    UnexpectedEnd,
    /// Another process, or another opener in this one, holds the directory's lock.
    Locked,
    /// The operation is not offered by this implementation.
    Unsupported,
    /// The medium or the operating system failed.
    Io,
}

/// A failed disk operation: which, where, and why.
#[derive(Clone, Debug)]
pub struct DiskError {
    /// What a caller can act on.
    pub kind: DiskErrorKind,
    /// The operation, as a verb: `read`, `write`, `sync`, `rename`, …
    pub operation: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Offset and length in bytes, for reads and writes.
    pub range: Option<(u64, u64)>,
    /// The operating system's error, where there was one.
    pub source: Option<Arc<io::Error>>,
}

impl DiskError {
    /// An error without a range or a source.
    pub fn new(kind: DiskErrorKind, operation: &'static str, path: impl Into<PathBuf>) -> Self {
        Self { kind, operation, path: path.into(), range: None, source: None }
    }

    /// The same error at `len` bytes from `offset`.
    #[must_use]
    pub fn at(mut self, offset: u64, len: u64) -> Self {
        self.range = Some((offset, len));
        self
    }

    /// Whether a path was used as a directory and is none.
    #[must_use]
    pub fn is_not_a_directory(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.kind() == io::ErrorKind::NotADirectory)
    }

    /// Classifies an operating system error.
    pub fn from_io(operation: &'static str, path: impl Into<PathBuf>, error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => DiskErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => DiskErrorKind::AlreadyExists,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                DiskErrorKind::PermissionDenied
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                DiskErrorKind::Full
            }
            io::ErrorKind::UnexpectedEof => DiskErrorKind::UnexpectedEnd,
            io::ErrorKind::WouldBlock => DiskErrorKind::Locked,
            io::ErrorKind::Unsupported => DiskErrorKind::Unsupported,
            _ => DiskErrorKind::Io,
        };
        Self { source: Some(Arc::new(error)), ..Self::new(kind, operation, path) }
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.operation, self.path.display())?;
        if let Some((offset, len)) = self.range {
            write!(f, " ({len} bytes at offset {offset})")?;
        }
        let why = match self.kind {
            DiskErrorKind::NotFound => "does not exist",
            DiskErrorKind::AlreadyExists => "exists already",
            DiskErrorKind::PermissionDenied => "access denied",
            DiskErrorKind::Full => "no space left",
            DiskErrorKind::TooManyFiles => {
                "too many open files; raise the limit (`ulimit -n`) or lower `page_files_max`"
            }
            DiskErrorKind::UnexpectedEnd => "the file ends early",
            DiskErrorKind::Locked => "locked by another opener",
            DiskErrorKind::Unsupported => "not supported here",
            DiskErrorKind::Io => "I/O error",
        };
        write!(f, " failed: {why}")?;
        if matches!(self.kind, DiskErrorKind::Io | DiskErrorKind::PermissionDenied)
            && let Some(source) = &self.source
        {
            write!(f, " ({source})")?;
        }
        Ok(())
    }
}

impl std::error::Error for DiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A new, empty file, for reading and writing; fails with `AlreadyExists` if there is one.
    CreateNew,
}

/// Directories, and the files in them. Paths are passed on as they are.
///
/// A directory entry (create, rename, remove) is durable only after [`sync_dir`](Disk::sync_dir) of its directory.
pub trait Disk: Send + Sync {
    /// Creates one directory; its parent must exist. `AlreadyExists` if there is something at `path`.
    fn create_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>>;
    /// Opens or creates a file.
    fn open(&self, path: &Path, mode: OpenMode) -> BoxFuture<'static, DiskResult<Arc<dyn File>>>;
    /// Renames a file within its directory, replacing what is at `to`. Atomic, also across power loss.
    fn rename(&self, from: &Path, to: &Path) -> BoxFuture<'static, DiskResult<()>>;
    /// Removes a file. Handles that are open on it keep working; its space comes back with the last of them.
    fn remove(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>>;
    /// The names in a directory, sorted, without `.` and `..`. `NotFound` if there is no such directory.
    fn list(&self, path: &Path) -> BoxFuture<'static, DiskResult<Vec<String>>>;
    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>>;
    /// Locks a directory against every other opener, in this process and in others; writes nothing into it.
    /// `Locked` at once if it is taken. Held until the lock is dropped *and* the last operation in flight on a
    /// file of that directory has ended.
    fn lock(&self, path: &Path) -> BoxFuture<'static, DiskResult<Box<dyn DirectoryLock>>>;
}

/// An exclusive hold on a directory; dropping it lets go.
pub trait DirectoryLock: Send + Sync {}

/// An open file. Reads and writes are positional and whole: short transfers are continued by the implementation.
///
/// Unsynced writes have no order among each other; power loss may keep any of their 512-byte sectors.
#[expect(
    clippy::len_without_is_empty,
    reason = "a file's length is asked of the disk; nobody asks whether it is 0"
)]
pub trait File: Send + Sync {
    /// Reads exactly `len` bytes at `offset`. `UnexpectedEnd` if the file is shorter.
    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'static, DiskResult<Vec<u8>>>;
    /// Writes all of `data` at `offset`, growing the file if needed.
    fn write_at(&self, offset: u64, data: Bytes) -> BoxFuture<'static, DiskResult<()>>;
    /// Makes everything durable that was written before this call: data and length.
    fn sync_data(&self) -> BoxFuture<'static, DiskResult<()>>;
    /// Cuts or extends the file to `len` bytes; new bytes read as zero.
    fn set_len(&self, len: u64) -> BoxFuture<'static, DiskResult<()>>;
    /// Extends the file to at least `len` bytes with space that a later write cannot run out of.
    fn preallocate(&self, len: u64) -> BoxFuture<'static, DiskResult<()>>;
    /// The file's length in bytes.
    fn len(&self) -> BoxFuture<'static, DiskResult<u64>>;
}
