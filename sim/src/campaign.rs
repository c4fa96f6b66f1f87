//! Many seeds, and what is made of each that fails.
//!
//! Each seed is a run of its own on one thread; threads share nothing but the counters. A run that fails is replayed
//! from its recording at once: a replay that differs is a fault of the laboratory and outranks whatever failed.
//! Then it is cut down, on the laboratory's executor if it fails there too. Time and files are the caller's business.

mod elsewhere;
mod summary;

pub use summary::{Found, LOSSES_FROM_SEEDS, Nondeterminism, PROBES_FROM_SEEDS, Summary};

use crate::choices::{Deviation, Source};
use crate::runner::{RunOptions, RunReport, run};
use crate::scenario::{Expectation, Family, Scenario};
use crate::shrink::{ShrinkLimits, Shrunk, shrink};
use elsewhere::fails_elsewhere;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Which simulator runs the seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// The laboratory's executor.
    #[default]
    Lab,
    /// madsim: the second opinion.
    Madsim,
}

/// What a campaign runs.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// What kind of trouble it makes.
    pub family: Family,
    /// On what.
    pub runtime: Runtime,
    /// The seeds.
    pub seeds: Range<u64>,
    /// Runs only the seeds that leave this remainder when divided by the second number.
    pub shard: (u64, u64),
    /// Threads.
    pub jobs: usize,
    /// Per cent of the seeds that are run a second time, from their recording, and compared.
    pub repeat_percent: u64,
    /// The campaign ends when so many seeds have failed.
    pub failures_max: usize,
    /// Failing runs of one fingerprint that are cut down; the others are only listed.
    pub shrunk_max: usize,
    /// Bounds of cutting down.
    pub shrink: ShrinkLimits,
    /// The planted bug that is active, for the expectation of the scenarios that are found.
    pub bug: Option<String>,
}

impl Default for Campaign {
    fn default() -> Self {
        Self {
            family: Family::Crash,
            runtime: Runtime::Lab,
            seeds: 0..u64::MAX,
            shard: (0, 1),
            jobs: 1,
            repeat_percent: 0,
            failures_max: 20,
            shrunk_max: 2,
            shrink: ShrinkLimits::default(),
            bug: None,
        }
    }
}

impl Campaign {
    /// The first seed from `from` on that this campaign runs.
    #[must_use]
    pub fn seed_from(&self, from: u64) -> Option<u64> {
        let (index, count) = self.shard;
        let from = from.max(self.seeds.start);
        let rest = from.checked_rem(count)?;
        let gap = if rest <= index { index - rest } else { (count - rest).checked_add(index)? };
        from.checked_add(gap).filter(|seed| *seed < self.seeds.end)
    }
}

/// Told of the progress of a campaign, from any of its threads.
pub trait Observer: Sync {
    /// Another seed was run. The campaign ends early if this is false.
    fn ran(&self, seed: u64, report: &RunReport) -> bool;
    /// A seed failed; what follows may take a while.
    fn failed(&self, seed: u64, report: &RunReport);
    /// Whether cutting a failure down may go on.
    fn may_shrink(&self) -> bool {
        true
    }
}

/// The run that a seed stands for in a family.
#[must_use]
pub fn explore(
    (family, runtime): (Family, Runtime),
    seed: u64,
    options: RunOptions,
) -> (Arc<Scenario>, RunReport) {
    let madsim = match runtime {
        Runtime::Lab => None,
        // A scenario's file holds numbers below 2^63.
        Runtime::Madsim => Some(seed & (u64::MAX >> 1)),
    };
    let scenario = Arc::new(Scenario { madsim, ..Scenario::generate_in(family, seed) });
    let report = run(&scenario, Source::Seeded { seed }, options);
    (scenario, report)
}

/// Runs a campaign.
#[must_use]
pub fn campaign(campaign: &Campaign, observer: &dyn Observer) -> Summary {
    let shared = Shared {
        campaign,
        observer,
        next: AtomicU64::new(campaign.seeds.start),
        stopped: AtomicBool::new(false),
        total: Mutex::new(Summary { family: campaign.family, ..Summary::default() }),
    };
    std::thread::scope(|scope| {
        for _ in 0..campaign.jobs.max(1) {
            scope.spawn(|| shared.work());
        }
    });
    let mut summary = shared.total.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.found.sort_by_key(|found| found.seed);
    summary.nondeterministic.sort_by_key(|found| found.seed);
    summary
}

struct Shared<'a> {
    campaign: &'a Campaign,
    observer: &'a dyn Observer,
    next: AtomicU64,
    /// No further seed is begun.
    stopped: AtomicBool,
    total: Mutex<Summary>,
}

