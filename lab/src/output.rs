//! Files and tables.

use crate::Misuse;
use crate::run::WITHOUT_MADSIM;
use ironleaf_sim::runner::HAS_MADSIM;
use ironleaf_sim::scenario::{Expectation, Scenario};
use std::fmt::{Arguments, Display};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Prints a line. A reader that has gone away, such as `head`, ends neither the command nor what it still has to do.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::say(format_args!($($text)*)) };
}

/// Prints a line to standard error.
macro_rules! complain {
    ($($text:tt)*) => { $crate::output::complain(format_args!($($text)*)) };
}

static STDOUT_IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Has [`say!`] print to standard error, because standard output holds something else.
pub fn take_stdout() {
    STDOUT_IS_TAKEN.store(true, Relaxed);
}

/// See [`say!`].
pub fn say(line: Arguments<'_>) {
    if STDOUT_IS_TAKEN.load(Relaxed) {
        return complain(line);
    }
    note_stdout(writeln!(stdout(), "{line}"));
}

/// Why standard output could not be written, apart from a reader that has gone away.
static STDOUT_ERROR: OnceLock<String> = OnceLock::new();

fn note_stdout(outcome: std::io::Result<()>) {
    if let Err(error) = outcome.and_then(|()| stdout().flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = STDOUT_ERROR.set(error.to_string());
    }
}

/// An error if what was printed did not get where it was to go.
pub fn finish_stdout() -> Result<(), Misuse> {
    note_stdout(Ok(()));
    match STDOUT_ERROR.get() {
        None => Ok(()),
        Some(error) => Err(Misuse(format!("cannot write to standard output: {error}"))),
    }
}

/// See [`complain!`].
pub fn complain(line: Arguments<'_>) {
    let _ = writeln!(stderr(), "{line}");
}

/// Where a campaign's JSON goes.
pub enum JsonTarget {
    /// Standard output.
    Stdout,
    /// A file that can be written.
    File(PathBuf),
}

impl JsonTarget {
    /// Checks that `file` can be written, before a long run whose result it is to take. Creates no directory.
    pub fn check(file: &Path) -> Result<Self, Misuse> {
        if file == Path::new("-") {
            return Ok(Self::Stdout);
        }
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .map_err(|error| Misuse(format!("cannot write {}: {error}", file.display())))?;
        Ok(Self::File(file.to_owned()))
    }

    /// Writes the text.
    pub fn write(&self, text: &str) -> Result<(), Misuse> {
        match self {
            Self::Stdout => {
                note_stdout(stdout().write_all(text.as_bytes()));
                Ok(())
            }
            Self::File(file) => write_file(file, text),
        }
    }
}

/// The command that replays a scenario: one with a planted bug needs the museum's build.
pub fn replay_command(scenario: &Scenario) -> &'static str {
    match scenario.expect {
        Expectation::Failure { bug: Some(_), .. } => "cargo museum replay",
        _ => "cargo lab replay",
    }
}

/// The longest scenario that is read. Those that campaigns write are a thousandth of it.
const SCENARIO_BYTES_MAX: u64 = 64 << 20;

/// Reads a scenario.
pub fn read_scenario(file: &Path) -> Result<Scenario, Misuse> {
    let cannot_read =
        |error: &dyn Display| Misuse(format!("cannot read the scenario {}: {error}", file.display()));
    let mut text = String::new();
    let opened = File::open(file).map_err(|error| cannot_read(&error))?;
    // Whatever is read must have an end.
    opened.take(SCENARIO_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| cannot_read(&error))?;
    if text.len() as u64 > SCENARIO_BYTES_MAX {
        return Err(cannot_read(&format_args!("it is longer than {SCENARIO_BYTES_MAX} bytes")));
    }
    let scenario = Scenario::from_toml(&file.display().to_string(), &text)?;
    if scenario.madsim.is_some() && !HAS_MADSIM {
        return Err(Misuse(format!("{} runs under madsim: {WITHOUT_MADSIM}", file.display())));
    }
    Ok(scenario)
}

/// Writes a file, creating its directory if need be.
pub fn write_file(file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Misuse> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    let made = directory.map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(file, bytes))
        .map_err(|error| Misuse(format!("cannot write {}: {error}", file.display())))
}

/// Writes a scenario into a directory, with the command that replays it as its first line.
pub fn write_scenario(directory: &Path, name: &str, scenario: &Scenario) -> Result<PathBuf, Misuse> {
    let file = directory.join(format!("{name}.toml"));
    let text = format!("# {} {}\n{}", replay_command(scenario), file.display(), scenario.to_toml());
    write_file(&file, text)?;
    Ok(file)
}

/// Checks that a directory can be written before a long run that will want to.
pub fn writable(directory: &Path) -> Result<(), Misuse> {
    let probe = directory.join(".writable");
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&probe, ""))
        .and_then(|()| std::fs::remove_file(&probe))
        .map_err(|error| {
            Misuse(format!("cannot write to the directory {}: {error}; name another", directory.display()))
        })
}

/// A number with thousands set apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Prints a title and rows with aligned columns; numbers stand to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let is_number =
                cell.chars().all(|c| c.is_ascii_digit() || c == ' ' || c == '.') && !cell.is_empty();
            if is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Joins items with commas into lines of at most `width` characters; an item is never split.
pub fn wrapped(items: impl IntoIterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for item in items {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            *line = item;
        } else if line.chars().count() + item.chars().count() + 3 <= width {
            line.push_str(", ");
            line.push_str(&item);
        } else {
            line.push(',');
            lines.push(item);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_wrapped_between_items() {
        let items = || ["one 1", "two 2", "three 3"].map(str::to_owned);
        assert_eq!(wrapped(items(), 100), ["one 1, two 2, three 3"]);
        assert_eq!(wrapped(items(), 15), ["one 1, two 2,", "three 3"]);
        assert_eq!(wrapped(items(), 1), ["one 1,", "two 2,", "three 3"]);
        assert_eq!(wrapped([], 15), [""]);
    }

    #[test]
    fn numbers_are_grouped_and_tables_aligned() {
        assert_eq!([grouped(7), grouped(1234), grouped(1_234_567)], ["7", "1 234", "1 234 567"]);
        let rows = [vec!["name".to_owned(), "n".to_owned()], vec!["a".to_owned(), "12".to_owned()]];
        assert_eq!(table(&rows), "name  n\na     12\n");
    }
}
