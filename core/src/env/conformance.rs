//! What every implementation of the seam must do, as one table of checks.
//!
//! The operating system's implementation and the simulated ones pass the same table, so what the engine learns in
//! simulation holds on the real disk. Absent from users' builds.

mod streams;

pub use streams::{Peers, STREAM_CHECKS, StreamCheck};

use super::{BoxFuture, DiskErrorKind, DiskResult, Env, File, OpenMode};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU32, Ordering::SeqCst};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

/// One promise of the seam.
#[derive(Clone, Copy)]
pub struct Check {
    /// What is promised.
    pub name: &'static str,
    /// Panics where the promise is broken. Takes an environment and an empty directory in it.
    pub run: fn(Env, PathBuf) -> BoxFuture<'static, ()>,
}

macro_rules! checks {
    ($($name:ident)*) => {
        /// Every promise.
        pub const CHECKS: &[Check] = &[
            $(Check { name: stringify!($name), run: |env, directory| Box::pin($name(env, directory)) }),*
        ];
    };
}

checks! {
    a_file_is_created_once
    what_is_missing_is_not_found
    what_was_written_is_read
    a_read_past_the_end_names_its_range
    a_gap_reads_as_zeros
    large_transfers_are_whole
    concurrent_writes_all_land
    handles_of_one_file_share_it
    a_file_opened_for_reading_refuses_writes
    a_dropped_write_is_carried_out
    lengths_are_cut_and_extended
    preallocation_keeps_contents
    a_rename_replaces
    a_removed_file_outlives_its_name
    names_are_listed_in_order
    syncs_succeed_on_a_sound_disk
    a_directory_has_one_opener
    a_lock_covers_only_its_directory
    a_lock_waits_for_what_is_in_flight
    errors_name_the_file
    time_does_not_go_back
    sleeps_end_in_order
    random_bytes_differ
    a_spawned_task_runs
    dropping_a_handle_aborts_the_task
}

async fn create(env: &Env, path: &Path) -> Arc<dyn File> {
    env.disk.open(path, OpenMode::CreateNew).await.expect("a new file is created")
}

async fn write(file: &Arc<dyn File>, offset: u64, data: impl Into<Bytes>) {
    file.write_at(offset, data.into()).await.expect("a write succeeds");
}

async fn read(file: &Arc<dyn File>, offset: u64, len: usize) -> Vec<u8> {
    file.read_at(offset, len).await.expect("a read succeeds")
}

fn kind<T>(result: DiskResult<T>) -> Option<DiskErrorKind> {
    result.err().map(|error| error.kind)
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8 ^ (at / 251 % 256) as u8 ^ seed).collect()
}

/// Waits, in the environment's time, until `holds` gives true.
async fn eventually<F: Future<Output = bool>>(env: &Env, what: &str, mut holds: impl FnMut() -> F) {
    for _ in 0..10_000 {
        if holds().await {
            return;
        }
        env.clock.sleep(Duration::from_millis(1)).await;
    }
    panic!("in ten seconds it did not come about that {what}");
}

async fn a_file_is_created_once(env: Env, directory: PathBuf) {
    let path = directory.join("file");
    let file = create(&env, &path).await;
    assert_eq!(file.len().await.expect("a length"), 0);
    write(&file, 0, "kept").await;
    assert_eq!(kind(env.disk.open(&path, OpenMode::CreateNew).await), Some(DiskErrorKind::AlreadyExists));
    let again = env.disk.open(&path, OpenMode::ReadWrite).await.expect("an existing file is opened");
    assert_eq!(read(&again, 0, 4).await, b"kept");
    let sub = directory.join("sub");
    env.disk.create_dir(&sub).await.expect("a directory is created");
    assert_eq!(kind(env.disk.create_dir(&sub).await), Some(DiskErrorKind::AlreadyExists));
    assert_eq!(kind(env.disk.create_dir(&path).await), Some(DiskErrorKind::AlreadyExists));
    create(&env, &sub.join("file")).await;
}

async fn what_is_missing_is_not_found(env: Env, directory: PathBuf) {
    let (missing, below) = (directory.join("missing"), directory.join("missing/file"));
    let disk = &env.disk;
    let not_found = Some(DiskErrorKind::NotFound);
    assert_eq!(kind(disk.open(&missing, OpenMode::Read).await), not_found);
    assert_eq!(kind(disk.open(&missing, OpenMode::ReadWrite).await), not_found);
    assert_eq!(kind(disk.open(&below, OpenMode::CreateNew).await), not_found);
    assert_eq!(kind(disk.create_dir(&below).await), not_found);
    assert_eq!(kind(disk.rename(&missing, &directory.join("other")).await), not_found);
    assert_eq!(kind(disk.remove(&missing).await), not_found);
    assert_eq!(kind(disk.list(&missing).await), not_found);
    assert_eq!(kind(disk.sync_dir(&missing).await), not_found);
    assert_eq!(kind(disk.lock(&missing).await), not_found);
    assert_eq!(disk.list(&directory).await.expect("a list"), [""; 0], "nothing came into being");
}

