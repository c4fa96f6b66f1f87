//! Tasks, time and the ends of a life, through the machine.

use crate::choices::{ChoiceName, Choices, Deviation, Site, Source};
use crate::machine::{CrashKind, LifeEnd, Machine, MachineOptions};
use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

fn machine(source: Source) -> Machine {
    Machine::new(Choices::new(source), MachineOptions::default())
}

fn deviating(site: Site, label: &str, actor: &str, ordinal: u32, pick: u64) -> Source {
    let name = ChoiceName {
        life: 0,
        site,
        label: label.to_owned(),
        actor: actor.to_owned(),
        operation: None,
        ordinal,
    };
    Source::Recorded { deviations: vec![Deviation { name, pick }], strict: true }
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

type Diary = Arc<Mutex<Vec<(String, u64)>>>;

/// Three tasks note their name and the time, yield, and note it again.
fn diary_of_three(machine: &mut Machine) -> Vec<(String, u64)> {
    let diary = Diary::default();
    let (handle, shared) = (machine.handle(), Arc::clone(&diary));
    let end = machine.run(async move {
        for index in 0..3 {
            let (clock, diary) = (handle.clone(), Arc::clone(&shared));
            let write = async move {
                for _ in 0..2 {
                    let now = u64::try_from(clock.now().as_micros()).unwrap();
                    diary.lock().unwrap().push((format!("client {index}"), now));
                    yield_now().await;
                }
            };
            handle.spawn(format!("client {index}"), Box::pin(write));
        }
        handle.sleep(Duration::from_millis(50)).await;
    });
    assert_eq!(end, LifeEnd::Finished(()));
    std::mem::take(&mut *diary.lock().unwrap())
}

fn entries(list: &[(u32, u64)]) -> Vec<(String, u64)> {
    list.iter().map(|(index, now)| (format!("client {index}"), *now)).collect()
}

#[test]
fn undisturbed_tasks_run_in_the_order_they_were_woken_and_time_stands_still() {
    let diary = diary_of_three(&mut machine(Source::Default));
    assert_eq!(diary, entries(&[(0, 0), (1, 0), (2, 0), (0, 0), (1, 0), (2, 0)]));
}

#[test]
fn a_deviation_delays_the_wake_up_it_names_and_no_other() {
    let source = deviating(Site::Wake, "client", "client 1", 0, 3);
    let mut machine = machine(source);
    let diary = diary_of_three(&mut machine);
    assert_eq!(diary, entries(&[(0, 0), (2, 0), (0, 0), (2, 0), (1, 10), (1, 10)]));
}

#[test]
fn a_labelled_point_holds_the_task_that_passes_it() {
    let mut machine = machine(deviating(Site::Point, "commit.buffered", "main", 1, 8));
    let (env, handle) = (machine.env(), machine.handle());
    let end = machine.run(async move {
        env.point("commit.buffered").await;
        let before = handle.now();
        env.point("commit.buffered").await;
        (before, handle.now())
    });
    assert_eq!(end, LifeEnd::Finished((Duration::ZERO, Duration::from_millis(3))));
}

#[test]
fn sleeps_end_in_the_order_of_their_times_and_cost_no_real_time() {
    let mut machine = machine(Source::Default);
    let env = machine.env();
    let end = machine.run(async move {
        let long = env.clock.sleep(Duration::from_secs(300));
        let short = env.clock.sleep(Duration::from_secs(1));
        drop(env.clock.sleep(Duration::from_secs(9999)));
        short.await;
        let after_short = env.clock.now();
        long.await;
        (after_short, env.clock.now(), env.clock.wall_now() > env.clock.now())
    });
    assert_eq!(end, LifeEnd::Finished((Duration::from_secs(1), Duration::from_secs(300), true)));
}

#[test]
fn a_life_in_which_nothing_can_go_on_is_stuck_and_names_who_waits() {
    let mut machine = machine(Source::Default);
    let handle = machine.handle();
    let end = machine.run(async move {
        handle.spawn("client 7".to_owned(), Box::pin(pending()));
        handle.spawn("done".to_owned(), Box::pin(async {}));
        drop(handle.sleep(Duration::from_secs(1)));
        pending::<()>().await;
    });
    assert_eq!(end, LifeEnd::Stuck("main, client 7".to_owned()));
}

#[test]
fn a_panic_ends_the_life_with_its_message_and_place() {
    let mut machine = machine(Source::Default);
    let handle = machine.handle();
    let end = machine.run(async move {
        handle.spawn("client".to_owned(), Box::pin(async { panic!("boom {}", 7) }));
        pending::<()>().await;
    });
    let LifeEnd::Panicked(message) = end else { panic!("{end:?}") };
    assert!(message.starts_with("boom 7 (") && message.contains("tests.rs:"), "{message}");
}

#[test]
fn a_panic_while_the_tasks_are_dropped_is_reported_only_where_the_life_ended_in_order() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    for crash in [false, true] {
        let mut machine = machine(Source::Default);
        let handle = machine.handle();
        let end = machine.run(async move {
            let bomb = Bomb;
            handle.spawn(
                "holder".to_owned(),
                Box::pin(async move {
                    pending::<()>().await;
                    drop(bomb);
                }),
            );
            if crash {
                pending::<()>().await;
            }
        });
        match end {
            LifeEnd::Panicked(message) => assert!(!crash && message.starts_with("dropped"), "{message}"),
            end => assert_eq!(end, LifeEnd::Stuck("main, holder".to_owned())),
        }
    }
}

