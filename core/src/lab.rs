//! What the engine offers the laboratory: labelled points, probes and planted bugs.
//!
//! All of it compiles to nothing outside the laboratory's builds (`--cfg ironleaf_lab`, and `--cfg ironleaf_planted`
//! for the planted bugs). The engine only offers the hooks; the policy is in the crate `ironleaf-sim`.

#[cfg(ironleaf_lab)]
use crate::env::BoxFuture;
#[cfg(any(ironleaf_lab, ironleaf_planted))]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The laboratory's side of [`Env::point`](crate::env::Env::point).
#[cfg(ironleaf_lab)]
pub trait Hooks: Send + Sync {
    /// Called where a task passes the point `label`; the future that is returned, if any, is awaited there.
    fn point(&self, label: &'static str) -> Option<BoxFuture<'static, ()>>;
}

/// Every probe of the engine, by name. A campaign that leaves one of them cold proves less than it claims.
pub const PROBES: &[&str] = &[
    "checkpoint stage for a snapshot",
    "commit counts an object",
    "commit waits for log space",
    "commit waits for memory",
    "free segments given up for the reserve",
    "interrupted creation cleared",
    "leavings removed",
    "log segment recycled",
    "log segment rotated",
    "manifest rewritten",
    "object comes back inline",
    "object deleted",
    "object emptied",
    "object gets a tree",
    "open makes do with a small log segment",
    "open spends the reserve",
    "page evicted",
    "page load shared",
    "page relocated",
    "page segment closed",
    "page segment created",
    "page segment removed",
    "record replayed",
    "recovery checkpoints as it goes",
    "reserve restored",
    "reserve spent",
    "snapshot handed its root",
];

/// Those of them that nothing reaches unless faults are injected.
pub const FAULT_PROBES: &[&str] = &[
    "free segments given up for the reserve",
    "open makes do with a small log segment",
    "open spends the reserve",
    "reserve restored",
    "reserve spent",
];

/// A sabotage of the engine, compiled in under `--cfg ironleaf_planted` and active when chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// What `--bug` calls it.
    pub name: &'static str,
    /// Number in the museum of public faults (`docs/museum.md`).
    pub number: u32,
    /// The laboratory's family of campaigns that shows it.
    pub family: &'static str,
    /// What is wrong when it is active.
    pub mechanism: &'static str,
}

/// Every planted bug.
pub const PLANTED: &[Planted] = &[
    Planted {
        name: "page-growth-not-synced",
        number: 1,
        family: "crash",
        mechanism: "a page segment that grows is not synced before the manifest names its new pages",
    },
    Planted {
        name: "recovery-overwrites-log",
        number: 2,
        family: "crash",
        mechanism: "recovery begins its own log in a segment that it replayed, before its result is durable",
    },
    Planted {
        name: "failed-write-forgotten",
        number: 3,
        family: "faults",
        mechanism: "a failed write of the log does not poison; later commits and a close report success",
    },
    Planted {
        name: "check-drops-memtable",
        number: 4,
        family: "crash",
        mechanism: "a check reads everything from the disk again and drops what is visible and not yet in pages",
    },
    Planted {
        name: "new-manifest-considered",
        number: 5,
        family: "crash",
        mechanism: "a new manifest that was not renamed yet is read at open, however far it was written",
    },
    Planted {
        name: "torn-tail-decoded",
        number: 8,
        family: "crash",
        mechanism: "a log record is decoded without a look at the checksum of its payload",
    },
    Planted {
        name: "recovered-pages-not-synced",
        number: 14,
        family: "crash",
        mechanism: "recovery makes pages of log records that nobody synced, and does not sync the pages either",
    },
    Planted {
        name: "empty-manifest-is-new",
        number: 15,
        family: "crash",
        mechanism: "the first manifest is not synced, and an empty one beside a full log is taken for a new database",
    },
    Planted {
        name: "log-truncated-first",
        number: 16,
        family: "crash",
        mechanism: "log segments are given up before the pages and the manifest edit are synced",
    },
    Planted {
        name: "newer-log-synced-first",
        number: 17,
        family: "crash",
        mechanism: "a sync covers the newest log segment and forgets the older ones",
    },
    Planted {
        name: "full-disk-leaves-log",
        number: 20,
        family: "faults",
        mechanism: "a full disk leaves a log file without a header behind, and no open gets past it",
    },
    Planted {
        name: "first-manifest-not-synced",
        number: 21,
        family: "crash",
        mechanism: "the first manifest is never synced",
    },
    Planted {
        name: "acknowledged-before-sync",
        number: 37,
        family: "crash",
        mechanism: "a commit is acknowledged when it is written, before it is synced",
    },
    Planted {
        name: "failed-sync-retried",
        number: 38,
        family: "faults",
        mechanism: "a failed sync of the log is tried again, and believed when it reports success",
    },
    Planted {
        name: "rename-without-directory-sync",
        number: 39,
        family: "crash",
        mechanism: "the rename of the manifest is not followed by a sync of the directory",
    },
    Planted {
        name: "durable-watermark-ahead",
        number: 40,
        family: "crash",
        mechanism: "a log record claims that it is durable itself",
    },
    Planted {
        name: "log-damage-skipped",
        number: 22,
        family: "corruption",
        mechanism: "replay goes on behind a log record that is damaged",
    },
    Planted {
        name: "durable-watermark-forgotten",
        number: 40,
        family: "corruption",
        mechanism: "log records do not tell what is known to be durable",
    },
    Planted {
        name: "page-checksum-unchecked",
        number: 0,
        family: "corruption",
        mechanism: "a page is served without a look at its checksum",
    },
    Planted {
        name: "damage-is-absence",
        number: 0,
        family: "corruption",
        mechanism: "a field whose page is damaged is taken for absent",
    },
    Planted {
        name: "lost-log-unnoticed",
        number: 0,
        family: "corruption",
        mechanism: "a log without the segment that the manifest names is taken for empty",
    },
    Planted {
        name: "end-of-log-ignored",
        number: 0,
        family: "corruption",
        mechanism: "replay does not look how far the manifest knew the log to be durable",
    },
    Planted {
        name: "short-segment-is-the-end",
        number: 0,
        family: "corruption",
        mechanism: "a log segment that was cut is read up to where it ends",
    },
    Planted {
        name: "pages-not-synced",
        number: 0,
        family: "crash",
        mechanism: "the manifest names pages that were written and not synced",
    },
    Planted {
        name: "page-segment-entry-not-synced",
        number: 0,
        family: "crash",
        mechanism: "the directory is not synced after a page segment was created",
    },
    Planted {
        name: "log-entry-not-synced",
        number: 0,
        family: "crash",
        mechanism: "the directory is not synced after a log segment was created",
    },
    Planted {
        name: "cache-never-evicts",
        number: 0,
        family: "crash",
        mechanism: "the cache grows beyond its budget",
    },
    Planted {
        name: "checkpoint-stops-short",
        number: 0,
        family: "faults",
        mechanism: "an explicit checkpoint ends with the edits that were frozen before it was asked for",
    },
    Planted {
        name: "count-not-checked-again",
        number: 0,
        family: "crash",
        mechanism: "an object that was counted as empty is taken for empty whatever was written to it since",
    },
    Planted {
        name: "dead-segments-stay",
        number: 0,
        family: "crash",
        mechanism: "page segments without a page in use are forgotten and not removed",
    },
    Planted {
        name: "dropped-sync-counts",
        number: 0,
        family: "crash",
        mechanism: "what a commit was syncing when it was dropped counts as durable",
    },
    Planted {
        name: "snapshot-pins-memtable",
        number: 0,
        family: "crash",
        mechanism: "a checkpoint does not hand open snapshots the roots that it made for them",
    },
    Planted {
        name: "end-of-log-noted-early",
        number: 0,
        family: "crash",
        mechanism: "the manifest states the log durable up to its end, and not up to what was synced",
    },
    Planted {
        name: "synced-sector-rewritten",
        number: 0,
        family: "crash",
        mechanism: "what is appended behind a synced record goes into the same sector",
    },
    Planted {
        name: "transaction-reads-unchecked",
        number: 0,
        family: "crash",
        mechanism: "a transaction commits though what it read was changed meanwhile",
    },
];

