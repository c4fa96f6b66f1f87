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
mod settle;

pub(crate) use report::{FAILURES, is_fingerprint};
pub use report::{Failure, OperationReport, RunReport};

use crate::choices::{Choices, Source};
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
    let machine = MachineOptions {
        entropy_seed: scenario.entropy,
        trace: options.trace,
        virtual_time_max: Duration::from_secs(600),
        polls_max: 1_000_000,
        disk_bytes_max: None,
    };
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

/// Runs a scenario on a new machine of whatever simulator.
fn run_on<M: Lives>(
    mut machine: M,
    choices: Choices,
    scenario: &Arc<Scenario>,
    options: RunOptions,
) -> RunReport {
    let shared = Arc::new(Shared::new(Arc::clone(scenario), options, machine.trouble()));
    let mut crashes = 0;
    loop {
        let main = life::live(Arc::clone(&shared), machine.env(), machine.handle());
        let failure = match machine.run(main) {
            LifeEnd::Finished(Ended::Failed | Ended::Stopped | Ended::Verified) => break,
            LifeEnd::Finished(Ended::Poisoned) => {
                // The process ends, and another one opens what it left.
                shared.crashed(Crash::ProcessDeath);
                continue;
            }
            LifeEnd::Finished(Ended::OperationsDone) => {
                finale(&shared, &mut machine, scenario.finale);
                continue;
            }
            LifeEnd::Crashed(kind) => {
                crashes += 1;
                // The poll that passed the crash point still ended, and may have shown a broken promise.
                if shared.has_failed() {
                    break;
                }
                shared.crashed(crash_of(kind));
                machine.restart(kind);
                if machine.life() < LIVES_MAX {
                    continue;
                }
                Failure::new("endless", format!("the run was not over after {LIVES_MAX} crashes"))
            }
            LifeEnd::Stuck(tasks) => Failure::new("stuck", format!("nothing can go on; waiting: {tasks}")),
            LifeEnd::Panicked(message) => Failure::panic(&message),
            LifeEnd::TimedOut(bound) => Failure::new("timed out", format!("no end after {bound}")),
        };
        shared.fail(failure);
        break;
    }
    report::report(&shared, &machine, choices, crashes, options)
}

/// Ends the life in which all operations were done.
fn finale(shared: &Shared, machine: &mut impl Lives, finale: Finale) {
    let crash = match finale {
        Finale::PowerLoss => Some(CrashKind::PowerLoss),
        Finale::ProcessDeath => Some(CrashKind::ProcessDeath),
        Finale::None => None,
    };
    shared.crashed(crash.map_or(Crash::ProcessDeath, crash_of));
    if let Some(kind) = crash {
        machine.restart(kind);
    }
}

fn crash_of(kind: CrashKind) -> Crash {
    match kind {
        CrashKind::PowerLoss => Crash::PowerLoss,
        CrashKind::ProcessDeath => Crash::ProcessDeath,
    }
}
