//! Cuts a failing scenario down while it fails the same way.
//!
//! Sweeps of halving blocks, to a fixpoint: first operations, then deviations, then what single operations hold. Each
//! accepted candidate takes over the deviations that its run met, so those that lost their place go by themselves.

mod simpler;

use crate::choices::{Deviation, Source};
use crate::runner::{RunOptions, run};
use crate::scenario::{Expectation, Finale, Scenario};
use std::sync::Arc;

/// When shrinking ends at the latest.
#[derive(Clone, Copy, Debug)]
pub struct ShrinkLimits {
    /// Most runs.
    pub replays_max: u64,
}

impl Default for ShrinkLimits {
    fn default() -> Self {
        Self { replays_max: 4000 }
    }
}

/// A scenario that was cut down.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// It, with the failure as its expectation.
    pub scenario: Scenario,
    /// Runs that it took.
    pub replays: u64,
}

/// How far shrinking has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs so far.
    pub replays: u64,
    /// Operations left.
    pub operations: usize,
    /// Deviations left.
    pub deviations: usize,
}

/// Cuts `scenario`, which fails with `fingerprint`, down. `progress` is told of each step and may stop it.
#[must_use]
pub fn shrink(
    scenario: &Scenario,
    fingerprint: &str,
    limits: ShrinkLimits,
    progress: impl FnMut(Progress) -> bool,
) -> Shrunk {
    let replay = |candidate: &Arc<Scenario>, deviations: &[Deviation]| {
        let source = Source::Recorded { deviations: deviations.to_vec(), strict: false };
        let report = run(candidate, source, RunOptions::default());
        (report.fingerprint() == Some(fingerprint)).then(|| report.recorded())
    };
    let mut shrunk = shrink_with(scenario, limits, replay, progress);
    let bug = match &scenario.expect {
        Expectation::Failure { bug, .. } => bug.clone(),
        Expectation::Pass => None,
    };
    shrunk.scenario.expect = Expectation::Failure { fingerprint: fingerprint.to_owned(), bug };
    shrunk
}

/// Shrinks with any judge: `replay` gives the deviations that the run met if it still fails the same way.
fn shrink_with(
    scenario: &Scenario,
    limits: ShrinkLimits,
    replay: impl FnMut(&Arc<Scenario>, &[Deviation]) -> Option<Vec<Deviation>>,
    progress: impl FnMut(Progress) -> bool,
) -> Shrunk {
    let mut best = scenario.clone();
    // Planned crashes become deviations like all others, to be dropped one by one.
    best.deviations = best.all_deviations();
    best.crashes.clear();
    best.finale_keep = None;
    let mut shrinker = Shrinker { best, replays: 0, limits, stopped: false, replay, progress };
    shrinker.reach_fixpoint();
    Shrunk { scenario: shrinker.best, replays: shrinker.replays }
}

struct Shrinker<R, P> {
    best: Scenario,
    replays: u64,
    limits: ShrinkLimits,
    stopped: bool,
    replay: R,
    progress: P,
}

impl<R, P> Shrinker<R, P>
where
    R: FnMut(&Arc<Scenario>, &[Deviation]) -> Option<Vec<Deviation>>,
    P: FnMut(Progress) -> bool,
{
    fn reach_fixpoint(&mut self) {
        loop {
            let before = self.best.clone();
            self.sweep(Scenario::operation_count, without_operations);
            self.sweep(|scenario| scenario.deviations.len(), without_deviations);
            self.simplify_operations();
            self.simplify_ending();
            if self.stopped || self.best == before {
                return;
            }
        }
    }

    /// Takes `candidate` over if it still fails the same way.
    fn accepts(&mut self, candidate: Scenario) -> bool {
        if self.stopped || self.replays >= self.limits.replays_max {
            self.stopped = true;
            return false;
        }
        self.replays += 1;
        let candidate = Arc::new(candidate);
        let Some(met) = (self.replay)(&candidate, &candidate.deviations) else { return false };
        // The run may know better which deviations matter, but never more of them.
        let deviations =
            if met.len() <= candidate.deviations.len() { met } else { candidate.deviations.clone() };
        self.best = Scenario { deviations, ..Arc::unwrap_or_clone(candidate) };
        let progress = Progress {
            replays: self.replays,
            operations: self.best.operation_count(),
            deviations: self.best.deviations.len(),
        };
        self.stopped = !(self.progress)(progress);
        true
    }

    /// Removes blocks of all, a half, a quarter, … of the parts, from the last block to the first.
    fn sweep(
        &mut self,
        count: impl Fn(&Scenario) -> usize,
        without: impl Fn(&Scenario, usize, usize) -> Scenario,
    ) {
        let mut block = count(&self.best);
        while block > 0 && !self.stopped {
            let mut end = count(&self.best);
            while end > 0 && !self.stopped {
                let start = end.saturating_sub(block);
                let candidate = without(&self.best, start, end);
                self.accepts(candidate);
                // Whatever was taken over may have lost more than the block.
                end = start.min(count(&self.best));
            }
            block /= 2;
        }
    }

    /// Replaces single operations by simpler ones.
    fn simplify_operations(&mut self) {
        for client in 0..self.best.clients.len() {
            let mut at = 0;
            while let Some(numbered) = self.best.clients[client].operations.get(at) {
                if self.stopped {
                    return;
                }
                let accepted = simpler::candidates(&numbered.operation).into_iter().any(|operation| {
                    let mut candidate = self.best.clone();
                    candidate.clients[client].operations[at].operation = Arc::new(operation);
                    self.accepts(candidate)
                });
                // What became simpler once may become simpler again.
                at += usize::from(!accepted);
            }
        }
    }

    fn simplify_ending(&mut self) {
        if self.best.close {
            self.accepts(Scenario { close: false, ..self.best.clone() });
        }
        if self.best.settle {
            self.accepts(Scenario { settle: false, ..self.best.clone() });
        }
        if self.best.finale != Finale::None {
            self.accepts(Scenario { finale: Finale::None, ..self.best.clone() });
        }
        let used = self.best.clients.iter().rposition(|client| !client.operations.is_empty());
        let clients = self.best.clients[..used.map_or(0, |last| last + 1)].to_vec();
        if clients.len() < self.best.clients.len() {
            self.accepts(Scenario { clients, ..self.best.clone() });
        }
    }
}

/// The scenario without the operations from `start` to below `end`, counted over all clients.
fn without_operations(scenario: &Scenario, start: usize, end: usize) -> Scenario {
    let mut candidate = scenario.clone();
    let mut at = 0;
    for client in &mut candidate.clients {
        client.operations.retain(|_| {
            at += 1;
            !(start..end).contains(&(at - 1))
        });
    }
    candidate
}

fn without_deviations(scenario: &Scenario, start: usize, end: usize) -> Scenario {
    let mut candidate = scenario.clone();
    candidate.deviations.drain(start..end);
    candidate
}

#[cfg(test)]
mod tests;
