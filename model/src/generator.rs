//! Seeded sequences of operations.
//!
//! Few keys, so that clients meet; names from a small or a large range, so that objects stay inline or grow beyond
//! their pages; lengths log-uniform, because faults of recovery want short runs and faults of schedules long ones.
//! Each seed draws the weights of the operations anew, and leaves some operations out: a run without checkpoints, or
//! without reads, goes where no average run goes.

use crate::operation::{Edit, NameRange, Operation, Read, ScanEnd, Transaction, ValueStem, Write, repeat_to};
use crate::random::Random;
use ironleaf::Durability;

/// What the engine is able to take, and how long a run may be.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Most clients.
    pub clients_max: u64,
    /// Most operations of one client.
    pub operations_max: u64,
    /// Largest batch, in bytes of names, values and the engine's overhead for each edit.
    pub batch_bytes_max: usize,
    /// Most names that one batch edits.
    pub batch_names_max: usize,
    /// Longest value, in bytes.
    pub value_bytes_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            clients_max: 4,
            operations_max: 100,
            batch_bytes_max: 8 << 10,
            batch_names_max: 400,
            value_bytes_max: 1 << 10,
        }
    }
}

/// What an edit costs in the engine beyond its names and value, at most; see [`Bounds::batch_bytes_max`].
const EDIT_OVERHEAD_BYTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Set,
    Insert,
    Put,
    Add,
    Remove,
    Take,
    Delete,
    SetMany,
    PutMany,
    RemoveMany,
    Batch,
    Get,
    Contains,
    Len,
    Kind,
    Scan,
    Keys,
    Snapshot,
    SnapshotRead,
    DropSnapshot,
    Flush,
    Checkpoint,
    Check,
    Invalid,
    Abandon,
    Transaction,
    Switch,
}

/// How often each operation is chosen where a seed does not change that.
const WEIGHTS: [(Choice, u64); 27] = [
    (Choice::Set, 200),
    (Choice::Insert, 60),
    (Choice::Put, 100),
    (Choice::Add, 40),
    (Choice::Remove, 60),
    (Choice::Take, 30),
    (Choice::Delete, 25),
    (Choice::SetMany, 50),
    (Choice::PutMany, 25),
    (Choice::RemoveMany, 25),
    (Choice::Batch, 90),
    (Choice::Get, 90),
    (Choice::Contains, 30),
    (Choice::Len, 40),
    (Choice::Kind, 15),
    (Choice::Scan, 45),
    (Choice::Keys, 15),
    (Choice::Snapshot, 30),
    (Choice::SnapshotRead, 60),
    (Choice::DropSnapshot, 10),
    (Choice::Flush, 15),
    (Choice::Checkpoint, 40),
    (Choice::Check, 8),
    (Choice::Invalid, 4),
    (Choice::Abandon, 30),
    (Choice::Transaction, 60),
    (Choice::Switch, 25),
];

/// The operations of each client that `seed` stands for.
#[must_use]
pub fn generate(seed: u64, bounds: &Bounds) -> Vec<Vec<Operation>> {
    let mut random = Random::new(seed);
    let clients = random.between(1, bounds.clients_max.max(1));
    let style = Style::draw(&mut random);
    (0..clients)
        .map(|client| {
            let len = random.log_uniform(2, bounds.operations_max.max(2));
            let mut generator = Generator { random: &mut random, style: &style, bounds, client, values: 0 };
            (0..len).map(|_| generator.operation()).collect()
        })
        .collect()
}

/// What is the same for all operations of a seed.
struct Style {
    weights: Vec<(Choice, u64)>,
    total: u64,
    hash_keys: u64,
    set_keys: u64,
    mixed_keys: u64,
    /// Names come from below this number.
    names: u64,
    synced_in_ten: u64,
    written_in_ten: u64,
    long_value_one_in: u64,
}

impl Style {
    fn draw(random: &mut Random) -> Self {
        let mut weights: Vec<(Choice, u64)> = WEIGHTS.to_vec();
        for (choice, weight) in &mut weights {
            let blind = matches!(choice, Choice::Set | Choice::Put);
            *weight = match random.below(8) {
                0 if !blind => 0,
                1 => *weight * 4,
                2 => *weight / 2,
                _ => *weight,
            };
        }
        Self {
            total: weights.iter().map(|(_, weight)| weight).sum(),
            weights,
            hash_keys: random.between(1, 4),
            set_keys: random.between(0, 2),
            mixed_keys: random.between(0, 2),
            names: random.choose(&[3, 8, 40, 400, 1000]),
            synced_in_ten: random.below(11),
            written_in_ten: random.below(11),
            long_value_one_in: random.choose(&[2, 4, 20, 1000]),
        }
    }
}

