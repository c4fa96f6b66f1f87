//! The writing side of the log: positions, the buffer, group commit, segments.

use super::reserve::{RESERVE, Reserve};
use super::segment::{RECORDS_START, SECTOR_BYTES, Segment, SegmentHeader, segment_name};
use crate::env::{DiskResult, Env, File, OpenMode};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Lsn;
use crate::joint::Joint;
use crate::options::Durability;
use crate::record;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, Notify, Weak};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// `Buffered` commits stay in memory up to this much; then one of them writes for all.
const BUFFER_BYTES_MAX: usize = 128 << 10;
/// Segments kept for another use; more are removed.
const FREE_SEGMENTS_MAX: usize = 2;

/// The log of an open database.
pub(crate) struct Log {
    env: Env,
    directory: PathBuf,
    database: [u8; 16],
    epoch: u64,
    segment_bytes: u64,
    tail: Mutex<Tail>,
    /// Itself, for writes and syncs that go on whoever drives them.
    me: Weak<Self>,
    /// Signalled when a spare segment is wanted, and when there is one (or an error).
    spare_wanted: Notify,
    spare_answered: Notify,
    reserve: tokio::sync::Mutex<Reserve>,
    /// The newest manifest edit known durable; goes into segment headers.
    manifest_edit: AtomicU64,
    /// A segment was begun, and what begins it is durable: the manifest should know.
    note_due: AtomicBool,
    syncs: AtomicU64,
    writes: AtomicU64,
}

/// Where replay starts: in the segment `segment`, at `offset` or at the next place where a record may follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogPosition {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
}

/// Whether a record can be given a position now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Yes,
    /// The next segment is not ready: wait for [`Log::wait_for_room`].
    NotYet,
}

/// The end of the log. Whoever holds its lock orders commits.
pub(crate) struct Tail {
    segment: Arc<Segment>,
    /// Where the next record goes.
    offset: u64,
    /// Bytes that were given positions but not yet to the disk; they belong at `buffer_offset` of `segment`.
    buffer: Vec<u8>,
    buffer_offset: u64,
    /// The same for segments that were left meanwhile, oldest first.
    unwritten: Vec<(Arc<Segment>, u64, Bytes)>,
    /// The first position of the newest segment, until it is durable.
    begun: Option<Lsn>,
    /// Segments with bytes that no sync has covered, oldest first.
    unsynced: Vec<Arc<Segment>>,
    /// Every segment that replay might still need, oldest first; the last is `segment`.
    live: VecDeque<Arc<Segment>>,
    spare: Option<Segment>,
    /// Attempts to make spare and reserve so far, and the last that failed because something was short.
    spare_attempts: u64,
    spare_error: Option<(u64, Error)>,
    /// The reserve is not there, or not yet: nothing may grow.
    is_low: bool,
    /// A commit that only removes waits for a spare, and may have the reserve for it.
    removal_waits: bool,
    free: Vec<(u64, Arc<dyn File>)>,
    next_slot: u64,
    next_index: u64,
    appended: Lsn,
    written: Lsn,
    durable: Lsn,
    writing: Flight,
    syncing: Flight,
    /// Why nothing may be written any more.
    poison: Option<Error>,
    closed: bool,
}

/// The one write, or the one sync, that may be under way, for all who wait for it; whether it ended well. Writes go on
/// while a sync waits for the disk.
type Flight = Option<Arc<Joint<bool>>>;

