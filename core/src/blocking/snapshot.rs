//! Snapshots.

use super::runtime::Runtime;
use super::{Keys, Scan};
use crate::error::Result;
use crate::{Cursor, Kind, Lsn, NameRange};
use std::fmt;

/// A view of a database as of one position; it never changes, however long it is held. Cheap to clone.
#[derive(Clone)]
pub struct Snapshot {
    snapshot: crate::Snapshot,
    runtime: Runtime,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot.fmt(f)
    }
}

impl Snapshot {
    pub(super) fn new(snapshot: crate::Snapshot, runtime: Runtime) -> Self {
        Self { snapshot, runtime }
    }

    /// The position that it shows.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.snapshot.position()
    }

    /// The value of a field of a hash.
    pub fn get(&self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.runtime.wait(self.snapshot.get(key, field))
    }

    /// What `read` makes of the value of a field of a hash, borrowed.
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.runtime.wait(self.snapshot.get_with(key, field, read))
    }

    /// Whether a field or member exists.
    pub fn contains(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<bool> {
        self.runtime.wait(self.snapshot.contains(key, name))
    }

    /// Number of fields or members.
    pub fn len(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.runtime.wait(self.snapshot.len(key))
    }

    /// What the key holds; `None` if it holds nothing.
    pub fn kind(&self, key: impl AsRef<[u8]>) -> Result<Option<Kind>> {
        self.runtime.wait(self.snapshot.kind(key))
    }

    /// Scans the fields or members of an object whose names are in `range`, in the order of their bytes.
    pub fn scan(&self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        Scan::new(self.snapshot.scan(key, range), self.runtime.clone())
    }

    /// The same from the last name to the first.
    pub fn scan_reverse(&self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        Scan::new(self.snapshot.scan_reverse(key, range), self.runtime.clone())
    }

    /// Goes on where the scan that gave `cursor` was, on this snapshot.
    pub fn resume(&self, cursor: &Cursor) -> Scan {
        Scan::new(self.snapshot.resume(cursor), self.runtime.clone())
    }

    /// The keys that begin with `prefix`, in the order of their bytes.
    pub fn keys(&self, prefix: impl AsRef<[u8]>) -> Keys {
        Keys::new(self.snapshot.keys(prefix), self.runtime.clone())
    }
}
