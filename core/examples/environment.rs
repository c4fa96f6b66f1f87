//! An environment of one's own: a disk that counts what it is asked for. In the same way a disk may be slow, or fail, in
//! a test of the program that embeds the engine: `cargo run -p ironleaf --example environment [DIRECTORY]`.
#![expect(clippy::print_stdout, reason = "an example shows what it counted")]

use ironleaf::env::{BoxFuture, DirectoryLock, Disk, DiskResult, Env, File, OpenMode, os};
use ironleaf::{Database, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Passes everything on, and counts the files that are opened and the syncs of directories.
struct Counting {
    disk: Arc<dyn Disk>,
    opened: AtomicU64,
    directory_syncs: AtomicU64,
}

impl Disk for Counting {
    fn open(&self, path: &Path, mode: OpenMode) -> BoxFuture<'static, DiskResult<Arc<dyn File>>> {
        self.opened.fetch_add(1, Relaxed);
        self.disk.open(path, mode)
    }
    fn sync_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.directory_syncs.fetch_add(1, Relaxed);
        self.disk.sync_dir(path)
    }
    fn create_dir(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> BoxFuture<'static, DiskResult<()>> {
        self.disk.remove(path)
    }
    fn list(&self, path: &Path) -> BoxFuture<'static, DiskResult<Vec<String>>> {
        self.disk.list(path)
    }
    fn lock(&self, path: &Path) -> BoxFuture<'static, DiskResult<Box<dyn DirectoryLock>>> {
        self.disk.lock(path)
    }
}

#[tokio::main]
async fn main() -> ironleaf::Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| std::env::temp_dir().join("ironleaf-environment"));
    let machine = os::environment()?;
    let (opened, directory_syncs) = (AtomicU64::new(0), AtomicU64::new(0));
    let disk = Arc::new(Counting { disk: machine.disk.clone(), opened, directory_syncs });
    let env = Env { disk: disk.clone(), ..machine };
    let database = Database::open(env, &directory, Options::default()).await?;
    database.set("k", "f", "v").await?;
    database.close().await?;
    let (opened, synced) = (disk.opened.load(Relaxed), disk.directory_syncs.load(Relaxed));
    println!("{opened} files opened, {synced} syncs of directories");
    assert!(opened > 0 && synced > 0);
    Ok(())
}
