//! Verifies what is stored, and counts.

use super::engine::Engine;
use super::types::{Finding, Metrics, Report};
use crate::catalog::{self, Body, ObjectRecord};
use crate::error::Result;
use crate::node::Node;
use crate::page::PageStore;
use crate::sync::Arc;
use crate::tree::{self, Inspector, PageId, PageRef, PageSource};
use std::collections::{BTreeMap, BTreeSet};

/// Pages as they are on the disk, whatever the cache holds.
struct OnDisk<'a>(&'a PageStore);

impl PageSource for OnDisk<'_> {
    async fn load(&self, page: PageRef) -> Result<Arc<Node>> {
        self.0.read(page).await.map(Arc::new)
    }
}

/// What a walk over trees gathers.
#[derive(Default)]
struct Seen {
    pages: BTreeSet<PageId>,
    findings: Vec<Finding>,
    /// Objects with trees of their own: key, root, entries, bytes.
    trees: Vec<(Vec<u8>, PageRef, u64, u64)>,
    objects: u64,
    entries: u64,
    is_catalog: bool,
    /// A page could not be read: what is reached from it is not known.
    has_unread: bool,
}

impl Seen {
    fn found(&mut self, place: impl Into<String>, problem: impl Into<String>) {
        self.findings.push(Finding { place: place.into(), problem: problem.into() });
    }

    fn record(&mut self, key: &[u8], bytes: &[u8]) {
        let place = format!("key \"{}\"", key.escape_ascii());
        let record = match ObjectRecord::decode(bytes) {
            Ok(record) => record,
            Err(malformed) => {
                let problem = format!("its record lacks {} at byte {}", malformed.expected, malformed.offset);
                return self.found(place, problem);
            }
        };
        self.objects += 1;
        if record.count == 0 {
            self.found(&place, "it is stored though it is empty");
        }
        let body = match record.body {
            Body::Tree(root) => {
                self.trees.push((key.to_vec(), root, record.count, record.bytes));
                return;
            }
            Body::Inline(body) => body,
        };
        let (mut count, mut bytes) = (0, 0);
        let mut last: Option<&[u8]> = None;
        for entry in catalog::entries(record.kind, body) {
            let Ok((name, value)) = entry else { return self.found(place, "its entries are cut short") };
            if last.is_some_and(|last| last >= name) {
                self.found(&place, "its entries are not in order");
            }
            last = Some(name);
            count += 1;
            bytes += (name.len() + value.len()) as u64;
        }
        self.entries += count;
        if (count, bytes) != (record.count, record.bytes) {
            self.found(
                place,
                format!(
                    "its record counts {} entries of {} bytes; there are {count} of {bytes}",
                    record.count, record.bytes
                ),
            );
        }
    }
}

impl Inspector for Seen {
    fn page(&mut self, page: PageRef) -> bool {
        let is_new = self.pages.insert(page.id);
        if !is_new {
            self.found(page.id.to_string(), "it is reached twice");
        }
        is_new
    }

    fn entry(&mut self, _page: PageRef, key: &[u8], value: &[u8]) {
        if self.is_catalog {
            self.record(key, value);
        }
    }
}

impl Engine {
    /// Verifies every page of the newest root. The caller sees to it that no checkpoint runs meanwhile.
    pub(crate) async fn verify(&self) -> Result<Report> {
        let pages = &OnDisk(&self.store);
        let root = self.state.load().root.clone();
        let mut seen = Seen { is_catalog: true, ..Seen::default() };
        if let Some(catalog) = root.catalog {
            let verified = tree::verify(pages, catalog, &mut seen).await?;
            seen.has_unread |= verified.has_unread;
            for problem in verified.findings {
                seen.found("the catalog", problem);
            }
        }
        seen.is_catalog = false;
        for (key, root, count, bytes) in std::mem::take(&mut seen.trees) {
            let place = format!("key \"{}\"", key.escape_ascii());
            let verified = tree::verify(pages, root, &mut seen).await?;
            seen.has_unread |= verified.has_unread;
            let is_whole = verified.findings.is_empty();
            for problem in verified.findings {
                seen.found(&place, problem);
            }
            seen.entries += verified.entries;
            if is_whole && (verified.entries, verified.bytes) != (count, bytes) {
                let (entries, found) = (verified.entries, verified.bytes);
                seen.found(
                    place,
                    format!(
                        "its record counts {count} entries of {bytes} bytes; its tree has {entries} of {found} bytes"
                    ),
                );
            }
        }
        self.verify_reachability(&mut seen);
        let pages = seen.pages.len() as u64;
        Ok(Report {
            position: root.lsn,
            findings: seen.findings,
            objects: seen.objects,
            entries: seen.entries,
            pages,
        })
    }

    /// Every page of the table is reached, or waits for the snapshots that reach it; and the other way round.
    fn verify_reachability(&self, seen: &mut Seen) {
        let current: BTreeSet<PageId> = self.store.table.lock().current().map(|(id, _)| id).collect();
        let lost: Vec<_> = current.difference(&seen.pages).copied().collect();
        let unknown: Vec<_> = seen.pages.difference(&current).copied().collect();
        let lost = if seen.has_unread { Vec::new() } else { lost };
        for id in lost {
            seen.found(id.to_string(), "it is in the page table, and nothing refers to it");
        }
        for id in unknown {
            seen.found(id.to_string(), "it is referred to, and not in the page table");
        }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let (log_writes, log_syncs) = self.log.operations();
        let (cache_bytes, page_evictions) = self.store.cache.usage();
        let (mut page_bytes_live, mut page_bytes_stored) = (0, 0);
        for segment in self.store.table.lock().segments.values() {
            page_bytes_live += segment.live_bytes;
            page_bytes_stored += segment.bytes;
        }
        let registry = self.snapshots.lock();
        let held = registry.all().map(|snapshot| snapshot.state().0).chain([self.state.load_full()]);
        let memtables: BTreeMap<_, _> = held
            .flat_map(|state| {
                state
                    .memtables()
                    .map(|memtable| (std::ptr::from_ref(memtable), memtable.bytes() as u64))
                    .collect::<Vec<_>>()
            })
            .collect();
        Metrics {
            commits: self.counters.commits.get(),
            log_writes,
            log_syncs,
            checkpoints: self.counters.checkpoints.get(),
            page_bytes_written: self.counters.page_bytes_written.get(),
            page_bytes_live,
            page_bytes_stored,
            page_loads: self.store.loads(),
            page_evictions,
            cache_bytes: cache_bytes as u64,
            memtable_bytes: memtables.into_values().sum(),
            snapshots: registry.len() as u64,
        }
    }
}
