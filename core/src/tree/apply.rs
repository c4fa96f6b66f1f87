//! Applying a sorted list of edits: a new tree that shares all untouched pages with the old one.

use super::interval::Interval;
use super::pages::{PageEditor, PageRef};
use super::rewrite::{Rewrite, load_child};
use crate::error::Result;
use crate::node::Node;
use crate::sync::Arc;
use std::ops::Range;

/// What happens to one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit<'a> {
    /// It gets this value.
    Put(&'a [u8]),
    /// It goes.
    Remove,
}

/// The outcome of [`apply`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The new root; `None` for an empty tree. The old one if nothing changed.
    pub root: Option<PageRef>,
    /// Keys that were not there before.
    pub added: u64,
    /// Keys that are gone.
    pub removed: u64,
    /// Change of the sum of the lengths of keys and values.
    pub bytes_delta: i64,
}

/// Applies `edits`, sorted by key, to the tree under `root`.
///
/// Each leaf that an edit changes is rewritten once, and so is each branch above it; the replaced pages are retired.
/// An edit that changes nothing writes nothing. Holds one path of old pages, and of each level of the new tree at
/// most three pages.
///
/// After an error the pages written so far belong to no tree.
///
/// # Errors
/// Those of `editor`, and corruption, if a page refers to one that is not its child.
///
/// # Panics
/// If the keys of `edits` do not strictly increase.
pub async fn apply<E: PageEditor>(
    editor: &mut E,
    root: Option<PageRef>,
    edits: &[(&[u8], Edit<'_>)],
) -> Result<Applied> {
    assert!(
        edits.is_sorted_by(|(left, _), (right, _)| left < right),
        "edits are sorted and name each key once"
    );
    let mut apply = Apply {
        rewrite: Rewrite::new(editor),
        edits,
        routed: 0,
        path: Vec::new(),
        changed: false,
        applied: Applied { root, ..Applied::default() },
    };
    match root {
        Some(root) => apply.rewrite_tree(root).await?,
        None => apply.fill_empty().await?,
    }
    let Apply { rewrite, changed, mut applied, .. } = apply;
    if changed {
        applied.root = rewrite.finish().await?;
    }
    Ok(applied)
}

/// An old branch on the way from the root to the page that is being visited.
struct Step {
    page: PageRef,
    branch: Arc<Node>,
    /// What routes to the branch.
    interval: Interval,
    /// Index of the child that is being visited: those before it are done with.
    child: usize,
    /// End of the edits that route to this branch.
    edits_end: usize,
    /// Whether a new branch takes the place of this one. Until then nothing of it is handed over.
    replaced: bool,
}

impl Step {
    fn level(&self) -> usize {
        usize::from(self.branch.level())
    }
}

struct Apply<'a, 'e, E> {
    rewrite: Rewrite<'e, E>,
    edits: &'a [(&'a [u8], Edit<'a>)],
    /// Number of edits that are done with.
    routed: usize,
    /// From the root down.
    path: Vec<Step>,
    changed: bool,
    applied: Applied,
}

impl<E: PageEditor> Apply<'_, '_, E> {
    async fn fill_empty(&mut self) -> Result<()> {
        for (key, edit) in self.edits {
            if let Edit::Put(value) = edit {
                self.changed = true;
                self.count(key, None, Some(value));
                self.rewrite.put(key, value).await?;
            }
            self.rewrite.editor().merged(1);
        }
        Ok(())
    }

    /// Visits, in order, the leaves to which edits route, and those that have to take in what their neighbours carry.
    async fn rewrite_tree(&mut self, root: PageRef) -> Result<()> {
        let node = self.rewrite.editor().load(root).await?;
        self.visit(root, node, Interval::default(), self.edits.len()).await?;
        while let Some(step) = self.path.last_mut() {
            let children = step.branch.len();
            let next = if self.rewrite.carries_below(step.level()) {
                step.child
            } else if self.routed < step.edits_end {
                step.branch.child_for(self.edits[self.routed].0).0
            } else {
                children
            };
            if step.replaced {
                self.rewrite.keep_children(&step.branch, &step.interval.low, step.child..next).await?;
            }
            step.child = next;
            if next == children {
                self.leave_branch().await?;
                continue;
            }
            let page = step.branch.child(next);
            let interval = step.interval.of_child(&step.branch, next);
            let edits = &self.edits[self.routed..step.edits_end];
            let edits_end =
                self.routed + interval.high.as_ref().map_or(edits.len(), |high| run_below(edits, high));
            let node = load_child(self.rewrite.editor(), page, step.level() - 1, &interval).await?;
            self.visit(page, node, interval, edits_end).await?;
        }
        Ok(())
    }

    async fn visit(
        &mut self,
        page: PageRef,
        node: Arc<Node>,
        interval: Interval,
        edits_end: usize,
    ) -> Result<()> {
        if node.level() == 0 {
            let replaced = self.edit_leaf(page, &node, &interval.low, self.routed..edits_end).await?;
            self.rewrite.editor().merged(edits_end - self.routed);
            self.routed = edits_end;
            return self.leave_child(replaced).await;
        }
        let absorbs = self.rewrite.carries(usize::from(node.level()));
        self.path.push(Step { page, branch: node, interval, child: 0, edits_end, replaced: false });
        if absorbs { self.replace_path().await } else { Ok(()) }
    }

    /// `false`: no edit changes anything, nor is anything carried into the leaf. It stays.
    async fn edit_leaf(
        &mut self,
        page: PageRef,
        leaf: &Node,
        bound: &[u8],
        edits: Range<usize>,
    ) -> Result<bool> {
        let mut replaced = self.rewrite.carries(0);
        if replaced {
            self.replace_leaf(page, bound).await?;
        } else if let Some(patched) = patch(leaf, &self.edits[edits.clone()]) {
            let Some(image) = patched else { return Ok(false) };
            self.replace_leaf(page, bound).await?;
            self.rewrite.put_leaf(image).await?;
            return Ok(true);
        }
        let mut copied = 0;
        for (key, edit) in &self.edits[edits] {
            let (index, old) = leaf.seek(copied, key);
            let new = match edit {
                Edit::Put(value) => Some(*value),
                Edit::Remove => None,
            };
            if old == new {
                continue;
            }
            if !replaced {
                self.replace_leaf(page, bound).await?;
                replaced = true;
            }
            self.count(key, old, new);
            self.rewrite.copy_entries(leaf, copied..index).await?;
            if let Some(value) = new {
                self.rewrite.put(key, value).await?;
            }
            copied = index + usize::from(old.is_some());
        }
        if replaced {
            self.rewrite.copy_entries(leaf, copied..leaf.len()).await?;
            self.rewrite.end_page(0, leaf.image().len(), self.at_right_edge()).await?;
        }
        Ok(replaced)
    }

    /// Puts a new leaf in the place of `page`, and new branches in the place of those above it.
    async fn replace_leaf(&mut self, page: PageRef, lower_bound: &[u8]) -> Result<()> {
        self.replace_path().await?;
        self.rewrite.editor().retire(page);
        self.rewrite.start_leaf(lower_bound);
        Ok(())
    }

    async fn replace_path(&mut self) -> Result<()> {
        self.changed = true;
        for step in self.path.iter_mut().filter(|step| !step.replaced) {
            step.replaced = true;
            self.rewrite.editor().retire(step.page);
            self.rewrite.keep_children(&step.branch, &step.interval.low, 0..step.child).await?;
        }
        Ok(())
    }

    async fn leave_branch(&mut self) -> Result<()> {
        let Some(step) = self.path.pop() else { return Ok(()) };
        if step.replaced {
            let last = self.at_right_edge();
            self.rewrite.end_page(step.level(), step.branch.image().len(), last).await?;
        }
        self.leave_child(step.replaced).await
    }

    /// Goes on to the next child. Unless it was replaced, the one before stays in the new branch, if there is one.
    async fn leave_child(&mut self, replaced: bool) -> Result<()> {
        let Some(step) = self.path.last_mut() else { return Ok(()) };
        step.child += 1;
        if step.replaced && !replaced {
            let kept = step.child - 1..step.child;
            self.rewrite.keep_children(&step.branch, &step.interval.low, kept).await?;
        }
        Ok(())
    }

    /// Whether the page that is being visited is the last one of its level.
    fn at_right_edge(&self) -> bool {
        self.path.iter().all(|step| step.child + 1 == step.branch.len())
    }

    fn count(&mut self, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) {
        let bytes = |value: Option<&[u8]>| value.map_or(0, |value| (key.len() + value.len()) as i64);
        self.applied.bytes_delta += bytes(new) - bytes(old);
        self.applied.added += u64::from(old.is_none());
        self.applied.removed += u64::from(new.is_none());
    }
}

/// The image of `leaf` after `edits`, if each of them gives an entry that is there a value of the same length: nothing
/// but values changes then. The inner `None`: not even these.
fn patch(leaf: &Node, edits: &[(&[u8], Edit<'_>)]) -> Option<Option<Vec<u8>>> {
    let (mut image, mut next) = (None, 0);
    for (key, edit) in edits {
        let (index, old) = leaf.seek(next, key);
        let (Edit::Put(new), Some(old)) = (edit, old) else { return None };
        if old.len() != new.len() {
            return None;
        }
        if old != *new {
            image.get_or_insert_with(|| leaf.image().to_vec())[leaf.value_range(index)].copy_from_slice(new);
        }
        next = index + 1;
    }
    Some(image)
}

/// Number of edits with keys below `bound`. Cheap if there are few of them.
fn run_below(edits: &[(&[u8], Edit<'_>)], bound: &[u8]) -> usize {
    let (mut low, mut high) = (0, 1);
    while high < edits.len() && edits[high].0 < bound {
        low = high;
        high *= 2;
    }
    let high = high.min(edits.len());
    low + edits[low..high].partition_point(|(key, _)| *key < bound)
}
