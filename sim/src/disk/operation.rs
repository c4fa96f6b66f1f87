//! What can be asked of the disk, and what it does when it completes.

use super::tree::{Directory, EntryChange, Inode, LockState, Node, OpenFile, Stamp};
use super::volume::VolumeState;
use bytes::Bytes;
use ironleaf::env::{DirectoryLock, DiskError, DiskErrorKind, DiskResult, OpenMode};
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// A submitted operation.
pub(super) enum Operation {
    Read {
        file: Arc<OpenFile>,
        offset: u64,
        len: usize,
    },
    Write {
        file: Arc<OpenFile>,
        offset: u64,
        bytes: Bytes,
    },
    /// Covers what had completed by `order`.
    Sync {
        file: Arc<OpenFile>,
        order: u64,
    },
    SetLen {
        file: Arc<OpenFile>,
        len: u64,
    },
    Preallocate {
        file: Arc<OpenFile>,
        len: u64,
    },
    Len {
        file: Arc<OpenFile>,
    },
    CreateDir {
        path: PathBuf,
    },
    Open {
        path: PathBuf,
        mode: OpenMode,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    List {
        path: PathBuf,
    },
    SyncDir {
        path: PathBuf,
        order: u64,
    },
    Lock {
        path: PathBuf,
    },
}

/// What a kind of operation is called, and how long it takes when nothing disturbs it.
pub(super) struct Traits {
    /// In errors, traces and names of choices.
    pub(super) name: &'static str,
    /// Names of the choices whether it fails, finds the disk full, or stalls.
    pub(super) fails: &'static str,
    pub(super) finds_full: &'static str,
    pub(super) stalls: &'static str,
    pub(super) latency: Duration,
    /// The crash points at its two ends. What changes nothing on the disk has none: a crash there is the same as one
    /// at the operation before or after.
    pub(super) crash_points: Option<[&'static str; 2]>,
}

macro_rules! traits {
    ($name:literal, $micros:literal) => {
        traits!($name, $micros, None)
    };
    ($name:literal, $micros:literal, changes) => {
        traits!($name, $micros, Some([concat!($name, " submitted"), concat!($name, " completed")]))
    };
    ($name:literal, $micros:literal, $crash_points:expr) => {
        Traits {
            name: $name,
            fails: concat!($name, " fails"),
            finds_full: concat!($name, " finds the disk full"),
            stalls: concat!($name, " stalls"),
            latency: Duration::from_micros($micros),
            crash_points: $crash_points,
        }
    };
}

static READ: Traits = traits!("read", 15);
static WRITE: Traits = traits!("write", 10, changes);
static SYNC: Traits = traits!("sync", 120, changes);
static SET_LEN: Traits = traits!("set_len", 10, changes);
static PREALLOCATE: Traits = traits!("preallocate", 20, changes);
static LEN: Traits = traits!("len", 1);
static CREATE_DIR: Traits = traits!("create_dir", 10, changes);
static OPEN: Traits = traits!("open", 10);
static CREATE: Traits = traits!("create", 10, changes);
static RENAME: Traits = traits!("rename", 10, changes);
static REMOVE: Traits = traits!("remove", 10, changes);
static LIST: Traits = traits!("list", 10);
static SYNC_DIR: Traits = traits!("sync_dir", 120, changes);
/// Labels of the places at which a crash can happen: where an operation that changes something is submitted, and where it
/// is completed.
pub fn crash_labels() -> impl Iterator<Item = &'static str> {
    [&WRITE, &SYNC, &SET_LEN, &PREALLOCATE, &CREATE_DIR, &CREATE, &RENAME, &REMOVE, &SYNC_DIR]
        .into_iter()
        .flat_map(|traits| traits.crash_points)
        .flatten()
}

static LOCK: Traits = traits!("lock", 5);

/// The result of an operation that succeeded.
pub(super) enum Outcome {
    Done,
    Bytes(Vec<u8>),
    Len(u64),
    Names(Vec<String>),
    Opened(Arc<OpenFile>),
    Locked(Hold),
}

/// A lock of a directory; let go when it is dropped.
pub(super) struct Hold {
    directory: Arc<Directory>,
    number: u64,
}

impl DirectoryLock for Hold {}

impl Drop for Hold {
    fn drop(&mut self) {
        self.directory.unlock(self.number);
    }
}

impl Operation {
    pub(super) fn traits(&self) -> &'static Traits {
        match self {
            Self::Read { .. } => &READ,
            Self::Write { .. } => &WRITE,
            Self::Sync { .. } => &SYNC,
            Self::SetLen { .. } => &SET_LEN,
            Self::Preallocate { .. } => &PREALLOCATE,
            Self::Len { .. } => &LEN,
            Self::CreateDir { .. } => &CREATE_DIR,
            Self::Open { mode: OpenMode::CreateNew, .. } => &CREATE,
            Self::Open { .. } => &OPEN,
            Self::Rename { .. } => &RENAME,
            Self::Remove { .. } => &REMOVE,
            Self::List { .. } => &LIST,
            Self::SyncDir { .. } => &SYNC_DIR,
            Self::Lock { .. } => &LOCK,
        }
    }