/// What one edit may take.
#[derive(Clone, Copy)]
struct Budget {
    bytes: usize,
    names: usize,
}

impl Budget {
    fn of(bounds: &Bounds) -> Self {
        Self { bytes: bounds.batch_bytes_max, names: bounds.batch_names_max }
    }

    /// How many names fit that take `entry_bytes` each.
    fn names_of(self, entry_bytes: usize) -> u64 {
        (self.bytes / (entry_bytes + EDIT_OVERHEAD_BYTES)).min(self.names).max(1) as u64
    }

    /// The part of each of `edits`.
    fn share(self, edits: usize) -> Self {
        Self { bytes: self.bytes / edits.max(1), names: self.names / edits.max(1) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Hash,
    Set,
    Either,
}

struct Generator<'a> {
    random: &'a mut Random,
    style: &'a Style,
    bounds: &'a Bounds,
    client: u64,
    values: u64,
}

impl Generator<'_> {
    fn operation(&mut self) -> Operation {
        let mut at = self.random.below(self.style.total);
        let mut chosen = Choice::Set;
        for (choice, weight) in &self.style.weights {
            if at < *weight {
                chosen = *choice;
                break;
            }
            at -= weight;
        }
        match chosen {
            Choice::Batch => self.batch(),
            Choice::Get | Choice::Contains | Choice::Len | Choice::Kind | Choice::Scan | Choice::Keys => {
                Operation::Read(self.read(chosen))
            }
            Choice::Snapshot => Operation::Snapshot { slot: self.slot() },
            Choice::SnapshotRead => {
                let choices = [
                    Choice::Get,
                    Choice::Contains,
                    Choice::Len,
                    Choice::Kind,
                    Choice::Scan,
                    Choice::Scan,
                    Choice::Keys,
                ];
                let choice = self.random.choose(&choices);
                Operation::SnapshotRead { slot: self.slot(), read: self.read(choice) }
            }
            Choice::DropSnapshot => Operation::DropSnapshot { slot: self.slot() },
            Choice::Flush => Operation::Flush,
            Choice::Checkpoint => Operation::Checkpoint,
            Choice::Check => Operation::Check,
            Choice::Invalid => self.invalid(),
            Choice::Transaction => self.transaction(),
            Choice::Switch => self.switch(),
            Choice::Abandon => match self.batch() {
                Operation::Write(write) => {
                    let suspension = self.random.between(1, 4) as u32;
                    Operation::Abandon { write, suspension, is_held: self.random.one_in(3) }
                }
                other => other,
            },
            _ => {
                let edit = self.edit(chosen, Budget::of(self.bounds));
                self.write(vec![edit])
            }
        }
    }

    fn write(&mut self, edits: Vec<Edit>) -> Operation {
        let durability = if self.random.below(10) < self.style.synced_in_ten {
            Durability::Synced
        } else if self.random.below(10) < self.style.written_in_ten {
            Durability::Written
        } else {
            Durability::Buffered
        };
        Operation::Write(Write { edits, durability })
    }

    fn slot(&mut self) -> u8 {
        self.random.below(2) as u8
    }

    /// A key that usually holds, or will hold, an object of this shape.
    fn key(&mut self, shape: Shape) -> Vec<u8> {
        let style = self.style;
        let (mut hashes, mut sets) = (style.hash_keys, style.set_keys.max(u64::from(shape == Shape::Set)));
        if !self.random.one_in(25) {
            match shape {
                Shape::Hash => sets = 0,
                Shape::Set => hashes = 0,
                Shape::Either => {}
            }
        }
        let at = self.random.below(hashes + sets + style.mixed_keys);
        if at < hashes {
            format!("h{at}").into_bytes()
        } else if at < hashes + sets {
            format!("s{}", at - hashes).into_bytes()
        } else {
            format!("x{}", at - hashes - sets).into_bytes()
        }
    }

    fn name(&mut self) -> Vec<u8> {
        let names = if self.random.one_in(3) { self.style.names.min(8) } else { self.style.names };
        NameRange { stem: b"f".to_vec(), from: 0, to: 0 }.name(self.random.below(names) as u32)
    }

    /// A word that no other write of the run uses.
    fn word(&mut self) -> Vec<u8> {
        self.values += 1;
        format!("c{}-{}", self.client, self.values).into_bytes()
    }

