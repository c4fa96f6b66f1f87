//! Merges the edits of a frozen memtable into the trees.

use crate::catalog::{self, Body, INLINE_AGAIN_BYTES, INLINE_BYTES_MAX, ObjectRecord, damaged_record};
use crate::database::Kind;
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::memtable::{Memtable, ObjectRef, Presence};
use crate::page::PageWriter;
use crate::tree::{self, Edit, PageEditor, PageRef, PageSource};
use std::collections::BTreeMap;

/// Catalog edits are applied in slices of about this size, so that memory does not grow with the number of objects.
const SLICE_BYTES: usize = 256 << 10;

/// Merges the edits of `memtable` in (`after`, `upto`] into the catalog at `catalog`, which holds everything up to
/// `after`, and returns the new catalog.
pub(crate) async fn merge(
    writer: &mut PageWriter,
    catalog: Option<PageRef>,
    memtable: &Memtable,
    (after, upto): (Lsn, Lsn),
) -> Result<Option<PageRef>> {
    let mut objects: Vec<_> = memtable.objects().filter(|object| object.last_edit() > after).collect();
    objects.sort_unstable_by(|left, right| left.key().cmp(right.key()));
    let mut slice = Slice { catalog, edits: Vec::new(), bytes: 0 };
    for object in objects {
        merge_object(writer, &mut slice, object, (after, upto)).await?;
        if slice.bytes >= SLICE_BYTES {
            slice.apply(writer).await?;
        }
    }
    slice.apply(writer).await?;
    Ok(slice.catalog)
}

/// Catalog edits that wait to be applied together.
struct Slice<'a> {
    catalog: Option<PageRef>,
    edits: Vec<(&'a [u8], Option<Vec<u8>>)>,
    bytes: usize,
}

impl<'a> Slice<'a> {
    fn push(&mut self, key: &'a [u8], record: Option<Vec<u8>>) {
        self.bytes += key.len() + record.as_ref().map_or(0, Vec::len) + 48;
        self.edits.push((key, record));
    }

