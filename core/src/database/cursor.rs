//! Where a scan is, in a form that outlives it.

use super::range::Bounds;
use super::scan::{Direction, Scan};
use super::snapshot::Snapshot;
use crate::codec::{Malformed, Reader, put_bytes};
use crate::error::{Error, Result};
use crate::options::NAME_BYTES_LIMIT;
use std::ops::Bound;

/// The rest of a scan: made by [`Scan::cursor`], and gone on with by [`Snapshot::resume`] or
/// [`Database::resume`](crate::Database::resume). It holds names, not positions: what was committed since the scan was
/// begun is seen or not as the snapshot that it is resumed on says.
///
/// As bytes it can be handed to somebody else and come back, in another process or another version:
///
/// ```text
/// ┌────────────┬──────────────┬────────────┬──────┬────┐
/// │ version u8 │ direction u8 │ key, bytes │ from │ to │   from, to: 0 no bound, 1 included, 2 excluded, then bytes
/// └────────────┴──────────────┴────────────┴──────┴────┘   direction: 0 forward, 1 reverse, 2 done (nothing follows)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(super) key: Vec<u8>,
    /// What is left; `None` at the end.
    pub(super) range: Option<Bounds>,
    pub(super) direction: Direction,
}

const VERSION: u8 = 1;

impl Cursor {
    /// Whether the scan had given everything.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.range.is_none()
    }

    /// The form to store or send: about as long as the key and the name at which the scan is.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Some((from, to)) = &self.range else { return vec![VERSION, 2] };
        let mut bytes = vec![VERSION, u8::from(self.direction == Direction::Reverse)];
        put_bytes(&mut bytes, &self.key);
        for bound in [from, to] {
            match bound {
                Bound::Unbounded => bytes.push(0),
                Bound::Included(name) => put_bound(&mut bytes, 1, name),
                Bound::Excluded(name) => put_bound(&mut bytes, 2, name),
            }
        }
        bytes
    }

    /// The cursor that [`to_bytes`](Self::to_bytes) stored.
    ///
    /// # Errors
    /// `InvalidInput` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        decode(bytes).map_err(|malformed| {
            let Malformed { offset, expected } = malformed;
            Error::invalid_input(format!("not a cursor: expected {expected} at byte {offset}"))
        })
    }

    pub(super) fn resume(&self, snapshot: Snapshot) -> Scan {
        let nothing = || (Bound::Excluded(Vec::new()), Bound::Excluded(Vec::new()));
        Scan::new(snapshot, &self.key, self.range.clone().unwrap_or_else(nothing), self.direction)
    }
}

fn put_bound(bytes: &mut Vec<u8>, form: u8, name: &[u8]) {
    bytes.push(form);
    put_bytes(bytes, name);
}

fn decode(bytes: &[u8]) -> Result<Cursor, Malformed> {
    let mut reader = Reader::new(bytes);
    if reader.u8("a version")? != VERSION {
        return Err(Malformed { offset: 0, expected: "version 1" });
    }
    let direction = match reader.u8("a direction")? {
        0 => Direction::Forward,
        1 => Direction::Reverse,
        2 => {
            reader.finish()?;
            return Ok(Cursor { key: Vec::new(), range: None, direction: Direction::Forward });
        }
        _ => return Err(Malformed { offset: 1, expected: "a known direction" }),
    };
    let key = decode_name(&mut reader)?;
    let range = Some((decode_bound(&mut reader)?, decode_bound(&mut reader)?));
    reader.finish()?;
    Ok(Cursor { key, range, direction })
}

fn decode_bound(reader: &mut Reader<'_>) -> Result<Bound<Vec<u8>>, Malformed> {
    let offset = reader.offset();
    match reader.u8("a bound")? {
        0 => Ok(Bound::Unbounded),
        1 => decode_name(reader).map(Bound::Included),
        2 => decode_name(reader).map(Bound::Excluded),
        _ => Err(Malformed { offset, expected: "a known bound" }),
    }
}

fn decode_name(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let offset = reader.offset();
    let name = reader.bytes("a name")?;
    if name.len() > NAME_BYTES_LIMIT {
        return Err(Malformed { offset, expected: "a name of at most 64 KiB" });
    }
    Ok(name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_everything_else_is_refused() {
        let bounds = [Bound::Unbounded, Bound::Included(b"a".to_vec()), Bound::Excluded(b"bc".to_vec())];
        for direction in [Direction::Forward, Direction::Reverse] {
            for from in &bounds {
                for to in &bounds {
                    let cursor =
                        Cursor { key: b"key".to_vec(), range: Some((from.clone(), to.clone())), direction };
                    let bytes = cursor.to_bytes();
                    assert_eq!(Cursor::from_bytes(&bytes).unwrap(), cursor);
                    for len in 0..bytes.len() {
                        assert!(Cursor::from_bytes(&bytes[..len]).is_err(), "cut at {len}");
                    }
                    assert!(Cursor::from_bytes(&[&bytes[..], b"x"].concat()).is_err());
                }
            }
        }
        let done = Cursor { key: Vec::new(), range: None, direction: Direction::Forward };
        assert_eq!(Cursor::from_bytes(&done.to_bytes()).unwrap(), done);
        assert_eq!(
            Cursor::from_bytes(&[9]).unwrap_err().to_string(),
            "not a cursor: expected version 1 at byte 0"
        );
    }
}
