//! Files and directories: what the process sees, what is durable, and what is pending in between.

use super::content::{Content, SECTOR_BYTES};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file, which outlives its directory entries while it is open or while a power loss may bring them back.
pub(super) struct Inode {
    pub(super) id: u64,
    /// The path it was created at: the actor of the choices about what of it a crash keeps.
    pub(super) path: String,
    state: Mutex<FileState>,
}

#[derive(Clone)]
pub(super) struct FileState {
    pub(super) current: Content,
    pub(super) durable: Content,
    /// In the order of completion.
    pub(super) pending: VecDeque<FileEvent>,
    /// A failed sync lost data: what is visible is more than what is durable and pending.
    pub(super) diverged: bool,
    /// Number of the spell of faults in which no read of it succeeds any more.
    pub(super) unreadable: Option<u64>,
    /// Sectors that are not what was written there, and the number of the damage.
    pub(super) damaged: BTreeMap<u64, u64>,
    /// Bytes that are charged to the volume's capacity.
    pub(super) allocated: u64,
    /// Open handles of this epoch.
    pub(super) handles: u32,
    /// Whether a directory entry names it, as the process sees it.
    pub(super) linked: bool,
    /// How often the volume had been restarted when the handles were counted.
    pub(super) epoch: u32,
}

/// A change of a file that completed but is not durable.
#[derive(Clone)]
pub(super) struct FileEvent {
    pub(super) stamp: Stamp,
    pub(super) change: FileChange,
}

impl FileEvent {
    pub(super) fn apply(&self, content: &mut Content) {
        match &self.change {
            FileChange::Data { offset, bytes } => content.write(*offset, bytes),
            FileChange::Length(len) => content.set_len(*len),
        }
    }

    pub(super) const fn is_length(&self) -> bool {
        matches!(self.change, FileChange::Length(_))
    }
}

#[derive(Clone)]
pub(super) enum FileChange {
    Data { offset: u64, bytes: Bytes },
    Length(u64),
}

/// When a change completed.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    /// Place in the order of completions of the volume; the same for the data and the length of one write.
    pub(super) order: u64,
    /// Whether it was in flight when the machine crashed.
    pub(super) in_flight: bool,
}

impl Inode {
    /// An empty file that has just got its entry.
    pub(super) fn new(id: u64, path: String, epoch: u32) -> Arc<Self> {
        let state = FileState {
            current: Content::default(),
            durable: Content::default(),
            pending: VecDeque::new(),
            diverged: false,
            unreadable: None,
            damaged: BTreeMap::new(),
            allocated: 0,
            handles: 0,
            linked: true,
            epoch,
        };
        Self::with_state(id, path, state)
    }

