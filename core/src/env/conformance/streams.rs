//! What every network must do: byte streams that end, break and push back as TCP's do.

use super::{eventually, pattern};
use crate::env::{BoxFuture, Env, Listener, Stream, TaskHandle};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

/// One promise of a network.
#[derive(Clone, Copy)]
pub struct StreamCheck {
    /// What is promised.
    pub name: &'static str,
    /// Panics where the promise is broken. Runs as a task of the client.
    pub run: fn(Peers) -> BoxFuture<'static, ()>,
}

/// Who talks in a check. Both may be the same machine.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Listens.
    pub server: Env,
    /// Connects.
    pub client: Env,
    /// Where the server listens: a host that both know it by, and port 0.
    pub address: String,
}

macro_rules! checks {
    ($($name:ident)*) => {
        /// Every promise of a network.
        pub const STREAM_CHECKS: &[StreamCheck] = &[
            $(StreamCheck { name: stringify!($name), run: |peers| Box::pin($name(peers)) }),*
        ];
    };
}

checks! {
    bytes_go_both_ways
    large_transfers_are_whole_in_both_directions
    a_writer_waits_for_its_reader
    a_direction_ends_alone
    connections_do_not_mix
    nobody_there_is_refused
    an_address_has_one_listener
    streams_outlive_their_listener
    what_was_sent_arrives_before_the_end
    unread_bytes_break_the_stream
    writing_to_nobody_fails
    malformed_addresses_are_errors
}

/// A stream, seen from both of its ends.
struct Ends {
    server: Box<dyn Stream>,
    client: Box<dyn Stream>,
}

impl Peers {
    async fn listen(&self) -> Box<dyn Listener> {
        self.server.network.listen(&self.address).await.expect("port 0 is always free")
    }

    async fn connect(&self, listener: &dyn Listener) -> Box<dyn Stream> {
        self.client.network.connect(&listener.address()).await.expect("somebody listens")
    }

    /// One connection, and no listener any more.
    async fn ends(&self) -> Ends {
        let listener = self.listen().await;
        let client = self.connect(&*listener).await;
        let (server, _) = listener.accept().await.expect("somebody has connected");
        Ends { server, client }
    }
}

/// Runs a part of a check as a task of its own; what it gives is waited for with [`Part::output`].
struct Part<T> {
    _task: TaskHandle,
    output: oneshot::Receiver<T>,
}

impl<T: Send + 'static> Part<T> {
    fn of(env: &Env, part: impl Future<Output = T> + Send + 'static) -> Self {
        let (sender, output) = oneshot::channel();
        let task = async move {
            let _ = sender.send(part.await);
        };
        Self { _task: env.spawner.spawn("part", Box::pin(task)), output }
    }

    async fn output(self) -> T {
        self.output.await.expect("no part of a check panics")
    }
}

async fn send(stream: &mut (impl AsyncWriteExt + Unpin), bytes: &[u8]) {
    stream.write_all(bytes).await.expect("the peer is there");
    stream.flush().await.expect("the peer is there");
}

async fn receive(stream: &mut (impl AsyncReadExt + Unpin), len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).await.expect("so many bytes come");
    bytes
}

async fn receive_all(stream: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("the stream ends in order");
    bytes
}

async fn bytes_go_both_ways(peers: Peers) {
    let listener = peers.listen().await;
    assert!(!listener.address().ends_with(":0"), "peers cannot connect to port 0");
    let mut client = peers.connect(&*listener).await;
    let serve = async move {
        let (mut stream, peer) = listener.accept().await.expect("somebody has connected");
        assert_eq!(receive(&mut stream, 5).await, b"hello");
        send(&mut stream, b"and hello to you").await;
        peer
    };
    let server = Part::of(&peers.server, serve);
    send(&mut client, b"hello").await;
    assert_eq!(receive(&mut client, 16).await, b"and hello to you");
    assert!(server.output().await.contains(':'), "a peer has an address");
}

async fn large_transfers_are_whole_in_both_directions(peers: Peers) {
    const LEN: usize = (1 << 20) + 3;
    let Ends { server, client } = peers.ends().await;
    let both_ways = |env: &Env, stream: Box<dyn Stream>, seed: u8| {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let sent = Part::of(env, async move {
            send(&mut writer, &pattern(LEN, seed)).await;
            writer.shutdown().await.expect("the peer is there");
        });
        let received = Part::of(env, async move { receive_all(&mut reader).await });
        (sent, received)
    };
    let (server_sent, server_received) = both_ways(&peers.server, server, 1);
    let (client_sent, client_received) = both_ways(&peers.client, client, 2);
    assert!(server_received.output().await == pattern(LEN, 2), "the server received something else");
    assert!(client_received.output().await == pattern(LEN, 1), "the client received something else");
    server_sent.output().await;
    client_sent.output().await;
}

