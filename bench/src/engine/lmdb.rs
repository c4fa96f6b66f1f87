use super::threads::commit_concurrently;
use super::{Engine, fold};
use crate::Outcome;
use crate::data::{Record, joined, value};
use crate::measure::Tally;
use crate::workload::LOAD_BATCH;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, FlagSetMode};
use std::ops::Bound;
use std::path::Path;
use std::time::{Duration, Instant};

/// Keys are object and field in one. Without a sync, a commit is written to the operating system.
pub(super) struct Lmdb {
    env: Env,
    records: Database<Bytes, Bytes>,
}

const MAP_BYTES: usize = 16 << 30;

impl Lmdb {
    pub(super) fn open(store: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(store)?;
        #[expect(unsafe_code, reason = "the only way to open LMDB")]
        // SAFETY: nothing else opens or changes the files while this process measures.
        let env = unsafe { EnvOpenOptions::new().map_size(MAP_BYTES).max_readers(256).open(store)? };
        let mut transaction = env.write_txn()?;
        let records = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Self { env, records })
    }

    fn write(&self, records: &[Record], version: u64) -> Outcome<()> {
        let mut transaction = self.env.write_txn()?;
        for record in records {
            self.records.put(&mut transaction, &joined(*record), &value(*record, version))?;
        }
        Ok(transaction.commit()?)
    }

    fn sync_commits(&self, sync: bool) -> Outcome<()> {
        let mode = if sync { FlagSetMode::Disable } else { FlagSetMode::Enable };
        #[expect(unsafe_code, reason = "the only way to commit without a sync")]
        // SAFETY: a store that a crash of the machine damages is made anew.
        unsafe {
            self.env.set_flags(EnvFlags::NO_SYNC, mode)?;
        }
        Ok(())
    }
}

impl Engine for Lmdb {
    fn load(&mut self, records: &[Record], version: u64) -> Outcome<Tally> {
        self.sync_commits(false)?;
        for part in records.chunks(LOAD_BATCH) {
            self.write(part, version)?;
        }
        self.env.force_sync()?;
        Ok(Tally { operations: records.len() as u64, ..Tally::default() })
    }

    fn get(&mut self, records: &[Record]) -> Outcome<Tally> {
        let transaction = self.env.read_txn()?;
        let mut seen = 0;
        for record in records {
            let found = self.records.get(&transaction, &joined(*record))?;
            seen = fold(seen, found.ok_or("a record is missing")?);
        }
        Ok(Tally { operations: records.len() as u64, seen, ..Tally::default() })
    }

    fn scan(&mut self, starts: &[Record], fields: usize) -> Outcome<Tally> {
        let transaction = self.env.read_txn()?;
        let mut seen = 0;
        for start in starts {
            let start = joined(*start);
            let range = (Bound::Included(start.as_slice()), Bound::Unbounded);
            let mut scan = self.records.range(&transaction, &range)?;
            for _ in 0..fields {
                let (_, found) = scan.next().ok_or("a record is missing")??;
                seen = fold(seen, found);
            }
        }
        Ok(Tally { operations: starts.len() as u64, seen, ..Tally::default() })
    }

    fn overwrite(&mut self, records: &[Record], version: u64) -> Outcome<Tally> {
        self.sync_commits(false)?;
        let mut worst = Duration::ZERO;
        for record in records {
            let start = Instant::now();
            self.write(&[*record], version)?;
            worst = worst.max(start.elapsed());
        }
        Ok(Tally { operations: records.len() as u64, worst: Some(worst), ..Tally::default() })
    }

    fn synced(&mut self, writers: u32, time: Duration, version: u64) -> Outcome<Tally> {
        self.sync_commits(true)?;
        commit_concurrently(writers, time, |record, commit| self.write(&[record], version + commit))
    }

    fn close(&mut self) -> Outcome<()> {
        Ok(self.env.force_sync()?)
    }
}
