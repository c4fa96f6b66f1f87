//! The public interface, and the engine behind it.

mod commit;
mod cursor;
mod engine;
mod handle;
mod keys;
mod open;
mod pace;
mod range;
mod read;
mod read_only;
mod scan;
mod snapshot;
mod transaction;
mod types;
mod verify;

pub use cursor::Cursor;
pub(crate) use engine::{Engine, ReadState, SnapshotState};
pub use handle::Database;
pub use keys::Keys;
pub use range::NameRange;
pub use scan::Scan;
pub use snapshot::Snapshot;
pub use transaction::Transaction;
pub use types::{Commit, Finding, Kind, Metrics, Report};
#[cfg(ironleaf_loom)]
pub(crate) use {
    engine::{Counters, Registry},
    pace::Pace,
    read::look_up,
};