async fn what_was_written_is_read(env: Env, directory: PathBuf) {
    let file = create(&env, &directory.join("file")).await;
    write(&file, 0, "abcdefgh").await;
    write(&file, 2, "XY").await;
    write(&file, 6, "1234").await;
    assert_eq!(read(&file, 0, 10).await, b"abXYef1234");
    assert_eq!(read(&file, 3, 4).await, b"Yef1");
    assert_eq!(read(&file, 3, 0).await, b"");
    write(&file, 0, Bytes::new()).await;
    assert_eq!(file.len().await.expect("a length"), 10);
}

async fn a_read_past_the_end_names_its_range(env: Env, directory: PathBuf) {
    let file = create(&env, &directory.join("file")).await;
    write(&file, 0, vec![1; 1000]).await;
    for (offset, len) in [(0, 1001), (999, 2), (1000, 1), (5000, 10), (0, 1 << 20)] {
        let error = file.read_at(offset, len).await.expect_err("the file is shorter");
        assert_eq!(error.kind, DiskErrorKind::UnexpectedEnd);
        assert_eq!(error.range, Some((offset, len as u64)));
    }
}

async fn a_gap_reads_as_zeros(env: Env, directory: PathBuf) {
    let file = create(&env, &directory.join("file")).await;
    write(&file, 0, "head").await;
    write(&file, 10_000, "tail").await;
    assert_eq!(file.len().await.expect("a length"), 10_004);
    assert_eq!(read(&file, 4, 9_996).await, vec![0; 9_996]);
    assert_eq!(read(&file, 10_000, 4).await, b"tail");
}

async fn large_transfers_are_whole(env: Env, directory: PathBuf) {
    let file = create(&env, &directory.join("file")).await;
    let data = pattern((1 << 20) + 3, 0);
    write(&file, 509, data.clone()).await;
    assert_eq!(read(&file, 509, data.len()).await, data);
    assert_eq!(read(&file, 70_000, 200_000).await, data[70_000 - 509..][..200_000]);
}

async fn concurrent_writes_all_land(env: Env, directory: PathBuf) {
    let file = create(&env, &directory.join("file")).await;
    let pieces: Vec<Vec<u8>> =
        (0..16).map(|piece| pattern(if piece % 2 == 0 { 700 } else { 80_000 }, piece)).collect();
    let mut writes = Vec::new();
    let mut offset = 0;
    for piece in &pieces {
        writes.push(file.write_at(offset, Bytes::from(piece.clone())));
        offset += piece.len() as u64;
    }
    for write in writes.into_iter().rev() {
        write.await.expect("a write succeeds");
    }
    assert_eq!(read(&file, 0, usize::try_from(offset).expect("it is small")).await, pieces.concat());
}

async fn handles_of_one_file_share_it(env: Env, directory: PathBuf) {
    let path = directory.join("file");
    let one = create(&env, &path).await;
    let other = env.disk.open(&path, OpenMode::ReadWrite).await.expect("a second handle");
    write(&one, 0, "from one").await;
    assert_eq!(read(&other, 0, 8).await, b"from one");
    drop(one);
    write(&other, 5, "two").await;
    let third = env.disk.open(&path, OpenMode::Read).await.expect("a third handle");
    assert_eq!(read(&third, 0, 8).await, b"from two");
}

async fn a_file_opened_for_reading_refuses_writes(env: Env, directory: PathBuf) {
    let path = directory.join("file");
    write(&create(&env, &path).await, 0, "kept").await;
    let file = env.disk.open(&path, OpenMode::Read).await.expect("an existing file is opened");
    let error = file.write_at(0, Bytes::from_static(b"lost")).await.expect_err("it was opened for reading");
    assert_eq!((error.operation, error.range), ("write", Some((0, 4))));
    assert_eq!(read(&file, 0, 4).await, b"kept");
}

async fn a_dropped_write_is_carried_out(env: Env, directory: PathBuf) {
    let file = create(&env, &directory.join("file")).await;
    for len in [100, 300_000] {
        let data = pattern(len, 7);
        drop(file.write_at(0, Bytes::from(data.clone())));
        eventually(&env, "a dropped write is carried out", async || {
            file.read_at(0, len).await.is_ok_and(|found| found == data)
        })
        .await;
    }
}

