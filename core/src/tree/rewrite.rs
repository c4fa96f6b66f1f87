//! The new pages of a tree that is being rewritten, from left to right.
//!
//! Each level has one page under construction. What goes on at a level is, in key order: records of old pages and
//! edits (at the leaves), and references to children, new ones and kept ones (above). A page that is full is cut and,
//! once written, entered in its parent one level up.
//!
//! Pages also end where a replaced page ends, so that its neighbours can stay as they are. What happens there keeps
//! pages well filled without touching more of them than needed:
//!
//! | the page under construction | and | then |
//! |---|---|---|
//! | is less than half full | the page before it is new, too | the two are joined, or share their records evenly |
//! | is less than a quarter full, and shrank | there is a next page | it is *carried*: the next page is replaced and joins it |
//! | is less than a quarter full, and shrank | it is the last page | it joins the kept page before it, if they fit one page |
//! | otherwise | | it ends here |
//!
//! At the right edge of the tree a full page and its overflow do not share evenly: there, keys are often appended.

use super::interval::Interval;
use super::pages::{PageEditor, PageRef, PageSource, check_level};
use crate::error::Result;
use crate::node::{Node, NodeBuilder, common_prefix_len};
use crate::sync::Arc;
use std::collections::VecDeque;
use std::ops::Range;

/// A new page that is not yet written.
struct FinishedPage {
    lower_bound: Vec<u8>,
    image: Vec<u8>,
}

/// One level of the tree.
struct Level {
    /// The page under construction.
    open: NodeBuilder,
    /// Its lower bound.
    lower_bound: Vec<u8>,
    /// New pages before it. The last of them is held back as long as the next page may have to join it.
    finished: VecDeque<FinishedPage>,
    /// Whether the last child was there before.
    last_child_kept: bool,
    /// Length of the old page that ended last.
    replaced_bytes: usize,
}

impl Level {
    fn new(level: u8, page_bytes: usize) -> Self {
        Self {
            open: NodeBuilder::new(level, page_bytes),
            lower_bound: Vec::new(),
            finished: VecDeque::new(),
            last_child_kept: false,
            replaced_bytes: 0,
        }
    }

    /// Adds a record, cutting the page before it if that is full.
    fn push(&mut self, key: &[u8], value: &[u8]) {
        if self.open.push(key, value) {
            return;
        }
        self.cut_before(key);
        let taken = self.open.push(key, value);
        assert!(taken, "an empty page takes any record");
    }

    /// Adds a child whose interval starts at `lower_bound`.
    fn push_child(&mut self, lower_bound: &[u8], child: PageRef) {
        if self.open.is_empty() {
            self.start(lower_bound);
        }
        self.push(lower_bound, &child.to_bytes());
    }

    /// Adds the records `range` of `node`, whose interval starts at `lower_bound`.
    fn copy(&mut self, node: &Node, lower_bound: &[u8], mut range: Range<usize>) {
        let mut key = Vec::new();
        while !range.is_empty() {
            if node.level() > 0 && (range.start == 0 || self.open.is_empty()) {
                node.key(range.start, &mut key);
                let bound = if range.start == 0 { lower_bound } else { &key };
                self.push_child(bound, node.child(range.start));
                range.start += 1;
                continue;
            }
            range.start += self.open.append(node, range.clone());
            if !range.is_empty() {
                node.key(range.start, &mut key);
                self.cut_before(&key);
            }
        }
    }

    /// Makes `lower_bound` that of the page under construction if it is still empty.
    fn start(&mut self, lower_bound: &[u8]) {
        if self.open.is_empty() {
            self.lower_bound.clear();
            self.lower_bound.extend_from_slice(lower_bound);
        }
    }

    /// Finishes the page under construction, which another one with `key` as its first will follow.
    fn cut_before(&mut self, key: &[u8]) {
        let bound = if self.is_leaf() {
            let mut last = Vec::new();
            self.open.last_key(&mut last);
            separator(&last, key)
        } else {
            key
        };
        self.cut();
        self.start(bound);
    }

    /// Finishes the page under construction, if there is anything in it.
    fn cut(&mut self) {
        if !self.open.is_empty() {
            let lower_bound = std::mem::take(&mut self.lower_bound);
            self.finished.push_back(FinishedPage { lower_bound, image: self.open.finish() });
        }
    }

    /// Whether the page under construction and the new page before it fit one page.
    fn joins_finished(&self, page_bytes: usize) -> bool {
        self.finished.back().is_some_and(|left| left.image.len() + self.open.bytes() <= page_bytes)
    }

