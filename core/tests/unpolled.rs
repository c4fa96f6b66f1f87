//! Futures that were polled, and then are kept and not polled for long: they block nobody.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]

use ironleaf::{Database, Durability, ErrorKind, Options, env};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn small() -> Options {
    Options {
        memory_bytes: 256 << 10,
        log_segment_bytes: 64 << 10,
        page_bytes: 1024,
        page_segment_bytes: 64 << 10,
        ..Options::default()
    }
}

async fn open(path: &Path, options: Options) -> Database {
    Database::open(env::os::environment().unwrap(), path, options).await.unwrap()
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} hangs"))
}

fn poll_once<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_not_polled_on_blocks_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"), small()).await;
    let mut waiting = 0;
    for n in 0..20u32 {
        let mut kept = Box::pin(db.set("k", n.to_le_bytes(), "kept"));
        waiting += u32::from(!poll_once(&mut kept));
        in_time("a commit", db.set("k", "f", "v")).await.unwrap();
        in_time("a flush", db.flush()).await.unwrap();
        in_time("a checkpoint", db.checkpoint()).await.unwrap();
        drop(kept);
    }
    assert!(waiting > 0, "no commit had to wait");
    let mut kept = Box::pin(db.set("k", "last", "kept"));
    let _ = poll_once(&mut kept);
    in_time("a close", db.close()).await.unwrap();
    drop(kept);
}

/// Everyday code: a stream of commits whose consumer commits as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_of_a_buffered_stream_do_not_block_its_consumer() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"), small()).await;
    let job = |n: u32| {
        let db = db.clone();
        Box::pin(async move {
            db.set("jobs", n.to_le_bytes(), "queued").await.unwrap();
            if n.is_multiple_of(3) {
                db.set("jobs", n.to_le_bytes(), "run").await.unwrap();
            }
            n
        })
    };
    let mut buffered: Vec<Pin<Box<dyn Future<Output = u32> + Send>>> = Vec::new();
    let mut next = 0;
    while next < 100 || !buffered.is_empty() {
        while buffered.len() < 8 && next < 100 {
            buffered.push(job(next));
            next += 1;
        }
        let done = in_time(
            "the stream",
            std::future::poll_fn(|context| {
                let ready = |job: &mut Pin<Box<dyn Future<Output = u32> + Send>>| {
                    job.as_mut().poll(context).map(Some)
                };
                match buffered.iter_mut().map(ready).position(|polled| polled.is_ready()) {
                    Some(at) => Poll::Ready(at),
                    None => Poll::Pending,
                }
            }),
        )
        .await;
        drop(buffered.swap_remove(done));
        // While this waits, nobody polls the others.
        in_time("the consumer", db.set("done", (done as u64).to_le_bytes(), "x")).await.unwrap();
    }
    assert_eq!(db.len("jobs").await.unwrap(), 100);
    db.close().await.unwrap();
}

/// Pages of values too large for a read to be over at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_not_polled_on_blocks_neither_readers_nor_writers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = Options { memory_bytes: 2 << 20, durability: Durability::Written, ..Options::default() };
    let db = open(&path, options.clone()).await;
    db.set("k", "f", vec![7; 200_000]).await.unwrap();
    db.checkpoint().await.unwrap();
    db.close().await.unwrap();
    let db = open(&path, options).await;
    let mut kept = Box::pin(db.get("k", "f"));
    assert!(!poll_once(&mut kept), "the page was read at once");
    assert_eq!(in_time("a get", db.get("k", "f")).await.unwrap().map(|value| value.len()), Some(200_000));
    let mut other = Box::pin(db.get("k", "f"));
    let _ = poll_once(&mut other);
    for n in 0..100u32 {
        in_time("a set", db.set("k", n.to_le_bytes(), vec![1; 100_000])).await.unwrap();
    }
    assert!(kept.await.unwrap().is_some());
    drop(other);
    db.close().await.unwrap();
}

/// A handle may outlive the runtime on which its database was opened.
#[test]
fn who_writes_after_the_runtime_has_ended_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::Written, ..small() };
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let first = runtime();
    let db = first.block_on(open(&dir.path().join("db"), options));
    drop(first);
    let ended = runtime().block_on(in_time("a set", async {
        for n in 0..2000u32 {
            db.set("k", n.to_le_bytes(), vec![1; 500]).await?;
        }
        Ok::<_, ironleaf::Error>(())
    }));
    let error = ended.unwrap_err();
    assert!([ErrorKind::Closed, ErrorKind::DurabilityUnknown].contains(&error.kind()), "{error}");
    assert!(error.to_string().contains("runtime"), "{error}");
}

/// One edit cannot be split, however small the memory is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_smallest_memory_takes_any_single_counted_write() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memory_bytes: 16 << 10, durability: Durability::Written, ..Options::default() };
    let db = open(&dir.path().join("db"), options).await;
    for n in 0..2000u32 {
        assert!(db.add("members", format!("member {n:05}")).await.unwrap());
    }
    for n in 0..2000u32 {
        assert!(!db.add("members", format!("member {n:05}")).await.unwrap());
    }
    assert_eq!(db.len("members").await.unwrap(), 2000);
    db.close().await.unwrap();
}
