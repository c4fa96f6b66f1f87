//! The handle that users hold.

use super::cursor::Cursor;
use super::engine::{Engine, Running};
use super::keys::Keys;
use super::range::NameRange;
use super::scan::Scan;
use super::snapshot::{self, Once, Snapshot};
use super::transaction::Transaction;
use super::types::{Commit, Kind, Metrics, Report};
use crate::batch::WriteBatch;
use crate::checkpoint::Command;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::options::{Durability, Options};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use std::fmt;
use std::path::Path;
use tokio::sync::oneshot;

/// An open database. Cheap to clone; all clones are the same database.
///
/// Every write has one place in one order, becomes visible in that order at once, and is durable as its
/// [`Durability`] says when the call returns. A call whose future is dropped is done whole or not at all.
///
/// *Blind* writes read nothing and say nothing of what was there; *counted* ones ([`insert`](Self::insert),
/// [`add`](Self::add), [`take`](Self::take)) read first and say it.
///
/// Reads fail with `InvalidInput` (an empty or over-long name), `Corruption` or `Io` (a page that they need is damaged or
/// cannot be read; the rest stays readable) and `Closed`, and those of a value with `WrongKind`. A read whose future is
/// dropped has done nothing.
///
/// Dropping the last handle without [`close`](Self::close) is like the death of the process: what was `Buffered` may
/// be lost. The directory stays locked until the last operation in flight has ended, which takes moments: an open in the
/// same process waits for it a little. Close the database to be certain.
#[derive(Clone)]
pub struct Database {
    running: Arc<Running>,
    durability: Durability,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("directory", &self.engine().directory).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database in the directory `path`, creating it if `options` say so; the parent must exist.
    ///
    /// # Errors
    /// `NotFound` (and creating was not asked for), `Locked`, `NotADatabase`, `UnsupportedVersion`, `Corruption`,
    /// `InvalidInput` for options outside of their limits, `DiskFull`, `Io`. None of them changes anything.
    pub async fn open(env: Env, path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let durability = options.durability;
        let running = super::open::open(env, path.as_ref(), options).await?;
        Ok(Self { running: Arc::new(running), durability })
    }

    /// Opens (or creates) the database in the directory `path` on this machine's disk, with the default options.
    /// Must be called within a tokio runtime; [`blocking::Database`](crate::blocking::Database) needs none. Errors as for
    /// [`open`](Self::open), and `Io` outside of a runtime.
    pub async fn open_path(path: impl AsRef<Path>) -> Result<Self> {
        Self::open(crate::env::os::environment()?, path, Options::default()).await
    }

    /// Opens the database in the directory `path` for reading, and changes no byte of it: made to look at a directory
    /// that is damaged, or that must stay as it is.
    ///
    /// The log is replayed into memory only, within half of `memory_bytes`. A damaged or missing page gives
    /// `Corruption` to the reads that need it, and the rest stays readable; a damaged manifest or log is refused, as by
    /// [`open`](Self::open), unless [`Options::salvage`] is set. Every commit, [`flush`](Self::flush) and [`checkpoint`](Self::checkpoint) gives `ReadOnly`.
    /// What is shown is not promised to be durable: a writing open may, after a power loss, recover less.
    ///
    /// The directory is held as by a writer: there is one opener at a time, whatever it does.
    ///
    /// # Errors
    /// `NotFound` (also if `options` would create), `Locked`, `NotADatabase`, `UnsupportedVersion`, `Corruption`,
    /// `InvalidInput`, `Io`, and `ResourceExhausted` if the log does not fit into memory.
    pub async fn open_read_only(env: Env, path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let durability = options.durability;
        let running = super::read_only::open_read_only(env, path.as_ref(), options).await?;
        Ok(Self { running: Arc::new(running), durability })
    }

