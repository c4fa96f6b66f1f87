//! `lab museum`: every planted bug must be found. A bug that is missed means that the laboratory is wrong.

use crate::arguments::{MuseumArguments, MuseumCrashesArguments, ReplayArguments, ShrinkArguments};
use crate::{Misuse, Verdict};
use ironleaf::lab::Planted;

/// How the museum of public faults numbers a bug; some are the laboratory's own.
pub fn museum_number(bug: &Planted) -> String {
    if bug.number == 0 { "own".to_owned() } else { format!("#{}", bug.number) }
}

/// Runs a scenario twice, with its bug if it names one.
pub fn replay(arguments: &ReplayArguments) -> Result<Verdict, Misuse> {
    needs_bugs()?;
    crate::replay::run_and_compare(arguments, true)
}

/// Cuts a scenario down, with its bug if it names one.
pub fn shrink(arguments: &ShrinkArguments) -> Result<Verdict, Misuse> {
    needs_bugs()?;
    crate::shrink::shrink(arguments)
}

/// Refuses builds without planted bugs.
fn needs_bugs() -> Result<(), Misuse> {
    if cfg!(ironleaf_planted) {
        return Ok(());
    }
    Err(Misuse("this build has no planted bugs; use `cargo museum`".to_owned()))
}

#[cfg(not(ironleaf_planted))]
pub fn museum(_arguments: &MuseumArguments) -> Result<Verdict, Misuse> {
    needs_bugs().map(|()| Verdict::Clean)
}

#[cfg(not(ironleaf_planted))]
pub fn crashes(_arguments: &MuseumCrashesArguments) -> Result<Verdict, Misuse> {
    needs_bugs().map(|()| Verdict::Clean)
}

#[cfg(ironleaf_planted)]
pub use planted::{crashes, museum};

#[cfg(ironleaf_planted)]
mod planted {
    use super::{Misuse, MuseumArguments, MuseumCrashesArguments, Planted, Verdict, museum_number};
    use crate::crashes::{Work, explore_all};
    use crate::interrupt::{interrupted, listen};
    use crate::measure::{cpu_time, jobs};
    use crate::output::{grouped, table, writable, write_scenario};
    use crate::run::runtime;
    use indicatif::ProgressBar;
    use ironleaf::lab::{PLANTED, plant};
    use ironleaf_sim::campaign::{Campaign, Found, Observer, Runtime, campaign, explore};
    use ironleaf_sim::crash_images::Extent;
    use ironleaf_sim::runner::{RunOptions, RunReport};
    use ironleaf_sim::scenario::{Expectation, Family};
    use ironleaf_sim::shrink::{ShrinkLimits, shrink};
    use std::time::Duration;

