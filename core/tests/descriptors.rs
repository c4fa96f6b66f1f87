//! A database of many files keeps few of them open, and running out of descriptors is an ordinary refusal: nothing is
//! poisoned, nothing is lost, and all goes on when there are some again.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that counts its process's descriptors"
)]

use ironleaf::blocking::Database;
use ironleaf::{Durability, ErrorKind, Options};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn open_files() -> u64 {
    // Listing them takes one.
    std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1
}

fn allow(files: Option<u64>) {
    setrlimit(Resource::Nofile, Rlimit { current: files, ..getrlimit(Resource::Nofile) }).unwrap();
}

#[test]
fn few_files_are_open_and_too_few_of_them_poison_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = Options {
        memory_bytes: 512 << 10,
        log_segment_bytes: 16 << 10,
        page_bytes: 1 << 10,
        page_segment_bytes: 8 << 10,
        page_files_max: 5,
        durability: Durability::Written,
        ..Options::default()
    };
    let before = open_files();
    let db = Database::open(&path, options.clone()).unwrap();
    let key = |n: u32| format!("key {}", n % 40);
    let mut written = 0;
    let mut write = |db: &Database| {
        db.set(key(written), written.to_le_bytes(), [written as u8; 400])?;
        written += 1;
        Ok::<u32, ironleaf::Error>(written)
    };
    while write(&db).unwrap() < 3000 {}
    db.checkpoint().unwrap();
    let read_all = |db: &Database, written: u32| {
        for n in 0..written {
            assert_eq!(db.get(key(n), n.to_le_bytes()).unwrap(), Some(vec![n as u8; 400]), "{n}");
        }
    };
    read_all(&db, 3000);
    let segments = std::fs::read_dir(&path).unwrap().count() as u64;
    let open = open_files() - before;
    assert!(segments > 60 && open < 25, "{open} files are open of {segments}");

    // Nothing can be opened now: a commit that needs another log file, a checkpoint and a cold read are refused.
    let limit = getrlimit(Resource::Nofile).current;
    allow(Some(before));
    let refusal = loop {
        if let Err(error) = write(&db) {
            break error;
        }
    };
    assert_eq!(refusal.kind(), ErrorKind::ResourceExhausted, "{refusal}");
    assert!(refusal.to_string().contains("ulimit"), "{refusal}");
    let refused = |n: u32| db.get(key(n), n.to_le_bytes()).err().map(|error| error.kind());
    assert!((0..3000).filter_map(refused).all(|kind| kind == ErrorKind::ResourceExhausted));
    assert_eq!(db.checkpoint().unwrap_err().kind(), ErrorKind::ResourceExhausted);

    allow(limit);
    db.checkpoint().unwrap();
    let last = write(&db).unwrap() + 500;
    while write(&db).unwrap() < last {}
    read_all(&db, last);
    assert_eq!(db.check().unwrap().findings, []);
    db.close().unwrap();
    let db = Database::open(&path, options).unwrap();
    read_all(&db, last);
    db.close().unwrap();
}