impl Log {
    /// A log whose first segment, `first`, is durable, and whose next position follows `last`. Later segments have
    /// `segment_bytes`. Nothing may grow before the reserve is made.
    pub(crate) fn new(
        env: Env,
        directory: &Path,
        header: &SegmentHeader,
        (first, last): (Segment, Lsn),
        (segment_bytes, reserve_bytes): (u64, u64),
    ) -> Arc<Self> {
        let first = Arc::new(first);
        let tail = Tail {
            offset: RECORDS_START,
            buffer: Vec::new(),
            buffer_offset: RECORDS_START,
            unwritten: Vec::new(),
            begun: None,
            unsynced: Vec::new(),
            live: VecDeque::from([first.clone()]),
            spare: None,
            spare_attempts: 0,
            spare_error: None,
            is_low: reserve_bytes > 0,
            removal_waits: false,
            free: Vec::new(),
            next_slot: first.slot + 1,
            next_index: first.index + 1,
            segment: first,
            appended: last,
            written: last,
            durable: last,
            writing: None,
            syncing: None,
            poison: None,
            closed: false,
        };
        Arc::new_cyclic(|me| Self {
            env,
            directory: directory.to_path_buf(),
            database: header.database,
            epoch: header.epoch,
            segment_bytes,
            tail: Mutex::new(tail),
            me: me.clone(),
            spare_wanted: Notify::new(),
            spare_answered: Notify::new(),
            reserve: tokio::sync::Mutex::new(Reserve::new(&directory.join(RESERVE), reserve_bytes)),
            manifest_edit: AtomicU64::new(header.manifest_edit),
            note_due: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        })
    }

