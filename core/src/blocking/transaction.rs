//! Transactions.

use super::Scan;
use super::runtime::Runtime;
use crate::error::Result;
use crate::{Commit, Durability, Kind, Lsn, NameRange};
use std::fmt;

/// Reads and writes that take effect together or not at all; see [`ironleaf::Transaction`](crate::Transaction).
pub struct Transaction {
    transaction: crate::Transaction,
    runtime: Runtime,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transaction.fmt(f)
    }
}

impl Transaction {
    pub(super) fn new(transaction: crate::Transaction, runtime: Runtime) -> Self {
        Self { transaction, runtime }
    }

    /// The position at which it reads.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.transaction.position()
    }

    /// Commits at `level` instead of that of the handle it was begun on.
    pub fn durability(&mut self, level: Durability) -> &mut Self {
        self.transaction.durability(level);
        self
    }

    /// The value of a field of a hash.
    pub fn get(&mut self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.runtime.wait(self.transaction.get(key, field))
    }

    /// Whether a field or member exists.
    pub fn contains(&mut self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<bool> {
        self.runtime.wait(self.transaction.contains(key, name))
    }

    /// Number of fields or members.
    pub fn len(&mut self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.runtime.wait(self.transaction.len(key))
    }

    /// What the key holds; `None` if it holds nothing.
    pub fn kind(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Kind>> {
        self.runtime.wait(self.transaction.kind(key))
    }

    /// Scans the fields or members of an object whose names are in `range`, in the order of their bytes.
    pub fn scan(&mut self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        Scan::new(self.transaction.scan(key, range), self.runtime.clone())
    }

    /// The same from the last name to the first.
    pub fn scan_reverse(&mut self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        Scan::new(self.transaction.scan_reverse(key, range), self.runtime.clone())
    }

    /// Sets a field of a hash.
    pub fn set(
        &mut self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.transaction.set(key, field, value);
        self
    }

    /// Puts a member into a set.
    pub fn put(&mut self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> &mut Self {
        self.transaction.put(key, member);
        self
    }

    /// Removes a field or member.
    pub fn remove(&mut self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> &mut Self {
        self.transaction.remove(key, name);
        self
    }

    /// Deletes an object of any size.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.transaction.delete(key);
        self
    }

    /// Makes the writes take effect, if nothing that was read has changed; `Conflict` otherwise.
    pub fn commit(self) -> Result<Commit> {
        self.runtime.wait(self.transaction.commit())
    }
}
