//! The primitives over loom, for models.
//!
//! What loom has is taken from it. The others are made of its atomics and locks and order memory as the real ones
//! promise, never more: an engine that relies on more fails here.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

pub use loom::sync::{MutexGuard, atomic};

use atomic::{AtomicBool, AtomicUsize, Ordering};

/// A mutual exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// A lock around `value`.
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("loom's locks are not poisoned")
    }
}

/// A cell that is written once. Writing releases and reading acquires, as the standard library documents.
#[derive(Debug)]
pub struct OnceLock<T> {
    is_set: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    /// An empty cell.
    pub fn new() -> Self {
        Self { is_set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
    }

    /// The value, if the calling thread is to see it.
    pub fn get(&self) -> Option<&T> {
        self.is_set.load(Ordering::Acquire).then(|| self.value.get().expect("set before it is said to be"))
    }

    /// Writes the value, or gives it back if there is one.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }

    /// The value, made first if there is none.
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        if self.get().is_none() {
            // Another thread may have been first; then its value counts.
            let _ = self.set(init());
        }
        self.value.get().expect("just made sure of")
    }

    /// Takes the value out.
    pub fn take(&mut self) -> Option<T> {
        self.is_set.store(false, Ordering::Relaxed);
        self.value.take()
    }
}

/// What [`ArcSwapOption::load`] gives: keeps the value for as long as it is held.
#[derive(Debug)]
pub struct Guard<T>(T);

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Guard<T> {
    /// The value, held by a count of its own.
    pub fn into_inner(guard: Self) -> T {
        guard.0
    }
}

/// A reference that is replaced as a whole. Storing releases and loading acquires. A load may give a value that was
/// replaced meanwhile, if somebody still holds it: it need not be the newest, as of any atomic.
#[derive(Debug)]
pub struct ArcSwapOption<T> {
    /// Which of `stored` is there: stands for the pointer.
    current: AtomicUsize,
    /// Passed by every access. loom looks for other orders of an access and the last one before it; a load that a
    /// thread does before its own store would hide the loads of others. Here each is a change. It orders no memory.
    turnstile: AtomicUsize,
    values: std::sync::Mutex<Values<T>>,
}

#[derive(Debug)]
struct Values<T> {
    /// The reference that the cell itself holds.
    held: Option<Arc<T>>,
    /// All that were ever stored.
    stored: Vec<Option<Weak<T>>>,
}

impl<T> Default for ArcSwapOption<T> {
    fn default() -> Self {
        Self::new(None)
    }
}

impl<T> ArcSwapOption<T> {
    /// A cell that holds `value`.
    pub fn new(value: Option<Arc<T>>) -> Self {
        let stored = vec![value.as_ref().map(Arc::downgrade)];
        let values = std::sync::Mutex::new(Values { held: value, stored });
        Self { current: AtomicUsize::new(0), turnstile: AtomicUsize::new(0), values }
    }

    fn values(&self) -> std::sync::MutexGuard<'_, Values<T>> {
        self.values.lock().expect("no holder of this lock panics")
    }

    /// The value, protected by a guard.
    pub fn load(&self) -> Guard<Option<Arc<T>>> {
        self.turnstile.fetch_add(1, Ordering::Relaxed);
        let mut index = self.current.load(Ordering::Acquire);
        loop {
            // The lock must be free again before another thread can run, at the next operation of loom's.
            let stored = self.values().stored[index].clone();
            match stored.map(|value| value.upgrade()) {
                None => return Guard(None),
                Some(None) => {}
                Some(value) => return Guard(value),
            }
            // Gone: the real one notices that the pointer has changed, and looks again.
            index = self.current.fetch_add(0, Ordering::AcqRel);
        }
    }

    /// Replaces the value.
    pub fn swap(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        let index = {
            let mut values = self.values();
            values.stored.push(value.as_ref().map(Arc::downgrade));
            values.stored.len() - 1
        };
        self.turnstile.fetch_add(1, Ordering::Relaxed);
        // No other thread runs between the exchange and what follows: that is no operation of loom's.
        self.current.swap(index, Ordering::AcqRel);
        std::mem::replace(&mut self.values().held, value)
    }

    /// Replaces the value.
    pub fn store(&self, value: Option<Arc<T>>) {
        drop(self.swap(value));
    }
}

