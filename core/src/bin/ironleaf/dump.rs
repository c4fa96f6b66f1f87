//! `ironleaf dump`.

use crate::arguments::Directory;
use crate::output::{Output, bytes};
use crate::{Failure, Verdict, look};
use ironleaf::blocking::Database;
use ironleaf::{Error, Kind};
use serde_json::json;

/// The bytes that hexadecimal digits stand for, two for each.
pub fn from_hex(digits: &[u8]) -> Result<Vec<u8>, Failure> {
    let wrong = || Failure::Misuse("KEY with --hex is pairs of hexadecimal digits, such as 00ff".to_owned());
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    };
    digits.chunks(2).map(pair).collect::<Option<_>>().ok_or_else(wrong)
}

/// Prints entries.
pub fn dump(directory: &Directory, key: Option<&[u8]>, output: &mut Output) -> Result<Verdict, Failure> {
    let database = look(directory)?;
    let mut is_whole = database.left_out().is_empty();
    for error in database.left_out() {
        output.left_out(error)?;
    }
    let mut is_found = false;
    // The key itself is the first of those that begin with it.
    let mut keys = database.keys(key.unwrap_or_default());
    while let Some(next) = keys.next() {
        match next {
            Ok((found, _)) if key.is_some_and(|key| key != found) => break,
            Ok((found, kind)) => {
                is_found = true;
                is_whole &= object(&database, &found, kind, output)?;
                if key.is_some() {
                    break;
                }
            }
            Err(error) => {
                left_out(error, output)?;
                is_whole = false;
                keys.skip_damage()?;
            }
        }
    }
    match key {
        Some(key) if is_whole && !is_found => {
            let (directory, key) = (directory.path.display(), key.escape_ascii());
            Err(Failure::Misuse(format!("{directory} holds no object \"{key}\"")))
        }
        _ if is_whole => Ok(Verdict::Clean),
        _ => Ok(Verdict::Damaged),
    }
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
    if !error.is_damage() {
        return Err(error.into());
    }
    Ok(output.left_out(&error)?)
}
