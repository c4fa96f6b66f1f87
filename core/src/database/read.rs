//! Lookups through the layers: active memtable, frozen memtable, catalog and trees.

use super::engine::ReadState;
use super::types::Kind;
use crate::catalog::{self, Body, ObjectRecord, damaged_record};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Lsn;
use crate::memtable::{Base, Presence};
use crate::page::{PageStore, PinnedPages, RootVersion};
use crate::tree::{self, Attempt, PageRef};
use bytes::Bytes;
use std::collections::BTreeMap;

/// What was found under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) is_present: bool,
    /// What the object is, or was before its last entry went; `None` if nothing is known of the key.
    pub(crate) kind: Option<Kind>,
}

/// Looks `name` of `key` up as of `at`; gives a value of a hash that is there to `read`, once.
pub(crate) fn look_up(
    pages: &PinnedPages<'_>,
    state: &ReadState,
    at: Lsn,
    (key, name): (&[u8], &[u8]),
    read: &mut dyn FnMut(&[u8]),
) -> Result<Attempt<Looked>> {
    let mut kind = None;
    let mut is_absent = false;
    for object in state.memtables().filter_map(|memtable| memtable.object(key)) {
        kind = kind.or(object.kind(at));
        if is_absent {
            continue;
        }
        match object.presence(name, at) {
            Presence::Present(value) => {
                if kind != Some(Some(Kind::Set)) {
                    read(value);
                }
                return Ok(Attempt::Done(Looked { is_present: true, kind: kind.flatten() }));
            }
            Presence::Absent => is_absent = true,
            Presence::Unknown => {}
        }
    }
    if is_absent && let Some(kind) = kind {
        return Ok(Attempt::Done(Looked { is_present: false, kind }));
    }
    let Some(catalog) = state.root.catalog else {
        return Ok(Attempt::Done(Looked { is_present: false, kind: kind.flatten() }));
    };
    let found = tree::lookup(pages, catalog, key, |record| {
        record.map(|bytes| find_in_record(key, bytes, (!is_absent).then_some(name), read)).transpose()
    })?;
    let found = match found {
        Attempt::Missing(page) => return Ok(Attempt::Missing(page)),
        Attempt::Done(found) => found?,
    };
    let Some((stored_kind, place)) = found else {
        return Ok(Attempt::Done(Looked { is_present: false, kind: kind.flatten() }));
    };
    let kind = kind.unwrap_or(Some(stored_kind));
    let root = match place {
        Place::Here(is_present) => return Ok(Attempt::Done(Looked { is_present, kind })),
        Place::Tree(root) => root,
    };
    let found = tree::lookup(pages, root, name, |value| match (value, kind) {
        (Some(value), Some(Kind::Hash)) => {
            read(value);
            true
        }
        (value, _) => value.is_some(),
    })?;
    Ok(match found {
        Attempt::Missing(page) => Attempt::Missing(page),
        Attempt::Done(is_present) => Attempt::Done(Looked { is_present, kind }),
    })
}

enum Place {
    Here(bool),
    Tree(PageRef),
}

fn find_in_record(
    key: &[u8],
    record: &[u8],
    name: Option<&[u8]>,
    read: &mut dyn FnMut(&[u8]),
) -> Result<(Kind, Place)> {
    let damaged = |malformed| damaged_record(key, malformed);
    let record = ObjectRecord::decode(record).map_err(damaged)?;
    let Some(name) = name else { return Ok((record.kind, Place::Here(false))) };
    match record.body {
        Body::Tree(root) => Ok((record.kind, Place::Tree(root))),
        Body::Inline(body) => {
            for entry in catalog::entries(record.kind, body) {
                let (found, value) = entry.map_err(damaged)?;
                if found == name {
                    if record.kind == Kind::Hash {
                        read(value);
                    }
                    return Ok((record.kind, Place::Here(true)));
                }
            }
            Ok((record.kind, Place::Here(false)))
        }
    }
}

/// Using a key as something else than it holds.
pub(crate) fn wrong_kind(key: &[u8], holds: Kind, wanted: Kind) -> Error {
    let message = format!(
        "key \"{}\" holds a {holds}, not a {wanted}; delete it first or use another key",
        key.escape_ascii()
    );
    Error::new(ErrorKind::WrongKind, message)
}

