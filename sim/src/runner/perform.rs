//! Carries out operations through the engine's public interface.

use ironleaf::{Commit, Cursor, Database, Error, ErrorKind, Snapshot};
use ironleaf_model::operation::{Action, ScanEnd, Transaction};
use ironleaf_model::{Answer, Contents, Held, Operation, Outcome, Read, Sample};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::ops::{Bound, ControlFlow};
use std::pin::Pin;
use std::task::Poll;

/// What the database says about itself. The durable point first: it never passes the visible one.
pub(super) fn sample(database: &Database) -> Sample {
    let durable = database.durable_point().0;
    Sample { visible: database.visible_point().0, durable }
}

/// How an operation went.
pub(super) enum Performed<'a> {
    Ended(Outcome),
    /// Its future is still there if the operation is to be held.
    Abandoned(Option<Commitment<'a>>),
}

/// A commit under way.
type Commitment<'a> = Pin<Box<dyn Future<Output = Result<Commit, Error>> + Send + 'a>>;

/// Carries out one operation. `snapshots` are those that the client holds.
pub(super) async fn perform<'a>(
    database: &'a Database,
    snapshots: &mut BTreeMap<u8, Snapshot>,
    operation: &Operation,
) -> Performed<'a> {
    let done: Result<Outcome, Error> = match operation {
        Operation::Write(write) => database.commit(write.to_batch()).await.map(committed),
        Operation::Abandon { write, suspension, is_held } => {
            let mut commit: Commitment<'a> = Box::pin(database.commit(write.to_batch()));
            match up_to_suspension(*suspension, &mut commit).await {
                None => return Performed::Abandoned(is_held.then_some(commit)),
                Some(ended) => ended.map(committed),
            }
        }
        Operation::Transaction(transaction) => transact(database, transaction).await,
        Operation::Read(read) => answer(View::Present(database), read).await.map(Outcome::Answered),
        Operation::Snapshot { slot } => {
            let snapshot = database.snapshot();
            let position = snapshot.position().0;
            snapshots.insert(*slot, snapshot);
            Ok(Outcome::Snapshot { position })
        }
        Operation::SnapshotRead { slot, read } => match snapshots.get(slot) {
            None => Ok(Outcome::Skipped),
            Some(snapshot) => answer(View::Snapshot(snapshot), read).await.map(Outcome::Answered),
        },
        Operation::DropSnapshot { slot } => {
            Ok(snapshots.remove(slot).map_or(Outcome::Skipped, |_| Outcome::Done))
        }
        Operation::Flush => database.flush().await.map(|position| Outcome::Flushed { position: position.0 }),
        Operation::Checkpoint => {
            database.checkpoint().await.map(|position| Outcome::Checkpointed { position: position.0 })
        }
        Operation::Check => check(database).await.map(|findings| Outcome::Checked { findings }),
    };
    let failed = |error: Error| Outcome::Failed { kind: error.kind(), message: error.to_string() };
    Performed::Ended(done.unwrap_or_else(failed))
}

fn committed(commit: Commit) -> Outcome {
    Outcome::Committed { position: commit.position.0, outcomes: commit.outcomes }
}

async fn transact(database: &Database, steps: &Transaction) -> Result<Outcome, Error> {
    let mut transaction = database.transaction();
    transaction.durability(steps.write.durability);
    let mut answers = Vec::new();
    for at in 0..=steps.write.edits.len() {
        for read in steps.reads_behind(at) {
            answers.push(answer(View::Transaction(&mut transaction), read).await?);
        }
        if let Some(edit) = steps.write.edits.get(at) {
            let edited: Result<(), Infallible> = edit.try_for_each(|action| {
                match action {
                    Action::Set(field, value) => transaction.set(edit.key(), field, value),
                    Action::Put(member) => transaction.put(edit.key(), member),
                    Action::Remove(name) => transaction.remove(edit.key(), name),
                    Action::Delete => transaction.delete(edit.key()),
                };
                Ok(())
            });
            let Ok(()) = edited;
        }
    }
    let commit = transaction.commit().await?;
    Ok(Outcome::Transacted { position: commit.position.0, answers })
}

