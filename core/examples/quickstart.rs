//! Stores, reopens and reads: `cargo run --release -p ironleaf --example quickstart [DIRECTORY]`.
#![expect(clippy::print_stdout, reason = "an example shows what it read")]

use ironleaf::{Database, WriteBatch};
use std::path::PathBuf;

#[tokio::main]
async fn main() -> ironleaf::Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| std::env::temp_dir().join("ironleaf-quickstart"));

    let database = Database::open_path(&directory).await?;
    database.set("user:1", "name", "Ada").await?; // survives power loss from here on
    let mut batch = WriteBatch::new(); // all of it or nothing
    batch.set("user:2", "name", "Grace").put("users", "user:1").put("users", "user:2");
    database.commit(batch).await?;
    let before = database.snapshot();
    database.set("user:1", "name", "Ada Lovelace").await?;
    println!("before: {:?}", before.get("user:1", "name").await?.map(String::from_utf8));
    database.close().await?;

    let database = Database::open_path(&directory).await?;
    println!("{} users in {}", database.len("users").await?, directory.display());
    let mut users = database.scan("users", ..);
    while let Some((user, _)) = users.next().await? {
        let name = database.get(&user, "name").await?.unwrap_or_default();
        println!("{}: {}", String::from_utf8_lossy(&user), String::from_utf8_lossy(&name));
    }
    assert!(database.check().await?.findings.is_empty());
    database.close().await
}
