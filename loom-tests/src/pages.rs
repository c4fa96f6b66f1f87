//! Pages in memory: what the cache accounts for, that one load serves all, and that a page stays while somebody may
//! still read it.

use crate::Model;
use crate::wait::block_on;
use ironleaf::models::{ColdPage, SmallCache, World};
use loom::thread;
use std::sync::Arc;

/// A page is evicted for another while it is taken out.
pub const ACCOUNTING: Model = Model {
    name: "the cache accounts for each page once",
    body: accounting,
    sabotages: &[("removed-without-the-clock", "what is accounted for is not what is there")],
};

fn accounting() {
    let cache = Arc::new(SmallCache::holding_the_first_of(2));
    let other = thread::spawn({
        let cache = cache.clone();
        move || cache.insert(1)
    });
    if let Some(said) = cache.get(0) {
        assert_eq!(said, "0", "a page says what another should");
    }
    cache.remove(0);
    other.join().expect("the insertion ends");
    assert!(cache.is_accounted(), "what is accounted for is not what is there");
}

/// Two want a page that is not in memory.
pub const SINGLE_FLIGHT: Model = Model {
    name: "one load of a page serves all who want it",
    body: single_flight,
    sabotages: &[("load-not-looked-for-again", "the page was read twice")],
};

fn single_flight() {
    let cold = block_on(ColdPage::new());
    let other = thread::spawn({
        let cold = cold.clone();
        move || block_on(cold.load())
    });
    assert_eq!(block_on(cold.load()), "v");
    assert_eq!(other.join().expect("the other load ends"), "v");
    assert_eq!(cold.loads(), 1, "the page was read twice");
}

/// A checkpoint replaces the pages that a reader is about to look into.
pub const FREEING: Model = Model {
    name: "a page stays for as long as a root that reaches it is read",
    body: freeing,
    sabotages: &[("retired-pages-freed-at-once", "is not cached")],
};

fn freeing() {
    let (world, mut checkpoints) = World::empty();
    world.set("a", "1");
    checkpoints.make();
    world.set("b", "2");
    let checkpointer = thread::spawn(move || checkpoints.make());
    assert_eq!(world.get("a").as_deref(), Some("1"), "what a checkpoint had is gone");
    checkpointer.join().expect("the checkpointer ends");
    assert_eq!(world.get("b").as_deref(), Some("2"), "what a checkpoint had is gone");
}
