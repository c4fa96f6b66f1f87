use super::counting::{CountingDisk, Counts};
use super::{Engine, fold};
use crate::Outcome;
use crate::data::{Record, field, key, value};
use crate::measure::Tally;
use crate::workload::LOAD_BATCH;
use ironleaf::env::{Env, os::environment_on};
use ironleaf::{Database, Durability, Options, WriteBatch};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

pub(super) struct Ironleaf {
    runtime: Runtime,
    database: Database,
    counts: Arc<Counts>,
}

impl Ironleaf {
    pub(super) fn open(store: &Path, memory_bytes: usize) -> Outcome<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let env = environment_on(runtime.handle());
        let counts = Arc::new(Counts::default());
        let disk = Arc::new(CountingDisk { disk: env.disk.clone(), counts: counts.clone() });
        let options = Options { memory_bytes, ..Options::default() };
        let database = runtime.block_on(Database::open(Env { disk, ..env }, store, options))?;
        Ok(Self { runtime, database, counts })
    }

    /// Runs `work`, and reports the syncs and bytes that went to the disk meanwhile.
    fn counted(&self, work: impl Future<Output = Outcome<Tally>>) -> Outcome<Tally> {
        let (syncs, bytes) = self.counts.now();
        let tally = self.runtime.block_on(work)?;
        let now = self.counts.now();
        Ok(Tally { syncs: Some(now.0 - syncs), disk_bytes: Some(now.1 - bytes), ..tally })
    }
}

impl Engine for Ironleaf {
    fn load(&mut self, records: &[Record], version: u64) -> Outcome<Tally> {
        self.counted(async {
            for part in records.chunks(LOAD_BATCH) {
                let mut batch = WriteBatch::new();
                batch.durability(Durability::Buffered);
                for record in part {
                    batch.set(key(record.object), field(record.field), value(*record, version));
                }
                self.database.commit(batch).await?;
            }
            self.database.flush().await?;
            Ok(Tally { operations: records.len() as u64, ..Tally::default() })
        })
    }

    fn get(&mut self, records: &[Record]) -> Outcome<Tally> {
        self.runtime.block_on(async {
            let mut seen = 0;
            for record in records {
                let found = self.database.get(key(record.object), field(record.field)).await?;
                seen = fold(seen, &found.ok_or("a record is missing")?);
            }
            Ok(Tally { operations: records.len() as u64, seen, ..Tally::default() })
        })
    }

    fn scan(&mut self, starts: &[Record], fields: usize) -> Outcome<Tally> {
        self.runtime.block_on(async {
            let mut seen = 0;
            for start in starts {
                let mut scan = self.database.scan(key(start.object), field(start.field).to_vec()..);
                let mut left = fields;
                scan.for_each(|_, value| {
                    seen = fold(seen, value);
                    left -= 1;
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })
                .await?;
                if left > 0 {
                    return Err("a record is missing".into());
                }
            }
            Ok(Tally { operations: starts.len() as u64, seen, ..Tally::default() })
        })
    }

    fn overwrite(&mut self, records: &[Record], version: u64) -> Outcome<Tally> {
        let database = self.database.with_durability(Durability::Written);
        self.counted(async {
            let mut worst = Duration::ZERO;
            for record in records {
                let start = Instant::now();
                database.set(key(record.object), field(record.field), value(*record, version)).await?;
                worst = worst.max(start.elapsed());
            }
            Ok(Tally { operations: records.len() as u64, worst: Some(worst), ..Tally::default() })
        })
    }

    fn synced(&mut self, writers: u32, time: Duration, version: u64) -> Outcome<Tally> {
        let database = self.database.with_durability(Durability::Synced);
        self.counted(async {
            let start = Instant::now();
            let tasks: Vec<_> = (0..writers)
                .map(|object| {
                    let database = database.clone();
                    tokio::spawn(async move {
                        let mut commits = 0;
                        while start.elapsed() < time {
                            let record = Record { object, field: commits % 1000 };
                            let value = value(record, version + u64::from(commits));
                            database.set(key(object), field(record.field), value).await?;
                            commits += 1;
                        }
                        Ok::<u32, ironleaf::Error>(commits)
                    })
                })
                .collect();
            let mut operations = 0;
            for task in tasks {
                operations += u64::from(task.await??);
            }
            Ok(Tally { operations, ..Tally::default() })
        })
    }

    fn close(&mut self) -> Outcome<()> {
        Ok(self.runtime.block_on(self.database.close())?)
    }
}
