//! Models of the engine's concurrent protocols: `cargo loom` runs each under the interleavings of its threads, within
//! a bound on preemptions, and every order of memory that the language allows.
//!
//! A model calls the engine's own code (`ironleaf::models`), built over loom's primitives under `--cfg ironleaf_loom`.
//! Without that cfg this crate is empty.
#![cfg(ironleaf_loom)]

mod explore;
mod group_commit;
mod hand_over;
mod memtable;
mod pages;
mod wait;

pub use explore::{Explored, explore, note_panic};

/// A protocol between threads, and how it can be broken.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The promise that it is about.
    pub name: &'static str,
    /// Runs once per interleaving; panics if the promise is broken.
    pub body: fn(),
    /// Sabotages of the engine that it must notice, each with a part of what it must say then.
    pub sabotages: &'static [(&'static str, &'static str)],
}

/// Every model.
pub const MODELS: &[Model] = &[
    group_commit::FOLLOWERS,
    group_commit::KEPT,
    group_commit::DROPPED,
    memtable::BATCHES,
    memtable::GROWTH,
    hand_over::LAYERS,
    hand_over::COMMITS,
    hand_over::SNAPSHOTS,
    pages::ACCOUNTING,
    pages::SINGLE_FLIGHT,
    pages::FREEING,
];
