//! Loads pages, and frees them when the last root that reaches them is gone.

use super::cache::{Cache, CachedPage};
use super::files::SegmentFiles;
use super::frame;
use super::table::{Location, PageTable, page_segment_name};
use crate::env::{DiskErrorKind, DiskResult, Env};
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::joint::Joint;
use crate::node::Node;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, OnceLock, Weak, is_unwinding};
use crate::tree::{Attempt, PageId, PageRef, PageSource, Pages};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Load = Joint<Result<Arc<Node>>>;

/// Every page of a database.
pub(crate) struct PageStore {
    pub(crate) env: Env,
    pub(crate) directory: PathBuf,
    /// Seeds the checksums, so that pages of another database are noticed.
    pub(crate) seed: u64,
    pub(crate) table: Mutex<PageTable>,
    pub(crate) cache: Cache,
    pub(crate) files: SegmentFiles,
    /// Pages that are being read from the disk, for as long as somebody waits for them.
    loading: Mutex<BTreeMap<PageId, Weak<Load>>>,
    /// Itself, for loads that go on whoever drives them.
    me: Weak<Self>,
    loads: AtomicU64,
}

impl PageStore {
    pub(crate) fn new(
        env: Env,
        directory: &Path,
        database: [u8; 16],
        table: PageTable,
        (cache_bytes, files_max): (usize, usize),
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            files: SegmentFiles::new(env.clone(), directory, files_max),
            env,
            directory: directory.to_path_buf(),
            seed: Self::seed_of(database),
            table: Mutex::new(table),
            cache: Cache::new(cache_bytes),
            loading: Mutex::new(BTreeMap::new()),
            me: me.clone(),
            loads: AtomicU64::new(0),
        })
    }

    /// What checksums are seeded with.
    pub(crate) fn seed_of(database: [u8; 16]) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&database)
    }

    /// Pages read from the disk so far.
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Ordering::Relaxed)
    }

    /// The page, from the cache or from the disk.
    pub(crate) async fn load(&self, page: PageRef) -> Result<Arc<Node>> {
        if let Some(node) = self.cache.get_owned(page) {
            return Ok(node);
        }
        let load = {
            let mut loading = self.loading.lock();
            if let Some(under_way) = loading.get(&page.id).and_then(Weak::upgrade) {
                reached!("page load shared");
                under_way
            } else {
                let store = self.me.upgrade().expect("whoever calls it holds it");
                let load = Joint::new(store.load_into_cache(page));
                loading.insert(page.id, Arc::downgrade(&load));
                load
            }
        };
        load.join().await
    }

    async fn load_into_cache(self: Arc<Self>, page: PageRef) -> Result<Arc<Node>> {
        let mut loading = Loading { store: &self, id: page.id, has_ended: false };
        // A load before this one may have ended since the first look.
        if !sabotaged!("load-not-looked-for-again")
            && let Some(node) = self.cache.get_owned(page)
        {
            loading.has_ended = true;
            return Ok(node);
        }
        let read = self.read(page).await.map(Arc::new);
        loading.has_ended = true;
        let node = read?;
        self.cache.insert(page, node.clone());
        self.loads.fetch_add(1, Ordering::Relaxed);
        Ok(node)
    }

    /// The page as it is on the disk, verified.
    pub(crate) async fn read(&self, page: PageRef) -> Result<Node> {
        let image = self.read_image(page).await?;
        Node::parse(image)
            .map_err(|damage| Error::corruption(page.id, damage.offset as u64, damage.expected, damage.found))
    }

    async fn read_image(&self, page: PageRef) -> Result<Vec<u8>> {
        let location_now = || self.table.lock().location(page.id);
        let Some(mut location) = location_now() else {
            return Err(Error::corruption("the page table", page.id.0, "a place for this page", "none"));
        };
        let image = loop {
            let read = self.read_at(location).await;
            match location_now() {
                // It was moved, and its segment removed, before the segment was open.
                Some(now) if read.is_err() && now != location => location = now,
                _ => break read,
            }
        };
        let image = match image {
            Err(error) if error.kind == DiskErrorKind::NotFound => {
                let expected = format!("{}, which the manifest names", page.id);
                return Err(Error::incomplete(page_segment_name(location.segment), expected, "no file"));
            }
            read => read?,
        };
        frame::verify(&image, page, self.seed).map_err(|found| {
            Error::corruption(
                page_segment_name(location.segment),
                location.offset,
                format!("page {} with checksum {:016x}", page.id.0, page.checksum),
                found,
            )
        })?;
        Ok(image)
    }

    /// The bytes at a place that holds a page.
    pub(crate) async fn read_at(&self, location: Location) -> DiskResult<Vec<u8>> {
        let file = self.files.get(location.segment).await?;
        if !self.table.lock().segments.contains_key(&location.segment) {
            // It went while it was opened. To keep it open would keep its space.
            self.files.remove(location.segment);
        }
        file.read_at(location.offset, location.len as usize).await
    }

    /// Forgets segments without a page; their files can go.
    pub(crate) fn take_dead_segments(&self, filling: Option<u64>) -> Vec<u64> {
        let dead = self.table.lock().take_dead_segments(filling);
        for segment in &dead {
            self.files.remove(*segment);
        }
        dead
    }

    /// Runs `attempt` until no page is missing. Pages that were missing stay pinned meanwhile, so a cache that is too
    /// small for a whole path does not make this go on for ever.
    pub(crate) async fn resolve<T>(
        &self,
        mut attempt: impl FnMut(&PinnedPages<'_>) -> Result<Attempt<T>>,
    ) -> Result<T> {
        let mut pages = PinnedPages { store: self, pinned: BTreeMap::new(), pinned_bytes: 0 };
        loop {
            match attempt(&pages)? {
                Attempt::Done(done) => return Ok(done),
                Attempt::Missing(page) => pages.pin(page).await?,
            }
        }
    }

    /// The cached pages, with nothing pinned.
    pub(crate) fn cached(&self) -> PinnedPages<'_> {
        PinnedPages { store: self, pinned: BTreeMap::new(), pinned_bytes: 0 }
    }

    /// Frees pages that nobody refers to any more.
    pub(crate) fn release(&self, pages: Vec<PageId>) {
        if pages.is_empty() {
            return;
        }
        let mut table = self.table.lock();
        for id in pages {
            self.cache.remove(id);
            table.release(id);
        }
    }
}

