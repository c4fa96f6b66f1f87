//! Little-endian numbers and variable-length integers, read with every bound checked.

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Where decoding stopped, in bytes from the start.
    pub(crate) offset: usize,
    /// What should have been there.
    pub(crate) expected: &'static str,
}

/// Appends `value` in base 128, low groups first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Number of bytes that [`put_varint`] appends for `value`.
pub(crate) fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends `bytes` behind their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads from the front of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Bytes consumed so far.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes left.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    fn malformed(&self, expected: &'static str) -> Malformed {
        Malformed { offset: self.offset, expected }
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize, expected: &'static str) -> Result<&'a [u8], Malformed> {
        if len > self.remaining() {
            return Err(self.malformed(expected));
        }
        let taken = &self.bytes[self.offset..self.offset + len];
        self.offset += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], Malformed> {
        Ok(self.take(N, expected)?.try_into().expect("take gives the length it was asked for"))
    }

    pub(crate) fn u8(&mut self, expected: &'static str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(expected)?[0])
    }

    pub(crate) fn u64(&mut self, expected: &'static str) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array(expected)?))
    }

    /// A variable-length integer in its shortest form.
    pub(crate) fn varint(&mut self, expected: &'static str) -> Result<u64, Malformed> {
        let start = self.clone();
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8(expected)?;
            let group = u64::from(byte & 0x7f);
            if shift == 63 && group > 1 {
                return Err(start.malformed(expected));
            }
            value |= group << shift;
            if byte & 0x80 == 0 {
                let shortest = byte != 0 || shift == 0;
                return if shortest { Ok(value) } else { Err(start.malformed(expected)) };
            }
        }
        Err(start.malformed(expected))
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self, expected: &'static str) -> Result<&'a [u8], Malformed> {
        let start = self.clone();
        let len = self.varint(expected)?;
        let len = usize::try_from(len).map_err(|_| start.malformed(expected))?;
        self.take(len, expected)
    }

    /// Nothing may be left.
    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.malformed("the end")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_know_their_length() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_bytes(value));
            let mut reader = Reader::new(&out);
            assert_eq!(reader.varint("n"), Ok(value));
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn longer_than_needed_and_overflowing_varints_are_refused() {
        for bytes in [
            &[0x80, 0x00][..],
            &[0xff; 10],
            &[0x80; 11],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
        ] {
            assert!(Reader::new(bytes).varint("n").is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_length_beyond_the_end_is_refused() {
        assert_eq!(Reader::new(&[5, 1, 2]).bytes("name"), Err(Malformed { offset: 1, expected: "name" }));
    }
}
