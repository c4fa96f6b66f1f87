//! What the interface takes and gives.

use crate::ids::Lsn;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Fields with values.
    Hash,
    /// Members.
    Set,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hash => "hash",
            Self::Set => "set",
        })
    }
}

/// The result of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// The batch's place in the one order of all commits. For an empty batch: the newest visible position.
    pub position: Lsn,
    /// For each counted write, in order: the value before (empty for a member of a set), or `None`.
    pub outcomes: Vec<Option<Vec<u8>>>,
}

/// One thing that [`Database::check`](crate::Database::check) found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file or structure.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What [`Database::check`](crate::Database::check) saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Commits up to here are in the newest checkpoint.
    pub position: Lsn,
    /// Everything that is wrong; empty for a sound database.
    pub findings: Vec<Finding>,
    /// Objects in the newest checkpoint.
    pub objects: u64,
    /// Fields and members in the newest checkpoint.
    pub entries: u64,
    /// Pages that the newest checkpoint reaches, damaged ones included.
    pub pages: u64,
}

/// Counters since the database was opened, and a few figures as of now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Commits that got a position.
    pub commits: u64,
    /// Writes to the log.
    pub log_writes: u64,
    /// Syncs of the log; commits that wait at the same time share one.
    pub log_syncs: u64,
    /// Checkpoints that became durable.
    pub checkpoints: u64,
    /// Bytes of pages written by checkpoints.
    pub page_bytes_written: u64,
    /// Bytes of pages that somebody can still read.
    pub page_bytes_live: u64,
    /// Bytes of page segment files.
    pub page_bytes_stored: u64,
    /// Pages read from the disk.
    pub page_loads: u64,
    /// Pages evicted from the cache.
    pub page_evictions: u64,
    /// Bytes of cached pages.
    pub cache_bytes: u64,
    /// Bytes of edits in memory: active, and on their way into pages.
    pub memtable_bytes: u64,
    /// Open snapshots, running scans included.
    pub snapshots: u64,
}
