//! The bytes of a file, sparse and shared.

use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

pub(super) const SECTOR_BYTES: u64 = 512;
const PAGE_BYTES: usize = 4096;

/// Bytes of a file, and its length. Memory is proportional to what was written: absent pages read as zeros. Copies
/// share their pages until one of them is written.
///
/// Pages may hold bytes beyond the length: on the medium, data and length are separate events.
#[derive(Clone, Default)]
pub(super) struct Content {
    pages: BTreeMap<u64, Arc<[u8; PAGE_BYTES]>>,
    len: u64,
}

impl Content {
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// The bytes of a range that the caller has checked against the length.
    pub(super) fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for (page, within, at) in spans(offset, len) {
            if let Some(content) = self.pages.get(&page) {
                let part = &content[within];
                bytes[at..at + part.len()].copy_from_slice(part);
            }
        }
        bytes
    }

    /// Stores bytes; the length stays.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        for (page, within, at) in spans(offset, data.len()) {
            let content = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE_BYTES]));
            let part = &mut Arc::make_mut(content)[within];
            let len = part.len();
            part.copy_from_slice(&data[at..at + len]);
        }
    }

    /// Sets the length. What a cut removes reads as zeros after a later extension.
    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.zero_from(len);
        }
        self.len = len;
    }

    /// Zeroes everything from `offset` on, also beyond the length.
    pub(super) fn zero_from(&mut self, offset: u64) {
        let whole = offset.div_ceil(PAGE_BYTES as u64);
        drop(self.pages.split_off(&whole));
        let within = (offset % PAGE_BYTES as u64) as usize;
        if within != 0
            && let Some(content) = self.pages.get_mut(&(whole - 1))
            && content[within..].iter().any(|byte| *byte != 0)
        {
            Arc::make_mut(content)[within..].fill(0);
        }
    }

    /// Zeroes the part of one sector that lies at or beyond `offset`.
    pub(super) fn zero_sector_from(&mut self, sector: u64, offset: u64) {
        let (start, end) = (sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES);
        let start = start.max(offset);
        if start < end {
            self.write(start, &[0; SECTOR_BYTES as usize][..(end - start) as usize]);
        }
    }

    /// Whether both hold the same bytes within their lengths, and have the same length.
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.len == other.len
            && self.pages.keys().chain(other.pages.keys()).all(|page| self.page_equals(other, *page))
    }

    /// Adds what [`equals`](Self::equals) compares to a hash.
    pub(super) fn hash_into(&self, hash: &mut Xxh3) {
        hash.update(&self.len.to_le_bytes());
        for (page, content) in &self.pages {
            let start = page * PAGE_BYTES as u64;
            let used = usize::try_from(self.len.saturating_sub(start)).unwrap_or(PAGE_BYTES).min(PAGE_BYTES);
            if content[..used].iter().any(|byte| *byte != 0) {
                hash.update(&page.to_le_bytes());
                hash.update(&content[..used]);
            }
        }
    }

    fn page_equals(&self, other: &Self, page: u64) -> bool {
        let start = page * PAGE_BYTES as u64;
        let used = usize::try_from(self.len.saturating_sub(start)).unwrap_or(PAGE_BYTES).min(PAGE_BYTES);
        match (self.pages.get(&page), other.pages.get(&page)) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right) || left[..used] == right[..used],
            (Some(content), None) | (None, Some(content)) => content[..used].iter().all(|byte| *byte == 0),
            (None, None) => true,
        }
    }
}

/// The pieces of a range that lie in one page each: page number, range within the page, offset within the data.
fn spans(offset: u64, len: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == len {
            return None;
        }
        let position = offset + at as u64;
        let start = (position % PAGE_BYTES as u64) as usize;
        let end = PAGE_BYTES.min(start + (len - at));
        let span = (position / PAGE_BYTES as u64, start..end, at);
        at += end - start;
        Some(span)
    })
}

/// The sectors that `len` bytes at `offset` touch.
pub(super) fn sectors(offset: u64, len: usize) -> std::ops::Range<u64> {
    if len == 0 {
        return 0..0;
    }
    offset / SECTOR_BYTES..(offset + len as u64).div_ceil(SECTOR_BYTES)
}
