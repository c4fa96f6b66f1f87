//! Machines on turmoil: a database behind its TCP, partitions, and that the same seed is the same run.

use ironleaf::env::{Env, Stream};
use ironleaf::{Database, Options};
use ironleaf_sim::choices::{Choices, Source};
use ironleaf_sim::machine::{LifeEnd, MachineOptions};
use ironleaf_sim::turmoil::{Simulation, TurmoilMachine, hold, release};
use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// turmoil walks through the time in which nothing happens.
fn impatient() -> MachineOptions {
    MachineOptions { virtual_time_max: Duration::from_secs(10), ..MachineOptions::default() }
}

fn machine(simulation: &mut Simulation, name: &str, seed: u64) -> TurmoilMachine {
    simulation.machine(name, Choices::new(Source::Seeded { seed }), impatient())
}

async fn accept(env: &Env) -> io::Result<Box<dyn Stream>> {
    Ok(env.network.listen("server:7000").await?.accept().await?.0)
}

/// Waits for the server to listen.
async fn connect(env: &Env) -> io::Result<Box<dyn Stream>> {
    let mut tries = 1000;
    loop {
        let connected = env.network.connect("server:7000").await;
        tries -= 1;
        if connected.is_ok() || tries == 0 {
            return connected;
        }
        env.clock.sleep(Duration::from_millis(50)).await;
    }
}

/// Counts what is sent, durably, and answers with the counts.
async fn serve(env: Env) -> Result<(), Box<dyn Error>> {
    let database = Database::open(env.clone(), "/counts", Options::default()).await?;
    let mut stream = accept(&env).await?;
    while let Ok(field) = stream.read_u8().await {
        let count = database.get("counts", [field]).await?.map_or(1, |before| before[0] + 1);
        database.set("counts", [field], [count]).await?;
        stream.write_u8(count).await?;
    }
    Ok(())
}

#[test]
fn a_database_serves_another_host_and_the_same_seed_is_the_same_run() {
    /// What came of it, and both machines' digests and numbers of events.
    fn served(seed: u64) -> (bool, [u64; 4]) {
        let mut simulation = Simulation::new(seed);
        let server = machine(&mut simulation, "server", seed);
        let client = machine(&mut simulation, "client", seed + 1000);
        let (server_env, env) = (server.env(), client.env());
        let end = simulation.run(&client, async move {
            let serving = serve(server_env.clone());
            let _server = server_env
                .spawner
                .spawn("serve", Box::pin(async { serving.await.expect("the server meets no error") }));
            let mut stream = connect(&env).await?;
            let mut counts = Vec::new();
            for field in [1, 2, 1, 1, 2] {
                stream.write_u8(field).await?;
                counts.push(stream.read_u8().await?);
            }
            Ok::<_, io::Error>(counts)
        });
        let answered = match end {
            LifeEnd::Finished(Ok(counts)) => {
                assert_eq!(counts, [1, 1, 2, 3, 2], "seed {seed}");
                true
            }
            // The server has crashed: nobody listens, or nobody answers.
            LifeEnd::Finished(Err(_)) | LifeEnd::Stuck(_) => false,
            other => panic!("seed {seed}: {other:?}"),
        };
        (answered, [server.digest(), server.events(), client.digest(), client.events()])
    }
    let runs: Vec<_> = (0..20).map(served).collect();
    assert_eq!(runs, (0..20).map(served).collect::<Vec<_>>());
    assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), 20, "different seeds are different runs");
    assert!(runs.iter().filter(|(answered, _)| *answered).count() >= 10, "hardly a server went on");
}

#[test]
fn a_partition_holds_everything_until_it_heals() {
    let mut simulation = Simulation::new(1);
    let mut machine = |name| simulation.machine(name, Choices::new(Source::Default), impatient());
    let (server, client) = (machine("server"), machine("client"));
    let (server_env, env, handle) = (server.env(), client.env(), client.handle());
    let end = simulation.run(&client, async move {
        let echo = {
            let env = server_env.clone();
            async move {
                let mut stream = accept(&env).await.expect("somebody connects");
                while let Ok(byte) = stream.read_u8().await {
                    stream.write_u8(byte).await.expect("the client is there");
                }
            }
        };
        let _echo = server_env.spawner.spawn("echo", Box::pin(echo));
        let mut stream = connect(&env).await?;
        hold("client", "server");
        stream.write_u8(7).await?;
        let start = handle.now();
        let clock = env.clock.clone();
        let heal = async move {
            clock.sleep(Duration::from_secs(5)).await;
            release("client", "server");
        };
        let _healer = env.spawner.spawn("healer", Box::pin(heal));
        assert_eq!(stream.read_u8().await?, 7);
        Ok::<_, io::Error>(handle.now() - start)
    });
    match end {
        LifeEnd::Finished(Ok(held)) => {
            assert!(held >= Duration::from_secs(5), "a byte crossed the partition after {held:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_host_listens_under_its_own_name_and_hosts_are_known_by_name() {
    let mut simulation = Simulation::new(1);
    let machine = machine(&mut simulation, "machine", 1);
    let env = machine.env();
    let kinds = simulation.run(&machine, async move {
        let listened = env.network.listen("other:80").await.err().map(|error| error.kind());
        let mut connected = Vec::new();
        for address in ["other:80", "10.1.2.3:80", "machine:80"] {
            connected.push(env.network.connect(address).await.err().map(|error| error.kind()));
        }
        (listened, connected)
    });
    let unknown = Some(io::ErrorKind::NotFound);
    let expected = vec![unknown, unknown, Some(io::ErrorKind::ConnectionRefused)];
    assert_eq!(kinds, LifeEnd::Finished((Some(io::ErrorKind::AddrNotAvailable), expected)));
}

#[test]
fn the_environment_of_a_simulation_that_is_over_refuses() {
    let mut simulation = Simulation::new(1);
    let machine = machine(&mut simulation, "machine", 1);
    let env = machine.env();
    assert_eq!(simulation.run(&machine, async {}), LifeEnd::Finished(()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (listened, connected, listed) = runtime.block_on(async {
        let listened = env.network.listen("machine:0").await.err().map(|error| error.kind());
        let connected = env.network.connect("machine:1").await.err().map(|error| error.kind());
        (listened, connected, env.disk.list(Path::new("/")).await.is_err())
    });
    assert_eq!(listened, Some(io::ErrorKind::NotConnected));
    assert_eq!((connected, listed), (listened, true));
}

#[test]
fn a_panic_and_a_task_that_waits_for_nothing_end_the_run() {
    let ended = |main: fn(Env) -> ironleaf::env::BoxFuture<'static, ()>| {
        let mut simulation = Simulation::new(1);
        let machine = simulation.machine("machine", Choices::new(Source::Default), impatient());
        let env = machine.env();
        simulation.run(&machine, main(env))
    };
    let panicked = ended(|_| Box::pin(async { panic!("a broken promise") }));
    assert!(
        matches!(&panicked, LifeEnd::Panicked(message) if message.contains("a broken promise")),
        "{panicked:?}"
    );
    let stuck = ended(|_| Box::pin(std::future::pending()));
    assert_eq!(stuck, LifeEnd::Stuck("main".to_owned()));
}
