//! What the command line understands.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Tries to break the engine, and makes of every failure a small file that replays bit for bit.
///
/// A campaign runs seeds. Each seed generates a scenario (what clients do) and a policy (which tasks are delayed, when
/// the machine crashes, what a power loss keeps). What fails is cut down and written as a scenario file.
#[derive(Debug, Parser)]
#[command(
    name = "lab",
    bin_name = "cargo lab",
    version,
    after_help = "\
Examples:
  cargo lab run                          half a minute of fresh simulation; start here
  cargo lab run --seeds 2000 --check-determinism all
  cargo lab replay lab-out/crash-seed-17.toml  the failure again, operation by operation
  cargo lab replay FILE --trace          with every event of the simulated machine

Exit codes: 0 clean, 1 a failure was found, 2 the command or a file was wrong, 130 interrupted."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a campaign and prints a summary.
    Run(RunArguments),
    /// Runs one scenario file and says whether it did what it expects.
    Replay(ReplayArguments),
    /// Cuts a failing scenario down while it fails the same way.
    Shrink(ShrinkArguments),
    /// Recovers every disk that a crash may leave, at every crash point of a scenario.
    Crashes(CrashesArguments),
    /// Lists families, choices, kinds of loss, probes, oracles and planted bugs.
    List,
    /// Finds every planted bug (in builds that have them: `cargo museum`).
    Museum(MuseumArguments),
}

/// What kind of trouble the machine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// Power loss, process death, crash loops, concurrent clients, snapshots across checkpoints and crashes.
    Crash,
    /// The same under failing reads, writes and syncs, full disks, stalled I/O, and reopening with less memory.
    Faults,
    /// Crashes and a medium that lies: rot, stale, foreign and misdirected sectors, lying syncs, lost files.
    Corruption,
}

impl Family {
    /// The laboratory's name for it.
    pub fn simulated(self) -> ironleaf_sim::scenario::Family {
        match self {
            Self::Crash => ironleaf_sim::scenario::Family::Crash,
            Self::Faults => ironleaf_sim::scenario::Family::Faults,
            Self::Corruption => ironleaf_sim::scenario::Family::Corruption,
        }
    }
}

/// Which simulator runs the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Runtime {
    /// The laboratory's executor, where a schedule is a list of delays that can be cut down.
    #[default]
    Lab,
    /// madsim, a second opinion: its scheduler, over the same disk, workload and oracles.
    Madsim,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --seeds and --for, the campaigns run for half a minute from seed 0. A run that fails is replayed from its
recording at once, cut down, and written to the report directory.

A campaign that never came to what it claims to exercise fails as VACUOUS. From 500 seeds on, every kind of loss
and of fault must have had an effect and every kind of choice must have been taken; from 2000 seeds on, every probe that
the family can pass must have been passed. The remedy is more seeds.

