//! Damage anywhere in any file: never a wrong answer, never a panic, and a refused open leaves every file as it was.
//!
//! A database is copied as a killed process leaves it, and as `close` leaves it; in each copy one file is damaged. What
//! opens holds a state that the database once had, or says of each part that it cannot read that it is damaged. Only the
//! end of a killed process's log may be shorter: nothing tells its last records from an unfinished tail. What `close`
//! left is whole, or known to be damaged.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "damages files, and compares them")]

use ironleaf::blocking::Database;
use ironleaf::{Durability, Error, ErrorKind, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;
use std::path::Path;

type State = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;
type Files = BTreeMap<String, Vec<u8>>;

const KEYS: u64 = 12;

fn small() -> Options {
    Options {
        memory_bytes: 1 << 20,
        log_segment_bytes: 64 << 10,
        page_bytes: 1024,
        page_segment_bytes: 256 << 10,
        ..Options::default()
    }
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound) as usize
    }
}

fn files(path: &Path) -> Files {
    let entries = std::fs::read_dir(path).expect("the directory can be read");
    entries
        .map(|entry| {
            let entry = entry.expect("the entry can be read");
            let name = entry.file_name().into_string().expect("names are UTF-8");
            (name, std::fs::read(entry.path()).expect("the file can be read"))
        })
        .collect()
}

fn write(path: &Path, files: &Files) {
    std::fs::create_dir_all(path).expect("the directory can be made");
    for (name, bytes) in files {
        std::fs::write(path.join(name), bytes).expect("the file can be written");
    }
}

/// Writes to a few objects of all sizes. Returns every state that there was, and the files that a death of the process
/// and a close leave.
fn make(path: &Path, numbers: &mut Numbers) -> (Vec<State>, [Files; 2]) {
    let db = Database::open(path, small()).expect("a new database");
    let written = db.with_durability(Durability::Written);
    let mut states = vec![State::new()];
    for n in 0..1200u32 {
        let (key, field) = (format!("k{}", numbers.below(KEYS)), format!("f{}", numbers.below(300)));
        let mut state = states.last().expect("never empty").clone();
        if numbers.below(5) == 0 {
            written.remove(&key, &field).expect("a removal");
            if let Some(object) = state.get_mut(&key) {
                object.remove(field.as_bytes());
            }
            state.retain(|_, object| !object.is_empty());
        } else {
            let value = vec![n as u8; numbers.below(200)];
            written.set(&key, &field, &value).expect("a write");
            state.entry(key).or_default().insert(field.into_bytes(), value);
        }
        states.push(state);
        if n % 350 == 349 {
            db.checkpoint().expect("a checkpoint");
        }
    }
    let killed = files(path);
    db.close().expect("an end in order");
    (states, [killed, files(path)])
}

fn damage(files: &mut Files, name: &str, numbers: &mut Numbers) {
    if numbers.below(7) == 0 {
        files.remove(name);
        return;
    }
    let bytes = files.get_mut(name).expect("it is one of them");
    let len = bytes.len() as u64;
    match numbers.below(6) {
        0..=2 if len > 0 => {
            let within = if numbers.below(2) == 0 { len.min(2048) } else { len };
            let at = numbers.below(within);
            bytes[at] ^= 1 << numbers.below(8);
        }
        3 => bytes.truncate(numbers.below(len + 1)),
        4 => bytes.extend(vec![numbers.below(256) as u8; numbers.below(5000)]),
        _ if len > 512 => {
            let at = numbers.below(len / 512) * 512;
            bytes[at..at + 512].fill(0);
        }
        _ => bytes.clear(),
    }
}

/// What can be read, and whether all of it could.
fn read_all(db: &Database, case: &str) -> (State, bool) {
    let (mut state, mut is_whole) = (State::new(), true);
    for key in (0..KEYS).map(|n| format!("k{n}")) {
        let entries: ironleaf::Result<BTreeMap<_, _>> = db.scan(&key, ..).collect();
        match entries {
            Ok(entries) if entries.is_empty() => {}
            Ok(entries) => drop(state.insert(key, entries)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{case}: {error}");
                assert!(error.to_string().contains("pages-"), "{case}: names no file: {error}");
                is_whole = false;
            }
        }
    }
    (state, is_whole)
}

