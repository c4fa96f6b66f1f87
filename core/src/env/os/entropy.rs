use crate::env::Entropy;
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

/// The kernel's random numbers.
pub(super) struct OsEntropy;

impl Entropy for OsEntropy {
    /// # Panics
    /// If the kernel has no `getrandom` (Linux before 3.17).
    fn fill(&self, bytes: &mut [u8]) {
        let mut filled = 0;
        while filled < bytes.len() {
            filled += retry_on_intr(|| getrandom(&mut bytes[filled..], GetRandomFlags::empty()))
                .expect("the kernel hands out random numbers");
        }
    }
}
