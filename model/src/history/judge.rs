//! Finds an order of a life's commits that explains everything that was seen.
//!
//! Acknowledged commits have told their positions. A commit that a crash cut off, or that its client abandoned, may
//! stand where no other does, or nowhere. The assignments are tried one after another, the likely ones first, and what
//! one did to the model is undone before the next.

use super::{Contents, End, Promise, Record, Violation};
use crate::history::Outcome;
use crate::model::{Mark, Model, Refusal};
use crate::operation::{Answer, Operation, Read, Transaction, Write};
use ironleaf::ErrorKind;
use std::collections::BTreeMap;

/// Most commits that are tried in gaps: far more than crashes alone leave open, and judged in milliseconds.
const TRIES_MAX: u32 = 5000;

/// Something that was seen between two positions, both included.
struct Window {
    from: u64,
    to: u64,
    record: usize,
}

/// Where the judge stands in the order.
#[derive(Clone)]
struct Cursor {
    position: u64,
    next_window: usize,
    /// Windows that are open and not explained yet.
    open: Vec<usize>,
}

/// A violation and the position at which it appeared: of several assignments, the one that explains most is shown.
struct Wrong {
    position: u64,
    violation: Violation,
}

pub(super) struct Judge<'a> {
    model: &'a mut Model,
    records: &'a [Record],
    positions: &'a BTreeMap<u64, usize>,
    base: u64,
    windows: Vec<Window>,
    /// Writes that a crash cut off, and whether they have a place in the present assignment.
    unknown: Vec<(usize, bool)>,
    recovered: Option<(u64, &'a Contents)>,
    /// The state at `base` plus the index.
    marks: Vec<Mark>,
    /// Commits that may still be tried in gaps. A sound history needs few; one that is not is given up.
    tries_left: u32,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        model: &'a mut Model,
        records: &'a [Record],
        positions: &'a BTreeMap<u64, usize>,
        base: u64,
    ) -> Self {
        let (mut windows, mut unknown) = (Vec::new(), Vec::new());
        for (number, record) in records.iter().enumerate() {
            match (&*record.operation, &record.end) {
                (operation, None) => {
                    let is_unknown = |write: &Write| !write.is_empty() && !model.is_invalid(&write.edits);
                    if operation.as_write().is_some_and(is_unknown) {
                        unknown.push((number, false));
                    }
                }
                (Operation::Transaction(transaction), Some(End { outcome, .. }))
                    if transaction.write.is_empty() && matches!(outcome, Outcome::Transacted { .. }) =>
                {
                    let Outcome::Transacted { position, .. } = *outcome else { continue };
                    windows.push(Window { from: position, to: position, record: number });
                }
                (_, Some(end)) => match (&end.outcome, end.snapshot) {
                    (Outcome::Answered(_), Some(at)) => {
                        windows.push(Window { from: at, to: at, record: number })
                    }
                    (Outcome::Answered(_), None) => {
                        windows.push(Window { from: record.before.visible, to: end.visible, record: number });
                    }
                    (Outcome::Failed { kind: ErrorKind::WrongKind, .. }, _) => {
                        windows.push(Window { from: record.before.visible, to: u64::MAX, record: number });
                    }
                    _ => {}
                },
            }
        }
        windows.sort_by_key(|window| window.from);
        Self {
            model,
            records,
            positions,
            base,
            windows,
            unknown,
            recovered: None,
            marks: Vec::new(),
            tries_left: TRIES_MAX,
        }
    }

    /// Leaves the model at the recovered position. `visible` is the last position that was seen to be visible.
    pub(super) fn run(
        mut self,
        recovered: Option<(u64, &'a Contents)>,
        visible: u64,
    ) -> Result<(), Violation> {
        self.recovered = recovered;
        let acknowledged = self.positions.last_key_value().map_or(self.base, |(position, _)| *position);
        let last = acknowledged.max(visible).max(recovered.map_or(0, |(position, _)| position));
        let most = self.base + (self.positions.len() + self.unknown.len()) as u64;
        if last > most {
            let what = if recovered.is_some_and(|(position, _)| position > most) {
                format!("position {last} was recovered, but only {most} can have been reached")
            } else {
                format!("position {last} was reached, but there were only commits for {most}")
            };
            return Err(Violation::new(Promise::Order, what));
        }
        self.marks.push(self.model.mark());
        let start = Cursor { position: self.base, next_window: 0, open: Vec::new() };
        self.explain(start, last).map_err(|wrong| wrong.violation)?;
        if let Some((position, _)) = recovered {
            self.model.undo_to(self.marks[(position - self.base) as usize]);
        }
        self.model.settle();
        Ok(())
    }

    /// Explains everything from the cursor on, up to position `last` and, if that does not suffice, a little further.
    fn explain(&mut self, mut cursor: Cursor, last: u64) -> Result<(), Wrong> {
        loop {
            self.compare_state(&mut cursor)?;
            let next = cursor.position + 1;
            if cursor.position >= last && cursor.open.is_empty() {
                return Ok(());
            }
            if let Some(number) = self.positions.get(&next) {
                self.close_windows(&cursor, *number)?;
                self.commit(*number, next)?;
                cursor.position = next;
                continue;
            }
            return self.fill_gap(&cursor, last);
        }
    }

    /// Tries every commit that may stand at the position after the cursor.
    fn fill_gap(&mut self, cursor: &Cursor, last: u64) -> Result<(), Wrong> {
        let next = cursor.position + 1;
        let mut deepest: Option<Wrong> = None;
        for at in 0..self.unknown.len() {
            let (number, placed) = self.unknown[at];
            let record = &self.records[number];
            if placed || record.before.visible >= next || record.at_most < next {
                continue;
            }
            if self.tries_left == 0 {
                break;
            }
            self.tries_left -= 1;
            self.unknown[at].1 = true;
            let (mark, marks) = (self.model.mark(), self.marks.len());
            let explained = self.close_windows(cursor, number).and_then(|()| {
                self.commit(number, next)?;
                self.explain(Cursor { position: next, ..cursor.clone() }, last)
            });
            let Err(wrong) = explained else { return Ok(()) };
            self.unknown[at].1 = false;
            self.model.undo_to(mark);
            self.marks.truncate(marks);
            if deepest.as_ref().is_none_or(|deepest| wrong.position > deepest.position) {
                deepest = Some(wrong);
            }
        }
        Err(deepest.unwrap_or_else(|| match cursor.open.first() {
            Some(window) if cursor.position >= last => self.unexplained(*window, cursor.position),
            _ => {
                let what = format!("position {next} was skipped: no commit can have got it");
                Wrong { position: cursor.position, violation: Violation::new(Promise::Order, what) }
            }
        }))
    }

    /// Applies the write at its position and compares what it answered.
    fn commit(&mut self, number: usize, position: u64) -> Result<(), Wrong> {
        let record = &self.records[number];
        let wrong = |promise, what: String| {
            let violation = Violation::new(promise, format!("{record} {what}"));
            Wrong { position: position - 1, violation }
        };
        let Some(write) = record.operation.as_write() else {
            return Err(wrong(Promise::Order, format!("got position {position}, but it writes nothing")));
        };
        let outcome = record.end.as_ref().map(|end| &end.outcome);
        if let (Operation::Transaction(transaction), Some(Outcome::Transacted { answers, .. })) =
            (&*record.operation, outcome)
            && let Some(what) = misread(self.model, transaction, answers)
        {
            let what = format!("is not as if it had run alone at position {position}: {what}");
            return Err(wrong(Promise::Serialisable, what));
        }
        match (self.model.apply(&write.edits), outcome) {
            (Ok(expected), Some(Outcome::Committed { outcomes, .. })) if expected != *outcomes => {
                let expected = Outcome::Committed { position, outcomes: expected };
                let found = Outcome::Committed { position, outcomes: outcomes.clone() };
                return Err(wrong(Promise::Outcome, format!("should have {expected}, but {found}")));
            }
            (Ok(_), _) => {}
            (Err(Refusal::WrongKind), _) => {
                return Err(wrong(Promise::Outcome, format!("cannot be at position {position}: wrong kind")));
            }
            (Err(Refusal::InvalidInput), _) => {
                return Err(wrong(Promise::Outcome, "was accepted, but is outside of the limits".to_owned()));
            }
        }
        self.marks.push(self.model.mark());
        Ok(())
    }

    /// A refusal cannot be explained by a commit that began after it.
    fn close_windows(&self, cursor: &Cursor, next: usize) -> Result<(), Wrong> {
        let began = self.records[next].began;
        let closed = cursor.open.iter().find(|window| {
            let window = &self.windows[**window];
            let ended = self.records[window.record].end.as_ref().map_or(u64::MAX, |end| end.at);
            window.to == u64::MAX && ended < began
        });
        closed.map_or(Ok(()), |window| Err(self.unexplained(*window, cursor.position)))
    }

    /// Compares the state at the cursor with everything that was seen of it.
    fn compare_state(&mut self, cursor: &mut Cursor) -> Result<(), Wrong> {
        let position = cursor.position;
        if let Some((recovered, contents)) = self.recovered
            && recovered == position
            && let Some(difference) = contents.difference(self.model)
        {
            let what =
                format!("the state recovered as position {position} is not the state there: {difference}");
            return Err(Wrong { position, violation: Violation::new(Promise::Prefix, what) });
        }
        while self.windows.get(cursor.next_window).is_some_and(|window| window.from <= position) {
            cursor.open.push(cursor.next_window);
            cursor.next_window += 1;
        }
        let (model, windows, records) = (&mut *self.model, &self.windows, self.records);
        cursor.open.retain(|window| !is_explained(model, &records[windows[*window].record]));
        let overdue = cursor.open.iter().find(|window| self.windows[**window].to <= position);
        overdue.map_or(Ok(()), |window| Err(self.unexplained(*window, position)))
    }

    fn unexplained(&self, window: usize, position: u64) -> Wrong {
        let window = &self.windows[window];
        let record = &self.records[window.record];
        let place = if window.from >= position {
            format!("at position {position}")
        } else {
            format!("at each position from {} to {position}; at the last", window.from)
        };
        let expected = |read: &Read| self.model.answer(read);
        let (promise, what) = match (&*record.operation, record.end.as_ref().map(|end| &end.outcome)) {
            (Operation::Read(read), Some(Outcome::Answered(found))) => (
                Promise::Read,
                format!("answered {found}; the model differs {place} it says {}", expected(read)),
            ),
            (Operation::Transaction(transaction), Some(Outcome::Transacted { answers, .. })) => {
                let reads = transaction.reads.iter().map(|(_, read)| expected(read));
                let differs = reads.zip(answers).find(|(expected, found)| *expected != **found);
                let what = differs.map_or_else(String::new, |(expected, found)| {
                    format!("read {found}; the model says {expected} {place}")
                });
                (Promise::Serialisable, what)
            }
            (Operation::SnapshotRead { read, .. }, Some(Outcome::Answered(found))) => {
                (Promise::Snapshot, format!("answered {found}; the model says {} {place}", expected(read)))
            }
            _ => (Promise::Outcome, format!("was refused as wrong kind; the model accepts it {place}")),
        };
        Wrong { position, violation: Violation::new(promise, format!("{record} {what}")) }
    }
}

