use super::threads::commit_concurrently;
use super::{Engine, fold};
use crate::Outcome;
use crate::data::{Record, joined, value};
use crate::measure::Tally;
use crate::workload::LOAD_BATCH;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use std::time::{Duration, Instant};

/// Keys are object and field in one. A write is handed to the operating system when it returns.
pub(super) struct Fjall {
    database: Database,
    records: Keyspace,
}

impl Fjall {
    pub(super) fn open(store: &Path, memory_bytes: usize) -> Outcome<Self> {
        let database = Database::builder(store).cache_size(memory_bytes as u64).open()?;
        let records = database.keyspace("records", KeyspaceCreateOptions::default)?;
        Ok(Self { database, records })
    }
}

impl Engine for Fjall {
    fn load(&mut self, records: &[Record], version: u64) -> Outcome<Tally> {
        for part in records.chunks(LOAD_BATCH) {
            let mut batch = self.database.batch();
            for record in part {
                batch.insert(&self.records, joined(*record), value(*record, version));
            }
            batch.commit()?;
        }
        self.database.persist(PersistMode::SyncData)?;
        Ok(Tally { operations: records.len() as u64, ..Tally::default() })
    }

    fn get(&mut self, records: &[Record]) -> Outcome<Tally> {
        let mut seen = 0;
        for record in records {
            seen = fold(seen, &self.records.get(joined(*record))?.ok_or("a record is missing")?);
        }
        Ok(Tally { operations: records.len() as u64, seen, ..Tally::default() })
    }

    fn scan(&mut self, starts: &[Record], fields: usize) -> Outcome<Tally> {
        let mut seen = 0;
        for start in starts {
            let mut scan = self.records.range(joined(*start)..);
            for _ in 0..fields {
                let found = scan.next().ok_or("a record is missing")?.value()?;
                seen = fold(seen, &found);
            }
        }
        Ok(Tally { operations: starts.len() as u64, seen, ..Tally::default() })
    }

    fn overwrite(&mut self, records: &[Record], version: u64) -> Outcome<Tally> {
        let mut worst = Duration::ZERO;
        for record in records {
            let start = Instant::now();
            self.records.insert(joined(*record), value(*record, version))?;
            worst = worst.max(start.elapsed());
        }
        Ok(Tally { operations: records.len() as u64, worst: Some(worst), ..Tally::default() })
    }

    fn synced(&mut self, writers: u32, time: Duration, version: u64) -> Outcome<Tally> {
        commit_concurrently(writers, time, |record, commit| {
            self.records.insert(joined(record), value(record, version + commit))?;
            Ok(self.database.persist(PersistMode::SyncData)?)
        })
    }

    fn close(&mut self) -> Outcome<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}
