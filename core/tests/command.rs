//! The operator's command on directories as they are found: sound, left by a killed process, damaged, foreign, in use.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "damages files, and runs a command")]

use ironleaf::blocking::Database;
use ironleaf::{Durability, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(arguments: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ironleaf"));
    command.args(&arguments[..1]).arg(directory).args(&arguments[1..]);
    command
}

fn run(arguments: &[&str], directory: &Path) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command(arguments, directory).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn json(arguments: &[&str], directory: &Path) -> (i32, serde_json::Value) {
    let (code, out, errors) = run(&[arguments, &["--json"]].concat(), directory);
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {errors}")))
}

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    });
    entries.collect()
}

fn copy(files: &BTreeMap<String, Vec<u8>>, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for (name, bytes) in files {
        std::fs::write(to.join(name), bytes).unwrap();
    }
}

/// A hash with a tree, a small set, an object with a name that is no text; some of it only in the log.
fn make(path: &Path) -> Database {
    let options = Options { page_bytes: 1024, durability: Durability::Written, ..Options::default() };
    let db = Database::open(path, options).unwrap();
    db.set_many("big", (0..500).map(|n| (format!("f{n:04}"), format!("v{n}")))).unwrap();
    db.checkpoint().unwrap();
    db.put_many("set", ["a", "b"]).unwrap();
    db.set(b"\xff\x00", b"f", b"line\n").unwrap();
    db
}

#[test]
fn sound_directories_are_shown_whole_and_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let db = make(&dir.path().join("db"));
    let killed = dir.path().join("killed");
    copy(&files(&dir.path().join("db")), &killed);
    db.close().unwrap();
    for path in [killed, dir.path().join("db")] {
        let before = files(&path);
        let (code, check) = json(&["check"], &path);
        assert_eq!((code, &check["sound"], &check["position"]), (0, &true.into(), &3.into()), "{check}");
        let (code, out, _) = run(&["check"], &path);
        assert!(code == 0 && out.contains("0 problems") && out.lines().count() == 1, "{out}");
        let (code, stat) = json(&["stat"], &path);
        let counts = ["hashes", "sets", "entries"].map(|name| stat[name].as_u64().unwrap());
        assert_eq!((code, counts), (0, [2, 1, 503]));
        let (code, out, errors) = run(&["dump"], &path);
        assert_eq!((code, out.lines().count(), &errors[..]), (0, 503, ""));
        assert!(out.contains("\"big\" \"f0007\" = \"v7\"\n") && out.contains("\"set\" \"b\"\n"), "{out}");
        assert!(out.contains("\"\\xff\\x00\" \"f\" = \"line\\n\"\n"), "{out}");
        let (code, out, _) = run(&["dump", "set", "--json"], &path);
        assert_eq!(
            (code, &out[..]),
            (0, "{\"key\":\"set\",\"member\":\"a\"}\n{\"key\":\"set\",\"member\":\"b\"}\n")
        );
        let (code, out, _) = run(&["dump", "ff00", "--hex"], &path);
        assert_eq!((code, &out[..]), (0, "\"\\xff\\x00\" \"f\" = \"line\\n\"\n"));
        for wrong in ["ff0", "zz"] {
            let (code, _, errors) = run(&["dump", wrong, "--hex"], &path);
            assert!(code == 2 && errors.contains("pairs of hexadecimal digits"), "{errors}");
        }
        let sizes: u64 = before.values().map(|bytes| bytes.len() as u64).sum();
        assert_eq!((&stat["bytes"], &stat["files"]), (&sizes.into(), &before.len().into()));
        assert_eq!(stat["reserve_bytes"], before["RESERVE"].len());
        let (_, out, _) = run(&["dump", "--json"], &path);
        assert!(out.contains("{\"field\":\"f\",\"key\":{\"hex\":\"ff00\"},\"value\":\"line\\n\"}"), "{out}");
        assert_eq!(files(&path), before, "looking changed something");
    }
}

