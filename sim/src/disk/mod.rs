//! A disk that loses what a real one may lose.
//!
//! ```text
//!   submitted ──latency──▶ completed ───────────sync──────────▶ durable
//!   (in flight)            (visible, pending)
//! ```
//!
//! An operation is in flight from its submission, whether or not its future is still there. When it completes, the
//! process sees its effect; a sync that is submitted *after that* makes it durable. Until then it is pending, and a
//! power loss may keep it or not:
//!
//! * data sector by sector (512 bytes), each at any of the versions it went through,
//! * lengths apart from data, as any prefix of the changes of a file,
//! * directory entries apart from both, in any subset that keeps the order of operations on the same name; a rename
//!   whole or not at all.
//!
//! What is still in flight counts as pending. The death of a process keeps whatever completed, still pending.

mod content;
mod damage;
mod fault;
mod fork;
mod front;
mod loss;
mod operation;
mod tree;
mod volume;

#[cfg(test)]
mod tests;

pub(crate) use damage::DECAYS;
pub use damage::{DAMAGE_KINDS, DamageCounts};
pub use fault::{FAULT_KINDS, Fault, FaultCount, Faults, Troubles};
pub(crate) use front::Front;
pub use loss::CLASSES;
pub use operation::crash_labels;
pub(crate) use volume::Volume;
