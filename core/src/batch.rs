//! A group of writes that is applied whole or not at all.
//!
//! ```text
//! encoding of a batch, which is also the payload of a log record
//! ┌──────────┬───────────────────────────────────────────────┬─────┐
//! │ count u32│ edit: op u8 │ key u16 len, bytes │ name, value │ ... │
//! └──────────┴───────────────────────────────────────────────┴─────┘
//! ```

use crate::options::Durability;

/// Writes to any number of objects, applied atomically and in order by [`Database::commit`](crate::Database::commit).
///
/// Blind writes ([`set`](Self::set), [`put`](Self::put), [`remove`](Self::remove), [`delete`](Self::delete)) read
/// nothing. Counted writes ([`insert`](Self::insert), [`add`](Self::add), [`take`](Self::take)) report, in
/// [`Commit::outcomes`](crate::Commit::outcomes) and in the order in which they were added, what was there before.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    pub(crate) edits: Vec<BatchEdit>,
    pub(crate) durability: Option<Durability>,
}

/// One write of a batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchEdit {
    pub(crate) key: Vec<u8>,
    pub(crate) action: Action,
    pub(crate) counted: bool,
}

/// What a write does to an object.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    SetField { field: Vec<u8>, value: Vec<u8> },
    PutMember { member: Vec<u8> },
    Remove { name: Vec<u8> },
    Delete,
}

impl WriteBatch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Commits at `level` instead of the database's default.
    pub fn durability(&mut self, level: Durability) -> &mut Self {
        self.durability = Some(level);
        self
    }

    /// Number of writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.edits.len()
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Sets a field of a hash, blindly.
    pub fn set(&mut self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        let action = Action::SetField { field: field.as_ref().to_vec(), value: value.as_ref().to_vec() };
        self.push(key, action, false)
    }

    /// Puts a member into a set, blindly.
    pub fn put(&mut self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> &mut Self {
        self.push(key, Action::PutMember { member: member.as_ref().to_vec() }, false)
    }

    /// Removes a field of a hash, or a member of a set, blindly.
    pub fn remove(&mut self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> &mut Self {
        self.push(key, Action::Remove { name: name.as_ref().to_vec() }, false)
    }

    /// Deletes the whole object, blindly.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(key, Action::Delete, false)
    }

    /// Sets a field of a hash; the outcome is the value before.
    pub fn insert(&mut self, key: impl AsRef<[u8]>, field: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        let action = Action::SetField { field: field.as_ref().to_vec(), value: value.as_ref().to_vec() };
        self.push(key, action, true)
    }

    /// Puts a member into a set; the outcome is `Some` if it was there before.
    pub fn add(&mut self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> &mut Self {
        self.push(key, Action::PutMember { member: member.as_ref().to_vec() }, true)
    }

    /// Removes a field or member; the outcome is the value before (empty for a member).
    pub fn take(&mut self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> &mut Self {
        self.push(key, Action::Remove { name: name.as_ref().to_vec() }, true)
    }

    fn push(&mut self, key: impl AsRef<[u8]>, action: Action, counted: bool) -> &mut Self {
        self.edits.push(BatchEdit { key: key.as_ref().to_vec(), action, counted });
        self
    }
}
