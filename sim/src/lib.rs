//! The laboratory's machine: everything the engine sees of the outside world, under control.
//!
//! [`Machine`](machine::Machine) runs the engine's tasks on one thread in virtual time, over a disk that loses what a
//! real one may lose. Whatever could go more than one way asks [`Choices`](choices::Choices), so a run is its default
//! course plus a list of named deviations, and the list replays it.

pub mod choices;
pub mod disk;
mod executor;
pub mod machine;
mod random;
pub mod runner;
pub mod scenario;
pub mod shrink;
