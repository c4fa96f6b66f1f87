use super::*;
use crate::Random;
use crate::generator::{Bounds, generate};

fn parse(text: &str) -> Operation {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_form_reads_back_as_it_was_written() {
    for line in [
        "set k1 f1 v17",
        "transaction []",
        "transaction [get k f; set k f v; scan-reverse k a..=b limit 3; len k; delete k] buffered",
        "scan-reverse k ..",
        "set k1 f1 v17 written",
        "insert k \"a b\" \"\\x00\\xff\\n\\\"\" buffered",
        "put s m",
        "add s m written",
        "remove k f",
        "take k f",
        "delete k",
        "set-many k f[0..300] v17*40 buffered",
        "set-many k f[0..300] aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "put-many s m[10..20]",
        "remove-many s m[10..20]",
        "batch [set a f v; put s m; remove a g; delete b] written",
        "batch []",
        "abandon set k f v",
        "hold set k f v",
        "hold at 2 batch [set k f v; delete j] written",
        "abandon batch [set k f v; delete j] written",
        "get k f",
        "contains k f",
        "len k",
        "kind k",
        "scan k ..",
        "scan k a..b limit 5",
        "scan k a..=b",
        "scan k ..\"limit\" limit 3",
        "scan k .. limit 3",
        "keys \"\"",
        "snapshot 1",
        "snapshot-scan 1 k a..",
        "snapshot-get 1 k f",
        "snapshot-keys 1 k",
        "drop-snapshot 1",
        "flush",
        "checkpoint",
        "check",
    ] {
        assert_eq!(parse(line).to_string(), line);
    }
}

#[test]
fn the_default_level_and_an_early_level_are_understood() {
    assert_eq!(parse("set k f v synced"), parse("set k f v"));
    assert_eq!(parse("batch written [set a f v]"), parse("set a f v written"));
}

#[test]
fn a_repeated_word_stands_for_its_bytes() {
    let Operation::Write(write) = parse("set k f ab*25") else { panic!("a write") };
    let Edit::Set { value, .. } = &write.edits[0] else { panic!("a set") };
    assert_eq!(value, b"ababababababababababababa");
    assert_eq!(Operation::Write(write).to_string(), "set k f ab*25");
}

#[test]
fn a_range_stands_for_numbered_names() {
    let Operation::Write(write) = parse("set-many k f[9..12] v*10") else { panic!("a write") };
    let mut seen = Vec::new();
    let done: Result<(), ()> = write.edits[0].try_for_each(|action| {
        seen.push(format!("{action:?}"));
        Ok(())
    });
    assert_eq!(done, Ok(()));
    assert_eq!(seen.len(), 3);
    assert!(matches!(&write.edits[0], Edit::SetMany { fields, value, .. }
        if fields.name(9) == b"f0009" && fields.name(12_345) == b"f12345" && value.value(11) == b"v.0011v.00"));
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    let lines: &[(&str, &str)] = &[
        ("", "character 1 of the operation: expected an operation, found the end of the line"),
        (
            "sett k f v",
            &format!("character 1 of the operation: `sett` is no operation; there are {OPERATIONS}"),
        ),
        ("set k f", "character 8 of the operation: expected a value, found the end of the line"),
        (
            "set k f v sinced",
            "character 11 of the operation: expected synced, written, buffered or the end of the line, found sinced",
        ),
        ("set k f \"v", "character 9 of the operation: this quoted word has no closing `\"`"),
        (
            "set k f \"\\q\"",
            "character 10 of the operation: unknown escape; there are \\n \\t \\\\ \\\" \\xNN",
        ),
        ("set k f \"\\x\u{e9}\"", "character 10 of the operation: after `\\x` come two hexadecimal digits"),
        ("set k f é", "character 9 of the operation: 'é' must stand in a quoted word"),
        (
            "set k f v*9999999",
            "character 11 of the operation: after `*` comes a length of at most 1048576 bytes",
        ),
        (
            "set-many k f[5..2] v",
            "character 17 of the operation: a range goes up and has at most 100000 names, found 5..2",
        ),
        (
            "set-many k f[0..100000] v*1048576",
            "character 1 of the operation: a write has at most 67108864 bytes in all, found 104857800000",
        ),
        ("batch [get k f]", &format!("character 8 of the operation: `get` is no edit; there are {EDITS}")),
        (
            "transaction [get k f; take k f]",
            "character 23 of the operation: `take` has no place in a transaction; get, contains, len, kind, scan, \
             scan-reverse, set, put, remove, delete, set-many, put-many and remove-many have",
        ),
        ("batch [set k f v set", "character 18 of the operation: expected `;` or `]`, found set"),
        (
            "scan k a",
            "character 9 of the operation: expected a range such as `..`, `a..`, `a..b` or `a..=b`, found the end of the line",
        ),
        ("snapshot 300", "character 10 of the operation: expected a slot from 0 to 255, found 300"),
        (
            "snapshot-flush 1",
            &format!(
                "character 1 of the operation: `snapshot-flush` is no operation; there are {OPERATIONS}"
            ),
        ),
        (
            "abandon get k f",
            &format!("character 9 of the operation: `get` is no write; there are batch, {EDITS}"),
        ),
        ("flush now", "character 7 of the operation: expected the end of the line, found now"),
    ];
    for (line, expected) in lines {
        let error = line.parse::<Operation>().expect_err(line).to_string();
        assert_eq!(error, *expected, "{line}");
    }
}

#[test]
fn no_line_makes_the_parser_panic() {
    let mut random = Random::new(3);
    let pieces =
        ["set", "batch", "[", "]", "..", "..=", "*", "\"", "\\", "x9", "é", " ", ";", "k", "scan", "limit"];
    for _ in 0..20_000 {
        let line: String = (0..random.below(12)).map(|_| random.choose(&pieces)).collect();
        if let Ok(operation) = line.parse::<Operation>() {
            assert_eq!(parse(&operation.to_string()), operation, "{line}");
        }
    }
}

#[test]
fn generated_operations_read_back_equal() {
    for seed in 0..200 {
        for operation in generate(seed, &Bounds::default()).into_iter().flatten() {
            assert_eq!(parse(&operation.to_string()), operation);
        }
    }
}
