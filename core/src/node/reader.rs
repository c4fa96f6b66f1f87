//! Reading a node in place.

use super::{FRAME_BYTES, HEADER_END, LEVELS_MAX, SLOT_BYTES, fingerprint, head, hint_bytes, varint};
use crate::prefetch::{LINE, prefetch};
use crate::tree::PageRef;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{ControlFlow, Range};

/// What is wrong with an image that is no node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDamage {
    /// Where, counted from the start of the image.
    pub offset: usize,
    /// What a node has there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl NodeDamage {
    #[cold]
    fn new(offset: usize, expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self { offset, expected: expected.to_string(), found: found.to_string() }
    }
}

impl fmt::Display for NodeDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: expected {}, found {}", self.offset, self.expected, self.found)
    }
}

/// A node: an image whose structure was verified when it was loaded, or that was built here.
///
/// **Invariant:** every slot and every length within `image` was checked by [`parse`](Self::parse), or written by the
/// builder, so that no read leaves the image. Fingerprints are not part of the structure: a wrong one hides a record (see
/// [`wrong_fingerprint`](Self::wrong_fingerprint)).
pub struct Node {
    image: Box<[u8]>,
    count: u16,
    level: u8,
    hints_at: u32,
    slots_at: u32,
    records_at: u32,
}

/// Where the parts of a record are within the image.
#[derive(Clone, Copy)]
struct RecordSpan {
    suffix: usize,
    value: usize,
    end: usize,
}

impl Node {
    /// Takes `image` as a node after verifying its structure. Touches every record, allocates nothing.
    ///
    /// # Errors
    /// The first thing that contradicts the layout or the order of keys.
    pub fn parse(image: impl Into<Box<[u8]>>) -> Result<Self, NodeDamage> {
        let node = Self::parse_header(image.into())?;
        let mut at = node.records_at as usize;
        let mut previous = None;
        for index in 0..node.len() {
            if node.record_at(index) != at {
                let slot_at = node.slots_at as usize + SLOT_BYTES * index;
                let expected = format_args!("slot {}", at - node.records_at as usize);
                return Err(NodeDamage::new(slot_at, expected, node.slot(index)));
            }
            let record = node.checked_span(at)?;
            if node.level > 0 {
                node.check_branch_record(index, record)?;
            }
            let suffix = node.ordered_suffix(record);
            if previous.is_some_and(|previous| previous >= suffix) {
                return Err(NodeDamage::new(at, "a key above the one before", "one that is not"));
            }
            if index >= node.first_keyed() {
                previous = Some(suffix);
            }
            at = record.end;
        }
        if at != node.image.len() {
            let found = format_args!("{} more bytes", node.image.len() - at);
            return Err(NodeDamage::new(at, "the end of the image", found));
        }
        Ok(node)
    }

    /// Takes `image` as a node without verifying it: it was made by the engine just now.
    ///
    /// # Panics
    /// If the header is not a node's.
    #[must_use]
    pub fn built(image: Vec<u8>) -> Self {
        debug_assert!(Self::parse(image.clone()).is_ok(), "the engine makes nodes");
        Self::parse_header(image.into()).expect("the engine makes nodes")
    }

    fn check_branch_record(&self, index: usize, record: RecordSpan) -> Result<(), NodeDamage> {
        let suffix = &self.image[record.suffix..record.value];
        if index == 0 && !suffix.is_empty() {
            return Err(NodeDamage::new(record.suffix, "no key in a branch's first record", "one"));
        }
        if index > 0 && suffix.is_empty() && self.prefix().is_empty() {
            return Err(NodeDamage::new(record.suffix, "a key above the lowest", "the lowest"));
        }
        let (expected, found) = (head(suffix), u32::from_le_bytes(self.heads()[index]));
        if expected != found {
            let head_at = self.hints_at as usize + size_of::<u32>() * index;
            return Err(NodeDamage::new(
                head_at,
                format_args!("head {expected:#x}"),
                format_args!("{found:#x}"),
            ));
        }
        if record.end - record.value != PageRef::BYTES {
            let expected = format_args!("a reference of {} bytes", PageRef::BYTES);
            return Err(NodeDamage::new(record.value, expected, record.end - record.value));
        }
        Ok(())
    }

