//! Views that never change.

use super::cursor::Cursor;
use super::engine::{Engine, ReadState, Running, SnapshotState};
use super::keys::Keys;
use super::range::NameRange;
use super::read::{count, look_up, wrong_kind};
use super::scan::{Direction, Scan};
use super::types::Kind;
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::memtable::Memtable;
use crate::options::check_names;
use crate::sync::Arc;
use crate::tree::Attempt;
use std::fmt;

/// A view of a database as of one position; it never changes, however long it is held. It does not survive the
/// process. Dropping it lets the pages go that only it needs. Cheap to clone.
#[derive(Clone)]
pub struct Snapshot {
    registered: Arc<Registered>,
    /// What the transaction that reads through it has written itself.
    overlay: Option<Arc<Memtable>>,
}

struct Registered {
    running: Arc<Running>,
    id: u64,
    snapshot: Arc<SnapshotState>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.running.engine.snapshots.lock().remove(self.id);
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("position", &self.position()).finish()
    }
}

impl Snapshot {
    pub(super) fn new(running: Arc<Running>) -> Self {
        let (id, snapshot) = running.engine.register_snapshot();
        Self { registered: Arc::new(Registered { running, id, snapshot }), overlay: None }
    }

    /// The same view with `overlay` before everything else.
    pub(super) fn with_overlay(&self, overlay: Option<Arc<Memtable>>) -> Self {
        Self { registered: self.registered.clone(), overlay }
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.registered.running.engine
    }

    /// The layers to read, and how often they were replaced so far.
    pub(super) fn state(&self) -> (Arc<ReadState>, u64) {
        let (state, version) = self.registered.snapshot.state();
        match &self.overlay {
            None => (state, version),
            Some(_) => (Arc::new(ReadState { overlay: self.overlay.clone(), ..(*state).clone() }), version),
        }
    }

    /// The position that it shows.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.registered.snapshot.lsn
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
        let (state, _) = self.state();
        let reading = &mut Once::new(read);
        get_with(self.engine(), &state, self.position(), (key.as_ref(), field.as_ref()), reading).await
    }

    /// Whether a field or member exists.
    pub async fn contains(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<bool> {
        let (state, _) = self.state();
        contains(self.engine(), &state, self.position(), key.as_ref(), name.as_ref()).await
    }

    /// Number of fields or members; 0 for a key that holds nothing.
    pub async fn len(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.engine().ensure_open()?;
        check_names(key.as_ref(), &[])?;
        let (state, _) = self.state();
        Ok(count(&self.engine().store, &state, self.position(), key.as_ref(), &[]).await?.0)
    }

    /// What the key holds; `None` if it holds nothing.
    pub async fn kind(&self, key: impl AsRef<[u8]>) -> Result<Option<Kind>> {
        self.engine().ensure_open()?;
        check_names(key.as_ref(), &[])?;
        let (state, _) = self.state();
        Ok(count(&self.engine().store, &state, self.position(), key.as_ref(), &[]).await?.1)
    }

    /// Scans the fields or members of an object whose names are in `range`, in the order of their bytes.
    pub fn scan(&self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        Scan::new(self.clone(), key.as_ref(), range.into_bounds(), Direction::Forward)
    }

    /// The same from the last name to the first.
    pub fn scan_reverse(&self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        Scan::new(self.clone(), key.as_ref(), range.into_bounds(), Direction::Reverse)
    }

    /// Goes on where the scan that gave `cursor` was, on this snapshot.
    pub fn resume(&self, cursor: &Cursor) -> Scan {
        cursor.resume(self.clone())
    }

    /// The keys that begin with `prefix`, in the order of their bytes.
    pub fn keys(&self, prefix: impl AsRef<[u8]>) -> Keys {
        Keys::new(self.clone(), prefix.as_ref())
    }
}

/// What `reading` makes of the value of a field as of `at`.
pub(super) async fn get_with<R, F: FnOnce(&[u8]) -> R>(
    engine: &Engine,
    state: &ReadState,
    at: Lsn,
    (key, field): (&[u8], &[u8]),
    reading: &mut Once<F, R>,
) -> Result<Option<R>> {
    engine.ensure_open()?;
    check_names(key, field)?;
    let looked = engine
        .store
        .resolve(|pages| look_up(pages, state, at, (key, field), &mut |found| reading.read(found)))
        .await;
    if planted!("damage-is-absence") && looked.as_ref().is_err_and(Error::is_damage) {
        return Ok(None);
    }
    let looked = looked?;
    match looked.kind {
        Some(Kind::Set) => refuse_set(engine, state, at, key).await,
        _ => Ok(reading.done.take()),
    }
}

/// A reader of a value, and what it made of it.
pub(super) struct Once<F, R> {
    read: Option<F>,
    done: Option<R>,
}

impl<R, F: FnOnce(&[u8]) -> R> Once<F, R> {
    pub(super) fn new(read: F) -> Self {
        Self { read: Some(read), done: None }
    }

    fn read(&mut self, value: &[u8]) {
        if let Some(read) = self.read.take() {
            self.done = Some(read(value));
        }
    }
}

/// What a read of a field answers where the key holds, or held, a set.
async fn refuse_set<R>(engine: &Engine, state: &ReadState, at: Lsn, key: &[u8]) -> Result<Option<R>> {
    match count(&engine.store, state, at, key, &[]).await? {
        (0, _) => Ok(None),
        _ => Err(wrong_kind(key, Kind::Set, Kind::Hash)),
    }
}

/// Whether a name exists as of `at`.
pub(super) async fn contains(
    engine: &Engine,
    state: &ReadState,
    at: Lsn,
    key: &[u8],
    name: &[u8],
) -> Result<bool> {
    engine.ensure_open()?;
    check_names(key, name)?;
    let looked = engine.store.resolve(|pages| look_up(pages, state, at, (key, name), &mut |_| {})).await?;
    Ok(looked.is_present)
}

/// What `reading` makes of the value of a field as of now, if every page that is needed is cached.
pub(super) fn get_cached<R, F: FnOnce(&[u8]) -> R>(
    engine: &Engine,
    (key, field): (&[u8], &[u8]),
    reading: &mut Once<F, R>,
) -> Result<Option<Option<R>>> {
    engine.ensure_open()?;
    check_names(key, field)?;
    let state = engine.state.load();
    let at = state.active.visible();
    let looked = look_up(&engine.store.cached(), &state, at, (key, field), &mut |found| reading.read(found))?;
    Ok(match looked {
        Attempt::Done(looked) if looked.kind != Some(Kind::Set) => Some(reading.done.take()),
        _ => None,
    })
}