    /// Orders commits: positions are given and edits applied under this lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock()
    }

    /// Longest payload that a segment can hold.
    pub(crate) fn payload_bytes_max(&self) -> usize {
        (self.segment_bytes - RECORDS_START) as usize - record::record_bytes(0) as usize
    }

    /// Number of writes and of syncs so far.
    pub(crate) fn operations(&self) -> (u64, u64) {
        (self.writes.load(Ordering::Relaxed), self.syncs.load(Ordering::Relaxed))
    }

    /// Notes that manifest edit `edit` is durable.
    pub(crate) fn note_manifest_edit(&self, edit: u64) {
        self.manifest_edit.store(edit, Ordering::Release);
    }

    /// Whether it is time to note in the manifest how far the log is durable, since another segment was begun: should it
    /// get lost, nothing else would tell that it was there. True once for each time.
    pub(crate) fn takes_note(&self) -> bool {
        self.note_due.load(Ordering::Relaxed) && self.note_due.swap(false, Ordering::AcqRel)
    }

    /// Refuses every write from now on, because of `cause`.
    pub(crate) fn poison(&self, cause: &Error) {
        let mut tail = self.lock();
        if tail.poison.is_none() {
            tracing::error!(directory = %self.directory.display(), %cause, "database poisoned");
            tail.poison = Some(Error::new(
                ErrorKind::Poisoned,
                format!(
                    "no more writes since an earlier failure ({cause}); reopen the database to see what survived"
                ),
            ));
        }
        drop(tail);
        self.spare_answered.notify_waiters();
        self.spare_wanted.notify_one();
    }

    /// A task that the log needs is over. Unless that is as it should be, its runtime has ended, and nothing may be
    /// written any more.
    pub(crate) fn lost_task(&self) {
        let mut tail = self.lock();
        if tail.writable().is_ok() {
            let message =
                "the runtime that the database was opened on has ended; open it again on another one";
            tail.poison = Some(Error::new(ErrorKind::Closed, message));
        }
        drop(tail);
        self.spare_answered.notify_waiters();
    }

    /// Waits until `lsn` has reached `level`. At `Buffered` this only bounds the memory that the buffer takes.
    pub(crate) async fn reach(&self, lsn: Lsn, level: Durability) -> Result<()> {
        loop {
            let flight = {
                let mut tail = self.lock();
                if tail.has_reached(lsn, level) {
                    return Ok(());
                }
                if let Some(poison) = &tail.poison {
                    return Err(Error::new(
                        ErrorKind::DurabilityUnknown,
                        format!("commit {lsn} is visible, but whether it is durable is unknown: {poison}"),
                    ));
                }
                self.flight(&mut tail, level)
            };
            #[cfg(ironleaf_planted)]
            let dropped = DroppedSync { log: self, upto: lsn, is_active: level == Durability::Synced };
            flight.join().await;
            #[cfg(ironleaf_planted)]
            std::mem::forget(dropped);
        }
    }

    /// What is under way, or a new departure, on the way to `level`.
    fn flight(&self, tail: &mut Tail, level: Durability) -> Arc<Joint<bool>> {
        let wants_sync = level == Durability::Synced;
        let syncing = tail.syncing.clone().filter(|_| wants_sync);
        match syncing.or_else(|| tail.writing.clone()) {
            Some(under_way) => under_way,
            None if wants_sync => self.depart_sync(tail),
            None => self.depart(tail),
        }
    }

    /// Begins the write of everything that is buffered.
    fn depart(&self, tail: &mut Tail) -> Arc<Joint<bool>> {
        tail.close_buffer();
        let upto = tail.appended;
        let writes = std::mem::take(&mut tail.unwritten);
        let operations = writes.len() as u64;
        let me = self.me.clone();
        let flight = Joint::new(async move {
            let outcome = write_all(writes).await;
            me.upgrade().is_some_and(|log| log.written(upto, operations, outcome))
        });
        tail.writing = Some(flight.clone());
        flight
    }

    /// Begins the write of everything that is buffered and, behind it, the sync of everything that is written by now.
    /// What is appended from now on goes to the next sector.
    fn depart_sync(&self, tail: &mut Tail) -> Arc<Joint<bool>> {
        let writing = self.depart(tail);
        if !planted!("synced-sector-rewritten") {
            tail.offset = tail.offset.next_multiple_of(SECTOR_BYTES);
        }
        let mut segments = std::mem::take(&mut tail.unsynced);
        if planted!("newer-log-synced-first") {
            segments.drain(..segments.len().saturating_sub(1));
        }
        let (upto, operations) = (tail.appended, segments.len() as u64);
        let (me, env) = (self.me.clone(), self.env.clone());
        let flight = Joint::new(async move {
            if !writing.join().await {
                return false;
            }
            env.point("log written").await;
            let outcome = sync_all(segments).await;
            me.upgrade().is_some_and(|log| log.synced(upto, operations, outcome))
        });
        tail.syncing = Some(flight.clone());
        flight
    }

    /// A write has ended. Whether it went well.
    fn written(&self, upto: Lsn, operations: u64, outcome: DiskResult<()>) -> bool {
        self.writes.fetch_add(operations, Ordering::Relaxed);
        let mut tail = self.lock();
        tail.writing = None;
        let Err(error) = outcome else {
            tail.written = tail.written.max(upto);
            return true;
        };
        // The sync that was to follow does not.
        tail.syncing = None;
        drop(tail);
        if !planted!("failed-write-forgotten") {
            self.poison(&error.into());
        }
        false
    }

    /// A sync has ended. Whether it went well.
    fn synced(&self, upto: Lsn, operations: u64, outcome: DiskResult<()>) -> bool {
        self.syncs.fetch_add(operations, Ordering::Relaxed);
        let mut tail = self.lock();
        tail.syncing = None;
        let Err(error) = outcome else {
            tail.durable = tail.durable.max(upto);
            if tail.begun.take_if(|first| *first <= upto).is_some() {
                self.note_due.store(true, Ordering::Release);
            }
            return true;
        };
        drop(tail);
        self.poison(&error.into());
        false
    }

    /// Waits until a record of `payload_bytes` that grows the database, or does not, can be given a position.
    pub(crate) async fn wait_for_room(&self, payload_bytes: usize, grows: bool) -> Result<()> {
        // What went wrong in an attempt that was under way by now may be over.
        let before = self.lock().spare_attempts;
        loop {
            let mut answered = std::pin::pin!(self.spare_answered.notified());
            {
                let mut tail = self.lock();
                tail.writable()?;
                if tail.room(payload_bytes, grows) == Room::Yes {
                    return Ok(());
                }
                if let Some((attempt, error)) = &tail.spare_error
                    && *attempt > before
                {
                    return Err(error.clone());
                }
                tail.removal_waits |= !grows;
                answered.as_mut().enable();
            }
            self.spare_wanted.notify_one();
            answered.await;
        }
    }

    /// The task that keeps reserve and spare segment ready, until nothing may be written any more. What then holds space
    /// without need is given up if the disk is full: the next open takes space before it can free any.
    pub(crate) async fn keep_spare(self: Arc<Self>) {
        while self.lock().writable().is_ok() && self.make_spare().await.is_continue() {
            self.spare_wanted.notified().await;
        }
        let spare = {
            let mut tail = self.lock();
            if tail.is_low { tail.spare.take() } else { return }
        };
        let idle = spare.map(|spare| spare.slot).into_iter().chain(self.take_free());
        self.remove_files(idle.collect()).await;
    }

    /// Makes reserve and spare, where there is none, and tells who waits for them. `Break` if that failed for good.
    async fn make_spare(&self) -> ControlFlow<()> {
        let attempt = {
            let mut tail = self.lock();
            tail.spare_attempts += 1;
            tail.spare_attempts
        };
        let mut full = self.restore_reserve().await.err();
        // Whoever only waits for the reserve need not wait for the spare.
        self.spare_answered.notify_waiters();
        let (is_wanted, removal_waits) = {
            let mut tail = self.lock();
            (tail.spare.is_none(), std::mem::take(&mut tail.removal_waits))
        };
        // Without a reserve a spare is for who removes: it takes what the reserve is to be made of.
        if is_wanted && (full.is_none() || removal_waits) {
            match self.prepare_spare_at_any_price(removal_waits).await {
                Ok(segment) => self.lock().spare = Some(segment),
                Err(error) if error.is_shortage() => full = Some(error),
                // The database was closed meanwhile, which is no failure of the log.
                Err(error) if error.kind() == ErrorKind::Closed => return ControlFlow::Break(()),
                Err(error) => {
                    self.poison(&error);
                    return ControlFlow::Break(());
                }
            }
        }
        self.lock().spare_error = full.map(|error| (attempt, error));
        self.spare_answered.notify_waiters();
        ControlFlow::Continue(())
    }

    /// Prepares a spare; on a full disk at the price of the reserve, if a commit waits that frees space.
    async fn prepare_spare_at_any_price(&self, removal_waits: bool) -> Result<Segment> {
        match self.prepare_spare().await {
            Err(error) if error.kind() == ErrorKind::DiskFull && removal_waits => {
                match self.borrow_reserve().await {
                    Some(_loan) => self.prepare_spare().await,
                    None => Err(error),
                }
            }
            prepared => prepared,
        }
    }

    /// Takes the segments that are kept for another use; returns their slots.
    fn take_free(&self) -> Vec<u64> {
        self.lock().free.drain(..).map(|(slot, _)| slot).collect()
    }

    /// Removes segments that nothing names. If that fails the next open tries again.
    pub(crate) async fn remove_files(&self, slots: Vec<u64>) {
        for slot in slots {
            let _ = self.env.disk.remove(&self.directory.join(segment_name(slot))).await;
        }
    }

    /// Gives the space of the reserve back to the disk, so that space can be freed, and sees to it that nobody makes it
    /// again while the loan lasts. `None` if there is no reserve.
    pub(crate) async fn borrow_reserve(&self) -> Option<impl Send + '_> {
        let mut reserve = self.reserve.try_lock().ok()?;
        if !reserve.spend(&self.env).await {
            return None;
        }
        reached!("reserve spent");
        tracing::warn!(directory = %self.directory.display(), "reserve spent");
        self.lock().is_low = true;
        Some(reserve)
    }

    /// Makes the reserve, if there is none. An error is that of a full disk.
    async fn restore_reserve(&self) -> Result<()> {
        let Ok(mut reserve) = self.reserve.try_lock() else {
            let directory = self.directory.display();
            let message =
                format!("the disk of {directory}/ is full, and a checkpoint has the reserve; try again");
            return Err(Error::new(ErrorKind::DiskFull, message));
        };
        let mut restored = reserve.restore(&self.env).await;
        if let Err(error) = &restored
            && error.kind() == ErrorKind::DiskFull
        {
            let free = self.take_free();
            if !free.is_empty() {
                reached!("free segments given up for the reserve");
                self.remove_files(free).await;
                restored = reserve.restore(&self.env).await;
            }
        }
        match restored {
            Err(error) if error.kind() == ErrorKind::DiskFull => {
                self.lock().is_low = true;
                Err(error)
            }
            // It is not worth more than an attempt on a disk that fails otherwise.
            _ => {
                self.lock().is_low = false;
                if reserve.take_missed() {
                    reached!("reserve restored");
                    tracing::info!(directory = %self.directory.display(), "reserve restored");
                }
                Ok(())
            }
        }
    }

    /// Has the reserve made again, if it was spent.
    pub(crate) fn restore_reserve_soon(&self) {
        if self.lock().is_low {
            self.spare_wanted.notify_one();
        }
    }

    async fn prepare_spare(&self) -> Result<Segment> {
        let (recycled, index) = {
            let mut tail = self.lock();
            tail.writable()?;
            let recycled = tail.free.pop();
            let slot = match &recycled {
                Some((slot, _)) => *slot,
                None => {
                    tail.next_slot += 1;
                    tail.next_slot - 1
                }
            };
            tail.next_index += 1;
            ((slot, recycled.map(|(_, file)| file)), tail.next_index - 1)
        };
        let header = SegmentHeader {
            database: self.database,
            epoch: self.epoch,
            index,
            generation: self.env.random_u64(),
            bytes: self.segment_bytes,
            manifest_edit: self.manifest_edit.load(Ordering::Acquire),
        };
        let (slot, file) = recycled;
        if file.is_some() {
            reached!("log segment recycled");
        }
        prepare_segment(&self.env, &self.directory, &header, slot, file).await
    }

    /// Gives up every segment before `index`; returns the slots of files to remove.
    pub(crate) fn release_before(&self, index: u64) -> Vec<u64> {
        let mut tail = self.lock();
        let mut removed = Vec::new();
        while tail.live.front().is_some_and(|segment| segment.index < index) {
            let segment = tail.live.pop_front().expect("just looked at");
            if tail.free.len() < FREE_SEGMENTS_MAX && !tail.is_low {
                tail.free.push((segment.slot, segment.file.clone()));
            } else {
                removed.push(segment.slot);
            }
        }
        removed
    }

    /// Lets files of an earlier epoch be used again.
    pub(crate) fn recycle(&self, slot: u64, file: Arc<dyn File>) -> bool {
        let mut tail = self.lock();
        tail.next_slot = tail.next_slot.max(slot + 1);
        let wanted = tail.free.len() < FREE_SEGMENTS_MAX;
        if wanted {
            tail.free.push((slot, file));
        }
        wanted
    }

    /// Refuses every later write with `Closed`.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.spare_answered.notify_waiters();
        self.spare_wanted.notify_one();
    }
}

