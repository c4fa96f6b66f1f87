//! Where each page is, and how much of each segment is alive.

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{file_name, file_number};
use crate::tree::PageId;
use std::collections::{BTreeMap, BTreeSet};

/// The place of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    location: Location,
    /// No longer part of the newest root: only snapshots need it, and after a crash nobody.
    retired: bool,
}

/// One segment file.
#[derive(Default)]
pub(crate) struct Segment {
    /// Length of the file. What is behind the last page that is still in use counts: it is space that must come back.
    pub(crate) bytes: u64,
    /// Bytes of pages that somebody may still read.
    pub(crate) live_bytes: u64,
    /// Every page that was ever put here; some have moved or gone since.
    pages: Vec<PageId>,
}

/// The page table. Ids are dense, so it is a plain vector.
#[derive(Default)]
pub(crate) struct PageTable {
    entries: Vec<Option<Entry>>,
    free: Vec<PageId>,
    pub(crate) segments: BTreeMap<u64, Segment>,
    pub(crate) next_segment: u64,
}

impl PageTable {
    /// A table with these pages. Their segments must have been added.
    pub(crate) fn install_all(&mut self, pages: &BTreeMap<PageId, Location>) -> Result<()> {
        if let Some((last, _)) = pages.last_key_value() {
            let ids = usize::try_from(last.0).ok().and_then(|last| last.checked_add(1));
            let ids = ids.filter(|ids| {
                let is_free = ids.saturating_sub(pages.len());
                self.entries.try_reserve_exact(*ids).is_ok() && self.free.try_reserve_exact(is_free).is_ok()
            });
            let Some(ids) = ids else {
                let message =
                    format!("MANIFEST names {last}, and a table of so many does not fit into memory");
                return Err(Error::new(ErrorKind::ResourceExhausted, message));
            };
            self.entries.resize(ids, None);
        }
        for (id, location) in pages {
            self.install(*id, *location);
        }
        let is_free = |id: &u64| self.entries[*id as usize].is_none();
        self.free.extend((0..self.entries.len() as u64).rev().filter(is_free).map(PageId));
        Ok(())
    }

    /// Adds a segment whose file has `bytes`.
    pub(crate) fn add_segment(&mut self, id: u64, bytes: u64) {
        self.segments.insert(id, Segment { bytes, ..Segment::default() });
        self.next_segment = self.next_segment.max(id + 1);
    }

    /// A segment is about to be written up to `bytes`.
    pub(crate) fn extend_segment(&mut self, id: u64, bytes: u64) {
        self.segments.get_mut(&id).expect("a segment that is written is in the table").bytes = bytes;
    }

    /// An id that no page has.
    pub(crate) fn allocate(&mut self) -> PageId {
        self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            PageId(self.entries.len() as u64 - 1)
        })
    }

    /// Takes back an id that was allocated for nothing.
    pub(crate) fn give_back(&mut self, id: PageId) {
        self.free.push(id);
    }

    /// Puts a page in a place, in addition to what is accounted elsewhere.
    pub(crate) fn install(&mut self, id: PageId, location: Location) {
        let segment =
            self.segments.get_mut(&location.segment).expect("segments are added before their pages");
        segment.live_bytes += u64::from(location.len);
        segment.pages.push(id);
        self.entries[id.0 as usize] = Some(Entry { location, retired: false });
    }

    /// Moves a page, if it is still at `from`.
    pub(crate) fn relocate(&mut self, id: PageId, from: Location, to: Location) -> bool {
        let Some(entry) = self.entries[id.0 as usize].filter(|entry| entry.location == from) else {
            return false;
        };
        self.forget(from);
        self.install(id, to);
        self.entries[id.0 as usize] = Some(Entry { location: to, ..entry });
        true
    }

    pub(crate) fn location(&self, id: PageId) -> Option<Location> {
        Some(self.entries.get(id.0 as usize)?.as_ref()?.location)
    }

    /// Marks a page as no longer part of the newest root.
    pub(crate) fn retire(&mut self, id: PageId) {
        if let Some(entry) = self.entries[id.0 as usize].as_mut() {
            entry.retired = true;
        }
    }

    pub(crate) fn is_retired(&self, id: PageId) -> bool {
        self.entries[id.0 as usize].is_some_and(|entry| entry.retired)
    }

    /// Frees a page that nobody refers to any more.
    pub(crate) fn release(&mut self, id: PageId) {
        let entry = self.entries[id.0 as usize].take().expect("a page is released once");
        self.forget(entry.location);
        self.free.push(id);
    }

    fn forget(&mut self, location: Location) {
        let segment = self.segments.get_mut(&location.segment).expect("a segment outlives its pages");
        segment.live_bytes -= u64::from(location.len);
    }

    /// Every page of the newest root, in order of ids.
    pub(crate) fn current(&self) -> impl Iterator<Item = (PageId, Location)> {
        self.entries.iter().enumerate().filter_map(|(id, entry)| {
            let entry = entry.as_ref().filter(|entry| !entry.retired)?;
            Some((PageId(id as u64), entry.location))
        })
    }

    /// Segments of which less than half is alive once the pages in `retired` are gone, with their live bytes.
    pub(crate) fn sparse_segments(
        &self,
        filling: Option<u64>,
        retired: &BTreeSet<PageId>,
    ) -> Vec<(u64, u64)> {
        let mut live: BTreeMap<u64, u64> =
            self.segments.iter().map(|(id, segment)| (*id, segment.live_bytes)).collect();
        for location in retired.iter().filter_map(|id| self.location(*id)) {
            *live.get_mut(&location.segment).expect("a segment outlives its pages") -=
                u64::from(location.len);
        }
        let is_sparse =
            |id: &u64, live: &u64| Some(*id) != filling && *live > 0 && *live * 2 < self.segments[id].bytes;
        live.into_iter().filter(|(id, live)| is_sparse(id, live)).collect()
    }

    /// Forgets segments without a page; their files can go.
    pub(crate) fn take_dead_segments(&mut self, filling: Option<u64>) -> Vec<u64> {
        let is_dead = |(id, segment): (&u64, &Segment)| {
            (segment.live_bytes == 0 && Some(*id) != filling).then_some(*id)
        };
        let dead: Vec<u64> = self.segments.iter().filter_map(is_dead).collect();
        for id in &dead {
            self.segments.remove(id);
        }
        dead
    }

    /// The pages that are in `segment` now.
    pub(crate) fn pages_of(&self, segment: u64) -> Vec<(PageId, Location)> {
        let Some(found) = self.segments.get(&segment) else { return Vec::new() };
        let mut pages: Vec<_> = found
            .pages
            .iter()
            .filter_map(|id| Some((*id, self.location(*id).filter(|location| location.segment == segment)?)))
            .collect();
        pages.sort_unstable_by_key(|(_, location)| location.offset);
        pages.dedup();
        pages
    }
}

const PREFIX: &str = "pages-";

/// The file of segment `id`.
pub(crate) fn page_segment_name(id: u64) -> String {
    file_name(PREFIX, id)
}

/// The segment whose file is called `name`.
pub(crate) fn page_segment_id(name: &str) -> Option<u64> {
    file_number(PREFIX, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_table_that_no_memory_can_hold_is_refused() {
        for id in [1 << 45, u64::MAX - 1, u64::MAX] {
            let mut table = PageTable::default();
            table.add_segment(0, 100);
            let pages = BTreeMap::from([(PageId(id), Location { segment: 0, offset: 0, len: 100 })]);
            let error = table.install_all(&pages).expect_err("there is no such memory");
            assert_eq!(error.kind(), ErrorKind::ResourceExhausted, "{error}");
        }
    }
}
