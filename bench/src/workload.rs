//! The workloads.

use crate::data::{Random, Record, Zipf};
use crate::engine::{Engine, EngineName};
use crate::measure::{Sample, measure};
use crate::{Outcome, Scale};
use clap::ValueEnum;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Point reads over 100 objects of 10 000 fields, each record equally often.
    GetUniform,
    /// Point reads over 100 objects of 10 000 fields, few records often.
    GetZipf,
    /// Point reads over one object of 100 000 fields.
    GetLarge,
    /// Ordered reads of 512 neighbouring fields.
    Scan,
    /// Overwrites, one write a commit, safe from the death of the process.
    Overwrite,
    /// Commits of 64 concurrent writers, each safe from power loss.
    Synced,
    /// A million records into an empty store, in random order, 1000 a commit.
    LoadRandom,
    /// A million records into an empty store, in order, 1000 a commit.
    LoadSorted,
}

const OBJECTS: u32 = 100;
const FIELDS: u32 = 10_000;
const FIELDS_LARGE: u32 = 100_000;
const SCAN_FIELDS: u32 = 512;
const WRITERS: u32 = 64;
/// Records of a commit while loading.
pub(crate) const LOAD_BATCH: usize = 1000;

impl Workload {
    pub(crate) const ALL: &[Self] = &[
        Self::GetUniform,
        Self::GetZipf,
        Self::GetLarge,
        Self::Scan,
        Self::Overwrite,
        Self::Synced,
        Self::LoadRandom,
        Self::LoadSorted,
    ];

    pub(crate) fn about(self) -> String {
        self.to_possible_value()
            .and_then(|value| value.get_help().map(ToString::to_string))
            .unwrap_or_default()
    }

    /// The store it works on: workloads that share one are measured on the same data.
    pub(crate) fn store(self) -> &'static str {
        match self {
            Self::GetUniform | Self::GetZipf | Self::Scan => "objects",
            Self::GetLarge => "large",
            Self::Overwrite => "overwritten",
            Self::Synced => "synced",
            Self::LoadRandom | Self::LoadSorted => "loaded",
        }
    }

    /// Whether it works on a store that was filled before.
    pub(crate) fn needs_store(self) -> bool {
        matches!(self, Self::GetUniform | Self::GetZipf | Self::GetLarge | Self::Scan | Self::Overwrite)
    }

    fn memory_bytes(self, scale: &Scale) -> usize {
        let reads = matches!(self, Self::GetUniform | Self::GetZipf | Self::GetLarge | Self::Scan);
        scale.memory_mib.unwrap_or(if reads { 512 } else { 192 }) << 20
    }

    /// Objects of the store, and fields of each.
    fn shape(self) -> (u32, u32) {
        if self == Self::GetLarge { (1, FIELDS_LARGE) } else { (OBJECTS, FIELDS) }
    }

    fn records(self) -> Vec<Record> {
        let (objects, fields) = self.shape();
        (0..objects).flat_map(|object| (0..fields).map(move |field| Record { object, field })).collect()
    }

    /// Fills the store.
    pub(crate) fn prepare(self, engine: EngineName, store: &Path, scale: &Scale) -> Outcome<()> {
        let mut engine = engine.open(store, self.memory_bytes(scale))?;
        engine.load(&self.records(), 0)?;
        engine.close()
    }

    /// Takes one sample.
    pub(crate) fn sample(self, name: EngineName, store: &Path, seed: u64, scale: &Scale) -> Outcome<Sample> {
        let mut engine = name.open(store, self.memory_bytes(scale))?;
        let sample = measure_on(self, engine.as_mut(), &name.to_string(), seed, scale.percent)?;
        engine.close()?;
        Ok(sample)
    }

    /// Records in the order in which they are read or written.
    fn picks(self, count: u64, seed: u64) -> Vec<Record> {
        let (objects, fields) = self.shape();
        let (mut random, fields) = (Random::new(seed), u64::from(fields));
        let total = u64::from(objects) * fields;
        let zipf = (self == Self::GetZipf).then(|| Zipf::new(total));
        let record = |index: u64| Record { object: (index / fields) as u32, field: (index % fields) as u32 };
        (0..count)
            .map(|_| match &zipf {
                Some(zipf) => record(zipf.pick(&mut random)),
                None => record(random.below(total)),
            })
            .collect()
    }
}

fn measure_on(
    workload: Workload,
    engine: &mut dyn Engine,
    name: &str,
    seed: u64,
    percent: u64,
) -> Outcome<Sample> {
    let count = |usual: u64| (usual * percent / 100).max(1);
    let title = workload.to_string();
    match workload {
        Workload::GetUniform | Workload::GetZipf | Workload::GetLarge => {
            // Once over everything, so that pages and their first touches are paid for.
            engine.get(&workload.records())?;
            let picks = workload.picks(count(1_000_000), seed);
            measure(name, &title, || engine.get(&picks))
        }
        Workload::Scan => {
            engine.get(&workload.records())?;
            let mut picks = workload.picks(count(10_000), seed);
            for pick in &mut picks {
                pick.field %= FIELDS - SCAN_FIELDS;
            }
            measure(name, &title, || engine.scan(&picks, SCAN_FIELDS as usize))
        }
        Workload::Overwrite => {
            let picks = workload.picks(count(1_000_000), seed);
            measure(name, &title, || engine.overwrite(&picks, seed))
        }
        Workload::Synced => {
            let time = Duration::from_millis(count(3_000));
            measure(name, &title, || engine.synced(WRITERS, time, seed))
        }
        Workload::LoadRandom | Workload::LoadSorted => {
            let mut records = workload.records();
            if workload == Workload::LoadRandom {
                Random::new(seed).shuffle(&mut records);
            }
            records.truncate(usize::try_from(count(records.len() as u64))?);
            measure(name, &title, || engine.load(&records, seed))
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}
