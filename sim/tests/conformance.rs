//! The simulated machine keeps every promise of the seam, on the undisturbed course and on many disturbed ones.

use ironleaf::env::conformance::{CHECKS, Check};
use ironleaf_sim::choices::{Choices, Source};
use ironleaf_sim::machine::{LifeEnd, Machine, MachineOptions};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::PathBuf;
use std::process::ExitCode;

/// Seeds under which each promise is checked, besides the undisturbed course.
const SEEDS: u64 = 50;

fn main() -> ExitCode {
    let trials = CHECKS.iter().map(|check| Trial::test(check.name, || on_many_courses(*check))).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn on_many_courses(check: Check) -> Result<(), Failed> {
    keeps(check, Source::Default).map_err(|end| format!("on the undisturbed course: {end}"))?;
    for seed in 0..SEEDS {
        keeps(check, Source::Seeded { seed }).map_err(|end| format!("under seed {seed}: {end}"))?;
    }
    Ok(())
}

/// Runs a check on a new machine. A course on which the machine crashes shows nothing and is passed over.
fn keeps(check: Check, source: Source) -> Result<(), String> {
    let mut machine = Machine::new(Choices::new(source), MachineOptions::default());
    let env = machine.env();
    let main = async move {
        let directory = PathBuf::from("/checked");
        env.disk.create_dir(&directory).await.map_err(|error| error.to_string())?;
        (check.run)(env, directory).await;
        Ok(())
    };
    match machine.run(main) {
        LifeEnd::Finished(outcome) => outcome,
        LifeEnd::Crashed(_) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