    /// Whether a crash may find it carried out although it did not complete. (A sync that did not complete kept
    /// nothing that the changes themselves could not have kept.)
    pub(super) const fn changes_disk(&self) -> bool {
        matches!(
            self,
            Self::Write { .. }
                | Self::SetLen { .. }
                | Self::Preallocate { .. }
                | Self::CreateDir { .. }
                | Self::Open { mode: OpenMode::CreateNew, .. }
                | Self::Rename { .. }
                | Self::Remove { .. }
        )
    }

    /// What the digest knows it by.
    pub(super) fn words(&self) -> [u64; 2] {
        let text = |path: &Path| xxh3_64(path.as_os_str().as_encoded_bytes());
        match self {
            Self::Read { file, offset, len } => [file.inode.id, offset.rotate_left(32) ^ *len as u64],
            Self::Write { file, offset, bytes } => {
                [file.inode.id, offset.rotate_left(32) ^ bytes.len() as u64 ^ xxh3_64(bytes)]
            }
            Self::Sync { file, order } => [file.inode.id, *order],
            Self::SetLen { file, len } | Self::Preallocate { file, len } => [file.inode.id, *len],
            Self::Len { file } => [file.inode.id, 0],
            Self::CreateDir { path } | Self::Remove { path } | Self::List { path } | Self::Lock { path } => {
                [text(path), self.traits().name.len() as u64]
            }
            Self::Open { path, mode } => [text(path), *mode as u64],
            Self::Rename { from, to } => [text(from), text(to)],
            Self::SyncDir { path, order } => [text(path), *order],
        }
    }

    /// The directory whose lock waits for this operation.
    pub(super) fn directory(&self, volume: &VolumeState) -> Option<Arc<Directory>> {
        match self {
            Self::Read { file, .. }
            | Self::Write { file, .. }
            | Self::Sync { file, .. }
            | Self::SetLen { file, .. }
            | Self::Preallocate { file, .. }
            | Self::Len { file } => Some(Arc::clone(&file.directory)),
            Self::Open { path, .. } | Self::Rename { from: path, .. } | Self::Remove { path } => {
                volume.parent("open", path).ok().map(|(directory, _)| directory)
            }
            Self::SyncDir { path, .. } => volume.directory("sync_dir", path).ok(),
            Self::CreateDir { .. } | Self::List { .. } | Self::Lock { .. } => None,
        }
    }

