//! What all streams of one life of a machine share: who listens where, and whether anything arrives.

use super::parse;
use super::stream::{Pipes, Side, SimStream};
use crate::executor::EventKind;
use crate::ground::Ground;
use ironleaf::env::{BoxFuture, Listener, Network, Stream};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// How long a segment usually travels.
const LATENCY: Duration = Duration::from_micros(50);

/// The first port that is given out for port 0.
const FREE_PORT: u16 = 49_152;

/// The network of one life.
pub(crate) struct Link {
    me: Weak<Self>,
    ground: Arc<dyn Ground>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: bool,
    /// Connects that wait for the release.
    waiting: Vec<Waker>,
    listeners: BTreeMap<String, Backlog>,
    ports: u16,
    streams: Vec<Weak<Pipes>>,
}

/// Connections that were made and not yet accepted, each with its peer's address.
#[derive(Default)]
struct Backlog {
    connections: VecDeque<(SimStream, String)>,
    acceptor: Option<Waker>,
}

impl Link {
    pub(crate) fn new(ground: Arc<dyn Ground>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { me: Weak::clone(me), ground, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn me(&self) -> Arc<Self> {
        self.me.upgrade().expect("whoever calls holds the link")
    }

    pub(super) fn is_open(&self) -> bool {
        self.ground.is_open()
    }

    pub(super) fn is_held(&self) -> bool {
        self.lock().held
    }

    pub(super) fn now(&self) -> Duration {
        self.ground.now()
    }

    pub(super) fn sleep_until(&self, at: Duration) -> BoxFuture<'static, ()> {
        self.ground.sleep(at.saturating_sub(self.now()))
    }

    /// When what is sent now arrives.
    pub(super) fn arrival(&self, what: &str, bytes: &[u8]) -> Duration {
        let latency = self.ground.latency(what, LATENCY);
        let words =
            [xxh3_64(bytes), bytes.len() as u64, u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)];
        self.ground.record(EventKind::Send, words, &|| format!("sends {what} {} ({latency:?})", bytes.len()));
        self.now() + latency
    }

    fn poll_released(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if !state.held {
            return Poll::Ready(());
        }
        state.waiting.push(context.waker().clone());
        Poll::Pending
    }

    fn bind(&self, address: &str) -> io::Result<Box<dyn Listener>> {
        let (host, port) = parse(address)?;
        let mut state = self.lock();
        let port = match port {
            0 => state.free_port(host)?,
            port => port,
        };
        let address = format!("{host}:{port}");
        if state.listeners.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.listeners.insert(address.clone(), Backlog::default());
        drop(state);
        Ok(Box::new(SimListener { link: self.me(), address }))
    }

    /// Connects the two ends, if somebody listens.
    fn join(&self, address: &str) -> io::Result<Box<dyn Stream>> {
        let (host, _) = parse(address)?;
        let mut state = self.lock();
        let peer = format!("{host}:{}", state.free_port(host)?);
        let backlog = state.listeners.get_mut(address).ok_or(io::ErrorKind::ConnectionRefused)?;
        let pipes = Pipes::new();
        let server = SimStream::new(self.me(), Arc::clone(&pipes), Side::Server);
        backlog.connections.push_back((server, peer));
        if let Some(acceptor) = backlog.acceptor.take() {
            acceptor.wake();
        }
        state.streams.retain(|stream| stream.strong_count() > 0);
        state.streams.push(Arc::downgrade(&pipes));
        drop(state);
        Ok(Box::new(SimStream::new(self.me(), pipes, Side::Client)))
    }

    /// Lets nothing arrive, or lets it arrive again.
    fn set_held(&self, held: bool) {
        let mut state = self.lock();
        state.held = held;
        let (waiting, streams) = (std::mem::take(&mut state.waiting), state.streams());
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        for stream in streams {
            stream.each(|pipe| pipe.wake_reader());
        }
    }

    fn cut(&self) {
        let streams = self.lock().streams();
        for stream in streams {
            stream.each(|pipe| pipe.cut(self.now()));
        }
    }
}

impl State {
    /// The next port of `host` that nobody listens on.
    fn free_port(&mut self, host: &str) -> io::Result<u16> {
        for _ in FREE_PORT..=u16::MAX {
            let port = FREE_PORT + self.ports;
            self.ports = (self.ports + 1) % (u16::MAX - FREE_PORT);
            if !self.listeners.contains_key(&format!("{host}:{port}")) {
                return Ok(port);
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    fn streams(&self) -> Vec<Arc<Pipes>> {
        self.streams.iter().filter_map(Weak::upgrade).collect()
    }
}

fn refusal() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "this life of the machine has ended")
}

impl Network for Link {
    fn listen(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        let bound = if self.is_open() { self.bind(address) } else { Err(refusal()) };
        Box::pin(async { bound })
    }

    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        if !self.is_open() {
            return Box::pin(async { Err(refusal()) });
        }
        let (link, address) = (self.me(), address.to_owned());
        let arrival = self.arrival("connect", address.as_bytes());
        Box::pin(async move {
            link.sleep_until(arrival).await;
            poll_fn(|context| link.poll_released(context)).await;
            link.join(&address)
        })
    }
}

struct SimListener {
    link: Arc<Link>,
    address: String,
}

impl Listener for SimListener {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, String)>> {
        Box::pin(poll_fn(|context| {
            let mut state = self.link.lock();
            let backlog = state.listeners.get_mut(&self.address).expect("a listener has its backlog");
            match backlog.connections.pop_front() {
                Some((stream, peer)) => Poll::Ready(Ok((Box::new(stream) as Box<dyn Stream>, peer))),
                None => {
                    backlog.acceptor = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        }))
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let backlog = self.link.lock().listeners.remove(&self.address);
        // Dropped without the lock: the streams in it end, which records events.
        drop(backlog);
    }
}

/// The test's side of a life's network.
#[derive(Clone)]
pub struct NetworkHandle {
    link: Arc<Link>,
}

impl fmt::Debug for NetworkHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkHandle").field("held", &self.link.is_held()).finish()
    }
}

impl NetworkHandle {
    pub(crate) const fn new(link: Arc<Link>) -> Self {
        Self { link }
    }

    /// From now on nothing arrives: a partition. Writers go on until their buffer is full.
    pub fn hold(&self) {
        self.link.set_held(true);
    }

    /// Heals the partition: what was sent arrives.
    pub fn release(&self) {
        self.link.set_held(false);
    }

    /// Breaks every stream: both ends see a reset, and what was under way is lost.
    pub fn cut(&self) {
        self.link.cut();
    }
}
