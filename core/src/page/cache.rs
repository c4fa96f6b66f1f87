//! Pages in memory, within a budget.

use super::frame;
use crate::append::AppendVec;
use crate::node::Node;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};
use crate::tree::{PageId, PageRef};
use arc_swap::{ArcSwapOption, Guard};
use std::collections::VecDeque;
use std::ops::Deref;

/// What a cached page costs beyond its image.
const PAGE_OVERHEAD: usize = 128;

/// A flat table of slots, one per page id. A hit takes no lock and counts no reference.
pub(crate) struct Cache {
    slots: AppendVec<Slot>,
    budget: usize,
    bytes: AtomicUsize,
    /// Candidates for eviction, oldest first: a clock (second chance). Its lock also orders changes of slots.
    clock: Mutex<VecDeque<PageRef>>,
    evictions: AtomicU64,
}

struct Slot {
    node: ArcSwapOption<Node>,
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

fn charge(node: &Node) -> usize {
    node.image().len() + PAGE_OVERHEAD
}

impl Cache {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            slots: AppendVec::new(),
            budget,
            bytes: AtomicUsize::new(0),
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
            self.slots.push(Slot { node: ArcSwapOption::empty(), referenced: AtomicBool::new(false) });
        }
        let slot = self.slots.get(page.id.0 as u32);
        self.bytes.fetch_add(charge(&node), Ordering::Relaxed);
        slot.referenced.store(false, Ordering::Relaxed);
        if let Some(replaced) = slot.node.swap(Some(node)) {
            self.bytes.fetch_sub(charge(&replaced), Ordering::Relaxed);
        }
        clock.push_back(page);
        self.evict(&mut clock);
    }

    /// Forgets a page whose id will be used for another.
    pub(crate) fn remove(&self, id: PageId) {
        let _clock = self.clock.lock();
        if let Some(removed) = self.slot(id).and_then(|slot| slot.node.swap(None)) {
            self.bytes.fetch_sub(charge(&removed), Ordering::Relaxed);
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
                self.evictions.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Memory in use, and evictions so far.
    pub(crate) fn usage(&self) -> (usize, u64) {
        (self.bytes.load(Ordering::Relaxed), self.evictions.load(Ordering::Relaxed))
    }
}