    /// Carries the operation out, at its completion or as a crash finds it.
    pub(super) fn execute(
        &self,
        volume: &mut VolumeState,
        number: u64,
        in_flight: bool,
    ) -> DiskResult<Outcome> {
        let stamp = volume.stamp(in_flight);
        match self {
            Self::Read { file, offset, len } => read(file, *offset, *len),
            Self::Write { file, offset, bytes } => write(file, stamp, *offset, bytes),
            Self::Sync { file, order } => {
                file.inode.lock().sync(*order);
                Ok(Outcome::Done)
            }
            Self::SetLen { file, len } => set_len(file, stamp, *len),
            Self::Preallocate { file, len } => preallocate(file, stamp, *len),
            Self::Len { file } => Ok(Outcome::Len(file.inode.lock().current.len())),
            Self::CreateDir { path } => volume.create_dir(stamp, path),
            Self::Open { path, mode } => volume.open(stamp, path, *mode),
            Self::Rename { from, to } => volume.rename(stamp, from, to),
            Self::Remove { path } => volume.remove(stamp, path),
            Self::List { path } => {
                let directory = volume.directory("list", path)?;
                let names = directory.lock().current.keys().map(ToString::to_string).collect();
                Ok(Outcome::Names(names))
            }
            Self::SyncDir { path, order } => {
                volume.directory("sync_dir", path)?.lock().sync(*order);
                Ok(Outcome::Done)
            }
            Self::Lock { path } => volume.lock_directory(path, number),
        }
    }

    /// The same operation on other files.
    pub(super) fn on_files(&self, mut map: impl FnMut(&OpenFile) -> Arc<OpenFile>) -> Self {
        match self {
            Self::Read { file, offset, len } => Self::Read { file: map(file), offset: *offset, len: *len },
            Self::Write { file, offset, bytes } => {
                Self::Write { file: map(file), offset: *offset, bytes: bytes.clone() }
            }
            Self::Sync { file, order } => Self::Sync { file: map(file), order: *order },
            Self::SetLen { file, len } => Self::SetLen { file: map(file), len: *len },
            Self::Preallocate { file, len } => Self::Preallocate { file: map(file), len: *len },
            Self::Len { file } => Self::Len { file: map(file) },
            Self::CreateDir { path } => Self::CreateDir { path: path.clone() },
            Self::Open { path, mode } => Self::Open { path: path.clone(), mode: *mode },
            Self::Rename { from, to } => Self::Rename { from: from.clone(), to: to.clone() },
            Self::Remove { path } => Self::Remove { path: path.clone() },
            Self::List { path } => Self::List { path: path.clone() },
            Self::SyncDir { path, order } => Self::SyncDir { path: path.clone(), order: *order },
            Self::Lock { path } => Self::Lock { path: path.clone() },
        }
    }

    /// The file or directory that it is about.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Read { file, .. }
            | Self::Write { file, .. }
            | Self::Sync { file, .. }
            | Self::SetLen { file, .. }
            | Self::Preallocate { file, .. }
            | Self::Len { file } => &file.path,
            Self::CreateDir { path }
            | Self::Open { path, .. }
            | Self::Rename { from: path, .. }
            | Self::Remove { path }
            | Self::List { path }
            | Self::SyncDir { path, .. }
            | Self::Lock { path } => path,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.traits().name, self.path().display())?;
        match self {
            Self::Read { offset, len, .. } => write!(f, " {offset}+{len}"),
            Self::Write { offset, bytes, .. } => write!(f, " {offset}+{}", bytes.len()),
            Self::SetLen { len, .. } | Self::Preallocate { len, .. } => write!(f, " {len}"),
            Self::Rename { to, .. } => write!(f, " to {}", to.display()),
            _ => Ok(()),
        }
    }
}

fn read(file: &OpenFile, offset: u64, len: usize) -> DiskResult<Outcome> {
    let state = file.inode.lock();
    match offset.checked_add(len as u64) {
        Some(end) if end <= state.current.len() => Ok(Outcome::Bytes(state.current.read(offset, len))),
        _ => Err(DiskError::new(DiskErrorKind::UnexpectedEnd, "read", &*file.path).at(offset, len as u64)),
    }
}