/// The record of `key` in the catalog, if the layers above do not hide it.
pub(crate) async fn base_record(
    store: &PageStore,
    state: &ReadState,
    at: Lsn,
    key: &[u8],
) -> Result<Option<Vec<u8>>> {
    let is_hidden = state
        .memtables()
        .filter_map(|memtable| memtable.object(key))
        .any(|object| object.base(at) == Base::Deleted);
    if is_hidden {
        return Ok(None);
    }
    store.resolve(|pages| record_in(pages, &state.root, key)).await
}

/// The newest word of the memtables on each name of `key`: there, or gone.
fn edited_names(state: &ReadState, at: Lsn, key: &[u8]) -> BTreeMap<Bytes, bool> {
    let mut names = BTreeMap::new();
    for object in state.memtables().filter_map(|memtable| memtable.object(key)) {
        for field in object.fields() {
            match field.presence(at) {
                Presence::Present(_) => names.entry(field.name().clone()).or_insert(true),
                Presence::Absent => names.entry(field.name().clone()).or_insert(false),
                Presence::Unknown => continue,
            };
        }
        if object.base(at) == Base::Deleted {
            break;
        }
    }
    names
}

/// Number of entries of `key` as of `at`, and what it holds, not counting the names in `without`.
pub(crate) async fn count(
    store: &PageStore,
    state: &ReadState,
    at: Lsn,
    key: &[u8],
    without: &[Vec<u8>],
) -> Result<(u64, Option<Kind>)> {
    let mut names = edited_names(state, at, key);
    for name in without {
        names.insert(Bytes::copy_from_slice(name), false);
    }
    let record = base_record(store, state, at, key).await?;
    let record = match &record {
        Some(bytes) => Some(ObjectRecord::decode(bytes).map_err(|malformed| damaged_record(key, malformed))?),
        None => None,
    };
    let mut count = record.map_or(0, |record| record.count);
    for (name, is_present) in &names {
        let was_present = match record.map(|record| (record.kind, record.body)) {
            None => false,
            Some((kind, Body::Inline(body))) => {
                catalog::entries(kind, body).any(|entry| entry.is_ok_and(|(found, _)| found == &name[..]))
            }
            Some((_, Body::Tree(root))) => {
                store.resolve(|pages| tree::lookup(pages, root, name, |value| value.is_some())).await?
            }
        };
        match (was_present, is_present) {
            (true, false) => count -= 1,
            (false, true) => count += 1,
            _ => {}
        }
    }
    let kind = told_kind(state, at, key).unwrap_or(record.map(|record| record.kind)).filter(|_| count > 0);
    Ok((count, kind))
}

/// What the memtables tell of what `key` holds or held: `Some(None)` if it was deleted.
pub(crate) fn told_kind(state: &ReadState, at: Lsn, key: &[u8]) -> Option<Option<Kind>> {
    state.memtables().filter_map(|memtable| memtable.object(key)).find_map(|object| object.kind(at))
}

/// What `key` holds or held, as far as that can be read; it may be empty by now.
pub(crate) async fn kind_without_count(
    store: &PageStore,
    state: &ReadState,
    at: Lsn,
    key: &[u8],
) -> Result<Option<Kind>> {
    if let Some(kind) = told_kind(state, at, key) {
        return Ok(kind);
    }
    match base_record(store, state, at, key).await {
        Ok(record) => {
            Ok(record.and_then(|bytes| ObjectRecord::decode(&bytes).ok().map(|record| record.kind)))
        }
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The record of `key` in the catalog under `root`.
pub(crate) fn record_in(
    pages: &PinnedPages<'_>,
    root: &RootVersion,
    key: &[u8],
) -> Result<Attempt<Option<Vec<u8>>>> {
    let Some(catalog) = root.catalog else { return Ok(Attempt::Done(None)) };
    tree::lookup(pages, catalog, key, |record| record.map(<[u8]>::to_vec))
}

/// The kind that the catalog gives `key`.
pub(crate) fn catalog_kind(
    pages: &PinnedPages<'_>,
    root: &RootVersion,
    key: &[u8],
) -> Result<Attempt<Option<Kind>>> {
    let Some(catalog) = root.catalog else { return Ok(Attempt::Done(None)) };
    let kind = |record: &[u8]| {
        ObjectRecord::decode(record)
            .map(|record| record.kind)
            .map_err(|malformed| damaged_record(key, malformed))
    };
    match tree::lookup(pages, catalog, key, |record| record.map(kind).transpose())? {
        Attempt::Missing(page) => Ok(Attempt::Missing(page)),
        Attempt::Done(found) => Ok(Attempt::Done(found?)),
    }
}
