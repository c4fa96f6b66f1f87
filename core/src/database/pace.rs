//! Keeps writers at the speed of checkpoints.
//!
//! Two memtables share the budget: the active one, and the frozen one that is on its way into pages. While a checkpoint
//! runs, the active one may grow in proportion to its progress, so writers slow down instead of running into a wall.

use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, Notify};

/// Steps in which a checkpoint gives the memory of a memtable to those who wait for it.
const STEPS: usize = 512;

/// What writers may do, and what the running checkpoint has done.
pub(crate) struct Pace {
    /// Bytes that one memtable may take.
    limit: usize,
    /// Bytes that the active one may take now.
    allowed: AtomicUsize,
    /// Bytes that it took when the running checkpoint began to merge.
    floor: AtomicUsize,
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
            floor: AtomicUsize::new(0),
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
        self.is_due(active) && !self.is_asked.swap(true, Ordering::AcqRel)
    }

    /// Whether an active memtable of `active` bytes should be frozen.
    pub(crate) fn is_due(&self, active: usize) -> bool {
        active > self.limit / 4 * 3
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

    /// `edits` edits are to be merged, and meanwhile `active` bytes are in the active memtable.
    pub(crate) fn begin(&self, edits: usize, active: usize) {
        self.total.store(edits.max(1), Ordering::Release);
        self.done.store(0, Ordering::Release);
        self.floor.store(active.min(self.limit), Ordering::Release);
        self.allowed.store(active.min(self.limit), Ordering::Release);
    }

    /// `edits` more are merged.
    pub(crate) fn progress(&self, edits: usize) {
        let total = self.total.load(Ordering::Acquire);
        let done = (self.done.fetch_add(edits, Ordering::AcqRel) + edits).min(total);
        let floor = self.floor.load(Ordering::Acquire);
        // What remains of the limit is for the syncs that follow.
        let span = (self.limit / 8 * 5).saturating_sub(floor);
        let part = (span as u128 * done as u128 / total as u128) as usize;
        self.allow(floor + part, self.limit / STEPS);
    }

    /// All edits are merged. What follows does not tell how far it is: writers may use the rest.
    pub(crate) fn merged(&self) {
        self.allow(self.limit, 0);
    }

    fn allow(&self, bytes: usize, step: usize) {
        if bytes > self.allowed.load(Ordering::Acquire) + step {
            self.allowed.store(bytes, Ordering::Release);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_get_what_is_left_as_the_checkpoint_goes_on() {
        let pace = Pace::new(8000);
        let most = |active| (0..=8000).rev().find(|bytes| pace.admit(active, *bytes) == Admission::Yes);
        assert_eq!(most(1000), Some(7000), "no checkpoint runs");
        pace.begin(100, 1000);
        assert_eq!(most(1000), Some(0), "a checkpoint has just begun");
        pace.progress(50);
        assert_eq!(most(1000), Some(2000), "half of the way to five eighths");
        pace.progress(500);
        assert_eq!(most(1000), Some(4000), "all edits are merged, the syncs are to come");
        pace.merged();
        assert_eq!(most(1000), Some(7000));
        pace.begin(100, 7500);
        pace.progress(100);
        assert_eq!(most(7500), Some(0), "more than five eighths are taken already");
        assert_eq!(most(0), Some(8000), "an empty memtable takes any batch that fits");
        pace.finished(None);
        assert_eq!(most(7500), Some(500));
    }
}
