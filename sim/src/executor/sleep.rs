//! Waiting in virtual time.

use super::{Due, Executor, nanoseconds};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What a sleeping task and the agenda share.
pub(crate) struct SleepCell(Mutex<SleepState>);

enum SleepState {
    Waiting(Option<Waker>),
    Elapsed,
    Cancelled,
}

impl SleepCell {
    fn lock(&self) -> MutexGuard<'_, SleepState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        matches!(*self.lock(), SleepState::Cancelled)
    }

    /// The time has come: wakes the sleeper.
    pub(crate) fn elapse(&self) {
        let before = std::mem::replace(&mut *self.lock(), SleepState::Elapsed);
        if let SleepState::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }
}

/// Ready once its time has come. Counts from its creation.
pub(crate) struct Sleep(Arc<SleepCell>);

impl Executor {
    /// A future that is ready after `duration`; never, once the life has ended.
    pub(crate) fn sleep(&self, duration: Duration) -> Sleep {
        let cell = Arc::new(SleepCell(Mutex::new(SleepState::Waiting(None))));
        let mut state = self.lock();
        if state.open {
            let at = state.now.saturating_add(nanoseconds(duration));
            state.push(at, Due::Sleep(Arc::clone(&cell)));
        }
        Sleep(cell)
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        match &mut *state {
            SleepState::Elapsed => Poll::Ready(()),
            SleepState::Waiting(Some(waker)) if waker.will_wake(context.waker()) => Poll::Pending,
            SleepState::Waiting(_) | SleepState::Cancelled => {
                let before =
                    std::mem::replace(&mut *state, SleepState::Waiting(Some(context.waker().clone())));
                drop(state);
                drop(before);
                Poll::Pending
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.0.lock(), SleepState::Cancelled);
        drop(before);
    }
}
