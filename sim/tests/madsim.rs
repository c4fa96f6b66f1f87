//! Scenarios under madsim: the same seed is the same run, and the engine keeps its promises there too.
#![cfg(all(madsim, tokio_unstable))]

use ironleaf_sim::madsim;
use ironleaf_sim::runner::{RunOptions, RunReport};
use ironleaf_sim::scenario::Scenario;
use std::sync::Arc;

fn run(seed: u64, options: RunOptions) -> RunReport {
    madsim::run(&Arc::new(Scenario::generate(seed)), seed, options)
}

#[test]
fn the_same_seed_is_the_same_run() {
    let traced = RunOptions { trace: true, ..RunOptions::default() };
    let mut digests = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let first = run(seed, RunOptions::default());
        assert_eq!(first.failure, None, "seed {seed}");
        let second = run(seed, traced);
        assert_eq!(second.digest, first.digest, "seed {seed}");
        assert_eq!(second.events, first.events, "seed {seed}");
        assert_eq!(second.trace.len() as u64, second.events);
        digests.insert(first.digest);
    }
    assert_eq!(digests.len(), 100, "different seeds are different runs");
}
