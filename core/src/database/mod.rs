//! The public interface, and the engine behind it.

mod commit;
mod engine;
mod handle;
mod open;
mod pace;
mod read;
mod scan;
mod snapshot;
mod types;
mod verify;

pub(crate) use engine::{Engine, ReadState, SnapshotState};
pub use handle::Database;
pub use scan::{Keys, Scan};
pub use snapshot::Snapshot;
pub use types::{Commit, Finding, Kind, Metrics, Report};
