//! What the simulated disk may lose, what it must keep, and that both happen.
//!
//! A test writes files in one life, takes the power away with a chosen class of outcome, and looks at what the next
//! life finds.

use super::loss::DESTROYED;
use super::{CLASSES, Fault, Faults};
use crate::choices::{ChoiceName, Choices, Deviation, Site, Source};
use crate::machine::{CrashKind, LifeEnd, Machine, MachineOptions};
use bytes::Bytes;
use ironleaf::env::{DiskErrorKind, DiskResult, Env, File, OpenMode};
use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn outcome(label: &str, actor: &str, pick: u64) -> Deviation {
    let name = ChoiceName {
        life: 0,
        site: Site::PowerLoss,
        label: label.to_owned(),
        actor: actor.to_owned(),
        operation: None,
        ordinal: 0,
    };
    Deviation { name, pick }
}

/// The deviations that choose a class by its name, and its details.
fn class(name: &str, details: &[(&str, &str, u64)]) -> Vec<Deviation> {
    let number = CLASSES.iter().position(|class| *class == name).unwrap() as u64;
    let mut deviations: Vec<Deviation> =
        details.iter().map(|(label, actor, pick)| outcome(label, actor, *pick)).collect();
    if number > 0 {
        deviations.push(outcome("class", "machine", number));
    }
    deviations
}

fn machine(deviations: Vec<Deviation>) -> Machine {
    Machine::new(Choices::new(Source::Recorded { deviations, strict: true }), MachineOptions::default())
}

fn live<F, T>(machine: &mut Machine, body: impl FnOnce(Env) -> F) -> T
where
    F: Future<Output = DiskResult<T>> + Send + 'static,
    T: Send + std::fmt::Debug + 'static,
{
    let env = machine.env();
    match machine.run(body(env)) {
        LifeEnd::Finished(result) => result.unwrap(),
        end => panic!("{end:?}"),
    }
}

/// Runs `body`, loses power as `deviations` say, and gives the files that are left.
fn after_power_loss<F>(deviations: Vec<Deviation>, body: impl FnOnce(Env) -> F) -> Files
where
    F: Future<Output = DiskResult<()>> + Send + 'static,
{
    let mut machine = machine(deviations);
    live(&mut machine, body);
    machine.restart(CrashKind::PowerLoss);
    assert_eq!(machine.choices().finish(), None);
    Files::of(&machine)
}

/// Runs `body` under the choices of `seed` and loses power at its end; nothing, where the seed crashes before that.
fn seeded<F>(seed: u64, body: impl FnOnce(Env) -> F) -> Option<Machine>
where
    F: Future<Output = DiskResult<()>> + Send + 'static,
{
    let mut machine = Machine::new(Choices::new(Source::Seeded { seed }), MachineOptions::default());
    let body = body(machine.env());
    let end = machine.run(body);
    machine.restart(CrashKind::PowerLoss);
    match end {
        LifeEnd::Crashed(_) => None,
        LifeEnd::Finished(result) => result.map(|()| Some(machine)).unwrap(),
        end => panic!("{end:?}"),
    }
}

#[derive(Debug, PartialEq)]
struct Files(Vec<(PathBuf, Vec<u8>)>);

impl Files {
    fn of(machine: &Machine) -> Self {
        Self(machine.disk_dump())
    }

    fn get(&self, path: &str) -> Option<&[u8]> {
        self.0.iter().find(|(found, _)| found == Path::new(path)).map(|(_, content)| &content[..])
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(path, _)| path.to_str().unwrap()).collect()
    }
}

async fn create(env: &Env, path: &str) -> DiskResult<Arc<dyn File>> {
    env.disk.open(path.as_ref(), OpenMode::CreateNew).await
}

/// A file that is durable with `content`, entry included.
async fn durable(env: &Env, path: &str, content: &[u8]) -> DiskResult<Arc<dyn File>> {
    let file = create(env, path).await?;
    file.write_at(0, Bytes::copy_from_slice(content)).await?;
    file.sync_data().await?;
    env.disk.sync_dir("".as_ref()).await?;
    Ok(file)
}

fn filled(byte: u8, len: usize) -> Bytes {
    Bytes::from(vec![byte; len])
}

