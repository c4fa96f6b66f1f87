//! Ironleaf: an embedded storage engine for hashes and sets.
//!
//! The engine sees the outside world only through an [`Env`](env::Env), so the code that runs in production is the
//! code that the laboratory breaks under simulated power loss. `docs/guarantees.md` says what survives what.
//!
//! A key holds a *hash* (fields with values) or a *set* (members); it comes to be with its first entry and goes with
//! its last. Every write has one place in one order. A [`WriteBatch`] is applied whole or not at all, across any number
//! of keys. A [`Snapshot`] shows one position and never changes.
//!
//! ```rust,no_run
//! use ironleaf::{Database, Durability, WriteBatch};
//!
//! #[tokio::main]
//! async fn main() -> ironleaf::Result<()> {
//!     let database = Database::open_path("data").await?;
//!     database.set("user:1", "name", "Ada").await?; // survives power loss from here on
//!
//!     let mut batch = WriteBatch::new(); // all of it or nothing
//!     batch.set("user:2", "name", "Grace").put("users", "user:1").put("users", "user:2");
//!     batch.durability(Durability::Written); // survives the death of the process
//!     let position = database.commit(batch).await?.position;
//!
//!     let snapshot = database.snapshot();
//!     database.delete("user:2").await?;
//!     assert_eq!(snapshot.get("user:2", "name").await?.as_deref(), Some(&b"Grace"[..]));
//!     assert!(snapshot.position() >= position);
//!
//!     let mut users = database.scan("users", ..);
//!     while let Some((member, _)) = users.next().await? {
//!         assert!(member.starts_with(b"user:"));
//!     }
//!     database.close().await
//! }
//! ```
//!
//! What an [`Error`] asks of its caller is its [`kind`](Error::kind). [`Options`] bound memory and sizes;
//! [`Durability`] says what a commit survives; [`Database::metrics`] shows what the engine does.

#[macro_use]
pub mod lab;
#[cfg(ironleaf_loom)]
#[macro_use]
pub mod sabotage;
#[cfg(not(ironleaf_loom))]
#[macro_use]
mod sabotage;

mod append;
mod batch;
pub mod blocking;
mod catalog;
mod checkpoint;
mod codec;
mod database;
pub mod env;
mod error;
mod ids;
mod joint;
mod memtable;
#[cfg(ironleaf_loom)]
pub mod models;
mod node;
mod options;
mod page;
mod prefetch;
mod record;
mod salvage;
mod sync;
mod tree;
mod wal;

pub use batch::WriteBatch;
pub use database::{
    Commit, Cursor, Database, Finding, Keys, Kind, Metrics, NameRange, Report, Scan, Snapshot, Transaction,
};
pub use error::{Error, ErrorKind, Result};
pub use ids::Lsn;
pub use options::{Durability, Options};
