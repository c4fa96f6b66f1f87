//! Byte streams between machines.

use super::BoxFuture;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

/// A two-way byte stream.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Listens and connects. Addresses are `host:port`.
pub trait Network: Send + Sync {
    /// Starts to listen on `address`; port 0 takes a free one.
    fn listen(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Listener>>>;
    /// Connects to `address`.
    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;
}

/// Accepts connections.
pub trait Listener: Send + Sync {
    /// The address that peers connect to.
    fn address(&self) -> String;
    /// Waits for the next connection; gives the stream and the peer's address.
    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, String)>>;
}

/// A machine without a network: every call is refused with `Unsupported`.
#[derive(Clone, Copy, Debug)]
pub struct NoNetwork;

impl NoNetwork {
    fn refusal() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "this environment has no network")
    }
}

impl Network for NoNetwork {
    fn listen(&self, _address: &str) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        Box::pin(async { Err(Self::refusal()) })
    }

    fn connect(&self, _address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        Box::pin(async { Err(Self::refusal()) })
    }
}
