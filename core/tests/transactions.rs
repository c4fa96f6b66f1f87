//! Transactions: what they see, what makes them conflict, and that nothing of a refused one is done.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]
#![expect(clippy::disallowed_methods, reason = "tasks of the test, not of the engine")]

use ironleaf::{Database, Durability, ErrorKind, Kind, Options, Transaction, env};
use std::path::Path;

async fn open(path: &Path) -> Database {
    let options = Options {
        memory_bytes: 256 << 10,
        log_segment_bytes: 64 << 10,
        page_bytes: 1024,
        page_segment_bytes: 64 << 10,
        durability: Durability::Written,
        ..Options::default()
    };
    Database::open(env::os::environment().unwrap(), path, options).await.unwrap()
}

async fn names(transaction: &mut Transaction, key: &str) -> Vec<String> {
    let mut scan = transaction.scan(key, ..);
    let mut names = Vec::new();
    while let Some((name, _)) = scan.next().await.unwrap() {
        names.push(String::from_utf8(name).unwrap());
    }
    names
}

#[tokio::test]
async fn a_transaction_sees_its_snapshot_and_its_own_writes_and_others_see_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await;
    db.set_many("h", [("a", "1"), ("c", "3")]).await.unwrap();
    db.put("old", "m").await.unwrap();
    for checkpointed in [false, true] {
        if checkpointed {
            db.checkpoint().await.unwrap();
        }
        let mut transaction = db.transaction();
        transaction.set("h", "b", "2").remove("h", "a").delete("old").put("new", "x");
        db.set("elsewhere", "f", "v").await.unwrap();
        assert_eq!(transaction.get("h", "b").await.unwrap().as_deref(), Some(&b"2"[..]));
        assert_eq!(transaction.get("h", "a").await.unwrap(), None);
        assert_eq!(transaction.get("elsewhere", "f").await.unwrap().is_some(), checkpointed);
        assert_eq!(names(&mut transaction, "h").await, ["b", "c"]);
        assert_eq!(transaction.len("h").await.unwrap(), 2);
        assert_eq!(transaction.len("old").await.unwrap(), 0);
        assert!(transaction.contains("new", "x").await.unwrap());
        assert_eq!(transaction.kind("new").await.unwrap(), Some(Kind::Set));
        // A scan goes on with the writes that it began with.
        let mut scan = transaction.scan_reverse("h", ..);
        assert_eq!(scan.next().await.unwrap().unwrap().0, b"c");
        transaction.set("h", "aa", "4").remove("h", "b");
        assert_eq!(scan.next().await.unwrap().unwrap().0, b"b");
        assert_eq!(scan.next().await.unwrap(), None);
        assert_eq!(names(&mut transaction, "h").await, ["aa", "c"]);
        assert_eq!(db.get("h", "a").await.unwrap().as_deref(), Some(&b"1"[..]));
        assert!(db.contains("old", "m").await.unwrap());
        drop(transaction);
        assert_eq!(db.kind("new").await.unwrap(), None);
    }
    db.close().await.unwrap();
}