    /// Checks the header and that everything before the records lies within the image.
    fn parse_header(image: Box<[u8]>) -> Result<Self, NodeDamage> {
        let Some(header) = image.get(FRAME_BYTES..HEADER_END).and_then(|header| header.first_chunk::<8>())
        else {
            let expected = format_args!("an image of at least {HEADER_END} bytes");
            return Err(NodeDamage::new(0, expected, image.len()));
        };
        let [count_0, count_1, level, zero, prefix_len @ ..] = *header;
        let count = u16::from_le_bytes([count_0, count_1]);
        if count == 0 {
            return Err(NodeDamage::new(FRAME_BYTES, "a record", "none"));
        }
        if level >= LEVELS_MAX {
            let expected = format_args!("a level below {LEVELS_MAX}");
            return Err(NodeDamage::new(FRAME_BYTES + 2, expected, level));
        }
        if zero != 0 {
            return Err(NodeDamage::new(FRAME_BYTES + 3, 0, zero));
        }
        let hints_at = HEADER_END as u64 + u64::from(u32::from_le_bytes(prefix_len));
        let slots_at = hints_at + u64::from(count) * hint_bytes(level) as u64;
        let records_at = slots_at + u64::from(count) * SLOT_BYTES as u64;
        if records_at > image.len() as u64 {
            let expected = format_args!("an image of at least {records_at} bytes");
            return Err(NodeDamage::new(FRAME_BYTES, expected, image.len()));
        }
        let within = |at: u64| {
            u32::try_from(at).map_err(|_| NodeDamage::new(FRAME_BYTES + 4, "a prefix below 4 GiB", at))
        };
        let (hints_at, slots_at, records_at) = (within(hints_at)?, within(slots_at)?, within(records_at)?);
        Ok(Self { image, count, level, hints_at, slots_at, records_at })
    }

    /// The image, frame included.
    #[must_use]
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Height above the leaves, which are at level 0.
    #[must_use]
    #[inline]
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Number of records; never 0.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// What all keys begin with.
    #[must_use]
    #[inline]
    pub fn prefix(&self) -> &[u8] {
        &self.image[HEADER_END..self.hints_at as usize]
    }

    /// The key of the record at `index` without the prefix.
    #[must_use]
    #[inline]
    pub fn suffix(&self, index: usize) -> &[u8] {
        let record = self.span(index);
        &self.image[record.suffix..record.value]
    }

    /// Writes the key of the record at `index` to `key`. The first key of a branch is empty.
    pub fn key(&self, index: usize, key: &mut Vec<u8>) {
        key.clear();
        if index >= self.first_keyed() {
            let (prefix, suffix) = (self.prefix(), self.suffix(index));
            key.reserve(prefix.len() + suffix.len());
            key.extend_from_slice(prefix);
            key.extend_from_slice(suffix);
        }
    }

    /// The value of the record at `index`.
    #[must_use]
    #[inline]
    pub fn value(&self, index: usize) -> &[u8] {
        let record = self.span(index);
        &self.image[record.value..record.end]
    }

    /// Where the value of the record at `index` is in the image.
    #[must_use]
    pub fn value_range(&self, index: usize) -> Range<usize> {
        let record = self.span(index);
        record.value..record.end
    }

    /// Visits keys and values of the records of a leaf from `index` on. The keys are put together in `scratch`. Where
    /// the visit is, `next_image` is fetched into the processor's caches.
    pub fn visit_from<B>(
        &self,
        index: usize,
        next_image: &[u8],
        scratch: &mut Vec<u8>,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        /// Short suffixes are copied in one piece, along with what follows them.
        const PIECE: usize = 16;
        /// How far ahead of the visit this image is fetched: a few records.
        const AHEAD: usize = 8 * LINE;
        let prefix = self.prefix();
        scratch.clear();
        scratch.extend_from_slice(prefix);
        let mut at = self.records_at as usize + self.record_offset(index);
        let mut fetched = 0;
        while at < self.image.len() {
            let record = self.span_at(at);
            while fetched < record.end {
                prefetch(next_image, fetched);
                prefetch(&self.image, fetched + AHEAD);
                fetched += LINE;
            }
            let suffix = &self.image[record.suffix..record.value];
            scratch.resize(prefix.len() + PIECE.max(suffix.len()), 0);
            let target = &mut scratch[prefix.len()..];
            match (self.image[record.suffix..].first_chunk::<PIECE>(), target.first_chunk_mut::<PIECE>()) {
                (Some(piece), Some(target)) if suffix.len() <= PIECE => *target = *piece,
                _ => target[..suffix.len()].copy_from_slice(suffix),
            }
            visit(&scratch[..prefix.len() + suffix.len()], &self.image[record.value..record.end])?;
            at = record.end;
        }
        ControlFlow::Continue(())
    }

