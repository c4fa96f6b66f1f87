//! Does one thing as often as it is told, for an instruction counter to watch: `instructions get|put COUNT`.
//!
//! `ci/instructions` runs it with two counts, with and without the laboratory's cfgs; the difference of the two counts
//! is what one operation takes.
#![expect(clippy::print_stderr, reason = "a command")]

use ironleaf::blocking::Database;
use ironleaf::{Durability, Options};
use std::process::ExitCode;

const FIELDS: u32 = 1000;

fn run(verb: &str, count: u32) -> ironleaf::Result<bool> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = Options { durability: Durability::Buffered, ..Options::default() };
    let database = Database::open(dir.path().join("db"), options)?;
    database.set_many("k", (0..FIELDS).map(|n| (n.to_le_bytes(), [7; 100])))?;
    database.checkpoint()?;
    for n in 0..count {
        let field = (n % FIELDS).to_le_bytes();
        match verb {
            "get" => assert!(database.get("k", field)?.is_some()),
            "put" => database.set("k", field, [8; 100])?,
            _ => return Ok(false),
        }
    }
    database.close()?;
    Ok(true)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.get(1).and_then(|count| count.parse().ok());
    match (arguments.first(), count) {
        (Some(verb), Some(count)) if run(verb, count).expect("nothing fails on an empty directory") => {
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("instructions: expected `get` or `put`, and how often");
            ExitCode::from(2)
        }
    }
}
