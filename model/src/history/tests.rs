//! Each promise is broken once, in the smallest history that can break it, and the checker must say so; the same
//! history without the fault must pass.

use super::*;
use crate::operation::Answer;

/// A history in the making, with a database that is as good as its word unless a test says otherwise.
struct Run {
    history: History,
    visible: u64,
    durable: u64,
    next_id: u32,
}

impl Run {
    fn new() -> Self {
        let history = History::new(Limits { value_bytes_max: 1000 });
        Self { history, visible: 0, durable: 0, next_id: 0 }
    }

    fn now(&self) -> Sample {
        Sample { visible: self.visible, durable: self.durable }
    }

    fn begin(&mut self, client: u32, line: &str) -> usize {
        self.next_id += 1;
        let operation = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        self.history.begin(client, self.next_id, Arc::new(operation), self.now()).expect("nothing moved")
    }

    fn commit(&mut self, number: usize, position: u64, outcomes: &[Option<&str>]) -> Result<(), Violation> {
        self.visible = self.visible.max(position);
        let Operation::Write(write) = &*self.history.records[number].operation else { panic!("a write") };
        if write.durability == Durability::Synced {
            self.durable = self.durable.max(position);
        }
        let outcomes = outcomes.iter().map(|value| value.map(|value| value.as_bytes().to_vec())).collect();
        self.history.end(number, Outcome::Committed { position, outcomes }, self.now())
    }

    fn transact(&mut self, number: usize, position: u64, answers: Vec<Answer>) -> Result<(), Violation> {
        self.visible = self.visible.max(position);
        self.durable = self.visible;
        self.history.end(number, Outcome::Transacted { position, answers }, self.now())
    }

    /// A write that is acknowledged at the next position.
    fn write(&mut self, line: &str) {
        let number = self.begin(0, line);
        self.commit(number, self.visible + 1, &[]).expect(line);
    }

    fn answer(&mut self, number: usize, answer: Answer) -> Result<(), Violation> {
        self.history.end(number, Outcome::Answered(answer), self.now())
    }

    fn read(&mut self, line: &str, answer: Answer) -> Result<(), Violation> {
        let number = self.begin(0, line);
        self.answer(number, answer)
    }

    /// The next open finds `position` and what these writes leave.
    fn recover(&mut self, crash: Crash, position: u64, lines: &[&str]) -> Result<(), Violation> {
        self.history.crashed(crash);
        (self.visible, self.durable) = (position, position);
        self.history.recovered(self.now(), &contents(lines))
    }
}

fn contents(lines: &[&str]) -> Contents {
    let mut model = Model::new(Limits { value_bytes_max: 1000 });
    for line in lines {
        let Ok(Operation::Write(write)) = line.parse() else { panic!("{line}") };
        model.apply(&write.edits).expect(line);
    }
    let held = |(key, object): (&[u8], &crate::Object)| Held {
        key: key.to_vec(),
        kind: object.kind(),
        len: Some(object.len() as u64),
        lacks_entries: false,
        entries: object.entries().map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
    };
    Contents { objects: model.objects().map(held).collect(), ..Contents::default() }
}

fn value(text: &str) -> Answer {
    Answer::Value(Some(text.as_bytes().to_vec()))
}

#[track_caller]
fn breaks(result: Result<(), Violation>, promise: Promise, part: &str) {
    let violation = result.expect_err("this breaks a promise");
    assert_eq!(violation.promise, promise, "{violation}");
    assert!(violation.what.contains(part), "{violation}");
}

const A: &str = "set k f a";
const B: &str = "set k f b";
const C: &str = "set k g c";

#[test]
fn a_recovered_prefix_that_holds_what_was_synced_passes() {
    let mut run = Run::new();
    run.write(A);
    run.write("set k f b buffered");
    run.write("set k g c buffered");
    assert_eq!(run.recover(Crash::PowerLoss, 2, &[A, B]), Ok(()));
    run.write(C);
    assert_eq!(run.recover(Crash::PowerLoss, 3, &[A, B, C]), Ok(()));
}

