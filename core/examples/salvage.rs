//! Getting out of a damaged directory what can be read: `cargo run -p ironleaf --example salvage [DIRECTORY]`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example that damages a file of its own"
)]

use ironleaf::Options;
use ironleaf::blocking::Database;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| std::env::temp_dir().join("ironleaf-salvage"));
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    let database = Database::open(&directory, Options::default())?;
    database.set_many("readings", (0..2000).map(|n| (format!("{n:04}"), "20 degrees")))?;
    database.checkpoint()?;
    database.close()?;

    // Some bytes of a page go bad.
    let pages = directory.join("pages-00000000");
    let mut bytes = std::fs::read(&pages)?;
    let middle = bytes.len() / 2;
    bytes[middle..middle + 16].fill(0xee);
    std::fs::write(&pages, bytes)?;

    // Looks, and changes no byte. What cannot be read is an error that says where; the scan goes on behind it.
    let database = Database::open_read_only(&directory, Options { salvage: true, ..Options::default() })?;
    let (mut rescued, mut lost) = (0, Vec::new());
    let mut scan = database.scan("readings", ..);
    while let Some(entry) = scan.next() {
        match entry {
            Ok(_) => rescued += 1,
            Err(error) => {
                lost.push(error);
                scan.skip_damage()?;
            }
        }
    }
    lost.extend_from_slice(database.left_out());
    println!("{rescued} entries rescued; left out:");
    for error in &lost {
        println!("  {error}");
    }
    assert!(rescued > 1000 && lost.len() == 1);
    Ok(())
}
