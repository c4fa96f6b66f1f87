use super::threads::commit_concurrently;
use super::{Engine, fold};
use crate::Outcome;
use crate::data::{Record, joined, value};
use crate::measure::Tally;
use crate::workload::LOAD_BATCH;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use std::path::Path;
use std::time::{Duration, Instant};

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("records");

/// Keys are object and field in one. `Durability::None` writes nothing at commit, so "survives the death of the
/// process" needs `Immediate` here: redb offers nothing between.
pub(super) struct Redb {
    database: Database,
}

impl Redb {
    pub(super) fn open(store: &Path, memory_bytes: usize) -> Outcome<Self> {
        std::fs::create_dir_all(store)?;
        let database = Database::builder().set_cache_size(memory_bytes).create(store.join("redb"))?;
        Ok(Self { database })
    }

    fn write(&self, records: &[Record], version: u64, durability: Durability) -> Outcome<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for record in records {
                table.insert(joined(*record).as_slice(), value(*record, version).as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Engine for Redb {
    fn load(&mut self, records: &[Record], version: u64) -> Outcome<Tally> {
        for part in records.chunks(LOAD_BATCH) {
            self.write(part, version, Durability::None)?;
        }
        self.write(&[], version, Durability::Immediate)?;
        Ok(Tally { operations: records.len() as u64, ..Tally::default() })
    }

    fn get(&mut self, records: &[Record]) -> Outcome<Tally> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let mut seen = 0;
        for record in records {
            let found = table.get(joined(*record).as_slice())?.ok_or("a record is missing")?;
            seen = fold(seen, found.value());
        }
        Ok(Tally { operations: records.len() as u64, seen, ..Tally::default() })
    }

    fn scan(&mut self, starts: &[Record], fields: usize) -> Outcome<Tally> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let mut seen = 0;
        for start in starts {
            let mut scan = table.range(joined(*start).as_slice()..)?;
            for _ in 0..fields {
                let (_, found) = scan.next().ok_or("a record is missing")??;
                seen = fold(seen, found.value());
            }
        }
        Ok(Tally { operations: starts.len() as u64, seen, ..Tally::default() })
    }

    fn overwrite(&mut self, records: &[Record], version: u64) -> Outcome<Tally> {
        // Each commit costs a sync here: a hundredth of the operations says enough.
        let records = &records[..records.len() / 100];
        let mut worst = Duration::ZERO;
        for record in records {
            let start = Instant::now();
            self.write(&[*record], version, Durability::Immediate)?;
            worst = worst.max(start.elapsed());
        }
        Ok(Tally { operations: records.len() as u64, worst: Some(worst), ..Tally::default() })
    }

    fn synced(&mut self, writers: u32, time: Duration, version: u64) -> Outcome<Tally> {
        commit_concurrently(writers, time, |record, commit| {
            self.write(&[record], version + commit, Durability::Immediate)
        })
    }

    fn close(&mut self) -> Outcome<()> {
        Ok(())
    }
}