#[test]
fn losing_a_synced_commit_breaks_durability() {
    let mut run = Run::new();
    run.write(A);
    run.write(B);
    breaks(
        run.recover(Crash::PowerLoss, 1, &[A]),
        Promise::Durability,
        "operation 2 of client 0 (`set k f b`)",
    );
}

#[test]
fn written_commits_survive_process_death_but_not_power_loss() {
    for (crash, passes) in [(Crash::ProcessDeath, false), (Crash::PowerLoss, true)] {
        let mut run = Run::new();
        run.write("set k f a written");
        let recovered = run.recover(crash, 0, &[]);
        if passes {
            assert_eq!(recovered, Ok(()));
        } else {
            breaks(
                recovered,
                Promise::Durability,
                "acknowledged Written at position 1, but after process death",
            );
        }
    }
}

#[test]
fn of_several_crashes_the_worst_counts() {
    let mut run = Run::new();
    run.write("set k f a written");
    run.history.crashed(Crash::PowerLoss);
    assert_eq!(run.recover(Crash::ProcessDeath, 0, &[]), Ok(()));
}

#[test]
fn what_flush_and_durable_point_name_survives_power_loss() {
    let mut run = Run::new();
    run.write("set k f a buffered");
    let flush = run.begin(0, "flush");
    run.durable = 1;
    run.history.end(flush, Outcome::Flushed { position: 1 }, run.now()).expect("flushed");
    breaks(run.recover(Crash::PowerLoss, 0, &[]), Promise::Durability, "durable");

    let mut run = Run::new();
    run.write("set k f a buffered");
    let flush = run.begin(0, "flush");
    let end = run.history.end(flush, Outcome::Flushed { position: 0 }, run.now());
    breaks(end, Promise::Durability, "made everything up to 0 durable, but position 1 was visible");
}

#[test]
fn a_hole_in_the_recovered_state_breaks_the_prefix() {
    let mut run = Run::new();
    run.write("set k f a buffered");
    run.write("set k g c buffered");
    breaks(run.recover(Crash::PowerLoss, 2, &[C]), Promise::Prefix, "key k lacks f=a");
}

#[test]
fn half_of_a_batch_breaks_the_prefix() {
    let mut run = Run::new();
    run.write("batch [set k f a; put s m]");
    breaks(run.recover(Crash::PowerLoss, 1, &[A]), Promise::Prefix, "key s is missing");
}

#[test]
fn a_recovered_position_never_rolls_back() {
    let mut run = Run::new();
    run.write("set k f a buffered");
    assert_eq!(run.recover(Crash::PowerLoss, 1, &[A]), Ok(()));
    breaks(run.recover(Crash::PowerLoss, 0, &[]), Promise::NoRollback, "position 1 had been recovered");
}

#[test]
fn a_commit_that_was_cut_off_may_be_there_or_not() {
    for (position, left) in [(1, &[A][..]), (2, &[A, B][..])] {
        let mut run = Run::new();
        run.write(A);
        run.begin(1, B);
        assert_eq!(run.recover(Crash::PowerLoss, position, left), Ok(()));
    }
}

#[test]
fn commits_that_were_cut_off_are_found_in_either_order() {
    for left in [&[A, B][..], &[B, A][..]] {
        let mut run = Run::new();
        run.begin(0, A);
        run.begin(1, B);
        assert_eq!(run.recover(Crash::PowerLoss, 2, left), Ok(()));
    }
    let mut run = Run::new();
    run.begin(0, A);
    run.begin(1, B);
    breaks(run.recover(Crash::PowerLoss, 2, &[C]), Promise::Prefix, "recovered as position 2");
}

