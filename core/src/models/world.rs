//! A small engine: log, memtables, pages and a checkpointer over a disk in memory, without the tasks of an open database.

use super::disk;
use crate::batch::WriteBatch;
use crate::checkpoint::{Checkpointer, Manifest, ManifestEdit};
use crate::database::{Counters, Engine, Pace, ReadState, Registry, SnapshotState, look_up};
use crate::env::Env;
use crate::ids::Lsn;
use crate::memtable::Memtable;
use crate::options::{Durability, Options};
use crate::page::{PageStore, PageTable, PageWriter, RootVersion};
use crate::sync::atomic::AtomicBool;
use crate::sync::{Arc, ArcSwap, Mutex};
use crate::tree::Attempt;
use crate::wal::{Log, LogPosition, RECORDS_START, SegmentHeader, prepare_segment};
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tokio::sync::mpsc;

const SEED: u64 = 7;
const LOG_BYTES: u64 = 8192;

/// What the threads of a model share.
#[derive(Clone)]
pub struct World(Arc<Engine>);

/// Makes the checkpoints of a [`World`].
pub struct Checkpoints(Checkpointer);

/// A registered snapshot.
pub struct View(Arc<SnapshotState>);

/// The outcome of a future that waits for nobody.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => unreachable!("the disk of a model answers at once"),
    }
}

/// The outcome of a future that waits for the disk alone.
fn to_its_end<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return outcome;
        }
    }
}

impl World {
    /// An empty engine, and who makes its checkpoints.
    #[must_use]
    pub fn empty() -> (Self, Checkpoints) {
        Self::on(disk::environment(disk::Syncs::AtOnce))
    }

    /// One whose log takes a while to sync. It is not for checkpoints.
    #[must_use]
    pub fn with_later_syncs() -> Self {
        let (world, _) = Self::on(disk::environment(disk::Syncs::Later));
        world
    }

    fn on(env: Env) -> (Self, Checkpoints) {
        let (directory, database) = (Path::new("model"), [SEED as u8; 16]);
        let options = Options { memory_bytes: 1 << 20, page_bytes: 256, ..Options::default() };
        let header = SegmentHeader {
            database,
            epoch: SEED,
            index: 0,
            generation: SEED,
            bytes: LOG_BYTES,
            manifest_edit: 1,
        };
        let edit = ManifestEdit {
            catalog: None,
            lsn: Lsn(0),
            log_durable: Lsn(0),
            log: LogPosition { segment: 0, offset: RECORDS_START },
            next_page_segment: 0,
            removed: Vec::new(),
            added: Vec::new(),
        };
        let (first, manifest) = to_its_end(async {
            let first = prepare_segment(&env, directory, &header, 0, None).await.expect("a segment");
            let manifest = Manifest::replace(&env, directory, (database, SEED), 1, &edit).await;
            (first, manifest.expect("a manifest"))
        });
        let limits = (options.memory_bytes / 2, options.page_files_max);
        let store = PageStore::new(env.clone(), directory, database, PageTable::default(), limits);
        let root = RootVersion::new(store.clone(), None, Lsn(0));
        let writer = PageWriter::new(store.clone(), options.page_bytes, options.page_segment_bytes);
        // Nobody serves commands: a model makes its checkpoints itself.
        let (commands, _) = mpsc::unbounded_channel();
        let active = Arc::new(Memtable::new(Lsn(0), SEED));
        let engine = Arc::new(Engine {
            log: Log::new(env.clone(), directory, &header, (first, Lsn(0)), (header.bytes, 0)),
            store,
            state: ArcSwap::from_pointee(ReadState { overlay: None, active, frozen: None, root }),
            snapshots: Mutex::new(Registry::default()),
            pace: Arc::new(Pace::new(options.memory_bytes / 4)),
            commands,
            memtable_seed: SEED,
            counters: Counters::default(),
            directory_lock: Mutex::new(None),
            is_closed: AtomicBool::new(false),
            is_read_only: false,
            left_out: Vec::new(),
            env,
            directory: directory.to_path_buf(),
            options,
        });
        let checkpointer = Checkpointer::new(engine.clone(), writer, manifest);
        (Self(engine), Checkpoints(checkpointer))
    }

    /// Commits one field, `Buffered`, and gives its position.
    pub fn set(&self, key: &str, value: &str) -> u64 {
        let mut batch = WriteBatch::new();
        batch.set(key, "f", value).durability(Durability::Buffered);
        at_once(self.0.commit(batch, Durability::Buffered, None)).expect("a commit").position.0
    }

    /// Commits one field, `Synced`, and gives its position once it is durable.
    pub async fn set_synced(&self, key: &str, value: &str) -> u64 {
        let mut batch = WriteBatch::new();
        batch.set(key, "f", value);
        self.0.commit(batch, Durability::Synced, None).await.expect("a commit").position.0
    }

    /// The newest durable position.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.0.log.lock().durable().0
    }

    /// What a read of the newest state finds.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<String> {
        let state = self.0.state.load_full();
        self.read(&state, state.active.visible(), key)
    }

    fn read(&self, state: &ReadState, at: Lsn, key: &str) -> Option<String> {
        let mut found = None;
        let read = &mut |value: &[u8]| found = Some(String::from_utf8_lossy(value).into_owned());
        let pages = self.0.store.cached();
        match look_up(&pages, state, at, (key.as_bytes(), b"f"), read).expect("nothing is damaged") {
            Attempt::Done(_) => found,
            Attempt::Missing(page) => panic!("{} is not cached", page.id),
        }
    }

    /// Registers a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> View {
        View(self.0.register_snapshot().1)
    }

    /// What the snapshot `view` shows.
    #[must_use]
    pub fn get_in(&self, view: &View, key: &str) -> Option<String> {
        self.read(&view.0.state().0, view.0.lsn, key)
    }
}

impl View {
    /// Whether it holds edits in memory.
    #[must_use]
    pub fn holds_edits(&self) -> bool {
        self.0.state().0.memtables().any(|memtable| !memtable.is_empty())
    }
}

impl Checkpoints {
    /// Makes a checkpoint of everything that is committed.
    pub fn make(&mut self) {
        at_once(self.0.checkpoint()).expect("a checkpoint");
    }
}
