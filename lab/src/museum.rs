//! `lab museum`: every planted bug must be found. A bug that is missed means that the laboratory is wrong.

use crate::arguments::MuseumArguments;
use crate::{Misuse, Verdict};
use ironleaf::lab::Planted;
use std::path::Path;

/// How the museum of public faults numbers a bug; some are the laboratory's own.
pub fn museum_number(bug: &Planted) -> String {
    if bug.number == 0 { "own".to_owned() } else { format!("#{}", bug.number) }
}

#[cfg(not(ironleaf_planted))]
fn no_bugs() -> Misuse {
    Misuse("this build has no planted bugs; use `cargo museum`".to_owned())
}

#[cfg(not(ironleaf_planted))]
pub fn museum(_arguments: &MuseumArguments) -> Result<Verdict, Misuse> {
    Err(no_bugs())
}

#[cfg(not(ironleaf_planted))]
pub fn replay(_file: &Path) -> Result<Verdict, Misuse> {
    Err(no_bugs())
}

#[cfg(ironleaf_planted)]
pub use planted::{museum, replay};

#[cfg(ironleaf_planted)]
mod planted {
    use super::{Misuse, MuseumArguments, Path, Planted, Verdict, museum_number};
    use crate::measure::{cpu_time, jobs};
    use crate::output::{read_scenario, table, writable, write_scenario};
    use indicatif::ProgressBar;
    use ironleaf::lab::{PLANTED, plant};
    use ironleaf_sim::campaign::{Campaign, Found, Observer, campaign, explore};
    use ironleaf_sim::choices::Source;
    use ironleaf_sim::runner::{RunOptions, RunReport, run};
    use ironleaf_sim::scenario::Expectation;
    use ironleaf_sim::shrink::{ShrinkLimits, shrink};
    use std::sync::Arc;
    use std::time::Duration;

    struct Quiet<'a>(&'a ProgressBar);

    impl Observer for Quiet<'_> {
        fn ran(&self, _seed: u64, _report: &RunReport) -> bool {
            self.0.tick();
            true
        }

        fn failed(&self, _seed: u64, _report: &RunReport) {}
    }

    /// What it took to find a bug.
    struct Hunt {
        seeds: u64,
        cpu: Duration,
        /// The failure, cut down; or why the bug does not count as found.
        result: Result<Found, String>,
    }

    /// Finds every planted bug, or one of them.
    pub fn museum(arguments: &MuseumArguments) -> Result<Verdict, Misuse> {
        let bugs: Vec<&Planted> = PLANTED
            .iter()
            .filter(|bug| arguments.bug.as_deref().is_none_or(|name| name == bug.name))
            .collect();
        if let (Some(name), true) = (&arguments.bug, bugs.is_empty()) {
            return Err(Misuse(format!(
                "there is no planted bug called {name}; `cargo lab list` shows them"
            )));
        }
        if let Some(directory) = &arguments.keep {
            writable(directory)?;
        }
        let header = ["bug", "museum", "seeds", "CPU ms", "operations", "deviations", "promise broken"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        let mut missed = Vec::new();
        let bar = ProgressBar::new_spinner();
        for bug in bugs {
            bar.set_message(bug.name);
            let hunt = hunt(bug, arguments, &bar);
            let mut row = vec![bug.name.to_owned(), museum_number(bug), hunt.seeds.to_string()];
            row.push(hunt.cpu.as_millis().to_string());
            match hunt.result {
                Ok(found) => {
                    let scenario = found.shrunk.map_or(found.recorded, |shrunk| shrunk.scenario);
                    row.push(scenario.operation_count().to_string());
                    row.push(scenario.deviations.len().to_string());
                    row.push(found.failure.fingerprint);
                    if let Some(directory) = &arguments.keep {
                        write_scenario(directory, bug.name, &scenario, "cargo museum replay")?;
                    }
                }
                Err(why) => {
                    row.extend(["-".to_owned(), "-".to_owned(), format!("MISSED: {why}")]);
                    missed.push(bug.name);
                }
            }
            rows.push(row);
        }
        plant(None);
        bar.finish_and_clear();
        print!("{}", table(&rows));
        if missed.is_empty() {
            println!("every planted bug was found");
            return Ok(Verdict::Clean);
        }
        println!("MISSED: {}", missed.join(", "));
        for name in missed {
            println!("  again with: cargo museum --bug {name} --seeds {}", arguments.seeds);
        }
        Ok(Verdict::Failed)
    }

    fn hunt(bug: &Planted, arguments: &MuseumArguments, bar: &ProgressBar) -> Hunt {
        let start = cpu_time();
        plant(Some(bug.name));
        let summary = campaign(
            &Campaign {
                seeds: arguments.base_seed..arguments.base_seed.saturating_add(arguments.seeds),
                jobs: jobs(arguments.jobs),
                failures_max: 1,
                shrunk_max: 0,
                bug: Some(bug.name.to_owned()),
                ..Campaign::default()
            },
            &Quiet(bar),
        );
        let cpu = cpu_time() - start;
        let Some(mut found) = summary.found.into_iter().next() else {
            let why = match summary.nondeterministic.first() {
                Some(differing) => format!("seed {} does not replay: {}", differing.seed, differing.what),
                None => "no seed failed".to_owned(),
            };
            return Hunt { seeds: summary.seeds, cpu, result: Err(why) };
        };
        let seeds = found.seed - arguments.base_seed + 1;
        found.shrunk =
            Some(shrink(&found.recorded, &found.failure.fingerprint, ShrinkLimits::default(), |_| true));
        if let Some(shrunk) = &mut found.shrunk {
            shrunk.scenario.title = format!("{}: {}", bug.name, bug.mechanism);
            shrunk.scenario.promise = found.failure.fingerprint.clone();
        }
        // The sound engine must pass where the sabotaged one fails.
        plant(None);
        if explore(found.seed, RunOptions::default()).1.failure.is_some() {
            let why = format!("seed {} fails without the bug as well", found.seed);
            return Hunt { seeds, cpu, result: Err(why) };
        }
        Hunt { seeds, cpu, result: Ok(found) }
    }

    /// Runs a kept scenario twice: it must fail as expected both times, with equal digests.
    pub fn replay(file: &Path) -> Result<Verdict, Misuse> {
        let scenario = Arc::new(read_scenario(file)?);
        let Expectation::Failure { fingerprint, bug: Some(bug) } = &scenario.expect else {
            return Err(Misuse(format!("{}: [expect] names no failure and planted bug", file.display())));
        };
        if !plant(Some(bug)) {
            return Err(Misuse(format!("{}: there is no planted bug called {bug}", file.display())));
        }
        let once = || {
            let source = Source::Recorded { deviations: scenario.all_deviations(), strict: true };
            run(&scenario, source, RunOptions::default())
        };
        let (first, second) = (once(), once());
        for report in [&first, &second] {
            let found = report.failure.as_ref().map_or_else(|| "pass".to_owned(), ToString::to_string);
            println!("{bug}: digest {:016x}: {found}", report.digest);
            if let Some(divergence) = &report.divergence {
                println!("DIVERGED: {divergence}");
            }
        }
        let same = first.digest == second.digest && first.failure == second.failure;
        let as_expected = first.fingerprint() == Some(fingerprint) && first.divergence.is_none();
        if same && as_expected {
            println!("failed the same way twice, as expected");
            return Ok(Verdict::Clean);
        }
        println!("{}", if same { "NOT as expected" } else { "NOT DETERMINISTIC" });
        println!("  expected {fingerprint}");
        println!("  replay with: cargo museum replay {}", file.display());
        Ok(Verdict::Failed)
    }
}
