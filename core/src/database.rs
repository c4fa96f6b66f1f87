//! The public interface.

use crate::batch::WriteBatch;
use crate::env::Env;
use crate::error::Result;
use crate::ids::Lsn;
use crate::options::{Durability, Options};
use std::ops::RangeBounds;
use std::path::Path;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Fields with values.
    Hash,
    /// Members.
    Set,
}

/// The result of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// The batch's place in the one order of all commits. For an empty batch: the position it was read at.
    pub position: Lsn,
    /// For each counted write, in order: the value before (empty for a member of a set), or `None`.
    pub outcomes: Vec<Option<Vec<u8>>>,
}

/// One thing that [`Database::check`] found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file or structure.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What [`Database::check`] saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Everything that is wrong; empty for a sound database.
    pub findings: Vec<Finding>,
    /// Objects seen.
    pub objects: u64,
    /// Fields and members seen.
    pub entries: u64,
    /// Pages seen.
    pub pages: u64,
}

/// Counters since the database was opened; the unit is in the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Commits that got a position.
    pub commits: u64,
}

/// An open database. Cheap to clone; all clones are the same database.
#[derive(Clone, Debug)]
pub struct Database;

#[allow(unused_variables, clippy::todo, clippy::unused_async, clippy::allow_attributes, reason = "skeleton")]
impl Database {
    /// Opens the database in the directory `path`, creating it if `options` say so.
    pub async fn open(env: Env, path: impl AsRef<Path>, options: Options) -> Result<Self> { todo!() }
    /// Opens (or creates) the database at `path` on this machine's disk. Must be called within a tokio runtime.
    pub async fn open_path(path: impl AsRef<Path>) -> Result<Self> { todo!() }
    /// The same database with another default level for commits that go through this handle.
    pub fn with_durability(&self, level: Durability) -> Self { todo!() }
    /// Applies a batch.
    pub async fn commit(&self, batch: WriteBatch) -> Result<Commit> { todo!() }
    /// Sets a field of a hash, blindly.
    pub async fn set(&self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> { todo!() }
    /// Sets several fields of a hash in one commit, blindly.
    pub async fn set_many<F: AsRef<[u8]>, V: AsRef<[u8]>>(&self, key: impl AsRef<[u8]>, fields: impl IntoIterator<Item = (F, V)>) -> Result<()> { todo!() }
    /// Puts a member into a set, blindly.
    pub async fn put(&self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Result<()> { todo!() }
    /// Puts several members into a set in one commit, blindly.
    pub async fn put_many<M: AsRef<[u8]>>(&self, key: impl AsRef<[u8]>, members: impl IntoIterator<Item = M>) -> Result<()> { todo!() }
    /// Removes a field or member, blindly.
    pub async fn remove(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<()> { todo!() }
    /// Deletes an object.
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> { todo!() }
    /// Sets a field and returns the value before.
    pub async fn insert(&self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> { todo!() }
    /// Puts a member into a set; true if it is new.
    pub async fn add(&self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Result<bool> { todo!() }
    /// Removes a field or member and returns the value before (empty for a member).
    pub async fn take(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> { todo!() }
    /// The value of a field of a hash.
    pub async fn get(&self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> { todo!() }
    /// Whether a field or member exists.
    pub async fn contains(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<bool> { todo!() }
    /// Number of fields or members; 0 for an absent key.
    pub async fn len(&self, key: impl AsRef<[u8]>) -> Result<u64> { todo!() }
    /// What the key holds.
    pub async fn kind(&self, key: impl AsRef<[u8]>) -> Result<Option<Kind>> { todo!() }
    /// Scans an object's names in order, as of now.
    pub fn scan(&self, key: impl AsRef<[u8]>, range: impl RangeBounds<Vec<u8>>) -> Scan { todo!() }
    /// The keys with a prefix, in order, as of now.
    pub fn keys(&self, prefix: impl AsRef<[u8]>) -> Keys { todo!() }
    /// A view that never changes.
    pub fn snapshot(&self) -> Snapshot { todo!() }
    /// Every commit up to here is visible.
    pub fn visible_point(&self) -> Lsn { todo!() }
    /// Every commit up to here survives power loss.
    pub fn durable_point(&self) -> Lsn { todo!() }
    /// Makes everything before the call durable.
    pub async fn flush(&self) -> Result<Lsn> { todo!() }
    /// Writes the memtable to pages.
    pub async fn checkpoint(&self) -> Result<()> { todo!() }
    /// Verifies everything.
    pub async fn check(&self) -> Result<Report> { todo!() }
    /// Counters.
    pub fn metrics(&self) -> Metrics { todo!() }
    /// Makes everything durable and lets the directory go. Every clone and snapshot answers `Closed` afterwards.
    pub async fn close(&self) -> Result<()> { todo!() }
}

/// A view of a database as of one position; it never changes. Dropping it lets its pages go.
#[derive(Debug)]
pub struct Snapshot;

#[allow(unused_variables, clippy::todo, clippy::unused_async, clippy::allow_attributes, reason = "skeleton")]
impl Snapshot {
    /// The position.
    pub fn position(&self) -> Lsn { todo!() }
    /// The value of a field of a hash.
    pub async fn get(&self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> { todo!() }
    /// Whether a field or member exists.
    pub async fn contains(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<bool> { todo!() }
    /// Number of fields or members.
    pub async fn len(&self, key: impl AsRef<[u8]>) -> Result<u64> { todo!() }
    /// What the key holds.
    pub async fn kind(&self, key: impl AsRef<[u8]>) -> Result<Option<Kind>> { todo!() }
    /// Scans an object's names in order.
    pub fn scan(&self, key: impl AsRef<[u8]>, range: impl RangeBounds<Vec<u8>>) -> Scan { todo!() }
    /// The keys with a prefix, in order.
    pub fn keys(&self, prefix: impl AsRef<[u8]>) -> Keys { todo!() }
}

/// A running scan over the fields or members of one object.
#[derive(Debug)]
pub struct Scan;

#[allow(unused_variables, clippy::todo, clippy::unused_async, clippy::allow_attributes, reason = "skeleton")]
impl Scan {
    /// The next name and value (empty for a member of a set).
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> { todo!() }
}

/// A running scan over keys.
#[derive(Debug)]
pub struct Keys;

#[allow(unused_variables, clippy::todo, clippy::unused_async, clippy::allow_attributes, reason = "skeleton")]
impl Keys {
    /// The next key.
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Kind)>> { todo!() }
}
