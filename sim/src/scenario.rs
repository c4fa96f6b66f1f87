//! A scenario: everything that decides how a run goes, as a value and as a file.
//!
//! A seed only *generates* a scenario. What is run, saved, shrunk and replayed is the scenario: the operations of each
//! client, the engine's options, and the deviations from the undisturbed course, by name.

mod file;
mod generate;

pub use file::ScenarioError;

use crate::choices::{ABANDONED, ChoiceName, Deviation, Site};
use crate::disk::{CLASSES, Fault, Faults};
use crate::machine::CrashKind;
use ironleaf::Options;
use ironleaf_model::{Limits, Operation};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it is about, in one line.
    pub title: String,
    /// The promise that it puts to the test.
    pub promise: String,
    /// Determines every random number that the engine draws. Below 2^63.
    pub entropy: u64,
    /// Runs under madsim, whose schedule follows from this seed, instead of the laboratory's executor. Below 2^63.
    pub madsim: Option<u64>,
    /// How the run ends when all operations are done.
    pub finale: Finale,
    /// What a power loss in the finale keeps.
    pub finale_keep: Option<Keep>,
    /// Whether, when all operations are done, a checkpoint must bring back memory and space.
    pub settle: bool,
    /// Whether the database is closed before the finale.
    pub close: bool,
    /// What may fail; the deviations say what does.
    pub faults: Vec<Fault>,
    /// The memory budget of each later open, the last for all behind it; none keeps that of the options.
    pub reopen_memory_bytes: Vec<usize>,
    /// How the database is opened.
    pub options: EngineOptions,
    /// What each client does.
    pub clients: Vec<Client>,
    /// Crashes that were placed by hand: the first ends the first life, and so on.
    pub crashes: Vec<PlannedCrash>,
    /// How the run differs from its undisturbed course.
    pub deviations: Vec<Deviation>,
    /// What must come of it.
    pub expect: Expectation,
}

/// What kind of trouble a campaign makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Power loss, process death and crash loops.
    #[default]
    Crash,
    /// The same, and injected faults: I/O errors, full disks, stalls; and reopening with less memory.
    Faults,
    /// Crashes, and a medium that lies: rot, stale and foreign sectors, misdirected reads and writes, lying syncs,
    /// truncated, foreign and lost files.
    Corruption,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 3] = [Self::Crash, Self::Faults, Self::Corruption];

    /// What the command line calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Faults => "faults",
            Self::Corruption => "corruption",
        }
    }
}

/// How a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finale {
    /// Power loss, and the database is opened once more.
    #[default]
    PowerLoss,
    /// The process is killed, and the database is opened once more.
    ProcessDeath,
    /// The process ends in order, and the database is opened once more.
    None,
}

/// What a power loss keeps of what was not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Everything.
    All,
    /// Nothing.
    None,
    /// Everything but the newest change.
    AllButNewest,
    /// Nothing but the newest change.
    OnlyNewest,
    /// Everything, but of the newest write over several sectors only the first one.
    NewestTorn,
    /// Everything but changes of directory entries.
    NoEntries,
    /// Everything but changes of file lengths.
    NoLengths,
    /// Everything but what was still in flight.
    NotInFlight,
}

impl Keep {
    /// The class of outcome in [`CLASSES`].
    fn class(self) -> &'static str {
        match self {
            Self::All => "kept_all",
            Self::None => "dropped_all",
            Self::AllButNewest => "one_dropped",
            Self::OnlyNewest => "one_kept",
            Self::NewestTorn => "torn",
            Self::NoEntries => "entries_dropped",
            Self::NoLengths => "lengths_dropped",
            Self::NotInFlight => "in_flight_dropped",
        }
    }
}

/// The part of the engine's options that scenarios set; the defaults are far smaller than the engine's, so that logs
/// rotate, checkpoints run and pages split within a few operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "as in ironleaf::Options")]
pub struct EngineOptions {
    pub memory_bytes: usize,
    pub log_segment_bytes: usize,
    pub page_bytes: usize,
    pub page_segment_bytes: usize,
    pub value_bytes_max: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 512 << 10,
            log_segment_bytes: 16 << 10,
            page_bytes: 512,
            page_segment_bytes: 16 << 10,
            value_bytes_max: 4 << 10,
        }
    }
}

impl EngineOptions {
    /// The engine's options.
    #[must_use]
    pub fn to_options(&self) -> Options {
        Options {
            memory_bytes: self.memory_bytes,
            log_segment_bytes: self.log_segment_bytes,
            page_bytes: self.page_bytes,
            page_segment_bytes: self.page_segment_bytes,
            // So few that segments are closed while others are read.
            page_files_max: 2,
            value_bytes_max: self.value_bytes_max,
            ..Options::default()
        }
    }

    /// What the engine refuses with these options.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits { value_bytes_max: self.value_bytes_max }
    }
}

/// A client: a task that carries out operations one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// In order.
    pub operations: Vec<Numbered>,
}

