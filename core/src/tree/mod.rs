//! The copy-on-write B+tree, used twice: for the catalog (key → object record) and for each large object (field →
//! value).
//!
//! Pages never change. [`apply`](apply::apply) writes new ones for what a sorted list of edits touches and returns a
//! new root; whoever holds an old root goes on reading the old tree until its retired pages are freed. Readers
//! ([`lookup`], [`scan_leaf`], [`scan_leaf_reverse`]) run over cached pages without waiting and name the page that is missing.
//!
//! **Invariant:** the routing intervals of a branch's children tile the branch's own. A child's lower bound stands in
//! its parent (the first child's is the parent's own), its upper bound is the next child's lower one. The leftmost
//! interval has no lower and the rightmost no upper end, so every key routes to exactly one leaf, whether or not it is
//! there.

mod apply;
mod interval;
mod lookup;
mod pages;
mod rewrite;
mod scan;
mod walk;

pub use apply::{Edit, apply};
pub use lookup::lookup;
pub use pages::{Attempt, PageEditor, PageId, PageRef, PageSource, Pages};
pub use scan::{Behind, behind_damage, behind_damage_reverse, scan_leaf, scan_leaf_reverse};
pub use walk::{Inspector, verify, walk};

#[cfg(test)]
mod tests;
