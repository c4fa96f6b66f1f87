//! What a tree needs of the page store and the cache.

use crate::error::{Error, Result};
use crate::node::Node;
use crate::sync::Arc;
use std::fmt;
use std::future::Future;
use std::ops::Deref;

/// Names a page for as long as it is part of any tree; where it lies may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}", self.0)
    }
}

/// A reference to a page: its name, and the checksum that its content must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageRef {
    /// The name.
    pub id: PageId,
    /// The checksum.
    pub checksum: u64,
}

impl PageRef {
    /// Length of the stored form.
    pub const BYTES: usize = 16;

    /// The stored form: id, then checksum, little endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        (u128::from(self.checksum) << 64 | u128::from(self.id.0)).to_le_bytes()
    }

    /// The reference that [`to_bytes`](Self::to_bytes) stored.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let number = u128::from_le_bytes(bytes);
        Self { id: PageId(number as u64), checksum: (number >> 64) as u64 }
    }
}

/// Pages that can be read at once.
pub trait Pages {
    /// Keeps a page readable.
    type Guard: Deref<Target = Node>;

    /// The page, if it is cached.
    fn cached(&self, page: PageRef) -> Option<Self::Guard>;
}

/// The outcome of a read over cached pages.
#[derive(Debug, PartialEq, Eq)]
pub enum Attempt<T> {
    /// The answer.
    Done(T),
    /// This page is not cached: load it, then try again.
    Missing(PageRef),
}

/// Pages that can be waited for.
pub trait PageSource: Send + Sync {
    /// The page, verified against the reference's checksum.
    fn load(&self, page: PageRef) -> impl Future<Output = Result<Arc<Node>>> + Send;
}

/// How a checkpoint makes the pages of a new tree.
pub trait PageEditor: PageSource {
    /// The size at which pages are cut, frame included, as [`NodeBuilder::new`](crate::node::NodeBuilder::new)
    /// accepts it.
    fn page_bytes(&self) -> usize;

    /// Gives `image` an id and a sealed frame, and writes it.
    fn write(&mut self, image: Vec<u8>) -> impl Future<Output = Result<PageRef>> + Send;

    /// The page is not part of the new tree.
    fn retire(&mut self, page: PageRef);

    /// So many more edits are merged: what they change is written, or on its way.
    fn merged(&mut self, edits: usize);
}

/// Refuses a child whose level is not the one below its parent's. Levels fall on every way down, so no damage can
/// send a reader in circles.
#[inline]
pub(super) fn check_level(page: PageRef, node: &Node, parent: Option<u8>) -> Result<()> {
    match parent {
        Some(parent) if node.level() + 1 != parent => Err(wrong_level(page, node, parent)),
        _ => Ok(()),
    }
}

#[cold]
fn wrong_level(page: PageRef, node: &Node, parent: u8) -> Error {
    const LEVEL_AT: u64 = crate::node::FRAME_BYTES as u64 + 2;
    Error::corruption(page.id, LEVEL_AT, format_args!("level {}", i16::from(parent) - 1), node.level())
}
