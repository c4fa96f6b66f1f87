//! What a campaign costs this machine.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CPU time of this process so far, all threads together.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanoseconds) = (time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0));
    Duration::new(seconds, nanoseconds)
}

/// Resident memory of this process in bytes, where the operating system tells.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Threads that this machine runs at once.
pub fn jobs(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get), usize::from)
}

/// The engine's probes, which count for the process, from some moment on.
pub struct Probes(Vec<(&'static str, u64)>);

impl Probes {
    /// From now on.
    pub fn begin() -> Self {
        Self(Self::of_process())
    }

    /// How often each was passed since.
    pub fn since(&self) -> Vec<(&'static str, u64)> {
        let counts = Self::of_process().into_iter().zip(&self.0);
        counts.map(|((name, now), (_, then))| (name, now - then)).collect()
    }

    fn of_process() -> Vec<(&'static str, u64)> {
        #[cfg(ironleaf_lab)]
        return ironleaf::lab::probes();
        #[cfg(not(ironleaf_lab))]
        return Vec::new();
    }
}
