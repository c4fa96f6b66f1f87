//! How a database is opened.

use crate::error::{Error, Result};

/// What a commit survives once it has returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Nothing yet: in memory, made durable by a later `Synced` commit, `flush` or `close`.
    Buffered,
    /// The death of the process, unless a sync of the log failed before it.
    Written,
    /// Power loss, with everything before it.
    #[default]
    Synced,
}

/// Runtime settings. None of them changes the format on disk: a database may be opened with others next time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Create the database if the directory is missing or empty. Default: true.
    pub create_if_missing: bool,
    /// For [`open_read_only`](crate::Database::open_read_only): pass over a damaged end of the log and damaged edits of the
    /// manifest, and show the newest state before them; [`left_out`](crate::Database::left_out) says what was passed
    /// over. Default: false, damage is refused. A writing open refuses this.
    pub salvage: bool,
    /// The level of commits that do not name one. Default: `Synced`.
    pub durability: Durability,
    /// Memory for memtables and cached pages together, in bytes. Half of it is for pages, a quarter for each of the
    /// two memtables. Default: 192 MiB; minimum: 16 KiB.
    pub memory_bytes: usize,
    /// Size of a log segment, in bytes; a batch must fit into one. A multiple of 512. Default: 16 MiB; minimum: 3 KiB.
    pub log_segment_bytes: usize,
    /// Target size of a tree page, in bytes. Pages that hold longer entries are longer. Default: 8 KiB; minimum: 256.
    pub page_bytes: usize,
    /// Size at which a page segment is closed, in bytes. Default: 64 MiB; minimum: 4 KiB.
    pub page_segment_bytes: usize,
    /// Page segments that are kept open for reading, in files. Default 128, minimum 1. Some ten files more are open for
    /// the log, the manifest and the lock.
    pub page_files_max: usize,
    /// Longest value, in bytes. Default and maximum: 256 KiB.
    pub value_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: true,
            durability: Durability::Synced,
            memory_bytes: 192 << 20,
            log_segment_bytes: 16 << 20,
            page_bytes: 8 << 10,
            page_segment_bytes: 64 << 20,
            page_files_max: 128,
            salvage: false,
            value_bytes_max: VALUE_BYTES_LIMIT,
        }
    }
}

/// Values above this need extents, which this version does not have.
pub(crate) const VALUE_BYTES_LIMIT: usize = 256 << 10;
/// Longest key, field or member, in bytes.
pub(crate) const NAME_BYTES_LIMIT: usize = 64 << 10;

/// Refuses a key, and a name in it, that no object can have.
pub(crate) fn check_names(key: &[u8], name: &[u8]) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid_input("a key must not be empty"));
    }
    for (what, bytes) in [("key", key), ("field or member", name)] {
        if bytes.len() > NAME_BYTES_LIMIT {
            let message =
                format!("a {what} of {} bytes is too long; at most {NAME_BYTES_LIMIT}", bytes.len());
            return Err(Error::invalid_input(message));
        }
    }
    Ok(())
}

impl Options {
    /// Refuses settings outside of their documented limits.
    pub fn validate(&self) -> Result<()> {
        let limits = [
            ("memory_bytes", self.memory_bytes, 16 << 10, 1 << 44),
            ("log_segment_bytes", self.log_segment_bytes, 3 << 10, 1 << 30),
            ("page_bytes", self.page_bytes, 256, 32 << 10),
            ("page_segment_bytes", self.page_segment_bytes, 4 << 10, 1 << 30),
            ("page_files_max", self.page_files_max, 1, 1 << 20),
            ("value_bytes_max", self.value_bytes_max, 0, VALUE_BYTES_LIMIT),
        ];
        for (name, value, min, max) in limits {
            if value < min || value > max {
                return Err(Error::invalid_input(format!(
                    "option {name} is {value}; it must be {min} to {max}"
                )));
            }
        }
        if !self.log_segment_bytes.is_multiple_of(512) {
            return Err(Error::invalid_input(format!(
                "option log_segment_bytes is {}; it must be a multiple of 512",
                self.log_segment_bytes
            )));
        }
        Ok(())
    }
}
