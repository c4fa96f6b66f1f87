//! A medium that lies: bytes that change, reads and writes that go astray, syncs that promise what they do not keep.
//!
//! Unlike the operations that fail ([`fault`](super::fault)), nobody is told. An engine cannot keep what such a medium
//! loses; it can notice. So each damage is remembered with the sectors that it left wrong, until they are written
//! anew: it counts as *effective* when somebody looks there.

use super::content::{Content, SECTOR_BYTES, sectors};
use super::fault::{Completion, Fault, Injected};
use super::operation::{Operation, Outcome};
use super::tree::{Directory, DirectoryState, FileState, Inode, Node};
use super::volume::VolumeState;
use crate::choices::{Choices, Site};
use std::ops::Range;
use std::sync::Arc;

/// The label of the choice whether, and how, a file decays before the machine is started.
pub(crate) const DECAYS: &str = "decays";

/// Every kind of damage.
pub const DAMAGE_KINDS: [&str; 14] = [
    "read_flipped",
    "read_misdirected",
    "write_lost",
    "sector_stale",
    "write_misdirected",
    "sync_ignored",
    "sync_forgotten",
    "sync_dir_ignored",
    "bit_rot",
    "sector_zeroed",
    "sector_foreign",
    "truncated",
    "file_foreign",
    "file_lost",
];

/// What may become of a file at rest, by the pick's remainder.
const DECAY_KINDS: [&str; 6] =
    ["bit_rot", "sector_zeroed", "sector_foreign", "truncated", "file_foreign", "file_lost"];
/// Variants of each decay of each sector; they set the place within it.
const VARIANTS: u64 = 8;

/// Damage so far, as far as it excuses what an engine says and loses. The numbers only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageCounts {
    /// All of it.
    pub all: u64,
    /// That of log files, lying syncs included.
    pub log: u64,
    /// Single sectors of log files that changed while the machine was off.
    pub log_rot: u64,
    /// Log files that were cut while the machine was off.
    pub log_cut: u64,
    /// Syncs, of files and directories, that were reported and not done.
    pub lies: u64,
}

/// A damage that happened.
#[derive(Clone)]
pub(super) struct DamageEvent {
    kind: &'static str,
    /// Whether somebody has looked at what it left wrong.
    is_met: bool,
}

impl Operation {
    /// The lie that is chosen for this operation, if any. It seems to succeed.
    pub(super) fn lie(&self, volume: &mut VolumeState, number: u64, choices: &Choices) -> Option<Completion> {
        let (knob, label, ways) = match self {
            Self::Read { .. } => (Fault::Misread, "read lies", 2),
            Self::Write { .. } => (Fault::Miswrite, "write lies", 3),
            Self::Sync { .. } => (Fault::LyingSync, "sync lies", 2),
            Self::SyncDir { .. } => (Fault::LyingSync, "sync_dir lies", 1),
            _ => return None,
        };
        if !volume.trouble.has(knob) {
            return None;
        }
        let way = choices.pick(Site::Fault, label, ways + 1);
        let (kind, outcome, is_effective) = match self {
            _ if way == 0 => return None,
            Self::Read { offset, .. } => {
                let Ok(Outcome::Bytes(right)) = self.execute(volume, number, false) else { return None };
                let wrong = if way == 1 { flipped(&right, *offset) } else { self.neighbour(right.len())? };
                if wrong == right {
                    return None;
                }
                let kind = if way == 1 { "read_flipped" } else { "read_misdirected" };
                let is_log = self.is_on_log();
                volume.trouble.damaged(self.path(), |counts| {
                    counts.all += 1;
                    counts.log += u64::from(is_log);
                });
                (kind, Outcome::Bytes(wrong), true)
            }
            Self::Write { .. } => {
                let kind = ["write_lost", "sector_stale", "write_misdirected"][way as usize - 1];
                if !self.miswrite(volume, number, kind) {
                    return None;
                }
                let is_log = self.is_on_log();
                volume.trouble.damaged(self.path(), |counts| {
                    counts.all += 1;
                    counts.log += u64::from(is_log);
                });
                (kind, Outcome::Done, false)
            }
            Self::Sync { file, order } => {
                let mut state = file.inode.lock();
                let is_pending = state.pending.iter().any(|event| event.stamp.order <= *order);
                if way == 2 {
                    state.fail_sync(*order, false);
                }
                drop(state);
                let is_log = self.is_on_log();
                volume.trouble.damaged(self.path(), |counts| {
                    counts.all += 1;
                    counts.lies += 1;
                    counts.log += u64::from(is_log);
                });
                (if way == 1 { "sync_ignored" } else { "sync_forgotten" }, Outcome::Done, is_pending)
            }
            Self::SyncDir { path, order } => {
                let directory = volume.directory("sync_dir", path).ok()?;
                let is_pending = directory.lock().pending.iter().any(|event| event.stamp.order <= *order);
                volume.trouble.damaged(self.path(), |counts| {
                    counts.all += 1;
                    counts.lies += 1;
                });
                ("sync_dir_ignored", Outcome::Done, is_pending)
            }
            _ => return None,
        };
        Some(Completion { outcome: Ok(outcome), fault: Some(Injected::lie(kind, is_effective)) })
    }

