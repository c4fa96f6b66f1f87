//! Pages in memory, within a budget.

use super::frame;
use crate::append::AppendVec;
use crate::node::Node;
use crate::prefetch::{LINE, prefetch_address};
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, ArcSwapOption, Guard, Mutex};
use crate::tree::{PageId, PageRef};
use std::collections::VecDeque;
use std::ops::Deref;

/// What a cached page costs beyond its image.
const PAGE_OVERHEAD: usize = 128;

/// What a lookup reads first of a leaf of small records: frame, prefix, fingerprints, slots.
const FIRST_LINES: usize = 5;

/// Stale entries that the clock may hold besides as many as there are pages.
const CLOCK_SLACK: usize = 1024;

/// A flat table of slots, one per page id. A hit takes no lock and counts no reference.
pub(crate) struct Cache {
    slots: AppendVec<Slot>,
    budget: usize,
    bytes: AtomicUsize,
    /// Pages in the slots.
    resident: AtomicUsize,
    /// Candidates for eviction, oldest first: a clock (second chance). Its lock also orders changes of slots.
    clock: Mutex<VecDeque<PageRef>>,
    evictions: AtomicU64,
}

#[derive(Default)]
struct Slot {
    node: ArcSwapOption<Node>,
    /// Where the image of `node` is, or was: fetched while the node itself, which lies elsewhere, is on its way.
    image: AtomicPtr<u8>,
    /// Set on a hit, cleared when the clock passes.
    referenced: AtomicBool,
}

/// A page that stays readable while this is held.
pub(crate) struct CachedPage(Guard<Option<Arc<Node>>>);

impl Deref for CachedPage {
    type Target = Node;

    fn deref(&self) -> &Node {
        self.0.as_ref().expect("made only of occupied slots")
    }
}

/// Memory that a page takes while it is cached.
pub(crate) fn charge(node: &Node) -> usize {
    node.image().len() + PAGE_OVERHEAD
}

impl Cache {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            slots: AppendVec::new(),
            budget,
            bytes: AtomicUsize::new(0),
            resident: AtomicUsize::new(0),
            clock: Mutex::new(VecDeque::new()),
            evictions: AtomicU64::new(0),
        }
    }

    fn slot(&self, id: PageId) -> Option<&Slot> {
        let index = u32::try_from(id.0).ok()?;
        (index < self.slots.len()).then(|| self.slots.get(index))
    }

    /// The page, if it is cached.
    pub(crate) fn get(&self, page: PageRef) -> Option<CachedPage> {
        let slot = self.slot(page.id)?;
        let image = slot.image.load(Ordering::Relaxed);
        for line in 0..FIRST_LINES {
            prefetch_address(image.wrapping_add(line * LINE));
        }
        let cached = slot.node.load();
        // The id may have been given to another page.
        if frame::checksum_of(cached.as_ref()?.image()) != page.checksum {
            return None;
        }
        if !slot.referenced.load(Ordering::Relaxed) {
            slot.referenced.store(true, Ordering::Relaxed);
        }
        Some(CachedPage(cached))
    }

    /// The page, kept alive for as long as the caller wants.
    pub(crate) fn get_owned(&self, page: PageRef) -> Option<Arc<Node>> {
        Guard::into_inner(self.get(page)?.0)
    }

    /// Adds a page, and evicts others until the budget holds.
    pub(crate) fn insert(&self, page: PageRef, node: Arc<Node>) {
        let mut clock = self.clock.lock();
        while u64::from(self.slots.len()) <= page.id.0 {
            self.slots.push(Slot::default());
        }
        let slot = self.slots.get(page.id.0 as u32);
        self.bytes.fetch_add(charge(&node), Ordering::Relaxed);
        slot.referenced.store(false, Ordering::Relaxed);
        slot.image.store(node.image().as_ptr().cast_mut(), Ordering::Relaxed);
        match slot.node.swap(Some(node)) {
            Some(replaced) => self.bytes.fetch_sub(charge(&replaced), Ordering::Relaxed),
            None => self.resident.fetch_add(1, Ordering::Relaxed),
        };
        clock.push_back(page);
        if clock.len() > 2 * self.resident.load(Ordering::Relaxed) + CLOCK_SLACK {
            // Entries of pages that were replaced or freed: nothing else takes them out while the budget is not used up.
            clock.retain(|page| self.holds(*page));
        }
        if !planted!("cache-never-evicts") {
            self.evict(&mut clock);
        }
    }

    fn holds(&self, page: PageRef) -> bool {
        let node = self.slot(page.id).map(|slot| slot.node.load());
        node.is_some_and(|node| {
            node.as_ref().is_some_and(|node| frame::checksum_of(node.image()) == page.checksum)
        })
    }

    /// Forgets a page whose id will be used for another.
    pub(crate) fn remove(&self, id: PageId) {
        let _clock = (!sabotaged!("removed-without-the-clock")).then(|| self.clock.lock());
        if let Some(removed) = self.slot(id).and_then(|slot| slot.node.swap(None)) {
            self.bytes.fetch_sub(charge(&removed), Ordering::Relaxed);
            self.resident.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn evict(&self, clock: &mut VecDeque<PageRef>) {
        // Two rounds clear every reference bit and then find a victim.
        let mut steps = clock.len() * 2;
        while self.bytes.load(Ordering::Relaxed) > self.budget && steps > 0 {
            steps -= 1;
            let Some(page) = clock.pop_front() else { break };
            let Some(slot) = self.slot(page.id) else { continue };
            let cached = slot.node.load();
            let is_same = |node: &&Arc<Node>| frame::checksum_of(node.image()) == page.checksum;
            let Some(node) = cached.as_ref().filter(is_same) else { continue };
            if slot.referenced.swap(false, Ordering::Relaxed) {
                clock.push_back(page);
            } else {
                reached!("page evicted");
                self.bytes.fetch_sub(charge(node), Ordering::Relaxed);
                slot.node.store(None);
                self.resident.fetch_sub(1, Ordering::Relaxed);
                self.evictions.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Memory in use, and evictions so far.
    pub(crate) fn usage(&self) -> (usize, u64) {
        (self.bytes.load(Ordering::Relaxed), self.evictions.load(Ordering::Relaxed))
    }
}
