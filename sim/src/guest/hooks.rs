//! The engine's side of a guest: clock, spawner, entropy and labelled points.

use super::{DELAY_PICKS, Guest, Host, delay};
use crate::choices::Site;
use crate::executor::{EventKind, WALL_ORIGIN};
use crate::ground::Ground;
use ironleaf::env::{BoxFuture, Clock, Entropy, Spawner, TaskHandle};
use std::sync::PoisonError;
use std::time::Duration;

impl<H: Host> Clock for Guest<H> {
    fn now(&self) -> Duration {
        self.host.now()
    }

    fn wall_now(&self) -> Duration {
        WALL_ORIGIN + self.host.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.host.sleep(duration)
    }
}

impl<H: Host> Entropy for Guest<H> {
    fn fill(&self, bytes: &mut [u8]) {
        self.entropy.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes);
    }
}

impl<H: Host> Spawner for Guest<H> {
    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) -> TaskHandle {
        match self.spawn_named(name, future) {
            Some(abort) => TaskHandle::new(abort),
            None => TaskHandle::new(|| ()),
        }
    }
}

#[cfg(ironleaf_lab)]
impl<H: Host> ironleaf::lab::Hooks for Guest<H> {
    fn point(&self, label: &'static str) -> Option<BoxFuture<'static, ()>> {
        if !self.lock().goes_on() {
            return None;
        }
        let pick = self.choices.pick(Site::Point, label, DELAY_PICKS);
        let delay = delay(pick)?;
        self.record(EventKind::Delay, [u64::MAX, pick, 0], &|| {
            format!("is held at \"{label}\" for {delay:?}")
        });
        Some(self.host.sleep(delay))
    }
}
