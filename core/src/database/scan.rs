//! Scans: streams in order, merged from the layers, a leaf at a time.

use super::cursor::Cursor;
use super::engine::ReadState;
use super::range::{Bounds, as_slice, is_after, is_before, is_empty_range};
use super::read::base_record;
use super::snapshot::Snapshot;
use super::types::Kind;
use crate::catalog::{self, Body, ObjectRecord, damaged_record};
use crate::codec::Malformed;
use crate::error::Result;
use crate::ids::Lsn;
use crate::memtable::{Base, FieldRef, Presence};
use crate::options::check_names;
use crate::tree::{self, Behind, PageRef};
use std::collections::VecDeque;
use std::fmt;
use std::ops::{Bound, ControlFlow};

/// Which end a scan begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the first name to the last.
    Forward,
    /// From the last name to the first.
    Reverse,
}

/// A running scan over the fields or members of one object, as of one position. Holds one leaf at a time.
pub struct Scan {
    snapshot: Snapshot,
    key: Vec<u8>,
    /// What is left.
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    direction: Direction,
    layers: Option<Layers>,
    is_done: bool,
    ready: VecDeque<(Vec<u8>, Vec<u8>)>,
}

/// What the scan merges; made anew when a checkpoint hands the snapshot a root of its own.
struct Layers {
    version: u64,
    /// The edits that are left, in the order of the scan: which memtable (0 the newest), and which field in it.
    edits: Vec<(u8, u32)>,
    next_edit: usize,
    base: BaseEntries,
}

enum BaseEntries {
    None,
    Inline(Kind, Vec<u8>),
    Tree(PageRef),
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

impl Scan {
    pub(super) fn new(snapshot: Snapshot, key: &[u8], (from, to): Bounds, direction: Direction) -> Self {
        let is_done = is_empty_range(&from, &to);
        Self {
            snapshot,
            key: key.to_vec(),
            from,
            to,
            direction,
            layers: None,
            is_done,
            ready: VecDeque::new(),
        }
    }

    /// Where the scan is: [`resume`](crate::Snapshot::resume) goes on there, on any snapshot, in this process or
    /// another.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        let (mut from, mut to) = (self.from.clone(), self.to.clone());
        let mut is_done = self.is_done;
        if let Some((name, _)) = self.ready.front() {
            is_done = false;
            match self.direction {
                Direction::Forward => from = Bound::Included(name.clone()),
                Direction::Reverse => to = Bound::Included(name.clone()),
            }
        }
        Cursor { key: self.key.clone(), range: (!is_done).then_some((from, to)), direction: self.direction }
    }

