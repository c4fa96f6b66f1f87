//! Building the image of a node from its entries in order.

use super::{
    FRAME_BYTES, HEADER_END, LEVELS_MAX, Node, SLOT_BYTES, common_prefix_len, fingerprint, head, hint_bytes,
    varint,
};
use crate::tree::PageRef;
use std::ops::Range;

/// The smallest size at which pages may be cut: two children of a branch fit well below half of it.
pub const PAGE_BYTES_MIN: usize = 256;

/// The largest size at which pages may be cut: every record starts within reach of a `u16`.
pub const PAGE_BYTES_MAX: usize = 1 << 16;

/// Collects sorted records until they fill a page.
///
/// A record is taken when the image stays within the page size, or when the image without it is below half of the
/// page size. So a page is longer than the page size only if one of its records is longer than half of it, and a
/// branch always has room for two children.
///
/// Records are kept as they will be stored, relative to the prefix so far, so that runs of records move from an old
/// node to its replacement by copying bytes. A key that does not share the prefix makes the builder
/// [rebase](Self::rebase) what it has; [`finish`](Self::finish) rebases to the longest prefix.
#[derive(Debug)]
pub struct NodeBuilder {
    level: u8,
    page_bytes: usize,
    prefix: Vec<u8>,
    hints: Vec<u8>,
    slots: Vec<u16>,
    records: Vec<u8>,
    /// The allocation that the next rebase writes to.
    spare: Vec<u8>,
}

impl NodeBuilder {
    /// An empty builder of nodes at `level` that are cut at `page_bytes`.
    ///
    /// # Panics
    /// If `page_bytes` is not within [`PAGE_BYTES_MIN`]`..=`[`PAGE_BYTES_MAX`], or `level` not below [`LEVELS_MAX`].
    #[must_use]
    pub fn new(level: u8, page_bytes: usize) -> Self {
        assert!(
            (PAGE_BYTES_MIN..=PAGE_BYTES_MAX).contains(&page_bytes),
            "page size {page_bytes} is out of range"
        );
        assert!(level < LEVELS_MAX, "a tree has at most {LEVELS_MAX} levels");
        Self {
            level,
            page_bytes,
            prefix: Vec::new(),
            hints: Vec::new(),
            slots: Vec::new(),
            records: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// The level of the nodes.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Length of the image as it stands.
    #[must_use]
    pub fn bytes(&self) -> usize {
        HEADER_END + self.len() * self.overhead() + self.prefix.len() + self.records.len()
    }

    /// Adds a record, whose key must be above all so far. `false`: the page is full and unchanged.
    ///
    /// An empty builder takes any record. The key of a branch's first record is left out.
    #[must_use]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        if self.len() < self.first_keyed() {
            self.write_record(&[], &[], value);
            return true;
        }
        if self.keyed() == 0 {
            if !self.is_empty()
                && !self.has_room(self.bytes(), key.len() + Self::record_bytes(0, value.len()))
            {
                return false;
            }
            self.prefix.extend_from_slice(key);
            self.write_record(key, &[], value);
            return true;
        }
        debug_assert!(self.is_above_last(key), "records are pushed in key order");
        let shared = common_prefix_len(&self.prefix, key);
        let suffix = &key[shared..];
        if !self.has_room(self.bytes_rebased(shared), Self::record_bytes(suffix.len(), value.len())) {
            return false;
        }
        if shared < self.prefix.len() {
            self.rebase(shared);
        }
        self.write_record(key, suffix, value);
        true
    }

    /// Adds the records `range` of `node`, which is of the same level and whose keys must be above all so far, as long
    /// as they fit. Returns how many were taken.
    ///
    /// The first record of a branch has no key: it cannot be part of `range`, nor begin the new branch.
    pub fn append(&mut self, node: &Node, range: Range<usize>) -> usize {
        debug_assert_eq!(self.level, node.level(), "nodes of one level are merged");
        debug_assert!(range.start >= self.first_keyed() && self.len() >= self.first_keyed());
        if range.is_empty() {
            return 0;
        }
        if self.keyed() == 0 {
            self.prefix.extend_from_slice(node.prefix());
        } else if self.prefix.len() > node.prefix().len()
            && self.prefix.starts_with(node.prefix())
            && self.bytes_rebased(node.prefix().len()) <= self.page_bytes
        {
            self.rebase(node.prefix().len());
        }
        if self.prefix == node.prefix() { self.copy_run(node, range) } else { self.push_run(node, range) }
    }

