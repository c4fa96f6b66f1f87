//! One file of the log.
//!
//! ```text
//! header, one sector, and a second copy of it in the next:
//!  0         8        12       16         32      40      48           56      64              72    76
//! ┌─────────┬────────┬────────┬──────────┬───────┬───────┬────────────┬───────┬───────────────┬─────┬──────┐
//! │ magic   │ format │ zero   │ database │ epoch │ index │ generation │ bytes │ manifest edit │ crc │ zero │
//! └─────────┴────────┴────────┴──────────┴───────┴───────┴────────────┴───────┴───────────────┴─────┴──────┘
//! then records from offset 1024.
//! ```
//! `index` orders the segments of an epoch. `generation` is random and new each time the file is used, so records of
//! an earlier use cannot come alive. `manifest edit` was known durable when the header was written: a manifest that
//! ends earlier has lost edits.

use crate::env::File;
use crate::ids::{file_name, file_number};
use crate::record::Binding;
use crate::sync::Arc;
use bytes::Bytes;

/// Power loss writes a sector whole or not at all.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// Where records begin: behind the two copies of the header.
pub(crate) const RECORDS_START: u64 = 2 * SECTOR_BYTES;
pub(crate) const MAGIC: [u8; 8] = *b"IronLog\n";
const FORMAT: u32 = 1;
const HEADER_CRC: usize = 72;

/// A segment that another version wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownFormat {
    pub(crate) found: u32,
    pub(crate) supported: u32,
}

/// What the first sector of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) database: [u8; 16],
    pub(crate) epoch: u64,
    pub(crate) index: u64,
    pub(crate) generation: u64,
    pub(crate) bytes: u64,
    pub(crate) manifest_edit: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(SECTOR_BYTES as usize);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.database);
        for number in [self.epoch, self.index, self.generation, self.bytes, self.manifest_edit] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.resize(SECTOR_BYTES as usize, 0);
        out.extend_from_within(..);
        out.into()
    }

    /// The header that the two first sectors of a segment hold. `None` if neither is whole: the file never was a
    /// segment, or its header was in flight when power was lost. Where they differ, the write that made them was in
    /// flight, and there is no record of the newer one yet: the newer one counts.
    pub(crate) fn decode(sectors: &[u8]) -> Result<Option<Self>, UnknownFormat> {
        let mut newest: Option<Self> = None;
        for sector in sectors.chunks(SECTOR_BYTES as usize) {
            let Some(header) = Self::decode_copy(sector)? else { continue };
            if newest.is_none_or(|newest| newest.index < header.index) {
                newest = Some(header);
            }
        }
        Ok(newest)
    }

    fn decode_copy(sector: &[u8]) -> Result<Option<Self>, UnknownFormat> {
        let Some(header) = sector.get(..HEADER_CRC + 4) else { return Ok(None) };
        let is_whole = crc32c::crc32c(&header[..HEADER_CRC]).to_le_bytes() == header[HEADER_CRC..];
        if header[..8] != MAGIC || !is_whole {
            return Ok(None);
        }
        let format = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        if format != FORMAT {
            return Err(UnknownFormat { found: format, supported: FORMAT });
        }
        let u64_at = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        Ok(Some(Self {
            database: header[16..32].try_into().expect("sixteen bytes"),
            epoch: u64_at(32),
            index: u64_at(40),
            generation: u64_at(48),
            bytes: u64_at(56),
            manifest_edit: u64_at(64),
        }))
    }

    pub(crate) fn binding(&self) -> Binding {
        Binding::new(self.database, self.epoch, self.generation)
    }
}

/// A segment that is being written, or that waits to be.
pub(crate) struct Segment {
    /// Names the file.
    pub(crate) slot: u64,
    /// Its place in the order of the epoch.
    pub(crate) index: u64,
    pub(crate) bytes: u64,
    pub(crate) binding: Binding,
    pub(crate) file: Arc<dyn File>,
}

const PREFIX: &str = "log-";

/// The file of slot `slot`.
pub(crate) fn segment_name(slot: u64) -> String {
    file_name(PREFIX, slot)
}

/// The slot whose file is called `name`.
pub(crate) fn segment_slot(name: &str) -> Option<u64> {
    file_number(PREFIX, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_round_trips_and_any_flipped_bit_of_it_is_noticed() {
        let header = SegmentHeader {
            database: [3; 16],
            epoch: 1,
            index: 2,
            generation: 3,
            bytes: 4096,
            manifest_edit: 5,
        };
        let sectors = header.encode();
        assert_eq!(sectors.len() as u64, RECORDS_START);
        assert_eq!(SegmentHeader::decode(&sectors), Ok(Some(header)));
        for bit in (0..12 * 8).chain(16 * 8..76 * 8) {
            let mut damaged = sectors.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&damaged), Ok(Some(header)), "one copy is enough; bit {bit}");
            damaged[SECTOR_BYTES as usize + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&damaged), Ok(None), "bit {bit}");
        }
    }

    #[test]
    fn of_two_headers_the_newer_counts_and_another_format_is_named() {
        let older = SegmentHeader {
            database: [3; 16],
            epoch: 1,
            index: 2,
            generation: 3,
            bytes: 4096,
            manifest_edit: 5,
        };
        let newer = SegmentHeader { index: 7, generation: 4, ..older };
        let sector = SECTOR_BYTES as usize;
        for (first, second) in [(older, newer), (newer, older)] {
            let mixed = [&first.encode()[..sector], &second.encode()[sector..]].concat();
            assert_eq!(SegmentHeader::decode(&mixed), Ok(Some(newer)));
        }
        let mut other = older.encode().to_vec();
        other[8] = 9;
        let crc = crc32c::crc32c(&other[..HEADER_CRC]).to_le_bytes();
        other[HEADER_CRC..HEADER_CRC + 4].copy_from_slice(&crc);
        assert_eq!(SegmentHeader::decode(&other), Err(UnknownFormat { found: 9, supported: FORMAT }));
    }

    #[test]
    fn only_names_that_slots_give_are_segments() {
        assert_eq!(segment_slot(&segment_name(0x1f)), Some(0x1f));
        for name in ["log-1f", "log-0000001F", "log-", "pages-00000001", "log-00000001.tmp"] {
            assert_eq!(segment_slot(name), None, "{name}");
        }
    }
}