async fn two_unsynced_writes(env: Env) -> DiskResult<()> {
    let file = durable(&env, "log", &[0; 2048]).await?;
    file.write_at(0, filled(1, 512)).await?;
    file.write_at(512, filled(2, 512)).await
}

#[test]
fn unsynced_data_can_be_kept_and_can_be_lost() {
    let content = |deviations| {
        let files = after_power_loss(deviations, two_unsynced_writes);
        let content = files.get("log").unwrap();
        assert_eq!(content.len(), 2048);
        [content[0], content[512]]
    };
    assert_eq!(content(class("kept_all", &[])), [1, 2]);
    assert_eq!(content(class("dropped_all", &[])), [0, 0]);
    // Counted back from the newest write.
    assert_eq!(content(class("one_dropped", &[])), [1, 0]);
    assert_eq!(content(class("one_dropped", &[("drop", "machine", 1)])), [0, 2]);
    assert_eq!(content(class("one_kept", &[("keep", "machine", 1)])), [1, 0]);
    assert_eq!(content(class("prefix", &[("prefix", "log", 1)])), [1, 0]);
    assert_eq!(content(class("inversion", &[])), [0, 2]);
}

#[test]
fn synced_data_is_never_lost_whatever_the_choices() {
    for seed in 0..1000 {
        let survivor = seeded(seed, |env| async move {
            let file = durable(&env, "log", &[7; 3000]).await?;
            file.write_at(1024, filled(9, 1500)).await?;
            create(&env, "other").await?;
            env.disk.rename("other".as_ref(), "another".as_ref()).await
        });
        let Some(machine) = survivor else { continue };
        let files = Files::of(&machine);
        let content = files.get("log").unwrap();
        assert_eq!(content.len(), 3000, "seed {seed}");
        assert!(content[..1024].iter().chain(&content[2560..]).all(|byte| *byte == 7), "seed {seed}");
        let is_possible = |byte: &u8| matches!(byte, 7 | 9) || *byte == DESTROYED[0];
        assert!(content[1024..2524].iter().all(is_possible), "seed {seed}");
    }
}

#[test]
fn a_sector_that_is_written_can_be_destroyed_with_what_was_synced_in_it() {
    let files = after_power_loss(class("sector_destroyed", &[("sector", "machine", 1)]), |env| async move {
        let file = durable(&env, "log", &[7; 2048]).await?;
        file.write_at(500, filled(9, 600)).await
    });
    let expected = [&[7; 500][..], &[9; 12], &DESTROYED, &[9; 76], &[7; 948]].concat();
    assert_eq!(files.get("log"), Some(&expected[..]));
}

#[test]
fn a_sync_covers_what_completed_before_it_was_submitted_and_nothing_later() {
    let files = after_power_loss(class("dropped_all", &[]), |env| async move {
        let file = durable(&env, "log", &[0; 2048]).await?;
        file.write_at(0, filled(1, 512)).await?;
        let in_flight = file.write_at(512, filled(2, 512));
        let sync = file.sync_data();
        let later = file.write_at(1024, filled(3, 512));
        in_flight.await?;
        later.await?;
        sync.await
    });
    let content = files.get("log").unwrap();
    assert_eq!([content[0], content[512], content[1024]], [1, 0, 0]);
}

#[test]
fn a_directory_entry_is_lost_without_sync_dir_although_its_file_is_synced() {
    let write = |env: Env| async move {
        let file = create(&env, "log").await?;
        file.write_at(0, filled(1, 100)).await?;
        file.sync_data().await
    };
    assert_eq!(after_power_loss(class("entries_dropped", &[]), write).names(), [] as [&str; 0]);
    assert_eq!(after_power_loss(class("kept_all", &[]), write).get("log"), Some(&[1; 100][..]));
}

#[test]
fn an_unsynced_rename_can_be_undone_and_is_never_halved() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..400 {
        let survivor = seeded(seed, |env| async move {
            durable(&env, "manifest", b"old").await?;
            durable(&env, "manifest.new", b"new").await?;
            env.disk.rename("manifest.new".as_ref(), "manifest".as_ref()).await
        });
        outcomes.extend(survivor.map(|machine| format!("{:?}", Files::of(&machine).0)));
    }
    let old = r#"[("manifest", [111, 108, 100]), ("manifest.new", [110, 101, 119])]"#;
    let new = r#"[("manifest", [110, 101, 119])]"#;
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [new, old]);
}

