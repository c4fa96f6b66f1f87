//! Files and tables.

use crate::Misuse;
use ironleaf_sim::scenario::Scenario;
use std::path::{Path, PathBuf};

/// Reads a scenario.
pub fn read_scenario(file: &Path) -> Result<Scenario, Misuse> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Misuse(format!("cannot read the scenario {}: {error}", file.display())))?;
    Ok(Scenario::from_toml(&file.display().to_string(), &text)?)
}

/// Writes a file, creating its directory if need be.
pub fn write_file(file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Misuse> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    let made = directory.map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(file, bytes))
        .map_err(|error| Misuse(format!("cannot write {}: {error}", file.display())))
}

/// Writes a scenario into a directory, with the command that replays it as its first line.
pub fn write_scenario(
    directory: &Path,
    name: &str,
    scenario: &Scenario,
    command: &str,
) -> Result<PathBuf, Misuse> {
    let file = directory.join(format!("{name}.toml"));
    let text = format!("# {command} {}\n{}", file.display(), scenario.to_toml());
    write_file(&file, text)?;
    Ok(file)
}

/// Checks that a directory can be written before a long run that will want to.
pub fn writable(directory: &Path) -> Result<(), Misuse> {
    let probe = directory.join(".writable");
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&probe, ""))
        .and_then(|()| std::fs::remove_file(&probe))
        .map_err(|error| Misuse(format!("cannot write to the directory {}: {error}", directory.display())))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_tables_aligned() {
        assert_eq!([grouped(7), grouped(1234), grouped(1_234_567)], ["7", "1 234", "1 234 567"]);
        let rows = [vec!["name".to_owned(), "n".to_owned()], vec!["a".to_owned(), "12".to_owned()]];
        assert_eq!(table(&rows), "name  n\na     12\n");
    }
}
