//! Pages: immutable images in append-only segment files, found through a page table, cached in memory.
//!
//! A page has an id that stays the same when the page moves to another segment; the page table maps ids to places.
//! Ids are used again once nothing can refer to the page that had them.

mod cache;
mod files;
mod frame;
mod store;
mod table;
mod writer;

pub(crate) use store::{PageStore, PinnedPages, RootVersion};
pub(crate) use table::{Location, PageTable, page_segment_id, page_segment_name};
pub(crate) use writer::{PageWriter, Written};
#[cfg(ironleaf_loom)]
pub(crate) use {
    cache::{Cache, charge},
    frame::seal,
};
