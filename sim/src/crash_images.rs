//! Crash images: every disk that a crash may leave, recovered and judged.
//!
//! A scenario's course is surveyed for its crash points: each submission and completion of a change of the disk, each
//! acknowledgement, and the end. At each of them, for power loss and for the death of the process, the outcomes that
//! are legal are enumerated: where few enough sectors, lengths and directory entries are pending, every subset of them
//! and each sector destroyed; where there are more, the classes of
//! [`CLASSES`](crate::disk::CLASSES) with all their details, and then random
//! subsets up to a bound ([`outcomes`]). What each outcome leaves is an *image*. Images that are equal, and that the oracle would
//! judge by the same history, are judged once. Each is recovered and read under the oracle; and, to the depth that is
//! asked for, the recovery itself is surveyed for crash points, and so is the moment after it.
//!
//! An image that fails is a scenario: the operations up to the crash, and the picks that make the disk.

mod bounded;
mod outcomes;

pub use bounded::{ALPHABET, bounded, bounded_count};
pub use outcomes::{Bounds, Space, Tried, outcomes};

use crate::choices::{ChoiceName, Choices, Deviation, Site, Source, Watched};
use crate::machine::{CrashKind, Machine};
use crate::runner::{Failure, Lived, Run, RunOptions, machine_options, run};
use crate::scenario::{Expectation, Finale, Scenario};
use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::sync::Arc;

/// How far the exploration goes.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Crashes in a row: 1 crashes the scenario's course, 2 the recoveries from that as well.
    pub depth: u32,
    /// Outcomes that are tried at each crash point.
    pub bounds: Bounds,
    /// Recoveries from one image in so many are surveyed in their turn.
    pub deep_one_in: u64,
    /// Images that fail in different ways are all kept; of one way, so many.
    pub found_max: usize,
}

impl Default for Extent {
    fn default() -> Self {
        Self { depth: 1, bounds: Bounds::default(), deep_one_in: 1, found_max: 1 }
    }
}

/// How much was explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Crash points, each once for power loss and once for the death of the process.
    pub points: u64,
    /// Points at which every legal image was judged.
    pub exhaustive: u64,
    /// The most units pending at a point that was sampled.
    pub units_most: u64,
    /// Outcomes that were tried.
    pub outcomes: u64,
    /// Images that were recovered and judged: the outcomes without those that gave an image again.
    pub images: u64,
    /// Those whose crash came in a recovery or right after it.
    pub deep_images: u64,
    /// Images whose recovery was not surveyed, though the depth was not reached.
    pub not_deepened: u64,
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, other: Self) {
        self.points += other.points;
        self.exhaustive += other.exhaustive;
        self.units_most = self.units_most.max(other.units_most);
        self.outcomes += other.outcomes;
        self.images += other.images;
        self.deep_images += other.deep_images;
        self.not_deepened += other.not_deepened;
    }
}

impl Coverage {
    /// Whether every legal image was judged, as far as the depth goes.
    #[must_use]
    pub const fn is_exhaustive(&self) -> bool {
        self.exhaustive == self.points && self.not_deepened == 0
    }
}

/// An image from which the engine does not recover as promised.
#[derive(Clone, Debug)]
pub struct FoundImage {
    /// What makes it and shows it.
    pub scenario: Scenario,
    /// How the recovery fails.
    pub failure: Failure,
    /// Whether the scenario fails the same way. If not, the laboratory is at fault as well.
    pub replays: bool,
}

/// What came of an exploration.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// How much was explored.
    pub coverage: Coverage,
    /// What failed.
    pub found: Vec<FoundImage>,
}

/// Explores what crashes of a scenario may leave. `goes_on` is asked before each crash point.
#[must_use]
pub fn explore(scenario: &Arc<Scenario>, extent: Extent, goes_on: impl FnMut(&Coverage) -> bool) -> Explored {
    let mut explorer = Explorer {
        scenario,
        extent,
        goes_on,
        stopped: false,
        seen: BTreeSet::new(),
        explored: Explored::default(),
    };
    explorer.explore();
    explorer.explored
}