Ctrl-C ends a campaign with its summary, and a second one at once.")]
pub struct RunArguments {
    /// The kind of trouble; every family, one after the other, by default.
    #[arg(long, value_enum)]
    pub family: Option<Family>,
    /// The simulator that runs the seeds.
    #[arg(long, value_enum, default_value = "lab")]
    pub runtime: Runtime,
    /// How many seeds from 0, or which; of each family.
    #[arg(long, value_name = "N|A..B", value_parser = parse_seeds)]
    pub seeds: Option<Range<u64>>,
    /// Stop after this long, such as 30s, 10m or 8h; families share it.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub time: Option<Duration>,
    /// Threads; as many as the machine has by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Run this share of the seeds a second time, from the recording, and compare every event.
    #[arg(long, value_name = "all|N%", default_value = "0%", value_parser = parse_percent)]
    pub check_determinism: u64,
    /// Run every n-th seed only, the i-th of each n; i counts from 0.
    #[arg(long, value_name = "i/n", default_value = "0/1", value_parser = parse_shard)]
    pub shard: (u64, u64),
    /// Where failing scenarios are written.
    #[arg(long, value_name = "DIR", default_value = "lab-out")]
    pub report: PathBuf,
    /// Write the summary as JSON as well; `-` is standard output, and what people read goes to standard error.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A scenario that expects a pass and passes, or expects a failure and fails that way, exits with 0. Replay is strict: a
recorded deviation that finds no place in the run is shown and counts as a failure; --tolerant drops it.")]
pub struct ReplayArguments {
    /// The scenario.
    pub file: PathBuf,
    /// Print every event of the simulated machine.
    #[arg(long)]
    pub trace: bool,
    /// Stop once the operation with this number has ended.
    #[arg(long, value_name = "OPERATION")]
    pub until: Option<u32>,
    /// Write the simulated disk's files, as they are at the end, to a directory.
    #[arg(long, value_name = "DIR")]
    pub dump: Option<PathBuf>,
    /// Drop deviations that do not fit instead of reporting them.
    #[arg(long)]
    pub tolerant: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A crash point is each submission and completion of a change of the disk, each acknowledgement, and the end of a
scenario. At each, what a power loss and what the death of the process may leave is enumerated: every subset of the
sectors, lengths and directory entries that are pending, where these are few; else classes and random subsets.
Images that are equal, and to be judged alike, are recovered once.

Examples:
  cargo lab crashes scenarios/NAME.toml     one scenario
  cargo lab crashes FILE --depth 2 --recoveries 16   and the recovery from one image in sixteen
  cargo lab crashes --bounded 3             every scenario of up to three operations")]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["files", "bounded"]))]
pub struct CrashesArguments {
    /// Scenarios, with their schedules; where they crash, every other outcome is tried as well.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Every scenario of 1 to N operations from a small alphabet.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=5))]
    pub bounded: Option<u32>,
    /// Crashes in a row: 2 crashes recoveries as well.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=3))]
    pub depth: u32,
    /// With a depth of 2 or more, crash the recovery from one image in N.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub recoveries: u64,
    /// Try every subset at points with at most N pending units.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub units: u32,
    /// Most images at a point with more units.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub images: u64,
    /// Threads; as many as the machine has by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Where failing scenarios are written.
    #[arg(long, value_name = "DIR", default_value = "lab-out")]
    pub report: PathBuf,
}

#[derive(Debug, Args)]
pub struct ShrinkArguments {
    /// The scenario; it must fail.
    pub file: PathBuf,
    /// Where the result goes; `FILE` with `-shrunk` in its name by default.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MuseumArguments {
    #[command(subcommand)]
    pub command: Option<MuseumCommand>,
    /// Only this bug.
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// The simulator that runs the seeds.
    #[arg(long, value_enum, default_value = "lab")]
    pub runtime: Runtime,
    /// Keep the scenario that finds each bug in a directory.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Most seeds for each bug.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub base_seed: u64,
    /// Threads; as many as the machine has by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

#[derive(Debug, Subcommand)]
pub enum MuseumCommand {
    /// Runs a scenario twice with its bug: it must fail the same way, with equal digests.
    Replay(ReplayArguments),
    /// Cuts a scenario down that fails with its bug.
    Shrink(ShrinkArguments),
    /// Looks for the bugs in the crash images of all short scenarios, instead of by campaigns.
    Crashes(MuseumCrashesArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --bug, every bug is looked for, and one that is not found is no failure: it may need more operations than
these, a schedule or a fault. With --bug, exit code 1 says that it was not found.")]
pub struct MuseumCrashesArguments {
    /// Only this bug.
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Scenarios of 1 to N operations.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=5))]
    pub bounded: u32,
    /// Crashes in a row: 2 crashes recoveries as well.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=3))]
    pub depth: u32,
    /// Threads; as many as the machine has by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Keep the scenario that shows each bug in a directory.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    const EXPECTED: &str = "expected a number of seeds such as 2000, or a range such as 500..1000";
    let number = |text: &str| text.parse::<u64>().map_err(|_| EXPECTED.to_owned());
    let range = match text.split_once("..") {
        None => 0..number(text)?,
        Some((from, to)) => number(from)?..number(to)?,
    };
    if range.is_empty() { Err(format!("{EXPECTED}; {text} holds no seed")) } else { Ok(range) }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let unit = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 0,
    };
    let number = text[..text.len() - unit.len()].parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(seconds))
        .filter(|total| *total > 0)
        .map(Duration::from_secs)
        .ok_or_else(|| "expected a time such as 30s, 10m or 8h".to_owned())
}

fn parse_percent(text: &str) -> Result<u64, String> {
    if text == "all" {
        return Ok(100);
    }
    text.strip_suffix('%')
        .and_then(|number| number.parse().ok())
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| "expected `all` or a percentage such as 10%".to_owned())
}

fn parse_shard(text: &str) -> Result<(u64, u64), String> {
    text.split_once('/')
        .and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)))
        .filter(|(index, count)| index < count)
        .ok_or_else(|| "expected a shard such as 0/4, the index below the count".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn values_are_understood_or_refused() {
        assert_eq!(parse_seeds("20"), Ok(0..20));
        assert_eq!(parse_seeds("5..20"), Ok(5..20));
        for wrong in ["", "x", "7..", "9..3", "0", "-1"] {
            assert!(parse_seeds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_duration("10m"), Ok(Duration::from_secs(600)));
        for wrong in ["", "10", "m", "0s", "1.5h", "99999999999999999999h", "10min"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!((parse_percent("all"), parse_percent("7%")), (Ok(100), Ok(7)));
        assert!(parse_percent("101%").is_err() && parse_percent("7").is_err());
        assert_eq!(parse_shard("1/4"), Ok((1, 4)));
        assert!(parse_shard("4/4").is_err() && parse_shard("1").is_err());
    }
}
