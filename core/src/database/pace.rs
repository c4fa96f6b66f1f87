//! Keeps writers at the speed of checkpoints.
//!
//! Two memtables share the budget: the active one, and the frozen one that is on its way into pages. While a checkpoint
//! runs, the active one may grow in proportion to its progress, so writers slow down instead of running into a wall.

use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// What writers may do, and what the running checkpoint has done.
pub(crate) struct Pace {
    /// Bytes that one memtable may take.
    limit: usize,
    /// Bytes that the active one may take now.
    allowed: AtomicUsize,
    total: AtomicUsize,
    done: AtomicUsize,
    /// A checkpoint was asked for and has not begun.
    is_asked: AtomicBool,
    changed: Notify,
    failures: AtomicU64,
    failure: Mutex<Option<Error>>,
}

/// Whether a batch may be applied now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Yes,
    Later,
}

impl Pace {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            allowed: AtomicUsize::new(limit),
            total: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            is_asked: AtomicBool::new(false),
            changed: Notify::new(),
            failures: AtomicU64::new(0),
            failure: Mutex::new(None),
        }
    }

    /// Bytes that one memtable may take.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether `bytes` more may go into an active memtable of `active` bytes.
    pub(crate) fn admit(&self, active: usize, bytes: usize) -> Admission {
        let fits = active + bytes <= self.allowed.load(Ordering::Acquire);
        if fits || active == 0 { Admission::Yes } else { Admission::Later }
    }

    /// Whether somebody should ask for a checkpoint now; true for one of many who see the same need.
    pub(crate) fn wants_checkpoint(&self, active: usize) -> bool {
        active > self.limit / 4 * 3 && !self.is_asked.swap(true, Ordering::AcqRel)
    }

    /// Waits until `is_admitted`, or until a checkpoint fails; calls `ask` as often as another checkpoint is needed.
    pub(crate) async fn wait(&self, is_admitted: impl Fn() -> bool, ask: impl Fn()) -> Result<()> {
        let failures = self.failures.load(Ordering::Acquire);
        loop {
            let changed = self.changed.notified();
            if is_admitted() {
                return Ok(());
            }
            if self.failures.load(Ordering::Acquire) != failures
                && let Some(error) = self.failure.lock().clone()
            {
                return Err(error);
            }
            if !self.is_asked.swap(true, Ordering::AcqRel) {
                ask();
            }
            changed.await;
        }
    }

    /// The checkpoint that was asked for begins.
    pub(crate) fn asked(&self) {
        self.is_asked.store(false, Ordering::Release);
    }

    /// `edits` edits are to be merged.
    pub(crate) fn begin(&self, edits: usize) {
        self.total.store(edits.max(1), Ordering::Release);
        self.done.store(0, Ordering::Release);
        self.allowed.store(self.limit / 8, Ordering::Release);
    }

    /// `edits` more are merged.
    pub(crate) fn progress(&self, edits: usize) {
        let total = self.total.load(Ordering::Acquire);
        let done = (self.done.fetch_add(edits, Ordering::AcqRel) + edits).min(total);
        let part = (self.limit as u128 * done as u128 / total as u128) as usize;
        let allowed = self.limit / 8 + part / 8 * 7;
        if allowed > self.allowed.load(Ordering::Acquire) + self.limit / 64 {
            self.allowed.store(allowed, Ordering::Release);
            self.changed.notify_waiters();
        }
    }

    /// A checkpoint ended.
    pub(crate) fn finished(&self, error: Option<&Error>) {
        match error {
            None => self.allowed.store(self.limit, Ordering::Release),
            Some(error) => {
                *self.failure.lock() = Some(error.clone());
                self.failures.fetch_add(1, Ordering::AcqRel);
            }
        }
        self.changed.notify_waiters();
    }

    /// Wakes whoever waits, to see that the database is closed or poisoned.
    pub(crate) fn wake(&self) {
        self.changed.notify_waiters();
    }
}
