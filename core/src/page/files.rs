//! The segment files that are open for reading: those that were used last.

use super::table::page_segment_name;
use crate::env::{DiskResult, Env, File, OpenMode};
use crate::sync::{Arc, Mutex};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Opens segments as pages in them are wanted, and closes the one that was used least recently when there are too
/// many. Who is reading from a file that is closed keeps it open until then.
pub(crate) struct SegmentFiles {
    env: Env,
    directory: PathBuf,
    open_max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// By segment: the file, and when it was last used, counted in uses.
    files: BTreeMap<u64, (Arc<dyn File>, u64)>,
    uses: u64,
}

impl SegmentFiles {
    pub(crate) fn new(env: Env, directory: &Path, open_max: usize) -> Self {
        Self { env, directory: directory.to_path_buf(), open_max, open: Mutex::default() }
    }

    /// The file of `segment`.
    pub(crate) async fn get(&self, segment: u64) -> DiskResult<Arc<dyn File>> {
        if let Some(file) = self.open.lock().use_again(segment) {
            return Ok(file);
        }
        let path = self.directory.join(page_segment_name(segment));
        let file = self.env.disk.open(&path, OpenMode::Read).await?;
        self.insert(segment, file.clone());
        Ok(file)
    }

    /// Adds a file that was opened elsewhere.
    pub(crate) fn insert(&self, segment: u64, file: Arc<dyn File>) {
        let mut open = self.open.lock();
        if open.files.len() >= self.open_max
            && let Some(oldest) = open.least_recent()
        {
            reached!("page segment closed");
            open.files.remove(&oldest);
        }
        open.uses += 1;
        let now = open.uses;
        open.files.insert(segment, (file, now));
    }

    /// Closes a segment whose file goes.
    pub(crate) fn remove(&self, segment: u64) {
        self.open.lock().files.remove(&segment);
    }
}

impl Open {
    fn use_again(&mut self, segment: u64) -> Option<Arc<dyn File>> {
        self.uses += 1;
        let (file, used) = self.files.get_mut(&segment)?;
        *used = self.uses;
        Some(file.clone())
    }

    fn least_recent(&self) -> Option<u64> {
        self.files.iter().min_by_key(|(_, (_, used))| *used).map(|(segment, _)| *segment)
    }
}