/// Makes a segment ready for records: durable header, durable space, durable name.
pub(crate) async fn prepare_segment(
    env: &Env,
    directory: &Path,
    header: &SegmentHeader,
    slot: u64,
    recycled: Option<Arc<dyn File>>,
) -> Result<Segment> {
    let path = directory.join(segment_name(slot));
    let is_new = recycled.is_none();
    let file = match recycled {
        Some(file) => file,
        None => env.disk.open(&path, OpenMode::CreateNew).await?,
    };
    if let Err(error) = fill_segment(env, directory, header, &file, is_new).await {
        if error.is_shortage() && !planted!("full-disk-leaves-log") {
            // Nothing names the file: it must not take space from those who free some.
            let _ = env.disk.remove(&path).await;
        }
        return Err(error);
    }
    Ok(Segment { slot, index: header.index, bytes: header.bytes, binding: header.binding(), file })
}

async fn fill_segment(
    env: &Env,
    directory: &Path,
    header: &SegmentHeader,
    file: &Arc<dyn File>,
    is_new: bool,
) -> Result<()> {
    file.preallocate(header.bytes).await?;
    file.write_at(0, header.encode()).await?;
    file.sync_data().await?;
    if is_new && !planted!("log-entry-not-synced") {
        env.disk.sync_dir(directory).await?;
    }
    Ok(())
}

