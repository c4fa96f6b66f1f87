//! What a checkpoint must bring back while nobody else is at work: the memory of every edit, and the space that nothing
//! needs any more.

use super::life::{DIRECTORY, unexpected};
use super::report::Failure;
use crate::scenario::Scenario;
use ironleaf::Database;
use ironleaf::env::{DiskResult, Env, OpenMode};
use ironleaf_model::{Promise, Violation};
use std::path::Path;

/// Log files that an open database may keep: the one in use, a spare, and two to use again.
const LOG_FILES_MAX: usize = 4;

/// Longest name that an object can have.
const NAME_BYTES_LIMIT: usize = 64 << 10;

/// Makes a checkpoint, and judges what is left in memory and in the directory.
pub(super) async fn settle(scenario: &Scenario, database: &Database, env: &Env) -> Result<(), Failure> {
    let position = database.checkpoint().await.map_err(|error| unexpected("checkpoint", &error))?;
    let broken = |promise, what| Err(Violation::new(promise, what).into());
    if position != database.visible_point() {
        let what =
            format!("with nobody else at work a checkpoint ends at {position}, not at the last commit");
        return broken(Promise::Checkpoint, what);
    }
    let metrics = database.metrics();
    let (edits, live) = (metrics.memtable_bytes, metrics.page_bytes_live);
    if edits > 0 {
        let what = format!("{edits} bytes of edits are in memory behind a checkpoint of all of them");
        return broken(Promise::Memory, what);
    }
    let (logs, stored) = files(env).await.map_err(|error| unexpected("reading", &error.into()))?;
    let known = metrics.page_bytes_stored;
    if stored > known || logs > LOG_FILES_MAX {
        let what =
            format!("{logs} log files and {stored} bytes of page files are left, {known} of them known");
        return broken(Promise::Space, what);
    }
    // Besides the segment that is being filled, each is alive by half or goes.
    let options = &scenario.options;
    let longest_page = (options.page_bytes + options.value_bytes_max + NAME_BYTES_LIMIT) as u64;
    if stored > 2 * live + options.page_segment_bytes as u64 + longest_page {
        return broken(Promise::Space, format!("{live} bytes of pages take {stored} bytes of files"));
    }
    Ok(())
}

/// The number of log files, and the length of all page files.
async fn files(env: &Env) -> DiskResult<(usize, u64)> {
    let (mut logs, mut stored) = (0, 0);
    for name in env.disk.list(Path::new(DIRECTORY)).await? {
        if name.starts_with("log-") {
            logs += 1;
        } else if name.starts_with("pages-") {
            let file = env.disk.open(&Path::new(DIRECTORY).join(name), OpenMode::Read).await?;
            stored += file.len().await?;
        }
    }
    Ok((logs, stored))
}
