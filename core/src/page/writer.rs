//! Appends pages to segments.

use super::frame;
use super::store::PageStore;
use super::table::{Location, page_segment_name};
use crate::env::{File, OpenMode};
use crate::error::Result;
use crate::node::Node;
use crate::sync::Arc;
use crate::tree::{PageEditor, PageId, PageRef, PageSource};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::task::Poll;

/// Pages are handed to the disk in runs of about this size.
const RUN_BYTES: usize = 256 << 10;
const PAGE_ALIGNMENT: u64 = 8;
/// Runs start at a sector of their own: a sector that was synced is never written again.
const RUN_ALIGNMENT: u64 = 512;

/// A checkpoint lets other tasks run after this many pages.
const PAGES_PER_TURN: usize = 8;

/// The checkpointer's hand on the page store. Between checkpoints it keeps the segment that is being filled.
pub(crate) struct PageWriter {
    store: Arc<PageStore>,
    page_bytes: usize,
    segment_bytes: u64,
    current: Option<Current>,
    touched: BTreeMap<u64, Arc<dyn File>>,
    is_new_segment: bool,
    written: Written,
    on_merged: Box<dyn Fn(usize) + Send + Sync>,
}

struct Current {
    id: u64,
    file: Arc<dyn File>,
    offset: u64,
    run: Vec<u8>,
    run_offset: u64,
}

/// What was written since the last [`PageWriter::take`].
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) created: Vec<PageId>,
    pub(crate) retired: Vec<PageId>,
    /// Copies of pages that stay as they are: from, to.
    pub(crate) moved: Vec<(PageId, Location, Location)>,
    pub(crate) bytes: u64,
}

impl PageWriter {
    pub(crate) fn new(store: Arc<PageStore>, page_bytes: usize, segment_bytes: usize) -> Self {
        Self {
            store,
            page_bytes,
            segment_bytes: segment_bytes as u64,
            current: None,
            touched: BTreeMap::new(),
            is_new_segment: false,
            written: Written::default(),
            on_merged: Box::new(|_| {}),
        }
    }

    /// From now on `on_merged` is told how many edits were merged since it was told last.
    pub(crate) fn report_merged(&mut self, on_merged: impl Fn(usize) + Send + Sync + 'static) {
        self.on_merged = Box::new(on_merged);
    }

    /// The segment that is being filled.
    pub(crate) fn current_segment(&self) -> Option<u64> {
        self.current.as_ref().map(|current| current.id)
    }

    /// Bytes written since the last [`take`](Self::take).
    pub(crate) fn bytes(&self) -> u64 {
        self.written.bytes
    }

    /// Pages retired since the last [`take`](Self::take), in order.
    pub(crate) fn retired(&self) -> &[PageId] {
        &self.written.retired
    }

    /// What was created, retired and moved since the last [`take`](Self::take).
    pub(crate) fn written(&self) -> &Written {
        &self.written
    }

    /// What was created, retired and moved since the last call.
    pub(crate) fn take(&mut self) -> Written {
        mem::take(&mut self.written)
    }

    async fn place(&mut self, image: &[u8]) -> Result<Location> {
        let full = |current: &Current| {
            current.offset > 0 && current.offset + image.len() as u64 > self.segment_bytes
        };
        if self.current.as_ref().is_none_or(full) {
            self.flush().await?;
            self.current = Some(self.create_segment().await?);
        }
        let current = self.current.as_mut().expect("just made sure of");
        let padding = current.offset.next_multiple_of(PAGE_ALIGNMENT) - current.offset;
        current.run.resize(current.run.len() + padding as usize, 0);
        current.offset += padding;
        let location = Location { segment: current.id, offset: current.offset, len: image.len() as u32 };
        current.run.extend_from_slice(image);
        current.offset += image.len() as u64;
        self.written.bytes += image.len() as u64;
        if current.run.len() >= RUN_BYTES {
            self.flush().await?;
        }
        Ok(location)
    }

    async fn create_segment(&mut self) -> Result<Current> {
        let id = {
            let mut table = self.store.table.lock();
            table.next_segment += 1;
            table.next_segment - 1
        };
        let path = self.store.directory.join(page_segment_name(id));
        let file = self.store.env.disk.open(&path, OpenMode::CreateNew).await?;
        self.store.table.lock().add_segment(id, 0);
        self.store.files.insert(id, file.clone());
        self.is_new_segment = true;
        reached!("page segment created");
        Ok(Current { id, file, offset: 0, run: Vec::new(), run_offset: 0 })
    }

