//! The reading side of the log: what a recovery replays, and where the log ends.
//!
//! Record n stands right behind record n − 1, or at the next sector (a group was synced between them), or at the start
//! of a later segment. Where it is in none of these places the log ends, unless a valid record anywhere behind knew
//! position n durable: then record n existed for certain, and its absence is damage.

use super::segment::{MAGIC, RECORDS_START, SECTOR_BYTES, SegmentHeader, segment_name, segment_slot};
use crate::checkpoint::{MANIFEST, ManifestState};
use crate::env::{Env, File, OpenMode};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Lsn;
use crate::record::{Header, RecordReader, record_bytes};
use crate::salvage::Salvage;
use crate::sync::Arc;
use std::path::Path;

/// Reads the records of one epoch in order. Writes nothing.
pub(crate) struct Replay {
    /// Segments of the epoch that may hold records to replay, in order; those before `current` are done.
    segments: Vec<Found>,
    current: usize,
    offset: u64,
    next: Lsn,
    /// Log files of other epochs.
    others: Vec<(u64, Arc<dyn File>)>,
    files: Vec<(u64, Arc<dyn File>)>,
    /// Log files without a valid header: being made when a crash came, or damaged.
    headless: Vec<String>,
    /// The newest position that is known to have been durable, and the name of the file that says so.
    durable: (Lsn, String),
}

struct Found {
    slot: u64,
    header: SegmentHeader,
    reader: RecordReader,
}

/// One commit as the log tells it.
pub(crate) struct ReplayedRecord {
    pub(crate) lsn: Lsn,
    pub(crate) payload: Vec<u8>,
}

impl Replay {
    /// Looks at the log files among `names` and gets ready to read what goes on behind `manifest`. With `mode` read-only
    /// the files cannot be used for another log. Where the log's beginning is passed over there is nothing to read.
    pub(crate) async fn open(
        env: &Env,
        directory: &Path,
        names: &[String],
        mode: OpenMode,
        manifest: &ManifestState,
        salvage: &mut Salvage,
    ) -> Result<Self> {
        let (epoch, start) = (manifest.epoch, manifest.log);
        let mut segments = Vec::new();
        let (mut files, mut others) = (Vec::new(), Vec::new());
        let mut headless = Vec::new();
        for slot in names.iter().filter_map(|name| segment_slot(name)) {
            let (file, header) = match open_segment(env, directory, slot, mode).await {
                Ok(opened) => opened,
                // If it is needed, it is missed further on.
                Err(error) => {
                    salvage.pass_over(error)?;
                    continue;
                }
            };
            if header.is_some_and(|header| header.database != manifest.database) {
                continue;
            }
            if header.is_some_and(|header| header.epoch != epoch) {
                others.push((slot, file));
                continue;
            }
            files.push((slot, file.clone()));
            if planted!("full-disk-leaves-log") && header.is_none() {
                return Err(Error::corruption(segment_name(slot), 0, "the header of a segment", "none"));
            }
            let Some(header) = header else {
                headless.push(segment_name(slot));
                continue;
            };
            if header.manifest_edit > manifest.edit {
                salvage.pass_over(Error::incomplete(
                    MANIFEST,
                    format!("edit {}, which {} knew durable", header.manifest_edit, segment_name(slot)),
                    format!("edit {} as the last", manifest.edit),
                ))?;
            }
            if header.index >= start.segment {
                let len = file.len().await?;
                let mut reader = RecordReader::new(file, len.min(header.bytes), header.binding());
                // A crash may take the length of a segment that was being made, but not of one that is in use: one that
                // the manifest names, or that holds records.
                let is_short = len < header.bytes && !planted!("short-segment-is-the-end");
                if is_short
                    && (header.index == start.segment
                        || reader.find_from(RECORDS_START, |_| true).await?.is_some())
                {
                    let expected = format!("{} bytes", header.bytes);
                    let found = format!("{len} bytes");
                    salvage.pass_over(Error::corruption(segment_name(slot), len, expected, found))?;
                }
                segments.push(Found { slot, header, reader });
            }
        }
        segments.sort_by_key(|found| found.header.index);
        if segments.first().map(|found| found.header.index) != Some(start.segment) {
            let expected = format!("segment {} of epoch {epoch}, which the manifest names", start.segment);
            let found = format!("none{}", without_header(&headless));
            if !planted!("lost-log-unnoticed") {
                salvage.pass_over(Error::incomplete("the log", expected, found))?;
            }
            segments.clear();
        }
        let known_durable =
            if planted!("end-of-log-ignored") { Lsn::default() } else { manifest.log_durable };
        Ok(Self {
            segments,
            current: 0,
            offset: start.offset,
            next: manifest.lsn.next(),
            others,
            files,
            headless,
            durable: (known_durable, MANIFEST.to_owned()),
        })
    }

