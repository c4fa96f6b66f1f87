//! What a sample costs.

use crate::Outcome;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// One measurement of one workload on one engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) engine: String,
    pub(crate) workload: String,
    pub(crate) operations: u64,
    /// Processor time of all threads, per operation.
    pub(crate) cpu_ns: f64,
    /// Elapsed time per operation.
    pub(crate) wall_ns: f64,
    /// The longest single operation, where each is timed.
    pub(crate) worst_us: Option<f64>,
    /// Syncs of files, where they can be counted.
    pub(crate) syncs: Option<u64>,
    /// Bytes given to the disk, where they can be counted.
    pub(crate) disk_bytes: Option<u64>,
    /// Peak resident memory of the process, opening included.
    pub(crate) peak_mib: f64,
}

/// What an engine can say about a run of operations.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) operations: u64,
    pub(crate) worst: Option<Duration>,
    pub(crate) syncs: Option<u64>,
    pub(crate) disk_bytes: Option<u64>,
    /// Folded from everything that was read, so that no read can be left out.
    pub(crate) seen: u64,
}

/// Runs `work` and takes its time.
pub(crate) fn measure(
    engine: &str,
    workload: &str,
    work: impl FnOnce() -> Outcome<Tally>,
) -> Outcome<Sample> {
    let (cpu, wall) = (processor_time(), Instant::now());
    let tally = work()?;
    let (cpu, wall) = (processor_time().saturating_sub(cpu), wall.elapsed());
    std::hint::black_box(tally.seen);
    let per_operation = |time: Duration| time.as_nanos() as f64 / tally.operations.max(1) as f64;
    Ok(Sample {
        engine: engine.to_owned(),
        workload: workload.to_owned(),
        operations: tally.operations,
        cpu_ns: per_operation(cpu),
        wall_ns: per_operation(wall),
        worst_us: tally.worst.map(|worst| worst.as_nanos() as f64 / 1e3),
        syncs: tally.syncs,
        disk_bytes: tally.disk_bytes,
        peak_mib: peak_mib()?,
    })
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn peak_mib() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("the kernel reports no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
