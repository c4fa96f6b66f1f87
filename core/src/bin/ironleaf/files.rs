//! The files of a database.

use std::path::Path;

/// How many there are, and how long they are together.
#[derive(Clone, Copy, Default)]
pub struct Files {
    pub count: u64,
    pub bytes: u64,
}

/// The files whose names begin with `prefix`; what cannot be looked at counts as empty.
pub fn files(directory: &Path, prefix: &str) -> Files {
    let mut files = Files::default();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            files.count += 1;
            files.bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    files
}