/// Polls a future up to one of its suspensions, counted from 1.
async fn up_to_suspension<F: Future + ?Sized>(
    suspension: u32,
    future: &mut Pin<Box<F>>,
) -> Option<F::Output> {
    let mut left = suspension.max(1);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            left -= 1;
            if left == 0 { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}

/// What the engine's own check finds wrong.
pub(super) async fn check(database: &Database) -> Result<Vec<String>, Error> {
    let report = database.check().await?;
    Ok(report.findings.iter().map(|finding| format!("{}: {}", finding.place, finding.problem)).collect())
}

/// What a read is made on.
enum View<'a> {
    Present(&'a Database),
    Snapshot(&'a Snapshot),
    Transaction(&'a mut ironleaf::Transaction),
}

/// Calls the same method on each.
macro_rules! on {
    ($view:expr, |$it:ident| $call:expr) => {
        match $view {
            View::Present($it) => $call,
            View::Snapshot($it) => $call,
            View::Transaction($it) => $call,
        }
    };
}

async fn answer(view: View<'_>, read: &Read) -> Result<Answer, Error> {
    let answered = match read {
        Read::Get { key, field } => on!(view, |it| it.get(key, field).await).map(Answer::Value),
        Read::Contains { key, name } => on!(view, |it| it.contains(key, name).await).map(Answer::Present),
        Read::Len { key } => on!(view, |it| it.len(key).await).map(Answer::Count),
        Read::Kind { key } => on!(view, |it| it.kind(key).await).map(Answer::Kind),
        Read::Scan { key, from, to, limit, is_reverse } => {
            let lower = from.clone().map_or(Bound::Unbounded, Bound::Included);
            let upper = match to {
                ScanEnd::Open => Bound::Unbounded,
                ScanEnd::Before(name) => Bound::Excluded(name.clone()),
                ScanEnd::With(name) => Bound::Included(name.clone()),
            };
            let limit = limit.map_or(usize::MAX, |limit| limit as usize);
            entries(view, key, (lower, upper), limit, *is_reverse).await.map(Answer::Entries)
        }
        Read::Keys { prefix } => {
            let mut scan = match view {
                View::Present(database) => database.keys(prefix),
                View::Snapshot(snapshot) => snapshot.keys(prefix),
                View::Transaction(_) => unreachable!("the grammar has no such read in a transaction"),
            };
            let mut keys = Vec::new();
            while let Some(key) = scan.next().await? {
                keys.push(key);
            }
            Ok(Answer::Keys(keys))
        }
    };
    match answered {
        Err(error) if error.kind() == ErrorKind::WrongKind => Ok(Answer::WrongKind),
        answered => answered,
    }
}

/// Entries after which a scan is broken off; that of a snapshot is put away, and gone on with from its cursor.
const PIECE: usize = 3;

async fn entries(
    view: View<'_>,
    key: &[u8],
    range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    limit: usize,
    is_reverse: bool,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
    let (resumed_on, is_visited) = match &view {
        View::Snapshot(snapshot) => (Some(*snapshot), false),
        View::Present(_) => (None, true),
        View::Transaction(_) => (None, false),
    };
    let mut scan = on!(view, |it| if is_reverse { it.scan_reverse(key, range) } else { it.scan(key, range) });
    let mut entries = Vec::new();
    // Broken off after every few entries, and gone on with.
    while is_visited && entries.len() < limit {
        let before = entries.len();
        scan.for_each(|name, value| {
            entries.push((name.to_vec(), value.to_vec()));
            if entries.len() == limit || entries.len() - before == PIECE {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .await?;
        if entries.len() - before < PIECE {
            return Ok(entries);
        }
    }
    while entries.len() < limit
        && let Some(entry) = scan.next().await?
    {
        entries.push(entry);
        if entries.len().is_multiple_of(PIECE)
            && let Some(snapshot) = resumed_on
        {
            scan = snapshot.resume(&Cursor::from_bytes(&scan.cursor().to_bytes())?);
        }
    }
    Ok(entries)
}

/// Reads everything. Nothing else may be running. Where `may_lack`, goes on behind what is damaged.
pub(super) async fn read_everything(database: &Database, may_lack: bool) -> Result<Contents, Error> {
    let mut contents = Contents::default();
    let mut keys = database.keys(b"");
    loop {
        let (key, kind) = match keys.next().await {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(contents),
            Err(error) if may_lack && error.kind() == ErrorKind::Corruption => {
                contents.unread.push(error.to_string());
                contents.lacks_keys |= keys.skip_damage().await?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let len = match database.len(&key).await {
            Ok(len) => Some(len),
            Err(error) if may_lack && error.kind() == ErrorKind::Corruption => {
                contents.unread.push(error.to_string());
                None
            }
            Err(error) => return Err(error),
        };
        let mut held = Held { key, kind, len, entries: Vec::new(), lacks_entries: false };
        read_object(database, may_lack, &mut held, &mut contents.unread).await?;
        contents.objects.push(held);
    }
}

async fn read_object(
    database: &Database,
    may_lack: bool,
    held: &mut Held,
    unread: &mut Vec<String>,
) -> Result<(), Error> {
    let everything = (Bound::Unbounded, Bound::Unbounded);
    if !may_lack {
        held.entries = entries(View::Present(database), &held.key, everything, usize::MAX, false).await?;
        return Ok(());
    }
    let mut scan = database.scan(&held.key, ..);
    loop {
        match scan.next().await {
            Ok(Some(entry)) => held.entries.push(entry),
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                unread.push(error.to_string());
                held.lacks_entries |= scan.skip_damage().await?;
            }
            Err(error) => return Err(error),
        }
    }
}