async fn lengths_are_cut_and_extended(env: Env, directory: PathBuf) {
    let file = create(&env, &directory.join("file")).await;
    write(&file, 0, pattern(3000, 1)).await;
    file.set_len(700).await.expect("a file is cut");
    assert_eq!(file.len().await.expect("a length"), 700);
    assert_eq!(kind(file.read_at(0, 701).await), Some(DiskErrorKind::UnexpectedEnd));
    file.set_len(3000).await.expect("a file is extended");
    assert_eq!(read(&file, 0, 700).await, pattern(700, 1));
    assert_eq!(read(&file, 700, 2300).await, vec![0; 2300], "what was cut off does not come back");
}

async fn preallocation_keeps_contents(env: Env, directory: PathBuf) {
    let file = create(&env, &directory.join("file")).await;
    write(&file, 0, pattern(3000, 1)).await;
    file.preallocate(100_000).await.expect("space is reserved");
    assert_eq!(file.len().await.expect("a length"), 100_000);
    file.preallocate(50_000).await.expect("space is there already");
    assert_eq!(file.len().await.expect("a length"), 100_000);
    assert_eq!(read(&file, 0, 3000).await, pattern(3000, 1));
    assert_eq!(read(&file, 3000, 97_000).await, vec![0; 97_000]);
}

async fn a_rename_replaces(env: Env, directory: PathBuf) {
    let (from, to) = (directory.join("from"), directory.join("to"));
    write(&create(&env, &from).await, 0, "new").await;
    let replaced = create(&env, &to).await;
    write(&replaced, 0, "old").await;
    env.disk.rename(&from, &to).await.expect("a file is renamed");
    assert_eq!(env.disk.list(&directory).await.expect("a list"), ["to"]);
    let file = env.disk.open(&to, OpenMode::ReadWrite).await.expect("the renamed file");
    assert_eq!(read(&file, 0, 3).await, b"new");
    assert_eq!(read(&replaced, 0, 3).await, b"old");
    write(&replaced, 0, "???").await;
    assert_eq!(read(&file, 0, 3).await, b"new", "a replaced file is another file");
    env.disk.rename(&to, &from).await.expect("a file is renamed back");
    assert_eq!(kind(env.disk.open(&to, OpenMode::Read).await), Some(DiskErrorKind::NotFound));
}

async fn a_removed_file_outlives_its_name(env: Env, directory: PathBuf) {
    let path = directory.join("file");
    let removed = create(&env, &path).await;
    write(&removed, 0, "old").await;
    env.disk.remove(&path).await.expect("a file is removed");
    assert_eq!(kind(env.disk.open(&path, OpenMode::Read).await), Some(DiskErrorKind::NotFound));
    let next = create(&env, &path).await;
    write(&next, 0, "new").await;
    assert_eq!(read(&removed, 0, 3).await, b"old");
    assert_eq!(read(&next, 0, 3).await, b"new");
}

async fn names_are_listed_in_order(env: Env, directory: PathBuf) {
    for name in ["b", "a10", "a9", "B"] {
        create(&env, &directory.join(name)).await;
    }
    env.disk.create_dir(&directory.join("aa")).await.expect("a directory is created");
    create(&env, &directory.join("aa/below")).await;
    assert_eq!(env.disk.list(&directory).await.expect("a list"), ["B", "a10", "a9", "aa", "b"]);
    assert_eq!(env.disk.list(&directory.join("aa")).await.expect("a list"), ["below"]);
}

async fn syncs_succeed_on_a_sound_disk(env: Env, directory: PathBuf) {
    let file = create(&env, &directory.join("file")).await;
    file.sync_data().await.expect("an empty file is synced");
    write(&file, 0, pattern(100_000, 1)).await;
    file.sync_data().await.expect("a file is synced");
    env.disk.sync_dir(&directory).await.expect("a directory is synced");
    assert_eq!(read(&file, 0, 100_000).await, pattern(100_000, 1));
}

async fn a_directory_has_one_opener(env: Env, directory: PathBuf) {
    let lock = env.disk.lock(&directory).await.expect("the lock is free");
    assert_eq!(kind(env.disk.lock(&directory).await), Some(DiskErrorKind::Locked));
    assert_eq!(env.disk.list(&directory).await.expect("a list"), [""; 0], "a lock writes nothing");
    let file = create(&env, &directory.join("file")).await;
    write(&file, 0, "under the lock").await;
    drop(lock);
    let again = env.disk.lock(&directory).await.expect("an idle file does not keep the lock");
    assert_eq!(kind(env.disk.lock(&directory).await), Some(DiskErrorKind::Locked));
    drop(again);
}

async fn a_lock_covers_only_its_directory(env: Env, directory: PathBuf) {
    let (one, other) = (directory.join("one"), directory.join("other"));
    env.disk.create_dir(&one).await.expect("a directory is created");
    env.disk.create_dir(&other).await.expect("a directory is created");
    let _first = env.disk.lock(&one).await.expect("the lock is free");
    let _second = env.disk.lock(&other).await.expect("the other lock is free");
    let _parent = env.disk.lock(&directory).await.expect("the parent's lock is free");
}

