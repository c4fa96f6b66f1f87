//! The reference: maps of maps.
//!
//! An object exists while it has a field or member; when the last goes, its key may take the other kind. Every change
//! can be undone, so that the checker can try the few orders that a crash leaves open without copying the state.

use crate::operation::{Action, Answer, Edit, Read, ScanEnd};
use ironleaf::Kind;
use std::collections::{BTreeMap, BTreeSet, btree_map, btree_set};
use std::ops::Bound;
use std::sync::Arc;

/// Longest key, field or member that the engine takes.
const NAME_BYTES_MAX: usize = 64 << 10;

/// What the engine refuses whatever the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest value, in bytes.
    pub value_bytes_max: usize,
}

/// Why a write does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A key holds an object of the other kind.
    WrongKind,
    /// A name or value is outside of the limits.
    InvalidInput,
}

/// What a key holds; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// Fields with values.
    Hash(BTreeMap<Vec<u8>, Arc<[u8]>>),
    /// Members.
    Set(BTreeSet<Vec<u8>>),
}

impl Object {
    /// Number of fields or members.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Hash(fields) => fields.len(),
            Self::Set(members) => members.len(),
        }
    }

    /// Whether there is nothing in it, which is only so while it changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Hash(_) => Kind::Hash,
            Self::Set(_) => Kind::Set,
        }
    }

    fn range(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Names<'_> {
        match self {
            Self::Hash(fields) => Names::Fields(fields.range::<[u8], _>((from, to))),
            Self::Set(members) => Names::Members(members.range::<[u8], _>((from, to))),
        }
    }

    /// All names and values (empty for members), in order.
    #[must_use]
    pub fn entries(&self) -> Entries<'_> {
        let names = Some(self.range(Bound::Unbounded, Bound::Unbounded));
        Entries { names, left: usize::MAX, is_reverse: false }
    }
}

enum Names<'a> {
    Fields(btree_map::Range<'a, Vec<u8>, Arc<[u8]>>),
    Members(btree_set::Range<'a, Vec<u8>>),
}

/// Names and values (empty for members) of an object, in order.
pub struct Entries<'a> {
    names: Option<Names<'a>>,
    left: usize,
    is_reverse: bool,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        match self.names.as_mut()? {
            Names::Fields(fields) => {
                let next = if self.is_reverse { fields.next_back() } else { fields.next() };
                next.map(|(name, value)| (name.as_slice(), &**value))
            }
            Names::Members(members) => {
                let next = if self.is_reverse { members.next_back() } else { members.next() };
                next.map(|name| (name.as_slice(), &[][..]))
            }
        }
    }
}

/// How one change is taken back.
#[derive(Clone, Debug)]
enum Undo {
    /// The field had this value, or was absent.
    Field { key: Vec<u8>, field: Vec<u8>, before: Option<Arc<[u8]>> },
    /// The member was absent.
    NewMember { key: Vec<u8>, member: Vec<u8> },
    /// The member was there.
    Member { key: Vec<u8>, member: Vec<u8> },
    /// The key held this.
    Deleted { key: Vec<u8>, object: Object },
}

/// How many changes have been made and can be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(usize);

/// All objects by key.
#[derive(Clone, Debug)]
pub struct Model {
    objects: BTreeMap<Vec<u8>, Object>,
    limits: Limits,
    undo: Vec<Undo>,
}

