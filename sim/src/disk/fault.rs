//! Operations that fail although the machine goes on.
//!
//! Each kind of fault has its own knob; where it is on, each operation that it concerns asks [`Site::Fault`] whether
//! and how it fails. A failed sync is the treacherous one: what it should have made durable may still be pending, or
//! be gone at once, or be readable until the power goes and gone then, while later syncs report success.

use super::content::SECTOR_BYTES;
use super::damage::{DamageCounts, DamageEvent};
use super::operation::{Operation, Outcome};
use super::tree::{FileState, Space};
use super::volume::VolumeState;
use crate::choices::{Choices, Site};
use ironleaf::env::{DiskError, DiskErrorKind, DiskResult};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A knob: something that may go wrong from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Reads fail, once (pick 1), or all reads of the file until the process or the trouble ends (pick 2).
    Read,
    /// Writes fail, without effect (pick 1) or after they were carried out in part (pick 2).
    Write,
    /// Syncs fail and leave the data pending (pick 1), discard it at once (pick 2), or leave it readable and make it
    /// never durable (pick 3).
    Sync,
    /// Syncs of directories fail and leave the entries pending.
    SyncDir,
    /// Creating, growing, preallocating and renaming find the disk full: once (pick 1), or from then on for a while
    /// (picks 2 to 4 are 300 µs, 3 ms and 30 ms) or until the trouble ends (pick 5). What is freed meanwhile can be used.
    Full,
    /// Preallocating and setting a length fail.
    Allocate,
    /// Operations take 10 ms (pick 1), 100 ms (pick 2) or 2 s (pick 3) longer.
    Stall,
    /// Reads give a flipped bit (pick 1), or what stands right behind (pick 2).
    Misread,
    /// Writes are reported, but not done (pick 1), not done for one sector (pick 2), or done behind their place
    /// (pick 3).
    Miswrite,
    /// Syncs are reported, but do nothing (pick 1), or make the data readable until the power goes and gone then (pick
    /// 2). Syncs of directories are reported, but do nothing.
    LyingSync,
    /// Files change while the machine is off: a bit, a sector, the length, all of them, or their being there.
    Decay,
}

impl Fault {
    /// Every knob of operations that fail: somebody is told.
    pub const FAILURES: [Self; 7] =
        [Self::Read, Self::Write, Self::Sync, Self::SyncDir, Self::Full, Self::Allocate, Self::Stall];
    /// Every knob of a medium that lies: nobody is told, and loss is legal.
    pub const DAMAGE: [Self; 4] = [Self::Misread, Self::Miswrite, Self::LyingSync, Self::Decay];

    /// Every knob.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::FAILURES.into_iter().chain(Self::DAMAGE)
    }

    /// What scenarios call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::SyncDir => "sync_dir",
            Self::Full => "full",
            Self::Allocate => "allocate",
            Self::Stall => "stall",
            Self::Misread => "misread",
            Self::Miswrite => "miswrite",
            Self::LyingSync => "lying_sync",
            Self::Decay => "decay",
        }
    }

    /// One line for people.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Read => "reads fail, once or from then on",
            Self::Write => "writes fail, without effect or half done",
            Self::Sync => "syncs fail; the data is pending, gone at once, or gone with the power",
            Self::SyncDir => "syncs of directories fail",
            Self::Full => "create, write, preallocate or rename finds the disk full, once or for a while",
            Self::Allocate => "preallocate and set_len fail",
            Self::Stall => "operations take up to 2 s longer",
            Self::Misread => "reads give a flipped bit, or what stands beside",
            Self::Miswrite => "writes are reported, but lost, lost for a sector, or done in the wrong place",
            Self::LyingSync => "syncs are reported, but not done",
            Self::Decay => "files rot, are cut, exchanged or lost while the machine is off",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The knobs that are on. None is unless it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults(u16);

impl Faults {
    /// Every operation may fail.
    pub const FAILURES: Self = Self((1 << Fault::FAILURES.len()) - 1);

