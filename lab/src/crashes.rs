//! `lab crashes`: every disk that a crash may leave.

use crate::arguments::CrashesArguments;
use crate::interrupt::{self, interrupted};
use crate::measure::{cpu_time, jobs};
use crate::output::{grouped, read_scenario, replay_command, table, writable, write_scenario};
use crate::replay::plant;
use crate::{Misuse, Verdict};
use indicatif::{ProgressBar, ProgressStyle};
use ironleaf_sim::crash_images::{
    Bounds, Coverage, Explored, Extent, FoundImage, bounded, bounded_count, explore,
};
use ironleaf_sim::scenario::Scenario;
use ironleaf_sim::shrink::{ShrinkLimits, shrink};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Explores the scenarios of some files, or all short ones.
pub fn crashes(arguments: &CrashesArguments) -> Result<Verdict, Misuse> {
    let mut files = Vec::new();
    for file in &arguments.files {
        let scenario = read_scenario(file)?;
        if scenario.madsim.is_some() {
            return Err(Misuse(format!(
                "{} runs under madsim, whose schedule has no crash points to enumerate",
                file.display()
            )));
        }
        files.push((file, Arc::new(scenario)));
    }
    let made_for_this = !arguments.report.exists();
    writable(&arguments.report)?;
    interrupt::listen();
    let mut verdict = Verdict::Clean;
    for (file, scenario) in files {
        plant(&scenario, file)?;
        say!("{}: {}", file.display(), scenario.title);
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let one = [scenario];
        let work = Work {
            scenarios: &|_| Arc::clone(&one[0]),
            count: 1,
            extent: extent(arguments),
            jobs: 1,
            only_first: false,
        };
        verdict = verdict.and(run(arguments, &name, &work)?);
    }
    if let Some(longest) = arguments.bounded {
        say!("every scenario of 1 to {longest} operations");
        let work = Work::bounded(longest, extent(arguments), jobs(arguments.jobs));
        verdict = verdict.and(run(arguments, "bounded", &work)?);
    }
    if made_for_this {
        // It goes if nothing was written into it.
        let _ = std::fs::remove_dir(&arguments.report);
    }
    Ok(verdict)
}

fn extent(arguments: &CrashesArguments) -> Extent {
    let bounds = Bounds { units_max: arguments.units, images_max: arguments.images };
    Extent { depth: arguments.depth, bounds, deep_one_in: arguments.recoveries, ..Extent::default() }
}

/// The short scenario of this number, the shortest first.
fn nth_bounded(mut index: u64) -> Scenario {
    for operations in 1.. {
        let count = bounded_count(operations);
        if index < count {
            return bounded(operations, index);
        }
        index -= count;
    }
    unreachable!("the number of scenarios has no bound")
}

/// What is to be explored.
pub struct Work<'a> {
    pub scenarios: &'a (dyn Fn(u64) -> Arc<Scenario> + Sync),
    pub count: u64,
    pub extent: Extent,
    pub jobs: usize,
    /// Whether the first image that fails ends the work.
    pub only_first: bool,
}

impl Work<'static> {
    /// Every scenario of 1 to `longest` operations.
    pub fn bounded(longest: u32, extent: Extent, jobs: usize) -> Self {
        let count = (1..=longest).map(bounded_count).sum();
        Self { scenarios: &|index| Arc::new(nth_bounded(index)), count, extent, jobs, only_first: false }
    }
}