#[tokio::test]
async fn what_was_read_must_be_unchanged() {
    type Read = (&'static str, &'static [&'static str]);
    // What is read, and the writes that conflict with it: `f=` sets, `-f` removes, `-` deletes the object.
    let cases: [Read; 4] = [
        ("get f", &["f=", "-f", "-"]),
        ("get none", &["none=", "-"]),
        ("len", &["f=", "-f", "-", "other="]),
        ("scan", &["f=", "-f", "-", "other="]),
    ];
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await;
    for (read, conflicting) in cases {
        for write in ["f=", "-f", "-", "other=", "none="] {
            for checkpoints in 0..3 {
                db.delete("k").await.unwrap();
                db.set_many("k", [("f", "1"), ("g", "1")]).await.unwrap();
                if checkpoints == 2 {
                    db.checkpoint().await.unwrap();
                }
                let mut transaction = db.transaction();
                match read {
                    "len" => drop(transaction.len("k").await.unwrap()),
                    "scan" => drop(names(&mut transaction, "k").await),
                    get => drop(transaction.get("k", &get[4..]).await.unwrap()),
                }
                transaction.set("result", "of", format!("{read} {write} {checkpoints}"));
                match (write.strip_suffix('='), write.strip_prefix('-')) {
                    (Some(field), _) => db.set("k", field, "new").await.unwrap(),
                    (_, Some("")) => db.delete("k").await.unwrap(),
                    (_, Some(field)) => db.remove("k", field).await.unwrap(),
                    _ => unreachable!(),
                }
                if checkpoints > 0 {
                    db.checkpoint().await.unwrap();
                }
                let case = format!("{read}, then {write}, {checkpoints} checkpoints");
                // After a checkpoint every change of the object counts, unless it was none.
                let conflicts =
                    conflicting.contains(&write) || (read == "scan" || read == "len" || checkpoints > 0);
                let before = db.get("result", "of").await.unwrap();
                match transaction.commit().await {
                    Ok(_) => assert!(!conflicts, "{case}: no conflict"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{case}: {error}");
                        assert!(conflicts, "{case}: {error}");
                        assert_eq!(db.get("result", "of").await.unwrap(), before, "{case}: nothing is done");
                    }
                }
            }
        }
    }
    db.close().await.unwrap();
}

#[tokio::test]
async fn writes_elsewhere_and_checkpoints_alone_do_not_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await;
    for n in 0..100 {
        db.set("k", format!("{n}"), "v").await.unwrap();
    }
    db.checkpoint().await.unwrap();
    let mut transaction = db.transaction();
    assert_eq!(transaction.len("k").await.unwrap(), 100);
    assert!(transaction.get("absent", "f").await.unwrap().is_none());
    for n in 0..100 {
        db.set("other", format!("{n}"), "v").await.unwrap();
    }
    db.checkpoint().await.unwrap();
    db.set("other", "f", "v").await.unwrap();
    transaction.set("k", "100", "v");
    transaction.commit().await.unwrap();
    assert_eq!(db.len("k").await.unwrap(), 101);
    // One that only reads is as of its snapshot, whatever happened since.
    let mut reader = db.transaction();
    assert_eq!(reader.len("k").await.unwrap(), 101);
    db.delete("k").await.unwrap();
    let position = reader.position();
    assert_eq!(reader.commit().await.unwrap().position, position);
    db.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_increments_lose_nothing() {
    const TASKS: u64 = 8;
    const INCREMENTS: u64 = 50;
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let db = db.clone();
            tokio::spawn(async move {
                let mut conflicts = 0;
                let mut done = 0;
                while done < INCREMENTS {
                    let mut transaction = db.transaction();
                    let value = transaction.get("counter", "n").await.unwrap();
                    let value: u64 = value.map_or(0, |v| String::from_utf8(v).unwrap().parse().unwrap());
                    tokio::task::yield_now().await;
                    transaction.set("counter", "n", (value + 1).to_string());
                    match transaction.commit().await {
                        Ok(_) => done += 1,
                        Err(error) if error.kind() == ErrorKind::Conflict => conflicts += 1,
                        Err(error) => panic!("{error}"),
                    }
                    if task == 0 && done % 10 == 0 {
                        db.checkpoint().await.unwrap();
                    }
                }
                conflicts
            })
        })
        .collect();
    let mut conflicts = 0;
    for task in tasks {
        conflicts += task.await.unwrap();
    }
    let total = db.get("counter", "n").await.unwrap().unwrap();
    assert_eq!(String::from_utf8(total).unwrap(), (TASKS * INCREMENTS).to_string());
    assert!(conflicts > 0, "the tasks never got in each other's way: nothing was shown");
    db.close().await.unwrap();
}

#[tokio::test]
async fn a_transaction_of_a_wrong_kind_or_on_a_closed_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await;
    db.put("set", "m").await.unwrap();
    let mut transaction = db.transaction();
    transaction.set("set", "f", "v").set("fine", "f", "v");
    assert_eq!(transaction.commit().await.unwrap_err().kind(), ErrorKind::WrongKind);
    assert_eq!(db.kind("fine").await.unwrap(), None);
    let mut transaction = db.transaction();
    assert_eq!(transaction.get("set", "m").await.unwrap_err().kind(), ErrorKind::WrongKind);
    let reader = db.transaction();
    transaction.set("", "f", "v");
    assert_eq!(transaction.commit().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    db.close().await.unwrap();
    assert_eq!(reader.commit().await.unwrap_err().kind(), ErrorKind::Closed);
}

/// What a field answers depends on what else its key holds: nothing, or that the key holds a set.
#[tokio::test]
async fn a_field_that_was_not_there_conflicts_with_its_key_becoming_a_set_and_with_what_such_a_set_does() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await;
    for checkpoints in [false, true] {
        for (stored, later, conflicts) in [
            ("nothing", "put", true),
            ("nothing", "set", false),
            ("set", "remove", true),
            ("emptied set", "put", true),
            ("emptied set", "set", false),
        ] {
            db.delete("k").await.unwrap();
            if stored != "nothing" {
                db.put("k", "member").await.unwrap();
            }
            if checkpoints {
                db.checkpoint().await.unwrap();
            }
            if stored == "emptied set" {
                db.remove("k", "member").await.unwrap();
            }
            let mut transaction = db.transaction();
            let got = transaction.get("k", "f").await.map_err(|error| error.kind());
            assert_eq!(got, if stored == "set" { Err(ErrorKind::WrongKind) } else { Ok(None) });
            match later {
                "put" => db.put("k", "another").await.unwrap(),
                "set" => db.set("k", "another", "v").await.unwrap(),
                _ => db.remove("k", "member").await.unwrap(),
            }
            transaction.set("elsewhere", "f", "v");
            let error = transaction.commit().await.err().map(|error| error.kind());
            let case = format!("{stored}, {later}, checkpoints: {checkpoints}");
            assert_eq!(error, conflicts.then_some(ErrorKind::Conflict), "{case}");
        }
    }
    db.close().await.unwrap();
}
