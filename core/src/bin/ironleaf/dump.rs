//! `ironleaf dump`.

use crate::arguments::Directory;
use crate::output::{Output, bytes};
use crate::{Failure, Verdict, look};
use ironleaf::blocking::Database;
use ironleaf::{Error, ErrorKind, Kind};
use serde_json::json;

/// Prints entries.
pub fn dump(directory: &Directory, key: Option<&str>, output: &mut Output) -> Result<Verdict, Failure> {
    let database = look(directory)?;
    let mut is_whole = database.left_out().is_empty();
    for error in database.left_out() {
        output.left_out(error)?;
    }
    if let Some(key) = key {
        let kind = match database.kind(key) {
            Ok(Some(kind)) => kind,
            Ok(None) => {
                let (directory, key) = (directory.path.display(), key.escape_debug());
                return Err(Failure::Misuse(format!("{directory} holds no object \"{key}\"")));
            }
            Err(error) => {
                left_out(error, output)?;
                return Ok(Verdict::Damaged);
            }
        };
        is_whole &= object(&database, key.as_bytes(), kind, output)?;
    } else {
        let mut keys = database.keys("");
        while let Some(next) = keys.next() {
            match next {
                Ok((key, kind)) => is_whole &= object(&database, &key, kind, output)?,
                Err(error) => {
                    left_out(error, output)?;
                    is_whole = false;
                    keys.skip_damage()?;
                }
            }
        }
    }
    Ok(if is_whole { Verdict::Clean } else { Verdict::Damaged })
}

/// Prints one object. Whether all of it could be read.
fn object(database: &Database, key: &[u8], kind: Kind, output: &mut Output) -> Result<bool, Failure> {
    let mut is_whole = true;
    let mut scan = database.scan(key, ..);
    while let Some(next) = scan.next() {
        let (name, value) = match next {
            Ok(entry) => entry,
            Err(error) => {
                left_out(error, output)?;
                is_whole = false;
                scan.skip_damage()?;
                continue;
            }
        };
        output.print(
            || {
                let (key, name, value) = (key.escape_ascii(), name.escape_ascii(), value.escape_ascii());
                match kind {
                    Kind::Hash => format!("\"{key}\" \"{name}\" = \"{value}\""),
                    Kind::Set => format!("\"{key}\" \"{name}\""),
                }
            },
            || match kind {
                Kind::Hash => json!({ "key": bytes(key), "field": bytes(&name), "value": bytes(&value) }),
                Kind::Set => json!({ "key": bytes(key), "member": bytes(&name) }),
            },
        )?;
    }
    Ok(is_whole)
}

/// Goes on without what the error is about, if it is about damage.
fn left_out(error: Error, output: &mut Output) -> Result<(), Failure> {
    if error.kind() != ErrorKind::Corruption {
        return Err(error.into());
    }
    Ok(output.left_out(&error)?)
}
