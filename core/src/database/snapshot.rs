//! Views that never change.

use super::engine::{Engine, ReadState, Running, SnapshotState};
use super::read::{count, look_up, wrong_kind};
use super::scan::{Keys, Scan};
use super::types::Kind;
use crate::error::Result;
use crate::ids::Lsn;
use crate::sync::Arc;
use crate::tree::Attempt;
use std::fmt;
use std::ops::RangeBounds;

/// A view of a database as of one position; it never changes, however long it is held. It does not survive the
/// process. Dropping it lets the pages go that only it needs. Cheap to clone.
#[derive(Clone)]
pub struct Snapshot(Arc<Registered>);

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
        Self(Arc::new(Registered { running, id, snapshot }))
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.0.running.engine
    }

    /// The layers to read, and how often they were replaced so far.
    pub(super) fn state(&self) -> (Arc<ReadState>, u64) {
        self.0.snapshot.state()
    }

    /// The position that it shows.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.0.snapshot.lsn
    }

    /// The value of a field of a hash. `WrongKind` if the key holds a set.
    pub async fn get(&self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let (state, _) = self.state();
        get(self.engine(), &state, self.position(), key.as_ref(), field.as_ref()).await
    }

    /// Whether a field or member exists.
    pub async fn contains(&self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<bool> {
        let (state, _) = self.state();
        contains(self.engine(), &state, self.position(), key.as_ref(), name.as_ref()).await
    }

    /// Number of fields or members; 0 for a key that holds nothing.
    pub async fn len(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.engine().ensure_open()?;
        let (state, _) = self.state();
        Ok(count(&self.engine().store, &state, self.position(), key.as_ref(), &[]).await?.0)
    }

    /// What the key holds; `None` if it holds nothing.
    pub async fn kind(&self, key: impl AsRef<[u8]>) -> Result<Option<Kind>> {
        self.engine().ensure_open()?;
        let (state, _) = self.state();
        Ok(count(&self.engine().store, &state, self.position(), key.as_ref(), &[]).await?.1)
    }

    /// Scans the fields or members of an object whose names are in `range`, in the order of their bytes.
    pub fn scan(&self, key: impl AsRef<[u8]>, range: impl RangeBounds<Vec<u8>>) -> Scan {
        Scan::new(self.clone(), key.as_ref(), (range.start_bound().cloned(), range.end_bound().cloned()))
    }

    /// The keys that begin with `prefix`, in the order of their bytes.
    pub fn keys(&self, prefix: impl AsRef<[u8]>) -> Keys {
        Keys::new(self.clone(), prefix.as_ref())
    }
}

/// The value of a field as of `at`.
pub(super) async fn get(
    engine: &Engine,
    state: &ReadState,
    at: Lsn,
    key: &[u8],
    field: &[u8],
) -> Result<Option<Vec<u8>>> {
    engine.ensure_open()?;
    let mut value = None;
    let looked = engine
        .store
        .resolve(|pages| look_up(pages, state, at, (key, field), &mut |found| value = Some(found.to_vec())))
        .await?;
    match looked.kind {
        Some(Kind::Set) => refuse_set(engine, state, at, key).await,
        _ => Ok(value),
    }
}

/// What a read of a field answers where the key holds, or held, a set.
async fn refuse_set(engine: &Engine, state: &ReadState, at: Lsn, key: &[u8]) -> Result<Option<Vec<u8>>> {
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
    let looked = engine.store.resolve(|pages| look_up(pages, state, at, (key, name), &mut |_| {})).await?;
    Ok(looked.is_present)
}

/// The value of a field as of now, if every page that is needed is cached.
pub(super) fn get_cached(engine: &Engine, key: &[u8], field: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
    engine.ensure_open()?;
    let state = engine.state.load();
    let at = state.active.visible();
    let mut value = None;
    let looked =
        look_up(&engine.store.cached(), &state, at, (key, field), &mut |found| value = Some(found.to_vec()))?;
    Ok(match looked {
        Attempt::Done(looked) if looked.kind != Some(Kind::Set) => Some(value),
        _ => None,
    })
}
