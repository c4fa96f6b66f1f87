//! Opening a database to look at it, without changing a byte of it.
//!
//! The log is replayed into memory only. There are no background tasks, no new epoch and no cleaning up, so whatever
//! is damaged stays as it was found, for a later and better attempt.

use super::engine::{Closing, Counters, Engine, ReadState, Registry, Running};
use super::open::{Opening, find_or_create, missing_page_segment, take_lock};
use super::pace::Pace;
use crate::checkpoint::ManifestState;
use crate::env::{BoxFuture, DiskError, DiskErrorKind, DiskResult, Env, File, OpenMode};
use crate::error::{Error, ErrorKind, Result};
use crate::memtable::Memtable;
use crate::options::Options;
use crate::page::{PageTable, RootVersion, page_segment_name};
use crate::salvage::Salvage;
use crate::sync::atomic::AtomicBool;
use crate::sync::{Arc, ArcSwap, Mutex};
use crate::wal::{Log, RECORDS_START, Replay, Segment, SegmentHeader};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;

/// Opens the database in `path` for reading.
pub(super) async fn open_read_only(env: Env, path: &Path, options: Options) -> Result<Running> {
    options.validate()?;
    let options = Options { create_if_missing: false, ..options };
    find_or_create(&env, path, &options).await?;
    let lock = take_lock(&env, path).await?;
    let names = env.disk.list(path).await?;
    let opening = Opening { env, path: path.to_path_buf(), options };
    let mut salvage = if opening.options.salvage { Salvage::passing_over() } else { Salvage::refusing() };
    let Some(state) = ManifestState::read(&opening.env, path, &mut salvage).await? else {
        opening.refuse_foreign(&names).await?;
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("there is no database at {}; check the path", path.display()),
        ));
    };
    let store = opening.page_store(state.database, page_table(&opening, &state, &mut salvage).await?);
    let seed = opening.env.random_u64();
    let active = replay(&opening, &state, &names, seed, &mut salvage).await?;
    let Opening { env, path, options } = opening;
    let root = RootVersion::new(store.clone(), state.catalog, state.lsn);
    // Nobody serves commands: whoever could send one is refused before.
    let (commands, _) = mpsc::unbounded_channel();
    let engine = Arc::new(Engine {
        log: silent_log(&env, &path, &state, &options),
        store,
        state: ArcSwap::from_pointee(ReadState {
            overlay: None,
            active: Arc::new(active),
            frozen: None,
            root,
        }),
        snapshots: Mutex::new(Registry::default()),
        pace: Arc::new(Pace::new(options.memory_bytes / 4)),
        commands,
        memtable_seed: seed,
        counters: Counters::default(),
        directory_lock: Mutex::new(Some(lock)),
        is_closed: AtomicBool::new(false),
        is_read_only: true,
        left_out: salvage.left_out,
        env,
        directory: path,
        options,
    });
    let closing = Closing { tasks: Vec::new(), keeper_ended: None, outcome: None };
    Ok(Running { engine, closing: tokio::sync::Mutex::new(closing) })
}

/// The commits that the log holds behind the pages. Half of the memory is for them, what a writing open has for its
/// two memtables.
async fn replay(
    opening: &Opening,
    state: &ManifestState,
    names: &[String],
    seed: u64,
    salvage: &mut Salvage,
) -> Result<Memtable> {
    let limit = opening.options.memory_bytes / 2;
    let memtable = Memtable::new(state.lsn, seed);
    let mode = OpenMode::Read;
    let mut replay = Replay::open(&opening.env, &opening.path, names, mode, state, salvage).await?;
    loop {
        // Where the log is damaged it ends: what is behind depends on what is not there.
        let record = match replay.next().await {
            Err(error) => return salvage.pass_over(error).map(|()| memtable),
            Ok(None) => return Ok(memtable),
            Ok(Some(record)) => record,
        };
        if let Err(malformed) = memtable.apply(record.lsn, &Bytes::from(record.payload)) {
            let place = format!("log record {}", record.lsn);
            let error = Error::corruption(place, malformed.offset as u64, malformed.expected, "other bytes");
            return salvage.pass_over(error).map(|()| memtable);
        }
        if memtable.bytes() > limit {
            return Err(Error::new(
                ErrorKind::ResourceExhausted,
                format!(
                    "the log up to commit {} takes {} bytes of memory, and half of memory_bytes is {limit}; \
                     open read-only with a larger memory_bytes, or for writing, which moves the log into pages",
                    record.lsn,
                    memtable.bytes()
                ),
            ));
        }
    }
}

async fn segment_bytes(opened: DiskResult<Arc<dyn File>>) -> Result<u64> {
    Ok(opened?.len().await?)
}

/// The pages that the manifest names. A segment that is missing or cannot be opened is told of; it fails those reads
/// that need a page of it.
async fn page_table(opening: &Opening, state: &ManifestState, salvage: &mut Salvage) -> Result<PageTable> {
    let mut table = PageTable::default();
    for id in state.page_segments() {
        let path = opening.path.join(page_segment_name(id));
        let bytes = match opening.env.disk.open(&path, OpenMode::Read).await {
            Err(error) if error.kind == DiskErrorKind::NotFound => {
                salvage.note(missing_page_segment(id));
                0
            }
            opened => match segment_bytes(opened).await {
                Err(error) if error.is_failed_read() => {
                    salvage.note(error);
                    0
                }
                bytes => bytes?,
            },
        };
        table.add_segment(id, bytes);
    }
    table.next_segment = table.next_segment.max(state.next_page_segment);
    table.install_all(&state.pages)?;
    Ok(table)
}

/// A log that is never written: no commit gets as far as that. Its durable position is the manifest's.
fn silent_log(env: &Env, path: &Path, state: &ManifestState, options: &Options) -> Arc<Log> {
    let header = SegmentHeader {
        database: state.database,
        epoch: state.epoch,
        index: 0,
        generation: 0,
        bytes: (options.log_segment_bytes as u64).max(RECORDS_START),
        manifest_edit: state.edit,
    };
    let file = Arc::new(MissingFile { path: path.join("log-*") });
    let first = Segment { slot: 0, index: 0, bytes: header.bytes, binding: header.binding(), file };
    Log::new(env.clone(), path, &header, (first, state.lsn), (header.bytes, 0))
}

/// Stands for a file that is not there: every operation fails with `NotFound`.
struct MissingFile {
    path: PathBuf,
}

impl MissingFile {
    fn fail<T: Send + 'static>(&self, operation: &'static str) -> BoxFuture<'static, DiskResult<T>> {
        let error = DiskError::new(DiskErrorKind::NotFound, operation, &*self.path);
        Box::pin(async move { Err(error) })
    }
}

impl File for MissingFile {
    fn read_at(&self, _offset: u64, _len: usize) -> BoxFuture<'static, DiskResult<Vec<u8>>> {
        self.fail("read")
    }

    fn write_at(&self, _offset: u64, _data: Bytes) -> BoxFuture<'static, DiskResult<()>> {
        self.fail("write")
    }

    fn sync_data(&self) -> BoxFuture<'static, DiskResult<()>> {
        self.fail("sync")
    }

    fn set_len(&self, _len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.fail("set length")
    }

    fn preallocate(&self, _len: u64) -> BoxFuture<'static, DiskResult<()>> {
        self.fail("preallocate")
    }

    fn len(&self) -> BoxFuture<'static, DiskResult<u64>> {
        self.fail("length")
    }
}
