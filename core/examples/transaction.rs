//! Reading and writing as if nobody else were there: `cargo run -p ironleaf --example transaction [DIRECTORY]`.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use ironleaf::{Database, ErrorKind, Result};
use std::path::PathBuf;

async fn balance(transaction: &mut ironleaf::Transaction, account: &str) -> Result<i64> {
    let text = transaction.get(account, "balance").await?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&text).parse().unwrap_or(0))
}

/// Moves money; runs again when somebody else changed what it had read.
async fn pay(database: &Database, from: &str, to: &str, amount: i64) -> Result<u32> {
    for conflicts in 0.. {
        let mut transaction = database.transaction();
        let (has, other) = (balance(&mut transaction, from).await?, balance(&mut transaction, to).await?);
        if conflicts == 0 {
            tokio::task::yield_now().await; // here the other one comes in between
        }
        transaction.set(from, "balance", (has - amount).to_string());
        transaction.set(to, "balance", (other + amount).to_string());
        match transaction.commit().await {
            Err(error) if error.kind() == ErrorKind::Conflict => println!("again: {error}"),
            ended => return ended.map(|_| conflicts),
        }
    }
    unreachable!("it goes on until it succeeds")
}

#[tokio::main]
async fn main() -> Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| std::env::temp_dir().join("ironleaf-transaction"));
    let database = Database::open_path(&directory).await?;
    database.set("ada", "balance", "100").await?;
    database.set("grace", "balance", "0").await?;

    let (one, two) = tokio::join!(pay(&database, "ada", "grace", 30), pay(&database, "ada", "grace", 20));
    let conflicts = one? + two?;
    println!("{conflicts} conflicts");
    assert!(conflicts > 0);
    let mut check = database.transaction();
    let (ada, grace) = (balance(&mut check, "ada").await?, balance(&mut check, "grace").await?);
    println!("ada {ada}, grace {grace}");
    assert_eq!((ada, grace), (50, 50));
    database.close().await
}
