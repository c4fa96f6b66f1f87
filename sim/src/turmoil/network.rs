//! The seam's streams over turmoil's TCP.

use crate::ground::Ground;
use crate::network::parse;
use ::turmoil::net::{TcpListener, TcpStream};
use ironleaf::env::{BoxFuture, Listener, Network, Stream};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The sockets of one machine. Hosts are known by name; an address of numbers is refused.
#[derive(Clone)]
pub(super) struct TcpNetwork {
    name: String,
    ground: Arc<dyn Ground>,
}

impl TcpNetwork {
    pub(super) const fn new(name: String, ground: Arc<dyn Ground>) -> Self {
        Self { name, ground }
    }

    /// turmoil has no sockets outside of a simulation.
    fn refuse_the_dead(&self) -> io::Result<()> {
        if self.ground.is_open() && ::turmoil::in_simulation() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::NotConnected, "this life of the machine has ended"))
    }
}

impl Network for TcpNetwork {
    fn listen(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        let (network, address) = (self.clone(), address.to_owned());
        Box::pin(async move {
            network.refuse_the_dead()?;
            let (host, port) = parse(&address)?;
            let ip = match host {
                "localhost" => Ipv4Addr::LOCALHOST,
                host if host == network.name => Ipv4Addr::UNSPECIFIED,
                _ => return Err(io::ErrorKind::AddrNotAvailable.into()),
            };
            let listener = TcpListener::bind((IpAddr::V4(ip), port)).await?;
            let address = format!("{host}:{}", listener.local_addr()?.port());
            Ok(Box::new(SimListener { listener, address }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let (network, address) = (self.clone(), address.to_owned());
        Box::pin(async move {
            network.refuse_the_dead()?;
            let stream = match parse(&address)? {
                ("localhost", port) => TcpStream::connect((IpAddr::V4(Ipv4Addr::LOCALHOST), port)).await?,
                (host, _) if host.parse::<IpAddr>().is_ok() => {
                    return Err(io::Error::new(io::ErrorKind::NotFound, "hosts are known by name"));
                }
                host => TcpStream::connect(host).await?,
            };
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

struct SimListener {
    listener: TcpListener,
    address: String,
}

impl Listener for SimListener {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn accept(&self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, String)>> {
        Box::pin(async {
            let (stream, peer) = self.listener.accept().await?;
            Ok((Box::new(stream) as Box<dyn Stream>, peer.to_string()))
        })
    }
}
