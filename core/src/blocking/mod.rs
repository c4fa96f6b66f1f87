//! The database for programs without `async`.
//!
//! [`Database`] brings a small runtime of its own for the engine's background tasks. A call runs on the calling thread:
//! a read whose pages are in memory touches no other thread, and one whose pages are not waits for the disk. Methods
//! mean what their namesakes on [`ironleaf::Database`](crate::Database) mean, and fail as they do.
//!
//! ```rust,no_run
//! use ironleaf::blocking::Database;
//!
//! fn main() -> ironleaf::Result<()> {
//!     let database = Database::open_path("data")?;
//!     database.set("user:1", "name", "Ada")?; // survives power loss from here on
//!     for entry in database.scan("user:1", ..) {
//!         let (field, value) = entry?;
//!         println!("{} = {}", field.escape_ascii(), value.escape_ascii());
//!     }
//!     database.close()
//! }
//! ```

mod database;
mod runtime;
mod scan;
mod snapshot;
mod transaction;

pub use database::Database;
pub use scan::{Keys, Scan};
pub use snapshot::Snapshot;
pub use transaction::Transaction;
