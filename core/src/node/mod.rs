//! Nodes: the images of the pages that make up a tree.
//!
//! An image is built once ([`NodeBuilder`]), never changed, and read in place ([`Node`]). Nothing is decoded ahead of
//! a read: finding one record touches its fingerprint, its slot and the record itself.
//!
//! # Image
//!
//! All numbers are little endian; `varint` is LEB128 of at most five bytes.
//!
//! ```text
//!  0 ┌───────────────────────────────────────────────────────────────┐
//!    │ frame: FRAME_BYTES that belong to the page store              │
//! 32 ├──────────┬──────────┬─────────┬───────────────────────────────┤
//!    │ count u16│ level u8 │ zero u8 │ prefix length u32             │
//! 40 ├──────────┴──────────┴─────────┴───────────────────────────────┤
//!    │ prefix: what all keys of the node begin with                  │
//!    ├───────────────────────────────────────────────────────────────┤
//!    │ hints, one for each record: a leaf's are fingerprints (u8),   │
//!    │ a branch's are heads (u32)                                    │
//!    ├───────────────────────────────────────────────────────────────┤
//!    │ slots: u16 offset of each record within `records`, ascending  │
//!    ├───────────────────────────────────────────────────────────────┤
//!    │ records, in key order, each beginning where the last one ends:│
//!    │ ┌──────────────────────┬─────────────────────┬────────┬───────┤
//!    │ │ suffix length varint │ value length varint │ suffix │ value │
//!    └─┴──────────────────────┴─────────────────────┴────────┴───────┘
//! ```
//!
//! A **leaf** has level 0; its records are the entries of the tree. A record's fingerprint is a byte of the hash of
//! its key: a point lookup compares keys only where the fingerprint is that of the key it looks for.
//!
//! A **branch** has a level above 0; the value of each of its records is a reference to a child, and the record's key
//! is the inclusive lower bound of what the child holds. A record's head is the first four bytes of its suffix, padded
//! with zeroes, as a number: different heads order as their suffixes do, so most searches read no records. The first
//! record of a branch has no key: its bound is the branch's own, which stands in the parent. It has an empty suffix
//! and is exempt from the prefix.

mod builder;
mod reader;
mod varint;

pub use builder::NodeBuilder;
pub use reader::Node;

#[cfg(test)]
mod tests;

use xxhash_rust::xxh3::xxh3_64;

/// The part at the beginning of an image that belongs to the page store.
pub const FRAME_BYTES: usize = 32;

/// Levels that a tree may have. Two children per branch suffice for more leaves than a disk holds.
pub const LEVELS_MAX: u8 = 32;

/// Bytes of the frame and the header.
const HEADER_END: usize = FRAME_BYTES + 8;

/// The byte by which a leaf tells most absent keys from a present one. Stored: the hash must never change.
#[inline]
fn fingerprint(key: &[u8]) -> u8 {
    xxh3_64(key) as u8
}

/// The number by which a branch tells most separators from a key.
#[inline]
fn head(suffix: &[u8]) -> u32 {
    match suffix.first_chunk() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => suffix
            .iter()
            .enumerate()
            .fold(0, |head, (index, byte)| head | u32::from(*byte) << (24 - 8 * index)),
    }
}

/// Length of the hint of a record of a node at `level`.
#[inline]
fn hint_bytes(level: u8) -> usize {
    if level == 0 { size_of::<u8>() } else { size_of::<u32>() }
}

/// Length of a slot.
const SLOT_BYTES: usize = size_of::<u16>();

/// Number of bytes at the beginning that are the same in both.
pub fn common_prefix_len(left: &[u8], right: &[u8]) -> usize {
    const WORD: usize = size_of::<u64>();
    let words = left.chunks_exact(WORD).zip(right.chunks_exact(WORD)).take_while(|(l, r)| l == r).count();
    let same = words * WORD;
    same + left[same..].iter().zip(&right[same..]).take_while(|(l, r)| l == r).count()
}