    fn value(&mut self, budget: Budget) -> Vec<u8> {
        let word = self.word();
        if !self.random.one_in(self.style.long_value_one_in) {
            return word;
        }
        let longest =
            self.bounds.value_bytes_max.min(budget.bytes.saturating_sub(EDIT_OVERHEAD_BYTES + 16)).max(33);
        let len = self.random.log_uniform(32, longest as u64);
        repeat_to(&word, len as usize)
    }

    /// Numbered names that take `entry_bytes` each, within a budget.
    fn range(&mut self, budget: Budget, entry_bytes: usize) -> NameRange {
        let len = self.random.log_uniform(1, budget.names_of(entry_bytes)) as u32;
        let from = self.random.below(self.style.names.max(64)) as u32;
        NameRange { stem: b"f".to_vec(), from, to: from + len }
    }

    fn edit(&mut self, choice: Choice, budget: Budget) -> Edit {
        match choice {
            Choice::Insert => {
                Edit::Insert { key: self.key(Shape::Hash), field: self.name(), value: self.value(budget) }
            }
            Choice::Put => Edit::Put { key: self.key(Shape::Set), member: self.name() },
            Choice::Add => Edit::Add { key: self.key(Shape::Set), member: self.name() },
            Choice::Remove => Edit::Remove { key: self.key(Shape::Either), name: self.name() },
            Choice::Take => Edit::Take { key: self.key(Shape::Either), name: self.name() },
            Choice::Delete => Edit::Delete { key: self.key(Shape::Either) },
            Choice::SetMany => {
                let len = self.random.one_in(3).then(|| self.random.log_uniform(8, 100) as u32);
                let fields = self.range(budget, 8 + len.map_or(12, |len| len as usize));
                Edit::SetMany {
                    key: self.key(Shape::Hash),
                    fields,
                    value: ValueStem { word: self.word(), len },
                }
            }
            Choice::PutMany => Edit::PutMany { key: self.key(Shape::Set), members: self.range(budget, 8) },
            Choice::RemoveMany => {
                Edit::RemoveMany { key: self.key(Shape::Either), names: self.range(budget, 8) }
            }
            _ => Edit::Set { key: self.key(Shape::Hash), field: self.name(), value: self.value(budget) },
        }
    }

    fn batch(&mut self) -> Operation {
        const EDITS: [Choice; 12] = [
            Choice::Set,
            Choice::Set,
            Choice::Set,
            Choice::Insert,
            Choice::Put,
            Choice::Put,
            Choice::Add,
            Choice::Remove,
            Choice::Take,
            Choice::Delete,
            Choice::SetMany,
            Choice::RemoveMany,
        ];
        let len = if self.random.one_in(30) { 0 } else { self.random.log_uniform(2, 12) };
        let budget = Budget::of(self.bounds).share(len as usize);
        let edits = (0..len)
            .map(|_| {
                let choice = self.random.choose(&EDITS);
                self.edit(choice, budget)
            })
            .collect();
        self.write(edits)
    }

    /// A batch that empties an object, as far as it may take names, and then uses its key as this or that.
    fn switch(&mut self) -> Operation {
        let budget = Budget::of(self.bounds).share(2);
        let key = self.key(Shape::Either);
        let to = self.style.names.max(8).min(budget.names_of(8)) as u32;
        let names = NameRange { stem: b"f".to_vec(), from: 0, to };
        let edit = if self.random.one_in(2) {
            Edit::Set { key: key.clone(), field: self.name(), value: self.word() }
        } else {
            Edit::Put { key: key.clone(), member: self.name() }
        };
        self.write(vec![Edit::RemoveMany { key, names }, edit])
    }

    /// Reads and edits of few objects, so that transactions get in each other's way.
    fn transaction(&mut self) -> Operation {
        const READS: [Choice; 6] =
            [Choice::Get, Choice::Get, Choice::Contains, Choice::Len, Choice::Kind, Choice::Scan];
        const EDITS: [Choice; 7] = [
            Choice::Set,
            Choice::Set,
            Choice::Put,
            Choice::Remove,
            Choice::Delete,
            Choice::SetMany,
            Choice::RemoveMany,
        ];
        let edits = if self.random.one_in(8) { 0 } else { self.random.between(1, 4) };
        let budget = Budget::of(self.bounds).share(edits as usize);
        let edits: Vec<_> = (0..edits)
            .map(|_| {
                let choice = self.random.choose(&EDITS);
                self.edit(choice, budget)
            })
            .collect();
        let mut reads: Vec<_> = (0..self.random.between(1, 4))
            .map(|_| {
                let choice = self.random.choose(&READS);
                (self.random.below(edits.len() as u64 + 1) as usize, self.read(choice))
            })
            .collect();
        reads.sort_by_key(|(before, _)| *before);
        let Operation::Write(write) = self.write(edits) else { unreachable!("it makes a write") };
        Operation::Transaction(Transaction { reads, write })
    }

