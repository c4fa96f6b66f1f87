//! Ranges of names.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// Two ends of a range of names, owned.
pub(super) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A range of fields or members: `..`, `"a".."m"`, `start..`, `..=end`, or a pair of [`Bound`]s, of anything that is
/// bytes. A range whose start is behind its end is empty.
pub trait NameRange {
    /// Start and end.
    fn into_bounds(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>);
}

impl NameRange for RangeFull {
    fn into_bounds(self) -> Bounds {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<N: AsRef<[u8]>> NameRange for Range<N> {
    fn into_bounds(self) -> Bounds {
        (Bound::Included(owned(self.start)), Bound::Excluded(owned(self.end)))
    }
}

impl<N: AsRef<[u8]>> NameRange for RangeInclusive<N> {
    fn into_bounds(self) -> Bounds {
        let (start, end) = self.into_inner();
        (Bound::Included(owned(start)), Bound::Included(owned(end)))
    }
}

impl<N: AsRef<[u8]>> NameRange for RangeFrom<N> {
    fn into_bounds(self) -> Bounds {
        (Bound::Included(owned(self.start)), Bound::Unbounded)
    }
}

impl<N: AsRef<[u8]>> NameRange for RangeTo<N> {
    fn into_bounds(self) -> Bounds {
        (Bound::Unbounded, Bound::Excluded(owned(self.end)))
    }
}

impl<N: AsRef<[u8]>> NameRange for RangeToInclusive<N> {
    fn into_bounds(self) -> Bounds {
        (Bound::Unbounded, Bound::Included(owned(self.end)))
    }
}

impl<N: AsRef<[u8]>, M: AsRef<[u8]>> NameRange for (Bound<N>, Bound<M>) {
    fn into_bounds(self) -> Bounds {
        (self.0.map(owned), self.1.map(owned))
    }
}

fn owned(name: impl AsRef<[u8]>) -> Vec<u8> {
    name.as_ref().to_vec()
}

/// Whether `name` lies below a range that starts with `from`.
pub(super) fn is_before(name: &[u8], from: &Bound<Vec<u8>>) -> bool {
    match from {
        Bound::Included(from) => name < &from[..],
        Bound::Excluded(from) => name <= &from[..],
        Bound::Unbounded => false,
    }
}

/// Whether `name` lies above a range that ends with `to`.
pub(super) fn is_after(name: &[u8], to: &Bound<Vec<u8>>) -> bool {
    match to {
        Bound::Included(to) => name > &to[..],
        Bound::Excluded(to) => name >= &to[..],
        Bound::Unbounded => false,
    }
}

/// Whether there is no name between `from` and `to`.
pub(super) fn is_empty_range(from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
        _ => false,
    }
}

pub(super) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(name) => Bound::Included(name),
        Bound::Excluded(name) => Bound::Excluded(name),
        Bound::Unbounded => Bound::Unbounded,
    }
}
