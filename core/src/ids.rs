//! Newtypes for every number that reaches the disk.

use std::fmt;

/// A position in the one order of all commits (log sequence number). The first commit is 1; 0 is the empty database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Behind every commit.
    pub(crate) const MAX: Self = Self(u64::MAX);

    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
