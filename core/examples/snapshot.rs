//! A view that never changes, and a scan in pieces: `cargo run -p ironleaf --example snapshot [DIRECTORY]`.
#![expect(clippy::print_stdout, reason = "an example shows what it read")]

use ironleaf::{Cursor, Database};
use std::path::PathBuf;

#[tokio::main]
async fn main() -> ironleaf::Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| std::env::temp_dir().join("ironleaf-snapshot"));
    let database = Database::open_path(&directory).await?;
    database.delete("queue").await?;
    database.set_many("queue", (0..10).map(|n| (format!("job {n}"), "waiting"))).await?;

    let snapshot = database.snapshot();
    database.delete("queue").await?;
    database.checkpoint().await?;
    assert_eq!(database.len("queue").await?, 0);
    println!("now nothing; in the snapshot at {} {} jobs", snapshot.position(), snapshot.len("queue").await?);

    // A page of results at a time: a cursor is bytes, and may travel in between.
    let mut bytes = {
        let mut scan = snapshot.scan("queue", "job 3"..);
        println!("first: {:?}", scan.next().await?.map(|(name, _)| String::from_utf8(name)));
        scan.cursor().to_bytes()
    };
    let mut pages = 0;
    loop {
        let mut scan = snapshot.resume(&Cursor::from_bytes(&bytes)?);
        let mut page = Vec::new();
        while page.len() < 2
            && let Some((name, _)) = scan.next().await?
        {
            page.push(String::from_utf8_lossy(&name).into_owned());
        }
        if page.is_empty() {
            break;
        }
        println!("page: {page:?}");
        (bytes, pages) = (scan.cursor().to_bytes(), pages + 1);
    }
    assert_eq!(pages, 3);
    database.close().await
}
