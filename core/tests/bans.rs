//! A misspelt path in `clippy.toml`, or one that moved in a new version of its crate, is a ban that never fires.
//! `ci/bans` breaks every ban once; here clippy runs over it and must report each of them. What clippy cannot
//! express, which file may name which crate, is read off the sources.
#![expect(clippy::disallowed_methods, reason = "reads the sources of the engine, not what the engine stores")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("core stands in the workspace").to_path_buf()
}

/// Clippy's messages over the crate of violations, one JSON document a line.
fn violations_found() -> String {
    let target =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the directory for temporaries has a parent");
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args([
            "clippy",
            "--quiet",
            "--message-format",
            "json",
            "-p",
            "ironleaf-bans",
            "--features",
            "violations",
        ])
        .arg("--target-dir")
        .arg(target)
        .output()
        .expect("cargo runs");
    assert!(!output.status.success(), "clippy accepts the crate that breaks every ban");
    String::from_utf8(output.stdout).expect("clippy writes UTF-8")
}

#[test]
fn every_ban_is_live() {
    let found = violations_found();
    let config = std::fs::read_to_string(root().join("clippy.toml")).expect("clippy.toml is there");
    let bans: Vec<&str> = config
        .lines()
        .filter_map(|line| line.trim().strip_prefix("{ path = \""))
        .map(|line| line.split('"').next().expect("a split has a first part"))
        .collect();
    assert!(bans.len() > 30, "clippy.toml has one ban a line: {bans:?}");
    let dead: Vec<_> = bans
        .iter()
        .filter(|path| {
            !found.contains(&format!("use of a disallowed type `{path}`"))
                && !found.contains(&format!("use of a disallowed method `{path}`"))
                && !found.contains(&format!("use of a disallowed macro `{path}`"))
        })
        .collect();
    assert!(dead.is_empty(), "these bans of clippy.toml did not fire on ci/bans: {dead:#?}\n{found}");
}

#[test]
fn the_workspaces_lints_are_live() {
    let found = violations_found();
    let lints = [
        "unsafe_code",
        "clippy::allow_attributes",
        "clippy::allow_attributes_without_reason",
        "clippy::dbg_macro",
        "clippy::iter_over_hash_type",
        "clippy::print_stderr",
        "clippy::print_stdout",
        "clippy::todo",
        "clippy::undocumented_unsafe_blocks",
        "clippy::unwrap_used",
    ];
    let dead: Vec<_> = lints.iter().filter(|lint| !found.contains(&format!("\"code\":\"{lint}\""))).collect();
    assert!(dead.is_empty(), "these lints did not fire on ci/bans: {dead:?}\n{found}");
}

/// What only some files may name: a path in the source, and where it may stand, as prefixes below `core/src`.
const RESERVED: &[(&str, &[&str])] = &[
    ("rustix::", &["env/os/"]),
    ("tokio::runtime", &["env/os/", "blocking/"]),
    ("tokio::task", &["env/os/"]),
    ("tokio::time", &["env/os/"]),
    ("tokio::fs", &[]),
    ("tokio::net", &["env/os/"]),
    ("std::fs", &["env/os/"]),
    ("std::net", &["env/os/"]),
    ("std::thread", &["env/os/", "sync.rs", "sync/"]),
    ("std::process", &[]),
    ("std::env", &[]),
    ("std::sync", &["sync.rs", "models/", "sync/", "lab.rs", "env/os/"]),
    ("arc_swap", &["sync/"]),
    ("tokio::sync::Notify", &["sync/"]),
    ("loom::", &["sync/"]),
];

#[test]
fn the_machine_is_named_only_behind_the_seam() {
    let sources = root().join("core/src");
    let mut files = Vec::new();
    source_files(&sources, &mut files);
    let mut seen = BTreeSet::new();
    let mut trespasses = Vec::new();
    for file in &files {
        let name =
            file.strip_prefix(&sources).expect("it was found there").to_str().expect("names are UTF-8");
        let text = std::fs::read_to_string(file).expect("sources can be read");
        let production = text.split("#[cfg(test)]\nmod tests {").next().expect("a split has a first part");
        for (number, line) in production.lines().enumerate() {
            for (path, places) in RESERVED {
                if !line.contains(path) || line.trim_start().starts_with("//") {
                    continue;
                }
                seen.insert(*path);
                // The command is a program of its own.
                let is_engine = !name.starts_with("bin/");
                let allowed =
                    !is_engine || places.iter().any(|place| name.starts_with(place)) || is_test_file(name);
                if !allowed {
                    trespasses.push(format!("core/src/{name}:{} names {path}", number + 1));
                }
            }
        }
    }
    assert!(trespasses.is_empty(), "use Env or crate::sync instead:\n{}", trespasses.join("\n"));
    for path in ["rustix::", "std::sync", "arc_swap", "tokio::sync::Notify", "loom::"] {
        assert!(seen.contains(path), "{path} was not read in the sources: {files:?}");
    }
}

/// A group of imports, or a name through its module, would get past [`RESERVED`].
#[test]
fn notifications_come_only_through_the_door() {
    let sources = root().join("core/src");
    let mut files = Vec::new();
    source_files(&sources, &mut files);
    let mut users = 0;
    for file in &files {
        let text = std::fs::read_to_string(file).expect("sources can be read");
        let names =
            |import: &str| text.lines().any(|line| line.starts_with(import) && line.contains("Notify"));
        let is_door = file.starts_with(sources.join("sync"));
        assert!(is_door || !names("use tokio::"), "{}: import Notify from crate::sync", file.display());
        assert!(
            is_door || !text.contains("sync::Notify::"),
            "{}: import Notify from crate::sync",
            file.display()
        );
        users += usize::from(names("use crate::sync::"));
    }
    assert!(users >= 3, "the log, the page store and the pace wait for notifications");
}

fn is_test_file(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

fn source_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("the sources are there") {
        let path = entry.expect("the directory can be read").path();
        if path.is_dir() {
            source_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
