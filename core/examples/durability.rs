//! What a commit survives, chosen for each: `cargo run -p ironleaf --example durability [DIRECTORY]`.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use ironleaf::{Database, Durability, WriteBatch};
use std::path::PathBuf;

#[tokio::main]
async fn main() -> ironleaf::Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| std::env::temp_dir().join("ironleaf-durability"));
    let database = Database::open_path(&directory).await?;

    // The death of the process does not take these; power loss may take the last of them, never one out of the middle.
    let written = database.with_durability(Durability::Written);
    for n in 0..1000 {
        written.set("clicks", format!("{n}"), "1").await?;
    }
    let points = |database: &Database| (database.visible_point(), database.durable_point());
    println!("visible and durable up to: {:?}", points(&database));

    // A commit that matters. Everything before it is durable with it.
    let mut batch = WriteBatch::new();
    batch.set("orders", "1", "paid").durability(Durability::Synced);
    let position = database.commit(batch).await?.position;
    println!("visible and durable up to: {:?}", points(&database));
    assert!(database.durable_point() >= position);

    // Or at once for all that was written meanwhile.
    written.set("clicks", "last", "1").await?;
    let flushed = database.flush().await?;
    assert_eq!(flushed, database.durable_point());
    database.close().await
}
