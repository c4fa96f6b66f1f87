//! Samples as a table.

use crate::measure::Sample;
use crate::workload::Workload;
use std::collections::BTreeMap;

/// Prints medians, and lowest to highest in brackets.
pub(crate) fn print(workload: Workload, samples: &[Sample]) {
    println!("\n{workload}: {}", workload.about());
    println!("{:10} {:>34} {:>34} {:>10}", "", "CPU ns/op", "wall ns/op", "peak MiB");
    let mut engines: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        engines.entry(&sample.engine).or_default().push(sample);
    }
    for (engine, samples) in engines {
        let spread = |of: fn(&Sample) -> f64| Spread::of(samples.iter().map(|sample| of(sample)));
        let peak = spread(|sample| sample.peak_mib);
        println!(
            "{engine:10} {:>34} {:>34} {:>10.0}{}",
            spread(|sample| sample.cpu_ns).to_string(),
            spread(|sample| sample.wall_ns).to_string(),
            peak.highest,
            remarks(&samples)
        );
    }
}

/// What only some engines and workloads report.
fn remarks(samples: &[&Sample]) -> String {
    let mut remarks = String::new();
    let known =
        |of: fn(&Sample) -> Option<f64>| samples.iter().filter_map(|sample| of(sample)).reduce(f64::max);
    if let Some(worst) = known(|sample| sample.worst_us) {
        remarks += &format!("  worst {:.1} ms", worst / 1e3);
    }
    if let Some(commits) =
        known(|sample| sample.syncs.map(|syncs| sample.operations as f64 / syncs.max(1) as f64))
    {
        remarks += &format!("  {commits:.1} operations/sync");
    }
    if let Some(bytes) =
        known(|sample| sample.disk_bytes.map(|bytes| bytes as f64 / sample.operations as f64))
    {
        remarks += &format!("  {bytes:.0} disk bytes/op");
    }
    remarks
}

/// Median and range.
struct Spread {
    lowest: f64,
    median: f64,
    highest: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let median = f64::midpoint(at(values.len().saturating_sub(1) / 2), at(values.len() / 2));
        Self { lowest: at(0), median, highest: at(values.len().saturating_sub(1)) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} ({:.0}..{:.0})", self.median, self.lowest, self.highest)
    }
}
