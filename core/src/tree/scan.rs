//! Reading entries in order, leaf by leaf.

use super::pages::{Attempt, PageRef, Pages, check_level};
use crate::error::Result;
use crate::node::Node;
use std::ops::{Bound, ControlFlow};

/// Where the scan of a leaf ended.
#[derive(Debug, PartialEq, Eq)]
pub struct LeafEnd {
    /// Whether the visitor broke off; otherwise it saw all of the leaf.
    pub stopped: bool,
    /// Inclusive lower bound of the next leaf; `None` at the end of the tree.
    pub next: Option<Vec<u8>>,
}

/// Visits, in order, those entries from `from` on that are in the one leaf to which `from` routes.
///
/// There may be none: the scan goes on at [`LeafEnd::next`]. `scratch` is where the keys are put together. The next
/// leaf, if it is cached, is fetched into the processor's caches meanwhile.
///
/// # Errors
/// Corruption, if a page refers to one that is not its child.
pub fn scan_leaf<P: Pages>(
    pages: &P,
    root: PageRef,
    from: Bound<&[u8]>,
    scratch: &mut Vec<u8>,
    visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> Result<Attempt<LeafEnd>> {
    let key = match from {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    };
    let (mut page, mut parent) = (root, None);
    let mut next_sibling: Option<(P::Guard, usize)> = None;
    loop {
        let Some(node) = pages.cached(page) else { return Ok(Attempt::Missing(page)) };
        check_level(page, &node, parent)?;
        if node.level() == 0 {
            let next_leaf = next_sibling
                .as_ref()
                .filter(|(branch, _)| branch.level() == 1)
                .and_then(|(branch, index)| pages.cached(branch.child(*index)));
            let next_image = next_leaf.as_deref().map_or(&[][..], Node::image);
            let start = first_entry(&node, from);
            let stopped = node.visit_from(start, next_image, scratch, visit).is_break();
            let next = next_sibling.map(|(branch, index)| {
                let mut bound = Vec::new();
                branch.key(index, &mut bound);
                bound
            });
            return Ok(Attempt::Done(LeafEnd { stopped, next }));
        }
        parent = Some(node.level());
        let (index, child) = node.child_for(key);
        page = child;
        if index + 1 < node.len() {
            next_sibling = Some((node, index + 1));
        }
    }
}

fn first_entry(leaf: &Node, from: Bound<&[u8]>) -> usize {
    match from {
        Bound::Unbounded => 0,
        Bound::Included(key) => leaf.lower_bound(key),
        Bound::Excluded(key) => {
            let (index, value) = leaf.seek(0, key);
            index + usize::from(value.is_some())
        }
    }
}