#[cfg(ironleaf_lab)]
static REACHED: [AtomicU64; PROBES.len()] = [const { AtomicU64::new(0) }; PROBES.len()];

/// How often each probe was passed since the process started.
#[cfg(ironleaf_lab)]
#[must_use]
pub fn probes() -> Vec<(&'static str, u64)> {
    PROBES.iter().zip(&REACHED).map(|(name, count)| (*name, count.load(Relaxed))).collect()
}

/// Marks that the probe at `index` was passed.
#[cfg(ironleaf_lab)]
#[doc(hidden)]
pub fn reach(index: usize) {
    REACHED[index].fetch_add(1, Relaxed);
}

/// Position of `name` in `names`; a compile-time error where it is missing.
#[doc(hidden)]
#[must_use]
pub const fn index_of(names: &[&str], name: &str) -> usize {
    let mut index = 0;
    while index < names.len() {
        if same(names[index], name) {
            return index;
        }
        index += 1;
    }
    panic!("this probe is not in the table PROBES")
}

/// Position of the planted bug `name`; a compile-time error where it is missing.
#[doc(hidden)]
#[must_use]
pub const fn planted_index(name: &str) -> usize {
    let mut index = 0;
    while index < PLANTED.len() {
        if same(PLANTED[index].name, name) {
            return index;
        }
        index += 1;
    }
    panic!("this bug is not in the table PLANTED")
}

pub(crate) const fn same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(ironleaf_planted)]
static ACTIVE: AtomicU64 = AtomicU64::new(u64::MAX);

/// Activates the planted bug called `name`, or none. `false` if there is no such bug.
#[cfg(ironleaf_planted)]
pub fn plant(name: Option<&str>) -> bool {
    let index = match name {
        None => u64::MAX,
        Some(name) => match PLANTED.iter().position(|bug| bug.name == name) {
            Some(index) => index as u64,
            None => return false,
        },
    };
    ACTIVE.store(index, Relaxed);
    true
}

/// Whether the planted bug at `index` is active.
#[cfg(ironleaf_planted)]
#[doc(hidden)]
#[must_use]
pub fn is_planted(index: usize) -> bool {
    ACTIVE.load(Relaxed) == index as u64
}

/// Marks a place that campaigns must reach.
macro_rules! reached {
    ($name:literal) => {
        #[cfg(ironleaf_lab)]
        {
            const INDEX: usize = $crate::lab::index_of($crate::lab::PROBES, $name);
            $crate::lab::reach(INDEX);
        }
    };
}

/// Whether the planted bug of this name is active: constant `false` outside the museum's build.
macro_rules! planted {
    ($name:literal) => {{
        const _INDEX: usize = $crate::lab::planted_index($name);
        #[cfg(ironleaf_planted)]
        let active = $crate::lab::is_planted(_INDEX);
        #[cfg(not(ironleaf_planted))]
        let active = false;
        active
    }};
}