/// An operation and the number by which choices, reports and crashes name it. It keeps its number when others go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// Unique in the scenario.
    pub id: u32,
    /// What is done.
    pub operation: Arc<Operation>,
}

/// Operations of the client at `index` are numbered from here.
#[must_use]
pub fn first_id(client: usize) -> u32 {
    u32::try_from(client * 1000 + 1).expect("scenarios have few clients")
}

/// What the task of the client at `index` is called.
#[must_use]
pub fn client_name(index: usize) -> String {
    format!("client-{index}")
}

/// The label of the crash point that follows each acknowledgement.
pub const ACKNOWLEDGED: &str = "ack";

/// The label of the crash point behind `operation`.
pub(crate) fn end_label(operation: &Operation) -> &'static str {
    if matches!(operation, Operation::Abandon { .. }) { ABANDONED } else { ACKNOWLEDGED }
}

/// A crash that was placed by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCrash {
    /// Where.
    pub at: CrashPlace,
    /// Of which kind.
    pub kind: CrashKind,
    /// What it keeps of what was not durable.
    pub keep: Option<Keep>,
}

/// Where a crash happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrashPlace {
    /// Right after this operation was acknowledged.
    After(u32),
    /// At a crash point of the disk.
    During {
        /// Its label.
        label: String,
        /// The task on whose behalf it is passed.
        actor: String,
        /// The operation of that task.
        operation: Option<u32>,
        /// Which of the points with all this in common, counted from 1.
        occurrence: u32,
    },
}

/// What must come of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expectation {
    /// Every promise holds.
    #[default]
    Pass,
    /// The run fails like this.
    Failure {
        /// The failure's fingerprint.
        fingerprint: String,
        /// The planted bug that makes it fail; it fails in no build without it.
        bug: Option<String>,
    },
}

impl Scenario {
    /// All deviations: the recorded ones, and those that the planned crashes stand for.
    #[must_use]
    pub fn all_deviations(&self) -> Vec<Deviation> {
        let mut deviations = self.deviations.clone();
        for (life, crash) in (0..).zip(&self.crashes) {
            let name = match &crash.at {
                CrashPlace::After(operation) => ChoiceName {
                    life,
                    site: Site::Crash,
                    label: self.operation(*operation).map_or(ACKNOWLEDGED, end_label).to_owned(),
                    actor: self.owner(*operation).map(client_name).unwrap_or_default(),
                    operation: Some(*operation),
                    ordinal: 0,
                },
                CrashPlace::During { label, actor, operation, occurrence } => ChoiceName {
                    life,
                    site: Site::Crash,
                    label: label.clone(),
                    actor: actor.clone(),
                    operation: *operation,
                    ordinal: occurrence.saturating_sub(1),
                },
            };
            let pick = match crash.kind {
                CrashKind::PowerLoss => 1,
                CrashKind::ProcessDeath => 2,
            };
            deviations.push(Deviation { name, pick });
            deviations.extend(kept(life, crash.kind, crash.keep));
        }
        if self.finale == Finale::PowerLoss {
            let life = u32::try_from(self.crashes.len()).expect("scenarios have few crashes");
            deviations.extend(kept(life, CrashKind::PowerLoss, self.finale_keep));
        }
        deviations
    }

    /// The knobs that are on.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.faults.iter().copied().collect()
    }

    /// How the database is opened for the first time (0), and so on.
    #[must_use]
    pub fn options_of(&self, open: u64) -> Options {
        let mut options = self.options.to_options();
        let later = usize::try_from(open).unwrap_or(usize::MAX).min(self.reopen_memory_bytes.len());
        if let Some(memory_bytes) = later.checked_sub(1).map(|at| self.reopen_memory_bytes[at]) {
            options.memory_bytes = memory_bytes;
        }
        options
    }

    /// The client that carries out an operation.
    #[must_use]
    pub fn owner(&self, operation: u32) -> Option<usize> {
        self.clients
            .iter()
            .position(|client| client.operations.iter().any(|numbered| numbered.id == operation))
    }

    fn operation(&self, id: u32) -> Option<&Operation> {
        let mut operations = self.clients.iter().flat_map(|client| &client.operations);
        operations.find(|numbered| numbered.id == id).map(|numbered| &*numbered.operation)
    }

    /// Number of operations of all clients.
    #[must_use]
    pub fn operation_count(&self) -> usize {
        self.clients.iter().map(|client| client.operations.len()).sum()
    }
}

/// The deviation that makes a power loss keep what `keep` says.
fn kept(life: u32, kind: CrashKind, keep: Option<Keep>) -> Option<Deviation> {
    let class = keep.filter(|_| kind == CrashKind::PowerLoss)?.class();
    let pick = CLASSES.iter().position(|name| *name == class).filter(|pick| *pick != 0)?;
    let name = ChoiceName {
        life,
        site: Site::PowerLoss,
        label: "class".to_owned(),
        actor: "machine".to_owned(),
        operation: None,
        ordinal: 0,
    };
    Some(Deviation { name, pick: pick as u64 })
}

#[cfg(test)]
mod tests;
