//! Streams over TCP.

use crate::env::{BoxFuture, Listener, Network, Stream};
use std::future::Future;
use std::io;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

/// This machine's sockets, registered with a tokio runtime.
pub(super) struct OsNetwork {
    runtime: Handle,
}

impl OsNetwork {
    pub(super) const fn new(runtime: Handle) -> Self {
        Self { runtime }
    }

    /// On the runtime, so that the caller may wait from outside of it; and a runtime without an I/O driver becomes an
    /// error of the call.
    fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> BoxFuture<'static, io::Result<T>> {
        let task = self.runtime.spawn(call);
        Box::pin(async move { task.await.map_err(io::Error::other)? })
    }
}

impl Network for OsNetwork {
    fn listen(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        let address = address.to_owned();
        self.run(async move {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?.to_string();
            Ok(Box::new(OsListener { listener, address }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let address = address.to_owned();
        self.run(async move { prompt(TcpStream::connect(address).await?) })
    }
}

struct OsListener {
    listener: TcpListener,
    address: String,
}

impl Listener for OsListener {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, String)>> {
        Box::pin(async move {
            let (stream, peer) = self.listener.accept().await?;
            Ok((prompt(stream)?, peer.to_string()))
        })
    }
}

/// Requests and replies are written whole: holding back the last segment would only delay them.
fn prompt(stream: TcpStream) -> io::Result<Box<dyn Stream>> {
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}