impl Tail {
    /// Why nothing can be written, if so.
    pub(crate) fn writable(&self) -> Result<()> {
        if self.closed {
            return Err(Error::new(ErrorKind::Closed, "the database is closed"));
        }
        self.poison.clone().map_or(Ok(()), Err)
    }

    /// Whether a failure has ended all writing.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poison.is_some()
    }

    /// Whether a record can be given a position that grows the database, or does not.
    pub(crate) fn room(&self, payload_bytes: usize, grows: bool) -> Room {
        if grows && self.is_low {
            return Room::NotYet;
        }
        let fits = self.offset + record::record_bytes(payload_bytes) <= self.segment.bytes;
        if fits || self.spare.is_some() { Room::Yes } else { Room::NotYet }
    }

    /// Gives `payload` the next position. There must be [`room`](Self::room).
    pub(crate) fn append(&mut self, log: &Log, payload: &[u8]) -> Lsn {
        let bytes = record::record_bytes(payload.len());
        if self.offset + bytes > self.segment.bytes {
            reached!("log segment rotated");
            self.close_buffer();
            let next = Arc::new(self.spare.take().expect("the caller made sure of room"));
            log.spare_wanted.notify_one();
            self.live.push_back(next.clone());
            self.segment = next;
            self.offset = RECORDS_START;
            self.begun = Some(self.appended.next());
        }
        if self.buffer.is_empty() {
            self.buffer_offset = self.offset;
        }
        let lsn = self.appended.next();
        let durable = match self.durable {
            _ if planted!("durable-watermark-ahead") => lsn,
            _ if planted!("durable-watermark-forgotten") => Lsn(0),
            durable => durable,
        };
        record::encode(&mut self.buffer, self.segment.binding, self.offset, lsn.0, durable.0, payload);
        self.offset += bytes;
        self.appended = lsn;
        if !self.unsynced.last().is_some_and(|last| Arc::ptr_eq(last, &self.segment)) {
            self.unsynced.push(self.segment.clone());
        }
        lsn
    }

    /// Moves the buffer to what is to be written.
    fn close_buffer(&mut self) {
        if !self.buffer.is_empty() {
            let capacity = self.buffer.len();
            let bytes = std::mem::replace(&mut self.buffer, Vec::with_capacity(capacity.min(4096)));
            self.unwritten.push((self.segment.clone(), self.buffer_offset, bytes.into()));
        }
    }

    fn has_reached(&self, lsn: Lsn, level: Durability) -> bool {
        match level {
            Durability::Buffered => self.buffer.len() < BUFFER_BYTES_MAX,
            Durability::Written => self.written >= lsn,
            Durability::Synced => self.durable >= lsn,
        }
    }

    /// The newest position.
    pub(crate) fn appended(&self) -> Lsn {
        self.appended
    }

    /// The newest durable position.
    pub(crate) fn durable(&self) -> Lsn {
        self.durable
    }

    /// Where the next record will go.
    pub(crate) fn position(&self) -> LogPosition {
        LogPosition { segment: self.segment.index, offset: self.offset }
    }
}

