//! Several writes as one, with what was there before: `cargo run -p ironleaf --example batch [DIRECTORY]`.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use ironleaf::{Database, ErrorKind, WriteBatch};
use std::path::PathBuf;

#[tokio::main]
async fn main() -> ironleaf::Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| std::env::temp_dir().join("ironleaf-batch"));
    let database = Database::open_path(&directory).await?;
    database.delete("stock").await?;
    database.set("stock", "apples", "12").await?;

    // Blind writes say nothing; counted ones (`insert`, `add`, `take`) say what was there.
    let mut batch = WriteBatch::new();
    batch.set("stock", "pears", "7").insert("stock", "apples", "11").add("customers", "ada");
    let commit = database.commit(batch).await?;
    println!("at position {}, before: {:?}", commit.position, commit.outcomes);
    assert_eq!(commit.outcomes[0].as_deref(), Some(&b"12"[..]));

    // A batch that cannot be applied whole is not applied at all.
    let mut batch = WriteBatch::new();
    batch.set("stock", "plums", "3").put("stock", "a hash is no set");
    let refused = database.commit(batch).await.expect_err("the key holds a hash");
    println!("refused: {refused}");
    assert_eq!(refused.kind(), ErrorKind::WrongKind);
    assert_eq!(database.get("stock", "plums").await?, None);
    database.close().await
}
