//! Visiting all pages of a tree: to free it, and to verify it.

use super::pages::{PageRef, PageSource, check_level};
use crate::error::{Error, ErrorKind, Result};
use crate::node::Node;
use crate::sync::Arc;

/// Visits every page of the tree under `root`, each after all below it. Loads branches only, besides the root.
///
/// # Errors
/// Those of `source`, and corruption, if a page refers to one that is not its child.
pub async fn walk<S: PageSource>(
    source: &S,
    root: PageRef,
    mut visit: impl FnMut(PageRef, u8),
) -> Result<()> {
    let node = source.load(root).await?;
    if node.level() == 0 {
        visit(root, 0);
        return Ok(());
    }
    let mut path = vec![(root, node, 0)];
    while let Some((page, branch, child)) = path.last_mut() {
        if *child == branch.len() {
            visit(*page, branch.level());
            path.pop();
            continue;
        }
        let (page, parent) = (branch.child(*child), branch.level());
        *child += 1;
        if parent == 1 {
            visit(page, 0);
        } else {
            let node = source.load(page).await?;
            check_level(page, &node, Some(parent))?;
            path.push((page, node, 0));
        }
    }
    Ok(())
}

/// What [`verify`] shows of a tree on its way.
pub trait Inspector: Send {
    /// A page that is part of the tree. `false`: leave out what is below it, since it was seen before.
    fn page(&mut self, page: PageRef) -> bool;

    /// An entry of the leaf `page`.
    fn entry(&mut self, page: PageRef, key: &[u8], value: &[u8]);
}

/// What [`verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// What is wrong, each naming its page.
    pub findings: Vec<String>,
    /// Pages that were read.
    pub pages: u64,
    /// Entries in the leaves.
    pub entries: u64,
    /// Sum of the lengths of keys and values.
    pub bytes: u64,
}

/// Reads the whole tree under `root` and verifies that levels fall by one, that each key lies within the interval that
/// routes to it, and that lookups find each entry. A damaged page is a finding; the rest is verified all the same.
///
/// # Errors
/// Those of `source` other than corruption.
pub async fn verify<S: PageSource>(
    source: &S,
    root: PageRef,
    inspector: &mut impl Inspector,
) -> Result<Verified> {
    let mut verify = Verify { verified: Verified::default(), inspector, path: Vec::new() };
    verify.visit(source, root, None, Interval { low: Vec::new(), high: None }).await?;
    while let Some(step) = verify.path.last_mut() {
        let Some((page, interval)) = step.next_child() else {
            verify.path.pop();
            continue;
        };
        let parent = step.branch.level();
        verify.visit(source, page, Some(parent), interval).await?;
    }
    Ok(verify.verified)
}

/// The keys from `low` on and below `high`.
struct Interval {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl Interval {
    fn holds(&self, key: &[u8]) -> bool {
        &self.low[..] <= key && self.high.as_deref().is_none_or(|high| key < high)
    }
}

struct Step {
    branch: Arc<Node>,
    interval: Interval,
    child: usize,
}

impl Step {
    fn next_child(&mut self) -> Option<(PageRef, Interval)> {
        let index = self.child;
        if index == self.branch.len() {
            return None;
        }
        self.child += 1;
        let bound = |index| {
            let mut key = Vec::new();
            self.branch.key(index, &mut key);
            key
        };
        let low = if index == 0 { self.interval.low.clone() } else { bound(index) };
        let last = index + 1 == self.branch.len();
        let high = if last { self.interval.high.clone() } else { Some(bound(index + 1)) };
        Some((self.branch.child(index), Interval { low, high }))
    }
}

struct Verify<'i, I> {
    verified: Verified,
    inspector: &'i mut I,
    path: Vec<Step>,
}

impl<I: Inspector> Verify<'_, I> {
    async fn visit<S: PageSource>(
        &mut self,
        source: &S,
        page: PageRef,
        parent: Option<u8>,
        interval: Interval,
    ) -> Result<()> {
        if !self.inspector.page(page) {
            return Ok(());
        }
        let loaded = match source.load(page).await {
            Ok(node) => check_level(page, &node, parent).map(|()| node),
            Err(error) => Err(error),
        };
        let node = match loaded {
            Ok(node) => node,
            Err(error) if error.kind() == ErrorKind::Corruption => return self.damaged(page, &error),
            Err(error) => return Err(error),
        };
        self.verified.pages += 1;
        if node.level() == 0 {
            self.verify_leaf(page, &node, &interval);
        } else {
            self.verify_bounds(page, &node, &interval);
            self.path.push(Step { branch: node, interval, child: 0 });
        }
        Ok(())
    }

    fn damaged(&mut self, page: PageRef, error: &Error) -> Result<()> {
        self.verified.findings.push(format!("{}: {error}", page.id));
        Ok(())
    }

    /// Keys ascend within a node, or it would not have been loaded: the first and the last stand for all.
    fn verify_bounds(&mut self, page: PageRef, node: &Node, interval: &Interval) {
        let mut key = Vec::new();
        let first_keyed = usize::from(node.level() > 0);
        for index in [first_keyed, node.len() - 1] {
            if index < first_keyed || index >= node.len() {
                continue;
            }
            node.key(index, &mut key);
            if !interval.holds(&key) {
                self.verified.findings.push(format!(
                    "{}: key {} of record {index} is outside of the interval that routes to the page",
                    page.id,
                    key.escape_ascii(),
                ));
            }
        }
    }

    fn verify_leaf(&mut self, page: PageRef, leaf: &Node, interval: &Interval) {
        self.verify_bounds(page, leaf, interval);
        if let Some(index) = leaf.wrong_fingerprint() {
            let finding = format!("{}: the fingerprint of record {index} is not that of its key", page.id);
            self.verified.findings.push(finding);
        }
        let mut key = Vec::new();
        for index in 0..leaf.len() {
            leaf.key(index, &mut key);
            let value = leaf.value(index);
            self.verified.entries += 1;
            self.verified.bytes += (key.len() + value.len()) as u64;
            self.inspector.entry(page, &key, value);
        }
    }
}
