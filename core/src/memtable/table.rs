//! A hash table from names to nodes, for one writer and any number of readers without a lock.

use crate::append::AppendVec;
use crate::sync::atomic::{AtomicU32, Ordering};

const EMPTY: u32 = u32::MAX;
// A model has few nodes, and they should outgrow the first slots all the same.
const FIRST_SLOTS: usize = if cfg!(ironleaf_loom) { 2 } else { 64 };

/// What a table holds: something with a hash.
pub(crate) trait Hashed {
    fn hash(&self) -> u64;
}

/// Open addressing over indices of nodes. Growing publishes a larger array of slots; readers that still hold the
/// smaller one miss only what was added since, which is newer than what they may see.
pub(crate) struct Table<T> {
    nodes: AppendVec<T>,
    /// Arrays of slots, each twice the size of the one before; the last is in use.
    slots: AppendVec<Box<[AtomicU32]>>,
}

impl<T: Hashed> Table<T> {
    pub(crate) fn new() -> Self {
        Self { nodes: AppendVec::new(), slots: AppendVec::new() }
    }

    pub(crate) fn len(&self) -> u32 {
        self.nodes.len()
    }

    pub(crate) fn get(&self, index: u32) -> &T {
        self.nodes.get(index)
    }

    /// The node with this hash that `is_it`.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<u32> {
        let arrays = self.slots.len();
        if arrays == 0 {
            return None;
        }
        let slots = self.slots.get(arrays - 1);
        let mask = slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let index = slots[at].load(Ordering::Acquire);
            if index == EMPTY {
                return None;
            }
            let node = self.nodes.get(index);
            if node.hash() == hash && is_it(node) {
                return Some(index);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a node that [`find`](Self::find) did not find. One thread at a time.
    pub(crate) fn insert(&self, node: T) -> u32 {
        let arrays = self.slots.len();
        let capacity = if arrays == 0 { 0 } else { self.slots.get(arrays - 1).len() };
        if (self.nodes.len() as usize + 1) * 3 > capacity * 2 {
            self.grow((capacity * 2).max(FIRST_SLOTS));
        }
        let hash = node.hash();
        let index = self.nodes.push(node);
        place(self.slots.get(self.slots.len() - 1), hash, index);
        index
    }

    fn grow(&self, capacity: usize) {
        let slots: Box<[AtomicU32]> = (0..capacity).map(|_| AtomicU32::new(EMPTY)).collect();
        if sabotaged!("slots-published-empty") {
            self.slots.push(slots);
            return self.fill(self.slots.get(self.slots.len() - 1));
        }
        self.fill(&slots);
        self.slots.push(slots);
    }

    fn fill(&self, slots: &[AtomicU32]) {
        for index in 0..self.nodes.len() {
            place(slots, self.nodes.get(index).hash(), index);
        }
    }
}

fn place(slots: &[AtomicU32], hash: u64, index: u32) {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    while slots[at].load(Ordering::Relaxed) != EMPTY {
        at = (at + 1) & mask;
    }
    slots[at].store(index, release_unless!("slot-published-relaxed"));
}
