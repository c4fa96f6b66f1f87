//! Scenarios under madsim: the same seed is the same run, and the engine keeps its promises there too.
#![cfg(all(madsim, tokio_unstable))]

use ironleaf_sim::choices::{Choices, Source};
use ironleaf_sim::machine::{LifeEnd, MachineOptions};
use ironleaf_sim::madsim::{MadsimMachine, simulate};
use ironleaf_sim::runner::{RunOptions, RunReport, run};
use ironleaf_sim::scenario::Scenario;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const TRACED: RunOptions = RunOptions { trace: true, details: false, until: None, dump: false };

fn scenario(seed: u64) -> Arc<Scenario> {
    Arc::new(Scenario { madsim: Some(seed), ..Scenario::generate(seed) })
}

fn explore(seed: u64) -> RunReport {
    run(&scenario(seed), Source::Seeded { seed }, RunOptions::default())
}

#[test]
fn the_same_seed_is_the_same_run() {
    let mut digests = BTreeSet::new();
    for seed in 0..100 {
        let first = explore(seed);
        assert_eq!(first.failure, None, "seed {seed}");
        let second = run(&scenario(seed), Source::Seeded { seed }, TRACED);
        assert_eq!((second.digest, second.events), (first.digest, first.events), "seed {seed}");
        assert_eq!(second.trace.len() as u64, second.events);
        digests.insert(first.digest);
    }
    assert_eq!(digests.len(), 100, "different seeds are different runs");
}

#[test]
fn a_recorded_run_replays_event_for_event() {
    for seed in 0..100 {
        let first = explore(seed);
        let deviations = first.recorded();
        let source = Source::Recorded { deviations, strict: true };
        let second = run(&scenario(seed), source, RunOptions::default());
        assert_eq!(second.divergence, None, "seed {seed}");
        assert_eq!((second.digest, second.events), (first.digest, first.events), "seed {seed}");
    }
}

#[test]
fn another_seed_of_madsim_is_another_schedule_of_the_same_scenario() {
    let source = || Source::Seeded { seed: 1 };
    let one = run(&scenario(1), source(), RunOptions::default());
    let other = Arc::new(Scenario { madsim: Some(2), ..Scenario::generate(1) });
    assert_ne!(run(&other, source(), RunOptions::default()).digest, one.digest);
}

#[test]
fn a_partition_holds_everything_until_it_heals() {
    let heals = |seed| {
        simulate(seed, |runtime| {
            let choices = Choices::new(Source::Default);
            let mut machine = MadsimMachine::new(runtime, choices, MachineOptions::default());
            let (env, network, handle) = (machine.env(), machine.network(), machine.handle());
            let end = machine.run(async move {
                let listener = env.network.listen("machine:0").await?;
                let mut client = env.network.connect(&listener.address()).await?;
                let (mut server, _) = listener.accept().await?;
                network.hold();
                client.write_all(b"meanwhile").await?;
                let (clock, start) = (env.clock.clone(), handle.now());
                let healer = async move {
                    clock.sleep(Duration::from_secs(5)).await;
                    network.release();
                };
                let _healer = env.spawner.spawn("healer", Box::pin(healer));
                let mut received = [0; 9];
                server.read_exact(&mut received).await?;
                assert_eq!(&received, b"meanwhile");
                let held = handle.now() - start;
                assert!(held >= Duration::from_secs(5), "bytes crossed the partition after {held:?}");
                Ok::<_, io::Error>(held)
            });
            match end {
                LifeEnd::Finished(Ok(held)) => held,
                other => panic!("seed {seed}: {other:?}"),
            }
        })
    };
    for seed in 0..10 {
        assert_eq!(heals(seed), heals(seed), "the same seed is the same run");
    }
}
