//! Promise B7 on disks of every size: who fills one is refused, can remove something, and can come back.

use ironleaf::env::Env;
use ironleaf::{Database, ErrorKind, Options, Result};
use ironleaf_sim::choices::{Choices, Source};
use ironleaf_sim::machine::{CrashKind, LifeEnd, Machine, MachineOptions};
use std::future::Future;
use std::path::Path;

/// A log segment has 16 KiB, the reserve two of them and 8 KiB.
fn options() -> Options {
    Options {
        memory_bytes: 64 << 10,
        log_segment_bytes: 16 << 10,
        page_bytes: 512,
        page_segment_bytes: 8 << 10,
        ..Options::default()
    }
}

/// Runs a life to its end.
fn live<T: Send + 'static, W: Future<Output = T> + Send + 'static>(
    machine: &mut Machine,
    work: impl FnOnce(Env) -> W,
) -> T {
    let env = machine.env();
    match machine.run(Box::pin(work(env))) {
        LifeEnd::Finished(output) => output,
        end => panic!("{:?}", end.map_finished(|_| ())),
    }
}

/// Sets that a log segment holds, about: whether one more has a place may hang on a few bytes.
const SEGMENT_SETS: u32 = 46;

/// Sets fields until the disk is full; returns how many.
async fn fill(env: Env) -> Result<u32> {
    let db = Database::open(env, Path::new("db"), options()).await?;
    let mut count = 0;
    let error = loop {
        match db.set("hash", format!("{count:06}"), vec![7; 300]).await {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
        assert!(count < 100_000, "the disk is never full");
    };
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
    db.close().await?;
    Ok(count)
}

/// Opens the full database, removes all that is in it, and fills it again.
async fn come_back(env: Env, count: u32) -> Result<u32> {
    let db = Database::open(env.clone(), Path::new("db"), options()).await?;
    assert_eq!(db.len("hash").await?, u64::from(count));
    db.delete("hash").await?;
    db.checkpoint().await?;
    db.close().await?;
    fill(env).await
}

#[test]
fn whoever_fills_a_disk_can_empty_it_and_fill_it_again() {
    let mut filled = 0;
    for kilobytes in (4..400).step_by(4) {
        for reopened_by in [None, Some(CrashKind::ProcessDeath), Some(CrashKind::PowerLoss)] {
            let disk_bytes_max = Some(kilobytes << 10);
            let options = MachineOptions { disk_bytes_max, ..MachineOptions::default() };
            let mut machine = Machine::new(Choices::new(Source::Default), options);
            let first = live(&mut machine, fill);
            if let Some(kind) = reopened_by {
                machine.restart(kind);
            }
            // A disk on which the reserve never had a place is too small, which is said before anything is accepted.
            let count = first.unwrap_or(0);
            let again = match live(&mut machine, |env| come_back(env, count)) {
                Err(error) if count == 0 => {
                    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
                    continue;
                }
                again => again.unwrap_or_else(|error| panic!("{kilobytes} KiB, {reopened_by:?}: {error}")),
            };
            let (least, place) =
                (count.saturating_sub(SEGMENT_SETS), format!("{kilobytes} KiB, {reopened_by:?}"));
            assert!(again >= least, "{place}: {count} sets at first, {again} later");
            filled += u32::from(count > 0);
        }
    }
    assert!(filled > 200, "only {filled} disks could be filled");
}
