//! The laboratory's own source of pseudo-random numbers, the same on every machine and in every version.

/// SplitMix64: one word of state, full period, good enough to choose operations.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence that depends on `seed` alone.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed ^ 0x6a09_e667_f3bc_c909);
        random.next();
        random
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence of numbers, not an iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "nothing is below 0");
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `times` calls on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A number from `low` (at least 1) to `high` whose logarithm is uniform: short and long are equally likely.
    pub fn log_uniform(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low as f64, high as f64 + 1.0);
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((low.ln() + unit * (high.ln() - low.ln())).exp() as u64).clamp(low as u64, high as u64 - 1)
    }

    /// One of `choices`, which must not be empty.
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_fixed_forever() {
        let mut random = Random::new(1);
        assert_eq!([random.next(), random.next()], [0xbe2c3b00b1d348c8, 0x9b1a66a95412ff75]);
        assert_ne!(Random::new(1).next(), Random::new(2).next());
    }

    #[test]
    fn log_uniform_reaches_both_ends_and_favours_neither() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..10_000).map(|_| random.log_uniform(2, 100)).collect();
        assert!(drawn.iter().all(|n| (2..=100).contains(n)));
        assert!(drawn.contains(&2) && drawn.iter().any(|n| *n > 95));
        let below_14 = drawn.iter().filter(|n| **n < 14).count();
        assert!((4_000..6_000).contains(&below_14), "{below_14} of 10000 below the geometric mean");
    }
}