#[test]
fn a_removal_can_be_undone_with_all_of_the_content() {
    let remove = |env: Env| async move {
        durable(&env, "log", b"content").await?;
        env.disk.remove("log".as_ref()).await
    };
    assert_eq!(after_power_loss(class("entries_dropped", &[]), remove).get("log"), Some(&b"content"[..]));
    assert_eq!(after_power_loss(class("kept_all", &[]), remove).get("log"), None);
}

#[test]
fn operations_on_one_name_keep_their_order_and_others_do_not_wait_for_them() {
    // The newest change that counts back to the creation of "a": its rename and the later "b" cannot outlive it.
    let drop_creation = class("one_dropped", &[("drop", "machine", 2)]);
    let files = after_power_loss(drop_creation, |env| async move {
        create(&env, "a").await?;
        env.disk.rename("a".as_ref(), "b".as_ref()).await?;
        create(&env, "c").await.map(drop)
    });
    assert_eq!(files.names(), ["c"]);
}

#[test]
fn a_lost_directory_takes_its_synced_files_along() {
    let files = after_power_loss(class("dropped_all", &[]), |env| async move {
        env.disk.create_dir("data".as_ref()).await?;
        let file = create(&env, "data/log").await?;
        file.write_at(0, filled(1, 10)).await?;
        file.sync_data().await?;
        env.disk.sync_dir("data".as_ref()).await
    });
    assert_eq!(files.names(), [] as [&str; 0]);
    let files = after_power_loss(class("dropped_all", &[]), |env| async move {
        env.disk.create_dir("data".as_ref()).await?;
        env.disk.sync_dir("/".as_ref()).await?;
        create(&env, "data/log").await?;
        env.disk.sync_dir("data".as_ref()).await
    });
    assert_eq!(files.names(), ["data/log"]);
}

#[test]
fn data_and_length_are_lost_apart() {
    let grow = |env: Env| async move {
        let file = durable(&env, "log", &[1; 512]).await?;
        file.write_at(512, filled(2, 512)).await
    };
    let cut = after_power_loss(class("lengths_dropped", &[]), grow);
    assert_eq!(cut.get("log"), Some(&[1; 512][..]), "data beyond a lost length is cut");
    let hollow = after_power_loss(class("one_dropped", &[("drop", "machine", 1)]), grow);
    assert_eq!(
        hollow.get("log"),
        Some(&[[1; 512], [0; 512]].concat()[..]),
        "a length without data reads zeros"
    );
}

#[test]
fn a_cut_that_is_lost_brings_the_old_bytes_back_and_one_that_is_kept_leaves_zeros() {
    let cut = |env: Env| async move {
        let file = durable(&env, "log", &[1; 1536]).await?;
        file.set_len(100).await?;
        file.set_len(1024).await
    };
    let all = after_power_loss(class("kept_all", &[]), cut);
    assert_eq!(all.get("log"), Some(&[&[1; 100][..], &[0; 924]].concat()[..]));
    let first = after_power_loss(class("prefix", &[("prefix", "log", 1)]), cut);
    assert_eq!(first.get("log"), Some(&[1; 100][..]));
    let none = after_power_loss(class("dropped_all", &[]), cut);
    assert_eq!(none.get("log"), Some(&[1; 1536][..]));
}

