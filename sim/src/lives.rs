//! What the runner asks of a machine, whatever simulator it runs on.

use crate::choices::Choices;
use crate::disk::{CLASSES, FaultCount, Volume};
use crate::executor::EventKind;
use crate::ground::Ground;
use crate::machine::{CrashKind, Handle, LifeEnd, Machine, TroubleHandle};
use ironleaf::env::Env;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A machine that is started, runs until something ends its life, and is started again.
pub(crate) trait Lives {
    /// The seam of the current life.
    fn env(&self) -> Env;

    /// The test's side of the current life.
    fn handle(&self) -> Handle;

    /// See [`Machine::trouble`].
    fn trouble(&self) -> TroubleHandle;

    /// See [`Machine::run`].
    fn run<T: Send + 'static>(&mut self, main: impl Future<Output = T> + Send + 'static) -> LifeEnd<T>;

    /// See [`Machine::restart`].
    fn restart(&mut self, kind: CrashKind);

    /// See [`Machine::decay`].
    fn decay(&mut self);

    /// How often the machine has been restarted.
    fn life(&self) -> u32;

    /// What is left of the machine at the end of a run.
    fn remains(&self) -> Remains;

    /// Every file and its content.
    fn disk_dump(&self) -> Vec<(PathBuf, Vec<u8>)>;
}

/// What a machine tells about a run that is over.
pub(crate) struct Remains {
    pub(crate) digest: u64,
    pub(crate) events: u64,
    pub(crate) virtual_time: Duration,
    pub(crate) losses: BTreeMap<&'static str, u64>,
    pub(crate) faults: BTreeMap<&'static str, FaultCount>,
    pub(crate) trace: Vec<String>,
}

impl Lives for Machine {
    fn env(&self) -> Env {
        self.env()
    }

    fn handle(&self) -> Handle {
        self.handle()
    }

    fn trouble(&self) -> TroubleHandle {
        self.trouble()
    }

    fn run<T: Send + 'static>(&mut self, main: impl Future<Output = T> + Send + 'static) -> LifeEnd<T> {
        self.run(main)
    }

    fn restart(&mut self, kind: CrashKind) {
        self.restart(kind);
    }

    fn decay(&mut self) {
        self.decay();
    }

    fn life(&self) -> u32 {
        self.life()
    }

    fn remains(&self) -> Remains {
        Remains {
            digest: self.digest(),
            events: self.events(),
            virtual_time: self.virtual_time(),
            losses: self.losses(),
            faults: self.fault_counts(),
            trace: self.trace(),
        }
    }

    fn disk_dump(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.disk_dump()
    }
}

/// Does to the disk what a crash does to it.
pub(crate) fn crash_disk(
    volume: &Volume,
    choices: &Choices,
    kind: CrashKind,
    ground: &dyn Ground,
    traced: bool,
) {
    match kind {
        CrashKind::PowerLoss => {
            let struck = volume.power_loss(choices, traced);
            let class = CLASSES[usize::try_from(struck.class).unwrap_or(0)];
            ground.record(EventKind::Loss, [struck.class, struck.kept, 0], &|| {
                [&[format!("power loss: {class}")][..], &struck.lines].concat().join("; ")
            });
        }
        CrashKind::ProcessDeath => volume.process_death(choices),
    }
}

/// Does to the disk what time does to it.
pub(crate) fn decay_disk(volume: &Volume, choices: &Choices, ground: &dyn Ground) {
    let before = volume.digest();
    volume.decay(choices);
    let after = volume.digest();
    if after != before {
        ground.record(EventKind::Edit, [before, after, 0], &|| {
            let files =
                volume.troubles(|trouble| trouble.damaged_files().iter().cloned().collect::<Vec<_>>());
            format!("the disk has decayed; damaged so far: {}", files.join(", "))
        });
    }
}

/// Each run of a machine draws other random numbers.
pub(crate) const fn entropy_seed(seed: u64, runs: u64) -> u64 {
    seed ^ runs.wrapping_mul(0xd6e8_feb8_6659_fd93)
}