async fn write_all(writes: Vec<(Arc<Segment>, u64, Bytes)>) -> DiskResult<()> {
    let begin = |(segment, offset, data): (Arc<Segment>, u64, Bytes)| segment.file.write_at(offset, data);
    for write in writes.into_iter().map(begin).collect::<Vec<_>>() {
        write.await?;
    }
    Ok(())
}

async fn sync_all(segments: Vec<Arc<Segment>>) -> DiskResult<()> {
    for segment in segments {
        let synced = segment.file.sync_data().await;
        if planted!("failed-sync-retried") && synced.is_err() {
            segment.file.sync_data().await?;
            continue;
        }
        synced?;
    }
    Ok(())
}

/// The planted bug `dropped-sync-counts`: what a commit was syncing when it was dropped counts as durable.
#[cfg(ironleaf_planted)]
struct DroppedSync<'a> {
    log: &'a Log,
    upto: Lsn,
    is_active: bool,
}

#[cfg(ironleaf_planted)]
impl Drop for DroppedSync<'_> {
    fn drop(&mut self) {
        if self.is_active && planted!("dropped-sync-counts") {
            let mut tail = self.log.lock();
            tail.durable = tail.durable.max(self.upto);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::os;

    #[tokio::test]
    async fn a_close_that_comes_between_is_no_failure_of_the_log() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let env = os::environment().expect("a runtime");
        let header = SegmentHeader {
            database: [1; 16],
            epoch: 1,
            index: 0,
            generation: 1,
            bytes: 4096,
            manifest_edit: 1,
        };
        let first = prepare_segment(&env, dir.path(), &header, 0, None).await.expect("a segment");
        let log = Log::new(env, dir.path(), &header, (first, Lsn(0)), (4096, 0));
        // As if it had come right behind the keeper's own look.
        log.close();
        assert!(log.make_spare().await.is_break());
        assert!(log.lock().poison.is_none(), "what close flushes would be of unknown durability");
    }
}
