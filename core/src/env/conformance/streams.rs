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

/// Who talks in a check. Both may be the same machine; where they are not, each does its part in tasks of its own.
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
    a_connection_is_made_before_it_is_accepted
    nobody_there_is_refused
    an_address_has_one_listener
    streams_outlive_their_listener
    what_was_sent_arrives_before_the_end
    unread_bytes_break_the_stream
    writing_to_nobody_fails
    malformed_addresses_are_errors
}

/// Somebody who listens, and where.
struct Listening {
    listener: Box<dyn Listener>,
    address: String,
}

impl Listening {
    async fn accept(&self) -> Box<dyn Stream> {
        self.listener.accept().await.expect("somebody connects").0
    }
}

impl Peers {
    async fn listen(&self) -> Listening {
        let listen = self.server.network.listen(&self.address);
        let listener = Part::of(&self.server, listen).output().await.expect("port 0 is always free");
        let address = listener.address();
        Listening { listener, address }
    }

    fn connect(&self, address: &str) -> Part<Box<dyn Stream>> {
        let connect = self.client.network.connect(address);
        Part::of(&self.client, async { connect.await.expect("somebody listens") })
    }

    /// Connects the two, without a listener any more, and has each do its part; gives what they give.
    async fn talk<S: Future<Output: Send> + Send, C: Future<Output: Send> + Send>(
        &self,
        server: impl FnOnce(Box<dyn Stream>) -> S + Send + 'static,
        client: impl FnOnce(Box<dyn Stream>) -> C + Send + 'static,
    ) -> (S::Output, C::Output)
    where
        S::Output: 'static,
        C::Output: 'static,
    {
        let listening = self.listen().await;
        let connected = self.connect(&listening.address);
        let served = Part::of(&self.server, async move {
            let stream = listening.accept().await;
            drop(listening);
            server(stream).await
        });
        let said = Part::of(&self.client, async move { client(connected.output().await).await });
        (served.output().await, said.output().await)
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
    let listening = peers.listen().await;
    assert!(!listening.address.ends_with(":0"), "peers cannot connect to port 0");
    let connected = peers.connect(&listening.address);
    let serve = async move {
        let (mut stream, peer) = listening.listener.accept().await.expect("somebody connects");
        assert_eq!(receive(&mut stream, 5).await, b"hello");
        send(&mut stream, b"and hello to you").await;
        peer
    };
    let server = Part::of(&peers.server, serve);
    let mut client = connected.output().await;
    send(&mut client, b"hello").await;
    assert_eq!(receive(&mut client, 16).await, b"and hello to you");
    assert!(server.output().await.contains(':'), "a peer has an address");
}

async fn large_transfers_are_whole_in_both_directions(peers: Peers) {
    const LEN: usize = (1 << 20) + 3;
    async fn both_ways(env: Env, stream: Box<dyn Stream>, seed: u8) -> Vec<u8> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let sent = Part::of(&env, async move {
            send(&mut writer, &pattern(LEN, seed)).await;
            writer.shutdown().await.expect("the peer is there");
        });
        let received = Part::of(&env, async move { receive_all(&mut reader).await });
        sent.output().await;
        received.output().await
    }
    let (server, client) = (peers.server.clone(), peers.client.clone());
    let (by_server, by_client) =
        peers.talk(|stream| both_ways(server, stream, 1), |stream| both_ways(client, stream, 2)).await;
    assert!(by_server == pattern(LEN, 2), "the server received something else");
    assert!(by_client == pattern(LEN, 1), "the client received something else");
}

async fn a_writer_waits_for_its_reader(peers: Peers) {
    const FAR_TOO_MUCH: u64 = 256 << 20;
    let (written, enough) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let watch = {
        let (env, written, enough) = (peers.server.clone(), written.clone(), enough.clone());
        async move |mut stream: Box<dyn Stream>| {
            eventually(&env, "the writer stands still", async || {
                let before = written.load(SeqCst);
                env.clock.sleep(Duration::from_millis(50)).await;
                before > 0 && before == written.load(SeqCst)
            })
            .await;
            assert!(written.load(SeqCst) < FAR_TOO_MUCH, "nobody reads, and the writer never waited");
            enough.store(true, SeqCst);
            receive_all(&mut stream).await.len() as u64
        }
    };
    let write = async move |mut stream: Box<dyn Stream>| {
        let chunk = pattern(16 << 10, 0);
        while !enough.load(SeqCst) && written.load(SeqCst) < FAR_TOO_MUCH {
            send(&mut stream, &chunk).await;
            written.fetch_add(chunk.len() as u64, SeqCst);
        }
        stream.shutdown().await.expect("the peer is there");
        written.load(SeqCst)
    };
    let (received, written) = peers.talk(watch, write).await;
    assert_eq!(received, written);
}

