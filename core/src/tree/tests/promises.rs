//! Which pages a change touches, what a reader sees meanwhile, and what damage does.

use super::*;

fn entries(numbers: impl IntoIterator<Item = u64>, value: u8) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    numbers.into_iter().map(move |number| (numbered(number), vec![value; 20]))
}

/// A tree of three levels over `0, 2, 4, …`.
fn tall() -> Pair {
    let mut pair = Pair::new(512);
    pair.put(entries((0..4000).step_by(2), 1));
    assert_eq!(pair.height(), 3);
    pair
}

/// Bytes of the pages of the tree over the bytes they would have if all were full.
fn fill(pair: &Pair) -> f64 {
    let pages = pair.pages.pages.len() - pair.pages.retired.len();
    let retired: BTreeSet<_> = pair.pages.retired.iter().map(|page| page.id).collect();
    let live = pair.pages.pages.iter().filter(|(id, _)| !retired.contains(id));
    let bytes: usize = live.map(|(_, (_, node))| node.image().len()).sum();
    bytes as f64 / (pages * pair.pages.page_bytes) as f64
}

#[test]
fn changes_that_change_nothing_write_nothing() {
    let mut pair = tall();
    let root = pair.root;
    let mut changes: Changes =
        entries((0..4000).step_by(2), 1).map(|(key, value)| (key, Some(value))).collect();
    changes.extend((1..4000).step_by(2).map(|number| (numbered(number), None)));
    let applied = pair.apply(&changes);
    assert_eq!(applied, Applied { root, ..Applied::default() });
    assert!(pair.pages.written.is_empty() && pair.pages.retired.is_empty());
    pair.apply(&Changes::new());
    assert_eq!(pair.root, root);
}

#[test]
fn one_changed_field_rewrites_one_leaf_and_its_path() {
    let mut pair = tall();
    for number in [0, 2, 1776, 1778, 2000, 3996, 3998] {
        let mut changes: Changes = entries([number], 9).map(|(key, value)| (key, Some(value))).collect();
        // Edits without effect, in this and in other leaves, change nothing about that.
        changes.insert(numbered(number + 1), None);
        changes.insert(
            numbered((number + 2000) % 4000),
            Some(pair.map[&numbered((number + 2000) % 4000)].clone()),
        );
        pair.apply(&changes);
        assert_eq!(pair.pages.written.len(), 3, "{number}");
        assert_eq!(pair.pages.retired.len(), 3, "{number}");
    }
}

/// The keys of the leaf to which `key` routes.
fn leaf_of(pair: &Pair, key: &[u8]) -> Vec<Vec<u8>> {
    let mut page = pair.root.unwrap();
    loop {
        let node = pair.pages.node(page).unwrap();
        if node.level() > 0 {
            page = node.child_for(key).1;
            continue;
        }
        let mut keys = vec![Vec::new(); node.len()];
        keys.iter_mut().enumerate().for_each(|(index, key)| node.key(index, key));
        return keys;
    }
}

#[test]
fn many_changes_of_one_leaf_rewrite_it_once() {
    let mut pair = tall();
    let leaf = leaf_of(&pair, &numbered(2000));
    assert!(leaf.len() > 3);
    pair.put(leaf.into_iter().map(|key| (key, vec![5; 20])));
    assert_eq!((pair.pages.written.len(), pair.pages.retired.len()), (3, 3));
}

#[test]
fn a_leaf_that_shrinks_joins_the_next() {
    let mut pair = tall();
    let leaf = leaf_of(&pair, &numbered(2000));
    pair.remove(leaf[1..].iter().cloned());
    assert!(leaf_of(&pair, &leaf[0]).len() > 2);
    assert_eq!(pair.pages.retired.len(), 4, "the leaf, the next one, and the path");
}

