//! Reading entries in order, leaf by leaf.

use super::pages::{Attempt, PageRef, PageSource, Pages, check_level};
use crate::error::Result;
use crate::node::Node;
use std::ops::{Bound, ControlFlow};

/// Where the scan of a leaf ended.
#[derive(Debug, PartialEq, Eq)]
pub struct LeafEnd {
    /// Whether the visitor broke off; otherwise it saw all of the leaf.
    pub stopped: bool,
    /// Where the next leaf is: its inclusive lower bound or, in reverse, its exclusive upper bound. `None` at the end.
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

/// Visits, from the last to the first, those entries up to `to` that are in the one leaf to which `to` routes. As
/// [`scan_leaf`] otherwise.
///
/// # Errors
/// Corruption, if a page refers to one that is not its child.
pub fn scan_leaf_reverse<P: Pages>(
    pages: &P,
    root: PageRef,
    to: Bound<&[u8]>,
    scratch: &mut Vec<u8>,
    visit: &mut impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> Result<Attempt<LeafEnd>> {
    let (mut page, mut parent) = (root, None);
    let mut lower_bound: Option<(P::Guard, usize)> = None;
    loop {
        let Some(node) = pages.cached(page) else { return Ok(Attempt::Missing(page)) };
        check_level(page, &node, parent)?;
        if node.level() == 0 {
            let end = match to {
                Bound::Unbounded => node.len(),
                Bound::Excluded(key) => node.lower_bound(key),
                Bound::Included(key) => {
                    let (index, value) = node.seek(0, key);
                    index + usize::from(value.is_some())
                }
            };
            let stopped = (0..end).rev().any(|index| {
                node.key(index, scratch);
                visit(scratch, node.value(index)).is_break()
            });
            let next = lower_bound.map(|(branch, index)| {
                let mut bound = Vec::new();
                branch.key(index, &mut bound);
                bound
            });
            return Ok(Attempt::Done(LeafEnd { stopped, next }));
        }
        parent = Some(node.level());
        let index = last_child(&node, to, scratch);
        page = node.child(index);
        if index > 0 {
            lower_bound = Some((node, index));
        }
    }
}

/// The child that holds the last of the keys up to `to`.
fn last_child(branch: &Node, to: Bound<&[u8]>, scratch: &mut Vec<u8>) -> usize {
    match to {
        Bound::Unbounded => branch.len() - 1,
        Bound::Included(key) => branch.child_for(key).0,
        Bound::Excluded(key) => {
            let index = branch.child_for(key).0;
            branch.key(index, scratch);
            // A child that starts at `key` holds nothing below it.
            index - usize::from(index > 0 && scratch == key)
        }
    }
}

/// What lies behind a page that a scan cannot read.
#[derive(Debug, PartialEq, Eq)]
pub enum Behind {
    /// Every page on the way to the scan's place can be read.
    NotDamaged,
    /// The tree ends with what cannot be read.
    End,
    /// It goes on here, as at [`LeafEnd::next`].
    At(Vec<u8>),
}

/// Where a scan goes on that cannot read the leaf to which `from` routes, or a branch above it.
///
/// # Errors
/// Those of `source` that are not about what is stored.
pub async fn behind_damage<S: PageSource>(source: &S, root: PageRef, from: Bound<&[u8]>) -> Result<Behind> {
    let key = match from {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    };
    behind(source, root, |branch| {
        let child = branch.child_for(key).0;
        (child, Some(child + 1).filter(|next| *next < branch.len()))
    })
    .await
}

/// The same for a scan in reverse that cannot read the leaf to which `to` routes.
///
/// # Errors
/// Those of `source` that are not about what is stored.
pub async fn behind_damage_reverse<S: PageSource>(
    source: &S,
    root: PageRef,
    to: Bound<&[u8]>,
) -> Result<Behind> {
    behind(source, root, |branch| {
        let child = last_child(branch, to, &mut Vec::new());
        (child, Some(child).filter(|child| *child > 0))
    })
    .await
}

/// `route` gives the child on the way, and which key of the branch bounds it on the side to which the scan goes.
async fn behind<S: PageSource>(
    source: &S,
    root: PageRef,
    route: impl Fn(&Node) -> (usize, Option<usize>),
) -> Result<Behind> {
    let (mut page, mut parent, mut bound) = (root, None, Behind::End);
    loop {
        let loaded = source.load(page).await;
        let node = match loaded.and_then(|node| check_level(page, &node, parent).map(|()| node)) {
            Err(error) if error.is_damage() => return Ok(bound),
            loaded => loaded?,
        };
        if node.level() == 0 {
            return Ok(Behind::NotDamaged);
        }
        parent = Some(node.level());
        let (child, edge) = route(&node);
        if let Some(edge) = edge {
            let mut key = Vec::new();
            node.key(edge, &mut key);
            bound = Behind::At(key);
        }
        page = node.child(child);
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
