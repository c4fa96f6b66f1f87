//! The laboratory's command line: campaigns, replay, shrinking, and the museum of planted bugs.
//!
//! Exit codes: 0 clean, 1 a failure was found, 2 the command or a file was wrong.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its user")]

mod arguments;
mod list;
mod measure;
mod museum;
mod output;
mod replay;
mod run;
mod shrink;

use arguments::{Arguments, Command, MuseumCommand};
use clap::Parser;
use std::process::ExitCode;

/// How a command ended.
enum Verdict {
    /// Nothing wrong.
    Clean,
    /// A failure was found.
    Failed,
}

/// The command or a file was wrong: one line for the user.
struct Misuse(String);

impl From<ironleaf_sim::scenario::ScenarioError> for Misuse {
    fn from(error: ironleaf_sim::scenario::ScenarioError) -> Self {
        Self(error.to_string())
    }
}

fn main() -> ExitCode {
    let result = if cfg!(ironleaf_lab) {
        match Arguments::parse().command {
            Command::Run(arguments) => run::run(&arguments),
            Command::Replay(arguments) => replay::replay(&arguments),
            Command::Shrink(arguments) => shrink::shrink(&arguments),
            Command::List => list::list(),
            Command::Museum(arguments) => match &arguments.command {
                Some(MuseumCommand::Replay { file }) => museum::replay(file),
                None => museum::museum(&arguments),
            },
        }
    } else {
        Err(Misuse(
            "this build lacks the laboratory's flags: an exported RUSTFLAGS replaces those in .cargo/config.toml; \
             unset it and use `cargo lab`"
                .to_owned(),
        ))
    };
    match result {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Err(Misuse(line)) => {
            eprintln!("lab: {line}");
            ExitCode::from(2)
        }
    }
}