    fn is_on_log(&self) -> bool {
        is_log(&self.path().to_string_lossy())
    }

    /// What is read instead: as many bytes that stand right behind, or before the end.
    fn neighbour(&self, len: usize) -> Option<Vec<u8>> {
        let Self::Read { file, offset, .. } = self else { return None };
        let state = file.inode.lock();
        let last = state.current.len().checked_sub(len as u64)?;
        let beside = (offset + len as u64).min(last);
        Some(state.current.read(beside, len))
    }

    /// Carries a write out in the wrong place, or not at all. `false` if nothing is wrong afterwards.
    fn miswrite(&self, volume: &mut VolumeState, number: u64, kind: &'static str) -> bool {
        let Self::Write { file, offset, bytes } = self else { return false };
        let (begin, len) = (*offset, bytes.len());
        if len == 0 || !file.writable {
            return false;
        }
        let before = file.inode.lock().current.clone();
        match kind {
            "sector_stale" => {
                // All but the sector in the middle.
                let middle = (begin + len as u64 / 2) / SECTOR_BYTES * SECTOR_BYTES;
                let cut = middle.max(begin) - begin;
                let resumed = (middle + SECTOR_BYTES).min(begin + len as u64) - begin;
                for part in [0..cut as usize, resumed as usize..len] {
                    let offset = begin + part.start as u64;
                    let part = Self::Write { file: Arc::clone(file), offset, bytes: bytes.slice(part) };
                    drop(part.execute(volume, number, false));
                }
            }
            "write_misdirected" => {
                let offset = begin + (len as u64).next_multiple_of(SECTOR_BYTES);
                let astray = Self::Write { file: Arc::clone(file), offset, bytes: bytes.clone() };
                drop(astray.execute(volume, number, false));
            }
            _ => {}
        }
        let mut state = file.inode.lock();
        let end = begin.saturating_add(2 * (len as u64).next_multiple_of(SECTOR_BYTES));
        let mut right = before.clone();
        right.write(begin, bytes);
        right.set_len(before.len().max(begin + len as u64));
        let event = volume.trouble.begin_damage(kind);
        state.mark_damaged(sectors(begin, (end - begin) as usize), &right, event)
    }
}

/// The bytes with one bit changed, the same one for the same place.
fn flipped(bytes: &[u8], offset: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if !bytes.is_empty() {
        let bit = offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    bytes
}

pub(super) fn is_log(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with("log-"))
}

impl FileState {
    /// Marks the sectors that are not what they should be. Whether there are any.
    fn mark_damaged(&mut self, within: Range<u64>, right: &Content, event: u64) -> bool {
        let mut any = self.current.len() != right.len();
        for sector in within {
            let offset = sector * SECTOR_BYTES;
            let is_right =
                self.current.read(offset, SECTOR_BYTES as usize) == right.read(offset, SECTOR_BYTES as usize);
            if !is_right {
                any = true;
                self.damaged.insert(sector, event);
            }
        }
        if self.current.len() != right.len() {
            self.damaged.insert(right.len().max(self.current.len()).div_ceil(SECTOR_BYTES), event);
        }
        any
    }

    /// Changes the medium under the file: what is durable and what is seen.
    fn decay(&mut self, change: impl Fn(&mut Content)) {
        change(&mut self.durable);
        change(&mut self.current);
    }
}

impl VolumeState {
    /// Notes that somebody looks at sectors: damage there has an effect.
    pub(super) fn meet(&mut self, operation: &Operation) {
        let (file, range) = match operation {
            Operation::Read { file, offset, len } => (file, sectors(*offset, *len)),
            // Whoever asks for the length learns of everything that changed it.
            Operation::Len { file } => (file, 0..u64::MAX),
            _ => return,
        };
        let state = file.inode.lock();
        if state.damaged.is_empty() {
            return;
        }
        for event in state.damaged.range(range).map(|(_, event)| *event) {
            self.trouble.meet(event);
        }
    }