async fn a_lock_waits_for_what_is_in_flight(env: Env, directory: PathBuf) {
    let path = directory.join("file");
    let lock = env.disk.lock(&directory).await.expect("the lock is free");
    let file = create(&env, &path).await;
    let data = pattern(4 << 20, 3);
    drop(file.write_at(0, Bytes::from(data.clone())));
    drop((lock, file));
    eventually(&env, "the lock is free again", async || env.disk.lock(&directory).await.is_ok()).await;
    let file = env.disk.open(&path, OpenMode::Read).await.expect("the file is there");
    assert!(read(&file, 0, data.len()).await == data, "the lock was free while a write was in flight");
}

async fn errors_name_the_file(env: Env, directory: PathBuf) {
    let missing = directory.join("missing");
    let error = env.disk.open(&missing, OpenMode::Read).await.err().expect("there is no such file");
    assert_eq!(error.path, missing);
    let line = error.to_string();
    assert!(line.contains(&*missing.to_string_lossy()) && !line.contains('\n'), "{line}");
    let short = create(&env, &directory.join("short")).await;
    let line = short.read_at(4096, 512).await.expect_err("the file is empty").to_string();
    assert!(line.contains("short") && line.contains("4096") && line.contains("512"), "{line}");
}

async fn time_does_not_go_back(env: Env, _directory: PathBuf) {
    let start = env.clock.now();
    let mut last = start;
    for _ in 0..5 {
        env.clock.sleep(Duration::from_millis(2)).await;
        let now = env.clock.now();
        assert!(now >= last + Duration::from_millis(2), "a sleep of 2 ms took from {last:?} to {now:?}");
        last = now;
    }
    env.clock.sleep(Duration::ZERO).await;
    assert!(env.clock.now() >= last);
    assert!(env.clock.wall_now() > Duration::ZERO);
}

/// A task may be held after its sleep has ended, so tasks of their own would show another order than that of the sleeps.
async fn sleeps_end_in_order(env: Env, _directory: PathBuf) {
    let mut waiting =
        Vec::from([40, 20, 60].map(|delay| (delay, env.clock.sleep(Duration::from_millis(delay)))));
    // What is asked later has had more time: a longer sleep that has ended leaves a shorter one no excuse.
    waiting.sort_by_key(|(delay, _)| std::cmp::Reverse(*delay));
    std::future::poll_fn(|context| {
        let mut longer_ended = None;
        waiting.retain_mut(|(delay, sleep)| {
            let ended = sleep.as_mut().poll(context).is_ready();
            assert!(ended || longer_ended.is_none(), "{longer_ended:?} ms ended before {delay} ms");
            longer_ended = ended.then_some(*delay).or(longer_ended);
            !ended
        });
        if waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

async fn random_bytes_differ(env: Env, _directory: PathBuf) {
    let (mut one, mut other) = ([0; 64], [0; 64]);
    env.entropy.fill(&mut one);
    env.entropy.fill(&mut other);
    env.entropy.fill(&mut []);
    assert_ne!(one, other);
    assert_ne!(one, [0; 64]);
    assert_ne!(env.random_u64(), env.random_u64());
}

async fn a_spawned_task_runs(env: Env, directory: PathBuf) {
    let done = Arc::new(AtomicU32::new(0));
    let task = {
        let (env, done, path) = (env.clone(), done.clone(), directory.join("file"));
        async move {
            write(&create(&env, &path).await, 0, "by the task").await;
            done.fetch_add(1, SeqCst);
        }
    };
    let _handle = env.spawner.spawn("writer", Box::pin(task));
    eventually(&env, "the task ends", async || done.load(SeqCst) == 1).await;
    let file = env.disk.open(&directory.join("file"), OpenMode::Read).await.expect("the task's file");
    assert_eq!(read(&file, 0, 11).await, b"by the task");
}

async fn dropping_a_handle_aborts_the_task(env: Env, _directory: PathBuf) {
    let ticks = Arc::new(AtomicU32::new(0));
    let alive = Arc::downgrade(&ticks);
    let task = {
        let clock = env.clock.clone();
        async move {
            loop {
                ticks.fetch_add(1, SeqCst);
                clock.sleep(Duration::from_millis(1)).await;
            }
        }
    };
    let handle = env.spawner.spawn("ticker", Box::pin(task));
    let ticking = async || alive.upgrade().is_some_and(|ticks| ticks.load(SeqCst) > 3);
    eventually(&env, "the task ticks", ticking).await;
    drop(handle);
    eventually(&env, "the task is gone, with what it held", async || alive.strong_count() == 0).await;
}
