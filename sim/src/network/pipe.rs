//! One direction of a stream.

use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::task::{Context, Waker};
use std::time::Duration;

/// How many bytes may be under way or unread before the writer waits.
const BYTES_MAX: usize = 64 << 10;

/// How much one segment carries.
const SEGMENT_BYTES_MAX: usize = 16 << 10;

/// One direction: its segments, and how it ends. Times are those of the machine's clock.
#[derive(Default)]
pub(super) struct Pipe {
    segments: VecDeque<(Duration, Bytes)>,
    bytes: usize,
    /// When the last thing that was sent arrives; what is sent next arrives no earlier.
    last_arrival: Duration,
    end: Option<(Duration, End)>,
    /// When the writer learns that nobody reads any more.
    abandoned: Option<Duration>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What stands behind the last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The writer has said all.
    Orderly,
    /// The stream broke.
    Reset,
}

/// What a reader finds at the head of a pipe.
pub(super) enum Head {
    Bytes(Bytes),
    End(End),
    /// It arrives then.
    Due(Duration),
    Nothing,
}

/// What a writer finds at the tail of a pipe.
pub(super) enum Room {
    Bytes(usize),
    Full,
    Broken(io::ErrorKind),
}

impl Pipe {
    /// What the reader gets `now`, `len` bytes at most.
    pub(super) fn read(&mut self, now: Duration, len: usize) -> Head {
        let Some((arrival, bytes)) = self.segments.front_mut() else {
            return match self.end {
                Some((arrival, end)) if arrival <= now => Head::End(end),
                Some((arrival, _)) => Head::Due(arrival),
                None => Head::Nothing,
            };
        };
        if *arrival > now {
            return Head::Due(*arrival);
        }
        let taken = bytes.split_to(len.min(bytes.len()));
        if !bytes.has_remaining() {
            self.segments.pop_front();
        }
        self.bytes -= taken.len();
        wake(&mut self.writer);
        Head::Bytes(taken)
    }

    /// How much the writer may send `now`.
    pub(super) fn room(&self, now: Duration) -> Room {
        match (self.end, self.abandoned) {
            (Some((_, End::Orderly)), _) => Room::Broken(io::ErrorKind::BrokenPipe),
            (Some((_, End::Reset)), _) => Room::Broken(io::ErrorKind::ConnectionReset),
            (None, Some(known)) if known <= now => Room::Broken(io::ErrorKind::BrokenPipe),
            // It does not know yet, and what it sends is lost; but time may stand still, so not without bound.
            (None, Some(_)) if self.bytes >= BYTES_MAX => Room::Broken(io::ErrorKind::BrokenPipe),
            (None, None) if self.bytes >= BYTES_MAX => Room::Full,
            (None, _) => Room::Bytes(SEGMENT_BYTES_MAX.min(BYTES_MAX - self.bytes)),
        }
    }

    /// Puts a segment behind the others.
    pub(super) fn send(&mut self, arrival: Duration, bytes: Bytes) {
        self.bytes += bytes.len();
        if self.abandoned.is_some() {
            return;
        }
        self.last_arrival = self.last_arrival.max(arrival);
        self.segments.push_back((self.last_arrival, bytes));
        wake(&mut self.reader);
    }

    /// Ends the pipe, unless it has ended; a reset overtakes an orderly end that is under way.
    pub(super) fn end(&mut self, arrival: Duration, end: End) {
        if self.end.is_none_or(|(_, before)| before == End::Orderly && end == End::Reset) {
            self.last_arrival = self.last_arrival.max(arrival);
            self.end = Some((self.last_arrival, end));
        }
        wake(&mut self.reader);
        wake(&mut self.writer);
    }

    /// The reader is gone; `true` if that lost bytes.
    pub(super) fn abandon(&mut self, known: Duration) -> bool {
        self.abandoned = Some(known);
        self.bytes = 0;
        wake(&mut self.writer);
        !mem::take(&mut self.segments).is_empty()
    }

    /// Breaks the pipe at once: what is under way is lost.
    pub(super) fn cut(&mut self, now: Duration) {
        self.segments.clear();
        self.bytes = 0;
        self.last_arrival = now;
        self.end(now, End::Reset);
    }

    pub(super) fn wait_to_read(&mut self, context: &Context<'_>) {
        self.reader = Some(context.waker().clone());
    }

    pub(super) fn wait_to_write(&mut self, context: &Context<'_>) {
        self.writer = Some(context.waker().clone());
    }

    pub(super) fn wake_reader(&mut self) {
        wake(&mut self.reader);
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
