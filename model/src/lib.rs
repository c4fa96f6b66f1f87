//! What the engine must do, in a form that is obviously right.
//!
//! | module | holds |
//! |---|---|
//! | [`operation`] | everything a client can ask of a database, with a one-line text form |
//! | [`generator`] | seeded sequences of operations, small in keys and wide in shapes |
//! | [`model`] | the reference: maps of maps, and what each operation does to them |
//! | [`history`] | the checker: what clients saw, life by life, against the promises |
//!
//! Nothing here looks inside the engine: the checker judges a history from the outside, so that no bug of the engine
//! can excuse itself.

pub mod generator;
pub mod history;
pub mod model;
pub mod operation;
mod random;

pub use history::{Contents, Crash, Held, History, Outcome, Promise, Sample, Trouble, Violation};
pub use model::{Limits, Model, Object, Refusal};
pub use operation::{Answer, Edit, NameRange, Operation, ParseError, Read, Write};
pub use random::Random;
