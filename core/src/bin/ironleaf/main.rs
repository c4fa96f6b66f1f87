//! The operator's command: looks at a database, or compacts it.
//!
//! Exit codes: 0 all is well, 1 damage was found, 2 the command or the directory was wrong.
#![expect(
    clippy::disallowed_methods,
    reason = "a command of its own: it lists a directory on the machine's disk"
)]

mod arguments;
mod check;
mod compact;
mod dump;
mod files;
mod output;
mod stat;

use arguments::{Arguments, Command, Directory};
use clap::Parser;
use ironleaf::blocking::Database;
use ironleaf::{Error, ErrorKind, Options};
use output::Output;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// How a command ended that did what it was asked for.
enum Verdict {
    Clean,
    Damaged,
}

/// Why a command did not.
enum Failure {
    Database(Error),
    /// It was asked for something that is not there.
    Misuse(String),
    /// Standard output cannot be written.
    Output(std::io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

/// Opens the directory to look at it. Damage is passed over, as far as there is something to be seen behind it.
fn look(directory: &Directory) -> Result<Database, Error> {
    let options = Options { salvage: true, ..options(directory) };
    Database::open_read_only(&directory.path, options)
}

fn options(directory: &Directory) -> Options {
    Options {
        create_if_missing: false,
        memory_bytes: directory.memory.saturating_mul(1 << 20),
        ..Options::default()
    }
}

/// What the library's advice comes to here.
fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ResourceExhausted => " (here: a larger --memory; `ironleaf compact` opens for writing)",
        _ => "",
    }
}

fn main() -> ExitCode {
    let Arguments { json, command } = Arguments::parse();
    let mut output = Output::new(json);
    let done = match &command {
        Command::Check { directory } => check::check(directory, &mut output),
        Command::Stat { directory } => stat::stat(directory, &mut output),
        Command::Dump { directory, key, hex } => match key.as_deref().map(OsStrExt::as_bytes) {
            Some(digits) if *hex => {
                dump::from_hex(digits).and_then(|key| dump::dump(directory, Some(&key), &mut output))
            }
            key => dump::dump(directory, key, &mut output),
        },
        Command::Compact { directory } => compact::compact(directory, &mut output),
    };
    let ended = done.and_then(|verdict| Ok(output.finish().map(|()| verdict)?));
    match ended {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Damaged) => ExitCode::from(1),
        // Who reads from a pipe may have had enough.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Output(error)) => {
            output::complain(&format_args!("cannot write to standard output: {error}"));
            ExitCode::from(2)
        }
        Err(Failure::Misuse(line)) => {
            output::fail(json, "Misuse", &line);
            ExitCode::from(2)
        }
        Err(Failure::Database(error)) => {
            let (kind, advice) = (format!("{:?}", error.kind()), advice(error.kind()));
            output::fail(json, &kind, &format_args!("{error}{advice}"));
            ExitCode::from(if error.kind() == ErrorKind::Corruption { 1 } else { 2 })
        }
    }
}
