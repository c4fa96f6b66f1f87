//! A commit, from the batch to its position and its durability.
//!
//! What a batch depends on (the kinds of its keys, the values that counted writes report) is resolved under the log's
//! lock, from memory. What is not in memory ends the attempt: it is fetched without the lock, and the attempt begins
//! again. So a batch is applied whole, at one position, to exactly the state that its outcomes tell of.

use super::engine::{Engine, ReadState};
use super::pace::Admission;
use super::read::{count, look_up, wrong_kind};
use super::transaction::Reads;
use super::types::{Commit, Kind};
use crate::batch::{self, Edit, Op, WriteBatch};
use crate::checkpoint::Command;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Lsn;
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::page::PinnedPages;
use crate::sync::Arc;
use crate::tree::{Attempt, PageRef};
use crate::wal::Room;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// How an attempt under the lock ended.
enum Attempted {
    Committed(Commit),
    /// Pages are needed that are not cached; the state keeps them from being freed.
    NeedsPages(Vec<PageRef>, Arc<ReadState>),
    /// Whether an object is empty must be counted.
    NeedsCount(Question),
    NeedsLogRoom,
    NeedsMemory,
}

/// Whether the object at `key` is empty apart from the names in `without`.
struct Question {
    key: Vec<u8>,
    without: Vec<Vec<u8>>,
    edit: usize,
}

/// The answer to the question of an edit, as of a position.
struct Answer {
    is_empty: bool,
    at: Lsn,
}

/// A batch on its way.
struct Pending {
    payload: Bytes,
    edits: Vec<Edit>,
    /// Indices of counted edits, ascending.
    counted: Vec<usize>,
    answers: BTreeMap<usize, Answer>,
}

/// What the batch itself has done to a key so far.
#[derive(Default)]
struct Overlay<'a> {
    kind: Option<Kind>,
    /// The edit that deleted the object.
    deleted: Option<usize>,
    /// The newest edit of each name since then; kept only for batches with counted edits.
    names: BTreeMap<&'a [u8], usize>,
}

impl Engine {
    /// Commits `batch`; returns once it has reached its level.
    /// If there are `reads`, only if none of them has changed.
    pub(crate) async fn commit(
        &self,
        batch: WriteBatch,
        default: Durability,
        reads: Option<&Reads>,
    ) -> Result<Commit> {
        if let Some(refusal) = batch.refusal(self.options.value_bytes_max) {
            return Err(Error::invalid_input(refusal));
        }
        if self.is_read_only {
            self.ensure_writable()?;
        }
        let level = batch.durability.unwrap_or(default);
        if batch.is_empty() {
            self.log.lock().writable()?;
            return Ok(Commit { position: self.state.load().active.visible(), outcomes: Vec::new() });
        }
        let (payload, counted) = batch.into_parts();
        let edits = batch::edits(&payload).collect::<Result<_, _>>().expect("a batch encodes itself");
        let mut pending = Pending { payload: payload.into(), edits, counted, answers: BTreeMap::new() };
        let bytes = Memtable::batch_bytes(pending.payload.len(), pending.edits.len());
        self.refuse_oversize(pending.payload.len(), bytes)?;
        let mut pages = self.store.cached();
        loop {
            match self.attempt(&pending, reads, bytes, &pages)? {
                Attempted::Committed(commit) => {
                    self.counters.commits.add(1);
                    let level = if planted!("acknowledged-before-sync") {
                        level.min(Durability::Written)
                    } else {
                        level
                    };
                    self.log.reach(commit.position, level).await?;
                    return Ok(commit);
                }
                Attempted::NeedsPages(missing, _state) => {
                    for page in missing {
                        pages.pin(page).await?;
                    }
                    self.refuse_pins_over_budget(&pages)?;
                }
                Attempted::NeedsCount(question) => {
                    reached!("commit counts an object");
                    let state = self.state.load_full();
                    let at = state.active.visible();
                    let (entries, _) =
                        count(&self.store, &state, at, &question.key, &question.without).await?;
                    pending.answers.insert(question.edit, Answer { is_empty: entries == 0, at });
                }
                Attempted::NeedsLogRoom => {
                    reached!("commit waits for log space");
                    self.log.wait_for_room(pending.payload.len(), pending.grows()).await?;
                }
                Attempted::NeedsMemory => {
                    reached!("commit waits for memory");
                    self.wait_for_memory(bytes).await?;
                }
            }
        }
    }

