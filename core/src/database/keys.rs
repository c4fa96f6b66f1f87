//! Scans over keys: the catalog's, and those that only the memtables know.

use super::engine::ReadState;
use super::range::{as_slice, is_before};
use super::read::{count, kind_without_count, told_kind};
use super::snapshot::Snapshot;
use super::types::Kind;
use crate::catalog::{ObjectRecord, damaged_record};
use crate::error::Result;
use crate::memtable::Memtable;
use crate::tree::{self, Behind};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::{Bound, ControlFlow};

/// A running scan over keys, as of one position.
pub struct Keys {
    snapshot: Snapshot,
    prefix: Vec<u8>,
    from: Bound<Vec<u8>>,
    /// Keys that the memtables know, in order, from `from` on; with the version of the layers that they are from.
    edited: Option<(u64, VecDeque<Bytes>)>,
    is_done: bool,
    ready: VecDeque<(Vec<u8>, Kind)>,
    /// The key that the last error was about.
    failed: Option<Vec<u8>>,
    /// Keys whose entries could not be counted, and what they hold or held, if that is known.
    uncounted: BTreeMap<Vec<u8>, Option<Kind>>,
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
        Self {
            snapshot,
            prefix,
            from,
            edited: None,
            is_done: false,
            ready: VecDeque::new(),
            failed: None,
            uncounted: BTreeMap::new(),
        }
    }

    /// The next key and what it holds; `None` at the end. After an error, or if its future is dropped, the next call
    /// tries the same place again.
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Kind)>> {
        while self.ready.is_empty() && !self.is_done {
            self.advance().await?;
        }
        self.snapshot.engine().ensure_open()?;
        Ok(self.ready.pop_front())
    }

    /// Goes on behind the keys that cannot be read, after an error that says so. Keys that later writes are about are
    /// given all the same, as far as these tell what a key holds; one whose entries cannot all be read is given even if
    /// none may be left. `false` if everything on the way can be read: the next call tries again.
    ///
    /// # Errors
    /// Those of a read that are not about damage.
    pub async fn skip_damage(&mut self) -> Result<bool> {
        let engine = self.snapshot.engine();
        engine.ensure_open()?;
        if self.is_done {
            return Ok(false);
        }
        let (state, _) = self.snapshot.state();
        let behind = match state.root.catalog {
            Some(catalog) => tree::behind_damage(&*engine.store, catalog, as_slice(&self.from)).await?,
            None => Behind::NotDamaged,
        };
        match (behind, self.failed.take()) {
            (Behind::NotDamaged, None) => return Ok(false),
            (Behind::NotDamaged, Some(key)) => {
                let at = self.snapshot.position();
                let kind = kind_without_count(&engine.store, &state, at, &key).await?;
                self.uncounted.insert(key, kind);
            }
            (Behind::At(bound), _) => {
                self.give_edited_before(&state, Some(&bound));
                self.from = Bound::Included(bound);
            }
            (Behind::End, _) => {
                self.give_edited_before(&state, None);
                self.is_done = true;
            }
        }
        Ok(true)
    }

    /// Gives the keys before `bound` of which only the memtables can be read.
    fn give_edited_before(&mut self, state: &ReadState, bound: Option<&[u8]>) {
        let mut edited = match self.edited.take() {
            Some((_, edited)) => edited,
            None => self.edited_keys(state),
        };
        let at = self.snapshot.position();
        while let Some(key) = edited.pop_front_if(|key| bound.is_none_or(|bound| key[..] < *bound)) {
            if let Some(Some(kind)) = told_kind(state, at, &key) {
                self.ready.push_back((key.to_vec(), kind));
            }
        }
    }

    /// Gets ready what one leaf and the edits beside it hold: all of it, or nothing.
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
        let (mut ready, mut merged) = (VecDeque::new(), 0);
        loop {
            let is_edited_next = match (edited.get(merged), stored.front()) {
                (None, None) => break,
                (Some(edited), Some((stored, _))) => edited[..] <= stored[..],
                (Some(edited), None) => next_leaf.as_ref().is_none_or(|next: &Vec<u8>| edited[..] < next[..]),
                (None, Some(_)) => false,
            };
            if is_edited_next {
                let key = &edited[merged];
                merged += 1;
                stored.pop_front_if(|(stored, _)| *stored == key[..]);
                if let Some(kind) = self.uncounted.get(&key[..]) {
                    ready.extend(kind.map(|kind| (key.to_vec(), kind)));
                    continue;
                }
                let counted = count(&engine.store, &state, snapshot.position(), key, &[]).await;
                if let (_, Some(kind)) = counted.inspect_err(|_| self.failed = Some(key.to_vec()))? {
                    ready.push_back((key.to_vec(), kind));
                }
            } else {
                let Some((key, kind)) = stored.pop_front() else { break };
                match kind {
                    Ok(kind) => ready.push_back((key, kind)),
                    Err(_) if self.uncounted.contains_key(&key) => {}
                    Err(malformed) => {
                        let error = damaged_record(&key, malformed);
                        self.failed = Some(key);
                        return Err(error);
                    }
                }
            }
        }
        edited.drain(..merged);
        self.ready = ready;
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