/// Explores on several threads; `goes_on` is told the images so far.
pub fn explore_all(work: &Work<'_>, goes_on: &(dyn Fn(u64, u64) -> bool + Sync)) -> Explored {
    let (next, images, stopped) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let total = Mutex::new(Explored::default());
    let explore_some = || {
        while !stopped.load(Relaxed) {
            let index = next.fetch_add(1, Relaxed);
            if index >= work.count {
                break;
            }
            let mut before = 0;
            let explored = explore(&(work.scenarios)(index), work.extent, |coverage| {
                let so_far = images.fetch_add(coverage.images - before, Relaxed) + coverage.images - before;
                before = coverage.images;
                if !goes_on(index, so_far) {
                    stopped.store(true, Relaxed);
                }
                !stopped.load(Relaxed)
            });
            images.fetch_add(explored.coverage.images - before, Relaxed);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            total.coverage += explored.coverage;
            total.found.extend(explored.found);
            if work.only_first && !total.found.is_empty() {
                stopped.store(true, Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..work.jobs.max(1) {
            scope.spawn(explore_some);
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run(arguments: &CrashesArguments, name: &str, work: &Work<'_>) -> Result<Verdict, Misuse> {
    let (start, cpu) = (Instant::now(), cpu_time());
    let template = if work.count > 1 { "{bar:40} {pos}/{len} scenarios, {msg}" } else { "{spinner} {msg}" };
    let style = ProgressStyle::with_template(template).expect("the template is valid");
    let bar = ProgressBar::new(work.count).with_style(style);
    let explored = explore_all(work, &|index, images| {
        bar.set_position(index);
        bar.set_message(format!("{} images", grouped(images)));
        !interrupted()
    });
    bar.finish_and_clear();
    let coverage = explored.coverage;
    let cpu = (cpu_time() - cpu).as_secs_f64().max(1e-9);
    let row = |name: &str, text: String| vec![name.to_owned(), text];
    say!(
        "{}",
        table(&[
            row(
                "crash points",
                format!("{}, each for power loss and process death", grouped(coverage.points))
            ),
            row("outcomes", format!("{} tried", grouped(coverage.outcomes))),
            row(
                "images",
                format!(
                    "{} recovered and judged, {} of them after a crash of a recovery or right behind it",
                    grouped(coverage.images),
                    grouped(coverage.deep_images)
                )
            ),
            row("coverage", described(&coverage, &work.extent, interrupted())),
            row("time", format!("{:.1} s, {cpu:.1} s of CPU", start.elapsed().as_secs_f64())),
            row("speed", format!("{:.0} images per CPU-second", coverage.images as f64 / cpu)),
        ])
        .trim_end()
    );
    let mut seen = BTreeSet::new();
    for found in &explored.found {
        // One of each kind is enough to begin with.
        if seen.insert(&found.failure.fingerprint) {
            report(&arguments.report, &format!("crashes-{name}-{}", seen.len()), found)?;
        }
    }
    if !explored.found.is_empty() {
        say!("FAILED");
        return Ok(Verdict::Failed);
    }
    if interrupted() {
        say!("interrupted; clean so far");
        return Ok(Verdict::Interrupted);
    }
    if coverage.images < 2 {
        say!("VACUOUS: the scenario has no crash point at which anything is pending");
        return Ok(Verdict::Failed);
    }
    say!("clean");
    Ok(Verdict::Clean)
}

fn described(coverage: &Coverage, extent: &Extent, is_cut_short: bool) -> String {
    if coverage.is_exhaustive() && !is_cut_short {
        return format!("EXHAUSTIVE to depth {}: every legal image at every point", extent.depth);
    }
    let mut text = format!(
        "every legal image at {} of {} points",
        grouped(coverage.exhaustive),
        grouped(coverage.points)
    );
    if coverage.exhaustive < coverage.points {
        text.push_str(&format!(
            "; at the others, with up to {} units pending, classes and random subsets up to {} images",
            coverage.units_most, extent.bounds.images_max
        ));
    }
    if is_cut_short {
        text.push_str("; interrupted before the rest");
    }
    if coverage.not_deepened > 0 {
        text.push_str(&format!("; {} recoveries were not crashed", grouped(coverage.not_deepened)));
    }
    text
}

/// Cuts down and writes what shows an image that fails.
fn report(directory: &Path, name: &str, found: &FoundImage) -> Result<(), Misuse> {
    say!("FAILED: {}", found.failure);
    let command = replay_command(&found.scenario);
    if !found.replays {
        let file = write_scenario(directory, name, &found.scenario)?;
        say!("  NOT DETERMINISTIC: its scenario does not fail like that: {command} {}", file.display());
        return Ok(());
    }
    let fingerprint = &found.failure.fingerprint;
    let shrunk = shrink(&found.scenario, fingerprint, ShrinkLimits::default(), |_| !interrupted());
    say!(
        "  cut down to {} operations and {} deviations in {} replays",
        shrunk.scenario.operation_count(),
        shrunk.scenario.deviations.len(),
        shrunk.replays
    );
    let file = write_scenario(directory, name, &shrunk.scenario)?;
    say!("  replay with: {command} {}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_interrupted_is_not_exhaustive() {
        let coverage = Coverage { points: 7, exhaustive: 7, ..Coverage::default() };
        let extent = Extent::default();
        assert!(described(&coverage, &extent, false).starts_with("EXHAUSTIVE"));
        let cut_short = described(&coverage, &extent, true);
        assert_eq!(cut_short, "every legal image at 7 of 7 points; interrupted before the rest");
    }

    #[test]
    fn short_scenarios_come_first() {
        let operations = |index| nth_bounded(index).operation_count();
        assert_eq!([0, 7, 8, 71, 72].map(operations), [1, 1, 2, 2, 3]);
    }
}