    fn refuse_oversize(&self, payload_bytes: usize, bytes: usize) -> Result<()> {
        let log_max = self.log.payload_bytes_max();
        if payload_bytes > log_max {
            return Err(Error::new(
                ErrorKind::ResourceExhausted,
                format!(
                    "a batch of {payload_bytes} bytes does not fit into a log segment ({log_max}); split it"
                ),
            ));
        }
        let memory_max = self.pace.limit();
        if bytes > memory_max {
            return Err(Error::new(
                ErrorKind::ResourceExhausted,
                format!(
                    "a batch that takes {bytes} bytes does not fit into a memtable ({memory_max}); split it"
                ),
            ));
        }
        Ok(())
    }

    /// A batch that needs more pages at once than memory is there for is refused.
    fn refuse_pins_over_budget(&self, pages: &PinnedPages<'_>) -> Result<()> {
        let (needed, limit) = (pages.pinned_bytes(), self.options.memory_bytes / 2);
        if needed > limit {
            return Err(Error::new(
                ErrorKind::ResourceExhausted,
                format!(
                    "a batch that reads {needed} bytes of pages at once does not fit into memory ({limit}); split it"
                ),
            ));
        }
        Ok(())
    }

    async fn wait_for_memory(&self, bytes: usize) -> Result<()> {
        let is_admitted = || {
            let is_over = self.log.lock().writable().is_err();
            is_over || self.pace.admit(self.state.load().active.bytes(), bytes) == Admission::Yes
        };
        self.pace.wait(is_admitted, || self.ask_for_checkpoint()).await
    }

    fn ask_for_checkpoint(&self) {
        // If the checkpointer has stopped, the database is closed, and whoever waits is told so.
        let _ = self.commands.send(Command::Checkpoint(None));
    }

    /// Resolves and applies the batch, if everything that it needs is at hand.
    fn attempt(
        &self,
        pending: &Pending,
        reads: Option<&Reads>,
        bytes: usize,
        pages: &PinnedPages<'_>,
    ) -> Result<Attempted> {
        let mut tail = self.log.lock();
        tail.writable()?;
        if tail.room(pending.payload.len(), pending.grows()) == Room::NotYet {
            return Ok(Attempted::NeedsLogRoom);
        }
        let state = self.state.load();
        let active = &state.active;
        if self.pace.admit(active.bytes(), bytes) == Admission::Later {
            return Ok(Attempted::NeedsMemory);
        }
        if let Some(reads) = reads {
            let missing = reads.check(&state, pages)?;
            if !missing.is_empty() {
                return Ok(Attempted::NeedsPages(missing, state.clone()));
            }
        }
        let outcomes = match pending.resolve(&state, pages)? {
            Resolved::Outcomes(outcomes) => outcomes,
            Resolved::Missing(missing) => return Ok(Attempted::NeedsPages(missing, state.clone())),
            Resolved::Unclear(question) => return Ok(Attempted::NeedsCount(question)),
        };
        let position = tail.append(&self.log, &pending.payload);
        active.apply(position, &pending.payload).expect("a batch encodes itself");
        if self.pace.wants_checkpoint(active.bytes()) {
            self.ask_for_checkpoint();
        }
        Ok(Attempted::Committed(Commit { position, outcomes }))
    }
}

impl Pending {
    /// Whether there may be more to store afterwards.
    fn grows(&self) -> bool {
        self.edits.iter().any(|edit| matches!(edit.op, Op::Set | Op::Put))
    }
}

/// What a batch would do to a state.
enum Resolved {
    Outcomes(Vec<Option<Vec<u8>>>),
    /// Pages that are not cached, each once; what depends on them was passed over.
    Missing(Vec<PageRef>),
    Unclear(Question),
}

impl Pending {
    fn key(&self, edit: usize) -> &[u8] {
        &self.payload[self.edits[edit].key.clone()]
    }

    fn name(&self, edit: usize) -> &[u8] {
        &self.payload[self.edits[edit].name.clone()]
    }

    /// Checks every edit against the state and the edits before it; an error means that nothing is applied.
    fn resolve(&self, state: &ReadState, pages: &PinnedPages<'_>) -> Result<Resolved> {
        let mut overlays: BTreeMap<&[u8], Overlay<'_>> = BTreeMap::new();
        let mut outcomes = Vec::with_capacity(self.counted.len());
        let is_counting = !self.counted.is_empty();
        let mut missing = BTreeSet::new();
        for (index, edit) in self.edits.iter().enumerate() {
            let overlay = overlays.entry(self.key(index)).or_default();
            let wanted = match edit.op {
                Op::Set => Some(Kind::Hash),
                Op::Put => Some(Kind::Set),
                Op::Remove => None,
                Op::Delete => {
                    *overlay = Overlay { deleted: Some(index), ..Overlay::default() };
                    continue;
                }
            };
            if let Some(wanted) = wanted
                && overlay.kind != Some(wanted)
            {
                match self.check_kind(state, pages, index, overlay, wanted)? {
                    Checked::Fits => overlay.kind = Some(wanted),
                    Checked::Missing(page) => drop(missing.insert(page)),
                    Checked::Unclear(question) => return Ok(Resolved::Unclear(question)),
                }
            }
            if self.counted.get(outcomes.len()) == Some(&index) {
                match self.value_before(state, pages, index, overlay)? {
                    Attempt::Done(value) => outcomes.push(value),
                    Attempt::Missing(page) => {
                        missing.insert(page);
                        outcomes.push(None);
                    }
                }
            }
            if is_counting {
                overlay.names.insert(self.name(index), index);
            }
        }
        if !missing.is_empty() {
            return Ok(Resolved::Missing(missing.into_iter().collect()));
        }
        Ok(Resolved::Outcomes(outcomes))
    }

