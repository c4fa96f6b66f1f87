//! What the catalog says of an object.
//!
//! ```text
//! record ┌─────────┬─────────┬──────────────────────┬───────────────┬───────────────┬──────┐
//!        │ kind u8 │ form u8 │ incarnation (varint) │ count varint  │ bytes varint  │ body │
//!        └─────────┴─────────┴──────────────────────┴───────────────┴───────────────┴──────┘
//! kind   1 hash, 2 set
//! form   0 inline: body = entries in order of names, each  name (varint length, bytes), value (the same; hashes only)
//!        1 tree:   body = page id u64, checksum u64 of the root of the object's own tree
//! ```
//! `count` is the number of entries and `bytes` the sum of the lengths of their names and values. `incarnation` is the
//! position of the commit that created the object: a key that is deleted and created again holds a new object.

use crate::codec::{Malformed, Reader, put_bytes, put_varint, varint_bytes};
use crate::database::Kind;
use crate::error::Error;
use crate::ids::Lsn;
use crate::tree::{PageId, PageRef};

/// An object stands inline in its record up to this many bytes.
pub(crate) const INLINE_BYTES_MAX: usize = 1024;
/// An object with a tree of its own comes back inline below this many bytes.
pub(crate) const INLINE_AGAIN_BYTES: u64 = 512;

/// A decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectRecord<'a> {
    pub(crate) kind: Kind,
    pub(crate) incarnation: Lsn,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) body: Body<'a>,
}

/// Where the entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    Inline(&'a [u8]),
    Tree(PageRef),
}

impl<'a> ObjectRecord<'a> {
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let kind = match reader.u8("a kind")? {
            1 => Kind::Hash,
            2 => Kind::Set,
            _ => return Err(Malformed { offset: 0, expected: "a known kind" }),
        };
        let form = reader.u8("a form")?;
        let incarnation = Lsn(reader.varint("an incarnation")?);
        let count = reader.varint("a count")?;
        let total = reader.varint("a size")?;
        let body = match form {
            0 => Body::Inline(reader.take(reader.remaining(), "entries")?),
            1 => {
                let id = PageId(reader.u64("a page id")?);
                let checksum = reader.u64("a checksum")?;
                reader.finish()?;
                Body::Tree(PageRef { id, checksum })
            }
            _ => return Err(Malformed { offset: 1, expected: "a known form" }),
        };
        Ok(Self { kind, incarnation, count, bytes: total, body })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.push(match self.kind {
            Kind::Hash => 1,
            Kind::Set => 2,
        });
        out.push(match self.body {
            Body::Inline(_) => 0,
            Body::Tree(_) => 1,
        });
        put_varint(&mut out, self.incarnation.0);
        put_varint(&mut out, self.count);
        put_varint(&mut out, self.bytes);
        match self.body {
            Body::Inline(entries) => out.extend_from_slice(entries),
            Body::Tree(root) => {
                out.extend_from_slice(&root.id.0.to_le_bytes());
                out.extend_from_slice(&root.checksum.to_le_bytes());
            }
        }
        out
    }
}

/// Bytes that an entry takes in an inline record.
pub(crate) fn entry_bytes(kind: Kind, name: &[u8], value: &[u8]) -> usize {
    let value_bytes = if kind == Kind::Hash { varint_bytes(value.len() as u64) + value.len() } else { 0 };
    varint_bytes(name.len() as u64) + name.len() + value_bytes
}

/// Appends an entry to the body of an inline record.
pub(crate) fn put_entry(out: &mut Vec<u8>, kind: Kind, name: &[u8], value: &[u8]) {
    put_bytes(out, name);
    if kind == Kind::Hash {
        put_bytes(out, value);
    }
}

/// The entries of an inline body, in order.
pub(crate) fn entries(kind: Kind, body: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), Malformed>> {
    let mut reader = Reader::new(body);
    std::iter::from_fn(move || {
        if reader.remaining() == 0 {
            return None;
        }
        let entry = next_entry(&mut reader, kind);
        if entry.is_err() {
            reader = Reader::new(&[]);
        }
        Some(entry)
    })
}

fn next_entry<'a>(reader: &mut Reader<'a>, kind: Kind) -> Result<(&'a [u8], &'a [u8]), Malformed> {
    let name = reader.bytes("a name")?;
    let value = if kind == Kind::Hash { reader.bytes("a value")? } else { &[] };
    Ok((name, value))
}

/// A record that does not decode.
pub(crate) fn damaged_record(key: &[u8], malformed: Malformed) -> Error {
    let place = format!("the record of key \"{}\"", key.escape_ascii());
    Error::corruption(place, malformed.offset as u64, malformed.expected, "other bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_in_both_forms() {
        let mut body = Vec::new();
        put_entry(&mut body, Kind::Hash, b"a", b"1");
        put_entry(&mut body, Kind::Hash, b"", b"");
        for body in [Body::Inline(&body), Body::Tree(PageRef { id: PageId(7), checksum: 9 })] {
            let record = ObjectRecord { kind: Kind::Hash, incarnation: Lsn(300), count: 2, bytes: 2, body };
            assert_eq!(ObjectRecord::decode(&record.encode()), Ok(record));
        }
        let seen: Vec<_> = entries(Kind::Hash, &body).map(Result::unwrap).collect();
        assert_eq!(seen, [(&b"a"[..], &b"1"[..]), (b"", b"")]);
        assert_eq!(body.len(), entry_bytes(Kind::Hash, b"a", b"1") + entry_bytes(Kind::Hash, b"", b""));
    }

    #[test]
    fn truncated_and_unknown_records_are_refused() {
        let body = Body::Tree(PageRef { id: PageId(7), checksum: 9 });
        let whole = ObjectRecord { kind: Kind::Set, incarnation: Lsn(1), count: 1, bytes: 1, body }.encode();
        for len in 0..whole.len() {
            assert!(ObjectRecord::decode(&whole[..len]).is_err(), "cut at {len}");
        }
        for (at, value) in [(0, 0), (0, 3), (1, 2)] {
            let mut unknown = whole.clone();
            unknown[at] = value;
            assert!(ObjectRecord::decode(&unknown).is_err());
        }
    }
}
