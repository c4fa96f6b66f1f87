use super::*;
use crate::machine::MachineOptions;
use bytes::Bytes;
use ironleaf::env::OpenMode;
use std::collections::BTreeSet;
use std::path::Path;

/// A file whose entry, length and two sectors are pending.
fn machine_with_pending() -> Machine {
    let mut machine = Machine::new(Choices::new(Source::Default), MachineOptions::default());
    let disk = machine.env().disk;
    machine.run(async move {
        disk.create_dir(Path::new("/d")).await.expect("the disk works");
        disk.sync_dir(Path::new("/")).await.expect("the disk works");
        let file = disk.open(Path::new("/d/f"), OpenMode::CreateNew).await.expect("the disk works");
        file.write_at(0, Bytes::from(vec![1; 1024])).await.expect("the disk works");
    });
    machine
}

fn images_of(machine: &Machine, bounds: Bounds) -> (BTreeSet<u64>, u64, Space) {
    let (mut images, mut tried) = (BTreeSet::new(), 0);
    let space = outcomes(CrashKind::PowerLoss, bounds, 1, |picks| {
        let choices = Choices::new(Source::Enumerated { picks });
        let mut copy = machine.fork(choices.clone());
        choices.watch(Some(Site::PowerLoss));
        copy.restart(CrashKind::PowerLoss);
        tried += 1;
        let is_new = images.insert(copy.disk_digest());
        Tried { met: choices.take_watched(), is_new, goes_on: true }
    });
    (images, tried, space)
}

#[test]
fn every_legal_image_is_made_once_where_few_units_are_pending() {
    let (images, tried, space) = images_of(&machine_with_pending(), Bounds::default());
    assert_eq!(space, Space { units: 4, is_exhaustive: true });
    // Without the entry nothing can be seen; without the length the file is empty; else each sector is there or not,
    // or destroyed beside the other one, which is there or not.
    assert_eq!(images.len(), 1 + 1 + 4 + 4, "{tried} outcomes");
}

#[test]
fn a_bound_is_kept_and_reported() {
    let bounds = Bounds { units_max: 3, images_max: 5 };
    let (images, _, space) = images_of(&machine_with_pending(), bounds);
    assert_eq!(space, Space { units: 4, is_exhaustive: false });
    assert!((5..=6).contains(&images.len()), "the first outcome counts its units: {images:?}");
}

#[test]
fn a_short_scenario_is_explored_to_its_end_and_within_its_recoveries() {
    let short = Arc::new(bounded(1, 0));
    let extent = Extent { bounds: Bounds { units_max: 12, ..Bounds::default() }, ..Extent::default() };
    let once = explore(&short, extent, |_| true);
    assert!(once.found.is_empty(), "{:?}", once.found);
    assert!(once.coverage.images > 50, "{:?}", once.coverage);
    assert_eq!(once.coverage.deep_images, 0);
    let twice = explore(&short, Extent { depth: 2, ..Extent::default() }, |_| true);
    assert!(twice.found.is_empty(), "{:?}", twice.found);
    assert!(twice.coverage.deep_images > once.coverage.images, "{:?}", twice.coverage);
}

#[test]
fn an_exploration_can_be_ended() {
    let mut points = 0;
    let explored = explore(&Arc::new(bounded(2, 0)), Extent::default(), |_| {
        points += 1;
        points <= 3
    });
    assert_eq!(explored.coverage.points, 3);
}

#[test]
fn the_alphabet_makes_each_scenario_once() {
    assert_eq!((bounded_count(0), bounded_count(1), bounded_count(4)), (1, 8, 4096));
    let texts: BTreeSet<String> = (0..bounded_count(2)).map(|index| bounded(2, index).to_toml()).collect();
    assert_eq!(texts.len(), 64);
}
