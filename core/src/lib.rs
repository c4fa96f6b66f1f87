//! Ironleaf: an embedded storage engine for hashes and sets.
//!
//! The engine sees the outside world only through an [`Env`](env::Env), so the code that runs in production is the
//! code that the laboratory breaks under simulated power loss. `docs/guarantees.md` says what survives what.

#[macro_use]
pub mod lab;

mod batch;
mod database;
pub mod env;
mod error;
mod ids;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "the checkpoint that uses it is being built")
)]
mod node;
mod options;
mod sync;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "the checkpoint that uses it is being built")
)]
mod tree;

pub use batch::WriteBatch;
pub use database::{Commit, Database, Finding, Keys, Kind, Metrics, Report, Scan, Snapshot};
pub use error::{Error, ErrorKind, Result};
pub use ids::Lsn;
pub use options::{Durability, Options};