async fn a_direction_ends_alone(peers: Peers) {
    let answer = async |mut stream: Box<dyn Stream>| {
        assert_eq!(receive_all(&mut stream).await, b"a question");
        assert_eq!(stream.read(&mut [0; 8]).await.expect("an end"), 0, "an end stays an end");
        send(&mut stream, b"an answer").await;
        send(&mut stream, b", and more").await;
    };
    let ask = async |mut stream: Box<dyn Stream>| {
        send(&mut stream, b"a question").await;
        stream.shutdown().await.expect("the peer is there");
        assert_eq!(receive_all(&mut stream).await, b"an answer, and more");
        let late = stream.write(b"late").await.map_err(|error| error.kind());
        assert_eq!(late, Err(ErrorKind::BrokenPipe));
    };
    peers.talk(answer, ask).await;
}

async fn connections_do_not_mix(peers: Peers) {
    const CONNECTIONS: u8 = 20;
    let listening = peers.listen().await;
    let address = listening.address.clone();
    let serve = async move {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            streams.push(listening.accept().await);
        }
        for stream in streams.iter_mut().rev() {
            let number = receive(stream, 1).await[0];
            send(stream, &[number, number ^ 0xff]).await;
        }
        streams
    };
    let server = Part::of(&peers.server, serve);
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let mut client = peers.connect(&address).output().await;
        send(&mut client, &[number]).await;
        clients.push(client);
    }
    for (client, number) in clients.iter_mut().zip(0..) {
        assert_eq!(receive(client, 2).await, [number, number ^ 0xff]);
    }
    drop(server.output().await);
}

async fn a_connection_is_made_before_it_is_accepted(peers: Peers) {
    let listening = peers.listen().await;
    let mut client = peers.connect(&listening.address).output().await;
    send(&mut client, b"early").await;
    let serve = async move { receive(&mut listening.accept().await, 5).await };
    assert_eq!(Part::of(&peers.server, serve).output().await, b"early");
}

async fn nobody_there_is_refused(peers: Peers) {
    let Listening { listener, address } = peers.listen().await;
    Part::of(&peers.server, async { drop(listener) }).output().await;
    let refused = peers.client.network.connect(&address).await.err().expect("nobody listens any more");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

async fn an_address_has_one_listener(peers: Peers) {
    let (server, requested) = (peers.server.clone(), peers.address.clone());
    let listen = async move {
        let network = &server.network;
        let listener = network.listen(&requested).await.expect("port 0 is always free");
        let address = listener.address();
        let taken = network.listen(&address).await.err().expect("the address is taken");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        let other = network.listen(&requested).await.expect("port 0 is always free");
        assert_ne!(other.address(), address, "port 0 takes a free port");
        drop(listener);
        network.listen(&address).await.expect("the address is free again");
    };
    Part::of(&peers.server, listen).output().await;
}

async fn streams_outlive_their_listener(peers: Peers) {
    let reply = async |mut stream: Box<dyn Stream>| {
        assert_eq!(receive(&mut stream, 5).await, b"still");
        send(&mut stream, b"here").await;
        stream
    };
    let ask = async |mut stream: Box<dyn Stream>| {
        send(&mut stream, b"still").await;
        assert_eq!(receive(&mut stream, 4).await, b"here");
    };
    drop(peers.talk(reply, ask).await);
}

async fn what_was_sent_arrives_before_the_end(peers: Peers) {
    let give = async |mut stream: Box<dyn Stream>| send(&mut stream, &pattern(30_000, 3)).await;
    let take = async |mut stream: Box<dyn Stream>| receive_all(&mut stream).await;
    let ((), taken) = peers.talk(give, take).await;
    assert!(taken == pattern(30_000, 3), "a dropped stream lost what it had sent");
}

async fn unread_bytes_break_the_stream(peers: Peers) {
    let leave = async |mut stream: Box<dyn Stream>| assert_eq!(receive(&mut stream, 4).await, b"read");
    let lose = async |mut stream: Box<dyn Stream>| {
        send(&mut stream, b"read, unread").await;
        let broken = stream.read(&mut [0; 8]).await.expect_err("bytes were lost, so this is no orderly end");
        assert_eq!(broken.kind(), ErrorKind::ConnectionReset);
    };
    peers.talk(leave, lose).await;
}

async fn writing_to_nobody_fails(peers: Peers) {
    let env = peers.client.clone();
    let write = async move |stream: Box<dyn Stream>| {
        let stream = tokio::sync::Mutex::new(stream);
        eventually(&env, "a write fails", async || {
            let failed = stream.lock().await.write_all(b"anybody?").await.map_err(|error| error.kind());
            assert!(
                matches!(failed, Ok(()) | Err(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)),
                "{failed:?}"
            );
            failed.is_err()
        })
        .await;
    };
    peers.talk(async |stream| drop(stream), write).await;
}

async fn malformed_addresses_are_errors(peers: Peers) {
    for address in ["", "nowhere", "localhost:", "localhost:65536", "localhost:port"] {
        assert!(peers.client.network.listen(address).await.is_err(), "listens on {address:?}");
        assert!(peers.client.network.connect(address).await.is_err(), "connects to {address:?}");
    }
}
