//! What the simulated network adds to the promises of every network: partitions, cuts, and that a run of it is a
//! function of its choices.

use crate::choices::{Choices, Source};
use crate::machine::{CrashKind, LifeEnd, Machine, MachineOptions};
use ironleaf::env::{Env, Stream};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Ends = (Box<dyn Stream>, Box<dyn Stream>);

async fn connected(env: &Env) -> io::Result<Ends> {
    let listener = env.network.listen("machine:0").await?;
    let client = env.network.connect(&listener.address()).await?;
    Ok((client, listener.accept().await?.0))
}

async fn receive(stream: &mut Box<dyn Stream>, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).await.map(|_| bytes)
}

fn machine(source: Source) -> Machine {
    Machine::new(Choices::new(source), MachineOptions::default())
}

#[test]
fn a_partition_holds_everything_until_it_heals() {
    let mut machine = machine(Source::Default);
    let (env, network, handle) = (machine.env(), machine.network(), machine.handle());
    let end = machine.run(async move {
        let (mut client, mut server) = connected(&env).await?;
        client.write_all(b"before").await?;
        assert_eq!(receive(&mut server, 6).await?, b"before");
        network.hold();
        client.write_all(b"meanwhile").await?;
        let (clock, healer) = (env.clock.clone(), network.clone());
        let _healer = env.spawner.spawn(
            "healer",
            Box::pin(async move {
                clock.sleep(Duration::from_secs(5)).await;
                healer.release();
            }),
        );
        assert_eq!(receive(&mut server, 9).await?, b"meanwhile");
        assert!(handle.now() >= Duration::from_secs(5), "bytes crossed the partition");
        network.hold();
        network.release();
        connected(&env).await.map(drop)
    });
    assert!(matches!(end, LifeEnd::Finished(Ok(()))), "{end:?}");
}

#[test]
fn nobody_connects_across_a_partition() {
    let mut machine = machine(Source::Default);
    let (env, network) = (machine.env(), machine.network());
    network.hold();
    let end = machine.run(async move { connected(&env).await.map(drop) });
    assert!(matches!(end, LifeEnd::Stuck(_)), "{end:?}");
}

#[test]
fn a_cut_resets_both_ends() {
    let mut machine = machine(Source::Default);
    let (env, network) = (machine.env(), machine.network());
    let end = machine.run(async move {
        let (mut client, mut server) = connected(&env).await?;
        client.write_all(b"lost").await?;
        network.cut();
        for stream in [&mut client, &mut server] {
            for _ in 0..2 {
                let read = stream.read(&mut [0; 4]).await.map_err(|error| error.kind());
                assert_eq!(read, Err(io::ErrorKind::ConnectionReset));
            }
            let written = stream.write(b"lost").await.map_err(|error| error.kind());
            assert_eq!(written, Err(io::ErrorKind::ConnectionReset));
        }
        connected(&env).await.map(drop)
    });
    assert!(matches!(end, LifeEnd::Finished(Ok(()))), "{end:?}");
}

/// Time stands still while a task runs, so the peer's end never becomes known by itself.
#[test]
fn a_writer_that_never_waits_learns_that_nobody_reads() {
    let mut machine = machine(Source::Default);
    let env = machine.env();
    let end = machine.run(async move {
        let (mut client, server) = connected(&env).await?;
        drop(server);
        let mut written = Ok(());
        while written.is_ok() {
            written = client.write_all(&[0; 4096]).await;
        }
        written
    });
    assert!(
        matches!(&end, LifeEnd::Finished(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe),
        "{end:?}"
    );
}

#[test]
fn connections_and_listeners_end_with_their_life() {
    let mut machine = machine(Source::Default);
    let env = machine.env();
    let before = env.clone();
    let end = machine.run(async move {
        let listener = env.network.listen("machine:80").await?;
        env.network.connect("machine:80").await?;
        Ok::<_, io::Error>(listener)
    });
    assert!(matches!(end, LifeEnd::Finished(Ok(_))), "the first life listens");
    machine.restart(CrashKind::ProcessDeath);
    let env = machine.env();
    let end = machine.run(async move {
        assert_eq!(
            before.network.connect("machine:80").await.err().map(|e| e.kind()),
            Some(io::ErrorKind::NotConnected)
        );
        let refused = env.network.connect("machine:80").await.err().map(|error| error.kind());
        assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
        env.network.listen("machine:80").await.map(drop)
    });
    assert!(matches!(end, LifeEnd::Finished(Ok(()))), "{end:?}");
}

#[test]
fn the_same_seed_carries_the_same_segments_at_the_same_times() {
    let digest = |seed| {
        let mut machine = machine(Source::Seeded { seed });
        let env = machine.env();
        let _ = machine.run(async move {
            let (mut client, mut server) = connected(&env).await?;
            client.write_all(&[7; 40_000]).await?;
            receive(&mut server, 40_000).await
        });
        (machine.digest(), machine.events(), machine.virtual_time())
    };
    let digests: Vec<_> = (0..20).map(digest).collect();
    assert_eq!(digests, (0..20).map(digest).collect::<Vec<_>>());
    assert!(digests.iter().any(|one| one != &digests[0]), "no seed changes anything");
}
