//! A generation of the memtable.

use crate::batch::WriteBatch;
use crate::ids::Lsn;
use crate::memtable::{Memtable, Presence};
use bytes::Bytes;

/// A memtable of its own, without log and pages.
pub struct Generation(Memtable);

impl Generation {
    /// One without edits, whose next position is 1.
    #[must_use]
    pub fn empty() -> Self {
        Self(Memtable::new(Lsn(0), 7))
    }

    /// Applies a batch at `position`: sets `field` of each of `keys` to `value`. One thread at a time.
    pub fn set(&self, position: u64, keys: &[&str], field: &str, value: &str) {
        let mut batch = WriteBatch::new();
        for key in keys {
            batch.set(key, field, value);
        }
        let (payload, _) = batch.into_parts();
        self.0.apply(Lsn(position), &Bytes::from(payload)).expect("a batch encodes itself");
    }

    /// The newest position that readers see.
    #[must_use]
    pub fn visible(&self) -> u64 {
        self.0.visible().0
    }

    /// The value as of `position`, if this generation has one.
    #[must_use]
    pub fn get(&self, key: &str, field: &str, position: u64) -> Option<String> {
        match self.0.object(key.as_bytes())?.presence(field.as_bytes(), Lsn(position)) {
            Presence::Present(value) => Some(String::from_utf8_lossy(value).into_owned()),
            Presence::Absent | Presence::Unknown => None,
        }
    }

    /// The value of `field` in every object, as of `position`, in the order in which the objects came.
    #[must_use]
    pub fn all(&self, field: &str, position: u64) -> Vec<Option<String>> {
        let keys = self.0.objects().map(|object| String::from_utf8_lossy(object.key()).into_owned());
        keys.map(|key| self.get(&key, field, position)).collect()
    }
}
