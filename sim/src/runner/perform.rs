//! Carries out operations through the engine's public interface.

use ironleaf::{Commit, Database, Error, ErrorKind, Snapshot};
use ironleaf_model::operation::ScanEnd;
use ironleaf_model::{Answer, Contents, Held, Operation, Outcome, Read, Sample};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Bound;
use std::pin::pin;
use std::task::Poll;

/// What the database says about itself. The durable point first: it never passes the visible one.
pub(super) fn sample(database: &Database) -> Sample {
    let durable = database.durable_point().0;
    Sample { visible: database.visible_point().0, durable }
}

/// Carries out one operation. `snapshots` are those that the client holds. `None` if it was abandoned.
pub(super) async fn perform(
    database: &Database,
    snapshots: &mut BTreeMap<u8, Snapshot>,
    operation: &Operation,
) -> Option<Outcome> {
    let done: Result<Outcome, Error> = match operation {
        Operation::Write(write) => database.commit(write.to_batch()).await.map(committed),
        Operation::Abandon { write, suspension } => {
            match up_to_suspension(*suspension, database.commit(write.to_batch())).await {
                None => return None,
                Some(ended) => ended.map(committed),
            }
        }
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
        Operation::Checkpoint => database.checkpoint().await.map(|()| Outcome::Done),
        Operation::Check => check(database).await.map(|findings| Outcome::Checked { findings }),
    };
    Some(done.unwrap_or_else(|error| Outcome::Failed { kind: error.kind(), message: error.to_string() }))
}

fn committed(commit: Commit) -> Outcome {
    Outcome::Committed { position: commit.position.0, outcomes: commit.outcomes }
}

/// Drops a future at one of its suspensions, counted from 1.
async fn up_to_suspension<T>(suspension: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
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
#[derive(Clone, Copy)]
enum View<'a> {
    Present(&'a Database),
    Snapshot(&'a Snapshot),
}

/// Calls the same method on either.
macro_rules! on {
    ($view:expr, |$it:ident| $call:expr) => {
        match $view {
            View::Present($it) => $call,
            View::Snapshot($it) => $call,
        }
    };
}

async fn answer(view: View<'_>, read: &Read) -> Result<Answer, Error> {
    let answered = match read {
        Read::Get { key, field } => on!(view, |it| it.get(key, field).await).map(Answer::Value),
        Read::Contains { key, name } => on!(view, |it| it.contains(key, name).await).map(Answer::Present),
        Read::Len { key } => on!(view, |it| it.len(key).await).map(Answer::Count),
        Read::Kind { key } => on!(view, |it| it.kind(key).await).map(Answer::Kind),
        Read::Scan { key, from, to, limit } => {
            let lower = from.clone().map_or(Bound::Unbounded, Bound::Included);
            let upper = match to {
                ScanEnd::Open => Bound::Unbounded,
                ScanEnd::Before(name) => Bound::Excluded(name.clone()),
                ScanEnd::With(name) => Bound::Included(name.clone()),
            };
            let limit = limit.map_or(usize::MAX, |limit| limit as usize);
            entries(view, key, (lower, upper), limit).await.map(Answer::Entries)
        }
        Read::Keys { prefix } => {
            let mut scan = on!(view, |it| it.keys(prefix));
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

async fn entries(
    view: View<'_>,
    key: &[u8],
    range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    limit: usize,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
    let mut scan = on!(view, |it| it.scan(key, range));
    let mut entries = Vec::new();
    while entries.len() < limit
        && let Some(entry) = scan.next().await?
    {
        entries.push(entry);
    }
    Ok(entries)
}

/// Reads everything. Nothing else may be running.
pub(super) async fn read_everything(database: &Database) -> Result<Contents, Error> {
    let mut contents = Contents::default();
    let mut keys = database.keys(b"");
    while let Some((key, kind)) = keys.next().await? {
        let len = database.len(&key).await?;
        let everything = (Bound::Unbounded, Bound::Unbounded);
        let entries = entries(View::Present(database), &key, everything, usize::MAX).await?;
        contents.0.push(Held { key, kind, len, entries });
    }
    Ok(contents)
}
