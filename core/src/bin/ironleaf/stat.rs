//! `ironleaf stat`.

use crate::arguments::Directory;
use crate::files::files;
use crate::output::Output;
use crate::{Failure, Verdict, look};
use ironleaf::{Error, Kind};
use serde_json::json;

/// What the objects come to.
#[derive(Default)]
struct Contents {
    hashes: u64,
    sets: u64,
    entries: u64,
    unreadable: Vec<Error>,
}

/// Counts what there is.
pub fn stat(directory: &Directory, output: &mut Output) -> Result<Verdict, Failure> {
    let database = look(directory)?;
    let mut contents = Contents::default();
    let mut keys = database.keys("");
    while let Some(next) = keys.next() {
        let counted = match next {
            Ok((key, kind)) => {
                *(if kind == Kind::Hash { &mut contents.hashes } else { &mut contents.sets }) += 1;
                database.len(&key).map(|entries| contents.entries += entries)
            }
            Err(error) => {
                keys.skip_damage()?;
                Err(error)
            }
        };
        match counted {
            Err(error) if error.is_damage() => contents.unreadable.push(error),
            counted => counted?,
        }
    }
    let metrics = database.metrics();
    let [logs, pages, reserve, all] =
        ["log-", "pages-", "RESERVE", ""].map(|prefix| files(&directory.path, prefix));
    let left_out: Vec<String> =
        database.left_out().iter().chain(&contents.unreadable).map(ToString::to_string).collect();
    let Contents { hashes, sets, entries, .. } = contents;
    output.print(
        || {
            let lines = [
                format!("directory    {}", directory.path.display()),
                format!("position     {}", database.visible_point()),
                format!("objects      {} ({hashes} hashes, {sets} sets)", hashes + sets),
                format!("entries      {entries}"),
                format!("log          {} bytes in {} files", logs.bytes, logs.count),
                format!("to replay    {} bytes in memory", metrics.memtable_bytes),
                format!(
                    "pages        {} bytes in {} files, {} of them in use",
                    pages.bytes, pages.count, metrics.page_bytes_live
                ),
                format!("reserve      {} bytes for when the disk is full", reserve.bytes),
                format!("all files    {} bytes in {} files", all.bytes, all.count),
            ];
            lines
                .into_iter()
                .chain(left_out.iter().map(|what| format!("left out     {what}")))
                .collect::<Vec<_>>()
                .join("\n")
        },
        || {
            json!({
                "directory": directory.path.display().to_string(),
                "position": database.visible_point().0,
                "hashes": hashes,
                "sets": sets,
                "entries": entries,
                "log_files": logs.count,
                "log_bytes": logs.bytes,
                "replayed_bytes": metrics.memtable_bytes,
                "page_files": pages.count,
                "page_bytes": pages.bytes,
                "page_bytes_live": metrics.page_bytes_live,
                "reserve_bytes": reserve.bytes,
                "files": all.count,
                "bytes": all.bytes,
                "left_out": left_out,
            })
        },
    )?;
    Ok(if left_out.is_empty() { Verdict::Clean } else { Verdict::Damaged })
}