    struct Quiet<'a>(&'a ProgressBar);

    impl Observer for Quiet<'_> {
        fn ran(&self, _seed: u64, _report: &RunReport) -> bool {
            self.0.tick();
            !interrupted()
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
        let bugs = named(arguments.bug.as_deref())?;
        if arguments.base_seed.checked_add(arguments.seeds.max(1)).is_none() || arguments.seeds == 0 {
            return Err(Misuse(format!(
                "--base-seed {} with --seeds {} leaves no seed",
                arguments.base_seed, arguments.seeds
            )));
        }
        if let Some(directory) = &arguments.keep {
            writable(directory)?;
        }
        let runtime = runtime(arguments.runtime)?;
        listen();
        let header =
            ["bug", "museum", "family", "seeds", "CPU ms", "operations", "deviations", "promise broken"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        let mut missed = Vec::new();
        let bar = ProgressBar::new_spinner();
        for bug in bugs {
            bar.set_message(bug.name);
            let hunt = hunt(bug, runtime, arguments, &bar);
            if interrupted() {
                break;
            }
            let mut row = vec![bug.name.to_owned(), museum_number(bug), bug.family.to_owned()];
            row.push(hunt.seeds.to_string());
            row.push(hunt.cpu.as_millis().to_string());
            match hunt.result {
                Ok(found) => {
                    let scenario = found.shrunk.map_or(found.recorded, |shrunk| shrunk.scenario);
                    row.push(scenario.operation_count().to_string());
                    row.push(scenario.deviations.len().to_string());
                    row.push(found.failure.fingerprint);
                    if let Some(directory) = &arguments.keep {
                        write_scenario(directory, bug.name, &scenario)?;
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
        say!("{}", table(&rows).trim_end());
        if missed.is_empty() && interrupted() {
            say!("interrupted: the other bugs were not looked for");
            return Ok(Verdict::Interrupted);
        }
        if missed.is_empty() {
            say!(
                "{}",
                if arguments.bug.is_some() {
                    "the planted bug was found"
                } else {
                    "every planted bug was found"
                }
            );
            return Ok(Verdict::Clean);
        }
        say!("MISSED: {}", missed.join(", "));
        for name in missed {
            let seeds = arguments.seeds.saturating_mul(2);
            say!("  look further with: cargo museum --bug {name} --seeds {seeds}");
        }
        Ok(Verdict::Failed)
    }

    /// The planted bug of this name; without a name, every one.
    fn named(name: Option<&str>) -> Result<Vec<&'static Planted>, Misuse> {
        let bugs: Vec<&Planted> =
            PLANTED.iter().filter(|bug| name.is_none_or(|name| name == bug.name)).collect();
        match name {
            Some(name) if bugs.is_empty() => {
                Err(Misuse(format!("there is no planted bug called {name}; `cargo lab list` shows them")))
            }
            _ => Ok(bugs),
        }
    }

    /// Looks for planted bugs in the crash images of short scenarios.
    pub fn crashes(arguments: &MuseumCrashesArguments) -> Result<Verdict, Misuse> {
        let bugs = named(arguments.bug.as_deref())?;
        if let Some(directory) = &arguments.keep {
            writable(directory)?;
        }
        listen();
        let header = ["bug", "museum", "images", "CPU ms", "promise broken"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        let (mut found_count, mut looked_for) = (0, 0);
        let bar = ProgressBar::new_spinner();
        for bug in bugs {
            bar.set_message(bug.name);
            looked_for += 1;
            let start = cpu_time();
            plant(Some(bug.name));
            let extent = Extent { depth: arguments.depth, ..Extent::default() };
            let work =
                Work { only_first: true, ..Work::bounded(arguments.bounded, extent, jobs(arguments.jobs)) };
            let explored = explore_all(&work, &|_, _| {
                bar.tick();
                !interrupted()
            });
            let found = explored.found.into_iter().find(|found| found.replays);
            let broken = found.as_ref().map_or("not found", |found| &found.failure.fingerprint);
            rows.push(vec![
                bug.name.to_owned(),
                museum_number(bug),
                grouped(explored.coverage.images),
                (cpu_time() - start).as_millis().to_string(),
                broken.to_owned(),
            ]);
            if let Some(mut found) = found {
                found_count += 1;
                if let Some(directory) = &arguments.keep {
                    let fingerprint = found.failure.fingerprint;
                    found.scenario.title = format!("{}: {}", bug.name, bug.mechanism);
                    found.scenario.promise.clone_from(&fingerprint);
                    found.scenario.expect = Expectation::Failure {
                        fingerprint: fingerprint.clone(),
                        bug: Some(bug.name.to_owned()),
                    };
                    let limits = ShrinkLimits::default();
                    let shrunk = shrink(&found.scenario, &fingerprint, limits, |_| !interrupted());
                    write_scenario(directory, bug.name, &shrunk.scenario)?;
                }
            }
            if interrupted() {
                break;
            }
        }
        plant(None);
        bar.finish_and_clear();
        say!("{}", table(&rows).trim_end());
        say!(
            "{found_count} of {looked_for} found; the others may need a schedule, a fault, or longer scenarios"
        );
        if interrupted() {
            say!("interrupted: the other bugs were not looked for");
            return Ok(Verdict::Interrupted);
        }
        // An exploration that finds no bug at all proves nothing about the engine; nor does one that misses its only.
        Ok(if found_count == 0 { Verdict::Failed } else { Verdict::Clean })
    }

    fn hunt(bug: &Planted, runtime: Runtime, arguments: &MuseumArguments, bar: &ProgressBar) -> Hunt {
        let start = cpu_time();
        let Some(family) = Family::ALL.into_iter().find(|family| family.name() == bug.family) else {
            return Hunt { seeds: 0, cpu: start, result: Err(format!("there is no family {}", bug.family)) };
        };
        plant(Some(bug.name));
        let summary = campaign(
            &Campaign {
                family,
                runtime,
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
            Some(shrink(&found.recorded, &found.failure.fingerprint, ShrinkLimits::default(), |_| {
                !interrupted()
            }));
        if let Some(shrunk) = &mut found.shrunk {
            shrunk.scenario.title = format!("{}: {}", bug.name, bug.mechanism);
            shrunk.scenario.promise = found.failure.fingerprint.clone();
        }
        // The sound engine must pass where the sabotaged one fails.
        plant(None);
        if explore((family, runtime), found.seed, RunOptions::default()).1.failure.is_some() {
            let why = format!("seed {} fails without the bug as well", found.seed);
            return Hunt { seeds, cpu, result: Err(why) };
        }
        Hunt { seeds, cpu, result: Ok(found) }
    }
}
