#![expect(clippy::disallowed_types, reason = "this is the clock that the engine is given")]

use crate::env::{BoxFuture, Clock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;

/// The machine's clocks; `now` counts from the creation of this value.
pub(super) struct OsClock {
    origin: Instant,
    runtime: Handle,
}

impl OsClock {
    pub(super) fn new(runtime: Handle) -> Self {
        Self { origin: Instant::now(), runtime }
    }
}

impl Clock for OsClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wall_now(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let _within = self.runtime.enter();
        Box::pin(tokio::time::sleep(duration))
    }
}
