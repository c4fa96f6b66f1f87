//! Runs a scenario from its first life to its last, and judges what came of it.
//!
//! ```text
//!            ┌──────────── crash ◀────────────┐
//!            ▼                                │ (at any moment)
//!   open ─▶ read everything ─▶ judge the life before ─▶ clients go on ─▶ check ─▶ close? ─▶ finale
//!            ▲                                                                              │
//!            └──────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Where faults are injected, an open may fail for them and is tried again; the faults end after a few attempts, when
//! all operations are done, and for the last open. What works again then is probed. A database that is poisoned is
//! opened anew by another process after its clients have been refused a few times.
//!
//! A client goes on after the operation that the crash cut off; what became of that one is for the checker to find
//! out. The snapshots that a client held go with the life.

mod life;
mod perform;
mod probe;
mod report;
mod salvage;
mod settle;

pub(crate) use report::{FAILURES, is_fingerprint};
pub use report::{Failure, OperationReport, RunReport};

use crate::choices::{Choices, Source};
use crate::disk::Fault;
use crate::lives::Lives;
use crate::machine::{CrashKind, LifeEnd, Machine, MachineOptions};
use crate::scenario::{Finale, Scenario};
use ironleaf_model::Crash;
use life::{Ended, Shared};
use std::sync::Arc;
use std::time::Duration;

/// Crashes after which a run counts as endless. Policies crash far less often.
const LIVES_MAX: u32 = 64;
/// How many crash points the policy expects for each operation.
const CRASH_POINTS_PER_OPERATION: u64 = 6;

/// What is kept of a run besides its verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// A line for each event.
    pub trace: bool,
    /// What became of each operation, and what each recovery found.
    pub details: bool,
    /// Stop once this operation has ended.
    pub until: Option<u32>,
    /// The files at the end.
    pub dump: bool,
}

/// Whether this build has madsim.
pub const HAS_MADSIM: bool = cfg!(all(madsim, tokio_unstable));

/// Runs a scenario; its choices come from `source`.
///
/// # Panics
/// If the scenario runs under madsim, and this build does not have it ([`HAS_MADSIM`]).
#[must_use]
pub fn run(scenario: &Arc<Scenario>, source: Source, options: RunOptions) -> RunReport {
    let choices = Choices::new(source);
    choices.set_crash_points(scenario.operation_count() as u64 * CRASH_POINTS_PER_OPERATION);
    let machine = machine_options(scenario, options.trace);
    match scenario.madsim {
        None => run_on(Machine::new(choices.clone(), machine), choices, scenario, options),
        #[cfg(all(madsim, tokio_unstable))]
        Some(seed) => crate::madsim::simulate(seed, |runtime| {
            let machine = crate::madsim::MadsimMachine::new(runtime, choices.clone(), machine);
            run_on(machine, choices, scenario, options)
        }),
        #[cfg(not(all(madsim, tokio_unstable)))]
        Some(_) => panic!("this build does not have madsim"),
    }
}

/// How the machine of a scenario is built.
pub(crate) fn machine_options(scenario: &Scenario, trace: bool) -> MachineOptions {
    MachineOptions {
        entropy_seed: scenario.entropy,
        trace,
        virtual_time_max: Duration::from_secs(600),
        polls_max: 1_000_000,
        disk_bytes_max: None,
    }
}

/// Runs a scenario on a new machine of whatever simulator.
fn run_on<M: Lives>(
    machine: M,
    choices: Choices,
    scenario: &Arc<Scenario>,
    options: RunOptions,
) -> RunReport {
    let mut run = Run::new(machine, scenario, options);
    loop {
        match run.live() {
            Lived::Over => break,
            Lived::Poisoned => {}
            Lived::Done => run.end(scenario.finale),
            Lived::Crashed(kind) => run.crash(kind),
        }
    }
    report::report(&run.shared, &run.machine, choices, run.crashes, options)
}

