//! A table of options that says something else than the code sends its reader to an `InvalidInput`.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]

use ironleaf::Options;

const REFERENCE: &str = include_str!("../../docs/reference.md");

/// The cells of the table row that begins with `name`.
fn row(name: &str) -> Vec<&'static str> {
    let begin = format!("| `{name}` |");
    let row = REFERENCE.lines().find(|line| line.starts_with(&begin));
    row.unwrap_or_else(|| panic!("no row of {name}")).split('|').map(str::trim).collect()
}

fn bytes(cell: &str) -> usize {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, "B"));
    let shift = ["B", "KiB", "MiB", "GiB", "TiB"].iter().position(|name| *name == unit).unwrap() * 10;
    number.parse::<usize>().unwrap() << shift
}

#[test]
fn the_table_of_options_gives_the_defaults_and_limits_of_the_code() {
    type Field = fn(&mut Options) -> &mut usize;
    let fields: [(&str, usize, Field); 6] = [
        ("memory_bytes", 1, |options| &mut options.memory_bytes),
        ("log_segment_bytes", 512, |options| &mut options.log_segment_bytes),
        ("page_bytes", 1, |options| &mut options.page_bytes),
        ("page_segment_bytes", 1, |options| &mut options.page_segment_bytes),
        ("page_files_max", 1, |options| &mut options.page_files_max),
        ("value_bytes_max", 1, |options| &mut options.value_bytes_max),
    ];
    for (name, step, field) in fields {
        let row = row(name);
        let (default, min, max) = (bytes(row[3]), bytes(row[4]), bytes(row[5]));
        assert_eq!(*field(&mut Options::default()), default, "{name}");
        let is_valid = |value| {
            let mut options = Options::default();
            *field(&mut options) = value;
            options.validate().is_ok()
        };
        assert!(is_valid(min) && is_valid(max), "{name}: {min} to {max}");
        assert!(!is_valid(max + step), "{name}: above {max}");
        assert!(min == 0 || !is_valid(min - step), "{name}: below {min}");
    }
}
