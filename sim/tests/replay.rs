//! A run is determined by its choices: repeated or replayed from its recording it is the same run, event for event.
//!
//! The workload is a toy: clients append to a log and sync it, one of them rewrites a manifest by rename, and after
//! each crash the next life reads what is left and goes on. It crashes where the seed says.

use bytes::Bytes;
use ironleaf::env::{DiskResult, Env, OpenMode};
use ironleaf_sim::choices::{Choices, Deviation, Source};
use ironleaf_sim::machine::{CrashKind, Handle, LifeEnd, Machine, MachineOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

const CLIENTS: u32 = 3;
const OPERATIONS: u32 = 20;

async fn append(env: &Env, log: &Mutex<u64>, client: u32, operation: u32) -> DiskResult<()> {
    let mut end = log.lock().await;
    let file = env.disk.open(Path::new("log"), OpenMode::ReadWrite).await?;
    let record = Bytes::from(vec![(client + operation) as u8; 200 + operation as usize * 37]);
    let len = record.len() as u64;
    file.write_at(*end, record).await?;
    *end += len;
    env.point("appended").await;
    drop(end);
    file.sync_data().await
}

async fn rewrite(env: &Env, operation: u32) -> DiskResult<()> {
    let name = format!("manifest.{operation}.new");
    let new = Path::new(&name);
    if env.disk.list(Path::new("")).await?.contains(&name) {
        env.disk.remove(new).await?;
    }
    let file = env.disk.open(new, OpenMode::CreateNew).await?;
    file.write_at(0, Bytes::from(operation.to_string())).await?;
    file.sync_data().await?;
    env.disk.rename(new, Path::new("manifest")).await?;
    env.disk.sync_dir(Path::new("")).await
}

/// One life: recovery, then all clients; gives how many bytes of log it found.
async fn live(env: Env, handle: Handle) -> u64 {
    let present = env.disk.list(Path::new("")).await.expect("the root is listed");
    let mode =
        if present.iter().any(|name| name == "log") { OpenMode::ReadWrite } else { OpenMode::CreateNew };
    let file = env.disk.open(Path::new("log"), mode).await.expect("the log is opened");
    env.disk.sync_dir(Path::new("")).await.expect("the root is synced");
    let found = file.len().await.expect("the log has a length");
    handle.note(|| format!("found {found} bytes"));
    let log = Arc::new(Mutex::new(found));
    let (done, mut finished) = tokio::sync::mpsc::unbounded_channel();
    for client in 0..CLIENTS {
        let (env, log, done, inner) = (env.clone(), Arc::clone(&log), done.clone(), handle.clone());
        let work = async move {
            for operation in 0..OPERATIONS {
                inner.set_operation(Some(operation));
                if client == 0 && operation % 5 == 4 {
                    rewrite(&env, operation).await.expect("the manifest is rewritten");
                } else {
                    append(&env, &log, client, operation).await.expect("a record is appended");
                }
                inner.crash_point("acknowledged");
            }
            done.send(()).expect("main waits");
        };
        handle.spawn(format!("client {client}"), Box::pin(work));
    }
    for _ in 0..CLIENTS {
        finished.recv().await.expect("clients do not vanish");
    }
    found
}

/// What can be told about a run from outside.
#[derive(Debug, PartialEq)]
struct Seen {
    digest: u64,
    events: u64,
    lives: u32,
    ends: Vec<LifeEnd<u64>>,
    disk: Vec<(std::path::PathBuf, Vec<u8>)>,
    recorded: Vec<Deviation>,
}

fn run(source: Source, trace: bool) -> (Seen, Machine) {
    let choices = Choices::new(source);
    choices.set_crash_points(400);
    let options = MachineOptions {
        entropy_seed: 5,
        trace,
        virtual_time_max: Duration::from_secs(60),
        ..MachineOptions::default()
    };
    let mut machine = Machine::new(choices.clone(), options);
    let mut ends = Vec::new();
    loop {
        let main = live(machine.env(), machine.handle());
        let end = machine.run(main);
        let kind = match &end {
            LifeEnd::Crashed(kind) => *kind,
            _ => CrashKind::PowerLoss,
        };
        let crashed = matches!(end, LifeEnd::Crashed(_));
        ends.push(end);
        machine.restart(kind);
        if !crashed {
            break;
        }
    }
    let seen = Seen {
        digest: machine.digest(),
        events: machine.events(),
        lives: machine.life(),
        ends,
        disk: machine.disk_dump(),
        recorded: choices.recorded(),
    };
    (seen, machine)
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..100 {
        let (first, _) = run(Source::Seeded { seed }, false);
        assert!(matches!(first.ends.last(), Some(LifeEnd::Finished(_))), "seed {seed}: {:?}", first.ends);
        assert_eq!(run(Source::Seeded { seed }, false).0, first, "seed {seed}");
    }
}

#[test]
fn different_seeds_are_different_runs_with_crashes_and_losses() {
    let mut digests = std::collections::BTreeSet::new();
    let (mut lives, mut losses) = (0, std::collections::BTreeMap::new());
    for seed in 0..500 {
        let (seen, machine) = run(Source::Seeded { seed }, false);
        digests.insert(seen.digest);
        lives += seen.lives;
        for (loss, count) in machine.losses() {
            *losses.entry(loss).or_insert(0) += count;
        }
    }
    assert!(digests.len() > 490, "{} different runs", digests.len());
    assert!((1000..2000).contains(&lives), "{lives} lives: two or more a seed");
    for class in ironleaf_sim::disk::CLASSES.iter().chain(&["entry_lost", "length_lost", "in_flight_lost"]) {
        assert!(losses.contains_key(class), "{class} never had an effect: {losses:?}");
    }
}

#[test]
fn a_recorded_run_replays_event_for_event() {
    for seed in 0..100 {
        let (seen, _) = run(Source::Seeded { seed }, false);
        let deviations = seen.recorded.clone();
        let (replayed, machine) = run(Source::Recorded { deviations, strict: true }, false);
        assert_eq!(machine.choices().finish(), None, "seed {seed}");
        assert_eq!(machine.choices().unmet(), [], "seed {seed}");
        assert_eq!(replayed, seen, "seed {seed}");
    }
}

#[test]
fn a_trace_changes_nothing_and_has_a_line_for_every_event() {
    for seed in 0..20 {
        let (quiet, machine) = run(Source::Seeded { seed }, false);
        assert_eq!(machine.trace(), [""; 0]);
        let (traced, machine) = run(Source::Seeded { seed }, true);
        assert_eq!(traced, quiet, "seed {seed}");
        let trace = machine.trace();
        assert_eq!(trace.len() as u64, traced.events);
        assert!(trace.iter().all(|line| !line.contains('\n')));
    }
}

#[test]
fn dropping_one_deviation_leaves_a_run_that_tolerant_replay_finishes() {
    for seed in 0..40 {
        let (seen, _) = run(Source::Seeded { seed }, false);
        for skipped in (0..seen.recorded.len()).step_by(seen.recorded.len() / 4 + 1) {
            let mut deviations = seen.recorded.clone();
            deviations.remove(skipped);
            let (replayed, _) = run(Source::Recorded { deviations, strict: false }, false);
            assert!(matches!(replayed.ends.last(), Some(LifeEnd::Finished(_))), "{:?}", replayed.ends);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_from_run_to_run() {
    let resident_pages = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
    };
    let many = |seeds: std::ops::Range<u64>| {
        for seed in seeds {
            run(Source::Seeded { seed }, false);
        }
    };
    many(0..300);
    let before = resident_pages();
    many(300..2300);
    let grown_bytes = resident_pages().saturating_sub(before) * 4096;
    // A run holds tens of kilobytes: two thousand that leak would take tens of megabytes.
    assert!(grown_bytes < 8 << 20, "{grown_bytes} bytes more after 2000 runs");
}
