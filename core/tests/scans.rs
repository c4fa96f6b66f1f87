//! Scans in both directions over ranges, cut and resumed anywhere, against a map; over every form that an object has.
#![expect(clippy::unwrap_used, reason = "a test fails where an operation does")]

use ironleaf::{Cursor, Database, Durability, Options, Scan, env};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::Path;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

async fn open(path: &Path) -> Database {
    let options = Options {
        memory_bytes: 512 << 10,
        log_segment_bytes: 64 << 10,
        page_bytes: 512,
        page_segment_bytes: 64 << 10,
        durability: Durability::Written,
        ..Options::default()
    };
    Database::open(env::os::environment().unwrap(), path, options).await.unwrap()
}

async fn rest(scan: &mut Scan) -> Entries {
    let mut entries = Vec::new();
    while let Some(entry) = scan.next().await.unwrap() {
        entries.push(entry);
    }
    entries
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn name(n: usize) -> Vec<u8> {
    // Prefixes of each other, and names of several lengths.
    format!("{n:b}").into_bytes()
}

fn bound(numbers: &mut Numbers, names: usize) -> Bound<Vec<u8>> {
    match numbers.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Included(name(numbers.below(names))),
        _ => Bound::Excluded(name(numbers.below(names))),
    }
}

fn expected(map: &BTreeMap<Vec<u8>, Vec<u8>>, range: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Entries {
    let above = |name: &Vec<u8>| match &range.0 {
        Bound::Unbounded => true,
        Bound::Included(from) => name >= from,
        Bound::Excluded(from) => name > from,
    };
    let below = |name: &Vec<u8>| match &range.1 {
        Bound::Unbounded => true,
        Bound::Included(to) => name <= to,
        Bound::Excluded(to) => name < to,
    };
    map.iter().filter(|(name, _)| above(name) && below(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
}

#[tokio::test]
async fn scans_match_a_map_in_both_directions_and_resume_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await;
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for names in [1, 6, 40, 600] {
        let key = format!("object of {names}");
        let mut map = BTreeMap::new();
        for round in 0..6 {
            for _ in 0..names {
                let name = name(numbers.below(names));
                if numbers.below(4) == 0 {
                    map.remove(&name);
                    db.remove(&key, &name).await.unwrap();
                } else {
                    let value = format!("{round} {}", numbers.below(1000)).into_bytes();
                    db.set(&key, &name, &value).await.unwrap();
                    map.insert(name, value);
                }
            }
            // Edits above a tree, or none.
            if round % 2 == 1 {
                db.checkpoint().await.unwrap();
            }
            for _ in 0..40 {
                let range = (bound(&mut numbers, names), bound(&mut numbers, names));
                let mut wanted = expected(&map, &range);
                assert_eq!(rest(&mut db.scan(&key, range.clone())).await, wanted, "{range:?}");
                wanted.reverse();
                assert_eq!(
                    rest(&mut db.scan_reverse(&key, range.clone())).await,
                    wanted,
                    "{range:?} reverse"
                );
                let mut scan = if numbers.below(2) == 0 {
                    wanted.reverse();
                    db.scan(&key, range.clone())
                } else {
                    db.scan_reverse(&key, range.clone())
                };
                let cut = numbers.below(wanted.len() + 2);
                let mut seen = Vec::new();
                if numbers.below(2) == 0 {
                    for _ in 0..cut {
                        seen.extend(scan.next().await.unwrap());
                    }
                } else if cut > 0 {
                    scan.for_each(|name, value| {
                        seen.push((name.to_vec(), value.to_vec()));
                        if seen.len() < cut { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    })
                    .await
                    .unwrap();
                }
                if numbers.below(20) == 0 {
                    // The scan is handed other layers while it is put away.
                    db.checkpoint().await.unwrap();
                }
                if numbers.below(2) == 0 {
                    let cursor = Cursor::from_bytes(&scan.cursor().to_bytes()).unwrap();
                    scan = db.resume(&cursor);
                }
                seen.extend(rest(&mut scan).await);
                assert_eq!(seen, wanted, "{range:?} resumed after {cut}");
            }
        }
    }
    db.close().await.unwrap();
}

#[tokio::test]
async fn ranges_of_anything_that_is_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await;
    db.put_many("s", ["a", "b", "c", "d"]).await.unwrap();
    let names = |entries: Entries| entries.into_iter().flat_map(|(name, _)| name).collect::<Vec<u8>>();
    assert_eq!(names(rest(&mut db.scan("s", ..)).await), b"abcd");
    assert_eq!(names(rest(&mut db.scan("s", "b".."d")).await), b"bc");
    assert_eq!(names(rest(&mut db.scan("s", b"b"..=b"d")).await), b"bcd");
    assert_eq!(names(rest(&mut db.scan("s", String::from("c")..)).await), b"cd");
    assert_eq!(names(rest(&mut db.scan("s", ..vec![b'b'])).await), b"a");
    assert_eq!(names(rest(&mut db.scan_reverse("s", ..="b")).await), b"ba");
    assert_eq!(names(rest(&mut db.scan("s", "d".."a")).await), b"");
    let after = (Bound::Excluded("b"), Bound::<&str>::Unbounded);
    assert_eq!(names(rest(&mut db.scan("s", after)).await), b"cd");
    let mut scan = db.scan("s", ..);
    rest(&mut scan).await;
    assert!(scan.cursor().is_done());
    assert_eq!(rest(&mut db.resume(&scan.cursor())).await, []);
    db.close().await.unwrap();
}

#[tokio::test]
async fn get_with_borrows_the_value_and_is_called_once_or_never() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db")).await;
    db.set("h", "f", "value").await.unwrap();
    db.put("s", "m").await.unwrap();
    for _ in 0..2 {
        let mut calls = 0;
        let len = db.get_with("h", "f", |value| (calls += 1, value.len()).1).await.unwrap();
        assert_eq!((len, calls), (Some(5), 1));
        assert_eq!(db.get_with("h", "g", |_| unreachable!("not there")).await.unwrap(), None::<()>);
        db.get_with("s", "m", |_| unreachable!("a member has no value")).await.unwrap_err();
        db.snapshot().get_with("s", "m", |_| unreachable!("a member has no value")).await.unwrap_err();
        db.checkpoint().await.unwrap();
    }
    db.close().await.unwrap();
}
