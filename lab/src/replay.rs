//! `lab replay`: one scenario.

use crate::arguments::ReplayArguments;
use crate::output::{read_scenario, writable, write_file};
use crate::{Misuse, Verdict};
use ironleaf_sim::choices::Source;
use ironleaf_sim::runner::{RunOptions, RunReport, run};
use ironleaf_sim::scenario::{Expectation, Scenario};
use std::path::Path;
use std::sync::Arc;

/// Runs a scenario and compares what came of it with what it expects.
pub fn replay(arguments: &ReplayArguments) -> Result<Verdict, Misuse> {
    run_and_compare(arguments, false)
}

/// Runs a scenario, and once more if `twice`: a second run that differs is worse than any other finding.
pub fn run_and_compare(arguments: &ReplayArguments, twice: bool) -> Result<Verdict, Misuse> {
    let scenario = Arc::new(read_scenario(&arguments.file)?);
    if let Some(id) = arguments.until.filter(|id| scenario.owner(*id).is_none()) {
        return Err(Misuse(format!("--until {id}: {} has no operation {id}", arguments.file.display())));
    }
    plant(&scenario, &arguments.file)?;
    if let Some(directory) = &arguments.dump {
        let holds_files = std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
        if holds_files {
            return Err(Misuse(format!(
                "--dump {}: the directory holds files; name another",
                directory.display()
            )));
        }
        writable(directory)?;
    }
    let source = || Source::Recorded { deviations: scenario.all_deviations(), strict: !arguments.tolerant };
    let options = RunOptions {
        trace: arguments.trace,
        details: true,
        until: arguments.until,
        dump: arguments.dump.is_some(),
    };
    let report = run(&scenario, source(), options);
    say!("{} (promise: {})", scenario.title, scenario.promise);
    for line in &report.trace {
        say!("{line}");
    }
    say!("{}", report.outcome().trim_end());
    say!("digest {:016x} over {} events, {:?} simulated", report.digest, report.events, report.virtual_time);
    if let Some(directory) = &arguments.dump {
        dump(&report, directory)?;
    }
    if twice {
        let second = run(&scenario, source(), options);
        if second.digest != report.digest || second.failure != report.failure {
            say!("NOT DETERMINISTIC: a second run has the digest {:016x}", second.digest);
            return Ok(Verdict::Failed);
        }
        say!("a second run was the same");
    }
    if let Some(divergence) = &report.divergence {
        say!("DIVERGED: {divergence}");
        say!("  the scenario no longer fits the code; --tolerant drops what does not fit");
        return Ok(Verdict::Failed);
    }
    if report.stopped && report.failure.is_none() {
        say!("stopped before the end: the expectation is not compared");
        return Ok(Verdict::Clean);
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
        "{} needs the planted bug {bug}, which this build does not have; use `cargo museum` with `replay` or `shrink`",
        file.display()
    )))
}

/// Says whether the expectation was met.
fn compare(expect: &Expectation, report: &RunReport) -> Verdict {
    match (expect, report.fingerprint()) {
        (Expectation::Pass, None) => {
            say!("as expected: pass");
            Verdict::Clean
        }
        (Expectation::Failure { fingerprint, .. }, Some(found)) if found == fingerprint => {
            say!("as expected: {found}");
            Verdict::Clean
        }
        (expect, found) => {
            let expected = match expect {
                Expectation::Pass => "pass",
                Expectation::Failure { fingerprint, .. } => fingerprint.as_str(),
            };
            say!("NOT as expected: expected {expected}, found {}", found.unwrap_or("pass"));
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
    say!("{} files of the simulated disk are in {}", report.files.len(), directory.display());
    Ok(())
}