impl Shared<'_> {
    /// What each thread does.
    fn work(&self) {
        let mut mine = Summary::default();
        while let Some(seed) = self.next_seed() {
            let what = (self.campaign.family, self.campaign.runtime);
            let (scenario, report) = explore(what, seed, RunOptions::default());
            mine.add(&report);
            if !self.observer.ran(seed, &report) {
                self.stop();
            }
            if report.failure.is_some() {
                self.examine(seed, &scenario, &report);
            } else if seed % 100 < self.campaign.repeat_percent {
                mine.repeated += 1;
                self.repeat(seed, &scenario, &report);
            }
        }
        self.lock().merge(mine);
    }

    fn next_seed(&self) -> Option<u64> {
        if self.stopped.load(Relaxed) {
            return None;
        }
        // The last seed that there can be is below `u64::MAX`, so the one after it is a number as well.
        let after = |from| self.campaign.seed_from(from).map(|seed| seed + 1);
        let from = self.next.fetch_update(Relaxed, Relaxed, after).ok()?;
        self.campaign.seed_from(from)
    }

    fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Summary> {
        self.total.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replays a run from its recording. `false`, and a record of it, if anything differs.
    fn repeat(&self, seed: u64, scenario: &Arc<Scenario>, first: &RunReport) -> bool {
        let recorded = first.recorded();
        let second = replay(scenario, &recorded, RunOptions::default());
        if second.digest == first.digest && second.failure == first.failure && second.divergence.is_none() {
            return true;
        }
        let campaign = (self.campaign.family, self.campaign.runtime);
        let what = difference(campaign, seed, scenario, &recorded, &second);
        self.lock().nondeterministic.push(Nondeterminism { seed, what });
        self.stop();
        false
    }

    /// Replays and cuts down a run that failed.
    fn examine(&self, seed: u64, scenario: &Arc<Scenario>, report: &RunReport) {
        let Some(failure) = report.failure.clone() else { return };
        self.observer.failed(seed, report);
        if !self.repeat(seed, scenario, report) {
            return;
        }
        let expect =
            Expectation::Failure { fingerprint: failure.fingerprint.clone(), bug: self.campaign.bug.clone() };
        let recorded =
            Scenario { deviations: report.recorded(), expect, ..Arc::unwrap_or_clone(Arc::clone(scenario)) };
        let same = {
            let mut total = self.lock();
            total.found.push(Found {
                seed,
                failure: failure.clone(),
                recorded: recorded.clone(),
                shrunk: None,
            });
            if total.found.len() >= self.campaign.failures_max {
                self.stop();
            }
            total.found.iter().filter(|found| found.failure.fingerprint == failure.fingerprint).count()
        };
        if same > self.campaign.shrunk_max {
            return;
        }
        let elsewhere = fails_elsewhere(&recorded, &failure.fingerprint, || self.observer.may_shrink());
        let shrunk = self.shrink(elsewhere.as_ref().unwrap_or(&recorded), &failure.fingerprint);
        if let Some(found) = self.lock().found.iter_mut().find(|found| found.seed == seed) {
            found.shrunk = Some(shrunk);
        }
    }

    fn shrink(&self, recorded: &Scenario, fingerprint: &str) -> Shrunk {
        let mut shrunk = shrink(recorded, fingerprint, self.campaign.shrink, |_| self.observer.may_shrink());
        shrunk.scenario.title = format!("{}, cut down", recorded.title);
        shrunk.scenario.promise = fingerprint.to_owned();
        shrunk
    }
}

/// Runs a scenario with recorded deviations, strictly.
fn replay(scenario: &Arc<Scenario>, recorded: &[Deviation], options: RunOptions) -> RunReport {
    run(scenario, Source::Recorded { deviations: recorded.to_vec(), strict: true }, options)
}

/// The first event in which a run and its replay differ.
fn difference(
    campaign: (Family, Runtime),
    seed: u64,
    scenario: &Arc<Scenario>,
    recorded: &[Deviation],
    replayed: &RunReport,
) -> String {
    if let Some(divergence) = &replayed.divergence {
        return format!("the replay diverged: {divergence}");
    }
    let traced = RunOptions { trace: true, ..RunOptions::default() };
    let (first, second) = (explore(campaign, seed, traced).1, replay(scenario, recorded, traced));
    let mut events = first.trace.iter().zip(&second.trace).enumerate();
    match events.find(|(_, (first, second))| first != second) {
        Some((at, (first, second))) => format!("event {at}: first `{first}`, then `{second}`"),
        None if first.trace.len() != second.trace.len() => {
            format!("the first run had {} events, the second {}", first.trace.len(), second.trace.len())
        }
        None => "the digests differ, though the traces are equal".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Observer for Silent {
        fn ran(&self, _seed: u64, _report: &RunReport) -> bool {
            true
        }

        fn failed(&self, _seed: u64, _report: &RunReport) {}
    }

    #[test]
    fn shards_share_the_seeds_out() {
        let shard = |index, count| Campaign { seeds: 10..17, shard: (index, count), ..Campaign::default() };
        let seeds = |campaign: &Campaign| {
            let mut seeds = Vec::new();
            while let Some(seed) = campaign.seed_from(seeds.last().map_or(0, |last| last + 1)) {
                seeds.push(seed);
            }
            seeds
        };
        assert_eq!(seeds(&shard(0, 1)), [10, 11, 12, 13, 14, 15, 16]);
        assert_eq!(
            [seeds(&shard(0, 3)), seeds(&shard(1, 3)), seeds(&shard(2, 3))],
            [vec![12, 15], vec![10, 13, 16], vec![11, 14]]
        );
        assert_eq!(seeds(&shard(0, 20)), []);
        assert_eq!(seeds(&shard(u64::MAX - 1, u64::MAX)), []);
    }

    #[test]
    fn the_last_seeds_are_run_once_and_not_followed_by_the_first() {
        let last = Campaign { seeds: u64::MAX - 3..u64::MAX, jobs: 3, ..Campaign::default() };
        assert_eq!(campaign(&last, &Silent).seeds, 3);
    }
}