    /// Joins the page under construction and the new page before it, or lets them share their records evenly.
    fn even_out(&mut self, page_bytes: usize) {
        let joins = self.joins_finished(page_bytes);
        let Some(left_page) = self.finished.pop_back() else { return };
        let left = Node::built(left_page.image);
        let right_bound = std::mem::replace(&mut self.lower_bound, left_page.lower_bound.clone());
        let right = Node::built(self.open.finish());
        let middle = if joins { left.len() } else { split_index(&left, right.image().len()) };
        self.copy(&left, &left_page.lower_bound, 0..middle);
        if middle < left.len() {
            let mut key = Vec::new();
            left.key(middle, &mut key);
            self.cut_before(&key);
            self.copy(&left, &[], middle..left.len());
        } else if !joins {
            self.cut();
            self.start(&right_bound);
        }
        self.copy(&right, &right_bound, 0..right.len());
    }

    fn is_leaf(&self) -> bool {
        self.open.level() == 0
    }
}

/// The new tree: what was handed over so far, level by level.
pub(super) struct Rewrite<'e, E> {
    editor: &'e mut E,
    page_bytes: usize,
    levels: Vec<Level>,
}

impl<'e, E: PageEditor> Rewrite<'e, E> {
    pub(super) fn new(editor: &'e mut E) -> Self {
        let page_bytes = editor.page_bytes();
        Self { editor, page_bytes, levels: vec![Level::new(0, page_bytes)] }
    }

    pub(super) fn editor(&mut self) -> &mut E {
        self.editor
    }

    /// Whether the page under construction at `level` has records: where an old page is about to start, they are
    /// carried into its replacement.
    pub(super) fn carries(&self, level: usize) -> bool {
        self.levels.get(level).is_some_and(|level| !level.open.is_empty())
    }

    /// Whether any level below `level` carries records.
    pub(super) fn carries_below(&self, level: usize) -> bool {
        self.levels.iter().take(level).any(|level| !level.open.is_empty())
    }

    /// A leaf whose interval starts at `lower_bound` is being replaced.
    pub(super) fn start_leaf(&mut self, lower_bound: &[u8]) {
        self.levels[0].start(lower_bound);
    }

    /// The leaf that was started is `image`.
    pub(super) async fn put_leaf(&mut self, image: Vec<u8>) -> Result<()> {
        let level = &mut self.levels[0];
        debug_assert!(level.open.is_empty(), "a leaf that takes in others is built");
        let lower_bound = std::mem::take(&mut level.lower_bound);
        level.finished.push_back(FinishedPage { lower_bound, image });
        self.write_surplus().await
    }