fn write(file: &OpenFile, stamp: Stamp, offset: u64, bytes: &Bytes) -> DiskResult<Outcome> {
    let error = |kind| DiskError::new(kind, "write", &*file.path).at(offset, bytes.len() as u64);
    if !file.writable {
        return Err(error(DiskErrorKind::PermissionDenied));
    }
    if bytes.is_empty() {
        return Ok(Outcome::Done);
    }
    let mut state = file.inode.lock();
    match end_of(offset, bytes.len()) {
        Some(end) if file.allocate(&mut state, end) => {
            state.write(stamp, offset, bytes.clone());
            Ok(Outcome::Done)
        }
        _ => Err(error(DiskErrorKind::Full)),
    }
}

/// Where a range ends, if a file can be that long.
fn end_of(offset: u64, len: usize) -> Option<u64> {
    offset.checked_add(len as u64).filter(|end| i64::try_from(*end).is_ok())
}

fn set_len(file: &OpenFile, stamp: Stamp, len: u64) -> DiskResult<Outcome> {
    if !file.writable {
        return Err(DiskError::new(DiskErrorKind::PermissionDenied, "set_len", &*file.path));
    }
    if end_of(len, 0).is_none() {
        return Err(DiskError::new(DiskErrorKind::Full, "set_len", &*file.path));
    }
    let mut state = file.inode.lock();
    if len < state.current.len() {
        file.shrink(&mut state, len);
    }
    state.set_len(stamp, len);
    Ok(Outcome::Done)
}

fn preallocate(file: &OpenFile, stamp: Stamp, len: u64) -> DiskResult<Outcome> {
    if !file.writable {
        return Err(DiskError::new(DiskErrorKind::PermissionDenied, "preallocate", &*file.path));
    }
    let mut state = file.inode.lock();
    if end_of(len, 0).is_none() || !file.allocate(&mut state, len) {
        return Err(DiskError::new(DiskErrorKind::Full, "preallocate", &*file.path));
    }
    if len > state.current.len() {
        state.set_len(stamp, len);
    }
    Ok(Outcome::Done)
}

impl VolumeState {
    /// The directory at `path`.
    pub(super) fn directory(&self, operation: &'static str, path: &Path) -> DiskResult<Arc<Directory>> {
        let mut at = Arc::clone(&self.root);
        for component in path.components() {
            let Some(name) = entry_name(component, operation, path)? else { continue };
            let next = match at.lock().current.get(name) {
                Some(Node::Directory(directory)) => Arc::clone(directory),
                Some(Node::File(_)) | None => {
                    return Err(DiskError::new(DiskErrorKind::NotFound, operation, path));
                }
            };
            at = next;
        }
        Ok(at)
    }