    fn read(&mut self, choice: Choice) -> Read {
        match choice {
            Choice::Contains => Read::Contains { key: self.key(Shape::Either), name: self.name() },
            Choice::Len => Read::Len { key: self.key(Shape::Either) },
            Choice::Kind => Read::Kind { key: self.key(Shape::Either) },
            Choice::Scan => self.scan(),
            Choice::Keys => {
                Read::Keys { prefix: self.random.choose(&[&b""[..], b"h", b"s", b"x1"]).to_vec() }
            }
            _ => Read::Get { key: self.key(Shape::Hash), field: self.name() },
        }
    }

    fn scan(&mut self) -> Read {
        let key = self.key(Shape::Either);
        let from = self.random.one_in(2).then(|| self.name());
        let to = match self.random.below(4) {
            0 => ScanEnd::Before(self.name()),
            1 => ScanEnd::With(self.name()),
            _ => ScanEnd::Open,
        };
        let limit = self.random.one_in(4).then(|| self.random.log_uniform(1, 50) as u32);
        // A range that ends before it begins would only test the panic that the standard library promises for it.
        let to = match (&from, to) {
            (Some(from), ScanEnd::Before(to) | ScanEnd::With(to)) if to <= *from => {
                ScanEnd::With(from.clone())
            }
            (_, to) => to,
        };
        Read::Scan { key, from, to, limit, is_reverse: self.random.one_in(3) }
    }

    /// A write that the engine must refuse without doing anything.
    fn invalid(&mut self) -> Operation {
        let good = Edit::Set { key: self.key(Shape::Hash), field: self.name(), value: self.word() };
        let (name, value) = (self.name(), self.word());
        let bad = match self.random.below(3) {
            0 => Edit::Set { key: Vec::new(), field: name, value },
            1 => Edit::Set {
                key: self.key(Shape::Hash),
                field: name,
                value: repeat_to(&value, self.bounds.value_bytes_max + 1),
            },
            _ => Edit::Put { key: self.key(Shape::Set), member: repeat_to(&value, (64 << 10) + 1) },
        };
        let edits = if self.random.one_in(2) { vec![bad] } else { vec![good, bad] };
        self.write(edits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Limits, Model, Refusal};
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_always_stands_for_the_same_operations() {
        assert_eq!(generate(5, &Bounds::default()), generate(5, &Bounds::default()));
        assert_ne!(generate(5, &Bounds::default()), generate(6, &Bounds::default()));
    }

    #[test]
    fn seeds_reach_every_kind_of_operation_and_object() {
        let (mut verbs, mut refusals, mut largest) = (BTreeSet::new(), BTreeSet::new(), 0);
        for seed in 0..300 {
            let mut model = Model::new(Limits { value_bytes_max: 1 << 10 });
            for operation in generate(seed, &Bounds::default()).into_iter().flatten() {
                verbs.insert(operation.to_string().split(' ').next().unwrap_or_default().to_owned());
                if let Operation::Write(write) = &operation {
                    match model.apply(&write.edits) {
                        Ok(_) => {}
                        Err(Refusal::WrongKind) => drop(refusals.insert("wrong kind")),
                        Err(Refusal::InvalidInput) => drop(refusals.insert("invalid input")),
                    }
                }
                largest = largest.max(model.objects().map(|(_, object)| object.len()).max().unwrap_or(0));
            }
        }
        assert_eq!(verbs.len(), 33, "{verbs:?}");
        assert_eq!(refusals.len(), 2);
        assert!(largest > 300, "the largest object has {largest} names");
    }

    #[test]
    fn no_two_writes_of_a_run_write_the_same_value() {
        for seed in 0..50 {
            let mut seen = BTreeSet::new();
            for operation in generate(seed, &Bounds::default()).into_iter().flatten() {
                let Operation::Write(write) = operation else { continue };
                for edit in write.edits {
                    if let Edit::Set { value, .. } | Edit::Insert { value, .. } = edit {
                        let len = value.len();
                        assert!(seen.insert(value), "seed {seed} writes a value of {len} bytes twice");
                    }
                }
            }
        }
    }
}
