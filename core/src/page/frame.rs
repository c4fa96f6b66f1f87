//! The first bytes of every page.
//!
//! ```text
//!  0        4        8        12     16     24         32
//! ┌────────┬────────┬────────┬──────┬──────┬──────────┬────────┐
//! │ magic  │ format │ length │ zero │  id  │ checksum │  body  │
//! └────────┴────────┴────────┴──────┴──────┴──────────┴────────┘
//! ```
//! The checksum (xxh3, 64 bits, seeded by the database) covers everything but itself. It also stands in every
//! reference to the page, so a page that is stale or in the wrong place is noticed.

use crate::tree::{PageId, PageRef};
use xxhash_rust::xxh3::Xxh3;

/// Bytes before the body.
pub(crate) const FRAME_BYTES: usize = 32;
const MAGIC: [u8; 4] = *b"IPag";
const FORMAT: u32 = 1;

/// Fills in the frame of `image`, whose first [`FRAME_BYTES`] are free for it.
pub(crate) fn seal(image: &mut [u8], id: PageId, seed: u64) -> PageRef {
    let len = u32::try_from(image.len()).expect("pages are much shorter");
    image[..4].copy_from_slice(&MAGIC);
    image[4..8].copy_from_slice(&FORMAT.to_le_bytes());
    image[8..12].copy_from_slice(&len.to_le_bytes());
    image[12..16].fill(0);
    image[16..24].copy_from_slice(&id.0.to_le_bytes());
    let checksum = checksum(image, seed);
    image[24..32].copy_from_slice(&checksum.to_le_bytes());
    PageRef { id, checksum }
}

/// Why `image` is not the page that `page` refers to.
pub(crate) fn verify(image: &[u8], page: PageRef, seed: u64) -> Result<(), String> {
    if image.len() < FRAME_BYTES || image[..4] != MAGIC || image[4..8] != FORMAT.to_le_bytes() {
        return Err("no page frame".into());
    }
    let id = u64::from_le_bytes(image[16..24].try_into().expect("eight bytes"));
    if id != page.id.0 {
        return Err(format!("page {id}"));
    }
    let found = checksum(image, seed);
    if planted!("page-checksum-unchecked") {
        return Ok(());
    }
    if found != page.checksum || image[24..32] != found.to_le_bytes() {
        return Err(format!("checksum {found:016x}"));
    }
    Ok(())
}

/// Why `image` is not a page called `id`, by its own checksum.
pub(crate) fn verify_any(image: &[u8], id: PageId, seed: u64) -> Result<(), String> {
    if image.len() < FRAME_BYTES {
        return Err("no page frame".into());
    }
    verify(image, PageRef { id, checksum: checksum_of(image) }, seed)
}

/// The checksum that stands in the frame of a sealed page.
pub(crate) fn checksum_of(image: &[u8]) -> u64 {
    u64::from_le_bytes(image[24..FRAME_BYTES].try_into().expect("eight bytes"))
}

fn checksum(image: &[u8], seed: u64) -> u64 {
    let mut hash = Xxh3::with_seed(seed);
    hash.update(&image[..24]);
    hash.update(&image[FRAME_BYTES..]);
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_another_id_and_another_database_are_noticed() {
        let mut image = vec![0; 100];
        image[40] = 9;
        let page = seal(&mut image, PageId(5), 77);
        assert_eq!(verify(&image, page, 77), Ok(()));
        for bit in 0..image.len() * 8 {
            let mut damaged = image.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(verify(&damaged, page, 77).is_err(), "bit {bit}");
        }
        assert!(verify(&image, PageRef { id: PageId(6), ..page }, 77).is_err());
        assert!(verify(&image, page, 78).is_err());
        assert!(verify(&image[..99], page, 77).is_err());
    }
}