async fn a_writer_waits_for_its_reader(peers: Peers) {
    const FAR_TOO_MUCH: u64 = 256 << 20;
    let Ends { mut server, mut client } = peers.ends().await;
    let (written, enough) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = {
        let (written, enough) = (written.clone(), enough.clone());
        Part::of(&peers.client, async move {
            let chunk = pattern(16 << 10, 0);
            while !enough.load(SeqCst) && written.load(SeqCst) < FAR_TOO_MUCH {
                send(&mut client, &chunk).await;
                written.fetch_add(chunk.len() as u64, SeqCst);
            }
            client.shutdown().await.expect("the peer is there");
        })
    };
    eventually(&peers.client, "the writer stands still", async || {
        let before = written.load(SeqCst);
        peers.client.clock.sleep(Duration::from_millis(50)).await;
        before > 0 && before == written.load(SeqCst)
    })
    .await;
    assert!(written.load(SeqCst) < FAR_TOO_MUCH, "nobody reads, and the writer never waited");
    enough.store(true, SeqCst);
    let received = receive_all(&mut server).await.len() as u64;
    writer.output().await;
    assert_eq!(received, written.load(SeqCst));
}

async fn a_direction_ends_alone(peers: Peers) {
    let Ends { mut server, mut client } = peers.ends().await;
    send(&mut client, b"a question").await;
    client.shutdown().await.expect("the peer is there");
    assert_eq!(receive_all(&mut server).await, b"a question");
    assert_eq!(server.read(&mut [0; 8]).await.expect("an end"), 0, "an end stays an end");
    send(&mut server, b"an answer").await;
    send(&mut server, b", and more").await;
    drop(server);
    assert_eq!(receive_all(&mut client).await, b"an answer, and more");
    assert_eq!(client.write(b"late").await.map_err(|error| error.kind()), Err(ErrorKind::BrokenPipe));
}

async fn connections_do_not_mix(peers: Peers) {
    const CONNECTIONS: u8 = 20;
    let listener = peers.listen().await;
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let mut client = peers.connect(&*listener).await;
        send(&mut client, &[number]).await;
        clients.push(client);
    }
    let serve = async move {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            streams.push(listener.accept().await.expect("somebody has connected").0);
        }
        for stream in streams.iter_mut().rev() {
            let number = receive(stream, 1).await[0];
            send(stream, &[number, number ^ 0xff]).await;
        }
        streams
    };
    let server = Part::of(&peers.server, serve);
    for (client, number) in clients.iter_mut().zip(0..) {
        assert_eq!(receive(client, 2).await, [number, number ^ 0xff]);
    }
    drop(server.output().await);
}

async fn nobody_there_is_refused(peers: Peers) {
    let listener = peers.listen().await;
    let address = listener.address();
    drop(listener);
    let refused = peers.client.network.connect(&address).await.err().expect("nobody listens any more");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

async fn an_address_has_one_listener(peers: Peers) {
    let listener = peers.listen().await;
    let address = listener.address();
    let taken = peers.server.network.listen(&address).await.err().expect("the address is taken");
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    let other = peers.listen().await;
    assert_ne!(other.address(), address, "port 0 takes a free port");
    drop(listener);
    peers.server.network.listen(&address).await.expect("the address is free again");
}

async fn streams_outlive_their_listener(peers: Peers) {
    let Ends { mut server, mut client } = peers.ends().await;
    send(&mut client, b"still").await;
    assert_eq!(receive(&mut server, 5).await, b"still");
    send(&mut server, b"here").await;
    assert_eq!(receive(&mut client, 4).await, b"here");
}

async fn what_was_sent_arrives_before_the_end(peers: Peers) {
    let Ends { mut server, mut client } = peers.ends().await;
    send(&mut server, &pattern(30_000, 3)).await;
    drop(server);
    assert!(receive_all(&mut client).await == pattern(30_000, 3), "a dropped stream lost what it had sent");
}

async fn unread_bytes_break_the_stream(peers: Peers) {
    let Ends { mut server, mut client } = peers.ends().await;
    send(&mut client, b"read, unread").await;
    assert_eq!(receive(&mut server, 4).await, b"read");
    drop(server);
    let broken = client.read(&mut [0; 8]).await.expect_err("bytes were lost, so this is no orderly end");
    assert_eq!(broken.kind(), ErrorKind::ConnectionReset);
}

async fn writing_to_nobody_fails(peers: Peers) {
    let Ends { server, client } = peers.ends().await;
    drop(server);
    let client = tokio::sync::Mutex::new(client);
    eventually(&peers.client, "a write fails", async || {
        let failed = client.lock().await.write_all(b"anybody?").await.map_err(|error| error.kind());
        assert!(
            matches!(failed, Ok(()) | Err(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)),
            "{failed:?}"
        );
        failed.is_err()
    })
    .await;
}

async fn malformed_addresses_are_errors(peers: Peers) {
    for address in ["", "nowhere", "localhost:", "localhost:65536", "localhost:port"] {
        assert!(peers.server.network.listen(address).await.is_err(), "listens on {address:?}");
        assert!(peers.client.network.connect(address).await.is_err(), "connects to {address:?}");
    }
}