#[test]
fn the_last_leaf_joins_the_one_before_when_it_shrinks() {
    let mut pair = tall();
    let last = leaf_of(&pair, &numbered(3998));
    let before = leaf_of(&pair, &numbered(3998 - 2 * last.len() as u64));
    assert_ne!(last, before);
    pair.remove(before.iter().step_by(2).cloned());
    pair.remove(last[1..].iter().cloned());
    assert_eq!(leaf_of(&pair, &last[0]).len(), before.len() / 2 + 1);
    assert_eq!((pair.pages.written.len(), pair.pages.retired.len()), (3, 4));
}

#[test]
fn an_insert_into_a_full_leaf_leaves_its_neighbours_alone() {
    let mut pair = tall();
    pair.put(entries([2001], 1));
    assert!(pair.pages.written.len() <= 3 + 2, "{} pages were written", pair.pages.written.len());
    assert_eq!(pair.pages.retired.len(), 3);
}

#[test]
fn pages_stay_filled() {
    let mut appended = Pair::new(1024);
    for start in (0..3000).step_by(5) {
        appended.put(entries(start..start + 5, 1));
    }
    assert!(fill(&appended) > 0.9, "appending fills pages: {}", fill(&appended));

    let mut scattered = Pair::new(1024);
    let mut numbers = Numbers(1);
    for _ in 0..600 {
        scattered.put(entries((0..5).map(|_| numbers.below(100_000)).collect::<Vec<_>>(), 1));
    }
    assert!(fill(&scattered) > 0.55, "splits are even: {}", fill(&scattered));

    while scattered.map.len() > 300 {
        let keys: Vec<_> = scattered.map.keys().cloned().collect();
        scattered.remove((0..20).map(|_| keys[numbers.below(keys.len() as u64) as usize].clone()));
    }
    assert!(fill(&scattered) > 0.35, "shrinking pages are joined: {}", fill(&scattered));
}

#[test]
fn a_tree_shrinks_to_one_leaf_and_to_nothing() {
    let mut pair = tall();
    pair.remove((0..4000).filter(|number| *number != 2468).map(numbered));
    assert_eq!(pair.height(), 1, "roots with one child go");
    assert_eq!(pair.pages.written.len(), 1);
    let applied = pair.remove([numbered(2468)]);
    assert_eq!(applied.root, None);
    assert!(pair.pages.written.is_empty());
}

#[test]
fn a_root_whose_only_child_has_one_child_goes_as_well() {
    // Separators so long that a branch has room for two children only, and the third has a branch of its own.
    let mut pair = Pair::new(256);
    let keys: Vec<_> = (0..3).map(|n| [vec![b'k'; 60_000], vec![n]].concat()).collect();
    pair.put(keys.iter().map(|key| (key.clone(), vec![1; 200])));
    assert_eq!((pair.height(), pair.pages.written.len()), (3, 6));
    pair.remove(keys[..2].iter().cloned());
    assert_eq!((pair.height(), pair.pages.written.len()), (1, 0));
}

#[test]
fn an_old_root_goes_on_showing_the_old_tree() {
    let mut pair = tall();
    let (old_root, old_map) = (pair.root, pair.map.clone());
    pair.pages.settle();
    let mut changes: Changes = entries(500..900, 7).map(|(key, value)| (key, Some(value))).collect();
    changes.extend((2000..3500).map(|number| (numbered(number), None)));
    apply_changes(&mut pair.pages, pair.root, &changes);
    assert_eq!(pair.root, old_root);
    assert_eq!(pair.scan(Bound::Unbounded), old_map.into_iter().collect::<Vec<_>>());
}

#[test]
fn applying_holds_one_path_in_memory() {
    let mut pair = tall();
    pair.pages.held_max = AtomicUsize::new(0);
    pair.put(entries((1..4000).step_by(2), 3));
    let held = pair.pages.held_max.load(Relaxed);
    assert!((1..=3).contains(&held), "{held} old pages were held at once");
}

