//! A task of a guest.

use super::{DELAY_PICKS, Guest, Host, delay, nanoseconds};
use crate::choices::Site;
use crate::executor::{EventKind, panics};
use crate::machine::LifeEnd;
use ironleaf::env::BoxFuture;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Runs only while its life goes on; its panics end the life and not the host.
pub(super) struct Guarded<H: Host> {
    guest: Arc<Guest<H>>,
    index: usize,
    /// Absent once it is done.
    future: Option<BoxFuture<'static, ()>>,
    /// The delay that was chosen for its wake-up.
    held: Option<BoxFuture<'static, ()>>,
}

impl<H: Host> Guarded<H> {
    pub(super) const fn new(guest: Arc<Guest<H>>, index: usize, future: BoxFuture<'static, ()>) -> Self {
        Self { guest, index, future: Some(future), held: None }
    }

    /// `false` if the task may not run, or not yet.
    fn begin(&mut self, context: &mut Context<'_>) -> bool {
        if !self.guest.lock().goes_on() || self.is_held(context) {
            return false;
        }
        let mut state = self.guest.lock();
        state.polls += 1;
        if state.polls > state.polls_max {
            let bound = format!("{} polls", state.polls_max);
            drop(state);
            self.guest.end(LifeEnd::TimedOut(bound));
            return false;
        }
        state.current = Some(self.index);
        let now = self.guest.host.now();
        state.record(now, EventKind::Poll, [self.index as u64, 0, 0], || "runs".to_owned());
        let (actor, operation) = state.tasks[self.index].actor();
        drop(state);
        self.guest.choices.set_actor_id(actor, operation);
        true
    }

    /// Whether the task that was woken waits for its delay to pass.
    fn is_held(&mut self, context: &mut Context<'_>) -> bool {
        if self.held.is_none() {
            let mut state = self.guest.lock();
            let (actor, kind) = (state.tasks[self.index].actor(), state.tasks[self.index].kind);
            let pick = self.guest.choices.pick_for(actor, Site::Wake, kind, DELAY_PICKS);
            let Some(delay) = delay(pick) else { return false };
            let (now, words) = (self.guest.host.now(), [self.index as u64, pick, 0]);
            state.record(now, EventKind::Delay, words, || format!("wakes task {} in {delay:?}", self.index));
            drop(state);
            self.held = Some(self.guest.host.sleep(delay));
        }
        let waits = self.held.as_mut().is_some_and(|held| held.as_mut().poll(context).is_pending());
        if !waits {
            self.held = None;
        }
        waits
    }

    fn finish(&self, done: bool) {
        let mut state = self.guest.lock();
        state.current = None;
        state.tasks[self.index].done |= done;
        drop(state);
        self.guest.choices.set_actor_id(self.guest.machine, None);
    }
}

impl<H: Host> Future for Guarded<H> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(mut future) = self.future.take() else { return Poll::Ready(()) };
        if !self.begin(context) {
            self.future = Some(future);
            return Poll::Pending;
        }
        let polled = match panics::caught(|| future.as_mut().poll(context)) {
            Ok(Poll::Pending) => {
                self.future = Some(future);
                self.finish(false);
                return Poll::Pending;
            }
            Ok(Poll::Ready(())) => panics::caught(|| drop(future)),
            Err(message) => {
                // Only the first panic is reported: what the drop of broken state adds is noise.
                let _ = panics::caught(|| drop(future));
                Err(message)
            }
        };
        self.finish(true);
        if let Err(message) = polled {
            self.guest.end(LifeEnd::Panicked(message));
        }
        Poll::Ready(())
    }
}

impl<H: Host> Drop for Guarded<H> {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else { return };
        let dropped = panics::caught(|| drop(future));
        let mut state = self.guest.lock();
        state.tasks[self.index].done = true;
        if state.open {
            let now = self.guest.host.now();
            let words = [self.index as u64, nanoseconds(now), 0];
            state.record(now, EventKind::Abort, words, || format!("aborts task {}", self.index));
        }
        if let Err(message) = dropped {
            state.drop_panic.get_or_insert(message);
        }
    }
}
