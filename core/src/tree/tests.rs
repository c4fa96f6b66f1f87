//! The tree against a sorted map, and the promises about which pages a change touches.
//!
//! What could break: a key that routes to the wrong leaf after splits, joins and removals; a page that is leaked, or
//! freed while the new tree still has it; a change that rewrites more than its path. Random sequences over small pages
//! reach every shape of tree; after each change the whole tree is verified and compared.

use super::apply::Applied;
use super::scan::LeafEnd;
use super::*;
use crate::error::{Error, ErrorKind, Result};
use crate::node::Node;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::{Bound, ControlFlow};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use xxhash_rust::xxh3::xxh3_64;

mod promises;
mod random;

/// Pages in memory, with a record of what was done to them.
struct MemoryPages {
    page_bytes: usize,
    pages: BTreeMap<PageId, (u64, Arc<Node>)>,
    next: u64,
    written: Vec<PageRef>,
    retired: Vec<PageRef>,
    /// How many more pages fit.
    writes_left: usize,
    /// The most pages that were held at once when one was loaded.
    held_max: AtomicUsize,
    /// Edits that were merged.
    merged: usize,
}

impl MemoryPages {
    fn new(page_bytes: usize) -> Self {
        Self {
            page_bytes,
            pages: BTreeMap::new(),
            next: 1,
            written: Vec::new(),
            retired: Vec::new(),
            writes_left: usize::MAX,
            held_max: AtomicUsize::new(0),
            merged: 0,
        }
    }

    fn node(&self, page: PageRef) -> Option<Arc<Node>> {
        self.pages
            .get(&page.id)
            .filter(|(checksum, _)| *checksum == page.checksum)
            .map(|(_, node)| Arc::clone(node))
    }

    /// Forgets what was done so far, and frees what was retired.
    fn settle(&mut self) {
        for page in std::mem::take(&mut self.retired) {
            self.pages.remove(&page.id);
        }
        self.written.clear();
    }

    /// Replaces the image of a page under the same reference.
    fn tamper(&mut self, page: PageRef, image: Vec<u8>) {
        self.pages.insert(page.id, (page.checksum, Arc::new(Node::parse(image).unwrap())));
    }
}

impl PageSource for MemoryPages {
    async fn load(&self, page: PageRef) -> Result<Arc<Node>> {
        let node = self.node(page).ok_or_else(|| Error::corruption(page.id, 0, "a page", "none"))?;
        let held = self.pages.values().filter(|(_, node)| Arc::strong_count(node) > 1).count();
        self.held_max.fetch_max(held, Relaxed);
        Ok(node)
    }
}

impl PageEditor for MemoryPages {
    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    async fn write(&mut self, image: Vec<u8>) -> Result<PageRef> {
        if self.writes_left == 0 {
            return Err(Error::new(ErrorKind::DiskFull, "no space left"));
        }
        self.writes_left -= 1;
        let page = PageRef { id: PageId(self.next), checksum: xxh3_64(&image) };
        self.next += 1;
        self.pages.insert(
            page.id,
            (page.checksum, Arc::new(Node::parse(image).expect("written images are nodes"))),
        );
        self.written.push(page);
        Ok(page)
    }

    fn retire(&mut self, page: PageRef) {
        assert!(!self.retired.contains(&page), "{} is retired twice", page.id);
        assert!(self.node(page).is_some(), "{} is retired, but not there", page.id);
        self.retired.push(page);
    }

    fn merged(&mut self, edits: usize) {
        self.merged += edits;
    }
}

impl Pages for MemoryPages {
    type Guard = Arc<Node>;

    fn cached(&self, page: PageRef) -> Option<Arc<Node>> {
        self.node(page)
    }
}

/// The output of a future that never waits.
fn ready<F: Future + Send>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("pages in memory are there at once"),
    }
}

