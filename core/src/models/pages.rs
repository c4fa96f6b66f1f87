//! The cache and the page store, with pages of one entry.

use super::disk;
use crate::env::OpenMode;
use crate::node::{Node, NodeBuilder};
use crate::page::{Cache, Location, PageStore, PageTable, charge, page_segment_name, seal};
use crate::sync::Arc;
use crate::tree::{PageId, PageRef};
use bytes::Bytes;
use std::path::Path;

const PAGE_BYTES: usize = 256;
const DATABASE: [u8; 16] = [7; 16];

/// The sealed image of a leaf with one entry: an empty key, and `value`.
fn leaf(id: PageId, value: &str, seed: u64) -> (PageRef, Vec<u8>) {
    let mut builder = NodeBuilder::new(0, PAGE_BYTES);
    assert!(builder.push(b"", value.as_bytes()), "it fits");
    let mut image = builder.finish();
    (seal(&mut image, id, seed), image)
}

/// A cache with room for one page, and pages for it.
pub struct SmallCache {
    cache: Cache,
    pages: Vec<(PageRef, Arc<Node>)>,
    page_bytes: usize,
}

impl SmallCache {
    /// A cache that holds the first of `count` pages.
    #[must_use]
    pub fn holding_the_first_of(count: u64) -> Self {
        let pages: Vec<_> = (0..count)
            .map(|n| {
                let (page, image) = leaf(PageId(n), &n.to_string(), 0);
                (page, Arc::new(Node::built(image)))
            })
            .collect();
        let page_bytes = charge(&pages[0].1);
        let cache = Cache::new(page_bytes);
        cache.insert(pages[0].0, pages[0].1.clone());
        Self { cache, pages, page_bytes }
    }

    /// Adds page `n`; another goes for it.
    pub fn insert(&self, n: usize) {
        let (page, node) = &self.pages[n];
        self.cache.insert(*page, node.clone());
    }

    /// Takes page `n` out, if it is there.
    pub fn remove(&self, n: usize) {
        self.cache.remove(self.pages[n].0.id);
    }

    /// What page `n` says, if it is there.
    #[must_use]
    pub fn get(&self, n: usize) -> Option<String> {
        let node = self.cache.get_owned(self.pages[n].0)?;
        Some(String::from_utf8_lossy(node.value(0)).into_owned())
    }

    /// Whether what the cache says that it uses is what its pages take.
    #[must_use]
    pub fn is_accounted(&self) -> bool {
        let held = (0..self.pages.len()).filter(|n| self.get(*n).is_some()).count();
        self.cache.usage().0 == held * self.page_bytes
    }
}

/// A store whose one page is on the disk, and not in memory.
#[derive(Clone)]
pub struct ColdPage {
    store: Arc<PageStore>,
    page: PageRef,
}

impl ColdPage {
    /// A page that says "v".
    pub async fn new() -> Self {
        let (env, directory) = (disk::environment(disk::Syncs::AtOnce), Path::new("model"));
        let mut table = PageTable::default();
        let id = table.allocate();
        let (page, image) = leaf(id, "v", PageStore::seed_of(DATABASE));
        let len = image.len() as u32;
        let file = env.disk.open(&directory.join(page_segment_name(0)), OpenMode::CreateNew).await;
        file.expect("a file").write_at(0, Bytes::from(image)).await.expect("a write");
        table.add_segment(0, u64::from(len));
        table.install(id, Location { segment: 0, offset: 0, len });
        let store = PageStore::new(env, directory, DATABASE, table, (1 << 20, 1));
        Self { store, page }
    }

    /// What the page says.
    pub async fn load(&self) -> String {
        let node = self.store.load(self.page).await.expect("a sound page");
        String::from_utf8_lossy(node.value(0)).into_owned()
    }

    /// How often it was read from the disk.
    #[must_use]
    pub fn loads(&self) -> u64 {
        self.store.loads()
    }
}
