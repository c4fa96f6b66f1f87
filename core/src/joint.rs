//! A future that all who wait for it drive.
//!
//! Work that several tasks wait for must not hang on one of them: a future may be dropped after it was polled, and it may
//! as well be kept and not polled for long, as `select!` by reference and buffered streams do. So there is no leader:
//! the work goes on with whoever is polled, and everybody who waits is woken when it can.

use crate::env::BoxFuture;
use crate::sync::{Arc, Mutex, Notify};
use std::future::Future;
use std::task::{Context, Poll, Wake, Waker};

/// Shared work with an output of which everyone gets a copy. It goes on only while somebody waits for it.
pub(crate) struct Joint<T> {
    state: Mutex<State<T>>,
    progress: Arc<Progress>,
}

enum State<T> {
    Idle(BoxFuture<'static, T>),
    /// Somebody polls it right now.
    Polled,
    Done(T),
    /// The work panicked.
    Lost,
}

/// Signalled when the work can go on, and when it has ended. It is the work's waker, and does not hold the work: that
/// may hold its waker.
struct Progress(Notify);

impl<T: Clone + Send + 'static> Joint<T> {
    /// Work that has not begun.
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Arc<Self> {
        let progress = Arc::new(Progress(Notify::new()));
        Arc::new(Self { state: Mutex::new(State::Idle(Box::pin(future))), progress })
    }

    /// Drives the work, with all others who do, until it has ended. May be dropped at any time.
    ///
    /// # Panics
    /// If the work panicked.
    pub(crate) async fn join(&self) -> T {
        loop {
            // Before the look. So whoever has polled the work looks again if it was woken meanwhile, and others who
            // were told of that and found it polled can rely on it.
            let changed = (!sabotaged!("joint-awaited-late")).then(|| self.progress.0.notified());
            if let Some(output) = self.drive() {
                return output;
            }
            changed.unwrap_or_else(|| self.progress.0.notified()).await;
        }
    }

    /// Polls the work. `None` if it waits, or if somebody else polls it.
    fn drive(&self) -> Option<T> {
        let mut future = match self.take() {
            Taken::Future(future) => future,
            Taken::Output(output) => return Some(output),
            Taken::Nothing => return None,
        };
        let polling = Polling(self);
        let waker = Waker::from(self.progress.clone());
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        std::mem::forget(polling);
        let Poll::Ready(output) = polled else {
            *self.state.lock() = State::Idle(future);
            return None;
        };
        *self.state.lock() = State::Done(output.clone());
        if !sabotaged!("joint-end-not-told") {
            self.progress.0.notify_waiters();
        }
        Some(output)
    }

    fn take(&self) -> Taken<T> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Polled) {
            State::Idle(future) => Taken::Future(future),
            State::Polled => Taken::Nothing,
            State::Done(output) => {
                *state = State::Done(output.clone());
                Taken::Output(output)
            }
            State::Lost => {
                *state = State::Lost;
                drop(state);
                panic!("what this waits for has panicked");
            }
        }
    }
}

enum Taken<T> {
    Future(BoxFuture<'static, T>),
    Output(T),
    Nothing,
}

impl Wake for Progress {
    fn wake(self: Arc<Self>) {
        self.0.notify_waiters();
    }
}

/// Marks the work as lost if polling it unwinds; forgotten otherwise.
struct Polling<'a, T>(&'a Joint<T>);

impl<T> Drop for Polling<'_, T> {
    fn drop(&mut self) {
        *self.0.state.lock() = State::Lost;
        self.0.progress.0.notify_waiters();
    }
}
