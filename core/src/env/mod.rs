//! The seam: everything the engine sees of the outside world.
//!
//! The engine reads time, files, the network and randomness through an [`Env`] and through nothing else, so the same
//! code runs in production ([`os`]) and under deterministic simulation (the crate `ironleaf-sim`). The traits are
//! small, object safe and positional. A fault is another implementation, never a flag in a trait.
//!
//! **A write is in flight from its submission.** Calling a method of [`Disk`] or [`File`] submits the operation;
//! the future that it returns only waits for the outcome. Dropping that future does not take the operation back.

#[cfg(ironleaf_lab)]
pub mod conformance;
mod disk;
mod network;
pub mod os;

pub use disk::{DirectoryLock, Disk, DiskError, DiskErrorKind, DiskResult, File, OpenMode};
pub use network::{Listener, Network, NoNetwork, Stream};

use crate::sync::Arc;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A boxed future that may be sent to another thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The outside world of one database. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Files and directories.
    pub disk: Arc<dyn Disk>,
    /// Byte streams between machines.
    pub network: Arc<dyn Network>,
    /// Random bytes.
    pub entropy: Arc<dyn Entropy>,
    /// Background tasks.
    pub spawner: Arc<dyn Spawner>,
    /// The laboratory's hooks; absent from every other build.
    #[cfg(ironleaf_lab)]
    pub hooks: Option<Arc<dyn crate::lab::Hooks>>,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}

impl Env {
    /// A labelled point at which the laboratory may delay the calling task. Compiled to nothing elsewhere.
    #[inline]
    #[cfg_attr(not(ironleaf_lab), expect(clippy::unused_async, reason = "awaits only under the laboratory"))]
    pub async fn point(&self, label: &'static str) {
        #[cfg(ironleaf_lab)]
        if let Some(hooks) = &self.hooks
            && let Some(delay) = hooks.point(label)
        {
            delay.await;
        }
        #[cfg(not(ironleaf_lab))]
        let _ = label;
    }

    /// A random number from [`Entropy`].
    #[must_use]
    pub fn random_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.entropy.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// Time, monotonic and of the calendar.
pub trait Clock: Send + Sync {
    /// Time since an arbitrary origin; never goes back.
    fn now(&self) -> Duration;
    /// Time since the Unix epoch; may jump.
    fn wall_now(&self) -> Duration;
    /// Completes once `duration` has passed.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// A source of random bytes.
pub trait Entropy: Send + Sync {
    /// Fills `bytes` with randomness.
    fn fill(&self, bytes: &mut [u8]);
}

/// Starts background tasks.
pub trait Spawner: Send + Sync {
    /// Starts `future` as a task called `name`. Dropping the handle aborts the task.
    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> TaskHandle;
}

/// Keeps a spawned task alive; dropping it aborts the task at its next suspension.
pub struct TaskHandle(Option<Box<dyn FnOnce() + Send + Sync>>);

impl TaskHandle {
    /// A handle that runs `abort` when it is dropped.
    pub fn new(abort: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(abort)))
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskHandle")
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        if let Some(abort) = self.0.take() {
            abort();
        }
    }
}