impl Model {
    /// An empty database.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { objects: BTreeMap::new(), limits, undo: Vec::new() }
    }

    /// All keys and objects, in order.
    pub fn objects(&self) -> impl Iterator<Item = (&[u8], &Object)> {
        self.objects.iter().map(|(key, object)| (key.as_slice(), object))
    }

    /// Whether the edits are outside of the limits, whatever the state.
    #[must_use]
    pub fn is_invalid(&self, edits: &[Edit]) -> bool {
        edits.iter().any(|edit| {
            let checked = edit.try_for_each(|action| {
                let (name, value) = match action {
                    Action::Set(field, value) => (field, value),
                    Action::Put(name) | Action::Remove(name) => (name, &[][..]),
                    Action::Delete => (&[][..], &[][..]),
                };
                let fits = name.len() <= NAME_BYTES_MAX && value.len() <= self.limits.value_bytes_max;
                if fits { Ok(()) } else { Err(()) }
            });
            checked.is_err() || edit.key().is_empty() || edit.key().len() > NAME_BYTES_MAX
        })
    }

    /// Applies all edits in order and answers the counted ones, or changes nothing.
    pub fn apply(&mut self, edits: &[Edit]) -> Result<Vec<Option<Vec<u8>>>, Refusal> {
        if self.is_invalid(edits) {
            return Err(Refusal::InvalidInput);
        }
        let mark = self.mark();
        let mut outcomes = Vec::new();
        for edit in edits {
            let counted = edit.is_counted();
            let applied = edit.try_for_each(|action| {
                let before = self.apply_one(edit.key(), action)?;
                if counted {
                    outcomes.push(before.map(|value| value.to_vec()));
                }
                Ok(())
            });
            if let Err(refusal) = applied {
                self.undo_to(mark);
                return Err(refusal);
            }
        }
        Ok(outcomes)
    }

    /// Whether a key of these edits holds an object of the other kind. Changes nothing.
    #[must_use]
    pub fn refuses_kind(&mut self, edits: &[Edit]) -> bool {
        let mark = self.mark();
        let refusal = self.apply(edits);
        self.undo_to(mark);
        refusal == Err(Refusal::WrongKind)
    }

    /// What was there before: the value, or nothing at all for a member.
    fn apply_one(&mut self, key: &[u8], action: Action<'_>) -> Result<Option<Arc<[u8]>>, Refusal> {
        match action {
            Action::Set(field, value) => self.set(key, field, value),
            Action::Put(member) => self.put(key, member),
            Action::Remove(name) => Ok(self.remove(key, name)),
            Action::Delete => {
                if let Some((key, object)) = self.objects.remove_entry(key) {
                    self.undo.push(Undo::Deleted { key, object });
                }
                Ok(None)
            }
        }
    }

    fn set(&mut self, key: &[u8], field: &[u8], value: &[u8]) -> Result<Option<Arc<[u8]>>, Refusal> {
        let value = Arc::from(value);
        let before = match self.objects.get_mut(key) {
            Some(Object::Hash(fields)) => fields.insert(field.to_vec(), value),
            Some(Object::Set(_)) => return Err(Refusal::WrongKind),
            None => {
                let fields = BTreeMap::from([(field.to_vec(), value)]);
                self.objects.insert(key.to_vec(), Object::Hash(fields));
                None
            }
        };
        self.undo.push(Undo::Field { key: key.to_vec(), field: field.to_vec(), before: before.clone() });
        Ok(before)
    }

    fn put(&mut self, key: &[u8], member: &[u8]) -> Result<Option<Arc<[u8]>>, Refusal> {
        let new = match self.objects.get_mut(key) {
            Some(Object::Set(members)) => members.insert(member.to_vec()),
            Some(Object::Hash(_)) => return Err(Refusal::WrongKind),
            None => {
                self.objects.insert(key.to_vec(), Object::Set(BTreeSet::from([member.to_vec()])));
                true
            }
        };
        if new {
            self.undo.push(Undo::NewMember { key: key.to_vec(), member: member.to_vec() });
        }
        Ok(if new { None } else { Some(Arc::from(&[][..])) })
    }

    fn remove(&mut self, key: &[u8], name: &[u8]) -> Option<Arc<[u8]>> {
        let object = self.objects.get_mut(key)?;
        let before = match object {
            Object::Hash(fields) => {
                let before = fields.remove(name)?;
                let (key, field) = (key.to_vec(), name.to_vec());
                self.undo.push(Undo::Field { key, field, before: Some(before.clone()) });
                before
            }
            Object::Set(members) => {
                let member = members.take(name)?;
                self.undo.push(Undo::Member { key: key.to_vec(), member });
                Arc::from(&[][..])
            }
        };
        if object.is_empty() {
            self.objects.remove(key);
        }
        Some(before)
    }

    /// The present moment, for [`undo_to`](Self::undo_to).
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.undo.len())
    }

    /// Takes back every change made since `mark`.
    pub fn undo_to(&mut self, mark: Mark) {
        while self.undo.len() > mark.0 {
            let Some(change) = self.undo.pop() else { return };
            self.take_back(change);
        }
    }

    /// Makes every change so far final.
    pub fn settle(&mut self) {
        self.undo.clear();
    }

    fn take_back(&mut self, change: Undo) {
        match change {
            Undo::Field { key, field, before: Some(value) } => match self.objects.entry(key) {
                btree_map::Entry::Occupied(mut present) => {
                    if let Object::Hash(fields) = present.get_mut() {
                        fields.insert(field, value);
                    }
                }
                btree_map::Entry::Vacant(absent) => {
                    absent.insert(Object::Hash(BTreeMap::from([(field, value)])));
                }
            },
            Undo::Field { key, field: name, before: None } | Undo::NewMember { key, member: name } => {
                let emptied = self.objects.get_mut(&key).is_some_and(|object| {
                    match object {
                        Object::Hash(fields) => drop(fields.remove(&name)),
                        Object::Set(members) => drop(members.remove(&name)),
                    }
                    object.is_empty()
                });
                if emptied {
                    self.objects.remove(&key);
                }
            }
            Undo::Member { key, member } => match self.objects.entry(key) {
                btree_map::Entry::Occupied(mut present) => {
                    if let Object::Set(members) = present.get_mut() {
                        members.insert(member);
                    }
                }
                btree_map::Entry::Vacant(absent) => {
                    absent.insert(Object::Set(BTreeSet::from([member])));
                }
            },
            Undo::Deleted { key, object } => {
                self.objects.insert(key, object);
            }
        }
    }

    fn range_of(
        &self,
        key: &[u8],
        (from, to): (Option<&Vec<u8>>, &ScanEnd),
        limit: Option<u32>,
        is_reverse: bool,
    ) -> Entries<'_> {
        let lower = from.map_or(Bound::Unbounded, |name| Bound::Included(name.as_slice()));
        let upper = match to {
            ScanEnd::Open => Bound::Unbounded,
            ScanEnd::Before(name) => Bound::Excluded(name.as_slice()),
            ScanEnd::With(name) => Bound::Included(name.as_slice()),
        };
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        let names = self.objects.get(key).map(|object| object.range(lower, upper));
        Entries { names, left: limit, is_reverse }
    }

    /// What the engine must answer.
    #[must_use]
    pub fn answer(&self, read: &Read) -> Answer {
        match read {
            Read::Get { key, field } => match self.objects.get(key) {
                None => Answer::Value(None),
                Some(Object::Hash(fields)) => Answer::Value(fields.get(field).map(|value| value.to_vec())),
                Some(Object::Set(_)) => Answer::WrongKind,
            },
            Read::Contains { key, name } => Answer::Present(match self.objects.get(key) {
                None => false,
                Some(Object::Hash(fields)) => fields.contains_key(name),
                Some(Object::Set(members)) => members.contains(name),
            }),
            Read::Len { key } => Answer::Count(self.objects.get(key).map_or(0, Object::len) as u64),
            Read::Kind { key } => Answer::Kind(self.objects.get(key).map(Object::kind)),
            Read::Scan { key, from, to, limit, is_reverse } => Answer::Entries(
                self.range_of(key, (from.as_ref(), to), *limit, *is_reverse)
                    .map(|(name, value)| (name.to_vec(), value.to_vec()))
                    .collect(),
            ),
            Read::Keys { prefix } => {
                Answer::Keys(self.keys(prefix).map(|(key, kind)| (key.to_vec(), kind)).collect())
            }
        }
    }

    fn keys<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = (&'a [u8], Kind)> {
        self.objects
            .range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(key, object)| (key.as_slice(), object.kind()))
    }

    /// Whether `answer` is what the engine must answer. Copies nothing.
    #[must_use]
    pub fn agrees(&self, read: &Read, answer: &Answer) -> bool {
        match (read, answer) {
            (Read::Scan { key, from, to, limit, is_reverse }, Answer::Entries(found)) => self
                .range_of(key, (from.as_ref(), to), *limit, *is_reverse)
                .eq(found.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))),
            (Read::Keys { prefix }, Answer::Keys(found)) => {
                self.keys(prefix).eq(found.iter().map(|(key, kind)| (key.as_slice(), *kind)))
            }
            (Read::Get { key, field }, Answer::Value(Some(found))) => match self.objects.get(key) {
                Some(Object::Hash(fields)) => fields.get(field).is_some_and(|value| **value == **found),
                _ => false,
            },
            _ => self.answer(read) == *answer,
        }
    }
}

#[cfg(test)]
mod tests;
