//! What one life of a simulated machine stands on.
//!
//! Disk and runner meet time, tasks and choices through this. The laboratory's own
//! [`Executor`](crate::executor::Executor) is one ground; a machine that is the guest of another simulator stands on
//! that one's tasks and time ([`guest`](crate::guest)).

use crate::choices::Choices;
use crate::executor::{Actor, EventKind, Executor, pick_latency};
use ironleaf::env::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Tasks, time, choices and events of one life.
pub(crate) trait Ground: Send + Sync {
    fn choices(&self) -> &Choices;

    /// Time since the machine was built.
    fn now(&self) -> Duration;

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// How long takes what usually takes `usual`.
    fn latency(&self, label: &str, usual: Duration) -> Duration;

    /// Starts a task, unless the life has ended.
    fn start(self: Arc<Self>, name: &str, future: BoxFuture<'static, ()>);

    /// Names the operation that the current task carries out from now on.
    fn set_operation(&self, operation: Option<u32>);

    /// Makes an event part of the digest, and of the trace where there is one; only there `detail` is asked.
    fn record(&self, kind: EventKind, words: [u64; 3], detail: &dyn Fn() -> String);

    /// Sees to it that the disk completes an operation after about the first `latency`, and the second on top. Gives the operation's number, unique
    /// over all lives, and whom it is for; `None` once the life has ended.
    fn submit(
        &self,
        label: &str,
        latency: (Duration, Duration),
        words: [u64; 2],
        detail: &dyn Fn() -> String,
    ) -> Option<(u64, Actor)>;

    /// Whether the life goes on.
    fn is_open(&self) -> bool;

    /// A place where the machine may crash. What passes it still ends.
    fn crash_point(&self, label: &str);

    /// Whether a crash was chosen that takes effect when the present poll ends.
    fn is_crashing(&self) -> bool;
}

impl Ground for Executor {
    fn choices(&self) -> &Choices {
        &self.choices
    }

    fn now(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.sleep(duration))
    }

    fn latency(&self, label: &str, usual: Duration) -> Duration {
        pick_latency(&self.choices, label, usual)
    }

    fn start(self: Arc<Self>, name: &str, future: BoxFuture<'static, ()>) {
        self.spawn(name, future);
    }

    fn set_operation(&self, operation: Option<u32>) {
        self.set_operation(operation);
    }

    fn record(&self, kind: EventKind, words: [u64; 3], detail: &dyn Fn() -> String) {
        self.record(kind, words, detail);
    }

    fn submit(
        &self,
        label: &str,
        latency: (Duration, Duration),
        words: [u64; 2],
        detail: &dyn Fn() -> String,
    ) -> Option<(u64, Actor)> {
        self.submit(label, latency, words, detail)
    }

    fn is_open(&self) -> bool {
        self.is_open()
    }

    fn crash_point(&self, label: &str) {
        self.crash_point(label);
    }

    fn is_crashing(&self) -> bool {
        self.is_crashing()
    }
}