/// Damage that is gone again after it was met: what `keys` gives then is what it would have given without.
#[test]
fn keys_are_given_once_and_in_order_whatever_error_comes_between() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let base = dir.path().join("base");
    let db = Database::open(&base, small()).expect("a new database");
    let key = |n: usize| format!("key {n:03}");
    for n in 0..60 {
        db.set_many(key(n), (0..40).map(|field| (format!("f{field}"), [7; 40])))
            .expect("an object with a tree");
    }
    db.checkpoint().expect("a checkpoint");
    db.close().expect("an end in order");
    let sound = files(&base);
    let pages = sound.keys().find(|name| name.starts_with("pages-")).expect("there are pages").clone();
    let wanted: Vec<_> = (0..60).filter(|n| n % 3 != 0).map(|n| key(n).into_bytes()).collect();
    let mut errors = 0;
    for trial in 0..40 {
        let path = dir.path().join(format!("{trial}"));
        write(&path, &sound);
        // No checkpoint must come between: it would read what is damaged.
        let options = Options { memory_bytes: 8 << 20, ..small() };
        let db = Database::open(&path, options).expect("a sound database");
        // Whether these hold anything still must be read from their trees.
        for n in (0..60).step_by(3) {
            for field in 0..40 {
                db.with_durability(Durability::Written)
                    .remove(key(n), format!("f{field}"))
                    .expect("a removal");
            }
        }
        let at = sound[&pages].len() * trial / 40;
        let file = std::fs::File::options().write(true).open(path.join(&pages)).expect("the file is there");
        let put = |byte: u8| file.write_all_at(&[byte], at as u64).expect("the file can be written");
        put(sound[&pages][at] ^ 1);
        let mut seen = Vec::new();
        let mut keys = db.keys("");
        for next in keys.by_ref() {
            match next {
                Ok((key, _)) => seen.push(key),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                    errors += 1;
                    put(sound[&pages][at]);
                }
            }
        }
        assert_eq!(seen, wanted, "damage at {at}");
        put(sound[&pages][at]);
        drop(keys);
        db.close().expect("an end in order");
    }
    assert!(errors > 5, "only {errors} errors were met");
}

/// Whether every file with data is as it was, and there is no other. The reserve holds nothing.
fn is_untouched(before: &Files, after: &Files) -> bool {
    let data = |files: &Files| {
        let data = files.iter().filter(|(name, _)| *name != "RESERVE");
        data.map(|(name, bytes)| (name.clone(), bytes.clone())).collect::<Files>()
    };
    data(before) == data(after)
}

#[test]
fn damage_is_never_served_and_a_refused_open_leaves_every_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let (states, left) = make(&dir.path().join("base"), &mut numbers);
    let last = states.last().expect("never empty");
    let mut seen = BTreeSet::new();
    for trial in 0..160 {
        let path = dir.path().join(format!("{trial}"));
        let is_closed = trial % 2 == 1;
        let mut files_now = left[usize::from(is_closed)].clone();
        let name = files_now.keys().nth(trial / 2 % files_now.len()).expect("there are files").clone();
        damage(&mut files_now, &name, &mut numbers);
        write(&path, &files_now);
        for is_read_only in [true, false] {
            let case = format!("trial {trial}, {name}, read only: {is_read_only}");
            let opened = if is_read_only {
                Database::open_read_only(&path, small())
            } else {
                Database::open(&path, small())
            };
            let db = match opened {
                Ok(db) => db,
                Err(error) => {
                    let kinds = [ErrorKind::Corruption, ErrorKind::NotADatabase];
                    assert!(kinds.contains(&error.kind()), "{case}: {error}");
                    assert!(
                        is_untouched(&files_now, &files(&path)),
                        "{case}: refused, and yet a file changed"
                    );
                    seen.insert("refused");
                    continue;
                }
            };
            let (state, is_whole) = read_all(&db, &case);
            let findings = db.check().expect("a check").findings;
            if !is_whole {
                assert!(!findings.is_empty(), "{case}: reads fail and the check finds nothing");
                seen.insert("readable in part");
            } else if state == *last {
                seen.insert("whole");
            } else {
                assert!(name.starts_with("log-") && states.contains(&state), "{case}: wrong data");
                assert!(
                    !is_closed,
                    "{case}: commits that close made durable are missing, and nobody says so"
                );
                seen.insert("a prefix");
            }
            let _ = db.close();
            if is_read_only {
                assert!(files(&path) == files_now, "{case}: looking changed something");
            }
        }
        std::fs::remove_dir_all(&path).expect("a copy goes");
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["a prefix", "readable in part", "refused", "whole"]);
}