#[test]
fn of_a_damaged_directory_the_rest_is_shown_and_what_is_left_out_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let db = make(&dir.path().join("db"));
    for n in 0..50 {
        db.set("log", format!("f{n:02}"), [b'x'; 100]).unwrap();
    }
    // The second record knows that the first is durable, and all before it.
    for n in 0..2 {
        db.with_durability(Durability::Synced).set("log", format!("last {n}"), "v").unwrap();
    }
    let sound = files(&dir.path().join("db"));
    drop(db);
    let pages = sound.keys().find(|name| name.starts_with("pages-")).unwrap();
    let log = sound.iter().filter(|(name, _)| name.starts_with("log-"));
    let (log, _) = log.max_by_key(|(_, bytes)| bytes.iter().filter(|byte| **byte == b'x').count()).unwrap();
    let values: Vec<usize> = (0..sound[log].len()).filter(|at| sound[log][*at] == b'x').collect();
    let middle = values[values.len() / 2];
    for (name, at, place) in [(pages, 3000, "pages-"), (log, middle, "log-"), (pages, 300, "pages-")] {
        let path = dir.path().join(format!("damaged-{name}-{at}"));
        let mut damaged = sound.clone();
        damaged.get_mut(name).unwrap()[at] ^= 1;
        copy(&damaged, &path);
        let (code, out, _) = run(&["check"], &path);
        assert!(code == 1 && out.contains(place) && !out.contains("nothing refers to it"), "{out}");
        let (code, check) = json(&["check"], &path);
        assert_eq!((code, &check["sound"]), (1, &false.into()));
        let (code, stat) = json(&["stat"], &path);
        assert!(code <= 1 && stat["entries"].as_u64().unwrap() > 100, "{stat}");
        let (code, out, errors) = run(&["dump"], &path);
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("left out") && errors.contains(place), "{errors}");
        let lines = out.lines().count();
        assert!((300..555).contains(&lines), "{lines} of 555 entries");
        let (_, out, errors) = run(&["dump", "--json"], &path);
        assert!(out.contains("{\"left_out\":") && errors.is_empty(), "{errors}");
        assert_eq!(files(&path), damaged, "looking changed something");
        if name == log {
            // To write means to know where the log ends.
            let (code, _, errors) = run(&["compact"], &path);
            assert!(code == 1 && errors.lines().count() == 1, "{errors}");
            assert_eq!(files(&path), damaged, "a refusal changed something");
        }
    }
    let path = dir.path().join("no manifest");
    let mut damaged = sound.clone();
    damaged.get_mut("MANIFEST").unwrap()[40] ^= 1;
    copy(&damaged, &path);
    let (code, out, errors) = run(&["check"], &path);
    assert!(code == 1 && out.is_empty() && errors.contains("MANIFEST"), "{errors}");
}

/// What later writes have put into the log is shown beside damage to the pages below, and so are their other entries.
#[test]
fn damage_below_what_the_log_holds_takes_neither() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { page_bytes: 1024, ..Options::default() };
    let db = Database::open(dir.path().join("db"), options).unwrap();
    db.set_many("big", (0..1000).map(|n| (format!("f{n:04}"), format!("v{n}")))).unwrap();
    for n in 0..200 {
        db.set(format!("small{n:03}"), "f", "v").unwrap();
    }
    db.checkpoint().unwrap();
    for n in 0..1000 {
        db.with_durability(Durability::Buffered).set("big", format!("f{n:04}"), "new").unwrap();
    }
    db.remove("big", "f0500").unwrap();
    for n in 0..200 {
        db.set(format!("small{n:03}"), "g", "w").unwrap();
    }
    let sound = files(&dir.path().join("db"));
    drop(db);
    let pages = sound.keys().find(|name| name.starts_with("pages-")).unwrap();
    let mut has_damage = 0;
    for at in (0..sound[pages].len()).step_by(512) {
        let path = dir.path().join(at.to_string());
        let mut damaged = sound.clone();
        damaged.get_mut(pages).unwrap()[at] ^= 1;
        copy(&damaged, &path);
        let (code, out, errors) = run(&["dump"], &path);
        let count = |text: &str| out.lines().filter(|line| line.contains(text)).count();
        assert_eq!(count("\"big\""), 999, "damage at {at}: the log has all of them: {errors}");
        assert_eq!(count("\"g\" = \"w\""), 200, "damage at {at}: {errors}");
        let (of_one, out, errors) = run(&["dump", "big"], &path);
        assert_eq!(out.lines().count(), 999, "damage at {at}: {errors}");
        assert!(of_one <= code, "damage at {at}: {errors}");
        has_damage += code;
        std::fs::remove_dir_all(&path).unwrap();
    }
    assert!(has_damage > 5, "most of the bytes are unused");
}

