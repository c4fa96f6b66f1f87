//! `ironleaf check`.

use crate::arguments::Directory;
use crate::output::Output;
use crate::{Failure, Verdict, look};
use serde_json::json;

/// Verifies a directory.
pub fn check(directory: &Directory, output: &mut Output) -> Result<Verdict, Failure> {
    let database = look(directory)?;
    let report = database.check()?;
    let left_out: Vec<String> = database.left_out().iter().map(ToString::to_string).collect();
    let problems = report.findings.len() + left_out.len();
    output.print(
        || {
            let findings = report.findings.iter().map(|found| format!("{}: {}", found.place, found.problem));
            let summary = format!(
                "{}: {problems} problems; {} objects with {} entries in {} pages up to position {}, and the log up \
                 to position {}",
                directory.path.display(),
                report.objects,
                report.entries,
                report.pages,
                report.position,
                database.visible_point()
            );
            let lines: Vec<String> = left_out.iter().cloned().chain(findings).chain([summary]).collect();
            lines.join("\n")
        },
        || {
            let findings = report.findings.iter();
            let findings = findings.map(|found| json!({ "place": found.place, "problem": found.problem }));
            json!({
                "directory": directory.path.display().to_string(),
                "sound": problems == 0,
                "position": database.visible_point().0,
                "page_position": report.position.0,
                "objects": report.objects,
                "entries": report.entries,
                "pages": report.pages,
                "findings": findings.collect::<Vec<_>>(),
                "left_out": left_out,
            })
        },
    )?;
    Ok(if problems == 0 { Verdict::Clean } else { Verdict::Damaged })
}
