//! `lab shrink`: cuts a failing scenario down.

use crate::arguments::ShrinkArguments;
use crate::output::{read_scenario, replay_command, write_file};
use crate::replay::plant;
use crate::{Misuse, Verdict};
use indicatif::ProgressBar;
use ironleaf_sim::choices::Source;
use ironleaf_sim::runner::{RunOptions, run};
use ironleaf_sim::shrink::{ShrinkLimits, shrink as cut_down};
use std::sync::Arc;

/// Cuts a scenario down and writes the result.
pub fn shrink(arguments: &ShrinkArguments) -> Result<Verdict, Misuse> {
    let scenario = Arc::new(read_scenario(&arguments.file)?);
    plant(&scenario, &arguments.file)?;
    let source = Source::Recorded { deviations: scenario.all_deviations(), strict: false };
    let Some(failure) = run(&scenario, source, RunOptions::default()).failure else {
        return Err(Misuse(format!(
            "{} does not fail, so there is nothing to shrink",
            arguments.file.display()
        )));
    };
    let bar = ProgressBar::new_spinner();
    let shrunk = cut_down(&scenario, &failure.fingerprint, ShrinkLimits::default(), |progress| {
        bar.set_message(format!("{} operations, {} deviations", progress.operations, progress.deviations));
        bar.tick();
        true
    });
    bar.finish_and_clear();
    let output = arguments.output.clone().unwrap_or_else(|| {
        let name = arguments.file.file_stem().unwrap_or_default().to_string_lossy();
        arguments.file.with_file_name(format!("{name}-shrunk.toml"))
    });
    write_file(&output, shrunk.scenario.to_toml())?;
    say!(
        "{}: from {} operations and {} deviations to {} and {} in {} replays",
        failure.fingerprint,
        scenario.operation_count(),
        scenario.deviations.len(),
        shrunk.scenario.operation_count(),
        shrunk.scenario.deviations.len(),
        shrunk.replays
    );
    say!("replay with: {} {}", replay_command(&shrunk.scenario), output.display());
    Ok(Verdict::Clean)
}
