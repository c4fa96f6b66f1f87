//! The keys that route to one page.

use super::pages::PageRef;
use crate::error::{Error, Result};
use crate::node::Node;

/// The keys from `low` on and below `high`.
#[derive(Clone, Debug, Default)]
pub(super) struct Interval {
    pub(super) low: Vec<u8>,
    /// `None` for the rightmost interval.
    pub(super) high: Option<Vec<u8>>,
}

impl Interval {
    /// The part of a branch's interval that is its child's at `index`.
    pub(super) fn of_child(&self, branch: &Node, index: usize) -> Self {
        let bound = |index| {
            let mut key = Vec::new();
            branch.key(index, &mut key);
            key
        };
        let last = index + 1 == branch.len();
        Self {
            low: if index == 0 { self.low.clone() } else { bound(index) },
            high: if last { self.high.clone() } else { Some(bound(index + 1)) },
        }
    }

    /// Refuses the node `page` if it has a key outside of the interval. Its keys ascend, as every node's do, so the
    /// first and the last stand for all.
    pub(super) fn check(&self, page: PageRef, node: &Node) -> Result<()> {
        let first_keyed = usize::from(node.level() > 0);
        let mut key = Vec::new();
        for index in [first_keyed, node.len() - 1] {
            if index < first_keyed || index >= node.len() {
                continue;
            }
            node.key(index, &mut key);
            if !self.holds(&key) {
                return Err(Error::corruption(
                    page.id,
                    node.record_at(index) as u64,
                    "a key within the interval that routes to the page",
                    key.escape_ascii(),
                ));
            }
        }
        Ok(())
    }

    fn holds(&self, key: &[u8]) -> bool {
        &self.low[..] <= key && self.high.as_deref().is_none_or(|high| key < high)
    }
}
