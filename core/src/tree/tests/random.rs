//! Random sequences of changes, for many shapes of keys, values and pages.

use super::*;

/// How a sequence makes its keys and values.
#[derive(Clone, Copy, Debug)]
struct Shape {
    page_bytes: usize,
    /// Number of different keys.
    keys: u64,
    /// Changes per step, at most.
    batch: u64,
    key: fn(u64) -> Vec<u8>,
    value_bytes_max: u64,
}

/// Keys without anything in common, some of which are prefixes of others, and the empty key.
fn scattered(number: u64) -> Vec<u8> {
    let hash = xxh3_64(&number.to_le_bytes());
    if number == 0 { Vec::new() } else { hash.to_be_bytes()[..1 + (hash % 7) as usize].to_vec() }
}

/// Long runs of equal bytes: each key is a prefix of the next, or differs in its last bytes.
fn nested(number: u64) -> Vec<u8> {
    let mut key = vec![b'a'; (number / 3) as usize];
    key.extend_from_slice(&[0, 0, 0][..(number % 3) as usize]);
    key
}

/// Keys of which a few are as long as keys may be.
fn long(number: u64) -> Vec<u8> {
    let mut key = vec![b'k'; if number.is_multiple_of(5) { (1 << 16) - 8 } else { 3 }];
    key.extend_from_slice(&number.to_be_bytes());
    key
}

fn run(shape: Shape, seed: u64, steps: u64) {
    let mut numbers = Numbers(seed);
    let mut pair = Pair::new(shape.page_bytes);
    let mut value = 0_u64;
    for step in 0..steps {
        // Phases of growth and of shrinking, so that trees get tall and become empty again.
        let removes_of_ten = [1, 3, 9, 5][(step / 8 % 4) as usize];
        let clustered = numbers.below(2) == 0;
        let base = numbers.below(shape.keys);
        let mut changes = Changes::new();
        for index in 0..=numbers.below(shape.batch) {
            let number = if clustered { (base + index) % shape.keys } else { numbers.below(shape.keys) };
            let change = (numbers.below(10) >= removes_of_ten).then(|| {
                value += 1;
                let mut bytes = value.to_le_bytes().to_vec();
                let long = numbers.below(20) == 0;
                let limit = if long { shape.value_bytes_max } else { shape.value_bytes_max.min(24) };
                bytes.resize(numbers.below(limit + 1) as usize, 7);
                bytes
            });
            changes.insert((shape.key)(number), change);
        }
        pair.apply(&changes);
        for _ in 0..4 {
            let key = (shape.key)(numbers.below(shape.keys));
            assert_eq!(pair.get(&key), pair.map.get(&key).cloned(), "seed {seed}, step {step}");
        }
        if step % 4 == 0 {
            let key = (shape.key)(numbers.below(shape.keys));
            let from = [Bound::Included(&key[..]), Bound::Excluded(&key[..]), Bound::Unbounded]
                [numbers.below(3) as usize];
            let expected: Vec<_> = pair
                .map
                .range::<[u8], _>((from, Bound::Unbounded))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            assert!(pair.scan(from) == expected, "seed {seed}, step {step}: a scan from {from:?}");
        }
    }
    let all: Vec<_> = pair.map.keys().cloned().collect();
    pair.remove(all);
}

#[test]
fn random_changes_agree_with_a_map() {
    let shapes = [
        Shape { page_bytes: 256, keys: 600, batch: 40, key: numbered, value_bytes_max: 30 },
        Shape { page_bytes: 256, keys: 3000, batch: 400, key: numbered, value_bytes_max: 300 },
        Shape { page_bytes: 256, keys: 2000, batch: 100, key: scattered, value_bytes_max: 200 },
        Shape { page_bytes: 512, keys: 900, batch: 60, key: nested, value_bytes_max: 20 },
        Shape { page_bytes: 1024, keys: 2000, batch: 3, key: scattered, value_bytes_max: 2000 },
        Shape { page_bytes: 8192, keys: 4000, batch: 600, key: numbered, value_bytes_max: 4000 },
        Shape { page_bytes: 65_536, keys: 4000, batch: 2000, key: scattered, value_bytes_max: 9000 },
    ];
    for shape in shapes {
        for seed in 0..3 {
            run(shape, seed, 48);
        }
    }
}

#[test]
fn the_longest_keys_and_values_agree_with_a_map() {
    let shape = Shape { page_bytes: 256, keys: 40, batch: 12, key: long, value_bytes_max: 1 << 18 };
    for seed in 0..4 {
        run(shape, seed, 32);
        run(Shape { page_bytes: 8192, keys: 60, ..shape }, seed, 32);
    }
}
