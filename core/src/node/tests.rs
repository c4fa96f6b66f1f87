//! Nodes come back as they were built, and an image that is no node is refused.
//!
//! What could break: a search that misses a record next to a prefix, a zero byte or a shared head; a page whose records
//! start beyond the reach of a slot; damage behind a valid checksum that sends a read out of the image.

use super::builder::{PAGE_BYTES_MAX, PAGE_BYTES_MIN};
use super::*;
use crate::tree::{PageId, PageRef};
use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::ControlFlow;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn build(level: u8, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut builder = NodeBuilder::new(level, PAGE_BYTES_MAX);
    for (key, value) in entries {
        assert!(builder.push(key, value), "the entries fit one page");
    }
    let bytes = builder.bytes();
    let image = builder.finish();
    assert!(image.len() <= bytes, "the longest prefix makes the image no longer");
    image
}

fn reference(number: u64) -> PageRef {
    PageRef { id: PageId(number), checksum: !number }
}

/// Keys of several shapes, sorted, with values that tell them apart.
fn shapes() -> Vec<Entries> {
    let keys: [Vec<Vec<u8>>; 6] = [
        (0..300_u32).map(|n| format!("member-{n:09}").into_bytes()).collect(),
        (0..300_u32)
            .map(|n| xxh3_64(&n.to_le_bytes()).to_be_bytes()[..1 + n as usize % 8].to_vec())
            .collect(),
        (0..40_usize).map(|n| vec![0; n]).collect(),
        (0..90_usize).map(|n| [vec![b'a'; n / 3], vec![0xff; n % 3]].concat()).collect(),
        (0..20_u8).map(|n| [vec![b'k'; 300], vec![n, 0, 0, 0, 0, 0, 0, 0, n]].concat()).collect(),
        vec![b"alone".to_vec()],
    ];
    let valued = |mut keys: Vec<Vec<u8>>| {
        keys.sort();
        keys.dedup();
        let value = |index: usize| vec![index as u8; index % 5 * (index % 50)];
        keys.into_iter().enumerate().map(|(index, key)| (key, value(index))).collect()
    };
    keys.map(valued).into()
}

/// Keys around those of `entries`: themselves, and their neighbours.
fn probes(entries: &Entries) -> Vec<Vec<u8>> {
    let mut probes = vec![Vec::new(), vec![0xff; 9]];
    for (key, _) in entries {
        probes.push(key.clone());
        probes.push([&key[..], &[0]].concat());
        probes.push([&key[..], &[0xff]].concat());
        if let Some((last, start)) = key.split_last() {
            probes.push(start.to_vec());
            probes.push([start, &[last.wrapping_sub(1)]].concat());
            probes.push([start, &[last.wrapping_add(1)]].concat());
        }
    }
    probes
}

/// Reads everything a node has.
fn read_all(node: &Node) -> Entries {
    let mut key = Vec::new();
    (0..node.len())
        .map(|index| {
            node.key(index, &mut key);
            (key.clone(), node.value(index).to_vec())
        })
        .collect()
}

#[test]
fn a_leaf_holds_what_was_pushed() {
    for entries in shapes() {
        let node = Node::parse(build(0, &entries)).unwrap();
        assert_eq!(read_all(&node), entries);
        assert_eq!(node.wrong_fingerprint(), None);
        for key in probes(&entries) {
            let place = entries.binary_search_by(|(entry, _)| entry.cmp(&key));
            let value = place.ok().map(|index| &entries[index].1[..]);
            let index = place.unwrap_or_else(|index| index);
            assert_eq!(node.find(&key), value, "{}", key.escape_ascii());
            assert_eq!(node.lower_bound(&key), index, "{}", key.escape_ascii());
            for start in [0, index / 2, index.saturating_sub(1), index] {
                assert_eq!(node.seek(start, &key), (index, value), "{} from {start}", key.escape_ascii());
            }
        }
    }
}

#[test]
fn a_visit_sees_the_rest_of_a_leaf_in_order() {
    for entries in shapes() {
        let node = Node::parse(build(0, &entries)).unwrap();
        let mut scratch = b"left from before".to_vec();
        for start in [0, entries.len() / 2, entries.len() - 1, entries.len()] {
            let mut seen = Vec::new();
            let end = node.visit_from(start, &[], &mut scratch, |key, value| {
                seen.push((key.to_vec(), value.to_vec()));
                ControlFlow::<()>::Continue(())
            });
            assert!(end.is_continue());
            assert_eq!(seen, entries[start..]);
        }
    }
}

#[test]
fn a_branch_routes_each_key_to_the_last_child_not_above_it() {
    for entries in shapes() {
        let bounds: Vec<_> = entries.into_iter().map(|(key, _)| key).filter(|key| !key.is_empty()).collect();
        let mut builder = NodeBuilder::new(1, PAGE_BYTES_MAX);
        assert!(builder.push(b"this bound stands in the parent", &reference(0).to_bytes()));
        for (index, bound) in bounds.iter().enumerate() {
            assert!(builder.push(bound, &reference(index as u64 + 1).to_bytes()));
        }
        let node = Node::parse(builder.finish()).unwrap();
        assert_eq!((node.level(), node.len()), (1, bounds.len() + 1));
        for key in probes(&bounds.iter().map(|bound| (bound.clone(), Vec::new())).collect()) {
            let index = bounds.partition_point(|bound| *bound <= key);
            assert_eq!(node.child_for(&key), (index, reference(index as u64)), "{}", key.escape_ascii());
        }
    }
}

