//! Every file in `scenarios/` is a test of its own: it is replayed strictly, must meet its own expectation, and what a
//! user sees of it (results, recovered states, error texts) must be what its snapshot says. Traces are not compared:
//! they change with every edit of the engine.
//!
//! The scenarios in `scenarios/museum/` need a planted bug, which `cargo museum` builds have; here they must be well
//! formed and name a bug that there is.
//!
//! One alone: `cargo test -p ironleaf-sim --test scenarios NAME`. After a change of outcome that is meant:
//! `INSTA_UPDATE=always`, and review the difference.

use ironleaf_sim::choices::Source;
use ironleaf_sim::runner::{RunOptions, run};
use ironleaf_sim::scenario::{Expectation, Scenario};
use libtest_mimic::{Arguments, Failed, Trial};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let mut trials: Vec<Trial> = files(&directory)
        .into_iter()
        .map(|(name, file)| {
            let directory = directory.clone();
            Trial::test(name.clone(), move || replay(&directory, &file, &name))
        })
        .collect();
    let found = trials.len();
    let museum = files(&directory.join("museum")).into_iter();
    trials
        .extend(museum.map(|(name, file)| Trial::test(format!("museum/{name}"), move || names_a_bug(&file))));
    trials.push(Trial::test("there_are_scenarios", move || {
        if found < 20 { Err(format!("only {found} scenarios were found").into()) } else { Ok(()) }
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The scenarios in a directory, by name.
fn files(directory: &Path) -> Vec<(String, PathBuf)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("the directory can be read").path())
        .filter(|path| path.extension() == Some(OsStr::new("toml")))
        .collect();
    files.sort();
    let name = |file: &Path| file.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    files.into_iter().map(|file| (name(&file), file)).collect()
}

fn names_a_bug(file: &Path) -> Result<(), Failed> {
    let scenario = Scenario::from_toml(&file.display().to_string(), &std::fs::read_to_string(file)?)?;
    let Expectation::Failure { bug: Some(bug), .. } = &scenario.expect else {
        return Err("it expects no failure by a planted bug".into());
    };
    if !ironleaf::lab::PLANTED.iter().any(|planted| planted.name == bug) {
        return Err(format!("there is no planted bug called {bug}").into());
    }
    Ok(())
}

fn replay(directory: &Path, file: &Path, name: &str) -> Result<(), Failed> {
    let text = std::fs::read_to_string(file)?;
    let scenario = Arc::new(Scenario::from_toml(&file.display().to_string(), &text)?);
    let source = Source::Recorded { deviations: scenario.all_deviations(), strict: true };
    let report = run(&scenario, source, RunOptions { details: true, ..RunOptions::default() });
    let outcome = report.outcome();
    if let Some(divergence) = report.divergence {
        return Err(format!("the scenario does not fit any more: {divergence}").into());
    }
    let met = match &scenario.expect {
        Expectation::Pass => report.failure.is_none(),
        Expectation::Failure { fingerprint, .. } => report.fingerprint() == Some(fingerprint),
    };
    if !met {
        return Err(format!("expected {:?}, but:\n{outcome}", scenario.expect).into());
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(directory.join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(&scenario.title);
    // A snapshot that differs panics, which libtest-mimic reports as the failure of this test.
    settings.bind(|| insta::assert_snapshot!(name, outcome));
    Ok(())
}
