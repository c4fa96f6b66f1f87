//! Every implementation of the seam keeps its promises: the operating system's, the simulated machine's, and the same
//! machine's under madsim and on turmoil, the simulated ones on the undisturbed course and on many disturbed ones.
//! Streams are checked on one machine, and on turmoil between two as well (`turmoil_hosts`).
//!
//! Trials are called `conformance::ENVIRONMENT::PROMISE`, so the filter `conformance` runs them all. What an environment
//! cannot do stands in [`EXEMPTIONS`], and its trial passes only as long as that is so.

use ironleaf::env::Env;
use ironleaf::env::conformance::{CHECKS, Check, Peers, STREAM_CHECKS, StreamCheck};
use ironleaf::env::os::environment;
use ironleaf_sim::choices::{Choices, Source};
use ironleaf_sim::machine::{LifeEnd, Machine, MachineOptions};
use ironleaf_sim::turmoil::Simulation;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Seeds under which each promise is checked, besides the undisturbed course.
const SEEDS: u64 = 50;

/// How a promise is checked in one environment.
type Run = fn(Promise) -> Result<(), Failed>;

const ENVIRONMENTS: &[(&str, Run)] = &[
    ("os", on_this_machine),
    ("lab", |promise| on_many_courses(|_, source| on_a_machine(promise, source))),
    #[cfg(all(madsim, tokio_unstable))]
    ("madsim", |promise| on_many_courses(|seed, source| under_madsim(promise, seed, source))),
    ("turmoil", |promise| on_many_courses(|seed, source| on_turmoil(promise, seed, source))),
    ("turmoil_hosts", |promise| on_many_courses(|seed, source| between_hosts(promise, seed, source))),
];

/// Promises that an environment does not keep: its name, the promise, and why.
const EXEMPTIONS: &[(&str, &str, &str)] = &[
    ("turmoil", MADE_BEFORE_ACCEPTED, "a connect of turmoil ends when the peer accepts"),
    ("turmoil_hosts", MADE_BEFORE_ACCEPTED, "as on one machine"),
];
const MADE_BEFORE_ACCEPTED: &str = "a_connection_is_made_before_it_is_accepted";

/// What is checked.
#[derive(Clone, Copy)]
enum Promise {
    Seam(Check),
    Streams(StreamCheck),
}

impl Promise {
    fn all() -> impl Iterator<Item = Self> {
        CHECKS.iter().copied().map(Self::Seam).chain(STREAM_CHECKS.iter().copied().map(Self::Streams))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Seam(check) => check.name,
            Self::Streams(check) => check.name,
        }
    }

    /// `directory` is empty.
    async fn check(self, env: Env, directory: PathBuf) {
        match self {
            Self::Seam(check) => (check.run)(env, directory).await,
            Self::Streams(check) => {
                let address = "localhost:0".to_owned();
                (check.run)(Peers { server: env.clone(), client: env, address }).await;
            }
        }
    }

    /// Whether two machines can have part in it.
    const fn is_of_two(self) -> bool {
        matches!(self, Self::Streams(_))
    }
}

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for &(environment, run) in ENVIRONMENTS {
        let promises = Promise::all().filter(|promise| environment != "turmoil_hosts" || promise.is_of_two());
        trials.extend(promises.map(|promise| {
            let name = format!("conformance::{environment}::{}", promise.name());
            let exemption = EXEMPTIONS
                .iter()
                .find(|(of, name, _)| (*of, *name) == (environment, promise.name()))
                .map(|(_, _, why)| *why);
            Trial::test(name, move || match exemption {
                None => run(promise),
                Some(why) if run(promise).is_ok() => Err(format!("kept, and exempt since {why}").into()),
                Some(_) => Ok(()),
            })
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn on_this_machine(promise: Promise) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        promise.check(environment()?, directory.path().to_path_buf()).await;
        Ok(())
    })
}

fn on_many_courses(keeps: impl Fn(u64, Source) -> Result<(), String>) -> Result<(), Failed> {
    keeps(0, Source::Default).map_err(|end| format!("on the undisturbed course: {end}"))?;
    for seed in 0..SEEDS {
        keeps(seed, Source::Seeded { seed }).map_err(|end| format!("under seed {seed}: {end}"))?;
    }
    Ok(())
}

fn on_a_machine(promise: Promise, source: Source) -> Result<(), String> {
    let mut machine = Machine::new(Choices::new(source), MachineOptions::default());
    let main = in_a_new_directory(promise, machine.env());
    outcome(machine.run(main))
}

/// The seed is that of madsim's schedule.
#[cfg(all(madsim, tokio_unstable))]
fn under_madsim(promise: Promise, seed: u64, source: Source) -> Result<(), String> {
    use ironleaf_sim::madsim::{MadsimMachine, simulate};
    simulate(seed, |runtime| {
        let mut machine = MadsimMachine::new(runtime, Choices::new(source), MachineOptions::default());
        let main = in_a_new_directory(promise, machine.env());
        outcome(machine.run(main))
    })
}

/// turmoil walks through the time in which nothing happens.
fn impatient() -> MachineOptions {
    MachineOptions { virtual_time_max: Duration::from_secs(10), ..MachineOptions::default() }
}

/// The seed is that of turmoil's latencies.
fn on_turmoil(promise: Promise, seed: u64, source: Source) -> Result<(), String> {
    let mut simulation = Simulation::new(seed);
    let machine = simulation.machine("machine", Choices::new(source), impatient());
    let main = in_a_new_directory(promise, machine.env());
    outcome(simulation.run(&machine, main))
}

/// Streams between two machines.
fn between_hosts(promise: Promise, seed: u64, source: Source) -> Result<(), String> {
    let Promise::Streams(check) = promise else { return Err("a promise of one machine".to_owned()) };
    let mut simulation = Simulation::new(seed);
    let mut machine = |name| simulation.machine(name, Choices::new(source.clone()), impatient());
    let (server, client) = (machine("server"), machine("client"));
    let peers = Peers { server: server.env(), client: client.env(), address: "server:0".to_owned() };
    outcome(simulation.run(&client, async move {
        (check.run)(peers).await;
        Ok(())
    }))
}

async fn in_a_new_directory(promise: Promise, env: Env) -> Result<(), String> {
    let directory = PathBuf::from("/checked");
    env.disk.create_dir(&directory).await.map_err(|error| error.to_string())?;
    promise.check(env, directory).await;
    Ok(())
}

/// A course on which the machine crashes shows nothing and is passed over.
fn outcome(end: LifeEnd<Result<(), String>>) -> Result<(), String> {
    match end {
        LifeEnd::Finished(outcome) => outcome,
        LifeEnd::Crashed(_) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