    /// Hands everything to the disk, so that it can be read back.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        if current.run.is_empty() {
            return Ok(());
        }
        let run = mem::take(&mut current.run);
        self.store.table.lock().extend_segment(current.id, current.run_offset + run.len() as u64);
        current.file.write_at(current.run_offset, run.into()).await?;
        self.touched.insert(current.id, current.file.clone());
        current.offset = current.offset.next_multiple_of(RUN_ALIGNMENT);
        current.run_offset = current.offset;
        Ok(())
    }

    /// The image of a page that is still in the run.
    fn unwritten(&self, page: PageRef) -> Option<Vec<u8>> {
        let current = self.current.as_ref()?;
        let location = self.store.table.lock().location(page.id)?;
        let start = location.offset.checked_sub(current.run_offset)? as usize;
        let is_here = location.segment == current.id && start < current.run.len();
        is_here.then(|| current.run[start..start + location.len as usize].to_vec())
    }

    /// Takes back everything since the last [`take`](Self::take); the next page starts a new segment.
    pub(crate) fn abandon(&mut self) {
        let written = self.take();
        self.current = None;
        self.touched.clear();
        self.store.release(written.created);
    }

    /// Makes everything durable: data, lengths and names.
    pub(crate) async fn sync(&mut self) -> Result<()> {
        self.flush().await?;
        let skips_growth = planted!("page-growth-not-synced") && !self.is_new_segment;
        for file in mem::take(&mut self.touched).into_values() {
            if !planted!("pages-not-synced") && !skips_growth {
                file.sync_data().await?;
            }
        }
        if mem::take(&mut self.is_new_segment) && !planted!("page-segment-entry-not-synced") {
            self.store.env.disk.sync_dir(&self.store.directory).await?;
        }
        Ok(())
    }

    /// Copies pages of a segment that is mostly dead, so that its file can go.
    /// Pages that are `retired` stay behind: they go with the roots that reach them. A page that cannot be read now ends
    /// it: the segment stays.
    pub(crate) async fn relocate(&mut self, segment: u64, retired: &BTreeSet<PageId>) -> Result<()> {
        let pages = self.store.table.lock().pages_of(segment);
        for (id, from) in pages.into_iter().filter(|(id, _)| !retired.contains(id)) {
            let image = match self.read_for_move(id, from).await {
                Err(error) if error.is_failed_read() => return Ok(()),
                image => image?,
            };
            let Some(image) = image else { continue };
            let to = self.place(&image).await?;
            self.written.moved.push((id, from, to));
            reached!("page relocated");
        }
        Ok(())
    }

    async fn read_for_move(&self, id: PageId, from: Location) -> Result<Option<Vec<u8>>> {
        if self.store.table.lock().location(id) != Some(from) {
            return Ok(None);
        }
        let image = self.store.read_at(from).await?;
        frame::verify_any(&image, id, self.store.seed).map_err(|found| {
            let expected = format!("page {}", id.0);
            crate::error::Error::corruption(page_segment_name(from.segment), from.offset, expected, found)
        })?;
        Ok(Some(image))
    }
}

impl PageSource for PageWriter {
    async fn load(&self, page: PageRef) -> Result<Arc<Node>> {
        if let Some(node) = self.store.cache.get_owned(page) {
            return Ok(node);
        }
        match self.unwritten(page) {
            Some(image) => Ok(Arc::new(Node::built(image))),
            None => self.store.load(page).await,
        }
    }
}

impl PageEditor for PageWriter {
    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    async fn write(&mut self, mut image: Vec<u8>) -> Result<PageRef> {
        let id = self.store.table.lock().allocate();
        let page = frame::seal(&mut image, id, self.store.seed);
        let placed = self.place(&image).await;
        let location = match placed {
            Ok(location) => location,
            Err(error) => {
                self.store.table.lock().give_back(id);
                return Err(error);
            }
        };
        self.store.table.lock().install(id, location);
        self.store.cache.insert(page, Arc::new(Node::built(image)));
        self.written.created.push(id);
        if self.written.created.len().is_multiple_of(PAGES_PER_TURN) {
            yield_now().await;
        }
        Ok(page)
    }

    fn retire(&mut self, page: PageRef) {
        self.written.retired.push(page.id);
    }

    fn merged(&mut self, edits: usize) {
        (self.on_merged)(edits);
    }
}

/// Lets other tasks of the same thread run.
async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