    /// Lets each file decay as the choices say. The machine is off.
    pub(super) fn decay(&mut self, choices: &Choices) {
        let root = Arc::clone(&self.root);
        self.decay_in(&root, choices);
    }

    fn decay_in(&mut self, directory: &Directory, choices: &Choices) {
        let nodes: Vec<_> =
            directory.lock().current.iter().map(|(name, node)| (Arc::clone(name), node.clone())).collect();
        let mut other: Option<Content> = None;
        for (name, node) in nodes {
            match node {
                Node::Directory(inner) => self.decay_in(&inner, choices),
                Node::File(inode) => {
                    let path = directory.path_of(&name);
                    choices.set_actor(&path, None);
                    let len = inode.lock().current.len();
                    let limit = 1 + DECAY_KINDS.len() as u64 * VARIANTS * len.div_ceil(SECTOR_BYTES);
                    let pick = choices.pick(Site::Fault, DECAYS, limit);
                    let intact = inode.lock().current.clone();
                    if let Some(pick) = pick.checked_sub(1) {
                        let place = Place { directory, name: &name, path: &path, inode: &inode };
                        self.decay_file(&place, pick, other.as_ref());
                    }
                    other = Some(intact);
                }
            }
        }
    }

    /// `other` is what another file of the directory holds.
    fn decay_file(&mut self, place: &Place<'_>, pick: u64, other: Option<&Content>) {
        let kind = DECAY_KINDS[(pick % DECAY_KINDS.len() as u64) as usize];
        let pick = pick / DECAY_KINDS.len() as u64;
        let (variant, sector) = (pick % VARIANTS, pick / VARIANTS);
        let offset = sector * SECTOR_BYTES;
        let mut state = place.inode.lock();
        let before = state.current.clone();
        let within = (before.len() - offset).min(SECTOR_BYTES) as usize;
        let event = self.trouble.begin_damage(kind);
        match kind {
            "bit_rot" => {
                let bit = (variant * 521 + sector * 13) as usize % (within * 8);
                let at = offset + (bit / 8) as u64;
                state.decay(|content| {
                    let byte = content.read(at, 1)[0] ^ 1 << (bit % 8);
                    content.write(at, &[byte]);
                });
            }
            "sector_zeroed" => state.decay(|content| content.write(offset, &vec![0; within])),
            "sector_foreign" => {
                let bytes: Vec<u8> = (0..within).map(|at| (at as u64 * 167 + pick * 59 + 1) as u8).collect();
                state.decay(|content| content.write(offset, &bytes));
            }
            "truncated" => {
                let len = offset + variant * (within as u64) / VARIANTS;
                state.pending.clear();
                state.decay(|content| content.set_len(len));
            }
            "file_foreign" => {
                let foreign = other.cloned().unwrap_or_default();
                state.overwrite(foreign);
            }
            _ => place.directory.lock().forget(place.name),
        }
        let sectors = before.len().max(state.current.len()).div_ceil(SECTOR_BYTES);
        let is_lost = kind == "file_lost";
        let is_damaged = state.mark_damaged(0..sectors, &before, event) || is_lost;
        drop(state);
        if !is_damaged {
            return;
        }
        self.trouble.count_damage(event);
        if is_lost {
            self.trouble.meet(event);
        }
        let (is_log, is_sector) = (is_log(place.path), offset_is_kept(kind));
        self.trouble.damaged(place.path.as_ref(), |counts| {
            counts.all += 1;
            counts.log += u64::from(is_log);
            counts.log_rot += u64::from(is_log && is_sector);
            counts.log_cut += u64::from(is_log && kind == "truncated");
        });
    }
}

/// A file that may decay.
struct Place<'a> {
    directory: &'a Directory,
    name: &'a Arc<str>,
    path: &'a str,
    inode: &'a Inode,
}

/// Whether a decay leaves everything but one sector as it was.
fn offset_is_kept(kind: &str) -> bool {
    matches!(kind, "bit_rot" | "sector_zeroed" | "sector_foreign")
}

impl DirectoryState {
    /// Loses an entry, as if it had never been.
    fn forget(&mut self, name: &Arc<str>) {
        self.current.remove(name);
        self.durable.remove(name);
        self.pending.retain(|event| event.change.names().all(|other| other != name));
    }
}

impl DamageEvent {
    pub(super) const fn new(kind: &'static str) -> Self {
        Self { kind, is_met: false }
    }

    pub(super) const fn kind(&self) -> &'static str {
        self.kind
    }

    /// Whether it was not met before.
    pub(super) fn meet(&mut self) -> bool {
        !std::mem::replace(&mut self.is_met, true)
    }
}
