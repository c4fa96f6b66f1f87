//! Scans as iterators.

use super::runtime::Runtime;
use crate::error::Result;
use crate::{Cursor, Kind};
use std::fmt;
use std::ops::ControlFlow;

/// A running scan over the fields or members of one object: an iterator over names and values (empty for members).
pub struct Scan {
    scan: crate::Scan,
    runtime: Runtime,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scan.fmt(f)
    }
}

impl Scan {
    pub(super) fn new(scan: crate::Scan, runtime: Runtime) -> Self {
        Self { scan, runtime }
    }

    /// Gives every remaining entry to `visit`, borrowed, until it breaks or the end is reached.
    pub fn visit(&mut self, visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send) -> Result<()> {
        self.runtime.wait(self.scan.for_each(visit))
    }

    /// Goes on behind what cannot be read; see [`crate::Scan::skip_damage`].
    pub fn skip_damage(&mut self) -> Result<bool> {
        self.runtime.wait(self.scan.skip_damage())
    }

    /// Where the scan is.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.scan.cursor()
    }
}

impl Iterator for Scan {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.runtime.wait(self.scan.next()).transpose()
    }
}

/// A running scan over keys: an iterator over keys and what they hold.
pub struct Keys {
    keys: crate::Keys,
    runtime: Runtime,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.keys.fmt(f)
    }
}

impl Keys {
    pub(super) fn new(keys: crate::Keys, runtime: Runtime) -> Self {
        Self { keys, runtime }
    }

    /// Goes on behind the keys that cannot be read; see [`crate::Keys::skip_damage`].
    pub fn skip_damage(&mut self) -> Result<bool> {
        self.runtime.wait(self.keys.skip_damage())
    }
}

impl Iterator for Keys {
    type Item = Result<(Vec<u8>, Kind)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.runtime.wait(self.keys.next()).transpose()
    }
}
