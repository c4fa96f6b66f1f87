//! The log: every commit in order, before anything else knows of it.
//!
//! A log is a sequence of segment files of equal size, preallocated and recycled. Positions ([`Lsn`](crate::Lsn)) are
//! given under one short lock, the lock of the [`Tail`], after space for the record is certain. A write or a sync is
//! one for everyone who waits, and goes on with whoever is polled ([`Joint`](crate::joint::Joint)).
//!
//! **Invariant:** a sector that was synced is never written again: a group that is synced is followed by a jump to the
//! next sector. Power loss may destroy a sector in flight, and must not take acknowledged records with it.
//!
//! **Invariant:** a sync covers every older unsynced byte first, earlier segments included.

mod log;
mod replay;
mod reserve;
mod segment;

pub(crate) use log::{Log, LogPosition, Room, prepare_segment};
pub(crate) use replay::{Leaving, Replay, leaving};
pub(crate) use reserve::RESERVE;
pub(crate) use segment::{RECORDS_START, Segment, SegmentHeader, segment_name, segment_slot};
