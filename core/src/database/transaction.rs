//! Optimistic transactions.
//!
//! A transaction reads a snapshot, with its own writes over it, and remembers what it read. Its commit succeeds only if
//! all of that is still so, checked under the lock that gives commits their order: then reading at the commit's own
//! position would have given the same, so the transaction is as if it had run there, alone (Kung and Robinson, "On
//! Optimistic Methods for Concurrency Control", 1981).
//!
//! | read | what conflicts |
//! |---|---|
//! | [`contains`](Transaction::contains) | a later edit of that name, or a deletion of its object |
//! | [`get`](Transaction::get) | the same, and any later edit of an object that is a set by then |
//! | [`len`](Transaction::len), [`kind`](Transaction::kind), [`scan`](Transaction::scan) | any later edit of the object |
//!
//! Later edits are looked for in the memtables. Those that a checkpoint has taken out of them meanwhile are noticed by
//! the object's record in the catalog, which changes with every edit of the object: then each read of the object counts
//! as one of the whole.

use super::engine::{ReadState, Running};
use super::range::NameRange;
use super::read::record_in;
use super::scan::Scan;
use super::snapshot::Snapshot;
use super::types::{Commit, Kind};
use crate::batch::WriteBatch;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Lsn;
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::page::PinnedPages;
use crate::sync::Arc;
use crate::tree::{Attempt, PageRef};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Reads and writes that take effect together or not at all; serialisable.
///
/// Reads see the database as it was when the transaction began, and the transaction's own writes. Nothing that it does
/// is seen by others before [`commit`](Self::commit), and dropping it undoes it. Nobody waits for anybody: of two
/// transactions that get in each other's way, the later to commit gets `Conflict` and can be run again.
///
/// Its writes and the names that it read are in the caller's memory, outside of the database's budget.
pub struct Transaction {
    running: Arc<Running>,
    durability: Durability,
    snapshot: Snapshot,
    reads: BTreeMap<Vec<u8>, Read>,
    writes: WriteBatch,
    /// The writes in the form in which reads look through them.
    overlay: Option<Arc<Memtable>>,
}

/// What a transaction read of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Read {
    Names {
        names: BTreeSet<Vec<u8>>,
        /// They were asked for as fields: whether the object is a hash matters too.
        are_fields: bool,
    },
    Whole,
}

/// What has to be unchanged for a commit to succeed.
pub(crate) struct Reads {
    snapshot: Snapshot,
    objects: BTreeMap<Vec<u8>, Read>,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("position", &self.position())
            .field("writes", &self.writes.len())
            .finish_non_exhaustive()
    }
}

impl Transaction {
    pub(super) fn new(running: Arc<Running>, durability: Durability) -> Self {
        let snapshot = Snapshot::new(running.clone());
        let writes = WriteBatch::new();
        Self { running, durability, snapshot, reads: BTreeMap::new(), writes, overlay: None }
    }

