//! Newtypes for every number that reaches the disk, and the names of numbered files.

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

/// The name of a numbered file.
pub(crate) fn file_name(prefix: &str, number: u64) -> String {
    format!("{prefix}{number:08x}")
}

/// The number of the file that [`file_name`] calls `name`. Nobody gets as far as half of all numbers: a name beyond is
/// not ours, and the number after it always exists.
pub(crate) fn file_number(prefix: &str, name: &str) -> Option<u64> {
    let number = u64::from_str_radix(name.strip_prefix(prefix)?, 16).ok()?;
    (number < u64::MAX / 2 && file_name(prefix, number) == name).then_some(number)
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
