//! Failures of the disk that look like one that may be tried again, and are not.

mod refusing_disk;

use ironleaf::env::{DiskErrorKind, Env, os};
use ironleaf::{Database, Durability, ErrorKind, Options};
use refusing_disk::{Call, RefusingDisk};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn small() -> Options {
    Options {
        memory_bytes: 256 << 10,
        log_segment_bytes: 64 << 10,
        page_bytes: 256,
        durability: Durability::Written,
        ..Options::default()
    }
}

/// The old manifest has lost its name then, so nothing that is appended to it counts: going on as after an ordinary
/// full disk would lose every later checkpoint.
#[tokio::test]
async fn a_directory_that_cannot_be_synced_behind_a_new_manifest_poisons_whatever_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let env = os::environment().unwrap();
    let is_on = Arc::new(AtomicBool::new(false));
    let was_renamed = AtomicBool::new(false);
    let refuse = {
        let is_on = is_on.clone();
        move |call| match call {
            Call::Rename => {
                was_renamed.store(is_on.load(SeqCst), SeqCst);
                None
            }
            // The directory in which a file was renamed finds the disk full.
            Call::SyncDirectory => was_renamed.swap(false, SeqCst).then_some(DiskErrorKind::Full),
            Call::Create => None,
        }
    };
    let disk = Arc::new(RefusingDisk { disk: env.disk.clone(), refuse });
    let db = Database::open(Env { disk, ..env.clone() }, &path, small()).await.unwrap();
    is_on.store(true, SeqCst);
    let mut commits: u32 = 0;
    let error = loop {
        db.set("k", format!("{commits}"), "v").await.unwrap();
        commits += 1;
        if let Err(error) = db.checkpoint().await {
            break error;
        }
        assert!(commits < 1000, "the manifest was never rewritten, or its failure was hidden");
    };
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(db.set("k", "later", "v").await.unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(db.len("k").await.unwrap(), u64::from(commits), "reads go on");
    let _ = db.close().await;
    let db = Database::open(env, &path, small()).await.unwrap();
    assert_eq!(db.len("k").await.unwrap(), u64::from(commits));
    db.close().await.unwrap();
}
