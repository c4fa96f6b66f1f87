//! The frame of one record, shared by the log and the manifest.
//!
//! ```text
//!  0        4        8                16               24       28       32
//! ┌────────┬────────┬────────────────┬────────────────┬────────┬────────┬─────────┬─────────────┐
//! │ magic  │ length │    sequence    │    durable     │  crc   │ header │ payload │ zeros to 8  │
//! └────────┴────────┴────────────────┴────────────────┴────────┴────────┴─────────┴─────────────┘
//! ```
//! `length` counts the payload. `durable` is the newest sequence number that was known durable when the record was
//! written: a later record that knew `durable >= n` proves that an unreadable record n is damage and not an unfinished
//! tail. The checksum `crc` (crc32c) covers length, sequence, durable and payload; `header` covers the header alone, so
//! that bytes which a user stored cannot make a reader trust a length. Both are bound to the database, the epoch, the
//! generation of the file and the record's offset in it, so the bytes of another place or of an earlier use of the
//! file never pass for a record.

/// Records start at multiples of this.
pub(crate) const ALIGNMENT: u64 = 8;
/// Bytes before the payload.
pub(crate) const HEADER_BYTES: usize = 32;
const MAGIC: [u8; 4] = *b"IRec";

/// What a checksum is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding(u32);

impl Binding {
    pub(crate) fn new(database: [u8; 16], epoch: u64, generation: u64) -> Self {
        let seed = crc32c::crc32c(&database);
        let seed = crc32c::crc32c_append(seed, &epoch.to_le_bytes());
        Self(crc32c::crc32c_append(seed, &generation.to_le_bytes()))
    }

    fn checksum(self, offset: u64, covered: &[u8], payload: &[u8]) -> u32 {
        let sum = crc32c::crc32c_append(self.0, &offset.to_le_bytes());
        crc32c::crc32c_append(crc32c::crc32c_append(sum, covered), payload)
    }
}

/// A record that passed its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) payload_bytes: usize,
    pub(crate) sequence: u64,
    pub(crate) durable: u64,
    checksum: u32,
}

/// Bytes that a record with such a payload takes, padding included.
pub(crate) fn record_bytes(payload_bytes: usize) -> u64 {
    ((HEADER_BYTES + payload_bytes) as u64).next_multiple_of(ALIGNMENT)
}

/// Appends a record that will stand at `offset` of its file.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    binding: Binding,
    offset: u64,
    sequence: u64,
    durable: u64,
    payload: &[u8],
) {
    debug_assert!(offset.is_multiple_of(ALIGNMENT), "records are aligned");
    let start = out.len();
    let len = u32::try_from(payload.len()).expect("payloads are bounded by the segment");
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&durable.to_le_bytes());
    let checksum = binding.checksum(offset, &out[start + 4..start + 24], payload);
    out.extend_from_slice(&checksum.to_le_bytes());
    let header = binding.checksum(offset, &out[start..start + 28], &[]);
    out.extend_from_slice(&header.to_le_bytes());
    out.extend_from_slice(payload);
    out.resize(start + record_bytes(payload.len()) as usize, 0);
}

/// The header that `bytes`, which stand at `offset`, begin with; `None` if they cannot begin a record of at most
/// `bytes_max` bytes.
pub(crate) fn parse_header(bytes: &[u8], binding: Binding, offset: u64, bytes_max: u64) -> Option<Header> {
    if bytes.len() < HEADER_BYTES || bytes[..4] != MAGIC {
        return None;
    }
    if binding.checksum(offset, &bytes[..28], &[]).to_le_bytes() != bytes[28..32] {
        return None;
    }
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let header = Header {
        payload_bytes: u32_at(4) as usize,
        sequence: u64_at(8),
        durable: u64_at(16),
        checksum: u32_at(24),
    };
    (record_bytes(header.payload_bytes) <= bytes_max).then_some(header)
}

/// Offset of the first bytes that look like the start of a record.
pub(crate) fn find_magic(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, &MAGIC)
}

/// The payload of the record whose header and payload `bytes` begin with, if its checksum holds at `offset`.
pub(crate) fn verify<'a>(
    bytes: &'a [u8],
    header: &Header,
    binding: Binding,
    offset: u64,
) -> Option<&'a [u8]> {
    let payload = bytes.get(HEADER_BYTES..HEADER_BYTES + header.payload_bytes)?;
    let is_whole = binding.checksum(offset, &bytes[4..24], payload) == header.checksum;
    (is_whole || planted!("torn-tail-decoded")).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], binding: Binding, offset: u64) -> Option<(Header, Vec<u8>)> {
        let header = parse_header(bytes, binding, offset, bytes.len() as u64)?;
        Some((header, verify(bytes, &header, binding, offset)?.to_vec()))
    }

    #[test]
    fn a_record_is_valid_only_in_its_own_place_and_generation() {
        let binding = Binding::new([7; 16], 3, 99);
        let mut out = Vec::new();
        encode(&mut out, binding, 512, 41, 40, b"payload");
        assert_eq!(out.len() as u64, record_bytes(7));
        let (header, payload) = decode(&out, binding, 512).unwrap();
        assert_eq!((header.sequence, header.durable, payload.as_slice()), (41, 40, &b"payload"[..]));
        assert_eq!(decode(&out, binding, 520), None);
        assert_eq!(decode(&out, Binding::new([7; 16], 3, 98), 512), None);
        assert_eq!(decode(&out, Binding::new([7; 16], 2, 99), 512), None);
        assert_eq!(decode(&out, Binding::new([8; 16], 3, 99), 512), None);
    }

    #[test]
    fn any_flipped_bit_and_any_cut_is_noticed() {
        let binding = Binding::new([1; 16], 1, 1);
        let mut out = Vec::new();
        encode(&mut out, binding, 0, 1, 0, b"12345678");
        for bit in 0..out.len() * 8 {
            let mut damaged = out.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&damaged, binding, 0), None, "bit {bit}");
        }
        for len in 0..out.len() {
            assert_eq!(decode(&out[..len], binding, 0), None, "cut at {len}");
        }
    }
}
