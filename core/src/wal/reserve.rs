//! Space for a full disk.
//!
//! A file without data holds on to some space. When the disk is full and somebody frees space, which takes some first,
//! the file is removed; it is made again when there is space. Nothing depends on its content, or on its being there
//! after a crash, so it is never synced.

use crate::env::{DiskErrorKind, DiskResult, Env, OpenMode};
use crate::error::Result;
use std::path::{Path, PathBuf};

/// The reserve's file.
pub(crate) const RESERVE: &str = "RESERVE";

/// The reserve of an open database.
pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
    is_held: bool,
    /// It was spent, or could not be made.
    was_missed: bool,
}

impl Reserve {
    /// A reserve of `bytes` that is yet to be made.
    pub(crate) fn new(path: &Path, bytes: u64) -> Self {
        Self { path: path.to_path_buf(), bytes, is_held: false, was_missed: false }
    }

    /// Gives the space back. `false` if there was none to give.
    pub(crate) async fn spend(&mut self, env: &Env) -> bool {
        self.was_missed |= self.is_held;
        std::mem::replace(&mut self.is_held, false) && env.disk.remove(&self.path).await.is_ok()
    }

    /// Takes the space, if it is not held. One that another process left is taken over.
    pub(crate) async fn restore(&mut self, env: &Env) -> Result<()> {
        if self.is_held {
            return Ok(());
        }
        if let Err(error) = self.allocate(env).await {
            let _ = env.disk.remove(&self.path).await;
            self.was_missed = true;
            return Err(error.into());
        }
        self.is_held = true;
        Ok(())
    }

    /// Whether it was spent, or could not be made, since this was asked last.
    pub(crate) fn take_missed(&mut self) -> bool {
        std::mem::replace(&mut self.was_missed, false)
    }

    async fn allocate(&self, env: &Env) -> DiskResult<()> {
        let file = match env.disk.open(&self.path, OpenMode::ReadWrite).await {
            Err(error) if error.kind == DiskErrorKind::NotFound => {
                env.disk.open(&self.path, OpenMode::CreateNew).await?
            }
            opened => opened?,
        };
        file.preallocate(self.bytes).await
    }
}
