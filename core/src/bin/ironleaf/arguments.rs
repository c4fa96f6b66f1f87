//! What the command line understands.

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Looks at an Ironleaf database, or compacts it.
///
/// `check`, `stat` and `dump` change no byte of the directory. They show what can be read of a damaged one, and say
/// what they left out. A directory has one opener at a time: close the database elsewhere first.
#[derive(Debug, Parser)]
#[command(
    name = "ironleaf",
    version,
    after_help = "\
Examples:
  ironleaf check data               is everything sound?
  ironleaf stat data --json         sizes and counts, for a program
  ironleaf dump data user:1         the fields of one object
  ironleaf dump data --json > all   everything that can be read, a line for each entry

Exit codes: 0 all is well, 1 damage was found, 2 the command or the directory was wrong."
)]
pub struct Arguments {
    /// Print JSON: one object, or for `dump` one for each line; for what fails, one with `error` and `kind`.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Verifies every page that the newest checkpoint reaches, and the log behind it.
    ///
    /// What it counts is in pages. Commits that are only in the log yet are verified and not counted; `stat` counts
    /// them too.
    Check {
        #[command(flatten)]
        directory: Directory,
    },
    /// Counts objects and entries, and adds up the files.
    Stat {
        #[command(flatten)]
        directory: Directory,
    },
    /// Prints every entry of every object, or of one.
    ///
    /// Bytes that are no text are printed as `\xNN`, in JSON as `{"hex": "…"}`.
    Dump {
        #[command(flatten)]
        directory: Directory,
        /// The object to print, byte for byte; every one if it is left out.
        key: Option<OsString>,
        /// KEY is in hexadecimal, two digits for a byte.
        #[arg(long, requires = "key")]
        hex: bool,
    },
    /// Moves the log into pages, and copies pages together, so that space comes back. Needs room for the copies.
    ///
    /// It reads what it moves and no other page: `check` is what finds damage.
    Compact {
        #[command(flatten)]
        directory: Directory,
    },
}

#[derive(Debug, Args)]
pub struct Directory {
    /// The directory of the database.
    #[arg(value_name = "DIR")]
    pub path: PathBuf,
    /// Memory to work in. Half of it must hold what the log holds.
    #[arg(long, value_name = "MIB", default_value_t = 192)]
    pub memory: usize,
}
