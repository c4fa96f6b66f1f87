//! How fast the laboratory is on runs of about 200 operations: `cargo run --profile lab -p ironleaf-lab --example speed`.

#![expect(clippy::print_stdout, reason = "an example that prints a measurement")]

use ironleaf_sim::choices::Source;
use ironleaf_sim::runner::{RunOptions, run};
use ironleaf_sim::scenario::Scenario;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::Arc;

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let scenarios: Vec<(u64, Arc<Scenario>)> = (0..100_000)
        .map(|seed| (seed, Scenario::generate(seed)))
        .filter(|(_, scenario)| (185..=215).contains(&scenario.operation_count()))
        .map(|(seed, scenario)| (seed, Arc::new(scenario)))
        .take(1000)
        .collect();
    let start = seconds(clock_gettime(ClockId::ProcessCPUTime));
    let (mut operations, mut crashes, mut failed) = (0, 0, 0);
    for (seed, scenario) in &scenarios {
        let report = run(scenario, Source::Seeded { seed: *seed }, RunOptions::default());
        operations += report.operations;
        crashes += report.crashes;
        failed += u64::from(report.failure.is_some());
    }
    let spent = seconds(clock_gettime(ClockId::ProcessCPUTime)) - start;
    let runs = scenarios.len() as f64;
    println!(
        "{runs} runs of {:.0} operations and {:.1} crashes: {:.0} a CPU-second; {failed} failed",
        operations as f64 / runs,
        crashes as f64 / runs,
        runs / spent
    );
}
