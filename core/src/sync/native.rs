//! The primitives that users get.

pub use arc_swap::{ArcSwap, ArcSwapOption, Guard};
pub use std::sync::{OnceLock, atomic};
pub use tokio::sync::Notify;

/// A mutual exclusion lock. A panic while it is held ends the database's use: the next `lock` panics too.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

/// Access to what a [`Mutex`] guards.
pub type MutexGuard<'a, T> = std::sync::MutexGuard<'a, T>;

impl<T> Mutex<T> {
    /// A lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// If another holder panicked.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no holder of this lock panics")
    }
}
