//! Where the answers come from: zeros, a seeded policy, a recorded list, or an enumerator.

use super::names::{Deviation, Group, Key, Map, Names, Site};
use super::policy::{ABANDONED, Policy};
use crate::disk::DECAYS;
use std::fmt;

/// Where a run's choices come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The undisturbed course.
    Default,
    /// A policy that explores; all of it follows from the seed.
    Seeded {
        /// The seed.
        seed: u64,
    },
    /// The undisturbed course but for these deviations.
    Recorded {
        /// What deviates.
        deviations: Vec<Deviation>,
        /// Whether a deviation that does not fit is reported rather than dropped.
        strict: bool,
    },
    /// The undisturbed course, but what a crash keeps is decided by these picks, in the order in which they come up;
    /// by zeros behind them. For an enumerator.
    Enumerated {
        /// The picks at [`Site::PowerLoss`].
        picks: Vec<u64>,
    },
}

/// A recorded deviation that did not fit the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// What the recording asks for.
    pub expected: Deviation,
    /// What the run came to instead.
    pub met: Met,
}

/// What a run came to where a recorded deviation did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// The choice came up with only so many alternatives.
    Alternatives(u64),
    /// The life ended when choices of this name, whatever their ordinal, had come up so often.
    Occurrences(u32),
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}; met ", self.expected)?;
        match self.met {
            Met::Alternatives(limit) => write!(f, "a choice between {limit} alternatives there"),
            Met::Occurrences(0) => f.write_str("no such choice in that life"),
            Met::Occurrences(count) => write!(f, "only {count} of these choices in that life"),
        }
    }
}

/// A source at work.
pub(super) enum Course {
    Default,
    Seeded(Box<Policy>),
    Recorded(Recording),
    Enumerated(std::vec::IntoIter<u64>),
}

/// A recorded list, indexed by name.
pub(super) struct Recording {
    steps: Vec<RecordedStep>,
    by_key: Map<Key, usize>,
    strict: bool,
    divergence: Option<Divergence>,
}

struct RecordedStep {
    key: Key,
    pick: u64,
    met: bool,
}

impl Course {
    pub(super) fn new(source: Source, names: &mut Names) -> Self {
        match source {
            Source::Default => Self::Default,
            Source::Seeded { seed } => {
                Self::Seeded(Box::new(Policy::new(seed, [ABANDONED, DECAYS].map(|label| names.label(label)))))
            }
            Source::Recorded { deviations, strict } => {
                Self::Recorded(Recording::new(&deviations, strict, names))
            }
            Source::Enumerated { picks } => Self::Enumerated(picks.into_iter()),
        }
    }

    pub(super) fn pick(&mut self, key: &Key, limit: u64, names: &Names) -> u64 {
        match self {
            Self::Default => 0,
            Self::Seeded(policy) => policy.pick(key.group.site, key.group.label, limit),
            Self::Recorded(recording) => recording.pick(key, limit, names),
            Self::Enumerated(picks) if key.group.site == Site::PowerLoss => {
                picks.next().filter(|pick| *pick < limit).unwrap_or(0)
            }
            Self::Enumerated(_) => 0,
        }
    }

    pub(super) fn begin_life(&mut self, life: u32) {
        if let Self::Seeded(policy) = self {
            policy.begin_life(life);
        }
    }

    pub(super) fn end_life(&mut self, life: u32, names: &Names, ordinals: &Map<Group, u32>) {
        if let Self::Recorded(recording) = self {
            recording.end_life(life, names, ordinals);
        }
    }

    pub(super) fn set_crash_points(&mut self, crash_points: u64) {
        if let Self::Seeded(policy) = self {
            policy.set_crash_points(crash_points);
        }
    }

    pub(super) fn unmet(&self, names: &Names) -> Vec<Deviation> {
        match self {
            Self::Recorded(recording) => {
                recording.steps.iter().filter(|step| !step.met).map(|step| step.deviation(names)).collect()
            }
            Self::Default | Self::Seeded(_) | Self::Enumerated(_) => Vec::new(),
        }
    }

    pub(super) fn divergence(&self) -> Option<Divergence> {
        match self {
            Self::Recorded(recording) => recording.divergence.clone(),
            Self::Default | Self::Seeded(_) | Self::Enumerated(_) => None,
        }
    }
}

impl RecordedStep {
    fn deviation(&self, names: &Names) -> Deviation {
        Deviation { name: names.name(&self.key), pick: self.pick }
    }
}

impl Recording {
    fn new(deviations: &[Deviation], strict: bool, names: &mut Names) -> Self {
        let mut by_key = Map::default();
        let mut steps = Vec::with_capacity(deviations.len());
        for deviation in deviations {
            let key = names.key(&deviation.name);
            // A name that occurs twice is met once: the second stays unmet and is reported like any other.
            by_key.entry(key).or_insert(steps.len());
            steps.push(RecordedStep { key, pick: deviation.pick, met: false });
        }
        Self { steps, by_key, strict, divergence: None }
    }

    fn pick(&mut self, key: &Key, limit: u64, names: &Names) -> u64 {
        let Some(index) = self.by_key.get(key) else { return 0 };
        let step = &mut self.steps[*index];
        if step.pick < limit {
            step.met = true;
            return step.pick;
        }
        if self.strict && self.divergence.is_none() {
            self.divergence =
                Some(Divergence { expected: step.deviation(names), met: Met::Alternatives(limit) });
        }
        0
    }

    fn end_life(&mut self, life: u32, names: &Names, ordinals: &Map<Group, u32>) {
        if !self.strict || self.divergence.is_some() {
            return;
        }
        let step = self.steps.iter().find(|step| step.key.life <= life && !step.met);
        self.divergence = step.map(|step| {
            let came_up = if step.key.life == life { ordinals.get(&step.key.group) } else { None };
            Divergence {
                expected: step.deviation(names),
                met: Met::Occurrences(came_up.copied().unwrap_or(0)),
            }
        });
    }
}