    /// Whether a knob is on.
    #[must_use]
    pub const fn has(self, fault: Fault) -> bool {
        self.0 & 1 << fault as u8 != 0
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<T: IntoIterator<Item = Fault>>(faults: T) -> Self {
        Self(faults.into_iter().fold(0, |set, fault| set | 1 << fault as u8))
    }
}

/// Every way in which something goes wrong.
pub const FAULT_KINDS: [&str; 13] = [
    "read_once",
    "read_lasting",
    "write_refused",
    "write_half_done",
    "sync_pending",
    "sync_gone_at_once",
    "sync_gone_with_power",
    "sync_dir",
    "full_once",
    "full_for_a_while",
    "space_returns",
    "allocation",
    "stall",
];

/// How often a kind of fault was injected, and how often that made a difference: somebody was told of the failure,
/// or data was lost by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCount {
    /// Injected.
    pub fired: u64,
    /// With effect.
    pub effective: u64,
}

/// What has gone wrong so far, as far as it excuses an engine's failures. The numbers only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Troubles {
    /// Reads that failed.
    pub reads: u64,
    /// Writes, syncs and allocations that failed; somebody was told.
    pub changes: u64,
    /// Those of them that leave open what is on the disk: writes and syncs.
    pub unsafe_changes: u64,
    /// Operations that found the disk full.
    pub full: u64,
    /// Syncs of log files that failed.
    pub log_syncs: u64,
    /// What is not as it was written, though nobody was told.
    pub damage: DamageCounts,
}

/// The state of all faults of a volume.
#[derive(Clone)]
pub(crate) struct Trouble {
    faults: Faults,
    /// The disk's own capacity.
    bytes_max: u64,
    /// No more than so many bytes until this time: the disk is full.
    full: Option<(u64, Duration)>,
    /// Numbers the spells of faults, for what lasts as long as a spell.
    spell: u64,
    counts: BTreeMap<&'static str, FaultCount>,
    so_far: Troubles,
    damage: Vec<DamageEvent>,
    damaged_files: BTreeSet<String>,
}

const STALLS: [Duration; 3] = [Duration::from_millis(10), Duration::from_millis(100), Duration::from_secs(2)];
/// How long a disk stays full, where it is not for one operation only.
const FULL_FOR: [Duration; 4] =
    [Duration::from_micros(300), Duration::from_millis(3), Duration::from_millis(30), Duration::MAX];

/// How an operation ended, and the fault in it.
pub(super) struct Completion {
    pub(super) outcome: DiskResult<Outcome>,
    pub(super) fault: Option<Injected>,
}

/// A fault that was chosen.
#[derive(Clone, Copy)]
pub(super) struct Injected {
    kind: &'static str,
    /// Whether it changed what is on the disk or read, beyond the failure itself.
    lost: bool,
}

impl Injected {
    pub(super) const fn lie(kind: &'static str, lost: bool) -> Self {
        Self { kind, lost }
    }
}