    /// Adds an entry.
    pub(super) async fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.levels[0].push(key, value);
        self.write_surplus().await
    }

    /// Adds entries of an old leaf.
    pub(super) async fn copy_entries(&mut self, leaf: &Node, range: Range<usize>) -> Result<()> {
        self.levels[0].copy(leaf, &[], range);
        self.write_surplus().await
    }

    /// Adds children of the old branch `node`, whose interval starts at `lower_bound`, as they are.
    pub(super) async fn keep_children(
        &mut self,
        node: &Node,
        lower_bound: &[u8],
        range: Range<usize>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let level = usize::from(node.level());
        debug_assert!(!self.carries_below(level), "what is carried goes before the next child");
        self.write_below(level).await?;
        let level = self.level_mut(level);
        level.copy(node, lower_bound, range);
        level.last_child_kept = true;
        Ok(())
    }

    /// An old page of `replaced_bytes` at `level` ends here; `last`: no page of that level follows.
    pub(super) async fn end_page(&mut self, level: usize, replaced_bytes: usize, last: bool) -> Result<()> {
        if last {
            // What this page is to be depends on the levels below, which `finish` completes first.
            self.level_mut(level).replaced_bytes = replaced_bytes;
            return Ok(());
        }
        self.write_below(level).await?;
        let page_bytes = self.page_bytes;
        let level = self.level_mut(level);
        if level.open.is_empty() {
            return Ok(());
        }
        let bytes = level.open.bytes();
        if bytes < page_bytes / 2 && !level.finished.is_empty() {
            level.even_out(page_bytes);
        } else if bytes < page_bytes / 4 && bytes < replaced_bytes {
            return Ok(());
        }
        level.cut();
        Ok(())
    }

    /// Completes the tree and returns its root.
    pub(super) async fn finish(mut self) -> Result<Option<PageRef>> {
        let mut index = 0;
        loop {
            self.write_below(index).await?;
            let level = &mut self.levels[index];
            if index > 0 && level.finished.is_empty() && level.open.len() == 1 && self.is_top(index) {
                return self.collapse(index).await.map(Some);
            }
            self.end_level(index).await?;
            if self.is_top(index) && self.levels[index].finished.len() < 2 {
                let Some(root) = self.levels[index].finished.pop_front() else { return Ok(None) };
                return self.editor.write(root.image).await.map(Some);
            }
            index += 1;
        }
    }

    /// Whether nothing was handed over to the levels above `index`.
    fn is_top(&self, index: usize) -> bool {
        self.levels[index + 1..].iter().all(|level| level.open.is_empty() && level.finished.is_empty())
    }

    /// Ends the last page of a level, below which everything is written.
    async fn end_level(&mut self, index: usize) -> Result<()> {
        let page_bytes = self.page_bytes;
        let level = &mut self.levels[index];
        let bytes = level.open.bytes();
        if level.open.is_empty() {
            return Ok(());
        }
        if !level.finished.is_empty() {
            if level.joins_finished(page_bytes) {
                level.even_out(page_bytes);
            }
        } else if bytes < page_bytes / 4 && bytes < level.replaced_bytes {
            self.join_kept(index).await?;
        }
        self.levels[index].cut();
        Ok(())
    }

    /// Replaces the last page of a level and the kept page before it by one, if they fit.
    async fn join_kept(&mut self, index: usize) -> Result<()> {
        let Some(parent) = self.levels.get_mut(index + 1).filter(|parent| parent.last_child_kept) else {
            return Ok(());
        };
        let first = parent.open.len() == 1;
        let Some((key, child)) = parent.open.pop_child() else { return Ok(()) };
        let bound = if first { std::mem::take(&mut parent.lower_bound) } else { key };
        let interval = Interval { low: bound, high: Some(self.levels[index].lower_bound.clone()) };
        let left = load_child(self.editor, child, index, &interval).await?;
        let (bound, level) = (interval.low, &mut self.levels[index]);
        if left.image().len() + level.open.bytes() > self.page_bytes {
            self.levels[index + 1].push_child(&bound, child);
            return Ok(());
        }
        self.editor.retire(child);
        let right_bound = std::mem::take(&mut level.lower_bound);
        let right = Node::built(level.open.finish());
        level.start(&bound);
        level.copy(&left, &bound, 0..left.len());
        level.copy(&right, &right_bound, 0..right.len());
        Ok(())
    }

    /// The root in place of a branch at level `index` that has one child.
    async fn collapse(&mut self, mut index: usize) -> Result<PageRef> {
        let level = &mut self.levels[index];
        let kept = level.last_child_kept;
        let (_, mut root) = level.open.pop_child().expect("the branch has one child");
        index -= 1;
        while kept && index > 0 {
            let node = load_child(self.editor, root, index, &Interval::default()).await?;
            if node.len() > 1 {
                break;
            }
            self.editor.retire(root);
            root = node.child(0);
            index -= 1;
        }
        Ok(root)
    }

    /// Writes what is finished, except for each level's last page, which the next one may have to join.
    async fn write_surplus(&mut self) -> Result<()> {
        if self.levels[0].finished.len() > 1 { self.write_below(0).await } else { Ok(()) }
    }

    /// Writes everything finished below `level`, and elsewhere all but each level's last page.
    async fn write_below(&mut self, level: usize) -> Result<()> {
        let mut index = 0;
        while index < self.levels.len() {
            let held_back = usize::from(index >= level);
            while self.levels[index].finished.len() > held_back {
                let Some(page) = self.levels[index].finished.pop_front() else { break };
                let child = self.editor.write(page.image).await?;
                let parent = self.level_mut(index + 1);
                parent.push_child(&page.lower_bound, child);
                parent.last_child_kept = false;
            }
            index += 1;
        }
        Ok(())
    }

    fn level_mut(&mut self, index: usize) -> &mut Level {
        while self.levels.len() <= index {
            let level = u8::try_from(self.levels.len()).expect("a tree has few levels");
            self.levels.push(Level::new(level, self.page_bytes));
        }
        &mut self.levels[index]
    }
}

/// Loads a page that must be at `level` and hold keys of `interval` only: damage that its checksum does not show must
/// not put keys out of order in the pages that are made of it.
pub(super) async fn load_child<S: PageSource>(
    source: &S,
    page: PageRef,
    level: usize,
    interval: &Interval,
) -> Result<Arc<Node>> {
    let node = source.load(page).await?;
    let parent = u8::try_from(level + 1).expect("a tree has few levels");
    check_level(page, &node, Some(parent))?;
    interval.check(page, &node)?;
    Ok(node)
}

/// The shortest prefix of `key` that is above `last`.
fn separator<'a>(last: &[u8], key: &'a [u8]) -> &'a [u8] {
    debug_assert!(last < key, "keys are handed over in order");
    &key[..common_prefix_len(last, key) + 1]
}

/// Index at which to split `left` so that both halves of it and `right_bytes` more are about the same.
fn split_index(left: &Node, right_bytes: usize) -> usize {
    let half = left.image().len().midpoint(right_bytes);
    (1..left.len()).find(|&index| left.bytes_before(index) >= half).unwrap_or(left.len())
}