#[test]
fn a_failed_write_leaves_the_old_tree_as_it_was() {
    let changes: Changes = entries(0..4000, 7).map(|(key, value)| (key, Some(value))).collect();
    for writes in [0, 1, 2, 50, 200] {
        let mut pair = tall();
        pair.pages.settle();
        pair.pages.writes_left = writes;
        let edits: Vec<_> =
            changes.iter().map(|(key, value)| (&key[..], Edit::Put(value.as_deref().unwrap()))).collect();
        let error = ready(apply(&mut pair.pages, pair.root, &edits)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DiskFull);
        assert_eq!(pair.scan(Bound::Unbounded).len(), 2000);
        assert_eq!(pair.get(&numbered(2000)), Some(vec![1; 20]));
    }
}

#[test]
#[should_panic(expected = "sorted")]
fn unsorted_edits_are_a_mistake_of_the_caller() {
    let mut pages = MemoryPages::new(512);
    let _ = ready(apply(&mut pages, None, &[(b"b", Edit::Remove), (b"a", Edit::Remove)]));
}

#[test]
fn reads_name_the_page_that_is_missing() {
    let mut pair = tall();
    let (root, key) = (pair.root.unwrap(), numbered(2000));
    let mut path = vec![root];
    while let Some(node) = pair.pages.node(path[path.len() - 1]).filter(|node| node.level() > 0) {
        path.push(node.child_for(&key).1);
    }
    assert_eq!(path.len(), 3);
    for page in path.into_iter().rev() {
        pair.pages.pages.remove(&page.id);
        let found = lookup(&pair.pages, root, &key, |_| panic!("there is no leaf to read")).unwrap();
        assert_eq!(found, Attempt::<()>::Missing(page));
        let mut visit = |_: &[u8], _: &[u8]| panic!("there is no leaf to read");
        let scanned =
            scan_leaf(&pair.pages, root, Bound::Included(&key), &mut Vec::new(), &mut visit).unwrap();
        assert_eq!(scanned, Attempt::Missing(page));
    }
}

