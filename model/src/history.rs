//! The checker: what clients saw, life by life, against what was promised.
//!
//! A *life* lasts from one successful open to the next. While it lasts, every operation is recorded with what was
//! visible and durable before and after it; what can be judged at once is judged at once. When the next open has
//! recovered a state, the whole life is judged: the commits of the life stand in one order by their positions, an
//! operation that a crash cut off may stand in any gap, and the recovered state must be that of a prefix. One model is
//! rolled forward over that order; reads are compared where their window allows, and the state where it was recovered.

mod judge;
mod outcome;

pub use outcome::{Contents, Held, Outcome};

use crate::model::{Limits, Model};
use crate::operation::{Operation, Read, Transaction, Write};
use ironleaf::{Durability, ErrorKind};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What is promised; the numbers are those of `docs/guarantees.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// Commits have one order that respects real time.
    Order,
    /// Writes do and answer what the model says at their place in the order.
    Outcome,
    /// What is acknowledged is visible, and visibility never goes back.
    Visibility,
    /// A transaction is as if it had run alone at its position.
    Serialisable,
    /// Reads answer as of one position between their beginning and end.
    Read,
    /// What was acknowledged at a level survives what the level names.
    Durability,
    /// A recovered state is a prefix of the order, batches whole.
    Prefix,
    /// What a writing open has recovered never rolls back.
    NoRollback,
    /// Snapshots never change.
    Snapshot,
    /// A checkpoint covers what was committed before it.
    Checkpoint,
    /// The engine's own check finds nothing.
    Check,
    /// Space comes back.
    Space,
    /// A failed write or sync is never hidden.
    FailedChange,
    /// What fails names its file, and works again once the trouble is over.
    Progress,
    /// Memory stays within the budget.
    Memory,
    /// Damage is told of, by the name of its place, and never served.
    Damage,
    /// Nothing fails that has no reason to.
    NoError,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Order,
        Self::Outcome,
        Self::Serialisable,
        Self::Visibility,
        Self::Read,
        Self::Durability,
        Self::Prefix,
        Self::NoRollback,
        Self::Snapshot,
        Self::Checkpoint,
        Self::Check,
        Self::Space,
        Self::FailedChange,
        Self::Progress,
        Self::Memory,
        Self::Damage,
        Self::NoError,
    ];

    /// A short name that never changes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Order => "B1 order",
            Self::Outcome => "B1 outcome",
            Self::Serialisable => "B1 serialisable",
            Self::Visibility => "B2 visibility",
            Self::Read => "B2 read",
            Self::Durability => "B3 durability",
            Self::Prefix => "B4 prefix",
            Self::NoRollback => "B4 no rollback",
            Self::Snapshot => "B5 snapshot",
            Self::Checkpoint => "B11 checkpoint",
            Self::Check => "B11 check",
            Self::Space => "B11 space",
            Self::FailedChange => "B6 failed change",
            Self::Progress => "B7 progress",
            Self::Memory => "B10 memory",
            Self::Damage => "B8 damage",
            Self::NoError => "no error",
        }
    }

    /// One line for people.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Order => "commits have one order, without gaps, that respects real time",
            Self::Outcome => "writes do and answer what the model says at their position",
            Self::Serialisable => {
                "a transaction is as if it had run alone at its position, or a conflict with a reason"
            }
            Self::Visibility => "what is acknowledged is visible, and visibility never goes back",
            Self::Read => "reads answer as of one position between their beginning and end",
            Self::Durability => "what was acknowledged at a level survives what the level names",
            Self::Prefix => "a recovered state is a prefix of the order, with every batch whole",
            Self::NoRollback => "what a writing open has recovered never rolls back",
            Self::Snapshot => "a snapshot never changes",
            Self::Checkpoint => {
                "an explicit checkpoint puts everything into pages that was committed before it"
            }
            Self::Check => "the engine's own check finds nothing wrong",
            Self::Space => "space that nothing needs any more comes back",
            Self::FailedChange => {
                "after a failed write or sync no write succeeds, and errors name their file"
            }
            Self::Progress => "once faults have ended and space is back, what is not poisoned writes again",
            Self::Memory => "memtables and cached pages stay within the budget",
            Self::Damage => "damage is never served, and told of by the name of its place",
            Self::NoError => "nothing fails that has no reason to",
        }
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub promise: Promise,
    /// Sets different ways of breaking the promise apart.
    pub detail: Option<String>,
    /// One readable line.
    pub what: String,
}

impl Violation {
    /// A violation without a detail.
    pub fn new(promise: Promise, what: impl Into<String>) -> Self {
        Self { promise, detail: None, what: what.into() }
    }

    /// What two runs that fail the same way have in common.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match &self.detail {
            None => self.promise.name().to_owned(),
            Some(detail) => format!("{}: {detail}", self.promise.name()),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fingerprint(), self.what)
    }
}

impl std::error::Error for Violation {}

/// What the database says about itself at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// `Database::visible_point`.
    pub visible: u64,
    /// `Database::durable_point`.
    pub durable: u64,
}

/// What has gone wrong below the database so far; the numbers only grow. It excuses failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Reads that failed.
    pub reads: u64,
    /// Writes, syncs and allocations that failed.
    pub changes: u64,
    /// Operations that found the disk full.
    pub full: u64,
    /// Syncs of the log that failed.
    pub log_syncs: u64,
    /// Everything that is not as it was written, or was read otherwise, though nobody was told.
    pub damage: u64,
    /// That of the log, lying syncs included: it may shorten what is recovered.
    pub log_damage: u64,
    /// That of the log which changed one sector while nothing ran.
    pub log_rot: u64,
    /// Log files that were cut while nothing ran.
    pub log_cut: u64,
    /// Syncs that were reported and not done.
    pub lies: u64,
}

impl Trouble {
    /// What has been added since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            changes: self.changes - before.changes,
            full: self.full - before.full,
            log_syncs: self.log_syncs - before.log_syncs,
            damage: self.damage - before.damage,
            log_damage: self.log_damage - before.log_damage,
            log_rot: self.log_rot - before.log_rot,
            log_cut: self.log_cut - before.log_cut,
            lies: self.lies - before.lies,
        }
    }
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crash {
    /// The process died, or ended without closing; what it wrote is there.
    ProcessDeath,
    /// What was not synced may be lost.
    PowerLoss,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProcessDeath => "process death",
            Self::PowerLoss => "power loss",
        })
    }
}

/// An operation that began, and how it ended, if it did.
#[derive(Clone, Debug)]
struct Record {
    client: u32,
    id: u32,
    operation: Arc<Operation>,
    before: Sample,
    /// What had gone wrong when it began.
    trouble: Trouble,
    began: u64,
    /// The last position that it can have: its client went on without it when that was visible.
    at_most: u64,
    end: Option<End>,
}

#[derive(Clone, Debug)]
struct End {
    outcome: Outcome,
    visible: u64,
    at: u64,
    /// For the read of a snapshot: its position.
    snapshot: Option<u64>,
}

impl Record {
    /// Whether it may have written behind `position`.
    fn may_be_behind(&self, position: u64) -> bool {
        match self.end.as_ref().map(|end| &end.outcome) {
            None => true,
            Some(Outcome::Committed { position: at, .. } | Outcome::Transacted { position: at, .. }) => {
                *at > position
            }
            Some(_) => false,
        }
    }

    /// A violation by this operation unless `kept`.
    fn keeps(&self, promise: Promise, kept: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
        if kept { Ok(()) } else { Err(Violation::new(promise, format!("{self} {}", what()))) }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.operation.to_string();
        write!(f, "operation {} of client {} (`{}`)", self.id, self.client, Shortened(&text, 90))
    }
}

/// Whether an operation writes to an object that a transaction reads.
fn touches(record: &Record, transaction: &Transaction) -> bool {
    let written = record.operation.as_write().into_iter().flat_map(|write| &write.edits);
    let is_read = |key: &[u8]| transaction.reads.iter().any(|(_, read)| read.key() == Some(key));
    written.into_iter().any(|edit| is_read(edit.key()))
}

/// A text, cut where it gets too long for one line.
struct Shortened<'a>(&'a str, usize);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(self.1) {
            None => f.write_str(self.0),
            Some((at, _)) => write!(f, "{}…", &self.0[..at]),
        }
    }
}

/// The highest position that must survive something, and why.
#[derive(Clone, Debug, Default)]
struct Floor {
    position: u64,
    why: Reason,
}

#[derive(Clone, Copy, Debug, Default)]
enum Reason {
    #[default]
    Nothing,
    Acknowledged(usize),
    Flushed(usize),
    DurablePoint,
    Closed,
}

impl Floor {
    fn raise(&mut self, position: u64, why: Reason) {
        // An acknowledgement says more about what was lost than the point that rose with it.
        let says_more = position == self.position && matches!(self.why, Reason::DurablePoint);
        if position > self.position || says_more {
            *self = Self { position, why };
        }
    }
}

/// The history of one run: the state that the last recovery left, and the life since.
#[derive(Clone, Debug)]
pub struct History {
    model: Model,
    /// The position that the last recovery left.
    base: u64,
    records: Vec<Record>,
    /// Which operation was acknowledged at a position of this life.
    positions: BTreeMap<u64, usize>,
    /// Positions of the snapshots that clients hold, by client and slot.
    snapshots: BTreeMap<(u32, u8), u64>,
    latest: Sample,
    clock: u64,
    survives_power_loss: Floor,
    survives_death: Floor,
    worst_crash: Option<Crash>,
    /// Whether the life ended with a close.
    is_closed: bool,
    trouble: Trouble,
    /// What had gone wrong when this life began.
    trouble_before: Trouble,
    /// What had gone wrong when the life before ended: what is damaged from then on concerns this one.
    trouble_at_end: Trouble,
    damage_before: Trouble,
    /// Whether the memory budget is smaller than the one that the operations were made for.
    is_tight: bool,
    /// The lives before, where lying syncs may bring one of them back.
    earlier: Option<Vec<Self>>,
}

impl History {
    /// The history of a database that does not exist yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            model: Model::new(limits),
            base: 0,
            records: Vec::new(),
            positions: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            latest: Sample::default(),
            clock: 0,
            survives_power_loss: Floor::default(),
            survives_death: Floor::default(),
            worst_crash: None,
            is_closed: false,
            trouble: Trouble::default(),
            trouble_before: Trouble::default(),
            trouble_at_end: Trouble::default(),
            damage_before: Trouble::default(),
            is_tight: false,
            earlier: None,
        }
    }

    /// Keeps what is needed to judge states that lying syncs bring back.
    pub fn may_go_back(&mut self) {
        self.earlier.get_or_insert_default();
    }

    /// Records what has gone wrong below the database, before an operation begins or ends.
    pub fn trouble(&mut self, now: Trouble) {
        self.trouble = now;
    }

    /// Records whether the memory budget is smaller than the one that the operations were made for.
    pub fn tight(&mut self, is_tight: bool) {
        self.is_tight = is_tight;
    }

    /// What has gone wrong since this life began.
    #[must_use]
    pub fn trouble_of_life(&self) -> Trouble {
        self.trouble.since(self.trouble_before)
    }

    /// Tells the moments of one course of events apart at which different states may be recovered.
    #[must_use]
    pub fn moment(&self) -> [u64; 5] {
        let crash = self.worst_crash.map_or(0, |crash| 1 + crash as u64);
        [self.clock, self.base, self.latest.visible, self.latest.durable, crash]
    }

    /// The state at the position that was last recovered.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Records that an operation begins; the number is for [`end`](Self::end).
    pub fn begin(
        &mut self,
        client: u32,
        id: u32,
        operation: Arc<Operation>,
        before: Sample,
    ) -> Result<usize, Violation> {
        self.sample(before)?;
        self.clock += 1;
        let (trouble, began) = (self.trouble, self.clock);
        self.records.push(Record {
            client,
            id,
            operation,
            before,
            trouble,
            began,
            at_most: u64::MAX,
            end: None,
        });
        Ok(self.records.len() - 1)
    }

    /// Records that the operation's client does not poll it any more: it gets no position from now on.
    pub fn abandoned(&mut self, number: usize, now: Sample) -> Result<(), Violation> {
        self.sample(now)?;
        self.records[number].at_most = now.visible;
        Ok(())
    }

    /// Records how the operation ended. One that never ends, because of a crash or because its client abandoned it,
    /// is unknown.
    pub fn end(&mut self, number: usize, outcome: Outcome, after: Sample) -> Result<(), Violation> {
        self.sample(after)?;
        self.clock += 1;
        let record = &mut self.records[number];
        let snapshot = match *record.operation {
            Operation::SnapshotRead { slot, .. } => self.snapshots.get(&(record.client, slot)).copied(),
            _ => None,
        };
        record.end = Some(End { outcome, visible: after.visible, at: self.clock, snapshot });
        let judged = self.judge_at_once(number, after);
        let record = &mut self.records[number];
        if let Some(End { outcome: Outcome::Failed { kind: ErrorKind::DurabilityUnknown, .. }, .. }) =
            record.end
            && record.operation.as_write().is_some()
        {
            // It has a position that nobody was told.
            record.end = None;
        }
        judged
    }

    /// Records what the database says about itself.
    pub fn sample(&mut self, now: Sample) -> Result<(), Violation> {
        let latest = self.latest;
        if now.visible < latest.visible || now.durable < latest.durable {
            let (name, from, to) = if now.visible < latest.visible {
                ("visible_point", latest.visible, now.visible)
            } else {
                ("durable_point", latest.durable, now.durable)
            };
            return Err(Violation::new(Promise::Visibility, format!("{name} went back from {from} to {to}")));
        }
        if now.durable > now.visible {
            let Sample { visible, durable } = now;
            let what = format!("durable_point is {durable}, ahead of visible_point, which is {visible}");
            return Err(Violation::new(Promise::Visibility, what));
        }
        self.latest = now;
        self.survives_power_loss.raise(now.durable, Reason::DurablePoint);
        Ok(())
    }

    /// Judges what needs no knowledge of the other operations.
    fn judge_at_once(&mut self, number: usize, after: Sample) -> Result<(), Violation> {
        let record = &self.records[number];
        let Some(end) = &record.end else { return Ok(()) };
        let (from, to) = (record.before.visible, after.visible);
        match (&*record.operation, &end.outcome) {
            (
                Operation::Write(write) | Operation::Abandon { write, .. },
                Outcome::Committed { position, .. },
            ) => {
                let (position, durability) = (*position, write.durability);
                if write.is_empty() {
                    let what = || format!("wrote nothing at position {position}, not {from} to {to}");
                    return record.keeps(Promise::Order, (from..=to).contains(&position), what);
                }
                self.judge_commit(number, position, durability, after)
            }
            (Operation::Transaction(transaction), Outcome::Transacted { position, .. }) => {
                let (position, durability) = (*position, transaction.write.durability);
                if transaction.write.is_empty() {
                    let what = || format!("read position {position}, not {from} to {to}");
                    return record.keeps(Promise::Serialisable, (from..=to).contains(&position), what);
                }
                self.judge_commit(number, position, durability, after)
            }
            (Operation::Transaction(transaction), Outcome::Failed { kind: ErrorKind::Conflict, .. }) => {
                let has_reason = self.records.iter().enumerate().any(|(other, record)| {
                    other != number && record.may_be_behind(from) && touches(record, transaction)
                });
                let what = || "conflicts, though nothing that it read was written meanwhile".to_owned();
                record.keeps(Promise::Serialisable, has_reason, what)
            }
            (Operation::Snapshot { slot }, Outcome::Snapshot { position }) => {
                let what = || format!("is at position {position}, not {from} to {to}");
                record.keeps(Promise::Snapshot, (from..=to).contains(position), what)?;
                self.snapshots.insert((record.client, *slot), *position);
                Ok(())
            }
            (Operation::DropSnapshot { slot }, _) => {
                self.snapshots.remove(&(record.client, *slot));
                Ok(())
            }
            (Operation::Flush, Outcome::Flushed { position }) => {
                let (position, durable) = (*position, after.durable);
                record.keeps(Promise::Durability, from <= position && position <= durable, || {
                    format!(
                        "made everything up to {position} durable, but position {from} was visible before it, and \
                         durable_point is {durable} after it"
                    )
                })?;
                self.survives_power_loss.raise(position, Reason::Flushed(number));
                Ok(())
            }
            (Operation::Checkpoint, Outcome::Checkpointed { position }) => {
                let reached = (from..=to).contains(position) && *position <= after.durable;
                record.keeps(Promise::Checkpoint, reached, || {
                    let durable = after.durable;
                    format!("covers what is up to {position}, not {from} to {to}; durable_point is {durable}")
                })
            }
            (Operation::Check, Outcome::Checked { findings }) => {
                let first = findings.first().map_or("", String::as_str);
                let what = || format!("found {} problems, the first: {first}", findings.len());
                // A page that could not be read is one.
                let is_excused = self.trouble.since(record.trouble).reads + self.trouble.damage > 0;
                record.keeps(Promise::Check, findings.is_empty() || is_excused, what)
            }
            (operation, Outcome::Failed { kind, message }) => {
                let during = self.trouble.since(record.trouble);
                let judged = record.keeps(Promise::NoError, self.may_fail(operation, *kind, during), || {
                    format!("failed: {message}")
                });
                judged.map_err(|violation| Violation { detail: Some(format!("{kind:?}")), ..violation })?;
                let names_file = match kind {
                    ErrorKind::Io
                    | ErrorKind::DiskFull
                    | ErrorKind::Poisoned
                    | ErrorKind::DurabilityUnknown => {
                        // What is damaged is named by file or structure; the life judges the name.
                        message.contains('/') || self.trouble.damage > 0 && message.contains(" is ")
                    }
                    _ => true,
                };
                let what = || format!("failed without naming a file: {message}");
                record.keeps(Promise::FailedChange, names_file, what)
            }
            _ => Ok(()),
        }
    }

    fn judge_commit(
        &mut self,
        number: usize,
        position: u64,
        durability: Durability,
        after: Sample,
    ) -> Result<(), Violation> {
        let record = &self.records[number];
        let (before, Sample { visible, durable }) = (record.before.visible, after);
        record.keeps(Promise::Order, position > before, || {
            format!("got position {position}, though position {before} was visible before it began")
        })?;
        record.keeps(Promise::Visibility, position <= visible, || {
            format!("was acknowledged at position {position}, but only {visible} is visible")
        })?;
        record.keeps(Promise::Durability, durability < Durability::Synced || position <= durable, || {
            format!("was acknowledged Synced at position {position}, but durable_point is {durable}")
        })?;
        if let Some(other) = self.positions.insert(position, number) {
            let what = || format!("got position {position}, which {} got before", self.records[other]);
            return record.keeps(Promise::Order, false, what);
        }
        match durability {
            Durability::Synced => self.survives_power_loss.raise(position, Reason::Acknowledged(number)),
            Durability::Written => self.survives_death.raise(position, Reason::Acknowledged(number)),
            Durability::Buffered => {}
        }
        Ok(())
    }

    /// Whether the operation may fail like that in some state, after what went wrong in this life and `during` it.
    fn may_fail(&self, operation: &Operation, kind: ErrorKind, during: Trouble) -> bool {
        let life = self.trouble_of_life();
        if self.trouble.damage > 0
            && matches!(kind, ErrorKind::Corruption | ErrorKind::Poisoned | ErrorKind::DurabilityUnknown)
        {
            // Damage lasts, and a checkpoint that meets it poisons.
            return true;
        }
        match (operation, kind) {
            (Operation::Read(_) | Operation::SnapshotRead { .. }, ErrorKind::Io) => {
                return during.reads > 0;
            }
            (Operation::Write(_) | Operation::Abandon { .. } | Operation::Transaction(_), ErrorKind::Io) => {
                return life.reads > 0;
            }
            (Operation::Checkpoint, ErrorKind::Io) => return life.reads + life.changes > 0,
            (
                Operation::Write(_)
                | Operation::Abandon { .. }
                | Operation::Transaction(_)
                | Operation::Checkpoint,
                ErrorKind::DiskFull,
            ) => {
                return life.full > 0;
            }
            (
                Operation::Write(_)
                | Operation::Abandon { .. }
                | Operation::Transaction(_)
                | Operation::Checkpoint
                | Operation::Flush,
                ErrorKind::Poisoned | ErrorKind::DurabilityUnknown,
            ) => return life.changes > 0,
            (
                Operation::Write(_) | Operation::Abandon { .. } | Operation::Transaction(_),
                ErrorKind::ResourceExhausted,
            ) => {
                return self.is_tight;
            }
            _ => {}
        }
        match operation {
            Operation::Write(write) | Operation::Abandon { write, .. } => self.may_be_refused(write, kind),
            Operation::Transaction(transaction) => self.may_be_refused(&transaction.write, kind),
            Operation::Read(read) | Operation::SnapshotRead { read, .. } => match read {
                Read::Get { key, .. }
                | Read::Contains { key, .. }
                | Read::Len { key }
                | Read::Kind { key }
                | Read::Scan { key, .. } => kind == ErrorKind::InvalidInput && key.is_empty(),
                Read::Keys { .. } => false,
            },
            _ => false,
        }
    }

    fn may_be_refused(&self, write: &Write, kind: ErrorKind) -> bool {
        match kind {
            // Which state refused it is judged when the order is known.
            ErrorKind::WrongKind => true,
            ErrorKind::InvalidInput => self.model.is_invalid(&write.edits),
            _ => false,
        }
    }

    /// Records that the database was closed: everything visible survives from here on.
    pub fn closed(&mut self) {
        self.is_closed = true;
        self.survives_power_loss.raise(self.latest.visible, Reason::Closed);
    }

    /// Records how a life, or an attempt to open, ended.
    pub fn crashed(&mut self, crash: Crash) {
        self.worst_crash = self.worst_crash.max(Some(crash));
        self.trouble_at_end = self.trouble;
    }

    /// Judges the life that ended by what the next open has recovered, and begins the next life.
    pub fn recovered(&mut self, now: Sample, contents: &Contents) -> Result<(), Violation> {
        let position = now.visible;
        if position >= self.base {
            self.judge_survival(position)?;
        }
        self.judge_state(position, contents)?;
        self.base = position;
        self.records.clear();
        self.positions.clear();
        self.snapshots.clear();
        self.survives_death = Floor::default();
        // What has been recovered stays: `judge_survival` of later lives is about later commits alone.
        self.survives_power_loss = Floor::default();
        self.worst_crash = None;
        self.is_closed = false;
        self.trouble_before = self.trouble;
        self.damage_before = self.trouble_at_end;
        self.latest = Sample { visible: position, durable: 0 };
        self.sample(now)?;
        if now.durable < position {
            let durable = now.durable;
            let what =
                format!("position {position} was recovered for good, but durable_point says {durable}");
            return Err(Violation::new(Promise::Durability, what));
        }
        Ok(())
    }

    /// Judges the life that ended by what can be salvaged of it: a state of the past, as far as it can be read. Newer
    /// commits may be missing if the database says that something was `left_out`.
    pub fn salvaged(&mut self, position: u64, contents: &Contents, left_out: bool) -> Result<(), Violation> {
        if !left_out {
            self.judge_survival(position)?;
        }
        self.judge_state(position, contents)
    }

    fn judge_state(&mut self, position: u64, contents: &Contents) -> Result<(), Violation> {
        if position < self.base && !self.begins_anew(position, contents) {
            self.go_back(position)?;
        }
        let before = self.earlier.is_some().then(|| self.clone());
        judge::Judge::new(&mut self.model, &self.records, &self.positions, self.base)
            .run(Some((position, contents)), self.latest.visible)?;
        if let (Some(earlier), Some(before)) = (&mut self.earlier, before) {
            earlier.push(Self { earlier: None, ..before });
        }
        Ok(())
    }

    /// A database that held nothing, and of which damage left nothing but leavings of a creation, is created again.
    fn begins_anew(&mut self, position: u64, contents: &Contents) -> bool {
        let is_empty = contents.objects.is_empty() && self.model.objects().next().is_none();
        let begins_anew = position == 0 && is_empty && self.positions.is_empty() && self.trouble.damage > 0;
        if begins_anew {
            self.base = 0;
            self.latest.visible = 0;
            self.records.clear();
        }
        begins_anew
    }

    /// Becomes the life to which a position belongs that is older than what was recovered. Only lying syncs excuse it.
    fn go_back(&mut self, position: u64) -> Result<(), Violation> {
        let base = self.base;
        let mut earlier = self.earlier.take().filter(|_| self.trouble.lies > 0);
        while let Some(then) = earlier.as_mut().and_then(Vec::pop) {
            if then.base <= position {
                let (trouble, is_tight) = (self.trouble, self.is_tight);
                *self = Self { trouble, is_tight, earlier, ..then };
                return Ok(());
            }
        }
        let what = format!("position {base} had been recovered before; now only {position} is there");
        Err(Violation::new(Promise::NoRollback, what))
    }

    /// Judges the life so far without a recovery; `contents`, if given, were read while nothing else ran.
    pub fn conclude(&mut self, contents: Option<&Contents>) -> Result<(), Violation> {
        let visible = self.latest.visible;
        judge::Judge::new(&mut self.model, &self.records, &self.positions, self.base)
            .run(contents.map(|contents| (visible, contents)), visible)
    }

    /// Whether damage of the log excuses that nothing behind `recovered` is there. A record that knew what is lost to be
    /// durable would tell of it, unless it is damaged as well; and a log that was closed has an end that is known.
    fn log_ends_early(&self, recovered: u64) -> bool {
        let lies = self.trouble.lies;
        let Trouble { damage, log_damage, log_rot, log_cut, .. } = self.trouble.since(self.damage_before);
        if log_damage + lies == 0 {
            return false;
        }
        if damage > 1 || lies > 0 {
            return true;
        }
        // Segments have their whole length before anything is in them: one that is shorter is damaged.
        if self.is_closed || log_cut > 0 {
            return false;
        }
        if log_rot == 0 {
            return true;
        }
        let survivors = |(_, number): (&u64, &usize)| {
            let record = &self.records[*number];
            let is_synced =
                record.operation.as_write().is_some_and(|write| write.durability == Durability::Synced);
            record.end.as_ref().filter(|_| is_synced).map(|end| (record.began, end.at))
        };
        let lost: Vec<_> = self.positions.range(recovered + 1..).filter_map(survivors).collect();
        let first_end = lost.iter().map(|(_, end)| *end).min();
        // Nobody began after the first of them had been acknowledged.
        lost.iter().all(|(began, _)| first_end.is_none_or(|end| *began < end))
    }

    fn judge_survival(&self, recovered: u64) -> Result<(), Violation> {
        let power_loss = self.worst_crash == Some(Crash::PowerLoss);
        let mut floor = &self.survives_power_loss;
        // `Written` is no promise any more once a sync of the log has failed.
        let written_counts = !power_loss && self.trouble_of_life().log_syncs == 0;
        if written_counts && self.survives_death.position > floor.position {
            floor = &self.survives_death;
        }
        if recovered >= floor.position || self.log_ends_early(recovered) {
            return Ok(());
        }
        let position = floor.position;
        let promised = match floor.why {
            Reason::Nothing => return Ok(()),
            Reason::Acknowledged(number) => {
                let record = &self.records[number];
                let level = record.operation.as_write().map_or(Durability::Synced, |write| write.durability);
                format!("{record} was acknowledged {level:?} at position {position}")
            }
            Reason::Flushed(number) => {
                format!("{} made position {position} durable", self.records[number])
            }
            Reason::DurablePoint => format!("durable_point said {position}"),
            Reason::Closed => format!("the database was closed at position {position}"),
        };
        let crash = self.worst_crash.map_or_else(|| "a clean end".to_owned(), |crash| crash.to_string());
        let what = format!("{promised}, but after {crash} only position {recovered} was recovered");
        Err(Violation::new(Promise::Durability, what))
    }
}

#[cfg(test)]
mod tests;