/// A directory in the place of a file cannot be read, like a file on a bad sector. Nor can a pipe, which would wait.
#[test]
fn a_file_that_cannot_be_read_takes_nothing_but_itself() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { page_segment_bytes: 64 << 10, page_bytes: 1024, ..Options::default() };
    let db = Database::open(dir.path().join("db"), options).unwrap();
    for n in 0..20 {
        let entries = (0..200).map(|field| (format!("f{field:03}"), [b'v'; 100]));
        db.set_many(format!("k{n:02}"), entries).unwrap();
    }
    db.checkpoint().unwrap();
    db.set("log", "f", "v").unwrap();
    let sound = files(&dir.path().join("db"));
    drop(db);
    let mut without_most = 0;
    for name in sound.keys().filter(|name| name.starts_with("pages-") || name.starts_with("log-")) {
        let path = dir.path().join(format!("without {name}"));
        copy(&sound, &path);
        std::fs::remove_file(path.join(name)).unwrap();
        if name.ends_with(['0', '2', '4', '6', '8']) {
            std::fs::create_dir(path.join(name)).unwrap();
        } else {
            assert!(Command::new("mkfifo").arg(path.join(name)).status().unwrap().success());
        }
        let (check, stated, errors) = run(&["check"], &path);
        assert!(check == 1 && stated.contains(name.as_str()), "{name}: {check}: {stated}{errors}");
        let (stat, _) = json(&["stat"], &path);
        assert!(stat <= 1, "{name}");
        let (dump, out, errors) = run(&["dump"], &path);
        assert!(dump <= 1, "{name}: {errors}");
        assert!(out.contains("\"log\"") || name.starts_with("log-"), "{name}: {errors}");
        without_most += usize::from(out.lines().count() < 2000);
        std::fs::remove_dir_all(&path).unwrap();
    }
    assert!(without_most <= 1, "only the catalog leads to everything");
}

#[test]
fn what_is_wrong_with_the_call_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = make(&path);
    for verb in ["check", "stat", "dump", "compact"] {
        let (code, _, errors) = run(&[verb], &path);
        assert!(code == 2 && errors.contains("close it there"), "{verb}: {errors}");
    }
    db.close().unwrap();
    let foreign = dir.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter"), "dear").unwrap();
    for (arguments, path, expected) in [
        (&["check"][..], &dir.path().join("none"), "no database"),
        (&["check"], &foreign, "letter"),
        (&["compact"], &dir.path().join("none"), "no database"),
        (&["dump", "nothing"], &path, "no object \"nothing\""),
        (&["stat", "--memory", "0"], &path, "memory_bytes"),
    ] {
        let (code, out, errors) = run(arguments, path);
        assert_eq!((code, &out[..], errors.lines().count()), (2, "", 1), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
        let (code, told) = json(arguments, path);
        assert!(code == 2 && told["error"].as_str().unwrap().contains(expected), "{told}");
        assert!(!told["kind"].as_str().unwrap().is_empty());
    }
    assert!(!dir.path().join("none").exists());
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = command(&["dump"], &path).stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let mut child = command(&["dump"], &path).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_page_file_that_is_missing_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    make(&path).close().unwrap();
    let pages = files(&path).into_keys().find(|name| name.starts_with("pages-")).unwrap();
    std::fs::remove_file(path.join(&pages)).unwrap();
    for verb in ["check", "stat", "dump"] {
        let (code, out, errors) = run(&[verb], &path);
        let told = out + &errors;
        assert!(code == 1 && told.contains(&format!("{pages} is incomplete")), "{verb}: {told}");
    }
}

#[test]
fn compacting_gives_space_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = make(&path);
    for n in 0..20u8 {
        db.set_many("churn", (0..200).map(|field| (format!("{field}"), vec![n; 2000]))).unwrap();
        db.checkpoint().unwrap();
    }
    db.delete("churn").unwrap();
    db.close().unwrap();
    let (code, compacted) = json(&["compact"], &path);
    let [before, after] =
        ["page_bytes_before", "page_bytes_after"].map(|name| compacted[name].as_u64().unwrap());
    assert!(code == 0 && after < before, "{compacted}");
    assert_eq!(json(&["check"], &path).0, 0);
    assert_eq!(json(&["stat"], &path).1["entries"], 503);
}
