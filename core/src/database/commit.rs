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
    /// Whether objects are empty must be counted.
    NeedsCounts(Vec<Question>),
    NeedsLogRoom,
    NeedsMemory,
}

/// Whether the object at `key` is empty apart from the names in `without`: those that a batch edits before it first
/// changes the kind. Later changes only have more of them, so they need not ask again.
struct Question {
    key: Vec<u8>,
    without: Vec<Vec<u8>>,
}

/// The answer to the question about a key, as of a position.
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
    answers: BTreeMap<Vec<u8>, Answer>,
}

/// What the batch itself has done to a key so far.
#[derive(Default)]
struct Overlay<'a> {
    kind: Option<Kind>,
    /// What is stored does not count: the object was deleted, or is empty but for names that were edited.
    hides_stored: bool,
    /// The newest edit of each name since a deletion, if names are tracked, and how many of them leave something there.
    names: BTreeMap<&'a [u8], usize>,
    present: usize,
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
                    self.reach(commit.position, level).await?;
                    return Ok(commit);
                }
                Attempted::NeedsPages(missing, _state) => {
                    for page in missing {
                        pages.pin(page).await?;
                    }
                    if pending.edits.len() > 1 {
                        self.refuse_pins_over_budget(&pages)?;
                    }
                }
                Attempted::NeedsCounts(questions) => {
                    reached!("commit counts an object");
                    let state = self.state.load_full();
                    let at = state.active.visible();
                    for Question { key, without } in questions {
                        let (entries, _) = count(&self.store, &state, at, &key, &without).await?;
                        pending.answers.insert(key, Answer { is_empty: entries == 0, at });
                    }
                    self.env.point("objects counted").await;
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

    /// Waits until `position` has reached `level`.
    pub(crate) async fn reach(&self, position: Lsn, level: Durability) -> Result<()> {
        self.log.reach(position, level).await?;
        if self.log.takes_note() {
            // If the checkpointer has stopped it has noted the end of the log.
            let _ = self.commands.send(Command::NoteLog);
        }
        Ok(())
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

    /// A batch that needs more pages at once than memory is there for is refused. One edit needs few, and cannot be split.
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
            Resolved::Unclear(questions) => return Ok(Attempted::NeedsCounts(questions)),
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
    Unclear(Vec<Question>),
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
        // Most batches neither count nor change a kind, and get by without their names.
        let tracks_names = !self.counted.is_empty();
        match self.resolve_tracking(state, pages, tracks_names)? {
            Some(resolved) => Ok(resolved),
            None => Ok(self.resolve_tracking(state, pages, true)?.expect("names are tracked")),
        }
    }

    /// `None` if names must be tracked and are not.
    fn resolve_tracking(
        &self,
        state: &ReadState,
        pages: &PinnedPages<'_>,
        tracks_names: bool,
    ) -> Result<Option<Resolved>> {
        let mut overlays: BTreeMap<&[u8], Overlay<'_>> = BTreeMap::new();
        let mut outcomes = Vec::with_capacity(self.counted.len());
        let mut missing = BTreeSet::new();
        let mut questions = Vec::new();
        for (index, edit) in self.edits.iter().enumerate() {
            let overlay = overlays.entry(self.key(index)).or_default();
            let wanted = match edit.op {
                Op::Set => Some(Kind::Hash),
                Op::Put => Some(Kind::Set),
                Op::Remove => None,
                Op::Delete => {
                    *overlay = Overlay { hides_stored: true, ..Overlay::default() };
                    continue;
                }
            };
            if let Some(wanted) = wanted
                && overlay.kind != Some(wanted)
            {
                match self.check_kind(state, pages, index, overlay, wanted)? {
                    Checked::Fits => overlay.kind = Some(wanted),
                    Checked::Missing(page) => drop(missing.insert(page)),
                    Checked::Changes(_) if !tracks_names => return Ok(None),
                    Checked::Changes(holds) => {
                        let key = self.key(index);
                        if overlay.present > 0 {
                            return Err(wrong_kind(key, holds, wanted));
                        }
                        if !overlay.hides_stored {
                            match self.answer(state, key) {
                                Some(true) => {}
                                Some(false) => return Err(wrong_kind(key, holds, wanted)),
                                // If it turns out not to be empty, the batch will be refused, whatever is behind.
                                None => questions.push(overlay.question(key)),
                            }
                            overlay.hides_stored = true;
                        }
                        overlay.kind = Some(wanted);
                    }
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
            if tracks_names {
                let is_present = |edit: usize| usize::from(self.edits[edit].op != Op::Remove);
                let before = overlay.names.insert(self.name(index), index);
                overlay.present += is_present(index);
                overlay.present -= before.map_or(0, is_present);
            }
        }
        Ok(Some(if !missing.is_empty() {
            Resolved::Missing(missing.into_iter().collect())
        } else if !questions.is_empty() {
            Resolved::Unclear(questions)
        } else {
            Resolved::Outcomes(outcomes)
        }))
    }

    /// Whether the key of edit `index` holds `wanted`, or nothing.
    fn check_kind(
        &self,
        state: &ReadState,
        pages: &PinnedPages<'_>,
        index: usize,
        overlay: &Overlay<'_>,
        wanted: Kind,
    ) -> Result<Checked> {
        let key = self.key(index);
        let holds = match (overlay.kind, overlay.hides_stored) {
            (Some(kind), _) => Some(kind),
            (None, true) => None,
            (None, false) => match stored_kind(state, pages, key)? {
                Attempt::Done(kind) => kind,
                Attempt::Missing(page) => return Ok(Checked::Missing(page)),
            },
        };
        Ok(holds.filter(|holds| *holds != wanted).map_or(Checked::Fits, Checked::Changes))
    }

    /// Whether the object at `key` is empty apart from the names that the batch edits before it first changes the kind;
    /// `None` if nobody knows.
    fn answer(&self, state: &ReadState, key: &[u8]) -> Option<bool> {
        let answer = self.answers.get(key).filter(|answer| is_unchanged_since(state, key, answer.at));
        answer.map(|answer| answer.is_empty)
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
        if overlay.hides_stored {
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
    /// It holds, or held, another: the key is free if its last entry is gone.
    Changes(Kind),
}

impl Overlay<'_> {
    fn question(&self, key: &[u8]) -> Question {
        Question { key: key.to_vec(), without: self.names.keys().map(|name| name.to_vec()).collect() }
    }
}

/// The kind of the object at `key`, also if its last entry is gone; `None` if the key surely holds nothing.
fn stored_kind(state: &ReadState, pages: &PinnedPages<'_>, key: &[u8]) -> Result<Attempt<Option<Kind>>> {
    let at = state.active.visible();
    if let Some(kind) = super::read::told_kind(state, at, key) {
        return Ok(Attempt::Done(kind));
    }
    super::read::catalog_kind(pages, &state.root, key)
}

/// Whether no edit behind `at` touches `key`.
fn is_unchanged_since(state: &ReadState, key: &[u8], at: Lsn) -> bool {
    let edited =
        state.memtables().filter_map(|memtable| memtable.object(key)).any(|object| object.last_edit() > at);
    (state.root.lsn <= at && !edited) || planted!("count-not-checked-again")
}
