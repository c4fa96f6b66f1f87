//! Finding the value of one key.

use super::pages::{Attempt, PageRef, Pages, check_level};
use crate::error::Result;

/// Reads the value of `key`, in place, in the tree under `root`.
///
/// `read` is called once the leaf is reached, and not at all if a page on the way is missing. Takes no lock and
/// allocates nothing.
///
/// # Errors
/// Corruption, if a page refers to one that is not its child.
#[inline]
pub fn lookup<P: Pages, R>(
    pages: &P,
    root: PageRef,
    key: &[u8],
    read: impl FnOnce(Option<&[u8]>) -> R,
) -> Result<Attempt<R>> {
    let (mut page, mut parent) = (root, None);
    loop {
        let Some(node) = pages.cached(page) else { return Ok(Attempt::Missing(page)) };
        check_level(page, &node, parent)?;
        if node.level() == 0 {
            return Ok(Attempt::Done(read(node.find(key))));
        }
        parent = Some(node.level());
        page = node.child_for(key).1;
    }
}
