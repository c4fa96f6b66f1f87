//! Opening: creating a database, and recovering one.
//!
//! Recovery reads the old state and writes a new one beside it: replayed commits go into new page segments, a new
//! manifest with a new epoch names them, and only when the renamed manifest is durable does anything that the old
//! state names go. A crash at any moment starts over from the untouched old state.

use super::engine::{Closing, Counters, Engine, ReadState, Registry, Running};
use super::pace::Pace;
use crate::checkpoint::{Checkpointer, MANIFEST, MANIFEST_NEW, Manifest, ManifestEdit, ManifestState, merge};
use crate::env::{DirectoryLock, DiskErrorKind, Env, File, OpenMode};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Lsn;
use crate::memtable::Memtable;
use crate::options::Options;
use crate::page::{PageStore, PageTable, PageWriter, RootVersion, page_segment_id, page_segment_name};
use crate::salvage::Salvage;
use crate::sync::atomic::AtomicBool;
use crate::sync::{Arc, ArcSwap, Mutex};
use crate::tree::PageRef;
use crate::wal::{
    Leaving, Log, LogPosition, RECORDS_START, RESERVE, Replay, SegmentHeader, leaving, prepare_segment,
    segment_name, segment_slot,
};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Most bytes that the reserve keeps for pages.
const RESERVED_PAGE_BYTES_MAX: u64 = 64 << 20;
/// How often, and how long each time, an opener waits for the lock of a directory.
const LOCK_WAITS: u32 = 20;
const LOCK_WAIT: Duration = Duration::from_millis(10);

/// Opens the database in `path`.
pub(super) async fn open(env: Env, path: &Path, options: Options) -> Result<Running> {
    options.validate()?;
    if options.salvage {
        let message = "salvage is for read-only opens: use open_read_only";
        return Err(Error::invalid_input(message));
    }
    if path.as_os_str().is_empty() {
        return Err(Error::invalid_input("the path of the database is empty; name a directory"));
    }
    find_or_create(&env, path, &options).await?;
    let lock = take_lock(&env, path).await?;
    // Only now: while somebody else had the lock, anything may have come.
    let names = env.disk.list(path).await?;
    let opening = Opening { env, path: path.to_path_buf(), options };
    let start = match opening.attempt(&names).await {
        Err(error) if error.kind() == ErrorKind::DiskFull && opening.spend_reserve(&names).await => {
            opening.attempt(&opening.env.disk.list(path).await?).await?
        }
        attempted => attempted?,
    };
    Ok(opening.start(start, lock))
}

/// Takes the directory's lock. Waits a little for a handle that was dropped without being closed, whose last operation
/// holds it still.
pub(super) async fn take_lock(env: &Env, path: &Path) -> Result<Box<dyn DirectoryLock>> {
    let mut waits = LOCK_WAITS;
    loop {
        match env.disk.lock(path).await {
            Err(error) if error.kind == DiskErrorKind::Locked && waits > 0 => {
                waits -= 1;
                env.clock.sleep(LOCK_WAIT).await;
            }
            Err(error) if error.kind == DiskErrorKind::Locked => {
                let message = format!(
                    "{} is open already, here or in another process; close it there, then try again",
                    path.display()
                );
                return Err(Error::new(ErrorKind::Locked, message));
            }
            locked => return Ok(locked?),
        }
    }
}

/// Sees to it that there is a directory, which may be another's.
pub(super) async fn find_or_create(env: &Env, path: &Path, options: &Options) -> Result<()> {
    match env.disk.list(path).await {
        Err(error) if error.kind == DiskErrorKind::NotFound && options.create_if_missing => {
            match env.disk.create_dir(path).await {
                Err(error) if error.kind == DiskErrorKind::NotFound => Err(Error::new(
                    ErrorKind::NotFound,
                    format!(
                        "cannot create {:?}: its parent directory does not exist; create that first",
                        path
                    ),
                )),
                // Somebody else was faster.
                Err(error) if error.kind == DiskErrorKind::AlreadyExists => Ok(()),
                created => Ok(created?),
            }
        }
        Err(error) if error.is_not_a_directory() => Err(Error::new(
            ErrorKind::NotADatabase,
            format!("{} is a file; a database is a directory: choose another path", path.display()),
        )),
        Err(error) if error.kind == DiskErrorKind::NotFound => Err(Error::new(
            ErrorKind::NotFound,
            format!("there is no database at {}; check the path", path.display()),
        )),
        listed => Ok(listed.map(drop)?),
    }
}