    pub(super) fn with_state(id: u64, path: String, state: FileState) -> Arc<Self> {
        Arc::new(Self { id, path, state: Mutex::new(state) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileState {
    pub(super) fn write(&mut self, stamp: Stamp, offset: u64, bytes: Bytes) {
        let end = offset + bytes.len() as u64;
        self.current.write(offset, &bytes);
        if !self.damaged.is_empty() {
            let (from, to) = (offset.div_ceil(SECTOR_BYTES), end / SECTOR_BYTES);
            self.damaged.retain(|sector, _| *sector < from || *sector >= to);
        }
        self.pending.push_back(FileEvent { stamp, change: FileChange::Data { offset, bytes } });
        if end > self.current.len() {
            self.set_len(stamp, end);
        }
    }

    pub(super) fn set_len(&mut self, stamp: Stamp, len: u64) {
        if len != self.current.len() {
            self.current.set_len(len);
            self.pending.push_back(FileEvent { stamp, change: FileChange::Length(len) });
        }
    }

    /// Replaces the content, as damage of the medium does.
    pub(super) fn overwrite(&mut self, content: Content) {
        self.pending.clear();
        self.diverged = false;
        self.durable = content.clone();
        self.current = content;
    }

    /// Makes everything durable that completed up to `order`.
    pub(super) fn sync(&mut self, order: u64) {
        while let Some(event) = self.pending.pop_front_if(|event| event.stamp.order <= order) {
            event.apply(&mut self.durable);
        }
    }

    /// Gives the file's space back once neither an entry nor a handle holds it.
    pub(super) fn release_if_unused(&mut self, space: &Space) {
        if !self.linked && self.handles == 0 {
            space.release(std::mem::take(&mut self.allocated));
        }
    }
}

/// A directory. Renames stay within it.
pub(super) struct Directory {
    pub(super) id: u64,
    pub(super) path: String,
    state: Mutex<DirectoryState>,
}

/// The entries of a directory.
pub(super) type Entries = BTreeMap<Arc<str>, Node>;

pub(super) struct DirectoryState {
    pub(super) current: Entries,
    pub(super) durable: Entries,
    /// In the order of completion.
    pub(super) pending: VecDeque<EntryEvent>,
    pub(super) lock: LockState,
    /// Operations in flight on this directory or on files that were opened in it.
    pub(super) in_flight: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LockState {
    Free,
    /// Held by the lock of this number.
    Held(u64),
    /// Let go, but operations are in flight.
    Releasing,
}

#[derive(Clone)]
pub(super) enum Node {
    File(Arc<Inode>),
    Directory(Arc<Directory>),
}

impl Node {
    pub(super) fn id(&self) -> u64 {
        match self {
            Self::File(inode) => inode.id,
            Self::Directory(directory) => directory.id,
        }
    }
}

/// A change of a directory that completed but is not durable.
pub(super) struct EntryEvent {
    pub(super) stamp: Stamp,
    pub(super) change: EntryChange,
}

pub(super) enum EntryChange {
    Create { name: Arc<str>, node: Node },
    Remove { name: Arc<str> },
    Rename { from: Arc<str>, to: Arc<str>, node: Node },
}

impl EntryChange {
    pub(super) fn apply(&self, entries: &mut Entries) {
        match self {
            Self::Create { name, node } => {
                entries.insert(Arc::clone(name), node.clone());
            }
            Self::Remove { name } => {
                entries.remove(name);
            }
            Self::Rename { from, to, node } => {
                entries.remove(from);
                entries.insert(Arc::clone(to), node.clone());
            }
        }
    }

    /// The file or directory that it gives a name to.
    pub(super) const fn node(&self) -> Option<&Node> {
        match self {
            Self::Create { node, .. } | Self::Rename { node, .. } => Some(node),
            Self::Remove { .. } => None,
        }
    }

    /// The names that it concerns.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let (first, second) = match self {
            Self::Create { name, .. } | Self::Remove { name } => (name, None),
            Self::Rename { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }
}

impl Directory {
    /// An empty directory.
    pub(super) fn new(id: u64, path: String) -> Arc<Self> {
        let state = DirectoryState {
            current: Entries::new(),
            durable: Entries::new(),
            pending: VecDeque::new(),
            lock: LockState::Free,
            in_flight: 0,
        };
        Self::with_state(id, path, state)
    }

    pub(super) fn with_state(id: u64, path: String, state: DirectoryState) -> Arc<Self> {
        Arc::new(Self { id, path, state: Mutex::new(state) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, DirectoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of an entry.
    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    /// Counts an operation that started.
    pub(super) fn enter(&self) {
        self.lock().in_flight += 1;
    }

    /// Counts an operation that ended; the last one completes the release of the lock.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        if state.in_flight == 0 && state.lock == LockState::Releasing {
            state.lock = LockState::Free;
        }
    }

    /// Lets go of the lock of this number, if it is the one that is held.
    pub(super) fn unlock(&self, number: u64) {
        let mut state = self.lock();
        if state.lock == LockState::Held(number) {
            state.lock = if state.in_flight == 0 { LockState::Free } else { LockState::Releasing };
        }
    }
}

impl DirectoryState {
    pub(super) fn change(&mut self, stamp: Stamp, change: EntryChange) {
        change.apply(&mut self.current);
        self.pending.push_back(EntryEvent { stamp, change });
    }

    /// Makes every entry durable that changed up to `order`.
    pub(super) fn sync(&mut self, order: u64) {
        while let Some(event) = self.pending.pop_front_if(|event| event.stamp.order <= order) {
            event.change.apply(&mut self.durable);
        }
    }
}

/// The volume's capacity. Each epoch has its own, so what a former life still holds cannot disturb it.
pub(super) struct Space {
    /// `u64::MAX` if unlimited.
    bytes_max: AtomicU64,
    bytes_used: AtomicU64,
}

impl Space {
    pub(super) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max: AtomicU64::new(bytes_max), bytes_used: AtomicU64::new(0) })
    }

    /// The same capacity, with as much of it used.
    pub(super) fn copy(&self) -> Arc<Self> {
        let copy = |number: &AtomicU64| AtomicU64::new(number.load(Relaxed));
        Arc::new(Self { bytes_max: copy(&self.bytes_max), bytes_used: copy(&self.bytes_used) })
    }

    pub(super) fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Relaxed);
    }

    pub(super) fn bytes_used(&self) -> u64 {
        self.bytes_used.load(Relaxed)
    }

    /// Takes `bytes` of the capacity, or none.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let used = self.bytes_used.load(Relaxed).saturating_add(bytes);
        // What needs no more space is never refused, not even where a crash left more than there is room for.
        let fits = bytes == 0 || used <= self.bytes_max.load(Relaxed);
        if fits {
            self.bytes_used.store(used, Relaxed);
        }
        fits
    }

    /// Charges what a crash left behind, even if it is too much.
    pub(super) fn charge(&self, bytes: u64) {
        self.bytes_used.fetch_add(bytes, Relaxed);
    }

    pub(super) fn release(&self, bytes: u64) {
        let used = self.bytes_used.load(Relaxed).saturating_sub(bytes);
        self.bytes_used.store(used, Relaxed);
    }
}

/// An open file. In-flight operations hold on to it.
pub(super) struct OpenFile {
    pub(super) inode: Arc<Inode>,
    pub(super) directory: Arc<Directory>,
    /// The path it was opened by, for messages.
    pub(super) path: PathBuf,
    pub(super) writable: bool,
    space: Arc<Space>,
    epoch: u32,
}

impl OpenFile {
    pub(super) fn new(
        inode: Arc<Inode>,
        directory: Arc<Directory>,
        path: PathBuf,
        writable: bool,
        space: Arc<Space>,
    ) -> Arc<Self> {
        let mut state = inode.lock();
        state.handles += 1;
        let epoch = state.epoch;
        drop(state);
        Arc::new(Self { inode, directory, path, writable, space, epoch })
    }

    /// Makes sure that the file's first `end` bytes have space.
    pub(super) fn allocate(&self, state: &mut FileState, end: u64) -> bool {
        let missing = end.saturating_sub(state.allocated);
        let fits = self.space.take(missing);
        if fits {
            state.allocated += missing;
        }
        fits
    }

    /// Gives back the space beyond `end`.
    pub(super) fn shrink(&self, state: &mut FileState, end: u64) {
        let spare = state.allocated.saturating_sub(end);
        self.space.release(spare);
        state.allocated -= spare;
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut state = self.inode.lock();
        if state.epoch == self.epoch {
            state.handles -= 1;
            state.release_if_unused(&self.space);
        }
    }
}
