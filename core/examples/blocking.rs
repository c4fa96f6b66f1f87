//! A program without `async` and without a runtime: `cargo run -p ironleaf --example blocking [DIRECTORY]`.
#![expect(clippy::print_stdout, reason = "an example shows what it read")]

use ironleaf::Options;
use ironleaf::blocking::Database;
use std::path::PathBuf;

fn main() -> ironleaf::Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| std::env::temp_dir().join("ironleaf-blocking"));
    let database = Database::open(&directory, Options::default())?;
    database.delete("squares")?;

    // Commits of several threads share their syncs.
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let database = &database;
            scope.spawn(move || -> ironleaf::Result<()> {
                for n in 0..25 {
                    let n = thread * 25 + n;
                    database.set("squares", format!("{n:03}"), (n * n).to_string())?;
                }
                Ok(())
            });
        }
    });
    for entry in database.scan("squares", "007".."010") {
        let (name, value) = entry?;
        println!("{}: {}", String::from_utf8_lossy(&name), String::from_utf8_lossy(&value));
    }
    let metrics = database.metrics();
    println!("{} commits in {} syncs of the log", metrics.commits, metrics.log_syncs);
    assert_eq!(database.len("squares")?, 100);
    database.close()
}