    /// [`open_read_only`](Self::open_read_only) on this machine's disk, with the default options. Must be called within
    /// a tokio runtime.
    pub async fn open_path_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_read_only(crate::env::os::environment()?, path, Options::default()).await
    }

    /// The damage that a read-only open with [`Options::salvage`] passed over, in the order met: commits, or whole
    /// checkpoints, that are not shown. Empty for every other open. A damaged page is not among them: the reads that
    /// need it say so, and [`Scan::skip_damage`](crate::Scan::skip_damage) goes on behind it.
    #[must_use]
    pub fn left_out(&self) -> &[Error] {
        &self.engine().left_out
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.running.engine
    }

    /// The same database; commits through the returned handle are at `level` where they do not say otherwise.
    #[must_use]
    pub fn with_durability(&self, level: Durability) -> Self {
        Self { running: self.running.clone(), durability: level }
    }

    /// Applies a batch: whole, at one position.
    ///
    /// # Errors
    /// Nothing was done: `InvalidInput`, `WrongKind`, `ResourceExhausted`, `DiskFull`, `Poisoned`, `ReadOnly`, `Closed`,
    /// and `Corruption` or `Io` where something had to be read. `DurabilityUnknown`: the batch is visible, and reopening
    /// will tell whether it is durable.
    pub async fn commit(&self, batch: WriteBatch) -> Result<Commit> {
        self.engine().commit(batch, self.durability, None).await
    }

    /// Sets a field of a hash, blindly. Errors as for [`commit`](Self::commit).
    pub async fn set(
        &self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.set(key, field, value);
        self.commit(batch).await.map(drop)
    }

    /// Sets several fields of a hash in one commit, blindly. Errors as for [`commit`](Self::commit).
    pub async fn set_many<F: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        fields: impl IntoIterator<Item = (F, V)>,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        for (field, value) in fields {
            batch.set(&key, field, value);
        }
        self.commit(batch).await.map(drop)
    }

    /// Puts a member into a set, blindly. Errors as for [`commit`](Self::commit).
    pub async fn put(&self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put(key, member);
        self.commit(batch).await.map(drop)
    }

    /// Puts several members into a set in one commit, blindly. Errors as for [`commit`](Self::commit).
    pub async fn put_many<M: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        members: impl IntoIterator<Item = M>,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        for member in members {
            batch.put(&key, member);
        }
        self.commit(batch).await.map(drop)
    }

    /// Removes a field or member, blindly. Errors as for [`commit`](Self::commit).
    pub async fn remove(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.remove(key, name);
        self.commit(batch).await.map(drop)
    }

    /// Deletes an object of any size, blindly; one small record in the log. Errors as for [`commit`](Self::commit).
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete(key);
        self.commit(batch).await.map(drop)
    }

    /// Sets a field of a hash and returns the value before. Errors as for [`commit`](Self::commit).
    pub async fn insert(
        &self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let mut batch = WriteBatch::new();
        batch.insert(key, field, value);
        Ok(self.commit(batch).await?.outcomes.pop().flatten())
    }

    /// Puts a member into a set; true if it is new. Errors as for [`commit`](Self::commit).
    pub async fn add(&self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> Result<bool> {
        let mut batch = WriteBatch::new();
        batch.add(key, member);
        Ok(self.commit(batch).await?.outcomes.pop().flatten().is_none())
    }

    /// Removes a field or member and returns the value before (empty for a member). Errors as for
    /// [`commit`](Self::commit).
    pub async fn take(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let mut batch = WriteBatch::new();
        batch.take(key, name);
        Ok(self.commit(batch).await?.outcomes.pop().flatten())
    }

    /// The value of a field of a hash. `WrongKind` if the key holds a set.
    pub async fn get(&self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, field, <[u8]>::to_vec).await
    }

    /// Gives the value of a field of a hash, borrowed, to `read`, and returns what that makes of it; `None` if there is
    /// no such field. Copies and allocates nothing if the value is in memory. `WrongKind` if the key holds a set.
    pub async fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let name = (key.as_ref(), field.as_ref());
        let mut reading = Once::new(read);
        if let Some(value) = snapshot::get_cached(self.engine(), name, &mut reading)? {
            return Ok(value);
        }
        let state = self.engine().state.load_full();
        snapshot::get_with(self.engine(), &state, state.active.visible(), name, &mut reading).await
    }

    /// Whether a field or member exists.
    pub async fn contains(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<bool> {
        let state = self.engine().state.load_full();
        snapshot::contains(self.engine(), &state, state.active.visible(), key.as_ref(), name.as_ref()).await
    }

    /// Number of fields or members; 0 for a key that holds nothing. Exact: costs a lookup for each recent edit.
    pub async fn len(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.snapshot().len(key).await
    }

    /// What the key holds; `None` if it holds nothing.
    pub async fn kind(&self, key: impl AsRef<[u8]>) -> Result<Option<Kind>> {
        self.snapshot().kind(key).await
    }

    /// Scans the fields or members of an object whose names are in `range`, in the order of their bytes, as of now.
    pub fn scan(&self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        self.snapshot().scan(key, range)
    }

    /// The same from the last name to the first.
    pub fn scan_reverse(&self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        self.snapshot().scan_reverse(key, range)
    }

    /// Goes on where the scan that gave `cursor` was, as of now.
    pub fn resume(&self, cursor: &Cursor) -> Scan {
        self.snapshot().resume(cursor)
    }

    /// Begins a transaction: reads as of now, and writes that take effect only if nothing that was read has changed.
    #[must_use]
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.running.clone(), self.durability)
    }

    /// The keys that begin with `prefix`, in the order of their bytes, as of now.
    pub fn keys(&self, prefix: impl AsRef<[u8]>) -> Keys {
        self.snapshot().keys(prefix)
    }

    /// A view of everything that is visible now; it never changes.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.running.clone())
    }

    /// Every commit up to here is visible.
    #[must_use]
    pub fn visible_point(&self) -> Lsn {
        self.engine().state.load().active.visible()
    }

    /// Every commit up to here survives power loss.
    #[must_use]
    pub fn durable_point(&self) -> Lsn {
        self.engine().log.lock().durable()
    }

    /// Makes everything durable that was committed before the call; returns the position up to which that is so.
    ///
    /// # Errors
    /// `DurabilityUnknown` if the log could not be written or synced, now or earlier; `ReadOnly`, `Closed`.
    pub async fn flush(&self) -> Result<Lsn> {
        self.engine().ensure_writable()?;
        let appended = self.engine().log.lock().appended();
        self.engine().reach(appended, Durability::Synced).await?;
        Ok(appended)
    }

    /// Writes everything that was committed before the call into pages, so that the log before it is not needed, and
    /// gives space back as far as open snapshots allow. Returns the position up to which pages hold everything.
    ///
    /// # Errors
    /// `DiskFull`, and `Io` of a read (nothing is lost; try again), `Poisoned`, `ReadOnly`, `Closed`. `Corruption`,
    /// `DurabilityUnknown` and any other `Io` poison the database: no more writes, and reopening tells what survived.
    pub async fn checkpoint(&self) -> Result<Lsn> {
        self.engine().ensure_writable()?;
        self.ask(|answer| Command::Checkpoint(Some(answer))).await?
    }

    /// Verifies every page that the newest checkpoint reaches, and that every other page is free or waits to be freed.
    /// A damaged database is an `Ok` report with findings, and so is one with pages that the disk does not give.
    ///
    /// # Errors
    /// `ResourceExhausted` (too many open files), `Closed`.
    pub async fn check(&self) -> Result<Report> {
        if self.engine().is_read_only {
            self.engine().ensure_open()?;
            return self.engine().verify().await;
        }
        self.ask(Command::Check).await?
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T> {
        self.engine().ensure_open()?;
        let (answer, answered) = oneshot::channel();
        self.engine().commands.send(command(answer)).map_err(|_| Command::refused())?;
        answered.await.map_err(|_| Command::refused())
    }

    /// Counters and figures.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.engine().metrics()
    }

    /// Makes everything durable, stops the background tasks and lets the directory go. Every clone and snapshot
    /// answers `Closed` from the call on. Closing again waits for the first, and gives its outcome.
    ///
    /// # Errors
    /// As for [`flush`](Self::flush), and `Io` if the end of the log could not be noted in the manifest; the database is
    /// closed all the same.
    pub async fn close(&self) -> Result<()> {
        let engine = self.engine();
        engine.is_closed.store(true, Ordering::Release);
        engine.log.close();
        engine.pace.wake();
        let mut closing = self.running.closing.lock().await;
        if let Some(outcome) = &closing.outcome {
            return outcome.clone();
        }
        let appended = engine.log.lock().appended();
        let mut outcome = engine.log.reach(appended, Durability::Synced).await;
        let (answer, answered) = oneshot::channel();
        if engine.commands.send(Command::Stop(answer)).is_ok()
            && let Ok(noted) = answered.await
        {
            outcome = outcome.and(noted);
        }
        if let Some(ended) = &mut closing.keeper_ended {
            let _ = ended.await;
        }
        closing.keeper_ended = None;
        closing.tasks.clear();
        *engine.directory_lock.lock() = None;
        tracing::info!(directory = %engine.directory.display(), is_durable = outcome.is_ok(), "database closed");
        closing.outcome = Some(outcome.clone());
        outcome
    }
}
