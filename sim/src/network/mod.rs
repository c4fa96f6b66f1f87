//! Byte streams on a simulated machine.
//!
//! A stream is a *pipe* in each direction: segments that arrive in order, each after a latency that the choices decide,
//! and at last an end or a reset, which travel as segments do. A pipe holds so many bytes and then its writer waits.
//! Over the machine stands the *link* of all its streams: it can be held, so that nothing arrives until it is
//! released, and everything that is connected can be cut.
//!
//! Hosts have no meaning of their own yet: `a:80` and `b:80` are two addresses of the same machine. What a life has
//! connected ends with it.

mod link;
mod pipe;
mod stream;

#[cfg(test)]
mod tests;

pub(crate) use link::Link;
pub use link::NetworkHandle;

use std::io;

/// Host and port of an address.
pub(crate) fn parse(address: &str) -> io::Result<(&str, u16)> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    parts.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "an address is host:port"))
}