#[test]
fn endless_lives_time_out_by_polls_and_by_virtual_time() {
    let options = MachineOptions {
        polls_max: 1000,
        virtual_time_max: Duration::from_secs(5),
        ..MachineOptions::default()
    };
    let mut spinning = Machine::new(Choices::new(Source::Default), options.clone());
    let end = spinning.run(async {
        loop {
            yield_now().await;
        }
        #[expect(unreachable_code, reason = "gives the future its type")]
        ()
    });
    assert_eq!(end, LifeEnd::TimedOut("1000 polls".to_owned()));

    let mut sleeping = Machine::new(Choices::new(Source::Default), options);
    let handle = sleeping.handle();
    let end = sleeping.run(async move {
        loop {
            handle.sleep(Duration::from_secs(2)).await;
        }
        #[expect(unreachable_code, reason = "gives the future its type")]
        ()
    });
    assert_eq!(end, LifeEnd::TimedOut("4s of virtual time; waiting: main".to_owned()));
}

#[test]
fn dropping_the_handle_of_a_task_drops_its_future_before_anything_else_runs() {
    let mut machine = machine(Source::Default);
    let env = machine.env();
    let end = machine.run(async move {
        let held = Arc::new(());
        let inside = Arc::clone(&held);
        let task = env.spawner.spawn(
            "background",
            Box::pin(async move {
                pending::<()>().await;
                drop(inside);
            }),
        );
        yield_now().await;
        let before = Arc::strong_count(&held);
        drop(task);
        yield_now().await;
        (before, Arc::strong_count(&held))
    });
    assert_eq!(end, LifeEnd::Finished((2, 1)));
}

#[test]
fn a_chosen_crash_ends_the_life_after_the_poll_and_the_next_one_starts_clean() {
    let mut machine = machine(deviating(Site::Crash, "acknowledged", "main", 1, 2));
    let handle = machine.handle();
    let passed = Arc::new(Mutex::new(0));
    let count = Arc::clone(&passed);
    let end = machine.run(async move {
        for _ in 0..5 {
            handle.crash_point("acknowledged");
            *count.lock().unwrap() += 1;
            yield_now().await;
        }
    });
    assert_eq!(end, LifeEnd::Crashed(CrashKind::ProcessDeath));
    assert_eq!(*passed.lock().unwrap(), 2);
    machine.restart(CrashKind::ProcessDeath);
    assert_eq!(machine.life(), 1);
    let handle = machine.handle();
    assert_eq!(machine.run(async move { handle.crash_point("acknowledged") }), LifeEnd::Finished(()));
}

#[test]
fn an_earlier_life_has_no_effect_on_a_later_one() {
    let mut machine = machine(Source::Default);
    let (env, handle) = (machine.env(), machine.handle());
    machine.restart(CrashKind::ProcessDeath);
    let ran = Arc::new(Mutex::new(false));
    let flag = Arc::clone(&ran);
    handle.spawn("ghost".to_owned(), Box::pin(async move { *flag.lock().unwrap() = true }));
    handle.crash_point("ghost");
    drop(env.spawner.spawn("ghost", Box::pin(async {})));
    let end = machine.run(async move {
        yield_now().await;
        env.disk.create_dir("/d".as_ref()).await.unwrap_err().to_string()
    });
    let refusal = "create_dir of /d failed: I/O error (the simulated machine is off)";
    assert_eq!(end, LifeEnd::Finished(refusal.to_owned()));
    assert!(!*ran.lock().unwrap());
}

#[test]
fn choices_are_named_by_task_and_operation() {
    let mut machine = machine(Source::Seeded { seed: 3 });
    let handle = machine.handle();
    machine.run(async move {
        let clients = handle.clone();
        for _ in 0..2 {
            let client = handle.clone();
            let work = async move {
                for operation in 0..60 {
                    client.set_operation(Some(operation));
                    yield_now().await;
                }
            };
            clients.spawn("client".to_owned(), Box::pin(work));
        }
        clients.sleep(Duration::from_secs(1)).await;
    });
    let recorded = machine.choices().recorded();
    let named = |actor: &str| {
        recorded.iter().any(|deviation| {
            deviation.name.actor == actor
                && deviation.name.label == "client"
                && deviation.name.operation.is_some_and(|operation| operation > 0)
                && deviation.name.ordinal == 0
        })
    };
    assert!(named("client") && named("client#2"), "{recorded:?}");
}

#[test]
fn randomness_follows_from_the_seed_and_differs_from_life_to_life() {
    let draw = |seed| {
        let options = MachineOptions { entropy_seed: seed, ..MachineOptions::default() };
        let mut machine = Machine::new(Choices::new(Source::Default), options);
        let first = machine.env().random_u64();
        machine.restart(CrashKind::PowerLoss);
        (first, machine.env().random_u64())
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_ne!(draw(1).0, draw(1).1);
}
