//! What all handles of an open database share.

use super::pace::Pace;
use crate::checkpoint::Command;
use crate::env::{DirectoryLock, Env, TaskHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Lsn;
use crate::memtable::Memtable;
use crate::options::Options;
use crate::page::{PageStore, RootVersion};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, ArcSwap, Mutex};
use crate::wal::Log;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio::sync::{mpsc, oneshot};

/// An open database. Its background tasks hold it too; they end when the last handle goes.
pub(crate) struct Engine {
    pub(crate) env: Env,
    pub(crate) directory: PathBuf,
    pub(crate) options: Options,
    pub(crate) log: Arc<Log>,
    pub(crate) store: Arc<PageStore>,
    /// What readers read. Replaced when the memtable is frozen and when a checkpoint is published.
    pub(crate) state: ArcSwap<ReadState>,
    pub(crate) snapshots: Mutex<Registry>,
    pub(crate) pace: Arc<Pace>,
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) memtable_seed: u64,
    pub(crate) counters: Counters,
    pub(crate) directory_lock: Mutex<Option<Box<dyn DirectoryLock>>>,
    pub(crate) is_closed: AtomicBool,
    /// Opened for reading: nothing is ever written, and no background task runs.
    pub(crate) is_read_only: bool,
    /// The damage that was passed over to open it.
    pub(crate) left_out: Vec<Error>,
}

/// The layers that a read looks through, newest first. What all of them say together is one state: the active
/// memtable's visible position.
#[derive(Clone)]
pub(crate) struct ReadState {
    /// What the transaction that reads has written itself.
    pub(crate) overlay: Option<Arc<Memtable>>,
    pub(crate) active: Arc<Memtable>,
    pub(crate) frozen: Option<Arc<Memtable>>,
    pub(crate) root: Arc<RootVersion>,
}

impl ReadState {
    /// The memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Memtable> {
        self.overlay.as_deref().into_iter().chain([&*self.active]).chain(self.frozen.as_deref())
    }
}

/// What the engine knows of an open snapshot.
pub(crate) struct SnapshotState {
    pub(crate) lsn: Lsn,
    /// Replaced when a checkpoint has made a root for this snapshot, so that it holds no memtable; with the number of
    /// replacements so far.
    state: Mutex<(Arc<ReadState>, u64)>,
}

impl SnapshotState {
    /// The layers to read, and how often they were replaced so far.
    pub(crate) fn state(&self) -> (Arc<ReadState>, u64) {
        self.state.lock().clone()
    }

    pub(crate) fn hand_over(&self, state: ReadState) {
        let mut held = self.state.lock();
        let version = held.1 + 1;
        let before = std::mem::replace(&mut *held, (Arc::new(state), version));
        drop(held);
        drop(before);
    }
}

/// The open snapshots.
#[derive(Default)]
pub(crate) struct Registry {
    next: u64,
    open: BTreeMap<u64, Arc<SnapshotState>>,
}

impl Registry {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<SnapshotState>> {
        self.open.values()
    }

    /// Snapshots at positions in [`from`, `to`].
    pub(crate) fn within(&self, from: Lsn, to: Lsn) -> Vec<Arc<SnapshotState>> {
        self.all().filter(|snapshot| from <= snapshot.lsn && snapshot.lsn <= to).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.open.remove(&id);
    }
}

impl Engine {
    /// Refuses reads of a database that was closed.
    pub(crate) fn ensure_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the database is closed"));
        }
        Ok(())
    }

    /// Refuses writes of a database that was opened for reading, or was closed.
    pub(crate) fn ensure_writable(&self) -> Result<()> {
        self.ensure_open()?;
        if self.is_read_only {
            return Err(Error::new(
                ErrorKind::ReadOnly,
                "the database was opened read-only; close it and open it for writing",
            ));
        }
        Ok(())
    }

    /// Registers a snapshot of what is visible now.
    pub(crate) fn register_snapshot(&self) -> (u64, Arc<SnapshotState>) {
        let early = sabotaged!("snapshot-taken-first").then(|| self.state.load_full());
        let mut registry = self.snapshots.lock();
        let state = early.unwrap_or_else(|| self.state.load_full());
        let lsn = state.active.visible();
        let snapshot = Arc::new(SnapshotState { lsn, state: Mutex::new((state, 0)) });
        let id = registry.next;
        registry.next += 1;
        registry.open.insert(id, snapshot.clone());
        (id, snapshot)
    }
}

/// A number that only grows.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What [`Metrics`](super::Metrics) reports and nothing else counts.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commits: Counter,
    pub(crate) checkpoints: Counter,
    pub(crate) page_bytes_written: Counter,
}

/// What the handles of a database hold: when the last goes, the background tasks end and the engine with them.
pub(crate) struct Running {
    pub(crate) engine: Arc<Engine>,
    /// Held while somebody closes the database; whoever closes it too waits for the outcome.
    pub(crate) closing: tokio::sync::Mutex<Closing>,
}

/// What closing has to do, and what came of it.
pub(crate) struct Closing {
    pub(crate) tasks: Vec<TaskHandle>,
    /// Answered when the log's keeper has ended, and with it its last operation on the directory.
    pub(crate) keeper_ended: Option<oneshot::Receiver<()>>,
    pub(crate) outcome: Option<Result<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.engine.log.close();
        self.engine.pace.wake();
    }
}
