//! Tables that say something else than the code send their readers astray: to an `InvalidInput`, to a metric that is not
//! there, or past an error that nobody explained.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]

use ironleaf::{Metrics, Options};
use std::collections::BTreeSet;

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

/// The first cells of the rows of the table under `heading`, without their backquotes.
fn rows_under(heading: &str) -> Vec<&'static str> {
    let section = REFERENCE.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let section = section.split("\n#").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(name, _)| name).collect()
}

fn assert_same(table: &[&str], code: &BTreeSet<String>) {
    let names: BTreeSet<String> = table.iter().map(ToString::to_string).collect();
    assert_eq!(names, *code);
    assert_eq!(names.len(), table.len(), "a row stands there twice: {table:?}");
}

#[test]
fn the_table_of_metrics_has_a_row_for_each_field() {
    let fields = format!("{:#?}", Metrics::default());
    let fields = fields.lines().filter_map(|line| Some(line.trim().split_once(':')?.0.to_owned()));
    assert_same(&rows_under("Metrics"), &fields.collect());
}

#[test]
fn the_table_of_errors_has_a_row_for_each_kind() {
    let source = include_str!("../src/error.rs");
    let (_, kinds) = source.split_once("pub enum ErrorKind {").unwrap();
    let (kinds, _) = kinds.split_once("\n}").unwrap();
    let kinds = kinds.lines().filter_map(|line| line.trim().strip_suffix(','));
    let kinds = kinds.filter(|line| !line.starts_with('/')).map(str::to_owned);
    assert_same(&rows_under("Errors"), &kinds.collect());
}

#[test]
fn the_table_of_options_has_a_row_for_each_field() {
    let fields = format!("{:#?}", Options::default());
    let fields = fields.lines().filter_map(|line| Some(line.trim().split_once(':')?.0.to_owned()));
    assert_same(&rows_under("Options"), &fields.collect());
}
