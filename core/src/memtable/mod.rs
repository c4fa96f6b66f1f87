//! Recent edits in memory, by object, with every version that a snapshot may still want.
//!
//! One writer (whoever holds the log's lock) adds; any number of readers look things up without a lock. Nothing is
//! removed or moved until the whole generation is dropped, so a reader that holds the generation may keep references.
//! A generation is frozen by publishing an empty one in its place.

mod generation;
mod table;

pub(crate) use generation::{Base, FieldRef, Memtable, ObjectRef, Presence};
