//! One end of a stream.

use super::link::Link;
use super::pipe::{End, Head, Pipe, Room};
use bytes::Bytes;
use ironleaf::env::BoxFuture;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Both directions of a stream.
pub(super) struct Pipes([Mutex<Pipe>; 2]);

impl Pipes {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self([Mutex::default(), Mutex::default()]))
    }

    pub(super) fn each(&self, mut with: impl FnMut(&mut Pipe)) {
        for pipe in &self.0 {
            with(&mut lock(pipe));
        }
    }
}

fn lock(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end that connected, or the one that accepted.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Client,
    Server,
}

/// One end; dropping it ends the stream, in order if everything was read.
pub(super) struct SimStream {
    link: Arc<Link>,
    pipes: Arc<Pipes>,
    side: Side,
    /// Until the next segment arrives.
    arrival: Option<BoxFuture<'static, ()>>,
}

impl SimStream {
    pub(super) const fn new(link: Arc<Link>, pipes: Arc<Pipes>, side: Side) -> Self {
        Self { link, pipes, side, arrival: None }
    }

    fn incoming(&self) -> MutexGuard<'_, Pipe> {
        lock(&self.pipes.0[self.side as usize])
    }

    fn outgoing(&self) -> MutexGuard<'_, Pipe> {
        lock(&self.pipes.0[1 - self.side as usize])
    }

    /// The next bytes, `len` at most; none at the end.
    fn poll_take(&mut self, context: &mut Context<'_>, len: usize) -> Poll<io::Result<Bytes>> {
        loop {
            let mut incoming = self.incoming();
            if self.link.is_held() {
                incoming.wait_to_read(context);
                return Poll::Pending;
            }
            let due = match incoming.read(self.link.now(), len) {
                Head::Bytes(bytes) => return Poll::Ready(Ok(bytes)),
                Head::End(End::Orderly) => return Poll::Ready(Ok(Bytes::new())),
                Head::End(End::Reset) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                Head::Due(at) => Some(at),
                Head::Nothing => None,
            };
            // A cut may come before the segment does.
            incoming.wait_to_read(context);
            drop(incoming);
            let Some(at) = due else { return Poll::Pending };
            let link = &self.link;
            ready!(self.arrival.get_or_insert_with(|| link.sleep_until(at)).as_mut().poll(context));
            self.arrival = None;
        }
    }
}

impl AsyncRead for SimStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0 {
            let bytes = ready!(self.poll_take(context, buffer.remaining()))?;
            buffer.put_slice(&bytes);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let mut outgoing = self.outgoing();
        match outgoing.room(self.link.now()) {
            Room::Bytes(len) => {
                let segment = &data[..len.min(data.len())];
                if !segment.is_empty() {
                    outgoing.send(self.link.arrival("segment", segment), Bytes::copy_from_slice(segment));
                }
                Poll::Ready(Ok(segment.len()))
            }
            Room::Full => {
                outgoing.wait_to_write(context);
                Poll::Pending
            }
            Room::Broken(kind) => Poll::Ready(Err(kind.into())),
        }
    }

    /// What was written is under way.
    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut outgoing = self.outgoing();
        if let Room::Bytes(_) | Room::Full = outgoing.room(self.link.now()) {
            outgoing.end(self.link.arrival("end", &[]), End::Orderly);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        if !self.link.is_open() {
            return;
        }
        let arrival = self.link.arrival("end", &[]);
        let lost = self.incoming().abandon(arrival);
        let end = if lost { End::Reset } else { End::Orderly };
        self.outgoing().end(arrival, end);
    }
}