#[test]
fn an_abandoned_commit_is_whole_or_absent_while_its_client_goes_on() {
    for (applied, left) in [(true, &[A, B][..]), (false, &[B][..])] {
        let mut run = Run::new();
        run.begin(0, "abandon set k f a");
        let number = run.begin(0, "insert k f b");
        let before = applied.then_some("a");
        run.commit(number, if applied { 2 } else { 1 }, &[before]).expect("acknowledged");
        assert_eq!(run.recover(Crash::PowerLoss, run.visible, left), Ok(()));
    }
    let mut run = Run::new();
    run.begin(0, "abandon batch [set k f a; set k g c]");
    run.visible = 1;
    breaks(run.recover(Crash::PowerLoss, 1, &[A]), Promise::Prefix, "key k lacks g=c");
}

#[test]
fn a_history_that_nothing_explains_is_given_up_in_time() {
    let mut run = Run::new();
    for number in 0..40 {
        run.begin(0, &format!("abandon set k f{number} v"));
    }
    breaks(run.recover(Crash::PowerLoss, 20, &[C]), Promise::Prefix, "recovered as position 20");
}

#[test]
fn a_commit_that_was_cut_off_fills_the_gap_below_an_acknowledged_one() {
    let mut run = Run::new();
    run.begin(1, A);
    let number = run.begin(0, C);
    run.commit(number, 2, &[]).expect("acknowledged");
    assert_eq!(run.recover(Crash::PowerLoss, 2, &[A, C]), Ok(()));
}

#[test]
fn a_gap_that_no_commit_can_fill_breaks_the_order() {
    let mut run = Run::new();
    let number = run.begin(0, C);
    run.commit(number, 2, &[]).expect("acknowledged");
    run.begin(1, A);
    breaks(run.recover(Crash::PowerLoss, 2, &[A, C]), Promise::Order, "position 1 was skipped");
}

#[test]
fn more_positions_than_commits_break_the_order() {
    let mut run = Run::new();
    run.write(A);
    breaks(run.recover(Crash::PowerLoss, 1 << 60, &[A]), Promise::Order, "only 1 can have been reached");
}

#[test]
fn a_position_before_what_was_visible_breaks_the_order() {
    let mut run = Run::new();
    run.write(A);
    run.write(B);
    let number = run.begin(0, C);
    breaks(run.commit(number, 2, &[]), Promise::Order, "got position 2, though position 2 was visible");
}

#[test]
fn one_position_for_two_commits_breaks_the_order() {
    let mut run = Run::new();
    let (first, second) = (run.begin(0, A), run.begin(1, B));
    run.commit(first, 1, &[]).expect("acknowledged");
    breaks(run.commit(second, 1, &[]), Promise::Order, "which operation 1 of client 0");
}

#[test]
fn an_acknowledged_commit_that_is_not_visible_breaks_visibility() {
    let mut run = Run::new();
    let number = run.begin(0, "set k f a buffered");
    let end = Outcome::Committed { position: 1, outcomes: vec![] };
    breaks(run.history.end(number, end, run.now()), Promise::Visibility, "only 0 is visible");
}

#[test]
fn points_that_go_back_or_cross_break_visibility() {
    let mut run = Run::new();
    run.write(A);
    breaks(
        run.history.sample(Sample { visible: 0, durable: 0 }),
        Promise::Visibility,
        "went back from 1 to 0",
    );
    breaks(
        run.history.sample(Sample { visible: 1, durable: 0 }),
        Promise::Visibility,
        "durable_point went back",
    );
    breaks(
        run.history.sample(Sample { visible: 1, durable: 2 }),
        Promise::Visibility,
        "ahead of visible_point",
    );
}

#[test]
fn a_counted_write_must_answer_what_was_there() {
    for (before, passes) in [(Some("a"), true), (None, false), (Some("b"), false)] {
        let mut run = Run::new();
        run.write(A);
        let number = run.begin(0, "insert k f b");
        run.commit(number, 2, &[before]).expect("acknowledged");
        let recovered = run.recover(Crash::PowerLoss, 2, &[A, B]);
        if passes {
            assert_eq!(recovered, Ok(()));
        } else {
            breaks(recovered, Promise::Outcome, "should have committed at 2; before: a, but");
        }
    }
}