#[test]
fn a_write_tears_at_sector_boundaries_only() {
    let mut shapes = BTreeSet::new();
    for seed in 0..4000 {
        let survivor = seeded(seed, |env| async move {
            let file = durable(&env, "pages", &[0; 4096]).await?;
            file.write_at(300, filled(1, 2000)).await
        });
        let Some(machine) = survivor else { continue };
        let files = Files::of(&machine);
        let content = files.get("pages").unwrap();
        let mut shape = String::new();
        for (start, end) in [(300, 512), (512, 1024), (1024, 1536), (1536, 2048), (2048, 2300)] {
            let part = &content[start..end];
            assert!(part.iter().all(|byte| *byte == part[0]), "seed {seed} tears inside a sector");
            shape.push(match part[0] {
                0 => '.',
                1 => '#',
                _ => 'x',
            });
        }
        assert!(content[2560..].iter().all(|byte| *byte == 0));
        let around = [content[..300].to_vec(), content[2300..2560].to_vec()];
        for (part, own) in around.iter().zip([0, 4]) {
            let is_destroyed = shape.as_bytes()[own] == b'x';
            let expected = if is_destroyed { DESTROYED[0] } else { 0 };
            assert!(part.iter().all(|byte| *byte == expected), "seed {seed} touches what was not written");
        }
        shapes.insert(shape);
    }
    for shape in ["#####", ".....", "#....", "####.", "....#", ".####", "##.##", "##x##"] {
        assert!(shapes.contains(shape), "{shape} is missing among {shapes:?}");
    }
}

#[test]
fn a_newer_version_of_a_sector_contains_the_older_ones() {
    // The older of two writes to one sector is "lost", but the page cache wrote the sector out with both.
    let older_dropped = class("one_dropped", &[("drop", "machine", 1)]);
    let files = after_power_loss(older_dropped, |env| async move {
        let file = durable(&env, "log", &[0; 512]).await?;
        file.write_at(0, filled(1, 100)).await?;
        file.write_at(50, filled(2, 100)).await
    });
    let content = files.get("log").unwrap();
    assert_eq!([content[0], content[99], content[149], content[150]], [1, 2, 2, 0]);
}

#[test]
fn dropping_the_future_of_a_write_does_not_take_it_back() {
    let mut machine = machine(Vec::new());
    let content = live(&mut machine, |env| async move {
        let file = durable(&env, "log", &[0; 4]).await?;
        drop(file.write_at(0, Bytes::from_static(b"kept")));
        let before = file.read_at(0, 4).await?;
        env.clock.sleep(Duration::from_millis(1)).await;
        Ok((before, file.read_at(0, 4).await?))
    });
    assert_eq!(content.1, b"kept");
}

/// Submits a write, a rename and a creation, and crashes before any of them completes.
fn crashed_in_flight(mut deviations: Vec<Deviation>, kind: CrashKind) -> Files {
    let mut crash = outcome("now", "main", 1);
    crash.name.site = Site::Crash;
    deviations.push(crash);
    let mut machine = machine(deviations);
    let (env, handle) = (machine.env(), machine.handle());
    let end = machine.run(async move {
        let file = durable(&env, "log", b"old").await?;
        drop(file.write_at(0, Bytes::from_static(b"new")));
        drop(env.disk.rename("log".as_ref(), "renamed".as_ref()));
        drop(env.disk.open("created".as_ref(), OpenMode::CreateNew));
        handle.crash_point("now");
        std::future::pending::<DiskResult<()>>().await
    });
    assert_eq!(end.map_finished(|_| ()), LifeEnd::Crashed(CrashKind::PowerLoss));
    machine.restart(kind);
    Files::of(&machine)
}

#[test]
fn operations_in_flight_may_survive_a_power_loss_and_may_not() {
    let kept = crashed_in_flight(class("kept_all", &[]), CrashKind::PowerLoss);
    assert_eq!(kept.names(), ["created", "renamed"]);
    assert_eq!(kept.get("renamed"), Some(&b"new"[..]));
    let dropped = crashed_in_flight(class("in_flight_dropped", &[]), CrashKind::PowerLoss);
    assert_eq!(dropped.names(), ["log"]);
    assert_eq!(dropped.get("log"), Some(&b"old"[..]));
}

#[test]
fn the_death_of_a_process_carries_operations_in_flight_out_whole_or_not_at_all() {
    let kept = crashed_in_flight(Vec::new(), CrashKind::ProcessDeath);
    assert_eq!(kept.get("renamed"), Some(&b"new"[..]));
    let dropped = crashed_in_flight(vec![outcome("in_flight", "main", 1)], CrashKind::ProcessDeath);
    assert_eq!(dropped.names(), ["created", "renamed"]);
    assert_eq!(dropped.get("renamed"), Some(&b"old"[..]));
}

