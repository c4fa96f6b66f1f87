//! The interface without `async`, in a program without a runtime.
#![expect(clippy::disallowed_methods, reason = "threads of the test, not of the engine")]

use ironleaf::blocking::Database;
use ironleaf::{Durability, ErrorKind, Kind, Options, WriteBatch};

#[test]
fn a_program_without_a_runtime_stores_reads_and_reopens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Database::open_path(&path).unwrap();
    db.set("h", "f", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.set("h", "g", "2").put("s", "m");
    let position = db.with_durability(Durability::Written).commit(batch).unwrap().position;
    assert!(db.flush().unwrap() >= position);
    let snapshot = db.snapshot();
    assert_eq!(db.take("h", "f").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(snapshot.get("h", "f").unwrap().as_deref(), Some(&b"1"[..]));
    let mut transaction = db.transaction();
    assert_eq!(transaction.len("h").unwrap(), 1);
    transaction.set("h", "x", "3");
    db.set("h", "y", "4").unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    db.checkpoint().unwrap();
    assert_eq!(db.check().unwrap().findings, []);
    db.close().unwrap();
    drop((db, snapshot));
    let db = Database::open(&path, Options::default()).unwrap();
    let fields: Vec<_> = db.scan("h", ..).map(|entry| entry.unwrap().0).collect();
    assert_eq!(fields, [b"g", b"y"]);
    let fields: Vec<_> = db.scan_reverse("h", ..).map(|entry| entry.unwrap().0).collect();
    assert_eq!(fields, [b"y", b"g"]);
    let keys: Vec<_> = db.keys("").map(Result::unwrap).collect();
    assert_eq!(keys, [(b"h".to_vec(), Kind::Hash), (b"s".to_vec(), Kind::Set)]);
    assert_eq!(db.get_with("h", "g", <[u8]>::len).unwrap(), Some(1));
    db.close().unwrap();
}

#[test]
fn threads_share_a_database() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open_path(dir.path().join("db")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..50 {
                    db.set(format!("k{thread}"), format!("{n}"), "v").unwrap();
                }
            });
        }
    });
    for thread in 0..4 {
        assert_eq!(db.len(format!("k{thread}")).unwrap(), 50);
    }
    db.close().unwrap();
}

#[tokio::test]
async fn a_call_on_a_thread_of_a_runtime_is_refused_and_dropping_there_is_fine() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let error = Database::open_path(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("ironleaf::Database"), "{error}");
    let opened =
        tokio::task::spawn_blocking(move || std::thread::spawn(move || Database::open_path(path)).join());
    let db = opened.await.unwrap().unwrap().unwrap();
    assert_eq!(db.get("k", "f").unwrap_err().kind(), ErrorKind::InvalidInput);
    drop(db);
}

#[test]
fn a_cached_read_runs_on_the_calling_thread() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open_path(dir.path().join("db")).unwrap();
    db.set("h", "f", "1").unwrap();
    db.checkpoint().unwrap();
    let here = std::thread::current().id();
    let there = db.get_with("h", "f", |_| std::thread::current().id()).unwrap();
    assert_eq!(there, Some(here));
    db.close().unwrap();
}