    /// Whether any log file in a directory without a manifest holds a commit.
    pub(crate) async fn holds_records(env: &Env, directory: &Path, names: &[String]) -> Result<bool> {
        for slot in names.iter().filter_map(|name| segment_slot(name)) {
            let file = env.disk.open(&directory.join(segment_name(slot)), OpenMode::Read).await?;
            let Some(header) = read_header(&file, slot).await? else { continue };
            let len = file.len().await?;
            let mut reader = RecordReader::new(file, len.min(header.bytes), header.binding());
            if reader.find_from(RECORDS_START, |_| true).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Log files that later attempts to open left: of another epoch, and younger than each file of this one. Older ones
    /// may still be what a manifest names whose replacement was never synced.
    pub(crate) fn take_leavings(&mut self) -> Vec<u64> {
        let newest = self.segments.iter().map(|found| found.slot).max();
        let (young, old) =
            std::mem::take(&mut self.others).into_iter().partition(|(slot, _)| Some(*slot) > newest);
        self.others = old;
        let young: Vec<(u64, Arc<dyn File>)> = young;
        young.into_iter().map(|(slot, _)| slot).collect()
    }

    /// The file of the newest segment, for the planted bug that writes over it.
    pub(crate) fn newest_file(&self) -> Option<(u64, Arc<dyn File>)> {
        let newest = self.segments.last()?.slot;
        self.files.iter().find(|(slot, _)| *slot == newest).cloned()
    }

    /// The log files that nothing needs once the state that was recovered is durable.
    pub(crate) fn into_files(self) -> Vec<(u64, Arc<dyn File>)> {
        self.files.into_iter().chain(self.others).collect()
    }

    /// The next record, or `None` at the end of the log.
    pub(crate) async fn next(&mut self) -> Result<Option<ReplayedRecord>> {
        if self.segments.is_empty() {
            return Ok(None);
        }
        let located = match self.locate().await? {
            None if planted!("log-damage-skipped") => {
                let (segment, last) = (self.current, self.next.0);
                let behind = |header: &Header| header.sequence > last;
                let found = self.segments[segment].reader.find_from(self.offset, behind).await?;
                found.map(|(offset, header)| {
                    self.next = Lsn(header.sequence);
                    (segment, offset, header)
                })
            }
            located => located,
        };
        let Some((segment, offset, header)) = located else {
            self.probe_for_damage().await?;
            return Ok(None);
        };
        let payload = self.segments[segment].reader.payload(offset, &header).to_vec();
        let lsn = self.next;
        self.current = segment;
        self.offset = offset + record_bytes(header.payload_bytes);
        self.next = lsn.next();
        if header.durable > self.durable.0.0 {
            self.durable = (Lsn(header.durable), segment_name(self.segments[segment].slot));
        }
        Ok(Some(ReplayedRecord { lsn, payload }))
    }

    /// Finds record `next` in one of the places where it may stand.
    async fn locate(&mut self) -> Result<Option<(usize, u64, Header)>> {
        let here = [self.offset, self.offset.next_multiple_of(SECTOR_BYTES)];
        let behind = (self.current + 1..self.segments.len()).map(|segment| (segment, RECORDS_START));
        for (segment, offset) in here.map(|offset| (self.current, offset)).into_iter().chain(behind) {
            let reader = &mut self.segments[segment].reader;
            if let Some(header) = reader.record_at(offset).await?
                && header.sequence == self.next.0
            {
                return Ok(Some((segment, offset, header)));
            }
        }
        Ok(None)
    }

    /// An error if the manifest, or a record at or behind the end of the log, knew that the log goes on.
    async fn probe_for_damage(&mut self) -> Result<()> {
        let missing = self.next;
        if self.durable.0 >= missing {
            return Err(self.damage(&self.durable.1, self.durable.0));
        }
        for segment in self.current..self.segments.len() {
            let from = if segment == self.current { self.offset } else { RECORDS_START };
            let knew = |header: &Header| header.durable >= missing.0;
            let found = self.segments[segment].reader.find_from(from, knew).await?;
            if let Some((_, header)) = found {
                return Err(self.damage(&segment_name(self.segments[segment].slot), Lsn(header.durable)));
            }
        }
        Ok(())
    }

    fn damage(&self, witness: &str, durable: Lsn) -> Error {
        Error::corruption(
            segment_name(self.segments[self.current].slot),
            self.offset,
            format!("record {} ({witness} knew record {durable} durable)", self.next),
            format!("no valid record{}", without_header(&self.headless)),
        )
    }
}

/// What an error says of log files that have no valid header: what is missed may be there.
fn without_header(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(", and no valid header in {}", names.join(", ")) }
}

/// A log file, and its header if it has one.
async fn open_segment(
    env: &Env,
    directory: &Path,
    slot: u64,
    mode: OpenMode,
) -> Result<(Arc<dyn File>, Option<SegmentHeader>)> {
    let file = env.disk.open(&directory.join(segment_name(slot)), mode).await?;
    let header = read_header(&file, slot).await?;
    Ok((file, header))
}

/// The header of a log file, if it has one.
async fn read_header(file: &Arc<dyn File>, slot: u64) -> Result<Option<SegmentHeader>> {
    let len = file.len().await?.min(RECORDS_START);
    let sectors = file.read_at(0, len as usize).await?;
    SegmentHeader::decode(&sectors).map_err(|format| {
        let name = segment_name(slot);
        Error::new(
            ErrorKind::UnsupportedVersion,
            format!(
                "{name} has format {}; this version reads format {}; open it with the version that wrote it",
                format.found, format.supported
            ),
        )
    })
}

/// What a file that is called like a segment can be the leaving of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// A segment: it begins like one.
    Segment,
    /// A segment into which nothing has been written yet, or of whose header power loss destroyed one sector and did
    /// not keep the other.
    Nothing,
    /// Something else.
    Foreign,
}

/// Looks at a file that is called like a segment.
pub(crate) async fn leaving(file: &Arc<dyn File>) -> Result<Leaving> {
    let len = file.len().await?;
    let sectors = file.read_at(0, len.min(RECORDS_START) as usize).await?;
    if sectors.chunks(SECTOR_BYTES as usize).any(|sector| sector.starts_with(&MAGIC)) {
        return Ok(Leaving::Segment);
    }
    let is_unused = sectors.iter().take(MAGIC.len()).all(|byte| *byte == 0);
    let is_nothing = is_unused || (len >= RECORDS_START && is_zero(file, SECTOR_BYTES, len).await?);
    Ok(if is_nothing { Leaving::Nothing } else { Leaving::Foreign })
}

async fn is_zero(file: &Arc<dyn File>, from: u64, to: u64) -> Result<bool> {
    const PIECE_BYTES: u64 = 64 << 10;
    let mut at = from;
    while at < to {
        let end = to.min(at + PIECE_BYTES);
        if file.read_at(at, (end - at) as usize).await?.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at = end;
    }
    Ok(true)
}
