//! A vector that only grows, and whose elements never move.

use crate::sync::OnceLock;
use crate::sync::atomic::{AtomicU32, Ordering};

// A model has few elements, and they should fill a bucket all the same.
const FIRST_BUCKET_BITS: u32 = if cfg!(ironleaf_loom) { 1 } else { 5 };
const BUCKETS: usize = if cfg!(ironleaf_loom) { 6 } else { 27 };

/// Append-only storage in buckets of doubling size. One writer pushes; readers index without a lock.
///
/// An index that a reader got from [`len`](Self::len), or from anything published after the push, is there.
pub(crate) struct AppendVec<T> {
    buckets: [OnceLock<Box<[OnceLock<T>]>>; BUCKETS],
    len: AtomicU32,
}

impl<T> AppendVec<T> {
    pub(crate) fn new() -> Self {
        Self { buckets: std::array::from_fn(|_| OnceLock::new()), len: AtomicU32::new(0) }
    }

    pub(crate) fn len(&self) -> u32 {
        self.len.load(Ordering::Acquire)
    }

    /// Appends `value` and gives its index. One thread at a time.
    pub(crate) fn push(&self, value: T) -> u32 {
        let index = self.len.load(Ordering::Relaxed);
        let (bucket, offset) = locate(index);
        let slots =
            self.buckets[bucket].get_or_init(|| (0..bucket_len(bucket)).map(|_| OnceLock::new()).collect());
        assert!(slots[offset].set(value).is_ok(), "one writer at a time");
        self.len.store(index + 1, release_unless!("length-published-relaxed"));
        index
    }

    /// The element at `index`, which must have been pushed.
    pub(crate) fn get(&self, index: u32) -> &T {
        let (bucket, offset) = locate(index);
        self.buckets[bucket]
            .get()
            .and_then(|slots| slots[offset].get())
            .expect("indices are published after their elements")
    }
}

fn bucket_len(bucket: usize) -> usize {
    1 << (FIRST_BUCKET_BITS as usize + bucket)
}

fn locate(index: u32) -> (usize, usize) {
    let shifted = u64::from(index) + (1 << FIRST_BUCKET_BITS);
    let bits = 63 - shifted.leading_zeros();
    ((bits - FIRST_BUCKET_BITS) as usize, (shifted - (1 << bits)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_indices_across_buckets() {
        let vec = AppendVec::new();
        for n in 0..1000u32 {
            assert_eq!(vec.push(n), n);
        }
        assert_eq!(vec.len(), 1000);
        assert!((0..1000).all(|n| *vec.get(n) == n));
    }
}