    /// Whether the key of edit `index` may be used as `wanted`: it holds that, or nothing.
    fn check_kind(
        &self,
        state: &ReadState,
        pages: &PinnedPages<'_>,
        index: usize,
        overlay: &Overlay<'_>,
        wanted: Kind,
    ) -> Result<Checked> {
        let key = self.key(index);
        let holds = match (overlay.kind, overlay.deleted) {
            (Some(kind), _) => Some(kind),
            (None, Some(_)) => None,
            (None, None) => match stored_kind(state, pages, key)? {
                Attempt::Done(kind) => kind,
                Attempt::Missing(page) => return Ok(Checked::Missing(page)),
            },
        };
        let Some(holds) = holds.filter(|holds| *holds != wanted) else { return Ok(Checked::Fits) };
        // The key held the other kind; if its last entry is gone, it is free.
        let mut names = BTreeMap::new();
        for earlier in overlay.deleted.map_or(0, |deleted| deleted + 1)..index {
            if self.key(earlier) == key {
                names.insert(self.name(earlier), self.edits[earlier].op != Op::Remove);
            }
        }
        if names.values().any(|is_present| *is_present) {
            return Err(wrong_kind(key, holds, wanted));
        }
        if overlay.deleted.is_some() {
            return Ok(Checked::Fits);
        }
        match self.answers.get(&index).filter(|answer| is_unchanged_since(state, key, answer.at)) {
            Some(Answer { is_empty: true, .. }) => Ok(Checked::Fits),
            Some(Answer { is_empty: false, .. }) => Err(wrong_kind(key, holds, wanted)),
            None => Ok(Checked::Unclear(Question {
                key: key.to_vec(),
                without: names.into_keys().map(<[u8]>::to_vec).collect(),
                edit: index,
            })),
        }
    }

    fn value_before(
        &self,
        state: &ReadState,
        pages: &PinnedPages<'_>,
        index: usize,
        overlay: &Overlay<'_>,
    ) -> Result<Attempt<Option<Vec<u8>>>> {
        let name = self.name(index);
        if let Some(earlier) = overlay.names.get(name) {
            let edit = &self.edits[*earlier];
            let value = (edit.op != Op::Remove).then(|| self.payload[edit.value.clone()].to_vec());
            return Ok(Attempt::Done(value));
        }
        if overlay.deleted.is_some() {
            return Ok(Attempt::Done(None));
        }
        let mut value = None;
        let at = state.active.visible();
        let looked =
            look_up(pages, state, at, (self.key(index), name), &mut |found| value = Some(found.to_vec()))?;
        Ok(match looked {
            Attempt::Done(looked) => Attempt::Done(looked.is_present.then(|| value.unwrap_or_default())),
            Attempt::Missing(page) => Attempt::Missing(page),
        })
    }
}

/// Whether a key may be used as a kind.
enum Checked {
    Fits,
    Missing(PageRef),
    Unclear(Question),
}

/// The kind of the object at `key`, also if its last entry is gone; `None` if the key surely holds nothing.
fn stored_kind(state: &ReadState, pages: &PinnedPages<'_>, key: &[u8]) -> Result<Attempt<Option<Kind>>> {
    let at = state.active.visible();
    let told =
        state.memtables().filter_map(|memtable| memtable.object(key)).find_map(|object| object.kind(at));
    if let Some(kind) = told {
        return Ok(Attempt::Done(kind));
    }
    super::read::catalog_kind(pages, &state.root, key)
}

/// Whether no edit behind `at` touches `key`.
fn is_unchanged_since(state: &ReadState, key: &[u8], at: Lsn) -> bool {
    let edited =
        state.memtables().filter_map(|memtable| memtable.object(key)).any(|object| object.last_edit() > at);
    state.root.lsn <= at && !edited
}
