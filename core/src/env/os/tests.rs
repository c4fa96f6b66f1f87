//! What the operating system's environment promises beyond the conformance suite that all environments share.

use super::{environment, environment_on};
use crate::ErrorKind;
use crate::env::{DiskErrorKind, Env, OpenMode};
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tempfile::TempDir;

fn start() -> (Env, TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_path_buf();
    (environment().unwrap(), directory, path)
}

#[test]
fn outside_of_a_runtime_the_environment_is_a_typed_error() {
    let error = environment().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("tokio runtime"), "{error}");
}

#[test]
fn a_runtime_that_was_handed_over_serves_callers_outside_of_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let env = environment_on(runtime.handle());
    let (sent, received) = std::sync::mpsc::channel();
    let clock = env.clock.clone();
    let _task = env.spawner.spawn(
        "test",
        Box::pin(async move {
            clock.sleep(Duration::from_millis(1)).await;
            sent.send(()).unwrap();
        }),
    );
    received.recv_timeout(Duration::from_secs(10)).expect("the task ran");
    let _ready = env.clock.sleep(Duration::from_millis(1));
}

#[tokio::test]
async fn operations_after_the_end_of_the_runtime_fail_as_io_errors() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let env = environment_on(runtime.handle());
    runtime.shutdown_background();
    let directory = tempfile::tempdir().unwrap();
    let error = env.disk.list(directory.path()).await.unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::Io);
    assert_eq!(error.path, directory.path());
}

#[tokio::test]
async fn a_directory_has_one_opener() {
    let (env, _directory, path) = start();
    let lock = env.disk.lock(&path).await.unwrap();
    assert_eq!(env.disk.lock(&path).await.err().unwrap().kind, DiskErrorKind::Locked);
    let other = environment().unwrap();
    assert_eq!(other.disk.lock(&path).await.err().unwrap().kind, DiskErrorKind::Locked);
    assert_eq!(env.disk.list(&path).await.unwrap(), [""; 0], "nothing is written into a locked directory");
    drop(lock);
    drop(other.disk.lock(&path).await.unwrap());
    drop(env.disk.lock(&path).await.unwrap());
}

#[tokio::test]
async fn a_lock_of_what_is_missing_or_no_directory_is_an_error() {
    let (env, _directory, path) = start();
    assert_eq!(env.disk.lock(&path.join("missing")).await.err().unwrap().kind, DiskErrorKind::NotFound);
    drop(env.disk.open(&path.join("file"), OpenMode::CreateNew).await.unwrap());
    assert_eq!(env.disk.lock(&path.join("file")).await.err().unwrap().kind, DiskErrorKind::Io);
}

/// A runtime with a single blocking thread.
fn runtime_that_can_be_occupied() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// Occupies the blocking thread until the flag is set: what is submitted to it meanwhile stays in flight.
fn occupy(runtime: &tokio::runtime::Runtime) -> Arc<AtomicBool> {
    let free = Arc::new(AtomicBool::new(false));
    let seen = free.clone();
    runtime.spawn_blocking(move || {
        while !seen.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    free
}

#[test]
fn a_dropped_write_is_carried_out_and_keeps_the_directory_locked_until_then() {
    let runtime = runtime_that_can_be_occupied();
    let env = environment_on(runtime.handle());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_path_buf();
    let data = Bytes::from(vec![7; 300_000]);
    let (lock, file) = runtime.block_on(async {
        let lock = env.disk.lock(&path).await.unwrap();
        (lock, env.disk.open(&path.join("f"), OpenMode::CreateNew).await.unwrap())
    });
    let free = occupy(&runtime);
    drop(file.write_at(100, data.clone()));
    drop(lock);
    let locked = runtime.block_on(env.disk.lock(&path)).err().expect("a write is in flight");
    assert_eq!(locked.kind, DiskErrorKind::Locked);
    free.store(true, SeqCst);
    runtime.block_on(async {
        for _ in 0..2000 {
            if env.disk.lock(&path).await.is_ok() {
                break;
            }
            env.clock.sleep(Duration::from_millis(5)).await;
        }
        drop(env.disk.lock(&path).await.expect("the write has ended"));
        assert_eq!(file.read_at(100, data.len()).await.unwrap(), data);
        assert_eq!(file.len().await.unwrap(), 300_100);
    });
}

#[tokio::test]
async fn small_writes_are_done_when_the_call_returns() {
    let (env, _directory, path) = start();
    let file = env.disk.open(&path.join("f"), OpenMode::CreateNew).await.unwrap();
    drop(file.write_at(0, Bytes::from_static(b"written")));
    assert_eq!(std::fs::read(path.join("f")).unwrap(), b"written");
}

#[tokio::test]
async fn a_read_past_the_end_names_file_and_range() {
    let (env, _directory, path) = start();
    let file = env.disk.open(&path.join("f"), OpenMode::CreateNew).await.unwrap();
    file.write_at(0, Bytes::from(vec![1; 100])).await.unwrap();
    for (offset, len) in [(0, 101), (99, 2), (500, 1), (50, 100_000), (1 << 40, 1 << 40), (u64::MAX, 1 << 20)]
    {
        let error = file.read_at(offset, len).await.unwrap_err();
        assert_eq!(error.kind, DiskErrorKind::UnexpectedEnd, "{error}");
        assert_eq!((error.operation, error.range), ("read", Some((offset, len as u64))));
        assert_eq!(error.path, path.join("f"));
    }
    assert_eq!(file.read_at(100, 0).await.unwrap(), [0; 0]);
}

#[tokio::test]
async fn transfers_of_every_size_come_back() {
    let (env, _directory, path) = start();
    let file = env.disk.open(&path.join("f"), OpenMode::CreateNew).await.unwrap();
    let mut offset = 3;
    for len in [0, 1, 511, 4096, 65_536, 65_537, 1_000_000] {
        let data: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
        file.write_at(offset, Bytes::from(data.clone())).await.unwrap();
        assert_eq!(file.read_at(offset, len).await.unwrap(), data);
        offset += len as u64;
    }
    file.sync_data().await.unwrap();
    assert_eq!(file.len().await.unwrap(), offset);
}

#[tokio::test]
async fn names_that_are_not_text_are_listed_too() {
    use std::os::unix::ffi::OsStrExt;
    let (env, _directory, path) = start();
    std::fs::write(path.join(std::ffi::OsStr::from_bytes(b"a\xFFb")), b"").unwrap();
    assert_eq!(env.disk.list(&path).await.unwrap().len(), 1);
}

#[tokio::test]
async fn time_passes_and_randomness_differs() {
    let (env, _directory, _path) = start();
    let (before, wall) = (env.clock.now(), env.clock.wall_now());
    env.clock.sleep(Duration::from_millis(20)).await;
    assert!(env.clock.now() - before >= Duration::from_millis(20));
    assert!(wall > Duration::from_secs(1_700_000_000));
    let (mut one, mut other) = ([0; 1000], [0; 1000]);
    env.entropy.fill(&mut one);
    env.entropy.fill(&mut other);
    assert_ne!(one, other);
    env.entropy.fill(&mut []);
}
