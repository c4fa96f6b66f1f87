//! Reads records from a file through a bounded window.

use super::frame::{self, ALIGNMENT, Binding, HEADER_BYTES, Header};
use crate::env::{DiskResult, File};
use crate::error::Result;
use crate::sync::Arc;

const WINDOW_BYTES: u64 = 256 << 10;

/// A file of records. Holds one window of it in memory, as long as the longest record that passed for one.
pub(crate) struct RecordReader {
    file: Arc<dyn File>,
    len: u64,
    binding: Binding,
    window: Vec<u8>,
    window_offset: u64,
}

impl RecordReader {
    /// Reads the first `len` bytes of `file`, which must exist.
    pub(crate) fn new(file: Arc<dyn File>, len: u64, binding: Binding) -> Self {
        Self { file, len, binding, window: Vec::new(), window_offset: 0 }
    }

    /// Makes `len` bytes at `offset` available; the caller has checked that they are within the file.
    async fn fill(&mut self, offset: u64, len: u64) -> DiskResult<()> {
        let end = self.window_offset + self.window.len() as u64;
        if offset >= self.window_offset && offset + len <= end {
            return Ok(());
        }
        let wanted = len.max(WINDOW_BYTES).min(self.len - offset);
        self.window = self.file.read_at(offset, wanted as usize).await?;
        self.window_offset = offset;
        Ok(())
    }

    fn bytes(&self, offset: u64, len: u64) -> &[u8] {
        let start = (offset - self.window_offset) as usize;
        &self.window[start..start + len as usize]
    }

    /// The record at `offset`, if a valid one stands there.
    pub(crate) async fn record_at(&mut self, offset: u64) -> DiskResult<Option<Header>> {
        let Some(room) = self.len.checked_sub(offset).filter(|room| *room >= HEADER_BYTES as u64) else {
            return Ok(None);
        };
        self.fill(offset, HEADER_BYTES as u64).await?;
        let Some(header) =
            frame::parse_header(self.bytes(offset, HEADER_BYTES as u64), self.binding, offset, room)
        else {
            return Ok(None);
        };
        let total = HEADER_BYTES as u64 + header.payload_bytes as u64;
        self.fill(offset, total).await?;
        let valid = frame::verify(self.bytes(offset, total), &header, self.binding, offset).is_some();
        Ok(valid.then_some(header))
    }

    /// The payload of the record that [`record_at`](Self::record_at) has just found at `offset`.
    pub(crate) fn payload(&self, offset: u64, header: &Header) -> &[u8] {
        self.bytes(offset + HEADER_BYTES as u64, header.payload_bytes as u64)
    }

    /// The first valid record at or behind `from`, at any aligned position, that is `wanted`.
    pub(crate) async fn find_from(
        &mut self,
        from: u64,
        wanted: impl Fn(&Header) -> bool,
    ) -> DiskResult<Option<(u64, Header)>> {
        let mut offset = from.next_multiple_of(ALIGNMENT);
        while offset + HEADER_BYTES as u64 <= self.len {
            self.fill(offset, HEADER_BYTES as u64).await?;
            let start = (offset - self.window_offset) as usize;
            let Some(found) = frame::find_magic(&self.window[start..]) else {
                // The last bytes of the window may begin a record that goes on behind it.
                let end = self.window_offset + self.window.len() as u64;
                offset = (offset + ALIGNMENT).max((end - HEADER_BYTES as u64) / ALIGNMENT * ALIGNMENT);
                continue;
            };
            offset += found as u64;
            if offset.is_multiple_of(ALIGNMENT) {
                if let Some(header) = self.record_at(offset).await?
                    && wanted(&header)
                {
                    return Ok(Some((offset, header)));
                }
                offset += ALIGNMENT;
            } else {
                offset = offset.next_multiple_of(ALIGNMENT);
            }
        }
        Ok(None)
    }
}

/// Whether a file holds nothing yet where its magic would be, or the magic.
pub(crate) async fn is_unused_or_begins_with(file: &Arc<dyn File>, magic: [u8; 8]) -> Result<bool> {
    let len = file.len().await?.min(magic.len() as u64);
    let start = file.read_at(0, len as usize).await?;
    Ok(start == magic || start.iter().all(|byte| *byte == 0))
}
