//! A group of writes that is applied whole or not at all.
//!
//! A batch is encoded while it is built: what is committed to the log, replayed after a crash and referred to by the
//! memtable is the same run of bytes.
//!
//! ```text
//! edit   ┌───────┬────────────┬─────────────┬──────────────┐
//!        │ op u8 │ key, bytes │ name, bytes │ value, bytes │   bytes = varint length, then that many bytes
//!        └───────┴────────────┴─────────────┴──────────────┘
//! op     1 set: key, name, value   2 put: key, name   3 remove: key, name   4 delete: key
//! ```

use crate::codec::{Malformed, Reader, put_bytes, varint_bytes};
use crate::options::{Durability, check_names};
use std::ops::Range;

/// Writes to any number of objects, applied atomically and in order by [`Database::commit`](crate::Database::commit).
///
/// Blind writes ([`set`](Self::set), [`put`](Self::put), [`remove`](Self::remove), [`delete`](Self::delete)) read
/// nothing. Counted writes ([`insert`](Self::insert), [`add`](Self::add), [`take`](Self::take)) report, in
/// [`Commit::outcomes`](crate::Commit::outcomes) and in the order in which they were added, what was there before.
/// Keys, fields and members are at most 64 KiB long; keys are not empty. A write outside of these limits makes the
/// commit fail with `InvalidInput`.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    payload: Vec<u8>,
    edits: usize,
    /// Indices of the counted edits, ascending.
    counted: Vec<usize>,
    longest_value: usize,
    refusal: Option<String>,
    pub(crate) durability: Option<Durability>,
}

/// What one write does. The discriminants are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    /// Sets a field of a hash.
    Set = 1,
    /// Puts a member into a set.
    Put = 2,
    /// Removes a field or member.
    Remove = 3,
    /// Deletes the object.
    Delete = 4,
}

