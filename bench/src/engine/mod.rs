//! The engines that are measured, each behind the same few bulk operations.

mod counting;
#[cfg(feature = "peers")]
mod fjall;
mod ironleaf;
#[cfg(feature = "peers")]
mod lmdb;
#[cfg(feature = "peers")]
mod redb;
#[cfg(feature = "peers")]
mod threads;

use crate::Outcome;
use crate::data::Record;
use crate::measure::Tally;
use clap::ValueEnum;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Operations in bulk, so that what is measured is the engine and not the call.
pub(crate) trait Engine {
    /// Writes records, [`LOAD_BATCH`](crate::workload::LOAD_BATCH) a commit, and makes the last of them durable.
    fn load(&mut self, records: &[Record], version: u64) -> Outcome<Tally>;
    /// Reads the value of each record, owned or borrowed, whichever the engine does faster.
    fn get(&mut self, records: &[Record]) -> Outcome<Tally>;
    /// From each record on, reads `fields` records of its object in order.
    fn scan(&mut self, starts: &[Record], fields: usize) -> Outcome<Tally>;
    /// Overwrites each record in a commit of its own that survives the death of the process; times the worst.
    fn overwrite(&mut self, records: &[Record], version: u64) -> Outcome<Tally>;
    /// Lets `writers` commit concurrently for `time`, one write a commit that survives power loss.
    fn synced(&mut self, writers: u32, time: Duration, version: u64) -> Outcome<Tally>;
    /// Closes the store.
    fn close(&mut self) -> Outcome<()>;
}

/// An engine that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// This engine.
    Ironleaf,
    /// The crate `redb`: a copy-on-write B-tree.
    #[cfg(feature = "peers")]
    Redb,
    /// The crate `fjall`: a log-structured merge tree.
    #[cfg(feature = "peers")]
    Fjall,
    /// LMDB, by the crate `heed`: a memory-mapped copy-on-write B-tree.
    #[cfg(feature = "peers")]
    Lmdb,
}

impl EngineName {
    /// Those of this build.
    pub(crate) const BUILT: &[Self] = &[
        Self::Ironleaf,
        #[cfg(feature = "peers")]
        Self::Redb,
        #[cfg(feature = "peers")]
        Self::Fjall,
        #[cfg(feature = "peers")]
        Self::Lmdb,
    ];

    /// Opens or creates a store.
    pub(crate) fn open(self, store: &Path, memory_bytes: usize) -> Outcome<Box<dyn Engine>> {
        Ok(match self {
            Self::Ironleaf => Box::new(ironleaf::Ironleaf::open(store, memory_bytes)?),
            #[cfg(feature = "peers")]
            Self::Redb => Box::new(redb::Redb::open(store, memory_bytes)?),
            #[cfg(feature = "peers")]
            Self::Fjall => Box::new(fjall::Fjall::open(store, memory_bytes)?),
            #[cfg(feature = "peers")]
            Self::Lmdb => Box::new(lmdb::Lmdb::open(store)?),
        })
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

/// Folds what was read into a number that depends on it.
fn fold(seen: u64, value: &[u8]) -> u64 {
    seen.wrapping_add(value.len() as u64).wrapping_add(value.first().copied().map_or(0, u64::from))
}
