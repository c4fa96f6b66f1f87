//! LEB128 numbers of up to 32 bits.

/// The number at the start of `bytes` and the bytes it takes; `None` if it is cut off or does not fit.
#[inline]
pub(super) fn read(bytes: &[u8]) -> Option<(usize, usize)> {
    match bytes.first() {
        Some(&first) if first < 0x80 => Some((first as usize, 1)),
        _ => read_long(bytes),
    }
}

fn read_long(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0_u64;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            return u32::try_from(number).ok().map(|number| (number as usize, index + 1));
        }
    }
    None
}

/// Appends `number`.
///
/// # Panics
/// If it has more than 32 bits.
#[inline]
pub(super) fn write(bytes: &mut Vec<u8>, number: usize) {
    let mut rest = u32::try_from(number).expect("lengths within a page fit 32 bits");
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Bytes that [`write`] takes for `number`.
#[inline]
pub(super) fn len(number: usize) -> usize {
    (usize::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_the_length_announced() {
        for number in [0, 1, 127, 128, 16_383, 16_384, 262_144, 1 << 28, u32::MAX as usize] {
            let mut bytes = Vec::new();
            write(&mut bytes, number);
            assert_eq!(bytes.len(), len(number), "{number}");
            assert_eq!(read(&bytes), Some((number, bytes.len())));
            assert_eq!(read(&bytes[..bytes.len() - 1]), None, "a number that is cut off");
        }
    }

    #[test]
    fn numbers_over_32_bits_are_refused() {
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x1f]), None);
        assert_eq!(read(&[0x80; 8]), None);
    }
}
