//! The one error of the public interface.

use crate::env::{DiskError, DiskErrorKind};
use std::fmt;

/// The result of an operation on a database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments are outside of the documented limits; nothing was done. Change the call.
    InvalidInput,
    /// The key holds an object of the other kind; nothing was done.
    WrongKind,
    /// There is no database at the path, and creating one was not asked for.
    NotFound,
    /// The directory holds files that are not an Ironleaf database; nothing was touched. Choose another path.
    NotADatabase,
    /// The directory was written by a version with another format; nothing was touched.
    UnsupportedVersion,
    /// Another opener holds the directory. Close it first.
    Locked,
    /// Stored bytes are damaged. What the error does not name stays readable.
    Corruption,
    /// A write failed earlier: no more writes; reads go on. Reopen, which decides what survived.
    Poisoned,
    /// The commit was made visible, but whether it is durable will only be known after reopening.
    DurabilityUnknown,
    /// No space is left on the disk; nothing was done. Free some, then try again.
    DiskFull,
    /// The operation does not fit into the memory budget, or needs more open files than the process may have; nothing
    /// was done. Make it smaller or the budget larger.
    ResourceExhausted,
    /// Something that the transaction read was changed since; nothing was done. Run it again from its start.
    Conflict,
    /// The database was opened read-only; nothing was done. Open it for writing.
    ReadOnly,
    /// The database was closed.
    Closed,
    /// The operating system refused or failed an operation; the message says which.
    Io,
}

/// An error: a kind to act on, and one line for people.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<DiskError>,
}

impl Error {
    /// What a caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the disk or the process was short of something. Nothing was changed by that, so it may be tried again.
    pub(crate) fn is_shortage(&self) -> bool {
        matches!(self.kind, ErrorKind::DiskFull | ErrorKind::ResourceExhausted)
    }

    /// The error of a change that may have taken effect: not even a full disk is a reason to try that again.
    pub(crate) fn of_unsettled_change(self) -> Self {
        let kind = if self.is_shortage() { ErrorKind::Io } else { self.kind };
        Self { kind, ..self }
    }

    /// Whether the medium failed to give back what it holds. Nothing was changed by that, so it may be tried again.
    pub(crate) fn is_failed_read(&self) -> bool {
        let is_read = |source: &DiskError| {
            matches!(source.kind, DiskErrorKind::Io | DiskErrorKind::PermissionDenied)
                && ["open", "read", "length"].contains(&source.operation)
        };
        self.source.as_ref().is_some_and(is_read)
    }

    /// Whether something stored cannot be had: it is damaged, or the medium does not give it. `skip_damage` of a scan
    /// goes on behind what such an error is about.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.kind == ErrorKind::Corruption || self.is_failed_read()
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// Damage at `offset` of `file`.
    pub(crate) fn corruption(
        file: impl fmt::Display,
        offset: u64,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        Self::new(
            ErrorKind::Corruption,
            format!("{file} is damaged at offset {offset}: expected {expected}, found {found}"),
        )
    }

    /// Damage that has no place of its own: something of `what` is missing.
    pub(crate) fn incomplete(
        what: impl fmt::Display,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        Self::new(ErrorKind::Corruption, format!("{what} is incomplete: expected {expected}, found {found}"))
    }
}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Self {
        let kind = match error.kind {
            DiskErrorKind::Full => ErrorKind::DiskFull,
            DiskErrorKind::TooManyFiles => ErrorKind::ResourceExhausted,
            DiskErrorKind::Locked => ErrorKind::Locked,
            DiskErrorKind::UnexpectedEnd => ErrorKind::Corruption,
            DiskErrorKind::NotFound
            | DiskErrorKind::AlreadyExists
            | DiskErrorKind::PermissionDenied
            | DiskErrorKind::Unsupported
            | DiskErrorKind::Io => ErrorKind::Io,
        };
        Self { kind, message: error.to_string(), source: Some(error) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