/// A run between two lives of its machine.
pub(crate) struct Run<M> {
    pub(crate) machine: M,
    shared: Arc<Shared>,
    crashes: u64,
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lived {
    /// The last one: the run failed, was stopped, or what its finale left is verified.
    Over,
    /// Its database was poisoned: its process has ended, and another one opens what it left.
    Poisoned,
    /// All operations are done: the finale comes.
    Done,
    /// The machine is to crash.
    Crashed(CrashKind),
}

impl<M: Lives> Run<M> {
    /// A run that has not begun.
    pub(crate) fn new(machine: M, scenario: &Arc<Scenario>, options: RunOptions) -> Self {
        let shared = Arc::new(Shared::new(Arc::clone(scenario), options, machine.trouble()));
        Self { machine, shared, crashes: 0 }
    }

    /// Runs the machine until its life ends.
    pub(crate) fn live(&mut self) -> Lived {
        if self.shared.scenario.faults.contains(&Fault::Decay) {
            self.machine.decay();
        }
        let main = life::live(Arc::clone(&self.shared), self.machine.env(), self.machine.handle());
        let failure = match self.machine.run(main) {
            LifeEnd::Finished(Ended::Failed | Ended::Stopped | Ended::Verified | Ended::Refused) => {
                return Lived::Over;
            }
            LifeEnd::Finished(Ended::Poisoned) => {
                self.shared.crashed(Crash::ProcessDeath);
                return Lived::Poisoned;
            }
            LifeEnd::Finished(Ended::OperationsDone) => return Lived::Done,
            LifeEnd::Crashed(kind) => {
                self.crashes += 1;
                // The poll that passed the crash point still ended, and may have shown a broken promise.
                if self.shared.has_failed() {
                    return Lived::Over;
                }
                if self.machine.life() + 1 < LIVES_MAX {
                    return Lived::Crashed(kind);
                }
                Failure::new("endless", format!("the run was not over after {LIVES_MAX} crashes"))
            }
            LifeEnd::Stuck(tasks) => Failure::new("stuck", format!("nothing can go on; waiting: {tasks}")),
            LifeEnd::Panicked(message) => Failure::panic(&message),
            LifeEnd::TimedOut(bound) => Failure::new("timed out", format!("no end after {bound}")),
        };
        self.shared.fail(failure);
        Lived::Over
    }

    /// Takes the machine down, and leaves it at the beginning of its next life.
    pub(crate) fn crash(&mut self, kind: CrashKind) {
        self.shared.crashed(crash_of(kind));
        self.machine.restart(kind);
    }

    /// Ends the life in which all operations were done.
    fn end(&mut self, finale: Finale) {
        match finale {
            Finale::PowerLoss => self.crash(CrashKind::PowerLoss),
            Finale::ProcessDeath => self.crash(CrashKind::ProcessDeath),
            Finale::None => self.shared.crashed(Crash::ProcessDeath),
        }
    }
}

impl Run<Machine> {
    /// The same run on a second machine in the same state, with choices of its own. See [`Machine::fork`].
    pub(crate) fn fork(&self, choices: Choices) -> Self {
        let machine = self.machine.fork(choices);
        let shared = Arc::new(self.shared.fork(machine.trouble()));
        Self { machine, shared, crashes: self.crashes }
    }

    /// From now on the run is about what can be recovered: the next life ends when that is verified.
    pub(crate) fn only_verify(&self) {
        self.shared.lock().finale_begun = true;
    }

    /// Why the run has failed, if it has.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.shared.lock().failure.clone()
    }

    /// See [`History::moment`](ironleaf_model::History::moment).
    pub(crate) fn moment(&self) -> [u64; 5] {
        self.shared.lock().history.moment()
    }

    /// For each client, how many operations it has begun.
    pub(crate) fn begun(&self) -> Vec<usize> {
        self.shared.lock().begun().to_vec()
    }
}

fn crash_of(kind: CrashKind) -> Crash {
    match kind {
        CrashKind::PowerLoss => Crash::PowerLoss,
        CrashKind::ProcessDeath => Crash::ProcessDeath,
    }
}
