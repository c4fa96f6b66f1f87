//! Visiting all pages of a tree: to free it, and to verify it.

use super::interval::Interval;
use super::pages::{PageRef, PageSource, check_level};
use crate::error::Result;
use crate::node::Node;
use crate::sync::Arc;
use std::convert::Infallible;
use std::ops::ControlFlow;

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
    /// Whether a page could not be read, so that nobody knows what is below it.
    pub has_unread: bool,
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
    verify.visit(source, root, None, Interval::default()).await?;
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
        Some((self.branch.child(index), self.interval.of_child(&self.branch, index)))
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
        let node = match source.load(page).await {
            Ok(node) => node,
            Err(error) if error.is_damage() => {
                self.verified.findings.push(format!("{}: {error}", page.id));
                self.verified.has_unread = true;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.verified.pages += 1;
        if let Err(error) = check_level(page, &node, parent) {
            self.verified.findings.push(error.to_string());
            self.verified.has_unread = true;
            return Ok(());
        }
        if let Err(error) = interval.check(page, &node) {
            self.verified.findings.push(error.to_string());
        }
        if node.level() == 0 {
            self.verify_leaf(page, &node);
        } else {
            self.path.push(Step { branch: node, interval, child: 0 });
        }
        Ok(())
    }

    fn verify_leaf(&mut self, page: PageRef, leaf: &Node) {
        if let Some(index) = leaf.wrong_fingerprint() {
            let finding = format!("{}: the fingerprint of record {index} is not that of its key", page.id);
            self.verified.findings.push(finding);
        }
        let mut scratch = Vec::new();
        let visited = leaf.visit_from(0, &[], &mut scratch, |key, value| {
            self.verified.entries += 1;
            self.verified.bytes += (key.len() + value.len()) as u64;
            self.inspector.entry(page, key, value);
            ControlFlow::<Infallible>::Continue(())
        });
        let ControlFlow::Continue(()) = visited;
    }
}