#[test]
fn runs_of_other_nodes_build_the_image_that_pushes_build() {
    for entries in shapes() {
        for cut in [1, entries.len() / 3, entries.len() / 2]
            .into_iter()
            .filter(|cut| (1..entries.len()).contains(cut))
        {
            let (left, right) = entries.split_at(cut);
            let nodes = [left, right].map(|part| Node::parse(build(0, part)).unwrap());
            let mut builder = NodeBuilder::new(0, PAGE_BYTES_MAX);
            assert_eq!(builder.append(&nodes[0], 0..left.len()), left.len());
            let (first, rest) = right.split_first().unwrap();
            assert!(builder.push(&first.0, &first.1));
            assert_eq!(builder.append(&nodes[1], 1..right.len()), rest.len());
            assert_eq!(builder.finish(), build(0, &entries));
        }
    }
}

#[test]
fn a_page_is_longer_than_its_size_only_for_a_long_record() {
    for page_bytes in [PAGE_BYTES_MIN, 1000, 8192, PAGE_BYTES_MAX] {
        for entries in shapes() {
            let mut builder = NodeBuilder::new(0, page_bytes);
            let mut longest = 0;
            for (key, value) in &entries {
                if !builder.push(key, value) {
                    assert!(
                        builder.bytes() >= page_bytes / 2 || longest > page_bytes / 4,
                        "cut at {}",
                        builder.bytes()
                    );
                    let image = builder.finish();
                    assert!(image.len() <= page_bytes || longest > page_bytes / 2);
                    longest = 0;
                    assert!(builder.push(key, value), "an empty page takes any record");
                }
                longest = longest.max(key.len() + value.len() + 16);
            }
        }
    }
}

#[test]
fn a_branch_has_room_for_two_children_with_the_longest_keys() {
    let keys: Vec<_> = (0..3_u8).map(|n| [vec![n; 1], vec![b'k'; (1 << 16) - 1]].concat()).collect();
    let mut builder = NodeBuilder::new(3, PAGE_BYTES_MIN);
    assert!(builder.push(&keys[0], &reference(1).to_bytes()));
    assert!(builder.push(&keys[1], &reference(2).to_bytes()));
    assert!(
        !builder.push(&keys[2], &reference(3).to_bytes()),
        "the third record would start beyond the page"
    );
    let node = Node::parse(builder.finish()).unwrap();
    assert_eq!(node.child_for(&keys[2]), (1, reference(2)));
    assert_eq!(node.child_for(&keys[0]), (0, reference(1)));
}

#[test]
fn the_last_child_can_be_taken_back() {
    let mut builder = NodeBuilder::new(1, PAGE_BYTES_MIN);
    for (number, bound) in [&b""[..], b"member-1", b"member-2"].into_iter().enumerate() {
        assert!(builder.push(bound, &reference(number as u64).to_bytes()));
    }
    assert_eq!(builder.pop_child(), Some((b"member-2".to_vec(), reference(2))));
    assert_eq!(builder.pop_child(), Some((b"member-1".to_vec(), reference(1))));
    assert!(builder.push(b"other", &reference(7).to_bytes()));
    let node = Node::parse(builder.finish()).unwrap();
    assert_eq!(
        (0..node.len()).map(|index| node.child(index)).collect::<Vec<_>>(),
        [reference(0), reference(7)]
    );
    assert_eq!(node.child_for(b"other").0, 1);
}

/// Small nodes of both kinds, with short and long lengths.
fn samples() -> Vec<Vec<u8>> {
    let leaf: Entries =
        (0..9_u8).map(|n| (format!("field-{n}").into_bytes(), vec![n; usize::from(n) * 30])).collect();
    let branch: Entries =
        (0..6_u8).map(|n| (vec![b'b', n, 7], reference(n.into()).to_bytes().to_vec())).collect();
    vec![build(0, &leaf), build(2, &branch), build(0, &leaf[..1])]
}

/// Calls every read with keys around those that are there. Wrong answers are fine, leaving the image is not.
fn exercise(node: &Node) {
    let entries = read_all(node);
    for key in probes(&entries) {
        if node.level() == 0 {
            black_box((node.find(&key), node.seek(node.len() / 2, &key), node.lower_bound(&key)));
        } else {
            black_box(node.child_for(&key));
        }
    }
    let visited = node.visit_from(0, &[], &mut Vec::new(), |_, _| ControlFlow::<()>::Continue(()));
    assert!(visited.is_continue());
    black_box(node.wrong_fingerprint());
}

#[test]
fn truncated_and_lengthened_images_are_refused() {
    for image in samples() {
        for len in 0..image.len() {
            assert!(Node::parse(&image[..len]).is_err(), "cut to {len} of {} bytes", image.len());
        }
        assert!(Node::parse([&image[..], &[0]].concat()).is_err(), "a byte more");
        assert!(Node::parse([&image[..], &image[FRAME_BYTES..]].concat()).is_err(), "twice as long");
    }
}