/// Whether what was seen agrees with the present state.
fn is_explained(model: &mut Model, record: &Record) -> bool {
    match (&*record.operation, record.end.as_ref().map(|end| &end.outcome)) {
        (Operation::Read(read) | Operation::SnapshotRead { read, .. }, Some(Outcome::Answered(answer))) => {
            model.agrees(read, answer)
        }
        (Operation::Transaction(transaction), Some(Outcome::Transacted { answers, .. })) => {
            transaction.reads.iter().zip(answers).all(|((_, read), answer)| model.agrees(read, answer))
        }
        (operation, Some(Outcome::Failed { .. })) => {
            operation.as_write().is_none_or(|write| model.refuses_kind(&write.edits))
        }
        _ => true,
    }
}

/// What a transaction read that it could not have read if it had run alone on the present state. Changes nothing.
fn misread(model: &mut Model, transaction: &Transaction, answers: &[Answer]) -> Option<String> {
    let mark = model.mark();
    let mut answers = answers.iter();
    let mut wrong = None;
    'steps: for at in 0..=transaction.write.edits.len() {
        for read in transaction.reads_behind(at) {
            let answer = answers.next();
            if !answer.is_some_and(|answer| model.agrees(read, answer)) {
                let found = answer.map_or_else(|| "nothing".to_owned(), ToString::to_string);
                wrong = Some(format!("`{read}` answered {found}; the model says {}", model.answer(read)));
                break 'steps;
            }
        }
        if let Some(edit) = transaction.write.edits.get(at)
            && model.apply(std::slice::from_ref(edit)).is_err()
        {
            break;
        }
    }
    model.undo_to(mark);
    wrong
}