impl Trouble {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            faults: Faults::default(),
            bytes_max,
            full: None,
            spell: 0,
            counts: BTreeMap::new(),
            so_far: Troubles::default(),
            damage: Vec::new(),
            damaged_files: BTreeSet::new(),
        }
    }

    pub(super) fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    pub(super) const fn has(&self, fault: Fault) -> bool {
        self.faults.has(fault)
    }

    pub(super) fn begin_epoch(&mut self) {
        self.spell += 1;
    }

    /// The files that were damaged, by name, and those that were read wrong.
    pub(crate) const fn damaged_files(&self) -> &BTreeSet<String> {
        &self.damaged_files
    }

    /// Records damage of a file.
    pub(super) fn damaged(&mut self, path: &Path, count: impl FnOnce(&mut DamageCounts)) {
        count(&mut self.so_far.damage);
        self.damaged_files.insert(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    }

    /// The number of a damage that is about to happen.
    pub(super) fn begin_damage(&mut self, kind: &'static str) -> u64 {
        self.damage.push(DamageEvent::new(kind));
        self.damage.len() as u64 - 1
    }

    /// Counts a damage that happened between operations.
    pub(super) fn count_damage(&mut self, event: u64) {
        self.counts.entry(self.damage[event as usize].kind()).or_default().fired += 1;
    }

    /// Somebody looks at what a damage left wrong.
    pub(super) fn meet(&mut self, event: u64) {
        let event = &mut self.damage[event as usize];
        if event.meet() {
            self.counts.entry(event.kind()).or_default().effective += 1;
        }
    }

    pub(super) fn end(&mut self, space: &Space) {
        self.faults = Faults::default();
        self.spell += 1;
        self.full = None;
        space.set_bytes_max(self.bytes_max);
    }

    /// The capacity now.
    pub(super) fn bytes_max(&self) -> u64 {
        self.full.map_or(self.bytes_max, |(bytes_max, _)| bytes_max)
    }

    pub(crate) const fn so_far(&self) -> Troubles {
        self.so_far
    }

    pub(crate) fn counts(&self) -> &BTreeMap<&'static str, FaultCount> {
        &self.counts
    }

    /// How much longer an operation that is submitted takes.
    pub(super) fn stall(&mut self, label: &'static str, choices: &Choices) -> Duration {
        if !self.faults.has(Fault::Stall) {
            return Duration::ZERO;
        }
        let pick = choices.pick(Site::Fault, label, STALLS.len() as u64 + 1);
        let Some(stall) = (pick as usize).checked_sub(1) else { return Duration::ZERO };
        let count = self.counts.entry("stall").or_default();
        count.fired += 1;
        count.effective += 1;
        STALLS[stall]
    }

    /// Counts what went wrong with an operation; `told` says whether somebody waited for it.
    pub(super) fn count(
        &mut self,
        operation: &Operation,
        outcome: &DiskResult<Outcome>,
        fault: Option<Injected>,
        told: bool,
    ) {
        if let Some(Injected { kind, lost }) = fault {
            let count = self.counts.entry(kind).or_default();
            count.fired += 1;
            count.effective += u64::from(lost || outcome.is_err() && told);
        }
        let Err(error) = outcome else { return };
        let (told, is_allocation) =
            (u64::from(told), matches!(operation, Operation::Preallocate { .. } | Operation::SetLen { .. }));
        match (error.kind, operation) {
            (DiskErrorKind::Full, _) => {
                self.so_far.full += 1;
                if fault.is_none() && self.full.is_some() {
                    self.counts.entry("full_for_a_while").or_default().effective += 1;
                }
            }
            (DiskErrorKind::Io, Operation::Read { .. }) => self.so_far.reads += 1,
            (DiskErrorKind::Io, Operation::Sync { file, .. }) => {
                let name = file.path.file_name().unwrap_or_default();
                self.so_far.log_syncs += u64::from(name.as_encoded_bytes().starts_with(b"log-"));
                self.so_far.changes += told;
                self.so_far.unsafe_changes += told;
            }
            (DiskErrorKind::Io, _) => {
                self.so_far.changes += told;
                self.so_far.unsafe_changes += if is_allocation { 0 } else { told };
            }
            _ => {}
        }
    }
}

impl Operation {
    /// Carries the operation out at its completion, unless a fault is chosen.
    pub(super) fn complete(
        &self,
        volume: &mut VolumeState,
        number: u64,
        now: Duration,
        choices: &Choices,
    ) -> Completion {
        let takes_space = matches!(self, Self::Write { .. } | Self::Preallocate { .. });
        if takes_space
            && let Some((_, until)) = volume.trouble.full
            && until <= now
        {
            volume.trouble.full = None;
            volume.space.set_bytes_max(volume.trouble.bytes_max);
            let count = volume.trouble.counts.entry("space_returns").or_default();
            count.fired += 1;
            count.effective += 1;
        }
        if let Some(completion) = self.fail(volume, number, choices) {
            return completion;
        }
        if let Some(completion) = self.find_full(volume, now, choices) {
            return completion;
        }
        volume.meet(self);
        if let Some(completion) = self.lie(volume, number, choices) {
            return completion;
        }
        Completion { outcome: self.execute(volume, number, false), fault: None }
    }

