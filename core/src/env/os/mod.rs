//! The operating system's environment, over tokio.
//!
//! This is the one place where the engine meets the machine's clock, files, threads and randomness. Everything is
//! *submitted at the call*: reads and writes of up to 64 KiB are carried out on the calling thread, because the page
//! cache answers them in less time than a change of threads takes; all else, every sync included, goes to tokio's
//! blocking threads at once, and the future only waits for the outcome.
//!
//! Syncs and positional transfers are those of Linux (`fdatasync`, `pread`, `pwrite`, `fallocate`, `flock`).
#![expect(
    clippy::disallowed_methods,
    reason = "the implementation of the seam meets the operating system here"
)]

mod blocking;
mod clock;
mod disk;
mod entropy;
mod environment;
mod file;
mod lock;
#[cfg(feature = "network")]
mod network;
mod spawner;
#[cfg(test)]
mod tests;
mod transfer;

pub use environment::{environment, environment_on};
