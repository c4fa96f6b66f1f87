//! The laboratory: a machine under control, and what is done with it.
//!
//! [`Machine`](machine::Machine) runs the engine's tasks on one thread in virtual time, over a disk that loses what a
//! real one may lose. Whatever could go more than one way asks [`Choices`](choices::Choices), so a run is its default
//! course plus a list of named deviations, and the list replays it.
//!
//! A [`Scenario`](scenario::Scenario) says what is done on such a machine; the [`runner`] carries it out and has every
//! life judged; [`shrink`] cuts down what fails; a [`campaign`] does all that for many seeds.

pub mod campaign;
pub mod choices;
pub mod crash_images;
pub mod disk;
mod executor;
mod ground;
mod guest;
mod lives;
pub mod machine;
#[cfg(all(madsim, tokio_unstable))]
pub mod madsim;
pub mod network;
mod random;
pub mod runner;
pub mod scenario;
pub mod shrink;
pub mod turmoil;