#[test]
fn a_scan_ends_where_its_visitor_stops() {
    let pair = tall();
    let mut seen = 0;
    let mut visit = |_: &[u8], _: &[u8]| {
        seen += 1;
        if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let scanned =
        scan_leaf(&pair.pages, pair.root.unwrap(), Bound::Unbounded, &mut Vec::new(), &mut visit).unwrap();
    assert!(matches!(scanned, Attempt::Done(LeafEnd { stopped: true, next: Some(_) })));
    assert_eq!(seen, 2);
}

#[test]
fn a_walk_visits_children_first_and_loads_no_leaf() {
    let mut pair = tall();
    let leaves: Vec<_> =
        pair.pages.pages.iter().filter(|(_, (_, node))| node.level() == 0).map(|(id, _)| *id).collect();
    let all: BTreeSet<_> = pair.pages.pages.keys().copied().collect();
    let root = pair.root.unwrap();
    for leaf in leaves {
        pair.pages.pages.remove(&leaf);
    }
    let mut visited = Vec::new();
    ready(walk(&pair.pages, root, |page, level| visited.push((page, level)))).unwrap();
    assert_eq!(visited.iter().map(|(page, _)| page.id).collect::<BTreeSet<_>>(), all);
    assert_eq!(visited.len(), all.len(), "each page is visited once");
    for (index, (page, level)) in visited.iter().enumerate().filter(|(_, (_, level))| *level > 0) {
        let node = pair.pages.node(*page).unwrap();
        assert_eq!(node.level(), *level);
        let before: BTreeSet<_> = visited[..index].iter().map(|(page, _)| *page).collect();
        assert!((0..node.len()).all(|child| before.contains(&node.child(child))));
    }
    assert_eq!(visited.last(), Some(&(root, 2)));
}

/// The children of the root and of its second child.
fn inner_pages(pair: &Pair) -> (Arc<Node>, Arc<Node>) {
    let root = pair.pages.node(pair.root.unwrap()).unwrap();
    let branch = pair.pages.node(root.child(1)).unwrap();
    (root, branch)
}

#[test]
fn a_page_of_the_wrong_level_is_corruption() {
    let mut pair = tall();
    let (root, branch) = inner_pages(&pair);
    let key = {
        let mut key = Vec::new();
        root.key(1, &mut key);
        key
    };
    // The branch shows up as its own child: a reader that followed it would never end.
    for image in [branch.image(), root.image()] {
        let image = image.to_vec();
        pair.pages.tamper(branch.child(0), image);
        let error = lookup(&pair.pages, pair.root.unwrap(), &key, |_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("level 0"), "{error}");
        let mut visit = |_: &[u8], _: &[u8]| ControlFlow::Continue(());
        let from = Bound::Included(&key[..]);
        scan_leaf(&pair.pages, pair.root.unwrap(), from, &mut Vec::new(), &mut visit).unwrap_err();
        ready(apply(&mut pair.pages, pair.root, &[(&key, Edit::Remove)])).unwrap_err();
    }
    let image = root.image().to_vec();
    pair.pages.tamper(root.child(1), image);
    ready(walk(&pair.pages, pair.root.unwrap(), |_, _| ())).unwrap_err();
}

#[test]
fn keys_that_route_elsewhere_are_corruption_to_a_change() {
    let mut pair = tall();
    let (_, branch) = inner_pages(&pair);
    let mut keys = [Vec::new(), Vec::new()];
    for (index, key) in keys.iter_mut().enumerate() {
        branch.key(index + 2, key);
    }
    // The leaf holds its right neighbour's entries; whatever is carried there or cut there must not end in a panic.
    let neighbour = pair.pages.node(branch.child(3)).unwrap();
    pair.pages.tamper(branch.child(2), neighbour.image().to_vec());
    for edit in [Edit::Put(b"new"), Edit::Remove] {
        let edits = keys.each_ref().map(|key| (&key[..], edit));
        let error = ready(apply(&mut pair.pages, pair.root, &edits)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("within the interval"), "{error}");
    }
}

#[test]
fn verification_names_each_damaged_page_and_sees_the_rest() {
    let mut pair = tall();
    let (_, branch) = inner_pages(&pair);
    let (missing, foreign, hidden) = (branch.child(1), branch.child(2), branch.child(4));
    let foreign_entries = pair.pages.node(foreign).unwrap().len() as u64;
    let missing_entries = pair.pages.node(missing).unwrap().len() as u64;
    pair.pages.pages.remove(&missing.id);
    let neighbour = pair.pages.node(branch.child(3)).unwrap();
    let neighbour_entries = neighbour.len() as u64;
    pair.pages.tamper(foreign, neighbour.image().to_vec());
    let node = pair.pages.node(hidden).unwrap();
    let mut image = node.image().to_vec();
    let fingerprints = 40 + node.prefix().len();
    image[fingerprints + 1] ^= 1;
    pair.pages.tamper(hidden, image);

    struct Ignore;
    impl Inspector for Ignore {
        fn page(&mut self, _: PageRef) -> bool {
            true
        }
        fn entry(&mut self, _: PageRef, _: &[u8], _: &[u8]) {}
    }
    let verified = ready(verify(&pair.pages, pair.root.unwrap(), &mut Ignore)).unwrap();
    let about = |page: PageRef, problem: &str| {
        let named = page.id.to_string();
        verified
            .findings
            .iter()
            .filter(|finding| finding.starts_with(&named) && finding.contains(problem))
            .count()
    };
    assert_eq!(about(missing, "expected a page"), 1, "{:?}", verified.findings);
    assert_eq!(about(foreign, "within the interval"), 1, "{:?}", verified.findings);
    assert_eq!(about(hidden, "fingerprint of record 1"), 1, "{:?}", verified.findings);
    assert_eq!(verified.findings.len(), 3, "{:?}", verified.findings);
    assert_eq!(verified.entries, 2000 - missing_entries - foreign_entries + neighbour_entries);
}