/// A small deterministic generator of numbers (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Collects what [`verify`] shows.
#[derive(Default)]
struct Collected {
    pages: BTreeSet<PageRef>,
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Inspector for Collected {
    fn page(&mut self, page: PageRef) -> bool {
        assert!(self.pages.insert(page), "{} is part of the tree twice", page.id);
        true
    }

    fn entry(&mut self, _: PageRef, key: &[u8], value: &[u8]) {
        assert!(self.entries.insert(key.to_vec(), value.to_vec()).is_none(), "a key is there twice");
    }
}

type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A tree and the map that it must equal.
struct Pair {
    pages: MemoryPages,
    root: Option<PageRef>,
    map: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Pair {
    fn new(page_bytes: usize) -> Self {
        Self { pages: MemoryPages::new(page_bytes), root: None, map: BTreeMap::new() }
    }

    /// Applies `changes` to both and compares what each says of it, and the pages with those that are reachable.
    fn apply(&mut self, changes: &Changes) -> Applied {
        self.pages.settle();
        let applied = apply_changes(&mut self.pages, self.root, changes);
        let mut expected = Applied { root: applied.root, ..Applied::default() };
        let size = |map: &BTreeMap<Vec<u8>, Vec<u8>>| {
            map.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>() as i64
        };
        let before = size(&self.map);
        for (key, value) in changes {
            match value {
                Some(value) => {
                    let old = self.map.insert(key.clone(), value.clone());
                    expected.added += u64::from(old.is_none());
                }
                None => expected.removed += u64::from(self.map.remove(key).is_some()),
            }
        }
        expected.bytes_delta = size(&self.map) - before;
        assert_eq!(applied, expected);
        assert_eq!(std::mem::take(&mut self.pages.merged), changes.len(), "every edit is reported once");
        self.root = applied.root;
        self.assert_sound();
        applied
    }

    fn put(&mut self, entries: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Applied {
        self.apply(&entries.into_iter().map(|(key, value)| (key, Some(value))).collect())
    }

    fn remove(&mut self, keys: impl IntoIterator<Item = Vec<u8>>) -> Applied {
        self.apply(&keys.into_iter().map(|key| (key, None)).collect())
    }

    /// The tree holds the map's entries, and its pages are exactly those written and not retired.
    fn assert_sound(&self) {
        let mut collected = Collected::default();
        if let Some(root) = self.root {
            let verified = ready(verify(&self.pages, root, &mut collected)).unwrap();
            assert_eq!(verified.findings, Vec::<String>::new());
            assert_eq!(verified.entries, self.map.len() as u64);
            assert_eq!(verified.pages, collected.pages.len() as u64);
        }
        assert!(collected.entries == self.map, "the tree holds other entries than the map");
        let mut live: BTreeSet<PageRef> = self
            .pages
            .pages
            .iter()
            .map(|(id, (checksum, _))| PageRef { id: *id, checksum: *checksum })
            .collect();
        for page in &self.pages.retired {
            assert!(live.remove(page), "{} is retired twice", page.id);
        }
        assert_eq!(live, collected.pages, "pages are leaked, or freed while in use");
        assert_eq!(self.map.is_empty(), self.root.is_none(), "an empty tree has no root");
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let root = self.root?;
        match lookup(&self.pages, root, key, |value| value.map(<[u8]>::to_vec)).unwrap() {
            Attempt::Done(value) => value,
            Attempt::Missing(page) => panic!("{} is missing", page.id),
        }
    }

    fn scan(&self, from: Bound<&[u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (mut found, mut scratch) = (Vec::new(), Vec::new());
        let Some(root) = self.root else { return found };
        let mut from = from.map(<[u8]>::to_vec);
        loop {
            let bound = from.as_ref().map(|key| &key[..]);
            let mut visit = |key: &[u8], value: &[u8]| {
                found.push((key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            };
            match scan_leaf(&self.pages, root, bound, &mut scratch, &mut visit).unwrap() {
                Attempt::Done(LeafEnd { stopped: false, next: Some(next) }) => from = Bound::Included(next),
                Attempt::Done(LeafEnd { stopped: false, next: None }) => return found,
                other => panic!("the scan ended with {other:?}"),
            }
        }
    }

    fn height(&self) -> u8 {
        self.root.map_or(0, |root| self.pages.node(root).unwrap().level() + 1)
    }
}

fn apply_changes(pages: &mut MemoryPages, root: Option<PageRef>, changes: &Changes) -> Applied {
    let edits: Vec<_> = changes
        .iter()
        .map(|(key, value)| (&key[..], value.as_ref().map_or(Edit::Remove, |value| Edit::Put(value))))
        .collect();
    ready(apply(pages, root, &edits)).unwrap()
}

fn numbered(number: u64) -> Vec<u8> {
    format!("member-{number:09}").into_bytes()
}