#[test]
fn a_read_may_see_any_position_of_its_window_and_no_other() {
    for (seen, passes) in [("a", true), ("b", true), ("c", false)] {
        let mut run = Run::new();
        run.write(A);
        let read = run.begin(1, "get k f");
        run.write(B);
        run.answer(read, value(seen)).expect("judged later");
        run.write("set k f c");
        let recovered = run.recover(Crash::PowerLoss, 3, &[A, B, "set k f c"]);
        if passes {
            assert_eq!(recovered, Ok(()));
        } else {
            breaks(recovered, Promise::Read, "at each position from 1 to 2");
        }
    }
}

#[test]
fn a_stale_read_breaks_the_read_promise() {
    let mut run = Run::new();
    run.write(A);
    run.write(B);
    run.read("get k f", value("a")).expect("judged later");
    breaks(run.history.conclude(None), Promise::Read, "answered a");
}

#[test]
fn a_read_sees_a_commit_that_is_then_lost() {
    let mut run = Run::new();
    run.write(A);
    run.begin(1, "set k f b buffered");
    run.visible = 2;
    run.read("get k f", value("b")).expect("judged later");
    assert_eq!(run.recover(Crash::PowerLoss, 1, &[A]), Ok(()));
}

#[test]
fn a_snapshot_answers_as_of_its_position_however_late() {
    for (seen, passes) in [("a", true), ("b", false)] {
        let mut run = Run::new();
        run.write(A);
        let number = run.begin(0, "snapshot 1");
        run.history.end(number, Outcome::Snapshot { position: 1 }, run.now()).expect("taken");
        run.write(B);
        run.write("delete k");
        run.read("snapshot-get 1 k f", value(seen)).expect("judged later");
        let recovered = run.recover(Crash::PowerLoss, 3, &[]);
        if passes {
            assert_eq!(recovered, Ok(()));
        } else {
            breaks(recovered, Promise::Snapshot, "the model says a at position 1");
        }
    }
}

#[test]
fn a_refusal_must_have_a_reason() {
    for (line, passes) in [("put k m", true), ("set k g c", false)] {
        let mut run = Run::new();
        run.write(A);
        let number = run.begin(0, line);
        let failed = Outcome::Failed { kind: ErrorKind::WrongKind, message: String::new() };
        run.history.end(number, failed, run.now()).expect("judged later");
        run.write(B);
        let concluded = run.history.conclude(None);
        if passes {
            assert_eq!(concluded, Ok(()));
        } else {
            breaks(
                concluded,
                Promise::Outcome,
                "was refused as wrong kind; the model accepts it at position 1",
            );
        }
    }
}

#[test]
fn a_refusal_may_be_about_a_commit_that_is_not_visible_yet() {
    let mut run = Run::new();
    let other = run.begin(1, A);
    let number = run.begin(0, "put k m");
    let failed = Outcome::Failed { kind: ErrorKind::WrongKind, message: String::new() };
    run.history.end(number, failed, run.now()).expect("judged later");
    run.commit(other, 1, &[]).expect("acknowledged");
    assert_eq!(run.history.conclude(None), Ok(()));
}

#[test]
fn a_write_that_the_model_refuses_must_not_be_accepted() {
    for line in ["put k m", "set \"\" f v"] {
        let mut run = Run::new();
        run.write(A);
        run.write(line);
        breaks(run.history.conclude(None), Promise::Outcome, line);
    }
}

#[test]
fn errors_without_a_reason_and_findings_of_check_break_promises() {
    let mut run = Run::new();
    let number = run.begin(0, A);
    let failed = Outcome::Failed { kind: ErrorKind::Corruption, message: "page 3 is damaged".to_owned() };
    let violation = run.history.end(number, failed, run.now()).expect_err("no reason to fail");
    assert_eq!(violation.fingerprint(), "no error: Corruption");

    let mut run = Run::new();
    let number = run.begin(0, "check");
    let found = Outcome::Checked { findings: vec!["page 3 leaks".to_owned()] };
    breaks(run.history.end(number, found, run.now()), Promise::Check, "page 3 leaks");
}

