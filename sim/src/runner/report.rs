//! What comes of a run.

use super::RunOptions;
use super::life::Shared;
use crate::choices::{Choices, Deviation, Divergence, Site};
use crate::disk::FaultCount;
use crate::lives::{Lives, Remains};
use ironleaf_model::{Promise, Violation};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What two runs that fail the same way have in common.
    pub fingerprint: String,
    /// One readable line.
    pub message: String,
}

impl Failure {
    pub(super) fn new(fingerprint: impl Into<String>, message: impl Into<String>) -> Self {
        let fingerprint = fingerprint.into();
        debug_assert!(is_fingerprint(&fingerprint), "a scenario that expects {fingerprint} would be refused");
        Self { fingerprint, message: message.into() }
    }

    /// A panic is known by its file: messages hold values, and lines move.
    pub(super) fn panic(message: &str) -> Self {
        let place = message.rsplit_once(" (").map_or("", |(_, place)| place.trim_end_matches(')'));
        let file = place.split(':').next().unwrap_or_default();
        Self::new(format!("panic: {file}"), format!("the engine panicked: {message}"))
    }
}

/// What fingerprints begin with, besides the names of promises.
pub(crate) const FAILURES: [&str; 9] =
    ["panic", "open", "reading", "checkpoint", "close", "check", "stuck", "endless", "timed out"];

/// Whether some run can fail like that: a promise or one of [`FAILURES`], and perhaps a colon and a detail.
pub(crate) fn is_fingerprint(text: &str) -> bool {
    let name = text.split(": ").next().unwrap_or_default();
    FAILURES.contains(&name) || Promise::ALL.iter().any(|promise| promise.name() == name)
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self { fingerprint: violation.fingerprint(), message: violation.what }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fingerprint, self.message)
    }
}

/// What became of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationReport {
    /// The life in which it began.
    pub life: u32,
    /// Which client carried it out.
    pub client: usize,
    /// Its number.
    pub id: u32,
    /// Its text.
    pub operation: String,
    /// How it ended; `None` if a crash cut it off.
    pub outcome: Option<String>,
}

impl fmt::Display for OperationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.outcome.as_deref().unwrap_or("unknown: cut off by a crash");
        write!(f, "client {} operation {}: {} -> {outcome}", self.client, self.id, self.operation)
    }
}

/// Everything that came of a run.
#[derive(Debug)]
pub struct RunReport {
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// The first recorded deviation that did not fit, where replay was strict.
    pub divergence: Option<Divergence>,
    /// Whether it ended early, after the operation of [`RunOptions::until`].
    pub stopped: bool,
    /// Equal digests, equal runs.
    pub digest: u64,
    /// Events that the digest covers.
    pub events: u64,
    /// How long it took on the simulated machine's clock.
    pub virtual_time: Duration,
    /// Operations that ended.
    pub operations: u64,
    /// Crashes, the finale included.
    pub crashes: u64,
    /// Opens that recovered a state.
    pub recoveries: u64,
    /// Outcomes of power losses that had an effect, by kind.
    pub losses: BTreeMap<&'static str, u64>,
    /// Opens that failed with good reason.
    pub failed_opens: u64,
    /// Whether damage kept the database from being opened; that ends a run.
    pub refusals: u64,
    /// Faults that were injected, by kind.
    pub faults: BTreeMap<&'static str, FaultCount>,
    /// What became of each operation, in the order in which they began. With [`RunOptions::details`].
    pub results: Vec<OperationReport>,
    /// What each recovery found. With [`RunOptions::details`].
    pub recovered: Vec<String>,
    /// A line for each event. With [`RunOptions::trace`].
    pub trace: Vec<String>,
    /// The files at the end. With [`RunOptions::dump`].
    pub files: Vec<(PathBuf, Vec<u8>)>,
    choices: Choices,
}

impl RunReport {
    /// Every deviation of the run, in the order met: as a source, they make the same run again.
    #[must_use]
    pub fn recorded(&self) -> Vec<Deviation> {
        self.choices.recorded()
    }

    /// How often each kind of deviation was taken.
    #[must_use]
    pub fn fired(&self) -> BTreeMap<(Site, String), u64> {
        self.choices.fired()
    }

    /// Recorded deviations that the run did not come to.
    #[must_use]
    pub fn unmet(&self) -> Vec<Deviation> {
        self.choices.unmet()
    }

    /// The failure's fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> Option<&str> {
        self.failure.as_ref().map(|failure| failure.fingerprint.as_str())
    }

    /// What a user sees of a run, one line each: results, recovered states, failure. Free of anything that changes
    /// when the engine does the same things in another order.
    #[must_use]
    pub fn outcome(&self) -> String {
        let mut text = String::new();
        let mut push = |line: &dyn fmt::Display| text.push_str(&format!("{line}\n"));
        let last = self.results.last().map_or(0, |result| result.life);
        let mut recovered = self.recovered.iter();
        for life in 0..=last.max(self.recovered.len().saturating_sub(1) as u32) {
            if let Some(state) = recovered.next() {
                push(state);
            }
            for result in self.results.iter().filter(|result| result.life == life) {
                push(result);
            }
        }
        match &self.failure {
            None => push(&"every promise held"),
            Some(failure) => push(&format_args!("FAILED {failure}")),
        }
        text
    }
}

pub(super) fn report(
    shared: &Shared,
    machine: &impl Lives,
    choices: Choices,
    crashes: u64,
    options: RunOptions,
) -> RunReport {
    let state = shared.take_state();
    // The life in which a run was stopped, by request or by a failure, might still have met its deviations.
    let is_cut_short = state.stopped || state.failure.is_some();
    let divergence = if is_cut_short { choices.divergence() } else { choices.finish() };
    let Remains { digest, events, virtual_time, losses, faults, trace } = machine.remains();
    RunReport {
        failure: state.failure,
        divergence,
        stopped: state.stopped,
        digest,
        events,
        virtual_time,
        operations: state.operations,
        crashes: crashes + u64::from(state.finale_begun),
        recoveries: state.recoveries,
        losses,
        failed_opens: state.failed_opens,
        refusals: state.refusals,
        faults,
        results: state.results,
        recovered: state.recovered,
        trace,
        files: if options.dump { machine.disk_dump() } else { Vec::new() },
        choices,
    }
}