    /// The directory that holds the entry `path`, and the entry's name.
    pub(super) fn parent<'a>(
        &self,
        operation: &'static str,
        path: &'a Path,
    ) -> DiskResult<(Arc<Directory>, &'a str)> {
        let error = |kind| DiskError::new(kind, operation, path);
        let name = path.file_name().ok_or_else(|| error(DiskErrorKind::AlreadyExists))?;
        let name = name.to_str().ok_or_else(|| error(DiskErrorKind::Unsupported))?;
        let parent = path.parent().unwrap_or_else(|| Path::new(""));
        let directory = self.directory(operation, parent).map_err(|cause| error(cause.kind))?;
        Ok((directory, name))
    }

    fn create_dir(&mut self, stamp: Stamp, path: &Path) -> DiskResult<Outcome> {
        let (directory, name) = self.parent("create_dir", path)?;
        let id = self.new_id();
        let mut state = directory.lock();
        if state.current.contains_key(name) {
            return Err(DiskError::new(DiskErrorKind::AlreadyExists, "create_dir", path));
        }
        let node = Node::Directory(Directory::new(id, directory.path_of(name)));
        state.change(stamp, EntryChange::Create { name: Arc::from(name), node });
        Ok(Outcome::Done)
    }

    fn open(&mut self, stamp: Stamp, path: &Path, mode: OpenMode) -> DiskResult<Outcome> {
        let create = mode == OpenMode::CreateNew;
        let operation = if create { "create" } else { "open" };
        let error = |kind| DiskError::new(kind, operation, path);
        let (directory, name) = self.parent(operation, path)?;
        let mut state = directory.lock();
        let inode = match state.current.get(name) {
            Some(_) if create => return Err(error(DiskErrorKind::AlreadyExists)),
            Some(Node::File(inode)) => Arc::clone(inode),
            Some(Node::Directory(_)) => return Err(error(DiskErrorKind::Io)),
            None if create => {
                let inode = Inode::new(self.new_id(), directory.path_of(name), self.epoch);
                let node = Node::File(Arc::clone(&inode));
                state.change(stamp, EntryChange::Create { name: Arc::from(name), node });
                inode
            }
            None => return Err(error(DiskErrorKind::NotFound)),
        };
        drop(state);
        let space = Arc::clone(&self.space);
        Ok(Outcome::Opened(OpenFile::new(inode, directory, path.to_owned(), mode != OpenMode::Read, space)))
    }

    fn rename(&mut self, stamp: Stamp, from: &Path, to: &Path) -> DiskResult<Outcome> {
        let error = |kind| DiskError::new(kind, "rename", from);
        let (directory, from_name) = self.parent("rename", from)?;
        let (to_directory, to_name) = self.parent("rename", to)?;
        if !Arc::ptr_eq(&directory, &to_directory) {
            return Err(error(DiskErrorKind::Unsupported));
        }
        let mut state = directory.lock();
        let node = match state.current.get(from_name) {
            Some(node @ Node::File(_)) => node.clone(),
            Some(Node::Directory(_)) => return Err(error(DiskErrorKind::Unsupported)),
            None => return Err(error(DiskErrorKind::NotFound)),
        };
        if from_name == to_name {
            return Ok(Outcome::Done);
        }
        match state.current.get(to_name) {
            Some(Node::Directory(_)) => return Err(error(DiskErrorKind::Io)),
            Some(Node::File(replaced)) => self.unlink(replaced),
            None => {}
        }
        let change = EntryChange::Rename { from: Arc::from(from_name), to: Arc::from(to_name), node };
        state.change(stamp, change);
        Ok(Outcome::Done)
    }

    fn remove(&mut self, stamp: Stamp, path: &Path) -> DiskResult<Outcome> {
        let (directory, name) = self.parent("remove", path)?;
        let mut state = directory.lock();
        match state.current.get(name) {
            Some(Node::File(inode)) => self.unlink(inode),
            Some(Node::Directory(_)) => return Err(DiskError::new(DiskErrorKind::Io, "remove", path)),
            None => return Err(DiskError::new(DiskErrorKind::NotFound, "remove", path)),
        }
        state.change(stamp, EntryChange::Remove { name: Arc::from(name) });
        Ok(Outcome::Done)
    }

    fn unlink(&self, inode: &Inode) {
        let mut state = inode.lock();
        state.linked = false;
        state.release_if_unused(&self.space);
    }

    fn lock_directory(&mut self, path: &Path, number: u64) -> DiskResult<Outcome> {
        let directory = self.directory("lock", path)?;
        let mut state = directory.lock();
        if state.lock != LockState::Free {
            return Err(DiskError::new(DiskErrorKind::Locked, "lock", path));
        }
        state.lock = LockState::Held(number);
        drop(state);
        Ok(Outcome::Locked(Hold { directory, number }))
    }
}

/// The name that a path component stands for; `None` for those that stay where they are.
fn entry_name<'a>(
    component: Component<'a>,
    operation: &'static str,
    path: &Path,
) -> DiskResult<Option<&'a str>> {
    let unsupported = || DiskError::new(DiskErrorKind::Unsupported, operation, path);
    match component {
        Component::RootDir | Component::CurDir => Ok(None),
        Component::Normal(name) => name.to_str().map(Some).ok_or_else(unsupported),
        Component::ParentDir | Component::Prefix(_) => Err(unsupported()),
    }
}