    async fn apply(&mut self, writer: &mut PageWriter) -> Result<()> {
        let edits: Vec<_> = self
            .edits
            .iter()
            .map(|(key, record)| (*key, record.as_ref().map_or(Edit::Remove, |record| Edit::Put(record))))
            .collect();
        if !edits.is_empty() {
            self.catalog = tree::apply(writer, self.catalog, &edits).await?.root;
        }
        self.edits.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// The sorted edits of one object: a value, or `None` where the name goes.
type ObjectEdits<'a> = Vec<(&'a [u8], Option<&'a [u8]>)>;

async fn merge_object<'a>(
    writer: &mut PageWriter,
    slice: &mut Slice<'a>,
    object: ObjectRef<'a>,
    (after, upto): (Lsn, Lsn),
) -> Result<()> {
    let was_deleted = object.deleted_within(after, upto);
    let edits = collect_edits(object, was_deleted, (after, upto));
    if edits.is_empty() && !was_deleted {
        return Ok(());
    }
    let key = object.key();
    let old = find_record(writer, slice.catalog, key).await?;
    let mut base = match &old {
        Some(bytes) => Some(ObjectRecord::decode(bytes).map_err(|malformed| damaged_record(key, malformed))?),
        None => None,
    };
    if was_deleted && let Some(gone) = base.take() {
        reached!("object deleted");
        retire_body(writer, &gone).await?;
    }
    let kind = object.kind(upto).flatten().or(base.map(|base| base.kind));
    let Some(kind) = kind else {
        // Removals from a key that holds nothing.
        if old.is_some() {
            slice.push(key, None);
        }
        return Ok(());
    };
    let created = object.kind_since(upto).unwrap_or(upto);
    let incarnation = base.map_or(created, |base| base.incarnation);
    let merged = match base.map(|base| base.body) {
        Some(Body::Tree(root)) => {
            let base = base.expect("just matched");
            merge_tree(writer, root, base, kind, &edits).await?
        }
        Some(Body::Inline(body)) => {
            let old_kind = base.expect("just matched").kind;
            merge_inline(writer, key, (old_kind, body), kind, &edits).await?
        }
        None => merge_inline(writer, key, (kind, &[]), kind, &edits).await?,
    };
    if !matches!(merged, Some(Merged::Tree { .. })) {
        writer.merged(edits.len());
    }
    let record = merged.map(|merged| merged.encode(kind, incarnation));
    if record != old {
        if record.is_none() {
            reached!("object emptied");
        }
        slice.push(key, record);
    }
    Ok(())
}

fn collect_edits(object: ObjectRef<'_>, was_deleted: bool, (after, upto): (Lsn, Lsn)) -> ObjectEdits<'_> {
    let mut edits: ObjectEdits<'_> = object
        .fields()
        .filter_map(|field| {
            let edited = was_deleted || field.edited_within(after, upto);
            match field.presence(upto) {
                Presence::Present(value) if edited => Some((&field.name()[..], Some(&value[..]))),
                Presence::Absent if edited && !was_deleted => Some((&field.name()[..], None)),
                _ => None,
            }
        })
        .collect();
    edits.sort_unstable_by(|left, right| left.0.cmp(right.0));
    edits
}

async fn find_record(writer: &PageWriter, catalog: Option<PageRef>, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(catalog) = catalog else { return Ok(None) };
    let mut root = writer.load(catalog).await?;
    // The writer's own pages may not be on the disk yet, so it walks by itself instead of through the cache.
    while root.level() > 0 {
        let (_, child) = root.child_for(key);
        root = writer.load(child).await?;
    }
    Ok(root.find(key).map(<[u8]>::to_vec))
}

/// An object's entries after a merge.
enum Merged {
    Inline { body: Vec<u8>, count: u64, bytes: u64 },
    Tree { root: PageRef, count: u64, bytes: u64 },
}

impl Merged {
    fn encode(&self, kind: Kind, incarnation: Lsn) -> Vec<u8> {
        let (body, count, bytes) = match self {
            Self::Inline { body, count, bytes } => (Body::Inline(body), *count, *bytes),
            Self::Tree { root, count, bytes } => (Body::Tree(*root), *count, *bytes),
        };
        ObjectRecord { kind, incarnation, count, bytes, body }.encode()
    }
}

/// Merges into an inline object (or none): the result is inline while it is short.
async fn merge_inline(
    writer: &mut PageWriter,
    key: &[u8],
    (old_kind, body): (Kind, &[u8]),
    kind: Kind,
    edits: &ObjectEdits<'_>,
) -> Result<Option<Merged>> {
    let mut all: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    for entry in catalog::entries(old_kind, body) {
        let (name, value) = entry.map_err(|malformed| damaged_record(key, malformed))?;
        all.insert(name, value);
    }
    if all.is_empty() {
        // A new object, possibly large: its edits are sorted already.
        let puts: Vec<_> = edits.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
        return store_entries(writer, kind, &puts).await;
    }
    for (name, value) in edits {
        match value {
            Some(value) => all.insert(name, value),
            None => all.remove(name),
        };
    }
    let all: Vec<_> = all.into_iter().collect();
    store_entries(writer, kind, &all).await
}

/// Stores sorted entries in the form that their size asks for.
async fn store_entries(
    writer: &mut PageWriter,
    kind: Kind,
    entries: &[(&[u8], &[u8])],
) -> Result<Option<Merged>> {
    if entries.is_empty() {
        return Ok(None);
    }
    let count = entries.len() as u64;
    let bytes = entries.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum();
    let encoded: usize = entries.iter().map(|(name, value)| catalog::entry_bytes(kind, name, value)).sum();
    if encoded <= INLINE_BYTES_MAX {
        let mut body = Vec::with_capacity(encoded);
        for (name, value) in entries {
            catalog::put_entry(&mut body, kind, name, value);
        }
        return Ok(Some(Merged::Inline { body, count, bytes }));
    }
    reached!("object gets a tree");
    let edits: Vec<_> = entries.iter().map(|(name, value)| (*name, Edit::Put(value))).collect();
    let root = tree::apply(writer, None, &edits).await?.root.expect("entries make a tree");
    Ok(Some(Merged::Tree { root, count, bytes }))
}

/// Merges into an object with a tree of its own; it comes back inline when little is left.
async fn merge_tree(
    writer: &mut PageWriter,
    root: PageRef,
    base: ObjectRecord<'_>,
    kind: Kind,
    edits: &ObjectEdits<'_>,
) -> Result<Option<Merged>> {
    let edits: Vec<_> =
        edits.iter().map(|(name, value)| (*name, value.map_or(Edit::Remove, Edit::Put))).collect();
    let applied = tree::apply(writer, Some(root), &edits).await?;
    let Some(root) = applied.root else { return Ok(None) };
    let count = base.count + applied.added - applied.removed;
    let bytes = base.bytes.checked_add_signed(applied.bytes_delta).ok_or_else(|| {
        Error::corruption("an object record", 0, "a size of at least what was removed", base.bytes)
    })?;
    if bytes + 4 * count >= INLINE_AGAIN_BYTES {
        return Ok(Some(Merged::Tree { root, count, bytes }));
    }
    reached!("object comes back inline");
    let entries = read_all(writer, root).await?;
    retire_tree(writer, root).await?;
    let entries: Vec<_> = entries.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    store_entries(writer, kind, &entries).await
}

/// Every entry of a small tree.
async fn read_all(writer: &PageWriter, root: PageRef) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut entries = Vec::new();
    let mut stack = vec![root];
    let mut key = Vec::new();
    while let Some(page) = stack.pop() {
        let node = writer.load(page).await?;
        for index in (0..node.len()).rev() {
            if node.level() > 0 {
                stack.push(node.child(index));
            }
        }
        if node.level() == 0 {
            for index in 0..node.len() {
                node.key(index, &mut key);
                entries.push((key.clone(), node.value(index).to_vec()));
            }
        }
    }
    Ok(entries)
}

async fn retire_body(writer: &mut PageWriter, record: &ObjectRecord<'_>) -> Result<()> {
    match record.body {
        Body::Inline(_) => Ok(()),
        Body::Tree(root) => retire_tree(writer, root).await,
    }
}

/// Retires every page of a tree. Reads its branches only.
async fn retire_tree(writer: &mut PageWriter, root: PageRef) -> Result<()> {
    let mut pages = Vec::new();
    tree::walk(writer, root, |page, _| pages.push(page)).await?;
    for page in pages {
        writer.retire(page);
    }
    Ok(())
}