/// A segment has its whole length before the manifest names it, or it has a record. Shorter ones were cut afterwards.
#[test]
fn a_shortened_log_segment_is_damage_and_not_an_early_end() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Database::open(dir.path().join("base"), small()).expect("a new database");
    for n in 0..20u32 {
        db.set("k", n.to_le_bytes(), [1; 100]).expect("a write");
    }
    let killed = files(&dir.path().join("base"));
    let holds = |name: &&String| name.starts_with("log-") && killed[*name][1024..1028] != [0; 4];
    let name = killed.keys().find(holds).expect("a log with records").clone();
    for len in (0..killed[&name].len()).step_by(512) {
        let path = dir.path().join(len.to_string());
        let mut cut = killed.clone();
        cut.get_mut(&name).expect("it is one of them").truncate(len);
        write(&path, &cut);
        let error = Database::open(&path, small()).expect_err("it is damaged");
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        let place = if len < 512 { "the log" } else { &name };
        assert!(error.to_string().contains(place), "{error}");
        assert!(is_untouched(&cut, &files(&path)), "a refused open changed a file");
    }
}

/// What was acknowledged in a segment is not lost with it in silence, not even in the newest one.
#[test]
fn a_lost_log_segment_is_damage_however_new_it_is() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let base = dir.path().join("base");
    let db = Database::open(&base, small()).expect("a new database");
    let in_use = || {
        let has_records = |bytes: &Vec<u8>| bytes.len() > 1028 && bytes[1024..1028] != [0; 4];
        let logs = files(&base).into_iter().filter(|(name, _)| name.starts_with("log-"));
        logs.filter(|(_, bytes)| has_records(bytes)).map(|(name, _)| name).collect::<Vec<_>>()
    };
    let mut n = 0u32;
    while in_use().len() < 2 {
        db.set("k", n.to_le_bytes(), [1; 1000]).expect("a write");
        n += 1;
    }
    // Answered by the task that notes where the log is, after it has.
    assert_eq!(db.check().expect("a check").findings, []);
    let killed = files(&base);
    let newest = in_use().pop().expect("there are two");
    for (case, keep) in [("gone", None), ("empty", Some(0)), ("cut", Some(512)), ("cut", Some(1024))] {
        let mut damaged = killed.clone();
        match keep {
            None => drop(damaged.remove(&newest)),
            Some(len) => damaged.get_mut(&newest).expect("it is one of them").truncate(len),
        }
        refuses(&dir.path().join(format!("{case} {keep:?}")), &damaged);
    }
    for byte in [0, 0xa5] {
        let mut damaged = killed.clone();
        damaged.get_mut(&newest).expect("it is one of them")[..1024].fill(byte);
        refuses(&dir.path().join(format!("header of {byte}")), &damaged);
    }
}

fn refuses(path: &Path, damaged: &Files) {
    write(path, damaged);
    let error = Database::open(path, small()).expect_err(&format!("{} is damaged", path.display()));
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(is_untouched(damaged, &files(path)), "a refused open changed a file");
}