const KINDS: [CrashKind; 2] = [CrashKind::PowerLoss, CrashKind::ProcessDeath];

struct Explorer<'a, G> {
    scenario: &'a Arc<Scenario>,
    extent: Extent,
    goes_on: G,
    stopped: bool,
    /// By the image, the history, and the crashes that may follow.
    seen: BTreeSet<(u64, [u64; 5], u32)>,
    explored: Explored,
}

/// A machine that is about to crash.
struct Point<'a> {
    run: &'a Run<Machine>,
    kind: CrashKind,
    /// What has led here, the crash included.
    course: &'a [Deviation],
    /// Crashes that may follow, this one included.
    depth: u32,
}

impl<G: FnMut(&Coverage) -> bool> Explorer<'_, G> {
    fn explore(&mut self) {
        let recorded = self.scenario.all_deviations();
        let (mut run, choices) = self.begin(recorded.clone());
        choices.watch(Some(Site::Crash));
        let mut is_over = false;
        loop {
            match run.live() {
                Lived::Poisoned => {}
                Lived::Crashed(kind) => run.crash(kind),
                Lived::Done => break,
                Lived::Over => {
                    is_over = true;
                    break;
                }
            }
        }
        if let Some(failure) = run.failure() {
            self.keep(self.scenario.as_ref().clone(), &recorded, failure);
            return;
        }
        for name in choices.take_watched().into_iter().map(|watched| watched.name) {
            let before = recorded.iter().filter(|deviation| {
                let (life, site) = (deviation.name.life, deviation.name.site);
                life < name.life || life == name.life && !matches!(site, Site::Crash | Site::PowerLoss)
            });
            let before: Vec<Deviation> = before.cloned().collect();
            let (mut run, _) = self.begin(with_crash(&before, &name, CrashKind::PowerLoss));
            loop {
                match run.live() {
                    Lived::Poisoned => {}
                    Lived::Crashed(kind) if run.machine.life() < name.life => run.crash(kind),
                    Lived::Crashed(_) | Lived::Done | Lived::Over => break,
                }
            }
            for kind in KINDS {
                self.at(&run, kind, &with_crash(&before, &name, kind), self.extent.depth);
            }
        }
        if !is_over {
            let life = run.machine.life();
            let is_finale = |deviation: &&Deviation| {
                deviation.name.life == life && deviation.name.site == Site::PowerLoss
            };
            let course: Vec<Deviation> =
                recorded.iter().filter(|deviation| !is_finale(deviation)).cloned().collect();
            for kind in KINDS {
                self.at(&run, kind, &course, self.extent.depth);
            }
        }
    }

    fn begin(&self, deviations: Vec<Deviation>) -> (Run<Machine>, Choices) {
        let choices = Choices::new(Source::Recorded { deviations, strict: false });
        let machine = Machine::new(choices.clone(), machine_options(self.scenario, false));
        (Run::new(machine, self.scenario, RunOptions::default()), choices)
    }

    /// Judges what a crash of this kind may leave now.
    fn at(&mut self, run: &Run<Machine>, kind: CrashKind, course: &[Deviation], depth: u32) {
        if self.stopped || !(self.goes_on)(&self.explored.coverage) {
            self.stopped = true;
            return;
        }
        let seed = self.scenario.entropy ^ self.explored.coverage.points;
        let point = Point { run, kind, course, depth };
        let space = outcomes(kind, self.extent.bounds, seed, |picks| self.attempt(&point, picks));
        let coverage = &mut self.explored.coverage;
        coverage.points += 1;
        coverage.exhaustive += u64::from(space.is_exhaustive);
        if !space.is_exhaustive {
            coverage.units_most = coverage.units_most.max(space.units.into());
        }
    }

    /// Makes one outcome of the crash, and judges its image unless it was judged before.
    fn attempt(&mut self, point: &Point<'_>, picks: Vec<u64>) -> Tried {
        let choices = Choices::new(Source::Enumerated { picks });
        let mut run = point.run.fork(choices.clone());
        choices.watch(Some(Site::PowerLoss));
        run.crash(point.kind);
        let met = choices.take_watched();
        self.explored.coverage.outcomes += 1;
        let image = (run.machine.disk_digest(), run.moment(), point.depth);
        let is_new = self.seen.insert(image);
        if is_new {
            let is_deep = point.depth > 1 && image.0.is_multiple_of(self.extent.deep_one_in.max(1));
            self.judge(point, run, &choices, is_deep);
        }
        Tried { met, is_new, goes_on: !self.stopped }
    }

    fn judge(&mut self, point: &Point<'_>, mut run: Run<Machine>, choices: &Choices, is_deep: bool) {
        let coverage = &mut self.explored.coverage;
        coverage.images += 1;
        coverage.deep_images += u64::from(point.depth < self.extent.depth);
        coverage.not_deepened += u64::from(point.depth > 1 && !is_deep);
        run.only_verify();
        let restarted = is_deep.then(|| run.fork(Choices::new(Source::Default)));
        choices.watch(is_deep.then_some(Site::Crash));
        let course = [point.course, &choices.recorded()].concat();
        run.live();
        if let Some(failure) = run.failure() {
            self.keep(self.up_to(&run, point.kind), &course, failure);
        } else if let Some(restarted) = restarted {
            self.deepen(&restarted, choices.take_watched(), &course, point.depth - 1);
            // What was recovered and read does not roll back.
            for kind in KINDS {
                self.at(&run, kind, &course, point.depth - 1);
            }
        }
    }

    /// Crashes a recovery wherever it can.
    fn deepen(&mut self, restarted: &Run<Machine>, points: Vec<Watched>, course: &[Deviation], depth: u32) {
        for Watched { name, .. } in points {
            let deviations = with_crash(&[], &name, CrashKind::PowerLoss);
            let mut run = restarted.fork(Choices::new(Source::Recorded { deviations, strict: false }));
            run.live();
            for kind in KINDS {
                self.at(&run, kind, &with_crash(course, &name, kind), depth);
            }
        }
    }

    /// The scenario without what had not begun.
    fn up_to(&self, run: &Run<Machine>, last: CrashKind) -> Scenario {
        let mut scenario = self.scenario.as_ref().clone();
        for (client, begun) in scenario.clients.iter_mut().zip(run.begun()) {
            client.operations.truncate(begun);
        }
        if scenario.operation_count() < self.scenario.operation_count() {
            (scenario.close, scenario.settle) = (false, false);
        }
        scenario.finale = match last {
            CrashKind::PowerLoss => Finale::PowerLoss,
            CrashKind::ProcessDeath => Finale::ProcessDeath,
        };
        scenario
    }

    fn keep(&mut self, mut scenario: Scenario, course: &[Deviation], failure: Failure) {
        let found = &mut self.explored.found;
        let same = found.iter().filter(|found| found.failure.fingerprint == failure.fingerprint).count();
        if same >= self.extent.found_max {
            return;
        }
        scenario.deviations = course.to_vec();
        scenario.crashes.clear();
        scenario.finale_keep = None;
        let bug = match &self.scenario.expect {
            Expectation::Failure { bug, .. } => bug.clone(),
            Expectation::Pass => None,
        };
        scenario.expect = Expectation::Failure { fingerprint: failure.fingerprint.clone(), bug };
        let scenario = Arc::new(scenario);
        let source = Source::Recorded { deviations: course.to_vec(), strict: false };
        let report = run(&scenario, source, RunOptions::default());
        let replays = report.fingerprint() == Some(&*failure.fingerprint);
        found.push(FoundImage { scenario: Arc::unwrap_or_clone(scenario), failure, replays });
    }
}

/// A course and its crash.
fn with_crash(course: &[Deviation], name: &ChoiceName, kind: CrashKind) -> Vec<Deviation> {
    let pick = match kind {
        CrashKind::PowerLoss => 1,
        CrashKind::ProcessDeath => 2,
    };
    let crash = Deviation { name: name.clone(), pick };
    course.iter().cloned().chain([crash]).collect()
}

#[cfg(test)]
mod tests;