#[test]
fn what_survived_the_death_of_a_process_is_still_not_durable() {
    let mut dropped = outcome("class", "machine", 1);
    dropped.name.life = 1;
    let mut machine = machine(vec![dropped]);
    live(&mut machine, two_unsynced_writes);
    machine.restart(CrashKind::ProcessDeath);
    assert_eq!(Files::of(&machine).get("log").unwrap()[0], 1);
    machine.restart(CrashKind::PowerLoss);
    assert_eq!(Files::of(&machine).get("log").unwrap()[0], 0);
}

#[test]
fn what_survived_a_power_loss_survives_the_next_one() {
    let mut machine = machine(vec![{
        let mut dropped = outcome("class", "machine", 1);
        dropped.name.life = 1;
        dropped
    }]);
    live(&mut machine, two_unsynced_writes);
    machine.restart(CrashKind::PowerLoss);
    let first = Files::of(&machine);
    machine.restart(CrashKind::PowerLoss);
    assert_eq!(Files::of(&machine), first);
    assert_eq!(first.get("log").unwrap()[512], 2);
}

#[test]
fn losses_count_only_what_changed_something() {
    let mut unharmed = machine(class("dropped_all", &[]));
    live(&mut unharmed, |env| async move {
        let file = durable(&env, "log", &[0; 512]).await?;
        file.write_at(0, filled(0, 512)).await
    });
    unharmed.restart(CrashKind::PowerLoss);
    assert_eq!(unharmed.losses().into_iter().collect::<Vec<_>>(), []);

    let mut harmed = machine(class("dropped_all", &[]));
    live(&mut harmed, |env| async move {
        let file = durable(&env, "log", &[0; 512]).await?;
        file.write_at(0, filled(1, 1024)).await?;
        create(&env, "new").await.map(drop)
    });
    harmed.restart(CrashKind::PowerLoss);
    let losses: Vec<_> = harmed.losses().into_iter().collect();
    assert_eq!(losses, [("dropped_all", 1), ("entry_lost", 1), ("length_lost", 1)]);
}

#[test]
fn every_class_of_loss_takes_effect_within_a_few_hundred_seeds() {
    let mut seen = BTreeSet::new();
    for seed in 0..400 {
        let survivor = seeded(seed, |env| async move {
            let file = durable(&env, "log", &[0; 700]).await?;
            file.write_at(100, filled(1, 2000)).await?;
            create(&env, "new").await.map(drop)
        });
        seen.extend(survivor.iter().flat_map(|machine| machine.losses().into_keys()));
    }
    for pick in 0..12 {
        let mut crash = outcome("now", "main", 1);
        crash.name.site = Site::Crash;
        let mut machine = machine(vec![crash, outcome("class", "machine", pick)]);
        let (env, handle) = (machine.env(), machine.handle());
        machine.run(async move {
            let file = durable(&env, "log", &[0; 700]).await?;
            drop(file.write_at(0, filled(2, 10)));
            handle.crash_point("now");
            std::future::pending::<DiskResult<()>>().await
        });
        machine.restart(CrashKind::PowerLoss);
        seen.extend(machine.losses().into_keys());
    }
    for class in CLASSES.into_iter().chain(["entry_lost", "length_lost", "in_flight_kept", "in_flight_lost"])
    {
        assert!(seen.contains(class), "{class} is missing among {seen:?}");
    }
}

#[test]
fn a_full_disk_refuses_without_effect_and_works_again_when_space_returns() {
    let options = MachineOptions { disk_bytes_max: Some(1000), ..MachineOptions::default() };
    let mut machine = Machine::new(Choices::new(Source::Default), options);
    live(&mut machine, |env| async move {
        let reserved = create(&env, "reserved").await?;
        reserved.preallocate(600).await?;
        let file = create(&env, "log").await?;
        file.write_at(0, filled(1, 400)).await?;
        let error = file.write_at(300, filled(2, 101)).await.unwrap_err();
        assert_eq!((error.kind, error.range), (DiskErrorKind::Full, Some((300, 101))));
        assert_eq!(file.len().await?, 400);
        assert_eq!(file.preallocate(500).await.unwrap_err().kind, DiskErrorKind::Full);
        reserved.write_at(0, filled(3, 600)).await?;

        env.disk.remove("reserved".as_ref()).await?;
        assert_eq!(file.write_at(400, filled(2, 1)).await.unwrap_err().kind, DiskErrorKind::Full);
        drop(reserved);
        file.write_at(400, filled(2, 600)).await
    });
    machine.restart(CrashKind::PowerLoss);
    live(&mut machine, |env| async move {
        let file = env.disk.open("log".as_ref(), OpenMode::ReadWrite).await?;
        assert_eq!(file.write_at(1000, filled(1, 1)).await.unwrap_err().kind, DiskErrorKind::Full);
        file.set_len(500).await?;
        file.write_at(500, filled(1, 500)).await
    });
}