    /// The value of `key` in a leaf.
    #[must_use]
    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<&[u8]> {
        debug_assert_eq!(self.level, 0, "only leaves have fingerprints");
        let suffix = key.strip_prefix(self.prefix())?;
        memchr::memchr_iter(fingerprint(key), self.fingerprints()).find_map(|index| {
            let at = self.record_at(index);
            prefetch(&self.image, at + LINE);
            let record = self.span_at(at);
            (&self.image[record.suffix..record.value] == suffix)
                .then(|| &self.image[record.value..record.end])
        })
    }

    /// Index of the first record of a leaf whose key is at least `key`; [`len`](Self::len) if there is none.
    #[must_use]
    #[inline]
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        // A scan comes from the leaf before with a bound below the first record.
        let is_first = self.split_key(key).is_ok_and(|suffix| suffix <= self.suffix(0));
        if is_first { 0 } else { self.seek(0, key).0 }
    }

    /// [`lower_bound`](Self::lower_bound) of a key that is above all records before `start`, with the value if the key
    /// is there. Cheap if the answer is close to `start`.
    #[must_use]
    pub fn seek(&self, start: usize, key: &[u8]) -> (usize, Option<&[u8]>) {
        let suffix = match self.split_key(key) {
            Ok(suffix) => suffix,
            Err(Ordering::Less) => return (start, None),
            Err(_) => return (self.len(), None),
        };
        let sought = OrderedSuffix::new(suffix);
        let (mut low, mut high, mut step) = (start, self.len(), 1);
        if start > 0 {
            while low + step < high {
                if sought < self.ordered_suffix(self.span(low + step)) {
                    high = low + step;
                    break;
                }
                low += step;
                step *= 2;
            }
        }
        while low < high {
            let middle = low.midpoint(high);
            match sought.cmp(&self.ordered_suffix(self.span(middle))) {
                Ordering::Less => high = middle,
                Ordering::Equal => return (middle, Some(self.value(middle))),
                Ordering::Greater => low = middle + 1,
            }
        }
        (low, None)
    }

    /// The child of a branch that may hold `key`, and its index.
    #[must_use]
    #[inline]
    pub fn child_for(&self, key: &[u8]) -> (usize, PageRef) {
        let index = self.child_index(key);
        (index, self.child(index))
    }

    fn child_index(&self, key: &[u8]) -> usize {
        debug_assert!(self.level > 0, "only branches have children");
        let suffix = match self.split_key(key) {
            Ok(suffix) => suffix,
            Err(Ordering::Less) => return 0,
            Err(_) => return self.len() - 1,
        };
        let (heads, sought) = (&self.heads()[1..], head(suffix));
        let above = |bound: u32| heads.partition_point(|head| u32::from_le_bytes(*head) < bound);
        let mut low = 1 + above(sought);
        if heads.get(low - 1).is_none_or(|head| u32::from_le_bytes(*head) != sought) {
            return low - 1;
        }
        let mut high = sought.checked_add(1).map_or(self.len(), |next| 1 + above(next));
        while low < high {
            let middle = low.midpoint(high);
            if suffix < self.suffix(middle) { high = middle } else { low = middle + 1 }
        }
        low - 1
    }

    /// The child at `index` of a branch.
    ///
    /// # Panics
    /// If this is a leaf.
    #[must_use]
    #[inline]
    pub fn child(&self, index: usize) -> PageRef {
        let value = self.value(index).first_chunk().expect("the values of a branch are references");
        PageRef::from_bytes(*value)
    }

    /// Index of a record of a leaf that lookups miss because its fingerprint is not its key's.
    #[must_use]
    pub fn wrong_fingerprint(&self) -> Option<usize> {
        let mut key = Vec::new();
        (0..self.fingerprints().len()).find(|&index| {
            self.key(index, &mut key);
            self.fingerprints()[index] != fingerprint(&key)
        })
    }

    /// The fingerprints of a leaf; empty for a branch.
    #[inline]
    pub(super) fn fingerprints(&self) -> &[u8] {
        &self.image[self.hints_at as usize..self.slots_at as usize]
    }

    /// The hints of the records in `range` as they are stored.
    pub(super) fn hints(&self, range: Range<usize>) -> &[u8] {
        let hint = hint_bytes(self.level);
        &self.image[self.hints_at as usize..self.slots_at as usize][hint * range.start..hint * range.end]
    }

    /// The heads of a branch, as stored.
    #[inline]
    fn heads(&self) -> &[[u8; size_of::<u32>()]] {
        self.image[self.hints_at as usize..self.slots_at as usize].as_chunks().0
    }

    /// The slots of the records in `range`.
    pub(super) fn slots(&self, range: Range<usize>) -> impl Iterator<Item = u16> {
        self.all_slots()[range].iter().map(|slot| u16::from_le_bytes(*slot))
    }

    #[inline]
    fn all_slots(&self) -> &[[u8; SLOT_BYTES]] {
        self.image[self.slots_at as usize..self.records_at as usize].as_chunks().0
    }

    /// Where the record at `index` starts, and for [`len`](Self::len) where the last one ends, within the records.
    pub(super) fn record_offset(&self, index: usize) -> usize {
        if index < self.len() { self.slot(index) } else { self.image.len() - self.records_at as usize }
    }

    /// Length of an image of the records before `index`.
    #[must_use]
    pub fn bytes_before(&self, index: usize) -> usize {
        HEADER_END
            + index * (hint_bytes(self.level) + SLOT_BYTES)
            + self.prefix().len()
            + self.record_offset(index)
    }

    /// The records in `range` as they are stored.
    pub(super) fn records(&self, range: Range<usize>) -> &[u8] {
        let records = &self.image[self.records_at as usize..];
        &records[self.record_offset(range.start)..self.record_offset(range.end)]
    }

    /// Index of the first record that has a key.
    #[inline]
    fn first_keyed(&self) -> usize {
        usize::from(self.level > 0)
    }

    #[inline]
    fn slot(&self, index: usize) -> usize {
        usize::from(u16::from_le_bytes(self.all_slots()[index]))
    }

    /// Where the record at `index` starts, within the image.
    #[must_use]
    #[inline]
    pub fn record_at(&self, index: usize) -> usize {
        self.records_at as usize + self.slot(index)
    }

    #[inline]
    fn span(&self, index: usize) -> RecordSpan {
        self.span_at(self.record_at(index))
    }

    #[inline]
    fn span_at(&self, at: usize) -> RecordSpan {
        read_span(&self.image, at).expect("the records of a node were checked when it was parsed")
    }

    /// The suffix of a record. Reads its first eight bytes in one piece, along with what follows them.
    #[inline]
    fn ordered_suffix(&self, record: RecordSpan) -> OrderedSuffix<'_> {
        let suffix = &self.image[record.suffix..record.value];
        let Some(bytes) = self.image[record.suffix..].first_chunk() else {
            return OrderedSuffix::new(suffix);
        };
        let beyond = u64::BITS - u8::BITS * suffix.len().min(size_of::<u64>()) as u32;
        let first_eight = u64::from_be_bytes(*bytes).checked_shr(beyond).map_or(0, |bytes| bytes << beyond);
        OrderedSuffix { first_eight, suffix }
    }

    fn checked_span(&self, at: usize) -> Result<RecordSpan, NodeDamage> {
        match read_span(&self.image, at) {
            Some(record) if record.end <= self.image.len() => Ok(record),
            Some(record) => {
                let expected = format_args!("a record that ends by byte {}", self.image.len());
                Err(NodeDamage::new(at, expected, format_args!("one that ends at {}", record.end)))
            }
            None => Err(NodeDamage::new(at, "the lengths of a record", "no such numbers")),
        }
    }

    /// `key` without the prefix, or how `key` compares to every key that begins with the prefix.
    #[inline]
    fn split_key<'a>(&self, key: &'a [u8]) -> Result<&'a [u8], Ordering> {
        let prefix = self.prefix();
        match key.strip_prefix(prefix) {
            Some(suffix) => Ok(suffix),
            None => Err(if key < prefix { Ordering::Less } else { Ordering::Greater }),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node {{ level: {}, records: {}, bytes: {} }}", self.level, self.count, self.image.len())
    }
}

/// Reads the lengths at `at`; the parts they announce may lie beyond the image.
#[inline]
fn read_span(image: &[u8], at: usize) -> Option<RecordSpan> {
    let bytes = image.get(at..)?;
    let (suffix_len, suffix_digits) = varint::read(bytes)?;
    let (value_len, value_digits) = varint::read(&bytes[suffix_digits..])?;
    let suffix = at + suffix_digits + value_digits;
    let value = suffix.checked_add(suffix_len)?;
    Some(RecordSpan { suffix, value, end: value.checked_add(value_len)? })
}

/// A suffix that orders by its first eight bytes where these decide.
///
/// They are padded with zeroes, so different ones order as their suffixes do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OrderedSuffix<'a> {
    first_eight: u64,
    suffix: &'a [u8],
}

impl<'a> OrderedSuffix<'a> {
    #[inline]
    fn new(suffix: &'a [u8]) -> Self {
        let mut bytes = [0; size_of::<u64>()];
        let len = suffix.len().min(bytes.len());
        bytes[..len].copy_from_slice(&suffix[..len]);
        Self { first_eight: u64::from_be_bytes(bytes), suffix }
    }
}
