//! Getting out of a damaged directory what can be read: `cargo run -p ironleaf --example salvage DIRECTORY` looks at one
//! and changes no byte of it. Without an argument it damages a database of its own.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example that damages a file of its own"
)]

use ironleaf::blocking::Database;
use ironleaf::{Error, Options};
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) {
        rescue(&directory)?;
        return Ok(());
    }
    let directory = std::env::temp_dir().join("ironleaf-salvage");
    damage(&directory)?;
    let (rescued, lost) = rescue(&directory)?;
    assert!(rescued > 1000 && lost == 1);
    Ok(())
}

/// Reads all that can be read; gives the number of entries, and of places that cannot be read. What cannot be read is
/// an error that says where; the scans go on behind it.
fn rescue(directory: &Path) -> Result<(usize, usize), Error> {
    let database = Database::open_read_only(directory, Options { salvage: true, ..Options::default() })?;
    let (mut rescued, mut lost) = (0, Vec::new());
    let mut keys = database.keys("");
    while let Some(key) = keys.next() {
        let (key, _kind) = match key {
            Ok(key) => key,
            Err(error) => {
                lost.push(error);
                keys.skip_damage()?;
                continue;
            }
        };
        let mut scan = database.scan(&key, ..);
        while let Some(entry) = scan.next() {
            match entry {
                // Here an entry goes to wherever it is to be kept.
                Ok((_name, _value)) => rescued += 1,
                Err(error) => {
                    lost.push(error);
                    scan.skip_damage()?;
                }
            }
        }
    }
    // What the open passed over: commits, or whole files.
    lost.extend_from_slice(database.left_out());
    println!("{rescued} entries can be read; left out:");
    for error in &lost {
        println!("  {error}");
    }
    Ok((rescued, lost.len()))
}

/// A database of which some bytes of a page go bad.
fn damage(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    let database = Database::open(directory, Options::default())?;
    database.set_many("readings", (0..2000).map(|n| (format!("{n:04}"), "20 degrees")))?;
    database.checkpoint()?;
    database.close()?;
    let pages = directory.join("pages-00000000");
    let mut bytes = std::fs::read(&pages)?;
    let middle = bytes.len() / 2;
    bytes[middle..middle + 16].fill(0xee);
    std::fs::write(&pages, bytes)?;
    Ok(())
}
