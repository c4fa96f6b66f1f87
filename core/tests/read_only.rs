//! Looking at a directory must not change it: whatever a writing open would do to a damaged one, an operator who looks
//! first keeps the evidence, and reads what is readable.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]
#![expect(clippy::disallowed_methods, reason = "damages files, and compares them")]

use ironleaf::{Database, Durability, ErrorKind, Options, WriteBatch, env};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn small() -> Options {
    Options {
        memory_bytes: 1 << 20,
        log_segment_bytes: 64 << 10,
        page_segment_bytes: 256 << 10,
        ..Options::default()
    }
}

async fn look(path: &Path) -> ironleaf::Result<Database> {
    Database::open_read_only(env::os::environment()?, path, small()).await
}

/// Every file with its bytes and the time of its last change.
fn files(path: &Path) -> BTreeMap<String, (Vec<u8>, i64, i64)> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let changed = entry.metadata().unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        (entry.file_name().into_string().unwrap(), (bytes, changed.mtime(), changed.mtime_nsec()))
    });
    entries.collect()
}

/// A database with a large object in pages, and a commit that is only in the log.
async fn filled(path: &Path) {
    let db = Database::open(env::os::environment().unwrap(), path, small()).await.unwrap();
    let buffered = db.with_durability(Durability::Buffered);
    for n in 0..2000 {
        buffered.set("large", format!("{n:05}"), [7; 100]).await.unwrap();
    }
    db.checkpoint().await.unwrap();
    db.set("recent", "field", "value").await.unwrap();
    db.close().await.unwrap();
}

#[tokio::test]
async fn everything_is_readable_and_no_byte_or_file_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    filled(&path).await;
    std::fs::write(path.join("MANIFEST.new"), "a leaving").unwrap();
    let before = files(&path);
    let db = look(&path).await.unwrap();
    assert_eq!(db.len("large").await.unwrap(), 2000);
    assert_eq!(db.get("recent", "field").await.unwrap().as_deref(), Some(&b"value"[..]));
    let mut scan = db.scan("large", ..);
    let mut seen = 0;
    while scan.next().await.unwrap().is_some() {
        seen += 1;
    }
    assert_eq!(seen, 2000);
    assert!(db.check().await.unwrap().findings.is_empty());
    drop(scan);
    db.close().await.unwrap();
    assert_eq!(db.check().await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(files(&path), before);
}

#[tokio::test]
async fn every_write_is_refused_as_read_only_and_nothing_becomes_visible() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    filled(&path).await;
    let before = files(&path);
    let db = look(&path).await.unwrap();
    let visible = db.visible_point();
    let kinds = [
        db.set("k", "f", "v").await.unwrap_err().kind(),
        db.set("k", "f", vec![0; 200 << 10]).await.unwrap_err().kind(),
        db.delete("large").await.unwrap_err().kind(),
        db.take("recent", "field").await.unwrap_err().kind(),
        db.commit(WriteBatch::new()).await.unwrap_err().kind(),
        db.flush().await.unwrap_err().kind(),
        db.checkpoint().await.unwrap_err().kind(),
    ];
    assert!(kinds.iter().all(|kind| *kind == ErrorKind::ReadOnly), "{kinds:?}");
    let mut transaction = db.transaction();
    transaction.set("k", "f", "v");
    assert_eq!(transaction.commit().await.unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.visible_point(), visible);
    assert!(db.durable_point() < visible, "the log is not promised");
    db.close().await.unwrap();
    assert_eq!(files(&path), before);
}

#[tokio::test]
async fn there_is_one_opener_whatever_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let writer = Database::open(env::os::environment().unwrap(), &path, small()).await.unwrap();
    assert_eq!(look(&path).await.unwrap_err().kind(), ErrorKind::Locked);
    writer.close().await.unwrap();
    let reader = look(&path).await.unwrap();
    assert_eq!(look(&path).await.unwrap_err().kind(), ErrorKind::Locked);
    reader.close().await.unwrap();
    look(&path).await.unwrap().close().await.unwrap();
}

#[tokio::test]
async fn a_missing_database_is_not_created() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().join("absent"), dir.path().to_path_buf()] {
        assert_eq!(look(&path).await.unwrap_err().kind(), ErrorKind::NotFound, "{}", path.display());
    }
    assert!(files(dir.path()).is_empty());
    std::fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    assert_eq!(look(dir.path()).await.unwrap_err().kind(), ErrorKind::NotADatabase);
}

/// The page segment files, the largest first.
fn page_segments(path: &Path) -> Vec<String> {
    let files = files(path);
    let mut names: Vec<_> = files.keys().filter(|name| name.starts_with("pages-")).cloned().collect();
    names.sort_by_key(|name| std::cmp::Reverse(files[name].0.len()));
    names
}

#[tokio::test]
async fn a_damaged_page_is_typed_and_the_rest_stays_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    filled(&path).await;
    let segment = page_segments(&path).remove(0);
    let mut bytes = std::fs::read(path.join(&segment)).unwrap();
    bytes[100] ^= 1;
    std::fs::write(path.join(&segment), bytes).unwrap();
    let before = files(&path);
    let db = look(&path).await.unwrap();
    let (mut damaged, mut whole) = (0, 0);
    for n in 0..2000 {
        match db.get("large", format!("{n:05}")).await {
            Ok(value) => {
                assert_eq!(value.as_deref(), Some(&[7; 100][..]));
                whole += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                assert!(error.to_string().contains(&segment), "{error}");
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0 && whole > 1000, "{damaged} damaged, {whole} whole");
    assert!(!db.check().await.unwrap().findings.is_empty());
    db.close().await.unwrap();
    assert_eq!(files(&path), before);
}

#[tokio::test]
async fn a_missing_page_segment_is_typed_and_the_log_stays_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    filled(&path).await;
    let segments = page_segments(&path);
    for segment in &segments {
        std::fs::remove_file(path.join(segment)).unwrap();
    }
    let db = look(&path).await.unwrap();
    assert_eq!(db.get("recent", "field").await.unwrap().as_deref(), Some(&b"value"[..]));
    let error = db.get("large", "00000").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(segments.iter().any(|segment| error.to_string().contains(segment)), "{error}");
    assert!(!db.check().await.unwrap().findings.is_empty());
}

#[tokio::test]
async fn a_damaged_log_or_manifest_is_refused_and_stays_as_it_was() {
    for name in ["MANIFEST", "log-"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        filled(&path).await;
        let names: Vec<_> = files(&path).into_keys().filter(|found| found.starts_with(name)).collect();
        for name in names {
            let mut bytes = std::fs::read(path.join(&name)).unwrap();
            for at in [20, 532] {
                bytes[at] ^= 1;
            }
            std::fs::write(path.join(&name), bytes).unwrap();
        }
        let before = files(&path);
        let error = look(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert_eq!(files(&path), before);
    }
}

#[tokio::test]
async fn a_log_that_does_not_fit_into_memory_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Database::open(env::os::environment().unwrap(), &path, small()).await.unwrap();
    for n in 0..100 {
        db.with_durability(Durability::Buffered).set("k", format!("{n}"), [1; 1000]).await.unwrap();
    }
    db.close().await.unwrap();
    let before = files(&path);
    let tiny = Options { memory_bytes: 64 << 10, ..small() };
    let error = Database::open_read_only(env::os::environment().unwrap(), &path, tiny).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceExhausted, "{error}");
    assert!(error.to_string().contains("memory_bytes"), "{error}");
    assert_eq!(files(&path), before);
    assert_eq!(look(&path).await.unwrap().len("k").await.unwrap(), 100);
}