/// One write of an encoded batch: ranges of its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) op: Op,
    pub(crate) key: Range<usize>,
    pub(crate) name: Range<usize>,
    pub(crate) value: Range<usize>,
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
        self.edits
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits == 0
    }

    /// Sets a field of a hash, blindly.
    pub fn set(
        &mut self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.push(Op::Set, key.as_ref(), field.as_ref(), value.as_ref())
    }

    /// Puts a member into a set, blindly.
    pub fn put(&mut self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> &mut Self {
        self.push(Op::Put, key.as_ref(), member.as_ref(), &[])
    }

    /// Removes a field of a hash, or a member of a set, blindly.
    pub fn remove(&mut self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> &mut Self {
        self.push(Op::Remove, key.as_ref(), name.as_ref(), &[])
    }

    /// Deletes the whole object, blindly.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.push(Op::Delete, key.as_ref(), &[], &[])
    }

    /// Sets a field of a hash; the outcome is the value before.
    pub fn insert(
        &mut self,
        key: impl AsRef<[u8]>,
        field: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> &mut Self {
        self.counted().set(key, field, value)
    }

    /// Puts a member into a set; the outcome is `Some` (and empty) if it was there before.
    pub fn add(&mut self, key: impl AsRef<[u8]>, member: impl AsRef<[u8]>) -> &mut Self {
        self.counted().put(key, member)
    }

    /// Removes a field or member; the outcome is the value before (empty for a member).
    pub fn take(&mut self, key: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> &mut Self {
        self.counted().remove(key, name)
    }

    /// Marks the next edit as counted.
    fn counted(&mut self) -> &mut Self {
        self.counted.push(self.edits);
        self
    }

    fn push(&mut self, op: Op, key: &[u8], name: &[u8], value: &[u8]) -> &mut Self {
        if let Err(refusal) = check_names(key, name) {
            self.refuse(refusal.to_string());
        }
        self.longest_value = self.longest_value.max(value.len());
        // The memtable keeps the payload: a batch of one edit must not waste half of it.
        let bytes = 1 + [key, name, value]
            .map(|part| varint_bytes(part.len() as u64) + part.len())
            .iter()
            .sum::<usize>();
        if self.edits == 0 {
            self.payload.reserve_exact(bytes);
        }
        self.payload.push(op as u8);
        put_bytes(&mut self.payload, key);
        if op != Op::Delete {
            put_bytes(&mut self.payload, name);
        }
        if op == Op::Set {
            put_bytes(&mut self.payload, value);
        }
        self.edits += 1;
        self
    }

    fn refuse(&mut self, why: String) {
        self.refusal.get_or_insert(why);
    }

    /// Why the batch cannot be committed, if so.
    pub(crate) fn refusal(&self, value_bytes_max: usize) -> Option<String> {
        if self.longest_value > value_bytes_max {
            return Some(format!(
                "a value of {} bytes is too long; at most {value_bytes_max}",
                self.longest_value
            ));
        }
        self.refusal.clone()
    }

    /// The encoded batch, and the indices of its counted edits.
    pub(crate) fn into_parts(self) -> (Vec<u8>, Vec<usize>) {
        (self.payload, self.counted)
    }
}

/// The edits of an encoded batch, in order.
pub(crate) fn edits(payload: &[u8]) -> impl Iterator<Item = Result<Edit, Malformed>> {
    let mut reader = Reader::new(payload);
    std::iter::from_fn(move || {
        if reader.remaining() == 0 {
            return None;
        }
        let edit = next_edit(&mut reader);
        if edit.is_err() {
            reader = Reader::new(&[]);
        }
        Some(edit)
    })
}

fn next_edit(reader: &mut Reader<'_>) -> Result<Edit, Malformed> {
    let start = reader.offset();
    let op = match reader.u8("an operation")? {
        1 => Op::Set,
        2 => Op::Put,
        3 => Op::Remove,
        4 => Op::Delete,
        _ => return Err(Malformed { offset: start, expected: "a known operation" }),
    };
    let mut range = |expected| {
        let bytes = reader.bytes(expected)?;
        Ok(reader.offset() - bytes.len()..reader.offset())
    };
    let key = range("a key")?;
    let name = if op == Op::Delete { 0..0 } else { range("a field or member")? };
    let value = if op == Op::Set { range("a value")? } else { 0..0 };
    Ok(Edit { op, key, name, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::NAME_BYTES_LIMIT;

    #[test]
    fn a_batch_decodes_to_the_edits_it_was_built_from() {
        let mut batch = WriteBatch::new();
        batch.set("k", "f", "v").add("s", "").take("k", "f").delete("s");
        assert_eq!(batch.len(), 4);
        let (payload, counted) = batch.into_parts();
        assert_eq!(counted, [1, 2]);
        let seen: Vec<_> = edits(&payload)
            .map(|edit| {
                let edit = edit.unwrap();
                (
                    edit.op,
                    payload[edit.key].to_vec(),
                    payload[edit.name].to_vec(),
                    payload[edit.value].to_vec(),
                )
            })
            .collect();
        let b = |s: &str| s.as_bytes().to_vec();
        assert_eq!(
            seen,
            [
                (Op::Set, b("k"), b("f"), b("v")),
                (Op::Put, b("s"), b(""), b("")),
                (Op::Remove, b("k"), b("f"), b("")),
                (Op::Delete, b("s"), b(""), b("")),
            ]
        );
    }

    #[test]
    fn every_truncation_is_refused_or_ends_between_edits() {
        let mut batch = WriteBatch::new();
        batch.set("key", "field", "value").remove("key", "field");
        let (payload, _) = batch.into_parts();
        let first = edits(&payload).next().unwrap().unwrap().value.end;
        for len in 0..payload.len() {
            let whole = edits(&payload[..len]).all(|edit| edit.is_ok());
            assert_eq!(whole, len == 0 || len == first, "cut at {len}");
        }
    }

    #[test]
    fn over_long_names_and_values_are_refused() {
        let mut batch = WriteBatch::new();
        batch.set("", "f", "v");
        assert!(batch.refusal(10).unwrap().contains("empty"));
        let mut batch = WriteBatch::new();
        batch.put(vec![0; NAME_BYTES_LIMIT + 1], "m");
        assert!(batch.refusal(10).unwrap().contains("65537"));
        let mut batch = WriteBatch::new();
        batch.set("k", "f", "0123456789a");
        assert!(batch.refusal(10).unwrap().contains("11 bytes"));
        assert_eq!(batch.refusal(11), None);
    }
}
