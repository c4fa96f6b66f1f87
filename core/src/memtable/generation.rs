//! One generation of the memtable.

use super::table::{Hashed, Table};
use crate::append::AppendVec;
use crate::batch::{self, Op};
use crate::codec::Malformed;
use crate::database::Kind;
use crate::ids::Lsn;
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use bytes::Bytes;
use foldhash::fast::FixedState;
use std::hash::BuildHasher;

/// What one edit costs beyond its bytes in the batch: a version, a name and their slots, each in storage that grows by
/// doubling, and the allocation of the batch.
const EDIT_BYTES: usize = 256;
const NONE: u32 = u32::MAX;

/// Edits of the positions in (`first`, `visible`].
pub(crate) struct Memtable {
    objects: Table<Object>,
    fields: Table<Field>,
    versions: AppendVec<Version>,
    events: AppendVec<Event>,
    hasher: FixedState,
    /// Every edit up to here is applied.
    visible: AtomicU64,
    bytes: AtomicUsize,
}

struct Object {
    hash: u64,
    key: Bytes,
    /// Newest event, and newest field; each leads to the older ones.
    events: AtomicU32,
    fields: AtomicU32,
    last_edit: AtomicU64,
}

/// Something that happened to a whole object.
struct Event {
    lsn: Lsn,
    older: u32,
    /// What the object holds from here on; `None` if it was deleted.
    kind: Option<Kind>,
}

struct Field {
    hash: u64,
    object: u32,
    name: Bytes,
    versions: AtomicU32,
    /// The field that was added to the object before this one.
    older: u32,
}

struct Version {
    lsn: Lsn,
    older: u32,
    /// The object's newest event when this was written: a later deletion hides it.
    event: u32,
    value: Option<Bytes>,
}

impl Hashed for Object {
    fn hash(&self) -> u64 {
        self.hash
    }
}

impl Hashed for Field {
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// What one layer says about a field or member.
#[derive(Debug)]
pub(crate) enum Presence<'a> {
    /// It is there, with this value.
    Present(&'a Bytes),
    /// It was removed, or its object was deleted.
    Absent,
    /// This layer has nothing to say; ask the one below.
    Unknown,
}

/// What one layer says about what lies below it for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// The layers below count.
    Below,
    /// The object was deleted here; the layers below do not count.
    Deleted,
}

/// An object of a generation.
#[derive(Clone, Copy)]
pub(crate) struct ObjectRef<'a> {
    memtable: &'a Memtable,
    object: &'a Object,
    index: u32,
}

/// A field of a generation.
#[derive(Clone, Copy)]
pub(crate) struct FieldRef<'a> {
    memtable: &'a Memtable,
    field: &'a Field,
    /// Its index, by which [`Memtable::field`] finds it again.
    pub(crate) index: u32,
}

