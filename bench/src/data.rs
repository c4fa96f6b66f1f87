//! Names, values and orders of access: the same for every engine.

/// A record: the object it belongs to and its field.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub(crate) object: u32,
    pub(crate) field: u32,
}

/// Bytes of a value.
pub(crate) const VALUE_BYTES: usize = 100;

/// A small generator of pseudo-random numbers (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// In 0..1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The zipf distribution with exponent 0.99, after Gray et al., "Quickly generating billion-record synthetic
/// databases" (1994). Ranks are scattered, so that frequent records are not neighbours.
pub(crate) struct Zipf {
    count: u64,
    alpha: f64,
    eta: f64,
    zeta: f64,
}

const THETA: f64 = 0.99;

impl Zipf {
    pub(crate) fn new(count: u64) -> Self {
        let zeta: f64 = (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum();
        let first_two = 1.0 + 0.5_f64.powf(THETA);
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - THETA)) / (1.0 - first_two / zeta);
        Self { count, alpha: 1.0 / (1.0 - THETA), eta, zeta }
    }

    pub(crate) fn pick(&self, random: &mut Random) -> u64 {
        let fraction = random.fraction();
        let scaled = fraction * self.zeta;
        let rank = if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5_f64.powf(THETA) {
            1
        } else {
            (self.count as f64 * (self.eta * fraction - self.eta + 1.0).powf(self.alpha)) as u64
        };
        mix(rank.min(self.count - 1)) % self.count
    }
}

/// Writes a prefix and eight decimal digits.
fn name(prefix: &[u8; 7], mut number: u32) -> [u8; 15] {
    let mut name = [0; 15];
    name[..7].copy_from_slice(prefix);
    for digit in name[7..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    name
}

/// The key of an object.
pub(crate) fn key(object: u32) -> [u8; 15] {
    name(b"object:", object)
}

/// The name of a field.
pub(crate) fn field(field: u32) -> [u8; 15] {
    name(b"fields:", field)
}

/// Key and field in one, for engines without objects.
#[cfg(feature = "peers")]
pub(crate) fn joined(record: Record) -> [u8; 30] {
    let mut joined = [0; 30];
    joined[..15].copy_from_slice(&key(record.object));
    joined[15..].copy_from_slice(&field(record.field));
    joined
}

/// A value that does not compress, and that differs with the record and with `version`.
pub(crate) fn value(record: Record, version: u64) -> [u8; VALUE_BYTES] {
    let mut random = Random::new((u64::from(record.object) << 32 | u64::from(record.field)) ^ mix(version));
    let mut value = [0; VALUE_BYTES];
    for part in value.chunks_mut(8) {
        part.copy_from_slice(&random.next().to_le_bytes()[..part.len()]);
    }
    value
}
