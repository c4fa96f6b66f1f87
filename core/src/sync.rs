//! The one door to the standard library's concurrency primitives. Nothing else in the engine names `std::sync`.

pub use std::sync::atomic;
pub use std::sync::{Arc, OnceLock, Weak};

/// Whether a panic unwinds this thread.
pub fn is_unwinding() -> bool {
    std::thread::panicking()
}

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
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no holder of this lock panics")
    }
}
