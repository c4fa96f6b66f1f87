//! `lab replay`: one scenario.

use crate::arguments::ReplayArguments;
use crate::output::{read_scenario, write_file};
use crate::{Misuse, Verdict};
use ironleaf_sim::choices::Source;
use ironleaf_sim::runner::{RunOptions, RunReport, run};
use ironleaf_sim::scenario::{Expectation, Scenario};
use std::path::Path;
use std::sync::Arc;

/// Runs a scenario and compares what came of it with what it expects.
pub fn replay(arguments: &ReplayArguments) -> Result<Verdict, Misuse> {
    let scenario = Arc::new(read_scenario(&arguments.file)?);
    if let Some(id) = arguments.until.filter(|id| scenario.owner(*id).is_none()) {
        return Err(Misuse(format!("--until {id}: {} has no operation {id}", arguments.file.display())));
    }
    plant(&scenario, &arguments.file)?;
    let source = Source::Recorded { deviations: scenario.all_deviations(), strict: !arguments.tolerant };
    let options = RunOptions {
        trace: arguments.trace,
        details: true,
        until: arguments.until,
        dump: arguments.dump.is_some(),
    };
    let report = run(&scenario, source, options);
    println!("{} (promise: {})", scenario.title, scenario.promise);
    for line in &report.trace {
        println!("{line}");
    }
    print!("{}", report.outcome());
    println!(
        "digest {:016x} over {} events, {:?} simulated",
        report.digest, report.events, report.virtual_time
    );
    if let Some(directory) = &arguments.dump {
        dump(&report, directory)?;
    }
    if report.failure.is_none() && arguments.until.is_some() {
        println!("stopped before the end: the expectation is not compared");
        return Ok(Verdict::Clean);
    }
    if let Some(divergence) = &report.divergence {
        println!("DIVERGED: {divergence}");
        println!("  the scenario no longer fits the code; --tolerant drops what does not fit");
        return Ok(Verdict::Failed);
    }
    Ok(compare(&scenario.expect, &report))
}

/// Activates the planted bug that a scenario is about.
pub fn plant(scenario: &Scenario, file: &Path) -> Result<(), Misuse> {
    let Expectation::Failure { bug: Some(bug), .. } = &scenario.expect else { return Ok(()) };
    #[cfg(ironleaf_planted)]
    {
        let _ = file;
        if ironleaf::lab::plant(Some(bug)) {
            return Ok(());
        }
        Err(Misuse(format!("there is no planted bug called {bug}; `cargo lab list` shows them")))
    }
    #[cfg(not(ironleaf_planted))]
    Err(Misuse(format!(
        "this scenario needs the planted bug {bug}, which this build does not have; use `cargo museum replay {}`",
        file.display()
    )))
}

/// Says whether the expectation was met.
fn compare(expect: &Expectation, report: &RunReport) -> Verdict {
    match (expect, report.fingerprint()) {
        (Expectation::Pass, None) => {
            println!("as expected: pass");
            Verdict::Clean
        }
        (Expectation::Failure { fingerprint, .. }, Some(found)) if found == fingerprint => {
            println!("as expected: {found}");
            Verdict::Clean
        }
        (expect, found) => {
            let expected = match expect {
                Expectation::Pass => "pass",
                Expectation::Failure { fingerprint, .. } => fingerprint.as_str(),
            };
            println!("NOT as expected: expected {expected}, found {}", found.unwrap_or("pass"));
            Verdict::Failed
        }
    }
}

/// Writes the simulated files below a real directory.
fn dump(report: &RunReport, directory: &Path) -> Result<(), Misuse> {
    for (path, bytes) in &report.files {
        let relative = path.strip_prefix("/").unwrap_or(path);
        write_file(&directory.join(relative), bytes)?;
    }
    println!("{} files of the simulated disk are in {}", report.files.len(), directory.display());
    Ok(())
}