impl PageSource for PageStore {
    async fn load(&self, page: PageRef) -> Result<Arc<Node>> {
        PageStore::load(self, page).await
    }
}

/// Ends a load, also when nobody waits for it any more.
struct Loading<'a> {
    store: &'a PageStore,
    id: PageId,
    has_ended: bool,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let mut loading = self.store.loading.lock();
        // One that was given up may have a successor.
        if self.has_ended || loading.get(&self.id).is_some_and(|load| load.strong_count() == 0) {
            loading.remove(&self.id);
        }
    }
}

/// Cached pages, and some that are held besides.
pub(crate) struct PinnedPages<'a> {
    store: &'a PageStore,
    pinned: BTreeMap<PageRef, Arc<Node>>,
    /// Bytes of the images that are pinned.
    pinned_bytes: usize,
}

impl PinnedPages<'_> {
    /// Loads a page and holds it.
    pub(crate) async fn pin(&mut self, page: PageRef) -> Result<()> {
        let node = self.store.load(page).await?;
        self.pinned_bytes += node.image().len();
        self.pinned.insert(page, node);
        Ok(())
    }

    /// Bytes of the pages that are held.
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.pinned_bytes
    }
}

/// A page of [`PinnedPages`].
pub(crate) enum PageGuard {
    Cached(CachedPage),
    Pinned(Arc<Node>),
}

impl std::ops::Deref for PageGuard {
    type Target = Node;

    fn deref(&self) -> &Node {
        match self {
            Self::Cached(page) => page,
            Self::Pinned(node) => node,
        }
    }
}

impl Pages for PinnedPages<'_> {
    type Guard = PageGuard;

    fn cached(&self, page: PageRef) -> Option<PageGuard> {
        if let Some(node) = self.pinned.get(&page) {
            return Some(PageGuard::Pinned(node.clone()));
        }
        self.store.cache.get(page).map(PageGuard::Cached)
    }
}

/// A root of the catalog, and what is to be freed once it and every older root are gone.
///
/// Each root holds the next newer one, so a root goes only after all older ones: then the pages that it reached and
/// its successor does not are reached by nobody.
pub(crate) struct RootVersion {
    /// The catalog; `None` if there are no objects.
    pub(crate) catalog: Option<PageRef>,
    /// Every edit up to here is in it.
    pub(crate) lsn: Lsn,
    store: Arc<PageStore>,
    newer: OnceLock<(Arc<RootVersion>, Mutex<Vec<PageId>>)>,
}

impl RootVersion {
    pub(crate) fn new(store: Arc<PageStore>, catalog: Option<PageRef>, lsn: Lsn) -> Arc<Self> {
        Arc::new(Self { catalog, lsn, store, newer: OnceLock::new() })
    }

    /// Names the next newer root, and the pages that this one reaches and the newer does not.
    pub(crate) fn succeed(&self, newer: Arc<RootVersion>, retired: Vec<PageId>) {
        let retired = if sabotaged!("retired-pages-freed-at-once") {
            self.store.release(retired);
            Vec::new()
        } else {
            retired
        };
        let first = self.newer.set((newer, Mutex::new(retired))).is_ok();
        assert!(first, "a root has one successor");
    }
}

impl Drop for RootVersion {
    fn drop(&mut self) {
        if is_unwinding() {
            // A second panic would take the process along. What is not freed now is freed by the next open.
            return;
        }
        // A loop and not recursion: a snapshot may have kept a long chain of roots.
        let mut next = self.newer.take();
        while let Some((newer, retired)) = next {
            self.store.release(std::mem::take(&mut retired.lock()));
            next = Arc::into_inner(newer).and_then(|mut root| root.newer.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::os;

    /// Where a page is released twice there is one panic, which a caller can catch, and not a second one while the
    /// first unwinds, which ends the process.
    #[tokio::test]
    #[should_panic(expected = "a page is released once")]
    async fn roots_that_go_while_a_panic_unwinds_do_not_panic_too() {
        let env = os::environment().expect("a runtime");
        let mut table = PageTable::default();
        table.add_segment(0, 100);
        let page = table.allocate();
        table.install(page, Location { segment: 0, offset: 0, len: 100 });
        let store = PageStore::new(env, Path::new("nowhere"), [0; 16], table, (0, 1));
        let old_root = |retired| {
            let old = RootVersion::new(store.clone(), None, Lsn(0));
            old.succeed(RootVersion::new(store.clone(), None, Lsn(1)), retired);
            old
        };
        let _goes_while_unwinding = old_root(vec![page]);
        drop(old_root(vec![page, page]));
    }
}
