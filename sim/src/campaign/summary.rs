//! What comes of a campaign.

use crate::choices::Site;
use crate::disk::{CLASSES, DAMAGE_KINDS, FAULT_KINDS, FaultCount};
use crate::runner::{Failure, RunReport};
use crate::scenario::{Family, Scenario};
use crate::shrink::Shrunk;
use ironleaf::lab::FAULT_PROBES;
use std::collections::BTreeMap;
use std::time::Duration;

/// Totals over all seeds, and what failed.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// What kind of trouble was made.
    pub family: Family,
    /// Seeds that were run.
    pub seeds: u64,
    /// Seeds that were run a second time and compared.
    pub repeated: u64,
    /// Operations that ended.
    pub operations: u64,
    /// Crashes.
    pub crashes: u64,
    /// Opens that recovered a state.
    pub recoveries: u64,
    /// Events that the digests cover.
    pub events: u64,
    /// Time on the simulated machines' clocks.
    pub virtual_time: Duration,
    /// Outcomes of power losses that had an effect, by kind.
    pub losses: BTreeMap<&'static str, u64>,
    /// Opens that failed with good reason.
    pub failed_opens: u64,
    /// Databases that could not be opened for damage, and were salvaged or had nothing to show.
    pub refusals: u64,
    /// Faults that were injected, by kind.
    pub faults: BTreeMap<&'static str, FaultCount>,
    /// Deviations that were taken, by site and label.
    pub fired: BTreeMap<(Site, String), u64>,
    /// Runs that failed, by seed.
    pub found: Vec<Found>,
    /// Runs whose repetition differed, by seed.
    pub nondeterministic: Vec<Nondeterminism>,
}

/// A run that failed.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its seed.
    pub seed: u64,
    /// Why it failed.
    pub failure: Failure,
    /// It, as recorded.
    pub recorded: Scenario,
    /// It, cut down.
    pub shrunk: Option<Shrunk>,
}

/// A run whose repetition differed: no result of the laboratory can be trusted until that is repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nondeterminism {
    /// The seed.
    pub seed: u64,
    /// The first difference.
    pub what: String,
}

/// Sites of which a campaign must take deviations.
const SITES: [Site; 5] = [Site::Wake, Site::Point, Site::Latency, Site::Crash, Site::PowerLoss];
/// Outcomes of power losses beyond the classes.
const EFFECTS: [&str; 4] = ["entry_lost", "length_lost", "in_flight_kept", "in_flight_lost"];

/// From so many seeds on, a campaign takes every kind of deviation, and has every kind of loss.
pub const LOSSES_FROM_SEEDS: u64 = 500;
/// From so many seeds on, a campaign passes every probe; some take rare meetings of clients.
pub const PROBES_FROM_SEEDS: u64 = 2000;

impl Summary {
    /// Every kind of outcome that a power loss may have.
    pub fn loss_kinds() -> impl Iterator<Item = &'static str> {
        CLASSES.into_iter().chain(EFFECTS)
    }

    /// How many deviations of each site were taken.
    #[must_use]
    pub fn fired_by_site(&self) -> BTreeMap<Site, u64> {
        let faults = (self.family != Family::Crash).then_some(Site::Fault);
        let mut sites: BTreeMap<Site, u64> = SITES.into_iter().chain(faults).map(|site| (site, 0)).collect();
        for ((site, _), count) in &self.fired {
            *sites.entry(*site).or_default() += count;
        }
        sites
    }

    /// Every kind of fault that the family injects, and how often.
    pub fn fault_counts(&self) -> impl Iterator<Item = (&'static str, FaultCount)> {
        let kinds = match self.family {
            Family::Crash => &[][..],
            Family::Faults => &FAULT_KINDS,
            Family::Corruption => &DAMAGE_KINDS,
        };
        kinds.iter().map(|kind| (*kind, self.faults.get(kind).copied().unwrap_or_default()))
    }

    /// What a campaign of this many seeds claims to exercise but never did; `probes` are the engine's counters.
    #[must_use]
    pub fn cold(&self, probes: &[(&'static str, u64)]) -> Vec<String> {
        let losses = Self::loss_kinds()
            .filter(|kind| self.losses.get(kind).is_none_or(|count| *count == 0))
            .map(|kind| format!("loss {kind}"));
        let sites = self.fired_by_site().into_iter().filter(|(_, count)| *count == 0);
        let probes = self.probes_expected(probes).into_iter().filter(|(_, count)| *count == 0);
        let probes = probes.map(|(name, _)| format!("probe {name}"));
        let faults = self.fault_counts().filter(|(_, count)| count.effective == 0);
        let losses = losses.chain(sites.map(|(site, _)| format!("choice {site}")));
        let losses = losses.chain(faults.map(|(kind, _)| format!("fault {kind}")));
        let mut cold = Vec::new();
        if self.seeds >= LOSSES_FROM_SEEDS {
            cold.extend(losses);
        }
        if self.seeds >= PROBES_FROM_SEEDS {
            cold.extend(probes);
        }
        cold
    }

    /// Those of the engine's `probes` that this family can pass.
    #[must_use]
    pub fn probes_expected(&self, probes: &[(&'static str, u64)]) -> Vec<(&'static str, u64)> {
        let is_expected = |name: &str| self.family == Family::Faults || !FAULT_PROBES.contains(&name);
        probes.iter().filter(|(name, _)| is_expected(name)).copied().collect()
    }

    pub(super) fn add(&mut self, report: &RunReport) {
        self.seeds += 1;
        self.operations += report.operations;
        self.crashes += report.crashes;
        self.recoveries += report.recoveries;
        self.events += report.events;
        self.virtual_time += report.virtual_time;
        for (kind, count) in &report.losses {
            *self.losses.entry(kind).or_default() += count;
        }
        self.failed_opens += report.failed_opens;
        self.refusals += report.refusals;
        self.add_faults(&report.faults);
        for (name, count) in report.fired() {
            *self.fired.entry(name).or_default() += count;
        }
    }

    fn add_faults(&mut self, faults: &BTreeMap<&'static str, FaultCount>) {
        for (kind, count) in faults {
            let total = self.faults.entry(kind).or_default();
            total.fired += count.fired;
            total.effective += count.effective;
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.repeated += other.repeated;
        self.operations += other.operations;
        self.crashes += other.crashes;
        self.recoveries += other.recoveries;
        self.events += other.events;
        self.virtual_time += other.virtual_time;
        for (kind, count) in other.losses {
            *self.losses.entry(kind).or_default() += count;
        }
        self.failed_opens += other.failed_opens;
        self.refusals += other.refusals;
        self.add_faults(&other.faults);
        for (name, count) in other.fired {
            *self.fired.entry(name).or_default() += count;
        }
        self.found.extend(other.found);
        self.nondeterministic.extend(other.nondeterministic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cold_depends_on_the_number_of_seeds() {
        let cold = |seeds| Summary { seeds, ..Summary::default() }.cold(&[("hot", 1), ("dim", 0)]);
        let kinds = Summary::loss_kinds().count() + SITES.len();
        assert_eq!(cold(LOSSES_FROM_SEEDS - 1), [""; 0]);
        assert_eq!(cold(PROBES_FROM_SEEDS - 1).len(), kinds);
        assert_eq!(cold(PROBES_FROM_SEEDS).len(), kinds + 1);
        assert_eq!(cold(PROBES_FROM_SEEDS).last().map(String::as_str), Some("probe dim"));
    }
}
