//! Scans: streams in order, merged from the layers, a leaf at a time.

use super::engine::ReadState;
use super::read::{base_record, count};
use super::snapshot::Snapshot;
use super::types::Kind;
use crate::catalog::{self, Body, ObjectRecord, damaged_record};
use crate::error::Result;
use crate::ids::Lsn;
use crate::memtable::{Base, FieldRef, Memtable, Presence};
use crate::tree::{self, PageRef};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;
use std::ops::{Bound, ControlFlow};

/// A running scan over the fields or members of one object, as of one position. Holds one leaf at a time.
pub struct Scan {
    snapshot: Snapshot,
    key: Vec<u8>,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    layers: Option<Layers>,
    is_done: bool,
    ready: VecDeque<(Vec<u8>, Vec<u8>)>,
}

/// What the scan merges; made anew when a checkpoint hands the snapshot a root of its own.
struct Layers {
    version: u64,
    /// The edits from here on, in order: which memtable (0 active, 1 frozen), and which field in it.
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
    pub(super) fn new(snapshot: Snapshot, key: &[u8], (from, to): (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Self {
        let is_done = is_empty_range(&from, &to);
        Self { snapshot, key: key.to_vec(), from, to, layers: None, is_done, ready: VecDeque::new() }
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
        Ok(self.ready.pop_front())
    }

    /// Gives every remaining entry to `visit`, borrowed, until it breaks or the end is reached. After a break the scan
    /// goes on behind the entry that was given last.
    pub async fn for_each(
        &mut self,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send,
    ) -> Result<()> {
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

    /// Gives names and values, in order, of what one leaf and the edits beside it hold. `Break` stops the scan behind
    /// the entry that was given.
    async fn advance(
        &mut self,
        visit: &mut (impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send),
    ) -> Result<ControlFlow<()>> {
        let snapshot = self.snapshot.clone();
        let engine = snapshot.engine();
        engine.ensure_open()?;
        let (state, version) = snapshot.state();
        let at = snapshot.position();
        if self.layers.as_ref().is_none_or(|layers| layers.version != version) {
            self.layers = Some(self.make_layers(&state, version).await?);
        }
        let layers = self.layers.as_mut().expect("just made");
        let from = self.from.clone();
        let mut merge = Merge {
            state: &state,
            at,
            edits: &layers.edits,
            next: layers.next_edit,
            to: &self.to,
            visit,
            resume: None,
        };
        let mut next_leaf = None;
        match &layers.base {
            BaseEntries::None => {}
            BaseEntries::Inline(kind, body) => {
                for entry in catalog::entries(*kind, body) {
                    let (name, value) = entry.map_err(|malformed| damaged_record(&self.key, malformed))?;
                    if is_before(name, &from) {
                        continue;
                    }
                    if merge.base_entry(name, value).is_break() {
                        break;
                    }
                }
            }
            BaseEntries::Tree(root) => {
                let mut scratch = Vec::new();
                let from = as_slice(&from);
                let end = engine
                    .store
                    .resolve(|pages| {
                        tree::scan_leaf(pages, *root, from, &mut scratch, &mut |name, value| {
                            merge.base_entry(name, value)
                        })
                    })
                    .await?;
                next_leaf = end.next.filter(|_| !end.stopped);
            }
        }
        if merge.resume.is_none() {
            let _ = merge.edits_below(next_leaf.as_deref());
        }
        layers.next_edit = merge.next;
        match merge.resume {
            Some(Stop::After(name)) => {
                self.from = Bound::Excluded(name);
                return Ok(ControlFlow::Break(()));
            }
            Some(Stop::End) => self.is_done = true,
            None => match next_leaf {
                Some(next) => self.from = Bound::Included(next),
                None => self.is_done = true,
            },
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn make_layers(&self, state: &ReadState, version: u64) -> Result<Layers> {
        let at = self.snapshot.position();
        let engine = self.snapshot.engine();
        let edits = collect_edits(state, at, &self.key, &self.from, &self.to);
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
    let memtable: &Memtable = match layer {
        0 => &state.active,
        _ => state.frozen.as_deref().expect("the edit was found there"),
    };
    memtable.field(field)
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
    to: &'a Bound<Vec<u8>>,
    visit: &'a mut V,
    resume: Option<Stop>,
}

impl<V: FnMut(&[u8], &[u8]) -> ControlFlow<()>> Merge<'_, V> {
    /// The base has `name`, behind everything that it gave before.
    fn base_entry(&mut self, name: &[u8], value: &[u8]) -> ControlFlow<()> {
        if self.next < self.edits.len() {
            self.edits_below(Some(name))?;
            if let Some(edit) = self.edits.get(self.next)
                && field_of(self.state, *edit).name() == name
            {
                return self.edit();
            }
        }
        if is_after(name, self.to) {
            self.resume = Some(Stop::End);
            return ControlFlow::Break(());
        }
        self.give(name, value)
    }

    /// Gives the edits whose names are below `bound`, or all.
    fn edits_below(&mut self, bound: Option<&[u8]>) -> ControlFlow<()> {
        while let Some(edit) = self.edits.get(self.next) {
            if bound.is_some_and(|bound| &field_of(self.state, *edit).name()[..] >= bound) {
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

fn is_before(name: &[u8], from: &Bound<Vec<u8>>) -> bool {
    match from {
        Bound::Included(from) => name < &from[..],
        Bound::Excluded(from) => name <= &from[..],
        Bound::Unbounded => false,
    }
}

fn is_after(name: &[u8], to: &Bound<Vec<u8>>) -> bool {
    match to {
        Bound::Included(to) => name > &to[..],
        Bound::Excluded(to) => name >= &to[..],
        Bound::Unbounded => false,
    }
}

fn is_empty_range(from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
        _ => false,
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(name) => Bound::Included(name),
        Bound::Excluded(name) => Bound::Excluded(name),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// A running scan over keys, as of one position.
pub struct Keys {
    snapshot: Snapshot,
    prefix: Vec<u8>,
    from: Bound<Vec<u8>>,
    /// Keys that the memtables know, in order, from `from` on; with the version of the layers that they are from.
    edited: Option<(u64, VecDeque<Bytes>)>,
    is_done: bool,
    ready: VecDeque<(Vec<u8>, Kind)>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

impl Keys {
    pub(super) fn new(snapshot: Snapshot, prefix: &[u8]) -> Self {
        let prefix = prefix.to_vec();
        let from = Bound::Included(prefix.clone());
        Self { snapshot, prefix, from, edited: None, is_done: false, ready: VecDeque::new() }
    }

    /// The next key and what it holds; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Kind)>> {
        while self.ready.is_empty() && !self.is_done {
            self.advance().await?;
        }
        Ok(self.ready.pop_front())
    }

    async fn advance(&mut self) -> Result<()> {
        let snapshot = self.snapshot.clone();
        let engine = snapshot.engine();
        engine.ensure_open()?;
        let (state, version) = snapshot.state();
        if self.edited.as_ref().is_none_or(|(made_for, _)| *made_for != version) {
            self.edited = Some((version, self.edited_keys(&state)));
        }
        let mut stored = VecDeque::new();
        let mut next_leaf = None;
        if let Some(catalog) = state.root.catalog {
            let mut scratch = Vec::new();
            let from = as_slice(&self.from);
            let prefix = &self.prefix;
            let end = engine
                .store
                .resolve(|pages| {
                    tree::scan_leaf(pages, catalog, from, &mut scratch, &mut |key, record| {
                        if !key.starts_with(prefix) {
                            return ControlFlow::Break(());
                        }
                        stored.push_back((
                            key.to_vec(),
                            ObjectRecord::decode(record).map(|record| record.kind),
                        ));
                        ControlFlow::Continue(())
                    })
                })
                .await?;
            next_leaf = end.next.filter(|_| !end.stopped);
        }
        let edited = &mut self.edited.as_mut().expect("just made").1;
        loop {
            let is_edited_next = match (edited.front(), stored.front()) {
                (None, None) => break,
                (Some(edited), Some((stored, _))) => edited[..] <= stored[..],
                (Some(edited), None) => next_leaf.as_ref().is_none_or(|next: &Vec<u8>| edited[..] < next[..]),
                (None, Some(_)) => false,
            };
            if is_edited_next {
                let key = edited.pop_front().expect("just looked at");
                stored.pop_front_if(|(stored, _)| *stored == key[..]);
                if let (_, Some(kind)) = count(&engine.store, &state, snapshot.position(), &key, &[]).await? {
                    self.ready.push_back((key.to_vec(), kind));
                }
            } else {
                let Some((key, kind)) = stored.pop_front() else { break };
                let kind = kind.map_err(|malformed| damaged_record(&key, malformed))?;
                self.ready.push_back((key, kind));
            }
        }
        match next_leaf {
            Some(next) => self.from = Bound::Included(next),
            None => self.is_done = true,
        }
        Ok(())
    }

    fn edited_keys(&self, state: &ReadState) -> VecDeque<Bytes> {
        let mut keys: Vec<Bytes> = state
            .memtables()
            .flat_map(Memtable::objects)
            .map(|object| object.key().clone())
            .filter(|key| key.starts_with(&self.prefix) && !is_before(key, &self.from))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into()
    }
}