/// Everything that is given when whatever cannot be read is skipped, and whether something was.
fn read_what_can_be_read(db: &Database, case: &str) -> (State, bool) {
    let (mut state, mut has_skipped) = (State::new(), false);
    let mut keys = db.keys("");
    loop {
        match keys.next() {
            None => break,
            Some(Ok((key, _))) => {
                drop(state.insert(String::from_utf8(key).expect("as written"), BTreeMap::new()))
            }
            Some(Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{case}: {error}");
                assert!(
                    keys.skip_damage().expect("the files can be read"),
                    "{case}: nothing to skip: {error}"
                );
                has_skipped = true;
            }
        }
    }
    for (key, entries) in &mut state {
        for is_reverse in [false, true] {
            let mut scan = if is_reverse { db.scan_reverse(key, ..) } else { db.scan(key, ..) };
            let mut given = BTreeMap::new();
            loop {
                match scan.next() {
                    None => break,
                    Some(Ok((name, value))) => {
                        assert_eq!(given.insert(name, value), None, "{case}: a name is given twice");
                    }
                    Some(Err(error)) => {
                        assert_eq!(error.kind(), ErrorKind::Corruption, "{case}: {error}");
                        assert!(scan.skip_damage().expect("the files can be read"), "{case}: {error}");
                        has_skipped = true;
                    }
                }
            }
            assert!(!is_reverse || given == *entries, "{case}: the two directions of {key} differ");
            *entries = given;
        }
    }
    (state, has_skipped)
}

#[test]
fn what_salvage_shows_was_so_at_one_position_and_it_says_what_it_left_out() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (states, left) = make(&dir.path().join("base"), &mut numbers);
    let (mut rescued, mut skipped, mut shown) = (0, 0, 0);
    for trial in 0..200 {
        let path = dir.path().join(format!("{trial}"));
        let mut files_now = left[trial % 2].clone();
        let name = files_now.keys().nth(trial / 2 % files_now.len()).expect("there are files").clone();
        damage(&mut files_now, &name, &mut numbers);
        write(&path, &files_now);
        let case = format!("trial {trial}, {name}");
        let refused = Database::open_read_only(&path, small()).err().map(|error| error.kind());
        let options = Options { salvage: true, ..small() };
        if let Ok(db) = Database::open_read_only(&path, options) {
            let (state, has_skipped) = read_what_can_be_read(&db, &case);
            let is_part_of = |whole: &State| {
                state.iter().all(|(key, entries)| {
                    let known = whole.get(key);
                    entries.iter().all(|(name, value)| known.and_then(|known| known.get(name)) == Some(value))
                })
            };
            assert!(states.iter().rev().any(is_part_of), "{case}: what is shown never was");
            let has_left_out = !db.left_out().is_empty();
            // A page file that is missing stands in nobody's way, and is told of all the same.
            let is_missing_file =
                |error: &Error| error.to_string().contains("which the manifest names, found no file");
            let must_refuse = !db.left_out().iter().all(is_missing_file);
            assert_eq!(must_refuse, refused.is_some(), "{case}: {:?}", db.left_out());
            if !has_skipped {
                assert!(states.contains(&state), "{case}: something is missing, and nobody says so");
            }
            rescued += usize::from(has_left_out);
            skipped += usize::from(has_skipped);
            shown += usize::from(has_left_out && state.values().map(BTreeMap::len).sum::<usize>() > 100);
            db.close().expect("there is nothing to write");
        } else {
            assert!(refused.is_some(), "{case}: salvage refuses what is not damaged");
        }
        assert!(files(&path) == files_now, "{case}: looking changed something");
        std::fs::remove_dir_all(&path).expect("a copy goes");
    }
    assert!(rescued > 10 && skipped > 10 && shown > 5, "{rescued} rescued, {skipped} skipped, {shown} shown");
    let options = Options { salvage: true, ..small() };
    let error = Database::open(dir.path().join("base"), options).expect_err("a writing open");
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}