    /// Removes the last child and returns it with its key; the key of the first is empty.
    pub fn pop_child(&mut self) -> Option<(Vec<u8>, PageRef)> {
        debug_assert!(self.level > 0, "only branches have children");
        let start = usize::from(*self.slots.last()?);
        let (suffix, value) = split_record(&self.records[start..]);
        let child = PageRef::from_bytes(value.try_into().expect("a branch was pushed references only"));
        let key = if self.keyed() == 0 { Vec::new() } else { [&self.prefix[..], suffix].concat() };
        self.slots.pop();
        self.hints.truncate(self.hints.len() - hint_bytes(self.level));
        self.records.truncate(start);
        if self.keyed() == 0 {
            self.prefix.clear();
        }
        Some((key, child))
    }

    /// The last key.
    ///
    /// # Panics
    /// If there is none.
    pub fn last_key(&self, key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(&self.prefix);
        key.extend_from_slice(self.suffix(self.len() - 1));
    }

    /// The image of everything added, with zeroes for its frame. The builder is empty afterwards.
    ///
    /// # Panics
    /// If there is no record.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        assert!(!self.is_empty(), "a node has at least one record");
        if self.keyed() > 1 {
            let more = common_prefix_len(self.suffix(self.first_keyed()), self.suffix(self.len() - 1));
            if more > 0 {
                self.rebase(self.prefix.len() + more);
            }
        }
        let count = u16::try_from(self.len()).expect("records are at least two bytes and start within a u16");
        let prefix_len = u32::try_from(self.prefix.len()).expect("keys fit 32 bits");
        let mut image = Vec::with_capacity(self.bytes());
        image.resize(FRAME_BYTES, 0);
        image.extend_from_slice(&count.to_le_bytes());
        image.extend_from_slice(&[self.level, 0]);
        image.extend_from_slice(&prefix_len.to_le_bytes());
        image.extend_from_slice(&self.prefix);
        image.extend_from_slice(&self.hints);
        image.extend(self.slots.iter().flat_map(|slot| slot.to_le_bytes()));
        image.extend_from_slice(&self.records);
        self.clear();
        image
    }

    fn clear(&mut self) {
        self.prefix.clear();
        self.hints.clear();
        self.slots.clear();
        self.records.clear();
    }

    /// Bytes outside of `records` for each record.
    fn overhead(&self) -> usize {
        hint_bytes(self.level) + SLOT_BYTES
    }

    fn record_bytes(suffix: usize, value: usize) -> usize {
        varint::len(suffix) + varint::len(value) + suffix + value
    }

    /// Whether a record of `record` bytes is taken on top of an image of `bytes`.
    fn has_room(&self, bytes: usize, record: usize) -> bool {
        bytes + self.overhead() + record <= self.page_bytes || bytes < self.page_bytes / 2
    }

    /// Index of the first record that has a key.
    fn first_keyed(&self) -> usize {
        usize::from(self.level > 0)
    }

    /// Number of records that have a key, and so of those that share the prefix.
    fn keyed(&self) -> usize {
        self.len().saturating_sub(self.first_keyed())
    }

    /// An upper bound of [`bytes`](Self::bytes) after a rebase to a shorter prefix of `len` bytes.
    fn bytes_rebased(&self, len: usize) -> usize {
        const LONGER_VARINT: usize = 2;
        let moved = self.prefix.len() - len;
        if moved == 0 { self.bytes() } else { self.bytes() - moved + self.keyed() * (moved + LONGER_VARINT) }
    }

    fn suffix(&self, index: usize) -> &[u8] {
        split_record(&self.records[usize::from(self.slots[index])..]).0
    }

    fn is_above_last(&self, key: &[u8]) -> bool {
        let mut last = Vec::new();
        self.last_key(&mut last);
        key > &last[..]
    }

    fn write_record(&mut self, key: &[u8], suffix: &[u8], value: &[u8]) {
        if self.level == 0 {
            self.hints.push(fingerprint(key));
        } else {
            self.hints.extend_from_slice(&head(suffix).to_le_bytes());
        }
        self.slots.push(record_start(&self.records));
        varint::write(&mut self.records, suffix.len());
        varint::write(&mut self.records, value.len());
        self.records.extend_from_slice(suffix);
        self.records.extend_from_slice(value);
    }

    /// Takes the records of `range` that fit, whose prefix is the builder's own: copies bytes and shifts slots.
    fn copy_run(&mut self, node: &Node, range: Range<usize>) -> usize {
        let (run_start, bytes, overhead) = (node.record_offset(range.start), self.bytes(), self.overhead());
        let bytes_with =
            |taken: usize| bytes + taken * overhead + node.record_offset(range.start + taken) - run_start;
        let mut taken = largest(range.len(), |taken| bytes_with(taken) <= self.page_bytes);
        let below_half = bytes_with(taken) < self.page_bytes / 2;
        if taken < range.len() && (below_half || (taken == 0 && self.keyed() == 0)) {
            taken += 1;
        }
        let range = range.start..range.start + taken;
        let shift = self.records.len();
        let shifted = node.slots(range.clone()).map(|slot| (usize::from(slot) - run_start + shift) as u16);
        self.slots.extend(shifted);
        self.hints.extend_from_slice(node.hints(range.clone()));
        self.records.extend_from_slice(node.records(range));
        taken
    }

    /// Takes the records of `range` that fit, one by one.
    fn push_run(&mut self, node: &Node, range: Range<usize>) -> usize {
        let mut key = Vec::new();
        let start = range.start;
        for index in range.clone() {
            node.key(index, &mut key);
            if !self.push(&key, node.value(index)) {
                return index - start;
            }
        }
        range.len()
    }

    /// Writes all records relative to a prefix of `len` bytes, which all their keys share.
    fn rebase(&mut self, len: usize) {
        let records = std::mem::replace(&mut self.records, std::mem::take(&mut self.spare));
        self.records.clear();
        let mut prefix = std::mem::take(&mut self.prefix);
        let dropped = len.saturating_sub(prefix.len());
        if dropped > 0 {
            let (suffix, _) = split_record(&records[usize::from(self.slots[self.first_keyed()])..]);
            prefix.extend_from_slice(&suffix[..dropped]);
        }
        for index in 0..self.len() {
            let (suffix, value) = split_record(&records[usize::from(self.slots[index])..]);
            let keyed = index >= self.first_keyed();
            let (head, tail) = if keyed { (&prefix[len..], &suffix[dropped..]) } else { (&[][..], suffix) };
            self.slots[index] = record_start(&self.records);
            varint::write(&mut self.records, head.len() + tail.len());
            varint::write(&mut self.records, value.len());
            self.records.extend_from_slice(head);
            self.records.extend_from_slice(tail);
            self.records.extend_from_slice(value);
        }
        prefix.truncate(len);
        self.prefix = prefix;
        self.spare = records;
        if self.level > 0 {
            self.renew_heads();
        }
    }

    fn renew_heads(&mut self) {
        self.hints.clear();
        for slot in &self.slots {
            let (suffix, _) = split_record(&self.records[usize::from(*slot)..]);
            self.hints.extend_from_slice(&head(suffix).to_le_bytes());
        }
    }
}

/// Where the next record starts.
fn record_start(records: &[u8]) -> u16 {
    u16::try_from(records.len()).expect("a page is cut before its records pass a u16")
}

/// Suffix and value of the record at the start of `bytes`, which the builder wrote.
fn split_record(bytes: &[u8]) -> (&[u8], &[u8]) {
    let written = "the builder reads what it wrote";
    let (suffix_len, suffix_digits) = varint::read(bytes).expect(written);
    let (value_len, value_digits) = varint::read(&bytes[suffix_digits..]).expect(written);
    let (suffix, rest) = bytes[suffix_digits + value_digits..].split_at(suffix_len);
    (suffix, &rest[..value_len])
}

/// The largest number up to `limit` for which `holds`, which holds for 0 and up to some number.
fn largest(limit: usize, holds: impl Fn(usize) -> bool) -> usize {
    if holds(limit) {
        return limit;
    }
    let (mut low, mut high) = (0, limit);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}