#[test]
fn contents_name_their_first_difference() {
    let held = contents(&["batch [set k f a; put s m; put s n]"]);
    for (lines, difference) in [
        (&["batch [set k f a; put s m; put s n]"][..], None),
        (&["set k f a"], Some("key s is there, but should not be")),
        (&["batch [set a f a; set k f a; put s m; put s n]"], Some("key a is missing")),
        (&["batch [set k f a; put s n; put s o]"], Some("key s has m=\"\", but should not")),
        (&["batch [set k f b; put s m; put s n]"], Some("key k has f=a, not b")),
        (&["batch [put k f; put s m; put s n]"], Some("key k holds a hash, not a set")),
        (&["put s m"], Some("key k is there, but should not be")),
        (&["batch [set k f a; put s m]"], Some("key s has n=\"\", but should not")),
    ] {
        let mut model = Model::new(Limits { value_bytes_max: 1000 });
        for line in lines {
            let Ok(Operation::Write(write)) = line.parse() else { panic!("{line}") };
            model.apply(&write.edits).expect(line);
        }
        assert_eq!(held.difference(&model).as_deref(), difference, "{lines:?}");
    }
    let mut miscounted = contents(&["set k f a"]);
    miscounted.objects[0].len = Some(2);
    let mut model = Model::new(Limits { value_bytes_max: 1000 });
    assert_eq!(miscounted.difference(&model).as_deref(), Some("key k is there, but should not be"));
    let Ok(Operation::Write(write)) = A.parse() else { panic!("a write") };
    model.apply(&write.edits).expect("k is free");
    assert_eq!(miscounted.difference(&model).as_deref(), Some("key k says it has 2 entries, not 1"));
}

#[test]
fn a_transaction_must_be_as_if_it_had_run_alone_at_its_position() {
    const LINE: &str = "transaction [get k f; set k g 1; len k]";
    // What it read, in a run where another commit came first: `f` was 1 and is 2.
    for (answers, promise) in [
        (vec![value("2"), Answer::Count(2)], None),
        (vec![value("1"), Answer::Count(2)], Some(Promise::Serialisable)),
        (vec![value("2"), Answer::Count(1)], Some(Promise::Serialisable)),
        (vec![value("2")], Some(Promise::Serialisable)),
    ] {
        let mut run = Run::new();
        run.write("set k f 1");
        let number = run.begin(0, LINE);
        let other = run.begin(1, "set k f 2");
        run.commit(other, 2, &[]).unwrap();
        run.transact(number, 3, answers).unwrap();
        match promise {
            None => run.history.conclude(None).unwrap(),
            Some(promise) => breaks(run.history.conclude(None), promise, "as if it had run alone"),
        }
    }
    // One that only reads is as of the position that it names.
    for (position, answer, is_sound) in [(1, "1", true), (2, "2", true), (1, "2", false), (2, "1", false)] {
        let mut run = Run::new();
        run.write("set k f 1");
        let number = run.begin(0, "transaction [get k f]");
        let other = run.begin(1, "set k f 2");
        run.commit(other, 2, &[]).unwrap();
        run.transact(number, position, vec![value(answer)]).unwrap();
        assert_eq!(run.history.conclude(None).is_ok(), is_sound, "{answer} at {position}");
    }
}

#[test]
fn a_conflict_needs_a_write_of_what_was_read() {
    for (other, has_reason) in [("set k f 2", true), ("delete k", true), ("set elsewhere f 2", false)] {
        let mut run = Run::new();
        run.write("set k f 1");
        let number = run.begin(0, "transaction [get k f; set x y z]");
        let write = run.begin(1, other);
        run.commit(write, 2, &[]).unwrap();
        let failed = Outcome::Failed { kind: ErrorKind::Conflict, message: "conflict".to_owned() };
        let ended = run.history.end(number, failed, run.now());
        match has_reason {
            true => ended.unwrap(),
            false => breaks(ended, Promise::Serialisable, "nothing that it read was written"),
        }
    }
}
