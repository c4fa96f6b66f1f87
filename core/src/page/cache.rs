//! Pages in memory, within a budget.

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
    slots: AppendVec<ArcSwapOption<Entry>>,
    budget: usize,
    bytes: AtomicUsize,
    /// Candidates for eviction, oldest first: a clock (second chance).
    clock: Mutex<VecDeque<PageRef>>,
    evictions: AtomicU64,
}

pub(crate) struct Entry {
    page: PageRef,
    node: Arc<Node>,
    /// Set on a hit, cleared when the clock passes.
    referenced: AtomicBool,
}

impl Entry {
    fn charge(&self) -> usize {
        self.node.image().len() + PAGE_OVERHEAD
    }
}

/// A page that stays readable while this is held.
pub(crate) struct CachedPage(Guard<Option<Arc<Entry>>>);

impl CachedPage {
    fn entry(&self) -> &Entry {
        self.0.as_ref().expect("made only of occupied slots")
    }
}

impl Deref for CachedPage {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.entry().node
    }
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

    fn slot(&self, id: PageId) -> Option<&ArcSwapOption<Entry>> {
        let index = u32::try_from(id.0).ok()?;
        (index < self.slots.len()).then(|| self.slots.get(index))
    }

    /// The page, if it is cached.
    pub(crate) fn get(&self, page: PageRef) -> Option<CachedPage> {
        let cached = CachedPage(self.slot(page.id)?.load());
        let entry = cached.0.as_ref()?;
        if entry.page.checksum != page.checksum {
            return None;
        }
        if !entry.referenced.load(Ordering::Relaxed) {
            entry.referenced.store(true, Ordering::Relaxed);
        }
        Some(cached)
    }

    /// The page, kept alive for as long as the caller wants.
    pub(crate) fn get_owned(&self, page: PageRef) -> Option<Arc<Node>> {
        Some(self.get(page)?.entry().node.clone())
    }

    /// Adds a page, and evicts others until the budget holds.
    pub(crate) fn insert(&self, page: PageRef, node: Arc<Node>) {
        let entry = Arc::new(Entry { page, node, referenced: AtomicBool::new(false) });
        let mut clock = self.clock.lock();
        while u64::from(self.slots.len()) <= page.id.0 {
            self.slots.push(ArcSwapOption::empty());
        }
        let slot = self.slots.get(page.id.0 as u32);
        self.bytes.fetch_add(entry.charge(), Ordering::Relaxed);
        if let Some(replaced) = slot.swap(Some(entry)) {
            self.bytes.fetch_sub(replaced.charge(), Ordering::Relaxed);
        }
        clock.push_back(page);
        self.evict(&mut clock);
    }

    /// Forgets a page whose id will be used for another.
    pub(crate) fn remove(&self, id: PageId) {
        if let Some(removed) = self.slot(id).and_then(|slot| slot.swap(None)) {
            self.bytes.fetch_sub(removed.charge(), Ordering::Relaxed);
        }
    }

    fn evict(&self, clock: &mut VecDeque<PageRef>) {
        // Two rounds clear every reference bit and then find a victim.
        let mut steps = clock.len() * 2;
        while self.bytes.load(Ordering::Relaxed) > self.budget && steps > 0 {
            steps -= 1;
            let Some(page) = clock.pop_front() else { break };
            let Some(slot) = self.slot(page.id) else { continue };
            let cached = slot.load();
            let Some(entry) = cached.as_ref().filter(|entry| entry.page == page) else { continue };
            if entry.referenced.swap(false, Ordering::Relaxed) {
                clock.push_back(page);
            } else {
                reached!("page evicted");
                self.bytes.fetch_sub(entry.charge(), Ordering::Relaxed);
                slot.store(None);
                self.evictions.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Memory in use, and evictions so far.
    pub(crate) fn usage(&self) -> (usize, u64) {
        (self.bytes.load(Ordering::Relaxed), self.evictions.load(Ordering::Relaxed))
    }
}