    /// The position at which it reads.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.snapshot.position()
    }

    /// Commits at `level` instead of that of the handle it was begun on.
    pub fn durability(&mut self, level: Durability) -> &mut Self {
        self.durability = level;
        self
    }

    /// The value of a field of a hash. `WrongKind` if the key holds a set.
    pub async fn get(&mut self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let (key, field) = (key.as_ref(), field.as_ref());
        self.note_name(key, field, true);
        let got = self.view().get(key, field).await;
        if got.as_ref().is_err_and(|error| error.kind() == ErrorKind::WrongKind) {
            // Every member has a part in that answer.
            self.note_whole(key);
        }
        got
    }

    /// Whether a field or member exists.
    pub async fn contains(&mut self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Result<bool> {
        let (key, name) = (key.as_ref(), name.as_ref());
        self.note_name(key, name, false);
        self.view().contains(key, name).await
    }

    /// Number of fields or members; 0 for a key that holds nothing.
    pub async fn len(&mut self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.note_whole(key.as_ref());
        self.view().len(key).await
    }

    /// What the key holds; `None` if it holds nothing.
    pub async fn kind(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Kind>> {
        self.note_whole(key.as_ref());
        self.view().kind(key).await
    }

    /// Scans the fields or members of an object whose names are in `range`, in the order of their bytes, with the writes
    /// up to now.
    pub fn scan(&mut self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        self.note_whole(key.as_ref());
        self.view().scan(key, range)
    }

    /// The same from the last name to the first.
    pub fn scan_reverse(&mut self, key: impl AsRef<[u8]>, range: impl NameRange) -> Scan {
        self.note_whole(key.as_ref());
        self.view().scan_reverse(key, range)
    }

    /// Sets a field of a hash.
    pub fn set(
        &mut self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.write(|batch| batch.set(&key, &field, &value))
    }

    /// Puts a member into a set.
    pub fn put(&mut self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> &mut Self {
        self.write(|batch| batch.put(&key, &member))
    }

    /// Removes a field or member.
    pub fn remove(&mut self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> &mut Self {
        self.write(|batch| batch.remove(&key, &name))
    }

    /// Deletes an object of any size.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.write(|batch| batch.delete(&key))
    }

    /// Makes the writes take effect, if nothing that was read has changed. A transaction without writes always succeeds:
    /// what it read was so at [`position`](Self::position).
    ///
    /// Dropping the future does it whole or not at all, as for [`Database::commit`](crate::Database::commit).
    ///
    /// # Errors
    /// `Conflict`: nothing was done; begin again. Otherwise as for [`Database::commit`](crate::Database::commit).
    pub async fn commit(self) -> Result<Commit> {
        if self.writes.is_empty() {
            self.running.engine.ensure_open()?;
            return Ok(Commit { position: self.position(), outcomes: Vec::new() });
        }
        let reads = Reads { snapshot: self.snapshot, objects: self.reads };
        self.running.engine.commit(self.writes, self.durability, Some(&reads)).await
    }

    fn view(&self) -> Snapshot {
        self.snapshot.with_overlay(self.overlay.clone())
    }

    fn note_name(&mut self, key: &[u8], name: &[u8], is_field: bool) {
        let nothing = || Read::Names { names: BTreeSet::new(), are_fields: false };
        if let Read::Names { names, are_fields } = self.reads.entry(key.to_vec()).or_insert_with(nothing) {
            names.insert(name.to_vec());
            *are_fields |= is_field;
        }
    }

    fn note_whole(&mut self, key: &[u8]) {
        self.reads.insert(key.to_vec(), Read::Whole);
    }

    fn write(&mut self, write: impl Fn(&mut WriteBatch) -> &mut WriteBatch) -> &mut Self {
        write(&mut self.writes);
        let mut edits = WriteBatch::new();
        // A scan that is under way keeps the writes that it began with.
        let overlay = match self.overlay.take() {
            Some(overlay) if Arc::strong_count(&overlay) == 1 => {
                write(&mut edits);
                overlay
            }
            _ => {
                edits = self.writes.clone();
                Arc::new(Memtable::new(self.position(), self.running.engine.memtable_seed))
            }
        };
        // Reads are as of the snapshot's position, so that is where the writes stand.
        let (payload, _) = edits.into_parts();
        overlay.apply(self.position(), &payload.into()).expect("a batch encodes itself");
        self.overlay = Some(overlay);
        self
    }
}

impl Reads {
    /// Refuses if anything that was read may have changed before `state`. Names the pages that are missing to tell.
    pub(super) fn check(&self, state: &ReadState, pages: &PinnedPages<'_>) -> Result<Vec<PageRef>> {
        let at = self.snapshot.position();
        let mut missing = Vec::new();
        for (key, read) in &self.objects {
            if is_edited_since(state, key, read, at) && !planted!("transaction-reads-unchecked") {
                return Err(conflict(key));
            }
            if state.root.lsn > at {
                match self.is_record_unchanged(state, pages, key)? {
                    Attempt::Done(true) => {}
                    Attempt::Done(false) => return Err(conflict(key)),
                    Attempt::Missing(page) => missing.push(page),
                }
            }
        }
        missing.sort_unstable();
        missing.dedup();
        Ok(missing)
    }

    /// Whether the catalog under `state` has the same record of `key` as the snapshot's, which must be as of the
    /// snapshot's position.
    fn is_record_unchanged(
        &self,
        state: &ReadState,
        pages: &PinnedPages<'_>,
        key: &[u8],
    ) -> Result<Attempt<bool>> {
        let (then, _) = self.snapshot.state();
        if then.memtables().any(|memtable| memtable.object(key).is_some()) {
            return Ok(Attempt::Done(false));
        }
        let then = match record_in(pages, &then.root, key)? {
            Attempt::Done(record) => record,
            Attempt::Missing(page) => return Ok(Attempt::Missing(page)),
        };
        Ok(match record_in(pages, &state.root, key)? {
            Attempt::Done(now) => Attempt::Done(now == then),
            Attempt::Missing(page) => Attempt::Missing(page),
        })
    }
}

fn is_edited_since(state: &ReadState, key: &[u8], read: &Read, at: Lsn) -> bool {
    let mut objects = state.memtables().filter_map(|memtable| memtable.object(key));
    match read {
        Read::Whole => objects.any(|object| object.last_edit() > at),
        Read::Names { names, are_fields } => objects.any(|object| {
            object.last_edit() > at
                && (object.deleted_within(at, Lsn::MAX)
                    || (*are_fields && object.kind(Lsn::MAX) == Some(Some(Kind::Set)))
                    || names.iter().any(|name| object.is_edited_since(name, at)))
        }),
    }
}

#[cold]
fn conflict(key: &[u8]) -> Error {
    let message = format!(
        "what the transaction read of key \"{}\" was changed by another; run it again from its start",
        key.escape_ascii()
    );
    Error::new(ErrorKind::Conflict, message)
}
