//! One-line sabotages at the places that work without a lock, or between two locks. Each has a model that must fail
//! with it: a model that passes with its sabotage would prove nothing.
//!
//! Compiled in under `--cfg ironleaf_loom` only; everywhere else [`sabotaged!`] is a constant `false`.

/// Every sabotage, by name, with what is wrong when it is active.
#[cfg(ironleaf_loom)]
pub const SABOTAGES: &[(&str, &str)] = &[
    ("frozen-dropped-first", "readers lose the frozen edits before they get the root that has them"),
    ("frozen-outside-the-log", "a memtable is replaced while a commit may be under way into it"),
    ("joint-awaited-late", "who shares work begins to wait after having looked whether it is over"),
    ("joint-end-not-told", "who shares work is not told that it has ended"),
    ("length-published-relaxed", "a vector's new length may be seen before the element"),
    ("load-not-looked-for-again", "who leads a load does not look whether another has just ended"),
    ("position-shown-first", "a batch is visible before it is applied"),
    ("position-shown-relaxed", "a position may be seen before the edits up to it"),
    ("removed-without-the-clock", "a page is taken out of the cache while another is evicted"),
    (
        "retired-pages-freed-at-once",
        "pages are freed when a newer root is published, and not when the older one goes",
    ),
    ("slot-published-relaxed", "a slot of the hash table may be seen before its node"),
    ("slots-published-empty", "larger slots are published before the old entries are in them"),
    ("snapshot-taken-first", "a snapshot's layers are taken before it is registered"),
    ("version-linked-relaxed", "a field's newest version may be seen before it is written"),
];

#[cfg(ironleaf_loom)]
thread_local! {
    // A model runs on one thread of the operating system.
    static ACTIVE: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
}

/// Activates the sabotage called `name` for models on this thread, or none. `false` if there is no such sabotage.
#[cfg(ironleaf_loom)]
#[must_use]
pub fn activate(name: Option<&str>) -> bool {
    let index = name.map(|name| SABOTAGES.iter().position(|(known, _)| *known == name));
    ACTIVE.set(index.flatten());
    index != Some(None)
}

/// Whether the sabotage at `index` is active.
#[cfg(ironleaf_loom)]
#[doc(hidden)]
#[must_use]
pub fn is_active(index: usize) -> bool {
    ACTIVE.get() == Some(index)
}

/// Position of the sabotage `name`; a compile-time error where it is missing.
#[cfg(ironleaf_loom)]
#[doc(hidden)]
#[must_use]
pub const fn index_of(name: &str) -> usize {
    let mut index = 0;
    while index < SABOTAGES.len() {
        if crate::lab::same(SABOTAGES[index].0, name) {
            return index;
        }
        index += 1;
    }
    panic!("this sabotage is not in the table SABOTAGES")
}

/// Whether the sabotage of this name is active: constant `false` outside of models.
macro_rules! sabotaged {
    ($name:literal) => {{
        #[cfg(ironleaf_loom)]
        let active = {
            const INDEX: usize = $crate::sabotage::index_of($name);
            $crate::sabotage::is_active(INDEX)
        };
        #[cfg(not(ironleaf_loom))]
        let active = false;
        active
    }};
}

/// `Release`, or `Relaxed` if the sabotage of this name is active.
macro_rules! release_unless {
    ($name:literal) => {
        if sabotaged!($name) { Ordering::Relaxed } else { Ordering::Release }
    };
}
