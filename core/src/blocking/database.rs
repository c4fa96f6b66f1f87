//! The handle.

use super::runtime::Runtime;
use super::{Keys, Scan, Snapshot, Transaction};
use crate::error::{Error, Result};
use crate::{Commit, Cursor, Durability, Kind, Lsn, Metrics, NameRange, Options, Report, WriteBatch};
use std::fmt;
use std::path::Path;

/// An open database, with calls that block. Cheap to clone; all clones are the same database. On a thread of an async
/// runtime every call is refused with `InvalidInput`.
#[derive(Clone)]
pub struct Database {
    database: crate::Database,
    runtime: Runtime,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.database.fmt(f)
    }
}

impl Database {
    /// Opens the database in the directory `path` on this machine's disk.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let runtime = Runtime::new()?;
        let database = runtime.wait(crate::Database::open(runtime.env(), path, options))?;
        Ok(Self { database, runtime })
    }

    /// Opens (or creates) the database in the directory `path` with the default options.
    pub fn open_path(path: impl AsRef<Path>) -> Result<Self> {
        Self::open(path, Options::default())
    }

    /// Opens the database in the directory `path` on this machine's disk for reading, and changes no byte of it; see
    /// [`open_read_only`](crate::Database::open_read_only).
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let runtime = Runtime::new()?;
        let database = runtime.wait(crate::Database::open_read_only(runtime.env(), path, options))?;
        Ok(Self { database, runtime })
    }

    /// [`open_read_only`](Self::open_read_only) with the default options.
    pub fn open_path_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_read_only(path, Options::default())
    }

    /// The same database; commits through the returned handle are at `level` where they do not say otherwise.
    #[must_use]
    pub fn with_durability(&self, level: Durability) -> Self {
        Self { database: self.database.with_durability(level), runtime: self.runtime.clone() }
    }

    /// Applies a batch: whole, at one position.
    pub fn commit(&self, batch: WriteBatch) -> Result<Commit> {
        self.runtime.wait(self.database.commit(batch))
    }

    /// Sets a field of a hash, blindly.
    pub fn set(&self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.runtime.wait(self.database.set(key, field, value))
    }

    /// Sets several fields of a hash in one commit, blindly.
    pub fn set_many<F: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        fields: impl IntoIterator<Item = (F, V)>,
    ) -> Result<()> {
        self.runtime.wait(self.database.set_many(key, fields))
    }

    /// Puts a member into a set, blindly.
    pub fn put(&self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Result<()> {
        self.runtime.wait(self.database.put(key, member))
    }

    /// Puts several members into a set in one commit, blindly.
    pub fn put_many<M: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        members: impl IntoIterator<Item = M>,
    ) -> Result<()> {
        self.runtime.wait(self.database.put_many(key, members))
    }

    /// Removes a field or member, blindly.
    pub fn remove(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<()> {
        self.runtime.wait(self.database.remove(key, name))
    }

    /// Deletes an object of any size, blindly.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.runtime.wait(self.database.delete(key))
    }

    /// Sets a field of a hash and returns the value before.
    pub fn insert(
        &self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        self.runtime.wait(self.database.insert(key, field, value))
    }

    /// Puts a member into a set; true if it is new.
    pub fn add(&self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Result<bool> {
        self.runtime.wait(self.database.add(key, member))
    }

    /// Removes a field or member and returns the value before (empty for a member).
    pub fn take(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.runtime.wait(self.database.take(key, name))
    }

    /// The value of a field of a hash.
    pub fn get(&self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.runtime.wait(self.database.get(key, field))
    }

    /// What `read` makes of the value of a field of a hash, borrowed.
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.runtime.wait(self.database.get_with(key, field, read))
    }

    /// Whether a field or member exists.
    pub fn contains(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<bool> {
        self.runtime.wait(self.database.contains(key, name))
    }

    /// Number of fields or members.
    pub fn len(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.runtime.wait(self.database.len(key))
    }

    /// What the key holds; `None` if it holds nothing.
    pub fn kind(&self, key: impl AsRef<[u8]>) -> Result<Option<Kind>> {
        self.runtime.wait(self.database.kind(key))
    }

    /// Scans the fields or members of an object whose names are in `range`, in the order of their bytes, as of now.
    pub fn scan(&self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        Scan::new(self.database.scan(key, range), self.runtime.clone())
    }

    /// The same from the last name to the first.
    pub fn scan_reverse(&self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        Scan::new(self.database.scan_reverse(key, range), self.runtime.clone())
    }

    /// Goes on where the scan that gave `cursor` was, as of now.
    pub fn resume(&self, cursor: &Cursor) -> Scan {
        Scan::new(self.database.resume(cursor), self.runtime.clone())
    }

    /// The keys that begin with `prefix`, in the order of their bytes, as of now.
    pub fn keys(&self, prefix: impl AsRef<[u8]>) -> Keys {
        Keys::new(self.database.keys(prefix), self.runtime.clone())
    }

    /// A view of everything that is visible now; it never changes.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.database.snapshot(), self.runtime.clone())
    }

    /// Begins a transaction.
    #[must_use]
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.database.transaction(), self.runtime.clone())
    }

    /// Every commit up to here is visible.
    #[must_use]
    pub fn visible_point(&self) -> Lsn {
        self.database.visible_point()
    }

    /// Every commit up to here survives power loss.
    #[must_use]
    pub fn durable_point(&self) -> Lsn {
        self.database.durable_point()
    }

    /// Makes everything durable that was committed before the call; returns the position up to which that is so.
    pub fn flush(&self) -> Result<Lsn> {
        self.runtime.wait(self.database.flush())
    }

    /// The damage that was passed over to open it; see [`crate::Database::left_out`].
    #[must_use]
    pub fn left_out(&self) -> &[Error] {
        self.database.left_out()
    }

    /// Writes everything that was committed before the call into pages.
    pub fn checkpoint(&self) -> Result<Lsn> {
        self.runtime.wait(self.database.checkpoint())
    }

    /// Verifies every page.
    pub fn check(&self) -> Result<Report> {
        self.runtime.wait(self.database.check())
    }

    /// Counters and figures.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.database.metrics()
    }

    /// Makes everything durable, stops the background tasks and lets the directory go.
    pub fn close(&self) -> Result<()> {
        self.runtime.wait(self.database.close())
    }
}