impl Memtable {
    /// An empty generation for edits behind `after`.
    pub(crate) fn new(after: Lsn, seed: u64) -> Self {
        Self {
            objects: Table::new(),
            fields: Table::new(),
            versions: AppendVec::new(),
            events: AppendVec::new(),
            hasher: FixedState::with_seed(seed),
            visible: AtomicU64::new(after.0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// The newest position that readers of this generation see.
    pub(crate) fn visible(&self) -> Lsn {
        Lsn(self.visible.load(Ordering::Acquire))
    }

    /// Memory that the edits take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Memory that a batch will take.
    pub(crate) fn batch_bytes(payload_bytes: usize, edits: usize) -> usize {
        payload_bytes + edits * EDIT_BYTES
    }

    /// Number of objects and of names in them.
    pub(crate) fn names(&self) -> usize {
        self.objects.len() as usize + self.fields.len() as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.len() == 0
    }

    /// Applies an encoded batch at position `lsn` and makes it visible. One thread at a time, in order of positions.
    pub(crate) fn apply(&self, lsn: Lsn, payload: &Bytes) -> Result<(), Malformed> {
        let mut edits = 0;
        if sabotaged!("position-shown-first") {
            self.visible.store(lsn.0, Ordering::Release);
        }
        for edit in batch::edits(payload) {
            let edit = edit?;
            edits += 1;
            let object = self.object_or_insert(payload, edit.key);
            let (name, value) = (payload.slice(edit.name), payload.slice(edit.value));
            match edit.op {
                Op::Set => self.write(object, lsn, name, Some(value), Some(Kind::Hash)),
                Op::Put => self.write(object, lsn, name, Some(value), Some(Kind::Set)),
                Op::Remove => self.write(object, lsn, name, None, None),
                Op::Delete => self.push_event(self.objects.get(object), lsn, None),
            }
            self.objects.get(object).last_edit.store(lsn.0, Ordering::Release);
        }
        self.bytes.fetch_add(Self::batch_bytes(payload.len(), edits), Ordering::Relaxed);
        self.visible.store(lsn.0, release_unless!("position-shown-relaxed"));
        Ok(())
    }

    fn write(&self, index: u32, lsn: Lsn, name: Bytes, value: Option<Bytes>, kind: Option<Kind>) {
        let object = self.objects.get(index);
        if let Some(kind) = kind
            && self.newest_event(object, Lsn::MAX).and_then(|event| event.kind) != Some(kind)
        {
            self.push_event(object, lsn, Some(kind));
        }
        let field = self.fields.get(self.field_or_insert(index, object, name));
        let version = Version {
            lsn,
            older: field.versions.load(Ordering::Relaxed),
            event: object.events.load(Ordering::Relaxed),
            value,
        };
        field.versions.store(self.versions.push(version), release_unless!("version-linked-relaxed"));
    }

    fn push_event(&self, object: &Object, lsn: Lsn, kind: Option<Kind>) {
        let event = Event { lsn, older: object.events.load(Ordering::Relaxed), kind };
        object.events.store(self.events.push(event), Ordering::Release);
    }

    fn object_or_insert(&self, payload: &Bytes, key: std::ops::Range<usize>) -> u32 {
        let hash = self.hasher.hash_one(&payload[key.clone()]);
        self.objects.find(hash, |object| object.key == payload[key.clone()]).unwrap_or_else(|| {
            self.objects.insert(Object {
                hash,
                key: payload.slice(key),
                events: AtomicU32::new(NONE),
                fields: AtomicU32::new(NONE),
                last_edit: AtomicU64::new(0),
            })
        })
    }

    fn field_or_insert(&self, index: u32, object: &Object, name: Bytes) -> u32 {
        let hash = self.field_hash(index, &name);
        self.fields.find(hash, |field| field.object == index && field.name == name).unwrap_or_else(|| {
            let older = object.fields.load(Ordering::Relaxed);
            let field = Field { hash, object: index, name, versions: AtomicU32::new(NONE), older };
            let field = self.fields.insert(field);
            object.fields.store(field, Ordering::Release);
            field
        })
    }

    fn field_hash(&self, object: u32, name: &[u8]) -> u64 {
        self.hasher.hash_one(name) ^ u64::from(object).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The object called `key`, if any edit of this generation names it.
    pub(crate) fn object(&self, key: &[u8]) -> Option<ObjectRef<'_>> {
        if self.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        let index = self.objects.find(hash, |object| object.key == key)?;
        Some(ObjectRef { memtable: self, object: self.objects.get(index), index })
    }

    /// Every object, in the order in which they were first edited.
    pub(crate) fn objects(&self) -> impl Iterator<Item = ObjectRef<'_>> {
        (0..self.objects.len()).map(|index| ObjectRef {
            memtable: self,
            object: self.objects.get(index),
            index,
        })
    }

    /// The field at `index`, as [`FieldRef::index`] gave it.
    pub(crate) fn field(&self, index: u32) -> FieldRef<'_> {
        FieldRef { memtable: self, field: self.fields.get(index), index }
    }

    fn newest_event(&self, object: &Object, at: Lsn) -> Option<&Event> {
        self.newest_event_that(object, |event| event.lsn <= at).map(|(_, event)| event)
    }

    fn newest_event_that(&self, object: &Object, wanted: impl Fn(&Event) -> bool) -> Option<(u32, &Event)> {
        let mut index = object.events.load(Ordering::Acquire);
        while index != NONE {
            let event = self.events.get(index);
            if wanted(event) {
                return Some((index, event));
            }
            index = event.older;
        }
        None
    }

    /// The newest deletion of the object at or before `at`.
    fn deletion(&self, object: &Object, at: Lsn) -> Option<(u32, &Event)> {
        self.newest_event_that(object, |event| event.lsn <= at && event.kind.is_none())
    }

    fn presence(&self, object: &Object, field: &Field, at: Lsn) -> Presence<'_> {
        let deletion = self.deletion(object, at).map(|(index, _)| index);
        match self.newest_version(field, at) {
            Some(version) if deletion.is_none_or(|deleted| version.is_behind(deleted)) => {
                version.value.as_ref().map_or(Presence::Absent, Presence::Present)
            }
            _ if deletion.is_some() => Presence::Absent,
            _ => Presence::Unknown,
        }
    }

