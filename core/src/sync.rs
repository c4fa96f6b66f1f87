//! The one door to concurrency primitives: nothing else in the engine names `std::sync`, `arc_swap` or tokio's `Notify`.
//!
//! What users get is [`native`]: the real ones, re-exported. Under `--cfg ironleaf_loom` it is [`modelled`]: the same
//! interfaces over [loom](https://docs.rs/loom), which runs a model under every interleaving and every order that the
//! memory model allows.

#[cfg(ironleaf_loom)]
mod modelled;
#[cfg(not(ironleaf_loom))]
mod native;

#[cfg(ironleaf_loom)]
pub use modelled::{ArcSwap, ArcSwapOption, Guard, Mutex, MutexGuard, Notify, OnceLock, atomic};
#[cfg(not(ironleaf_loom))]
pub use native::{ArcSwap, ArcSwapOption, Guard, Mutex, MutexGuard, Notify, OnceLock, atomic};

/// References are counted by the standard library in models too: loom's `Arc` cannot hold a `dyn` type. So counting
/// hands over no knowledge between the threads of a model, which can only make it see more races, and a count is not a
/// place to switch threads; what the engine does when a count ends takes locks, which are.
pub use std::sync::{Arc, Weak};

/// Whether a panic unwinds this thread.
pub fn is_unwinding() -> bool {
    std::thread::panicking()
}
