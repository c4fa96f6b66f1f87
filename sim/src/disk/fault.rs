//! Operations that fail although the machine goes on.
//!
//! Each kind of operation has its own knob; where it is on, each completion asks [`Site::Fault`] whether and how it
//! fails. A failed sync is the treacherous one: what it should have made durable may still be pending, or be gone at
//! once, or be readable until the power goes and gone then, while later syncs report success.

use super::content::SECTOR_BYTES;
use super::operation::{Operation, Outcome};
use super::tree::FileState;
use super::volume::VolumeState;
use crate::choices::{Choices, Site};
use ironleaf::env::{DiskError, DiskErrorKind, DiskResult};
use std::sync::Arc;

/// Which operations may fail with an I/O error. None may unless it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Reads fail.
    pub read: bool,
    /// Writes fail, without effect (pick 1) or after they were carried out in part (pick 2).
    pub write: bool,
    /// Syncs fail and leave the data pending (pick 1), discard it at once (pick 2), or leave it readable and make it
    /// never durable (pick 3).
    pub sync: bool,
    /// Syncs of directories fail and leave the entries pending.
    pub sync_dir: bool,
}

impl Faults {
    /// Every fault that there is.
    pub const ALL: Self = Self { read: true, write: true, sync: true, sync_dir: true };

    /// How many ways there are in which `operation` may fail now.
    const fn ways(self, operation: &Operation) -> u64 {
        match operation {
            Operation::Read { .. } if self.read => 1,
            Operation::Write { .. } if self.write => 2,
            Operation::Sync { .. } if self.sync => 3,
            Operation::SyncDir { .. } if self.sync_dir => 1,
            _ => 0,
        }
    }
}

impl Operation {
    /// Carries the operation out at its completion, unless a fault is chosen.
    pub(super) fn complete(
        &self,
        volume: &mut VolumeState,
        number: u64,
        choices: &Choices,
    ) -> DiskResult<Outcome> {
        let ways = volume.faults.ways(self);
        let way = if ways > 0 { choices.pick(Site::Fault, self.traits().name, ways + 1) } else { 0 };
        if way == 0 {
            return self.execute(volume, number, false);
        }
        match self {
            Self::Write { file, offset, bytes } if way == 2 => {
                // Up to a sector's boundary about the middle.
                let middle = (offset + bytes.len() as u64 / 2) / SECTOR_BYTES * SECTOR_BYTES;
                let part = middle.saturating_sub(*offset) as usize;
                let (file, offset) = (Arc::clone(file), *offset);
                let part = Self::Write { file, offset, bytes: bytes.slice(..part) };
                drop(part.execute(volume, number, false));
            }
            Self::Sync { file, order } if way > 1 => file.inode.lock().fail_sync(*order, way == 2),
            _ => {}
        }
        Err(self.io_error("an injected fault"))
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
    /// Loses the data that a sync should have made durable: at once, or with the power. Lengths stay pending.
    fn fail_sync(&mut self, order: u64, at_once: bool) {
        self.pending.retain(|event| event.stamp.order > order || event.is_length());
        self.diverged = true;
        if at_once {
            self.current = self.durable.clone();
            for event in &self.pending {
                event.apply(&mut self.current);
            }
        }
    }
}