    /// The next name and value (empty for a member of a set); `None` at the end.
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        while self.ready.is_empty() && !self.is_done {
            let mut ready = std::mem::take(&mut self.ready);
            let filled = self
                .advance(&mut |name, value| {
                    ready.push_back((name.to_vec(), value.to_vec()));
                    ControlFlow::Continue(())
                })
                .await;
            self.ready = ready;
            let _ = filled?;
        }
        self.snapshot.engine().ensure_open()?;
        Ok(self.ready.pop_front())
    }

    /// Gives every remaining entry to `visit`, borrowed, until it breaks or the end is reached. After a break the scan
    /// goes on behind the entry that was given last.
    pub async fn for_each(
        &mut self,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        self.snapshot.engine().ensure_open()?;
        while let Some((name, value)) = self.ready.pop_front() {
            if visit(&name, &value).is_break() {
                return Ok(());
            }
        }
        while !self.is_done {
            if self.advance(&mut visit).await?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Goes on behind what cannot be read, after an error that says so. What later writes have put there is given all
    /// the same, as far as it is in memory. `false` if everything on the way can be read: the next call tries again.
    ///
    /// # Errors
    /// Those of a read that are not about damage.
    pub async fn skip_damage(&mut self) -> Result<bool> {
        let snapshot = self.snapshot.clone();
        let engine = snapshot.engine();
        engine.ensure_open()?;
        let (state, version) = snapshot.state();
        let mut layers = match self.make_layers(&state, version).await {
            Ok(layers) => layers,
            Err(error) if error.is_damage() => {
                let edits = self.edits(&state);
                self.layers = Some(Layers { version, edits, next_edit: 0, base: BaseEntries::None });
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        let behind = match &layers.base {
            BaseEntries::None => Behind::NotDamaged,
            BaseEntries::Inline(kind, body) if catalog::entries(*kind, body).all(|entry| entry.is_ok()) => {
                Behind::NotDamaged
            }
            BaseEntries::Inline(..) => Behind::End,
            BaseEntries::Tree(root) => match self.direction {
                Direction::Forward => {
                    tree::behind_damage(&*engine.store, *root, as_slice(&self.from)).await?
                }
                Direction::Reverse => {
                    tree::behind_damage_reverse(&*engine.store, *root, as_slice(&self.to)).await?
                }
            },
        };
        match (behind, self.direction) {
            (Behind::NotDamaged, _) => return Ok(false),
            (Behind::End, _) => layers.base = BaseEntries::None,
            (Behind::At(bound), Direction::Forward) => self.from = Bound::Included(bound),
            (Behind::At(bound), Direction::Reverse) => self.to = Bound::Excluded(bound),
        }
        self.layers = Some(layers);
        Ok(true)
    }

    /// Gives names and values, in order, of what one leaf and the edits beside it hold. `Break` stops the scan behind
    /// the entry that was given.
    async fn advance(
        &mut self,
        visit: &mut (impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send),
    ) -> Result<ControlFlow<()>> {
        let snapshot = self.snapshot.clone();
        let engine = snapshot.engine();
        engine.ensure_open()?;
        check_names(&self.key, &[])?;
        let (state, version) = snapshot.state();
        let at = snapshot.position();
        if self.layers.as_ref().is_none_or(|layers| layers.version != version) {
            self.layers = Some(self.make_layers(&state, version).await?);
        }
        let layers = self.layers.as_mut().expect("just made");
        let mut merge = Merge {
            state: &state,
            at,
            edits: &layers.edits,
            next: layers.next_edit,
            range: (&self.from, &self.to),
            direction: self.direction,
            visit,
            resume: None,
        };
        let mut next_leaf = None;
        match &layers.base {
            BaseEntries::None => {}
            BaseEntries::Inline(kind, body) => {
                merge.inline(*kind, body).map_err(|malformed| damaged_record(&self.key, malformed))?;
            }
            BaseEntries::Tree(root) => {
                let mut scratch = Vec::new();
                let (from, to, direction) = (as_slice(&self.from), as_slice(&self.to), self.direction);
                let end = engine
                    .store
                    .resolve(|pages| {
                        let visit = &mut |name: &[u8], value: &[u8]| merge.base_entry(name, value);
                        match direction {
                            Direction::Forward => tree::scan_leaf(pages, *root, from, &mut scratch, visit),
                            Direction::Reverse => {
                                tree::scan_leaf_reverse(pages, *root, to, &mut scratch, visit)
                            }
                        }
                    })
                    .await?;
                next_leaf = end.next.filter(|_| !end.stopped);
            }
        }
        if merge.resume.is_none() {
            let _ = merge.edits_up_to_leaf(next_leaf.as_deref());
        }
        layers.next_edit = merge.next;
        let has_enough = matches!(merge.resume, Some(Stop::After(_)));
        let rest = match merge.resume {
            Some(Stop::After(name)) => Some(Bound::Excluded(name)),
            Some(Stop::End) => None,
            None => next_leaf.map(|bound| match self.direction {
                Direction::Forward => Bound::Included(bound),
                Direction::Reverse => Bound::Excluded(bound),
            }),
        };
        match (rest, self.direction) {
            (None, _) => self.is_done = true,
            (Some(bound), Direction::Forward) => self.from = bound,
            (Some(bound), Direction::Reverse) => self.to = bound,
        }
        Ok(if has_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// The edits that are left, in the order of the scan.
    fn edits(&self, state: &ReadState) -> Vec<(u8, u32)> {
        let at = self.snapshot.position();
        let mut edits = collect_edits(state, at, &self.key, &self.from, &self.to);
        if self.direction == Direction::Reverse {
            edits.reverse();
        }
        edits
    }

    async fn make_layers(&self, state: &ReadState, version: u64) -> Result<Layers> {
        let at = self.snapshot.position();
        let engine = self.snapshot.engine();
        let edits = self.edits(state);
        let record = base_record(&engine.store, state, at, &self.key).await?;
        let base = match &record {
            None => BaseEntries::None,
            Some(bytes) => {
                let record =
                    ObjectRecord::decode(bytes).map_err(|malformed| damaged_record(&self.key, malformed))?;
                match record.body {
                    Body::Inline(body) => BaseEntries::Inline(record.kind, body.to_vec()),
                    Body::Tree(root) => BaseEntries::Tree(root),
                }
            }
        };
        Ok(Layers { version, edits, next_edit: 0, base })
    }
}

/// The names within the bounds that the memtables have a word on, in order, the newest word on each.
fn collect_edits(
    state: &ReadState,
    at: Lsn,
    key: &[u8],
    from: &Bound<Vec<u8>>,
    to: &Bound<Vec<u8>>,
) -> Vec<(u8, u32)> {
    let mut edits = Vec::new();
    for (layer, memtable) in state.memtables().enumerate() {
        let Some(object) = memtable.object(key) else { continue };
        for field in object.fields() {
            let name = field.name();
            if is_before(name, from) || is_after(name, to) || matches!(field.presence(at), Presence::Unknown)
            {
                continue;
            }
            edits.push((layer as u8, field.index));
        }
        if object.base(at) == Base::Deleted {
            break;
        }
    }
    let name = |edit: &(u8, u32)| field_of(state, *edit).name();
    edits.sort_unstable_by(|left, right| name(left).cmp(name(right)).then(left.0.cmp(&right.0)));
    edits.dedup_by(|later, earlier| name(later) == name(earlier));
    edits
}

fn field_of(state: &ReadState, (layer, field): (u8, u32)) -> FieldRef<'_> {
    state.memtables().nth(usize::from(layer)).expect("the edit was found there").field(field)
}

/// Where a merge stopped early.
enum Stop {
    /// The visitor had enough behind this name.
    After(Vec<u8>),
    /// The end of the range.
    End,
}

/// Merges edits into the entries of the base.
struct Merge<'a, V> {
    state: &'a ReadState,
    at: Lsn,
    edits: &'a [(u8, u32)],
    next: usize,
    range: (&'a Bound<Vec<u8>>, &'a Bound<Vec<u8>>),
    direction: Direction,
    visit: &'a mut V,
    resume: Option<Stop>,
}

impl<V: FnMut(&[u8], &[u8]) -> ControlFlow<()>> Merge<'_, V> {
    /// Whether the scan gives `left` before `right`.
    fn precedes(&self, left: &[u8], right: &[u8]) -> bool {
        match self.direction {
            Direction::Forward => left < right,
            Direction::Reverse => left > right,
        }
    }

    /// The entries of an inline object that are left.
    fn inline(&mut self, kind: Kind, body: &[u8]) -> Result<(), Malformed> {
        let mut entries = catalog::entries(kind, body).collect::<Result<Vec<_>, _>>()?;
        if self.direction == Direction::Reverse {
            entries.reverse();
        }
        for (name, value) in entries {
            let is_behind = match self.direction {
                Direction::Forward => is_before(name, self.range.0),
                Direction::Reverse => is_after(name, self.range.1),
            };
            if !is_behind && self.base_entry(name, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The base has `name`, behind everything that it gave before.
    fn base_entry(&mut self, name: &[u8], value: &[u8]) -> ControlFlow<()> {
        if self.next < self.edits.len() {
            self.edits_before(name)?;
            if let Some(edit) = self.edits.get(self.next)
                && field_of(self.state, *edit).name() == name
            {
                return self.edit();
            }
        }
        let is_over = match self.direction {
            Direction::Forward => is_after(name, self.range.1),
            Direction::Reverse => is_before(name, self.range.0),
        };
        if is_over {
            self.resume = Some(Stop::End);
            return ControlFlow::Break(());
        }
        self.give(name, value)
    }

    /// Gives the edits whose names come before `name`.
    fn edits_before(&mut self, name: &[u8]) -> ControlFlow<()> {
        while let Some(edit) = self.edits.get(self.next)
            && self.precedes(field_of(self.state, *edit).name(), name)
        {
            self.edit()?;
        }
        ControlFlow::Continue(())
    }

    /// Gives the edits that belong to the leaf that was just visited, or all that are left: `next_leaf` is where it and
    /// the next one meet, a name of the upper of the two.
    fn edits_up_to_leaf(&mut self, next_leaf: Option<&[u8]>) -> ControlFlow<()> {
        while let Some(edit) = self.edits.get(self.next) {
            let name = &field_of(self.state, *edit).name()[..];
            let is_of_next = next_leaf.is_some_and(|bound| match self.direction {
                Direction::Forward => name >= bound,
                Direction::Reverse => name < bound,
            });
            if is_of_next {
                break;
            }
            self.edit()?;
        }
        ControlFlow::Continue(())
    }

    fn edit(&mut self) -> ControlFlow<()> {
        let field = field_of(self.state, self.edits[self.next]);
        self.next += 1;
        match field.presence(self.at) {
            Presence::Present(value) => self.give(field.name(), value),
            Presence::Absent | Presence::Unknown => ControlFlow::Continue(()),
        }
    }

    fn give(&mut self, name: &[u8], value: &[u8]) -> ControlFlow<()> {
        let flow = (self.visit)(name, value);
        if flow.is_break() {
            self.resume = Some(Stop::After(name.to_vec()));
        }
        flow
    }
}
