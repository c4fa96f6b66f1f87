//! The engine's side of the executor: clock, spawner, entropy and labelled points.

use super::Executor;
use crate::choices::Site;
use crate::random::SplitMix64;
use ironleaf::env::{BoxFuture, Clock, Entropy, Spawner, TaskHandle};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The calendar of a simulated machine starts here: 2024-01-01, in seconds since the Unix epoch.
pub(crate) const WALL_ORIGIN: Duration = Duration::from_secs(1_704_067_200);

/// One life of a machine, as the engine sees it.
pub(crate) struct Life {
    executor: Arc<Executor>,
    entropy: Mutex<SplitMix64>,
}

impl Life {
    pub(crate) fn new(executor: Arc<Executor>, entropy_seed: u64) -> Arc<Self> {
        Arc::new(Self { executor, entropy: Mutex::new(SplitMix64::new(entropy_seed)) })
    }
}

impl Clock for Life {
    fn now(&self) -> Duration {
        self.executor.now()
    }

    fn wall_now(&self) -> Duration {
        WALL_ORIGIN + self.executor.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.executor.sleep(duration))
    }
}

impl Entropy for Life {
    fn fill(&self, bytes: &mut [u8]) {
        self.entropy.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes);
    }
}

impl Spawner for Life {
    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> TaskHandle {
        match self.executor.spawn(name, future) {
            Some(task) => {
                let executor = Arc::clone(&self.executor);
                TaskHandle::new(move || executor.abort(task))
            }
            None => TaskHandle::new(|| ()),
        }
    }
}

#[cfg(ironleaf_lab)]
impl ironleaf::lab::Hooks for Life {
    fn point(&self, label: &'static str) -> Option<BoxFuture<'static, ()>> {
        let delay = self.executor.delay_at_point(label)?;
        Some(Box::pin(self.executor.sleep(delay)))
    }
}

impl Executor {
    /// How long the current task is held at the point `label`, if at all.
    fn delay_at_point(&self, label: &str) -> Option<Duration> {
        if !self.is_open() {
            return None;
        }
        let label_id = self.choices.label_id(label);
        let delay = self.delay(self.actor(), Site::Point, label_id)?;
        self.record(super::EventKind::Delay, [u64::MAX, delay, 0], || {
            format!("is held at \"{label}\" for {delay} ns")
        });
        Some(Duration::from_nanos(delay))
    }
}