    fn newest_version(&self, field: &Field, at: Lsn) -> Option<&Version> {
        let mut index = field.versions.load(Ordering::Acquire);
        while index != NONE {
            let version = self.versions.get(index);
            if version.lsn <= at {
                return Some(version);
            }
            index = version.older;
        }
        None
    }
}

impl Version {
    /// Whether it was written after the event `deleted` of its object.
    fn is_behind(&self, deleted: u32) -> bool {
        self.event != NONE && self.event >= deleted
    }
}

impl<'a> ObjectRef<'a> {
    pub(crate) fn key(self) -> &'a Bytes {
        &self.object.key
    }

    /// The object's newest edit.
    pub(crate) fn last_edit(self) -> Lsn {
        Lsn(self.object.last_edit.load(Ordering::Acquire))
    }

    /// What the object holds at `at` by its newest event; `None` if no event says.
    pub(crate) fn kind(self, at: Lsn) -> Option<Option<Kind>> {
        self.memtable.newest_event(self.object, at).map(|event| event.kind)
    }

    /// The position at which the object became what it is at `at`, by its newest event.
    pub(crate) fn kind_since(self, at: Lsn) -> Option<Lsn> {
        self.memtable.newest_event(self.object, at).map(|event| event.lsn)
    }

    /// Whether the layers below count at `at`.
    pub(crate) fn base(self, at: Lsn) -> Base {
        match self.memtable.deletion(self.object, at) {
            Some(_) => Base::Deleted,
            None => Base::Below,
        }
    }

    /// Whether the object was deleted in (`after`, `at`].
    pub(crate) fn deleted_within(self, after: Lsn, at: Lsn) -> bool {
        self.memtable.deletion(self.object, at).is_some_and(|(_, event)| event.lsn > after)
    }

    /// What this layer says about `name` at `at`.
    pub(crate) fn presence(self, name: &[u8], at: Lsn) -> Presence<'a> {
        let memtable = self.memtable;
        let hash = memtable.field_hash(self.index, name);
        match memtable.fields.find(hash, |field| field.object == self.index && field.name == name) {
            Some(index) => memtable.presence(self.object, memtable.fields.get(index), at),
            None if self.base(at) == Base::Deleted => Presence::Absent,
            None => Presence::Unknown,
        }
    }

    /// Whether `name` was edited behind `at`, itself and not with its object.
    pub(crate) fn is_edited_since(self, name: &[u8], at: Lsn) -> bool {
        let hash = self.memtable.field_hash(self.index, name);
        let field = self.memtable.fields.find(hash, |field| field.object == self.index && field.name == name);
        field.is_some_and(|index| self.memtable.field(index).edited_within(at, Lsn::MAX))
    }

    /// The object's fields, newest first.
    pub(crate) fn fields(self) -> impl Iterator<Item = FieldRef<'a>> {
        let mut next = self.object.fields.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            (next != NONE).then(|| {
                let field = self.memtable.field(next);
                next = field.field.older;
                field
            })
        })
    }
}

impl<'a> FieldRef<'a> {
    pub(crate) fn name(self) -> &'a Bytes {
        &self.field.name
    }

    /// What this layer says about the field at `at`.
    pub(crate) fn presence(self, at: Lsn) -> Presence<'a> {
        self.memtable.presence(self.memtable.objects.get(self.field.object), self.field, at)
    }

    /// Whether the field was edited in (`after`, `at`].
    pub(crate) fn edited_within(self, after: Lsn, at: Lsn) -> bool {
        self.memtable.newest_version(self.field, at).is_some_and(|version| version.lsn > after)
    }
}
