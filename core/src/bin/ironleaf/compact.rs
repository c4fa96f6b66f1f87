//! `ironleaf compact`.

use crate::arguments::Directory;
use crate::files::files;
use crate::output::Output;
use crate::{Failure, Verdict, options};
use ironleaf::Options;
use ironleaf::blocking::Database;
use serde_json::json;

/// Nothing is committed here: a small log, and the small reserve that goes with it, are enough.
const LOG_SEGMENT_BYTES: usize = 1 << 20;

/// Opens the database for writing, which moves the log into pages, and copies sparse segments together.
pub fn compact(directory: &Directory, output: &mut Output) -> Result<Verdict, Failure> {
    let sizes = || ["pages-", ""].map(|prefix| files(&directory.path, prefix).bytes);
    let [pages_before, before] = sizes();
    let options = Options { log_segment_bytes: LOG_SEGMENT_BYTES, ..options(directory) };
    let database = Database::open(&directory.path, options)?;
    database.checkpoint()?;
    database.close()?;
    let [pages_after, after] = sizes();
    output.print(
        || {
            format!(
                "{}: {before} bytes before, {pages_before} of them in pages; {after} after, {pages_after} in pages",
                directory.path.display()
            )
        },
        || {
            json!({
                "directory": directory.path.display().to_string(),
                "bytes_before": before,
                "bytes_after": after,
                "page_bytes_before": pages_before,
                "page_bytes_after": pages_after,
            })
        },
    )?;
    Ok(Verdict::Clean)
}
