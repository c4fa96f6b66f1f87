//! The laboratory's command line: campaigns, replay, shrinking, and the museum of planted bugs.
//!
//! Exit codes: 0 clean, 1 a failure was found, 2 the command or a file was wrong, 130 interrupted.

#[macro_use]
mod output;

mod arguments;
mod crashes;
mod interrupt;
mod list;
mod measure;
mod museum;
mod replay;
mod run;
mod shrink;

use arguments::{Arguments, Command, MuseumCommand};
use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;

/// How a command ended.
enum Verdict {
    /// Nothing wrong.
    Clean,
    /// A failure was found.
    Failed,
    /// Nothing wrong until an interrupt ended it.
    Interrupted,
}

impl Verdict {
    /// The worse of two.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Interrupted, _) | (_, Self::Interrupted) => Self::Interrupted,
            (Self::Clean, Self::Clean) => Self::Clean,
        }
    }
}

/// The command or a file was wrong: one line for the user.
struct Misuse(String);

impl From<ironleaf_sim::scenario::ScenarioError> for Misuse {
    fn from(error: ironleaf_sim::scenario::ScenarioError) -> Self {
        Self(error.to_string())
    }
}

/// Reads the command line, or says what is wrong with it and exits.
fn arguments() -> Arguments {
    let command = Arguments::command();
    // `cargo museum` is an alias for this command: it goes by the name that was typed.
    let museum = std::env::args_os().nth(1).is_some_and(|first| first == "museum");
    let command = if museum { command.bin_name("cargo") } else { command };
    Arguments::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

fn main() -> ExitCode {
    let result = if cfg!(ironleaf_lab) {
        match arguments().command {
            Command::Run(arguments) => run::run(&arguments),
            Command::Replay(arguments) => replay::replay(&arguments),
            Command::Shrink(arguments) => shrink::shrink(&arguments),
            Command::Crashes(arguments) => crashes::crashes(&arguments),
            Command::List => list::list(),
            Command::Museum(arguments) => match &arguments.command {
                Some(MuseumCommand::Replay(arguments)) => museum::replay(arguments),
                Some(MuseumCommand::Shrink(arguments)) => museum::shrink(arguments),
                Some(MuseumCommand::Crashes(arguments)) => museum::crashes(arguments),
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
    match result.and_then(|verdict| output::finish_stdout().map(|()| verdict)) {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Ok(Verdict::Interrupted) => ExitCode::from(interrupt::EXIT_CODE),
        Err(Misuse(line)) => {
            complain!("lab: {line}");
            ExitCode::from(2)
        }
    }
}