    /// The I/O error that is chosen for this operation, if any.
    fn fail(&self, volume: &mut VolumeState, number: u64, choices: &Choices) -> Option<Completion> {
        let (knob, ways) = match self {
            Self::Read { .. } => (Fault::Read, 2),
            Self::Write { .. } => (Fault::Write, 2),
            Self::Sync { .. } => (Fault::Sync, 3),
            Self::SyncDir { .. } => (Fault::SyncDir, 1),
            Self::Preallocate { .. } | Self::SetLen { .. } => (Fault::Allocate, 1),
            _ => return None,
        };
        if !volume.trouble.faults.has(knob) {
            return None;
        }
        let spell = volume.trouble.spell;
        if let Self::Read { file, .. } = self
            && file.inode.lock().unreadable == Some(spell)
        {
            return Some(self.failed("read_lasting", false));
        }
        let way = choices.pick(Site::Fault, self.traits().fails, ways + 1);
        let (kind, lost) = match (self, way) {
            (_, 0) => return None,
            (Self::Read { .. }, 1) => ("read_once", false),
            (Self::Read { file, .. }, _) => {
                file.inode.lock().unreadable = Some(spell);
                ("read_lasting", false)
            }
            (Self::Write { file, offset, bytes }, 2) => {
                // Up to a sector's boundary about the middle.
                let middle = (offset + bytes.len() as u64 / 2) / SECTOR_BYTES * SECTOR_BYTES;
                let part = middle.saturating_sub(*offset) as usize;
                let (file, offset) = (Arc::clone(file), *offset);
                let part = Self::Write { file, offset, bytes: bytes.slice(..part) };
                drop(part.execute(volume, number, false));
                ("write_half_done", false)
            }
            (Self::Write { .. }, _) => ("write_refused", false),
            (Self::Sync { .. }, 1) => ("sync_pending", false),
            (Self::Sync { file, order }, 2) => {
                ("sync_gone_at_once", file.inode.lock().fail_sync(*order, true))
            }
            (Self::Sync { file, order }, _) => {
                ("sync_gone_with_power", file.inode.lock().fail_sync(*order, false))
            }
            (Self::SyncDir { .. }, _) => ("sync_dir", false),
            _ => ("allocation", false),
        };
        Some(self.failed(kind, lost))
    }

    fn failed(&self, kind: &'static str, lost: bool) -> Completion {
        Completion { outcome: Err(self.io_error("an injected fault")), fault: Some(Injected { kind, lost }) }
    }

    /// The full disk that is chosen for this operation, if any.
    fn find_full(&self, volume: &mut VolumeState, now: Duration, choices: &Choices) -> Option<Completion> {
        if !volume.trouble.faults.has(Fault::Full) || !self.may_find_full() {
            return None;
        }
        let ways = FULL_FOR.len() as u64 + 2;
        let kind = match choices.pick(Site::Fault, self.traits().finds_full, ways) {
            0 => return None,
            1 => "full_once",
            way => {
                let used = volume.space.bytes_used();
                volume.trouble.full = Some((used, now.saturating_add(FULL_FOR[way as usize - 2])));
                volume.space.set_bytes_max(used);
                "full_for_a_while"
            }
        };
        let error = DiskError::new(DiskErrorKind::Full, self.traits().name, self.path());
        let error = match self {
            Self::Write { offset, bytes, .. } => error.at(*offset, bytes.len() as u64),
            _ => error,
        };
        Some(Completion { outcome: Err(error), fault: Some(Injected { kind, lost: false }) })
    }

    /// Whether it takes space that it does not have yet.
    fn may_find_full(&self) -> bool {
        match self {
            Self::Write { file, offset, bytes } => {
                offset.saturating_add(bytes.len() as u64) > file.inode.lock().allocated
            }
            Self::Preallocate { file, len } => *len > file.inode.lock().allocated,
            Self::Rename { .. } => true,
            Self::Open { .. } => self.changes_disk(),
            _ => false,
        }
    }

    /// An I/O error of this operation.
    pub(super) fn io_error(&self, cause: &'static str) -> DiskError {
        let error = DiskError {
            source: Some(Arc::new(std::io::Error::other(cause))),
            ..DiskError::new(DiskErrorKind::Io, self.traits().name, self.path())
        };
        match self {
            Self::Read { offset, len, .. } => error.at(*offset, *len as u64),
            Self::Write { offset, bytes, .. } => error.at(*offset, bytes.len() as u64),
            _ => error,
        }
    }
}

impl FileState {
    /// Loses the data that a sync should have made durable: at once, or with the power. Lengths stay pending. Whether
    /// there was any.
    pub(super) fn fail_sync(&mut self, order: u64, at_once: bool) -> bool {
        let before = self.pending.len();
        self.pending.retain(|event| event.stamp.order > order || event.is_length());
        self.diverged = true;
        if at_once {
            self.current = self.durable.clone();
            for event in &self.pending {
                event.apply(&mut self.current);
            }
        }
        self.pending.len() < before
    }
}