#[test]
fn flipped_bits_are_refused_or_harmless() {
    for image in samples() {
        let node = Node::parse(image.clone()).unwrap();
        let before_hints = HEADER_END + node.prefix().len();
        let slots = before_hints + node.len() * hint_bytes(node.level());
        let records = slots + node.len() * SLOT_BYTES;
        for bit in FRAME_BYTES * 8..image.len() * 8 {
            let mut flipped = image.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // The level above 0 means something to the parent only, which compares it.
            let level = bit / 8 == FRAME_BYTES + 2;
            let structure = bit / 8 < HEADER_END && !level || (slots..records).contains(&(bit / 8));
            match Node::parse(flipped) {
                Ok(node) => {
                    assert!(!structure, "bit {bit} of the header or a slot went unseen");
                    exercise(&node);
                }
                Err(damage) => {
                    assert!(damage.offset < image.len(), "{damage}");
                    assert!(damage.to_string().contains("expected"), "{damage}");
                }
            }
        }
    }
}

#[test]
fn random_bytes_behind_a_header_never_leave_the_image() {
    for seed in 0..20_000_u64 {
        let length = (xxh3_64(&seed.to_le_bytes()) % 60) as usize;
        let mut image = vec![0; HEADER_END];
        image[FRAME_BYTES] = 1 + (seed % 3) as u8;
        image[FRAME_BYTES + 2] = (seed / 3 % 2) as u8;
        image.extend(
            (0..length as u64)
                .map(|index| xxh3_64(&[seed.to_le_bytes(), index.to_le_bytes()].concat()) as u8 % 20),
        );
        if let Ok(node) = Node::parse(image) {
            exercise(&node);
        }
    }
}

#[test]
fn announced_sizes_beyond_the_image_are_refused() {
    for (count, prefix_len) in [(u16::MAX, 0), (1, u32::MAX), (1, 1 << 31), (0, 0)] {
        let mut image = vec![0; HEADER_END + 4];
        image[FRAME_BYTES..FRAME_BYTES + 2].copy_from_slice(&count.to_le_bytes());
        image[FRAME_BYTES + 4..HEADER_END].copy_from_slice(&u32::to_le_bytes(prefix_len));
        let damage = Node::parse(image).unwrap_err();
        assert!((FRAME_BYTES..HEADER_END).contains(&damage.offset), "{damage}");
    }
}

#[test]
fn keys_out_of_order_are_refused() {
    for (level, value) in [(0, vec![1; 16]), (1, reference(1).to_bytes().to_vec())] {
        let entries: Entries = (0..6_u8).map(|n| (vec![b'p', n], value.clone())).collect();
        let image = build(level, &entries);
        let place = |n: u8| image.windows(3).position(|bytes| bytes == [1, 16, n]).map(|at| at + 2);
        let mut swapped = image.clone();
        let (third, fourth) = (place(3).unwrap(), place(4).unwrap());
        swapped.swap(third, fourth);
        if level > 0 {
            let heads = HEADER_END + 1;
            swapped[heads + 4 * 3 + 3] = 4;
            swapped[heads + 4 * 4 + 3] = 3;
        }
        let damage = Node::parse(swapped).unwrap_err();
        assert_eq!(damage.expected, "a key above the one before");
    }
}

#[test]
fn a_lookup_reads_only_records_with_the_keys_fingerprint() {
    let entries = &shapes()[0];
    let image = build(0, entries);
    let node = Node::parse(image.clone()).unwrap();
    let hints = HEADER_END + node.prefix().len();
    for index in [0, 17, entries.len() - 1] {
        let mut tampered = image.clone();
        tampered[hints + index] ^= 1;
        let node = Node::parse(tampered).unwrap();
        assert_eq!(
            node.find(&entries[index].0),
            None,
            "the key was compared although its fingerprint differs"
        );
        assert_eq!(node.wrong_fingerprint(), Some(index));
    }
}

#[test]
fn a_head_that_is_not_its_records_is_refused() {
    let image = &samples()[1];
    let node = Node::parse(image.clone()).unwrap();
    for byte in 0..node.len() * hint_bytes(1) {
        let mut tampered = image.clone();
        tampered[HEADER_END + node.prefix().len() + byte] ^= 0x40;
        assert!(Node::parse(tampered).unwrap_err().expected.starts_with("head "));
    }
}

#[test]
fn different_heads_order_as_their_suffixes_do() {
    let suffixes = [
        &b""[..],
        b"\0",
        b"\0\0\0\0\0",
        b"a",
        b"a\0",
        b"a\0b",
        b"ab",
        b"abcd",
        b"abcde",
        b"\xff",
        b"\xff\xff\xff\xff\xff",
    ];
    for left in suffixes {
        for right in suffixes {
            match head(left).cmp(&head(right)) {
                Ordering::Equal => {}
                order => assert_eq!(order, left.cmp(right), "{left:?} and {right:?}"),
            }
        }
    }
}
