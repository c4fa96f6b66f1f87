//! The seeded policy: explore densely, record, shrink later.
//!
//! Dense delays in virtual time found planted bugs several times faster than few deviations or a random pick of the
//! ready task, because in virtual time the ready queue mostly holds one task: only a delay preempts anything. How
//! dense differs from seed to seed, and crashes fall log-uniformly, because bugs of recovery want short runs and bugs
//! of schedules long ones.

use super::names::{LabelId, Map, Site};
use crate::random::SplitMix64;
use std::time::Duration;

/// What a pick at [`Site::Wake`] or [`Site::Point`] means: pick `i` is a delay of `DELAYS[i - 1]` in virtual time,
/// from shorter than a write to longer than a checkpoint.
pub const DELAYS: [Duration; 8] = [
    Duration::from_micros(1),
    Duration::from_micros(3),
    Duration::from_micros(10),
    Duration::from_micros(30),
    Duration::from_micros(100),
    Duration::from_micros(300),
    Duration::from_millis(1),
    Duration::from_millis(3),
];

/// Probabilities in thousandths, evenly spaced in the logarithm from 0.05 to 0.9.
const DENSITIES: [u64; 8] = [50, 76, 114, 173, 261, 394, 596, 900];

/// The label of the crash point behind an operation that was abandoned. What it had submitted is in flight for moments
/// only, so a crash falls here as often as on `ABANDONED_WEIGHT` other points.
pub const ABANDONED: &str = "abandoned";
const ABANDONED_WEIGHT: u64 = 100;

const CRASH_POINTS_DEFAULT: u64 = 1000;
/// Opening or creating a small database passes about this many crash points.
const OPENING_CRASH_POINTS: u64 = 32;

pub(super) struct Policy {
    random: SplitMix64,
    /// Thousandths of the wake-ups and points that are delayed.
    delays: u64,
    /// Thousandths of the I/Os whose latency deviates.
    latencies: u64,
    /// Thousandths of the operations that fail where a fault may be injected, by the kind of fault and operation.
    fault_rates: Map<LabelId, u64>,
    /// Its own, so that faults do not change what else a seed stands for.
    fault_random: SplitMix64,
    crash_points: u64,
    abandoned: LabelId,
    decays: LabelId,
    /// The life whose crash was not drawn yet: the caller may still say how many crash points there are.
    undrawn: Option<u32>,
    /// Crash points to go until this life's crash.
    crash_in: Option<u64>,
}

impl Policy {
    pub(super) fn new(seed: u64, [abandoned, decays]: [LabelId; 2]) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut density = |numerator, denominator| {
            if random.chance(numerator, denominator) { DENSITIES[random.below(8) as usize] } else { 0 }
        };
        let (delays, latencies) = (density(7, 8), density(1, 3));
        Self {
            random,
            delays,
            latencies,
            fault_rates: Map::default(),
            fault_random: SplitMix64::new(seed ^ 0x0fa1_7d15_c000_0001),
            crash_points: CRASH_POINTS_DEFAULT,
            abandoned,
            decays,
            undrawn: Some(0),
            crash_in: None,
        }
    }

    pub(super) fn set_crash_points(&mut self, crash_points: u64) {
        self.crash_points = crash_points.max(1);
    }

    pub(super) fn begin_life(&mut self, life: u32) {
        self.undrawn = Some(life);
    }

    pub(super) fn pick(&mut self, site: Site, label: LabelId, limit: u64) -> u64 {
        match site {
            Site::Wake | Site::Point => self.deviate(self.delays, limit),
            Site::Latency => self.deviate(self.latencies, limit),
            Site::Fault => self.fault(label, limit),
            Site::PowerLoss => self.random.below(limit),
            Site::Crash => self.crash(label, limit),
        }
    }

    fn deviate(&mut self, thousandths: u64, limit: u64) -> u64 {
        if limit > 1 && self.random.chance(thousandths, 1000) { 1 + self.random.below(limit - 1) } else { 0 }
    }

    /// Each kind of fault has a rate of its own in each seed, log-uniform from one in a thousand operations to one in
    /// eight, or none. Files decay four times as often: there are fewer of them than operations.
    fn fault(&mut self, label: LabelId, limit: u64) -> u64 {
        let random = &mut self.fault_random;
        let rate = *self
            .fault_rates
            .entry(label)
            .or_insert_with(|| if random.chance(1, 4) { 0 } else { 1 << random.below(8) });
        let rate = if label == self.decays { 4 * rate } else { rate };
        if limit > 1 && random.chance(rate, 1000) { 1 + random.below(limit - 1) } else { 0 }
    }

    fn crash(&mut self, label: LabelId, limit: u64) -> u64 {
        if let Some(life) = self.undrawn.take() {
            self.crash_in = self.draw_crash(life);
        }
        let Some(crash_in) = &mut self.crash_in else { return 0 };
        *crash_in = crash_in.saturating_sub(if label == self.abandoned { ABANDONED_WEIGHT } else { 1 });
        if *crash_in > 0 || limit < 2 {
            return 0;
        }
        self.crash_in = None;
        // Power loss three times in four: the death of a process loses less, so it finds less.
        if limit > 2 && self.random.chance(1, 4) { 2 } else { 1 }
    }

    /// A crash in nearly every first life and most second ones, half of these while the database is opened; later
    /// lives crash ever more rarely, so a run ends. Creating the database is passed over most of the time: otherwise
    /// its few crash points, the first of the run, would take half of all crashes.
    fn draw_crash(&mut self, life: u32) -> Option<u64> {
        let (sixteenths, opening) = match life {
            0 => (15, self.random.chance(1, 8)),
            1 => (11, self.random.chance(1, 2)),
            2 => (5, self.random.chance(1, 2)),
            _ => (2, self.random.chance(1, 2)),
        };
        let crash_in = if opening {
            1 + self.random.below(OPENING_CRASH_POINTS)
        } else if self.random.chance(1, 2) {
            OPENING_CRASH_POINTS + self.random.log_uniform(self.crash_points)
        } else {
            OPENING_CRASH_POINTS + 1 + self.random.below(self.crash_points)
        };
        self.random.chance(sixteenths, 16).then_some(crash_in)
    }
}
