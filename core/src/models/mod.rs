//! What models need of the engine's inside: its own code, behind calls that a model can make.
//!
//! Under `--cfg ironleaf_loom` every primitive of the engine is loom's, so everything here works only inside of a
//! model. The models themselves are in the crate `ironleaf-loom-tests`.

mod disk;
mod memtable;
mod pages;
mod world;

pub use memtable::Generation;
pub use pages::{ColdPage, SmallCache};
pub use world::{Checkpoints, View, World};