#[test]
fn locks_end_with_their_process() {
    let mut machine = machine(Vec::new());
    let env = machine.env();
    let end = machine.run(async move {
        env.disk.create_dir("data".as_ref()).await.unwrap();
        env.disk.sync_dir("".as_ref()).await.unwrap();
        let lock = env.disk.lock("data".as_ref()).await.unwrap();
        std::future::pending::<()>().await;
        drop(lock);
    });
    assert_eq!(end, LifeEnd::Stuck("main".to_owned()));
    machine.restart(CrashKind::PowerLoss);
    live(&mut machine, |env| async move { env.disk.lock("data".as_ref()).await.map(drop) });
}

#[test]
fn a_lock_is_held_until_the_last_operation_in_flight_has_ended() {
    let mut machine = machine(Vec::new());
    live(&mut machine, |env| async move {
        let lock = env.disk.lock("".as_ref()).await?;
        let file = create(&env, "log").await?;
        let write = file.sync_data();
        drop(lock);
        assert_eq!(env.disk.lock("".as_ref()).await.err().unwrap().kind, DiskErrorKind::Locked);
        write.await?;
        env.disk.lock("".as_ref()).await.map(drop)
    });
}

#[test]
fn sparse_files_cost_what_is_written_to_them() {
    let mut machine = machine(Vec::new());
    live(&mut machine, |env| async move {
        let file = create(&env, "huge").await?;
        file.preallocate(1 << 40).await?;
        file.write_at(1 << 39, Bytes::from_static(b"middle")).await?;
        assert_eq!(file.read_at((1 << 39) - 2, 10).await?, b"\0\0middle\0\0");
        file.set_len(3).await?;
        file.sync_data().await
    });
    machine.restart(CrashKind::PowerLoss);
    assert_eq!(Files::of(&machine).get("huge"), Some(&[0; 3][..]));
}

/// The deviation that makes the first operation of a kind of the main task fail in a way.
fn fault(label: &str, pick: u64) -> Deviation {
    let mut deviation = outcome(label, "main", pick);
    deviation.name.site = Site::Fault;
    deviation
}

/// Writes and syncs a record under a fault, then syncs again; gives what is read after that, and after power loss.
fn synced_under(fault: Deviation, faults: Faults) -> (Vec<u8>, Vec<u8>) {
    let mut machine = machine(vec![fault]);
    live(&mut machine, |env| async move { durable(&env, "log", &[0; 1024]).await.map(drop) });
    machine.set_faults(faults);
    let read = live(&mut machine, |env| async move {
        let file = env.disk.open("log".as_ref(), OpenMode::ReadWrite).await?;
        let failures = [file.write_at(0, filled(1, 1024)).await.err(), file.sync_data().await.err()];
        let [failure] = failures.into_iter().flatten().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(failure.kind, DiskErrorKind::Io);
        file.sync_data().await?;
        file.read_at(0, 1024).await
    });
    machine.restart(CrashKind::PowerLoss);
    assert_eq!(machine.choices().finish(), None);
    (read, Files::of(&machine).get("log").unwrap().to_vec())
}

#[test]
fn a_failed_sync_leaves_data_pending_discards_it_or_lets_it_vanish_with_the_power() {
    let (old, new) = (vec![0; 1024], vec![1; 1024]);
    assert_eq!(synced_under(fault("sync fails", 1), Faults::FAILURES), (new.clone(), new.clone()));
    assert_eq!(synced_under(fault("sync fails", 2), Faults::FAILURES), (old.clone(), old.clone()));
    assert_eq!(synced_under(fault("sync fails", 3), Faults::FAILURES), (new, old));
}

