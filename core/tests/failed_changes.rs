//! Failures of the disk that look like one that may be tried again, and are not.

use ironleaf::env::{
    BoxFuture, DirectoryLock, Disk, DiskError, DiskErrorKind, DiskResult, Env, File, OpenMode, os,
};
use ironleaf::{Database, Durability, ErrorKind, Options};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Says that the disk is full to who syncs a directory in which a file was renamed.
struct FullAfterRename {
    disk: Arc<dyn Disk>,
    is_on: Arc<AtomicBool>,
    was_renamed: AtomicBool,
}

impl Disk for FullAfterRename {
    fn create_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.create_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> BoxFuture<'static, DiskResult<Arc<dyn File>>> {
        self.disk.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.was_renamed.store(self.is_on.load(SeqCst), SeqCst);
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.remove(path)
    }

    fn list(&self, path: &Path) -> BoxFuture<'static, DiskResult<Vec<String>>> {
        self.disk.list(path)
    }

    fn sync_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        if self.was_renamed.swap(false, SeqCst) {
            let error = DiskError::new(DiskErrorKind::Full, "sync_dir", path);
            return Box::pin(async move { Err(error) });
        }
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> BoxFuture<'static, DiskResult<Box<dyn DirectoryLock>>> {
        self.disk.lock(path)
    }
}

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
    let disk = Arc::new(FullAfterRename {
        disk: env.disk.clone(),
        is_on: is_on.clone(),
        was_renamed: AtomicBool::new(false),
    });
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