/// An [`ArcSwapOption`] that is never empty.
#[derive(Debug)]
pub struct ArcSwap<T>(ArcSwapOption<T>);

impl<T> ArcSwap<T> {
    /// A cell that holds `value`.
    pub fn from_pointee(value: T) -> Self {
        Self(ArcSwapOption::new(Some(Arc::new(value))))
    }

    /// The value, protected by a guard.
    pub fn load(&self) -> Guard<Arc<T>> {
        Guard(self.load_full())
    }

    /// The value.
    pub fn load_full(&self) -> Arc<T> {
        Guard::into_inner(self.0.load()).expect("never empty")
    }

    /// Replaces the value.
    pub fn store(&self, value: Arc<T>) {
        self.0.store(Some(value));
    }
}

/// Wakes tasks, as tokio's does: `notify_waiters` wakes whoever has called [`notified`](Self::notified) before it,
/// polled or not, and leaves nothing behind; `notify_one` wakes one that is registered, or the next to come.
#[derive(Debug)]
pub struct Notify(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// Calls of `notify_waiters`.
    calls: u64,
    permit: bool,
    next: u64,
    /// Who is registered, in order; without a waker if it was never polled.
    waiters: BTreeMap<u64, Option<Waker>>,
    /// Whom a `notify_one` has chosen and who has not noticed yet.
    chosen: Vec<u64>,
}

impl Notify {
    /// Nobody waits.
    pub fn new() -> Self {
        Self(Mutex::new(Waiting::default()))
    }

    /// Waits for a notification from now on.
    pub fn notified(&self) -> Notified<'_> {
        let mut waiting = self.0.lock();
        waiting.next += 1;
        Notified { notify: self, id: waiting.next, calls: waiting.calls }
    }

    /// Wakes everybody who waits.
    pub fn notify_waiters(&self) {
        let mut waiting = self.0.lock();
        waiting.calls += 1;
        let wakers = std::mem::take(&mut waiting.waiters);
        drop(waiting);
        for waker in wakers.into_values().flatten() {
            waker.wake();
        }
    }

    /// Wakes one who waits, or lets the next pass.
    pub fn notify_one(&self) {
        let mut waiting = self.0.lock();
        let Some((id, waker)) = waiting.waiters.pop_first() else {
            waiting.permit = true;
            return;
        };
        waiting.chosen.push(id);
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Waits for a [`Notify`].
#[derive(Debug)]
pub struct Notified<'a> {
    notify: &'a Notify,
    id: u64,
    calls: u64,
}

impl Notified<'_> {
    /// Registers without waiting; whether it was notified already.
    pub fn enable(self: Pin<&mut Self>) -> bool {
        self.register(None)
    }

    fn register(&self, waker: Option<Waker>) -> bool {
        let mut waiting = self.notify.0.lock();
        let waiting = &mut *waiting;
        if let Some(at) = waiting.chosen.iter().position(|id| *id == self.id) {
            waiting.chosen.remove(at);
            return true;
        }
        if waiting.calls != self.calls || std::mem::take(&mut waiting.permit) {
            waiting.waiters.remove(&self.id);
            return true;
        }
        waiting.waiters.insert(self.id, waker);
        false
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.register(Some(context.waker().clone())) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The model has failed, and loom is not there any more.
            return;
        }
        let mut waiting = self.notify.0.lock();
        waiting.waiters.remove(&self.id);
        let was_chosen = waiting.chosen.iter().position(|id| *id == self.id);
        if let Some(at) = was_chosen {
            waiting.chosen.remove(at);
            drop(waiting);
            // Nobody noticed: the notification is for the next.
            self.notify.notify_one();
        }
    }
}
