//! Ironleaf: an embedded storage engine for hashes and sets.
//!
//! The engine sees the outside world only through an [`Env`](env::Env), so the code that runs in production is the
//! code that the laboratory breaks under simulated power loss. `docs/guarantees.md` says what survives what.

#[macro_use]
pub mod lab;

mod append;
mod batch;
mod catalog;
mod checkpoint;
mod codec;
mod database;
pub mod env;
mod error;
mod ids;
mod memtable;
mod node;
mod options;
mod page;
mod record;
mod sync;
mod tree;
mod wal;

pub use batch::WriteBatch;
pub use database::{Commit, Database, Finding, Keys, Kind, Metrics, Report, Scan, Snapshot};
pub use error::{Error, ErrorKind, Result};
pub use ids::Lsn;
pub use options::{Durability, Options};
