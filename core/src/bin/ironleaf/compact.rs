//! `ironleaf compact`.

use crate::arguments::Directory;
use crate::files::files;
use crate::output::Output;
use crate::{Failure, Verdict, options};
use ironleaf::blocking::Database;
use serde_json::json;

/// Opens the database for writing, which moves the log into pages, and copies sparse segments together.
pub fn compact(directory: &Directory, output: &mut Output) -> Result<Verdict, Failure> {
    // The log is preallocated: how long its files are says nothing.
    let before = files(&directory.path, "pages-").bytes;
    let database = Database::open(&directory.path, options(directory))?;
    database.checkpoint()?;
    database.close()?;
    let after = files(&directory.path, "pages-").bytes;
    output.print(
        || format!("{}: {before} bytes of pages before, {after} after", directory.path.display()),
        || {
            json!({
                "directory": directory.path.display().to_string(),
                "page_bytes_before": before,
                "page_bytes_after": after,
            })
        },
    )?;
    Ok(Verdict::Clean)
}
