//! What stands in a directory decides whether it is opened, refused or created, and refused directories stay as they
//! were: each of these lost somebody's data, or could have.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]
#![expect(clippy::disallowed_methods, reason = "damages files, and compares them")]

use ironleaf::{Database, Durability, ErrorKind, Options, env};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;

fn small() -> Options {
    Options {
        memory_bytes: 1 << 20,
        log_segment_bytes: 64 << 10,
        page_segment_bytes: 256 << 10,
        ..Options::default()
    }
}

async fn open(path: &Path) -> ironleaf::Result<Database> {
    Database::open(env::os::environment()?, path, small()).await
}

fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(path)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[tokio::test]
async fn files_of_somebody_else_are_refused_and_stay() {
    for name in ["notes.txt", "log-00000001", "MANIFEST.new", "MANIFEST"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), "my precious application log").unwrap();
        let before = files(dir.path());
        let error = open(dir.path()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADatabase, "{name}: {error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(files(dir.path()), before, "{name}");
    }
}

#[tokio::test]
async fn a_file_and_a_missing_parent_get_an_error_that_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = open(&file).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotADatabase, "{error}");
    let error = open(&dir.path().join("missing/db")).await.unwrap_err();
    assert!(error.to_string().contains("parent directory does not exist"), "{error}");
}

#[tokio::test]
async fn a_second_opener_is_refused_until_the_first_has_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    for _ in 0..50 {
        let db = open(&path).await.unwrap();
        assert_eq!(open(&path).await.unwrap_err().kind(), ErrorKind::Locked);
        db.set("k", "f", "v").await.unwrap();
        db.close().await.unwrap();
    }
}

#[tokio::test]
async fn whoever_closes_too_waits_for_the_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path).await.unwrap().with_durability(Durability::Buffered);
    for n in 0..1000 {
        db.set("k", format!("{n}"), "v").await.unwrap();
    }
    let mut first = Box::pin(db.close());
    let waker = std::task::Waker::noop();
    let _ = first.as_mut().poll(&mut std::task::Context::from_waker(waker));
    drop(first);
    db.close().await.unwrap();
    assert_eq!(db.durable_point(), db.visible_point());
    let again = open(&path).await.unwrap();
    assert_eq!(again.len("k").await.unwrap(), 1000);
    again.close().await.unwrap();
}

#[tokio::test]
async fn a_damaged_copy_of_a_log_header_loses_nothing_and_a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path).await.unwrap();
    for n in 0..300 {
        db.set("k", format!("{n:03}"), "v").await.unwrap();
    }
    drop(db);
    for at in [0, 8, 20, 40, 60, 72] {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let newest = files(&path).into_keys().rfind(|name| name.starts_with("log-")).unwrap();
        let file = path.join(&newest);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let db = open(&path).await.unwrap();
        assert_eq!(db.len("k").await.unwrap(), 300, "byte {at} of {newest}");
        db.close().await.unwrap();
    }
}

#[tokio::test]
async fn space_of_deleted_objects_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await.unwrap().with_durability(Durability::Buffered);
    for n in 0..20_000 {
        let key = if n % 4 == 0 { "keep" } else { "drop" };
        db.set(key, format!("field-{n:06}"), [7; 200]).await.unwrap();
    }
    db.checkpoint().await.unwrap();
    db.delete("drop").await.unwrap();
    db.checkpoint().await.unwrap();
    let metrics = db.metrics();
    assert!(metrics.page_bytes_stored <= 2 * metrics.page_bytes_live + (512 << 10), "{metrics:?}");
    assert_eq!(db.check().await.unwrap().findings, []);
    assert_eq!(db.len("keep").await.unwrap(), 5000);
    db.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_database_can_be_opened_again_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    for round in 0..30 {
        let db = open(&path).await.unwrap();
        db.with_durability(Durability::Written).set("k", format!("{round}"), vec![7; 1000]).await.unwrap();
        assert_eq!(db.len("k").await.unwrap(), round + 1);
    }
}

#[tokio::test]
async fn an_empty_path_is_refused() {
    let error = open(Path::new("")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[tokio::test]
async fn files_with_numbers_that_nobody_gets_to_are_not_ours() {
    for name in ["log-ffffffffffffffff", "pages-ffffffffffffffff"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join(name), "").unwrap();
        assert_eq!(open(&path).await.unwrap_err().kind(), ErrorKind::NotADatabase, "{name}");
        std::fs::remove_file(path.join(name)).unwrap();
        open(&path).await.unwrap().close().await.unwrap();
        std::fs::write(path.join(name), "").unwrap();
        open(&path).await.unwrap().close().await.unwrap();
        assert!(path.join(name).exists(), "{name} belongs to somebody else");
    }
}

/// Of those who open a new directory together one has it, and the others are told so.
#[test]
fn openers_that_begin_together_are_locked_out_and_never_told_of_damage() {
    use ironleaf::blocking::Database;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut opened = 0;
    for round in 0..20 {
        let path = dir.path().join(round.to_string());
        let start = std::sync::Barrier::new(6);
        let open = || {
            start.wait();
            let db = match Database::open(&path, small()) {
                Ok(db) => db,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
                    return 0;
                }
            };
            db.set("k", "f", "v").expect("a write");
            db.close().expect("an end in order");
            1
        };
        opened += std::thread::scope(|scope| {
            let openers: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
            openers.into_iter().map(|opener| opener.join().expect("no panic")).sum::<u32>()
        });
        let db = Database::open(&path, small()).expect("a sound directory");
        assert_eq!(db.check().expect("a check").findings, []);
        db.close().expect("an end in order");
    }
    assert!(opened >= 20, "in each round somebody is the first");
}

/// A budget for memory is an upper bound. It takes no part of the disk in proportion.
#[tokio::test]
async fn a_large_budget_for_memory_does_not_take_the_disk() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = Options { memory_bytes: 1 << 42, ..small() };
    let env = env::os::environment().expect("a runtime");
    let db = Database::open(env, dir.path(), options).await.expect("a new database");
    for n in 0..100u8 {
        db.set("k", [n], "v").await.expect("a write");
    }
    assert!(db.check().await.expect("a check").findings.is_empty());
    db.close().await.expect("an end in order");
    let reserve = std::fs::metadata(dir.path().join("RESERVE")).map_or(0, |file| {
        use std::os::unix::fs::MetadataExt;
        file.blocks() * 512
    });
    assert!(reserve < 100 << 20, "{reserve} bytes");
}

/// Nothing is given once the database is closed, not even what a scan has at hand.
#[tokio::test]
async fn scans_end_with_the_database() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = open(dir.path()).await.expect("a new database");
    for n in 0..10u8 {
        db.set([b'k', n], "f", "v").await.expect("a write");
        db.set("k", [n], "v").await.expect("a write");
    }
    let (mut scan, mut keys) = (db.scan("k", ..), db.keys(""));
    assert!(scan.next().await.expect("an entry").is_some() && keys.next().await.expect("a key").is_some());
    db.close().await.expect("an end in order");
    assert_eq!(scan.next().await.expect_err("it is closed").kind(), ErrorKind::Closed);
    assert_eq!(keys.next().await.expect_err("it is closed").kind(), ErrorKind::Closed);
    let visited = scan.for_each(|_, _| std::ops::ControlFlow::Continue(())).await;
    assert_eq!(visited.expect_err("it is closed").kind(), ErrorKind::Closed);
}
