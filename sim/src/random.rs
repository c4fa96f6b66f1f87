//! The laboratory's own random numbers: integer arithmetic only, so a seed means the same on every machine.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that is determined by `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`; 0 if `limit` is 0. (Multiply and shift: the bias is below 2⁻³² for small limits.)
    pub const fn below(&mut self, limit: u64) -> u64 {
        ((self.next_u64() as u128 * limit as u128) >> 64) as u64
    }

    /// `true` in `numerator` of `denominator` cases.
    pub const fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Log-uniform in `1..=max`: every power of two is as likely as any other.
    pub const fn log_uniform(&mut self, max: u64) -> u64 {
        if max <= 1 {
            return 1;
        }
        let octave = 1 << self.below(max.ilog2() as u64 + 1);
        let value = octave + self.below(octave);
        if value > max { max } else { value }
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}