pub(super) struct Opening {
    pub(super) env: Env,
    pub(super) path: PathBuf,
    pub(super) options: Options,
}

/// A durable state, ready to be served.
struct Start {
    store: Arc<PageStore>,
    writer: PageWriter,
    manifest: Manifest,
    log: Arc<Log>,
    catalog: Option<PageRef>,
    lsn: Lsn,
}

impl Opening {
    /// Everything up to a durable state. Nothing that the old state names is touched before that.
    async fn attempt(&self, names: &[String]) -> Result<Start> {
        match ManifestState::read(&self.env, &self.path, &mut Salvage::refusing()).await? {
            Some(state) => self.recover(state, names).await,
            None => self.create(names).await,
        }
    }

    /// Gives the space of the reserve to an open that the disk is too full for. `false` if there is no reserve.
    async fn spend_reserve(&self, names: &[String]) -> bool {
        let is_spent = names.iter().any(|name| name == RESERVE)
            && self.env.disk.remove(&self.path.join(RESERVE)).await.is_ok();
        if is_spent {
            reached!("open spends the reserve");
        }
        is_spent
    }

    /// Creates a database in an empty directory, or in one that an interrupted creation left.
    async fn create(&self, names: &[String]) -> Result<Start> {
        self.refuse_foreign(names).await?;
        if !self.options.create_if_missing {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no database at {}; check the path", self.path.display()),
            ));
        }
        if names.iter().any(|name| name == MANIFEST_NEW) {
            // It goes first, and for good: by the segments beside it it is known as ours.
            self.env.disk.remove(&self.path.join(MANIFEST_NEW)).await?;
            self.env.disk.sync_dir(&self.path).await?;
        }
        for name in names.iter().filter(|name| *name != MANIFEST_NEW) {
            reached!("interrupted creation cleared");
            self.env.disk.remove(&self.path.join(name)).await?;
        }
        let mut database = [0; 16];
        self.env.entropy.fill(&mut database);
        let store = self.page_store(database, PageTable::default());
        let writer = self.page_writer(&store);
        let next_slot = names.iter().filter_map(|name| segment_slot(name)).max().map_or(0, |slot| slot + 1);
        let first = ManifestEdit::default();
        let (manifest, log) = self.begin_epoch(database, 1, (next_slot, None), first).await?;
        Ok(Start { store, writer, manifest, log, catalog: None, lsn: Lsn(0) })
    }

    /// Refuses a directory whose files are not the leavings of an interrupted creation.
    pub(super) async fn refuse_foreign(&self, names: &[String]) -> Result<()> {
        for name in names {
            let is_ours =
                [MANIFEST, MANIFEST_NEW, RESERVE].contains(&&**name) || segment_slot(name).is_some();
            if !is_ours && page_segment_id(name).is_none() {
                return Err(self.foreign(name));
            }
        }
        if planted!("empty-manifest-is-new") {
            return Ok(());
        }
        let mut has_segment = false;
        for name in names.iter().filter(|name| *name == RESERVE || segment_slot(name).is_some()) {
            let file = self.env.disk.open(&self.path.join(name), OpenMode::Read).await?;
            match leaving(&file).await? {
                Leaving::Foreign => return Err(self.foreign(name)),
                Leaving::Segment => has_segment = true,
                Leaving::Nothing => {}
            }
        }
        // A segment was durable before the manifest was begun, so a manifest beside one is ours, also if power loss
        // destroyed the sector that it begins with.
        if !has_segment && names.iter().any(|name| name == MANIFEST_NEW) {
            let file = self.env.disk.open(&self.path.join(MANIFEST_NEW), OpenMode::Read).await?;
            if !ManifestState::may_be_leaving(&file).await? {
                return Err(self.foreign(MANIFEST_NEW));
            }
        }
        let has_pages = names.iter().any(|name| page_segment_id(name).is_some());
        if has_pages || Replay::holds_records(&self.env, &self.path, names).await? {
            return Err(Error::corruption(
                self.path.join(MANIFEST).display(),
                0,
                "the manifest of the log and pages beside it",
                "no file",
            ));
        }
        Ok(())
    }

    fn foreign(&self, name: &str) -> Error {
        Error::new(
            ErrorKind::NotADatabase,
            format!(
                "{} holds {name:?} and no {MANIFEST}: it is not an Ironleaf database; choose another path",
                self.path.display()
            ),
        )
    }

    async fn recover(&self, state: ManifestState, names: &[String]) -> Result<Start> {
        let mode = OpenMode::ReadWrite;
        let mut salvage = Salvage::refusing();
        let mut replay = Replay::open(&self.env, &self.path, names, mode, &state, &mut salvage).await?;
        let table = self.page_table(&state, names).await?;
        let store = self.page_store(state.database, table);
        let mut writer = self.page_writer(&store);
        let mut leavings = self.leavings(&state, &mut replay, names);
        let base = (state.catalog, state.lsn);
        let replayed = self.replay(&mut replay, &mut writer, base, &mut leavings).await;
        let (catalog, lsn) = match replayed {
            Ok(replayed) => replayed,
            Err(error) => {
                self.discard_new_segments(&store, &state).await;
                return Err(error);
            }
        };
        tracing::info!(
            directory = %self.path.display(),
            from = state.lsn.0,
            to = lsn.0,
            "log replayed"
        );
        self.remove_all(&mut leavings).await?;
        if planted!("recovered-pages-not-synced") {
            writer.flush().await?;
        } else {
            writer.sync().await?;
        }
        self.env.point("replayed pages synced").await;
        let retired = writer.take().retired;
        let edit = {
            let mut table = store.table.lock();
            for id in &retired {
                table.retire(*id);
            }
            ManifestEdit {
                catalog,
                lsn,
                log_durable: lsn,
                log: LogPosition::default(),
                next_page_segment: table.next_segment,
                removed: Vec::new(),
                added: table.current().collect(),
            }
        };
        let next_slot = names.iter().filter_map(|name| segment_slot(name)).max().map_or(0, |slot| slot + 1);
        let place = replay.newest_file().filter(|_| planted!("recovery-overwrites-log"));
        let place = place.map_or((next_slot, None), |(slot, file)| (slot, Some(file)));
        let (manifest, log) = self.begin_epoch(state.database, state.edit + 1, place, edit).await?;
        store.release(retired);
        self.clean_up(replay.into_files(), &log, &store, &writer, (names, state.next_page_segment)).await?;
        Ok(Start { store, writer, manifest, log, catalog, lsn })
    }

    /// Files that no durable state can name: what attempts to open left that were cut short. That the manifest which was
    /// read does not name a file is not enough: its last edit may never have been synced, and then the state before it
    /// is the durable one. Segment numbers only grow, so what is beyond the manifest's was never named.
    fn leavings(&self, state: &ManifestState, replay: &mut Replay, names: &[String]) -> Vec<String> {
        let is_beyond =
            |name: &&String| page_segment_id(name).is_some_and(|id| id >= state.next_page_segment);
        let segments = names.iter().filter(is_beyond).cloned();
        segments.chain(replay.take_leavings().into_iter().map(segment_name)).collect()
    }

    /// Removes leavings. They go before anything is written, so that a disk does not fill up with attempts, but not
    /// before it is certain that what is to be replayed first is sound.
    async fn remove_all(&self, leavings: &mut Vec<String>) -> Result<()> {
        for name in std::mem::take(leavings) {
            reached!("leavings removed");
            self.env.disk.remove(&self.path.join(name)).await?;
        }
        Ok(())
    }

    /// Removes the page segments of a replay that failed: nothing names them, and who is refused leaves nothing behind.
    async fn discard_new_segments(&self, store: &PageStore, state: &ManifestState) {
        let named = state.page_segments();
        let created: Vec<u64> =
            store.table.lock().segments.keys().filter(|id| !named.contains(id)).copied().collect();
        for id in created {
            store.files.remove(id);
            // If that fails the next open tries again.
            let _ = self.env.disk.remove(&self.path.join(page_segment_name(id))).await;
        }
    }

    /// Replays the log into pages; returns the catalog and the last position.
    async fn replay(
        &self,
        replay: &mut Replay,
        writer: &mut PageWriter,
        (mut catalog, mut done): (Option<PageRef>, Lsn),
        leavings: &mut Vec<String>,
    ) -> Result<(Option<PageRef>, Lsn)> {
        let seed = self.env.random_u64();
        let mut memtable = Memtable::new(done, seed);
        loop {
            let record = replay.next().await?;
            let is_full = memtable.bytes() >= self.memtable_bytes();
            if (record.is_none() || is_full) && !memtable.is_empty() {
                if is_full {
                    reached!("recovery checkpoints as it goes");
                }
                self.remove_all(leavings).await?;
                let upto = memtable.visible();
                catalog = merge(writer, catalog, &memtable, (done, upto)).await?;
                done = upto;
                memtable = Memtable::new(done, seed);
            }
            let Some(record) = record else { return Ok((catalog, done)) };
            reached!("record replayed");
            memtable.apply(record.lsn, &Bytes::from(record.payload)).map_err(|malformed| {
                let place = format!("log record {}", record.lsn);
                Error::corruption(place, malformed.offset as u64, malformed.expected, "other bytes")
            })?;
        }
    }

    /// The pages that the manifest names. Their segments must be there.
    async fn page_table(&self, state: &ManifestState, names: &[String]) -> Result<PageTable> {
        let mut table = PageTable::default();
        for id in state.page_segments() {
            let path = self.path.join(page_segment_name(id));
            let file = match self.env.disk.open(&path, OpenMode::Read).await {
                Err(error) if error.kind == DiskErrorKind::NotFound => {
                    return Err(missing_page_segment(id));
                }
                opened => opened?,
            };
            table.add_segment(id, file.len().await?);
        }
        // Ids are never used again, also not those of leavings.
        let seen = names.iter().filter_map(|name| page_segment_id(name)).max().map_or(0, |id| id + 1);
        table.next_segment = table.next_segment.max(state.next_page_segment).max(seen);
        table.install_all(&state.pages)?;
        Ok(table)
    }

    /// Makes a log and a manifest for a new epoch, whose name is random: the log of an attempt that was cut short, with
    /// files whose removal was not durable, must not pass for this one's. From the return on, the state that `edit` names is the database.
    async fn begin_epoch(
        &self,
        database: [u8; 16],
        number: u64,
        (slot, recycled): (u64, Option<Arc<dyn File>>),
        mut edit: ManifestEdit,
    ) -> Result<(Manifest, Arc<Log>)> {
        let epoch = self.env.random_u64();
        let header = SegmentHeader {
            database,
            epoch,
            index: 0,
            generation: self.env.random_u64(),
            bytes: self.options.log_segment_bytes as u64,
            manifest_edit: 0,
        };
        self.sync_parent(number).await?;
        let first = match prepare_segment(&self.env, &self.path, &header, slot, recycled).await {
            // A database that exists must open for those who want to free space: a small segment is enough for that.
            Err(error) if error.kind() == ErrorKind::DiskFull && number > 1 => {
                reached!("open makes do with a small log segment");
                let bytes = self.small_segment_bytes();
                // The attempt has removed a recycled file.
                prepare_segment(&self.env, &self.path, &SegmentHeader { bytes, ..header }, slot, None).await?
            }
            prepared => prepared?,
        };
        edit.log = LogPosition { segment: header.index, offset: RECORDS_START };
        let manifest = Manifest::replace(&self.env, &self.path, (database, epoch), number, &edit).await?;
        let sizes = (header.bytes, self.reserve_bytes());
        let log = Log::new(self.env.clone(), &self.path, &header, (first, edit.lsn), sizes);
        log.note_manifest_edit(number);
        Ok((manifest, log))
    }

    /// Makes the database's own entry durable. Not only at creation: the process that created the directory may have died
    /// before it came here. Where the parent may not be read, somebody else made the directory and saw to it.
    async fn sync_parent(&self, number: u64) -> Result<()> {
        let Some(parent) = self.path.parent() else { return Ok(()) };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match self.env.disk.sync_dir(parent).await {
            Err(error) if error.kind == DiskErrorKind::PermissionDenied && number > 1 => Ok(()),
            synced => Ok(synced?),
        }
    }

    /// Keeps a few old log files for later, and removes the others, with page segments that nothing is in now.
    async fn clean_up(
        &self,
        log_files: Vec<(u64, Arc<dyn File>)>,
        log: &Log,
        store: &PageStore,
        writer: &PageWriter,
        (names, beyond): (&[String], u64),
    ) -> Result<()> {
        for (slot, file) in log_files {
            if !log.recycle(slot, file) {
                self.env.disk.remove(&self.path.join(segment_name(slot))).await?;
            }
        }
        // Also what this recovery has written and then written anew.
        let dead = store.take_dead_segments(writer.current_segment());
        let unused: BTreeSet<_> = {
            let table = store.table.lock();
            let is_unused = |name: &&String| {
                page_segment_id(name).is_some_and(|id| id < beyond && !table.segments.contains_key(&id))
            };
            names.iter().filter(is_unused).cloned().chain(dead.into_iter().map(page_segment_name)).collect()
        };
        for name in unused {
            self.env.disk.remove(&self.path.join(name)).await?;
        }
        Ok(())
    }

    pub(super) fn page_store(&self, database: [u8; 16], table: PageTable) -> Arc<PageStore> {
        let limits = (self.options.memory_bytes / 2, self.options.page_files_max);
        PageStore::new(self.env.clone(), &self.path, database, table, limits)
    }

    fn page_writer(&self, store: &Arc<PageStore>) -> PageWriter {
        PageWriter::new(store.clone(), self.options.page_bytes, self.options.page_segment_bytes)
    }

    /// A log segment for who removes and one for an open, and pages of half a memtable, up to a bound: a large budget for
    /// memory is no reason to take as much of the disk.
    fn reserve_bytes(&self) -> u64 {
        let pages = (self.options.memory_bytes as u64 / 8).min(RESERVED_PAGE_BYTES_MAX);
        2 * self.options.log_segment_bytes as u64 + pages
    }

    /// The first log segment of an open on a full disk.
    fn small_segment_bytes(&self) -> u64 {
        (self.options.log_segment_bytes as u64 / 256).next_multiple_of(512).max(3 << 10)
    }

    /// Bytes that one of the two memtables may take.
    fn memtable_bytes(&self) -> usize {
        self.options.memory_bytes / 4
    }

    /// Starts the background tasks.
    fn start(self, start: Start, lock: Box<dyn DirectoryLock>) -> Running {
        tracing::info!(directory = %self.path.display(), position = start.lsn.0, "database opened");
        let (commands, receiver) = mpsc::unbounded_channel();
        let memtable_seed = self.env.random_u64();
        let root = RootVersion::new(start.store.clone(), start.catalog, start.lsn);
        let active = Arc::new(Memtable::new(start.lsn, memtable_seed));
        let engine = Arc::new(Engine {
            log: start.log,
            store: start.store,
            state: ArcSwap::from_pointee(ReadState { overlay: None, active, frozen: None, root }),
            snapshots: Mutex::new(Registry::default()),
            pace: Arc::new(Pace::new(self.memtable_bytes())),
            commands,
            memtable_seed,
            counters: Counters::default(),
            directory_lock: Mutex::new(Some(lock)),
            is_closed: AtomicBool::new(false),
            is_read_only: false,
            left_out: Vec::new(),
            env: self.env,
            directory: self.path,
            options: self.options,
        });
        let checkpointer = Checkpointer::new(engine.clone(), start.writer, start.manifest);
        let spawner = &engine.env.spawner;
        let (keeper_ends, keeper_ended) = oneshot::channel();
        let log = engine.log.clone();
        let needed = || Needed { log: engine.log.clone(), pace: engine.pace.clone() };
        let (for_keeper, for_checkpointer) = (needed(), needed());
        let keeper = async move {
            let _needed = for_keeper;
            log.keep_spare().await;
            let _ = keeper_ends.send(());
        };
        let checkpointer = async move {
            let _needed = for_checkpointer;
            checkpointer.run(receiver).await;
        };
        let tasks = vec![
            spawner.spawn("log-keeper", Box::pin(keeper)),
            spawner.spawn("checkpointer", Box::pin(checkpointer)),
        ];
        let closing = Closing { tasks, keeper_ended: Some(keeper_ended), outcome: None };
        Running { engine, closing: tokio::sync::Mutex::new(closing) }
    }
}

/// Part of a task that writers wait for: should its runtime end, they learn of it.
struct Needed {
    log: Arc<Log>,
    pace: Arc<Pace>,
}

impl Drop for Needed {
    fn drop(&mut self) {
        self.log.lost_task();
        self.pace.wake();
    }
}

/// The error for a page segment that the manifest names.
pub(super) fn missing_page_segment(id: u64) -> Error {
    Error::incomplete(page_segment_name(id), "a page segment, which the manifest names", "no file")
}
