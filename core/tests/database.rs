//! The public interface on a real directory.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]

use ironleaf::{Database, Durability, ErrorKind, Kind, Options, WriteBatch, env};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;

/// Options small enough that logs rotate, memtables freeze and trees split within a test.
fn small() -> Options {
    Options {
        memory_bytes: 256 << 10,
        log_segment_bytes: 64 << 10,
        page_bytes: 1024,
        page_segment_bytes: 64 << 10,
        durability: Durability::Written,
        ..Options::default()
    }
}

async fn open(path: &Path, options: Options) -> Database {
    Database::open(env::os::environment().unwrap(), path, options).await.unwrap()
}

async fn contents(db: &Database, key: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut scan = db.scan(key, ..);
    let mut entries = Vec::new();
    while let Some(entry) = scan.next().await.unwrap() {
        entries.push(entry);
    }
    entries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_closed_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path, small()).await;
    db.set("user:1", "name", "Ada").await.unwrap();
    assert!(db.add("tags", "x").await.unwrap());
    assert!(!db.add("tags", "x").await.unwrap());
    assert_eq!(db.insert("user:1", "name", "Bob").await.unwrap(), Some(b"Ada".to_vec()));
    db.close().await.unwrap();
    assert_eq!(db.get("user:1", "name").await.unwrap_err().kind(), ErrorKind::Closed);
    let db = open(&path, small()).await;
    assert_eq!(db.get("user:1", "name").await.unwrap(), Some(b"Bob".to_vec()));
    assert_eq!(db.kind("tags").await.unwrap(), Some(Kind::Set));
    assert_eq!(db.len("tags").await.unwrap(), 1);
    assert_eq!(db.get("tags", "x").await.unwrap_err().kind(), ErrorKind::WrongKind);
    assert_eq!(db.check().await.unwrap().findings, []);
    db.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_writes_match_a_map_across_checkpoints_and_reopens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut db = open(&path, small()).await;
    let mut model: BTreeMap<u32, BTreeMap<Vec<u8>, Vec<u8>>> = BTreeMap::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut kept = Vec::new();
    for step in 0..20_000u32 {
        let object = next(8) as u32;
        let key = format!("object-{object}");
        let field = format!("field-{:05}", next(4u64.pow(object + 1))).into_bytes();
        match next(100) {
            0 => {
                db.delete(&key).await.unwrap();
                model.remove(&object);
            }
            1..=25 => {
                let was = db.take(&key, &field).await.unwrap();
                assert_eq!(
                    was,
                    model.get_mut(&object).and_then(|fields| fields.remove(&field)),
                    "step {step}"
                );
            }
            _ => {
                let value = vec![step as u8; next(60) as usize];
                db.set(&key, &field, &value).await.unwrap();
                model.entry(object).or_default().insert(field, value);
            }
        }
        if step % 4000 == 1999 {
            let snapshot = db.snapshot();
            kept.push((snapshot, model.clone()));
        }
        if step % 5000 == 4999 {
            verify(&db, &model).await;
            for (snapshot, model) in &kept {
                for (object, fields) in model {
                    let mut scan = snapshot.scan(format!("object-{object}"), ..);
                    for (field, value) in fields {
                        assert_eq!(scan.next().await.unwrap(), Some((field.clone(), value.clone())));
                    }
                    assert_eq!(scan.next().await.unwrap(), None);
                }
            }
        }
        if step == 9999 {
            kept.clear();
            db.close().await.unwrap();
            drop(db);
            db = open(&path, small()).await;
            verify(&db, &model).await;
        }
    }
    drop(kept);
    db.checkpoint().await.unwrap();
    let metrics = db.metrics();
    assert!(metrics.checkpoints > 5, "{metrics:?}");
    let report = db.check().await.unwrap();
    assert_eq!(report.findings, []);
    db.close().await.unwrap();
}

