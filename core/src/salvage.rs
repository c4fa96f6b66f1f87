//! What to do about damage that is met while a directory is opened.

use crate::error::{Error, Result};

/// Refuses damage, or passes over it and keeps count.
pub(crate) struct Salvage {
    passes_over: bool,
    /// What was passed over, in the order met.
    pub(crate) left_out: Vec<Error>,
}

impl Salvage {
    /// Every damage is an error.
    pub(crate) fn refusing() -> Self {
        Self { passes_over: false, left_out: Vec::new() }
    }

    /// Damage is passed over.
    pub(crate) fn passing_over() -> Self {
        Self { passes_over: true, left_out: Vec::new() }
    }

    /// Keeps count of damage that stands in the way of nothing yet.
    pub(crate) fn note(&mut self, error: Error) {
        if self.passes_over {
            self.left_out.push(error);
        }
    }

    /// Goes on without what `error` is about, or gives it back.
    pub(crate) fn pass_over(&mut self, error: Error) -> Result<()> {
        if !self.passes_over || !error.is_damage() {
            return Err(error);
        }
        self.left_out.push(error);
        Ok(())
    }
}