#[test]
fn a_failed_write_is_carried_out_in_part_or_not_at_all() {
    let half = [[1; 512], [0; 512]].concat();
    assert_eq!(synced_under(fault("write fails", 1), Faults::FAILURES), (vec![0; 1024], vec![0; 1024]));
    assert_eq!(synced_under(fault("write fails", 2), Faults::FAILURES), (half.clone(), half));
}

#[test]
fn a_failed_sync_of_a_directory_leaves_its_entries_pending() {
    let mut deviations = class("entries_dropped", &[]);
    deviations.push(fault("sync_dir fails", 1));
    let mut machine = machine(deviations);
    machine.set_faults([Fault::SyncDir].into_iter().collect());
    live(&mut machine, |env| async move {
        create(&env, "log").await?;
        assert_eq!(env.disk.sync_dir("".as_ref()).await.unwrap_err().kind, DiskErrorKind::Io);
        Ok(())
    });
    machine.restart(CrashKind::PowerLoss);
    assert_eq!(Files::of(&machine).names(), [""; 0]);
}

#[test]
fn nothing_fails_while_its_knob_is_off_and_seeds_make_it_fail_while_it_is_on() {
    let failures = |faults| {
        (0..100)
            .filter(|seed| {
                let choices = Choices::new(Source::Seeded { seed: *seed });
                let mut machine = Machine::new(choices, MachineOptions::default());
                machine.set_faults(faults);
                let env = machine.env();
                let end = machine.run(async move {
                    let file = durable(&env, "log", b"data").await?;
                    for _ in 0..50 {
                        file.read_at(0, 4).await?;
                    }
                    Ok::<_, ironleaf::env::DiskError>(())
                });
                matches!(end, LifeEnd::Finished(Err(_)))
            })
            .count()
    };
    assert_eq!(failures(Faults::default()), 0);
    assert!(failures([Fault::Read].into_iter().collect()) > 20);
}

#[test]
fn damage_is_durable_and_seen_at_once() {
    let mut machine = machine(class("dropped_all", &[]));
    live(&mut machine, two_unsynced_writes);
    assert!(machine.overwrite_file("log".as_ref(), b"damaged"));
    assert!(!machine.overwrite_file("none".as_ref(), b"damaged"));
    assert_eq!(Files::of(&machine).get("log"), Some(&b"damaged"[..]));
    machine.restart(CrashKind::PowerLoss);
    assert_eq!(Files::of(&machine).get("log"), Some(&b"damaged"[..]));
}

#[test]
fn a_fork_tries_another_outcome_of_the_same_crash_and_leaves_the_original_alone() {
    let mut crash = outcome("now", "main", 1);
    crash.name.site = Site::Crash;
    let mut machine = machine(vec![crash]);
    let (env, handle) = (machine.env(), machine.handle());
    machine.run(async move {
        let file = durable(&env, "log", &[0; 2048]).await?;
        file.write_at(0, filled(1, 512)).await?;
        create(&env, "created").await?;
        env.disk.remove("created".as_ref()).await?;
        drop(file.write_at(512, filled(2, 512)));
        handle.crash_point("now");
        std::future::pending::<DiskResult<()>>().await
    });
    let after = |deviations: Vec<Deviation>, kind| {
        let mut fork = machine.fork(Choices::new(Source::Recorded { deviations, strict: true }));
        fork.restart(kind);
        assert_eq!(fork.choices().finish(), None);
        let files = Files::of(&fork);
        let content = files.get("log").unwrap();
        (files.names().len(), content[0], content[512])
    };
    assert_eq!(after(class("kept_all", &[]), CrashKind::PowerLoss), (1, 1, 2));
    assert_eq!(after(class("dropped_all", &[]), CrashKind::PowerLoss), (1, 0, 0));
    assert_eq!(after(class("one_dropped", &[]), CrashKind::PowerLoss), (1, 1, 0));
    assert_eq!(after(class("one_dropped", &[("drop", "machine", 1)]), CrashKind::PowerLoss), (2, 1, 2));
    assert_eq!(after(vec![outcome("in_flight", "main", 1)], CrashKind::ProcessDeath), (1, 1, 0));
    machine.restart(CrashKind::PowerLoss);
    assert_eq!(Files::of(&machine).get("log").unwrap()[512], 2, "the original kept its own course");
}
