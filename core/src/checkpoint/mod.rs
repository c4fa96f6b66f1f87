//! Checkpoints: frozen edits become pages, and one manifest edit makes them the database.
//!
//! The order of the steps is the protocol, and each prevents a loss: the log is durable through the frozen edits;
//! pages are written, then synced; the edit is appended, then synced; only then does the new root become visible, and
//! only then do log segments, old pages and files go.

mod manifest;
mod merge;
mod run;

pub(crate) use manifest::{MANIFEST, MANIFEST_NEW, Manifest, ManifestEdit, ManifestState};
pub(crate) use merge::merge;
pub(crate) use run::{Checkpointer, Command};
