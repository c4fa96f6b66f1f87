//! Scenarios from seeds.

use super::{Client, EngineOptions, Expectation, Family, Finale, Numbered, Scenario, first_id};
use crate::disk::Fault;
use ironleaf_model::Random;
use ironleaf_model::generator::{Bounds, generate};
use std::sync::Arc;

/// The share of the memory budget that one memtable has, as a divisor.
const MEMTABLES: usize = 4;
/// What one edit takes in a memtable, at most, but for a long value.
const ENTRY_MEMORY_BYTES: usize = 352;

/// The smallest budget that the engine takes.
const MEMORY_BYTES_MIN: u64 = 16 << 10;

impl Scenario {
    /// The scenario that a seed stands for, without deviations: a seeded policy supplies them while it is explored.
    #[must_use]
    pub fn generate(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5ce4_a810);
        let options = EngineOptions::generate(&mut random);
        let bounds = Bounds {
            batch_bytes_max: ((options.log_segment_bytes - (1 << 10)) * 3 / 4).min(options.memory_bytes / 16),
            batch_names_max: options.memory_bytes / MEMTABLES / ENTRY_MEMORY_BYTES,
            value_bytes_max: options.value_bytes_max,
            ..Bounds::default()
        };
        let clients = generate(seed, &bounds).into_iter().enumerate().map(|(index, operations)| Client {
            operations: (first_id(index)..)
                .zip(operations)
                .map(|(id, operation)| Numbered { id, operation: Arc::new(operation) })
                .collect(),
        });
        Self {
            title: format!("seed {seed}"),
            promise: "every promise".to_owned(),
            entropy: random.next() >> 1,
            madsim: None,
            finale: match random.below(8) {
                0 => Finale::ProcessDeath,
                1 => Finale::None,
                _ => Finale::PowerLoss,
            },
            finale_keep: None,
            close: random.one_in(4),
            settle: random.one_in(4),
            faults: Vec::new(),
            reopen_memory_bytes: Vec::new(),
            clients: clients.collect(),
            options,
            crashes: Vec::new(),
            deviations: Vec::new(),
            expect: Expectation::Pass,
        }
    }

    /// The same with the trouble of a family.
    #[must_use]
    pub fn generate_in(family: Family, seed: u64) -> Self {
        let mut scenario = Self::generate(seed);
        match family {
            Family::Crash => {}
            Family::Faults => scenario.make_trouble(&mut Random::new(seed ^ 0x00fa_0175)),
            Family::Corruption => scenario.damage(&mut Random::new(seed ^ 0x0c02_2007)),
        }
        scenario
    }

    /// Turns one knob of the medium on, or several.
    fn damage(&mut self, random: &mut Random) {
        self.faults = match random.below(4) {
            0..=1 => vec![random.choose(&Fault::DAMAGE)],
            2 => vec![Fault::Decay],
            _ => Fault::DAMAGE.into_iter().filter(|_| random.one_in(2)).collect(),
        };
    }

    /// Turns some knobs on: one, all, or each with even odds, so that a fault is met alone and in every company.
    fn make_trouble(&mut self, random: &mut Random) {
        self.faults = match random.below(4) {
            0 => vec![random.choose(&Fault::FAILURES)],
            1 => Fault::FAILURES.to_vec(),
            _ => Fault::FAILURES.into_iter().filter(|_| random.one_in(2)).collect(),
        };
        if self.faults.is_empty() || random.one_in(3) {
            let most = self.options.memory_bytes as u64;
            let opens = random.between(1, 3);
            self.reopen_memory_bytes =
                (0..opens).map(|_| random.log_uniform(MEMORY_BYTES_MIN, most) as usize).collect();
        }
    }
}

impl EngineOptions {
    fn generate(random: &mut Random) -> Self {
        let log_segment_bytes = random.choose(&[3 << 10, 4 << 10, 16 << 10]);
        let memory_bytes = random.choose(&[16 << 10, 32 << 10, 64 << 10, 256 << 10]);
        Self {
            memory_bytes,
            log_segment_bytes,
            page_bytes: random.choose(&[256, 512, 1024]),
            page_segment_bytes: random.choose(&[4 << 10, 8 << 10, 32 << 10]),
            value_bytes_max: (log_segment_bytes / 4).min(memory_bytes / 16),
        }
    }
}