async fn verify(db: &Database, model: &BTreeMap<u32, BTreeMap<Vec<u8>, Vec<u8>>>) {
    for (object, fields) in model {
        let key = format!("object-{object}");
        let expected: Vec<_> = fields.iter().map(|(field, value)| (field.clone(), value.clone())).collect();
        assert!(contents(db, &key).await == expected, "{key}");
        assert_eq!(db.len(&key).await.unwrap(), fields.len() as u64);
        for (field, value) in fields.iter().take(20) {
            assert_eq!(db.get(&key, field).await.unwrap().as_ref(), Some(value));
        }
    }
    let mut keys = db.keys("object-");
    let mut found = Vec::new();
    while let Some((key, kind)) = keys.next().await.unwrap() {
        assert_eq!(kind, Kind::Hash);
        found.push(String::from_utf8(key).unwrap());
    }
    let expected: Vec<_> = model
        .iter()
        .filter(|(_, fields)| !fields.is_empty())
        .map(|(object, _)| format!("object-{object}"))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(db.check().await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_sees_its_own_edits_and_is_refused_whole() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"), small()).await;
    let mut batch = WriteBatch::new();
    batch.insert("h", "f", "1").insert("h", "f", "2").take("h", "f").add("h", "member");
    let commit = db.commit(batch).await.unwrap();
    assert_eq!(commit.outcomes, [None, Some(b"1".to_vec()), Some(b"2".to_vec()), None]);
    assert_eq!(db.kind("h").await.unwrap(), Some(Kind::Set));
    let mut batch = WriteBatch::new();
    batch.set("other", "f", "v").set("h", "f", "v");
    assert_eq!(db.commit(batch).await.unwrap_err().kind(), ErrorKind::WrongKind);
    assert_eq!(db.kind("other").await.unwrap(), None);
    db.remove("h", "member").await.unwrap();
    db.set("h", "f", "v").await.unwrap();
    assert_eq!(db.get("h", "f").await.unwrap(), Some(b"v".to_vec()));
    db.close().await.unwrap();
}

/// As many changes of kind as one likes fit into a batch: checking them takes a time in proportion to it.
#[tokio::test]
async fn a_batch_may_change_kinds_thousands_of_times() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memory_bytes: 64 << 20, log_segment_bytes: 4 << 20, ..small() };
    let db = open(dir.path(), options).await;
    let key = |n: usize| format!("k{}", n % 500);
    for n in 0..500 {
        db.put(key(n), "stored").await.unwrap();
    }
    db.checkpoint().await.unwrap();
    for counts in [false, true] {
        let mut batch = WriteBatch::new();
        for n in 0..500 {
            batch.remove(key(n), "stored");
        }
        for n in 0..3000 {
            batch.set(key(n), "f", "v").remove(key(n), "f").put(key(n), "m").remove(key(n), "m");
        }
        for n in 0..500 {
            batch.put(key(n), "stored");
        }
        if counts {
            batch.take("k7", "stored");
        }
        let commit = db.commit(batch).await.unwrap();
        assert_eq!(commit.outcomes, if counts { vec![Some(Vec::new())] } else { vec![] });
        assert_eq!(contents(&db, "k8").await, [(b"stored".to_vec(), Vec::new())]);
    }
    assert_eq!(contents(&db, "k7").await, []);
    // One entry that the batch does not know of, or has itself put, and nothing of it is done.
    for last in ["stored", "own"] {
        let mut batch = WriteBatch::new();
        batch.remove("k9", "stored").set("k9", "f", "v").remove("k9", "f").put("k10", "own");
        batch.remove("k10", if last == "own" { "stored" } else { "own" }).set("k10", "f", "v");
        assert_eq!(db.commit(batch).await.unwrap_err().kind(), ErrorKind::WrongKind);
        assert_eq!(contents(&db, "k9").await, [(b"stored".to_vec(), Vec::new())]);
    }
    db.close().await.unwrap();
}

#[tokio::test]
async fn a_dropped_leader_of_a_group_commit_strands_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = open(&path, small()).await.with_durability(Durability::Synced);
    for round in 0..200 {
        let mut dropped: Vec<_> = (0..3)
            .map(|n| {
                let db = db.clone();
                Box::pin(async move {
                    db.set_many("dropped", [(format!("{round}-{n}-a"), "1"), (format!("{round}-{n}-b"), "2")])
                        .await
                })
            })
            .collect();
        for future in &mut dropped {
            let waker = std::task::Waker::noop();
            // The first of these leads; each gets as far as it can without waiting.
            let _ = future.as_mut().poll(&mut std::task::Context::from_waker(waker));
        }
        drop(dropped);
        db.set("kept", format!("{round}"), "v").await.unwrap();
    }
    db.close().await.unwrap();
    let db = open(&path, small()).await;
    assert_eq!(db.len("kept").await.unwrap(), 200);
    let names: Vec<_> = contents(&db, "dropped").await.into_iter().map(|(name, _)| name).collect();
    for pair in names.chunks(2) {
        assert_eq!(pair[0].strip_suffix(b"a"), pair[1].strip_suffix(b"b"), "a batch is whole or absent");
    }
    db.close().await.unwrap();
}

#[tokio::test]
async fn names_that_no_object_can_have_are_refused_by_reads_too() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"), small()).await;
    let long = vec![b'x'; (64 << 10) + 1];
    let limit = &long[1..];
    let empty: &[u8] = b"";
    for (key, name) in [(empty, limit), (&long, empty), (limit, &long)] {
        let refusals = [
            db.get(key, name).await.map(drop),
            db.snapshot().get_with(key, name, |_| ()).await.map(drop),
            db.contains(key, name).await.map(drop),
            db.transaction().get(key, name).await.map(drop),
            db.set(key, name, "v").await,
        ];
        for refusal in refusals {
            assert_eq!(refusal.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }
    for key in [empty, &long] {
        let refusals = [
            db.len(key).await.map(drop),
            db.kind(key).await.map(drop),
            db.scan(key, ..).next().await.map(drop),
            db.scan_reverse(key, ..).next().await.map(drop),
        ];
        for refusal in refusals {
            assert_eq!(refusal.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }
    assert_eq!(db.get(limit, limit).await.unwrap(), None);
    db.close().await.unwrap();
}
