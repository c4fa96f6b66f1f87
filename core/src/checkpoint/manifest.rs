//! The manifest: which pages are the database, and where the log goes on from there.
//!
//! ```text
//! header, one sector:
//!  0         8        12     16         32      40           48    52
//! ┌─────────┬────────┬──────┬──────────┬───────┬────────────┬─────┬──────┐
//! │ magic   │ format │ zero │ database │ epoch │ generation │ crc │ zero │
//! └─────────┴────────┴──────┴──────────┴───────┴────────────┴─────┴──────┘
//! then edits, one record each, at multiples of 512:
//! edit  ┌───────────────┬──────────┬─────────────┬──────────────┬───────────┬─────────────┬─────────┬─────┐
//!       │ root u8 [id,  │ lsn      │ log durable │ log segment, │ next page │ removed: n, │ added:  │ end │
//!       │ checksum u64] │ (varint) │ lsn, u64    │ offset       │ segment   │ n ids       │ n pages │     │
//!       └───────────────┴──────────┴─────────────┴──────────────┴───────────┴─────────────┴─────────┴─────┘
//! page  id, segment, offset, length (varints)
//! ```
//! The first edit of a file is complete; each later one is a change. An edit is appended only when the one before is
//! durable, so a valid edit behind an invalid one is proof of damage. The file is replaced by renaming a new, synced
//! one over it.

use crate::codec::{Malformed, Reader, put_varint};
use crate::env::{DiskErrorKind, Env, File, OpenMode};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Lsn;
use crate::page::Location;
use crate::record::{self, Binding, RecordReader};
use crate::salvage::Salvage;
use crate::sync::Arc;
use crate::tree::{PageId, PageRef};
use crate::wal::LogPosition;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The manifest's file.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// Its successor, until it is renamed.
pub(crate) const MANIFEST_NEW: &str = "MANIFEST.new";

const MAGIC: [u8; 8] = *b"IronLeaf";
/// The format of the whole directory.
const FORMAT: u32 = 1;
const SECTOR_BYTES: u64 = 512;
const HEADER_CRC: usize = 48;
/// Space is reserved in multiples of this.
const RESERVED_BYTES: u64 = 4096;

/// One step from one durable state to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ManifestEdit {
    pub(crate) catalog: Option<PageRef>,
    /// Every commit up to here is in the pages.
    pub(crate) lsn: Lsn,
    /// The log was durable up to here: a replay that ends earlier has met damage.
    pub(crate) log_durable: Lsn,
    /// Where replay goes on.
    pub(crate) log: LogPosition,
    pub(crate) next_page_segment: u64,
    pub(crate) removed: Vec<PageId>,
    pub(crate) added: Vec<(PageId, Location)>,
}

/// What a manifest amounts to.
#[derive(Debug)]
pub(crate) struct ManifestState {
    pub(crate) database: [u8; 16],
    pub(crate) epoch: u64,
    /// Number of the last edit.
    pub(crate) edit: u64,
    pub(crate) catalog: Option<PageRef>,
    pub(crate) lsn: Lsn,
    pub(crate) log_durable: Lsn,
    pub(crate) log: LogPosition,
    pub(crate) next_page_segment: u64,
    pub(crate) pages: BTreeMap<PageId, Location>,
}

/// The open manifest.
pub(crate) struct Manifest {
    env: Env,
    directory: PathBuf,
    database: [u8; 16],
    epoch: u64,
    binding: Binding,
    file: Arc<dyn File>,
    offset: u64,
    /// The file has space up to here, whatever becomes of the disk.
    reserved: u64,
    /// Length of the first, complete edit.
    first_bytes: u64,
    /// Number of the last edit.
    edit: u64,
    /// The last edit without its pages.
    last: ManifestEdit,
}

impl ManifestEdit {
    fn without_changes(&self) -> Self {
        Self { removed: Vec::new(), added: Vec::new(), ..*self }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 2 * self.removed.len() + 10 * self.added.len());
        match self.catalog {
            None => out.push(0),
            Some(root) => {
                out.push(1);
                out.extend_from_slice(&root.id.0.to_le_bytes());
                out.extend_from_slice(&root.checksum.to_le_bytes());
            }
        }
        put_varint(&mut out, self.lsn.0);
        // Of a fixed length: it may grow between the reserving of space and the writing.
        out.extend_from_slice(&self.log_durable.0.to_le_bytes());
        for number in [self.log.segment, self.log.offset, self.next_page_segment] {
            put_varint(&mut out, number);
        }
        put_varint(&mut out, self.removed.len() as u64);
        for id in &self.removed {
            put_varint(&mut out, id.0);
        }
        put_varint(&mut out, self.added.len() as u64);
        for (id, location) in &self.added {
            for number in [id.0, location.segment, location.offset, u64::from(location.len)] {
                put_varint(&mut out, number);
            }
        }
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let catalog = match reader.u8("a root")? {
            0 => None,
            1 => Some(PageRef { id: PageId(reader.u64("a page id")?), checksum: reader.u64("a checksum")? }),
            _ => return Err(Malformed { offset: 0, expected: "a root or none" }),
        };
        let lsn = Lsn(reader.varint("a position")?);
        let log_durable = Lsn(reader.u64("a position")?);
        let log = LogPosition { segment: reader.varint("a segment")?, offset: reader.varint("an offset")? };
        let next_page_segment = reader.varint("a segment")?;
        let mut edit = Self { catalog, lsn, log_durable, log, next_page_segment, ..Self::default() };
        for _ in 0..reader.varint("a count")? {
            edit.removed.push(PageId(reader.varint("a page id")?));
        }
        for _ in 0..reader.varint("a count")? {
            let id = PageId(reader.varint("a page id")?);
            let segment = reader.varint("a segment")?;
            let offset = reader.varint("an offset")?;
            let start = reader.offset();
            let len = u32::try_from(reader.varint("a length")?)
                .map_err(|_| Malformed { offset: start, expected: "a length below 4 GiB" })?;
            edit.added.push((id, Location { segment, offset, len }));
        }
        reader.finish()?;
        Ok(edit)
    }
}

impl ManifestState {
    fn apply(&mut self, number: u64, edit: ManifestEdit) {
        self.edit = number;
        self.catalog = edit.catalog;
        self.lsn = edit.lsn;
        self.log_durable = edit.log_durable;
        self.log = edit.log;
        self.next_page_segment = edit.next_page_segment;
        for id in edit.removed {
            self.pages.remove(&id);
        }
        self.pages.extend(edit.added);
    }

    /// The segments that the pages are in.
    pub(crate) fn page_segments(&self) -> BTreeSet<u64> {
        self.pages.values().map(|location| location.segment).collect()
    }

    /// Reads the manifest in `directory`; `None` if there is none. Writes nothing. Where edits are passed over it is the
    /// state before them.
    pub(crate) async fn read(env: &Env, directory: &Path, salvage: &mut Salvage) -> Result<Option<Self>> {
        let new = if planted!("new-manifest-considered") {
            Self::read_file(env, &directory.join(MANIFEST_NEW), salvage).await?
        } else {
            None
        };
        if new.is_some() {
            return Ok(new);
        }
        let read = Self::read_file(env, &directory.join(MANIFEST), salvage).await;
        if planted!("empty-manifest-is-new") && read.is_err() {
            return Ok(None);
        }
        read
    }

    /// Whether a file that is called like a new manifest can be the leaving of an interrupted creation.
    pub(crate) async fn may_be_leaving(file: &Arc<dyn File>) -> Result<bool> {
        record::is_unused_or_begins_with(file, MAGIC).await
    }

    async fn read_file(env: &Env, path: &Path, salvage: &mut Salvage) -> Result<Option<Self>> {
        let file = match env.disk.open(path, OpenMode::Read).await {
            Ok(file) => file,
            Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let len = file.len().await?;
        let sector = file.read_at(0, len.min(SECTOR_BYTES) as usize).await?;
        let name = &path.file_name().unwrap_or(path.as_os_str()).display();
        let (mut state, binding) = decode_header(path, &sector)?;
        let mut reader = RecordReader::new(file, len, binding);
        let mut offset = SECTOR_BYTES;
        let mut next = None;
        loop {
            let found = reader.record_at(offset).await?;
            let Some(header) = found.filter(|header| next.is_none_or(|next| header.sequence == next)) else {
                break;
            };
            let edit = ManifestEdit::decode(reader.payload(offset, &header)).map_err(|malformed| {
                Error::corruption(name, offset + malformed.offset as u64, malformed.expected, "other bytes")
            })?;
            state.apply(header.sequence, edit);
            offset = (offset + record::record_bytes(header.payload_bytes)).next_multiple_of(SECTOR_BYTES);
            next = Some(header.sequence + 1);
        }
        let behind =
            reader.find_from(offset, |header| next.is_none_or(|next| header.sequence >= next)).await?;
        let Some(next) = next else {
            return Err(Error::corruption(name, offset, "the first edit", "no valid record"));
        };
        if let Some((_, later)) = behind {
            let expected = format!("edit {next} (edit {} stands behind it)", later.sequence);
            salvage.pass_over(Error::corruption(name, offset, expected, "no valid record"))?;
        }
        Ok(Some(state))
    }
}

fn encode_header(database: [u8; 16], epoch: u64, generation: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(SECTOR_BYTES as usize);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&database);
    out.extend_from_slice(&epoch.to_le_bytes());
    out.extend_from_slice(&generation.to_le_bytes());
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out.resize(SECTOR_BYTES as usize, 0);
    out
}

fn decode_header(path: &Path, sector: &[u8]) -> Result<(ManifestState, Binding)> {
    let place = &path.display();
    let name = &path.file_name().unwrap_or(path.as_os_str()).display();
    if sector.len() < 8 || sector[..8] != MAGIC {
        let message = format!(
            "{place} is not a manifest of Ironleaf's: choose another directory or, if this was a database, restore it from a copy"
        );
        return Err(if sector.is_empty() {
            Error::corruption(name, 0, "a manifest", "an empty file")
        } else {
            Error::new(ErrorKind::NotADatabase, message)
        });
    }
    if sector.len() < SECTOR_BYTES as usize {
        return Err(Error::corruption(name, 0, "a header of 512 bytes", format!("{} bytes", sector.len())));
    }
    let u32_at = |at: usize| u32::from_le_bytes(sector[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("eight bytes"));
    let damaged =
        |at: usize, expected: String, found: String| Error::corruption(name, at as u64, expected, found);
    if u32_at(8) != FORMAT {
        // Another format may have its checksum elsewhere. If it is this one's that fits, only the number is damaged.
        let mut repaired = sector[..HEADER_CRC].to_vec();
        repaired[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        if crc32c::crc32c(&repaired) == u32_at(HEADER_CRC) {
            return Err(damaged(8, format!("format {FORMAT}"), format!("format {}", u32_at(8))));
        }
        return Err(Error::new(
            ErrorKind::UnsupportedVersion,
            format!(
                "{place} has format {}; this version reads format {FORMAT}; open it with the version that wrote it",
                u32_at(8)
            ),
        ));
    }
    let crc = crc32c::crc32c(&sector[..HEADER_CRC]);
    if crc != u32_at(HEADER_CRC) {
        let found = format!("{:08x}", u32_at(HEADER_CRC));
        return Err(damaged(HEADER_CRC, format!("checksum {crc:08x}"), found));
    }
    let database = sector[16..32].try_into().expect("sixteen bytes");
    let (epoch, generation) = (u64_at(32), u64_at(40));
    let state = ManifestState {
        database,
        epoch,
        edit: 0,
        catalog: None,
        lsn: Lsn(0),
        log_durable: Lsn(0),
        log: LogPosition::default(),
        next_page_segment: 0,
        pages: BTreeMap::new(),
    };
    Ok((state, Binding::new(database, epoch, generation)))
}

impl Manifest {
    /// Replaces the manifest in `directory` by one whose only edit is `edit`, number `number`. Durable when this
    /// returns.
    pub(crate) async fn replace(
        env: &Env,
        directory: &Path,
        (database, epoch): ([u8; 16], u64),
        number: u64,
        edit: &ManifestEdit,
    ) -> Result<Self> {
        let (path, path_new) = (directory.join(MANIFEST), directory.join(MANIFEST_NEW));
        match env.disk.remove(&path_new).await {
            Err(error) if error.kind != DiskErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let (file, binding, offset) =
            match Self::write_new(env, &path_new, (database, epoch), number, edit).await {
                Ok(written) => written,
                Err(error) => {
                    // Nothing names it: it must not take space from those who free some.
                    let _ = env.disk.remove(&path_new).await;
                    return Err(error);
                }
            };
        env.point("manifest synced").await;
        env.disk.rename(&path_new, &path).await?;
        // From here on the old file has no name. An error leaves open which of the two a crash brings back.
        let unsettled = |error| Error::from(error).of_unsettled_change();
        if !planted!("rename-without-directory-sync") {
            env.disk.sync_dir(directory).await.map_err(unsettled)?;
        }
        // Errors name the file by the path that it was opened at; but the handle that wrote it serves as well.
        let file = env.disk.open(&path, OpenMode::ReadWrite).await.unwrap_or(file);
        Ok(Self {
            env: env.clone(),
            directory: directory.to_path_buf(),
            database,
            epoch,
            binding,
            file,
            offset,
            reserved: offset,
            first_bytes: offset,
            edit: number,
            last: edit.without_changes(),
        })
    }

    /// Writes and syncs the file that is to become the manifest; returns it, and where the next edit goes.
    async fn write_new(
        env: &Env,
        path: &Path,
        (database, epoch): ([u8; 16], u64),
        number: u64,
        edit: &ManifestEdit,
    ) -> Result<(Arc<dyn File>, Binding, u64)> {
        let file = env.disk.open(path, OpenMode::CreateNew).await?;
        let generation = env.random_u64();
        let binding = Binding::new(database, epoch, generation);
        let mut bytes = encode_header(database, epoch, generation);
        record::encode(&mut bytes, binding, SECTOR_BYTES, number, number - 1, &edit.encode());
        let offset = (bytes.len() as u64).next_multiple_of(SECTOR_BYTES);
        file.write_at(0, bytes.into()).await?;
        let skip_sync =
            (planted!("first-manifest-not-synced") || planted!("empty-manifest-is-new")) && number == 1;
        if !skip_sync {
            file.sync_data().await?;
        }
        Ok((file, binding, offset))
    }

    /// Number of the last edit.
    pub(crate) fn edit(&self) -> u64 {
        self.edit
    }

    /// The last edit without its pages: appended again it would change nothing.
    pub(crate) fn last(&self) -> &ManifestEdit {
        &self.last
    }

    /// Makes sure of space for `edit`, or one that is shorter. A full disk is noticed here, before anything is at stake.
    pub(crate) async fn reserve(&mut self, edit: &ManifestEdit) -> Result<()> {
        let end = self.offset + record::record_bytes(edit.encode().len());
        if end > self.reserved {
            let reserved = end.next_multiple_of(RESERVED_BYTES);
            self.file.preallocate(reserved).await?;
            self.reserved = reserved;
        }
        Ok(())
    }

    /// Appends an edit. Durable when this returns.
    pub(crate) async fn append(&mut self, edit: &ManifestEdit) -> Result<()> {
        let mut bytes = Vec::new();
        record::encode(&mut bytes, self.binding, self.offset, self.edit + 1, self.edit, &edit.encode());
        let next = (self.offset + bytes.len() as u64).next_multiple_of(SECTOR_BYTES);
        self.file.write_at(self.offset, bytes.into()).await?;
        self.env.point("manifest edit written").await;
        self.file.sync_data().await?;
        self.offset = next;
        self.edit += 1;
        self.last = edit.without_changes();
        Ok(())
    }

    /// Whether the file has grown so far beyond a complete edit that it should be rewritten.
    pub(crate) fn is_long(&self, allowance: u64) -> bool {
        self.offset > 2 * self.first_bytes + allowance
    }

    /// Rewrites the file as one complete edit. After `DiskFull` the old file is as it was.
    pub(crate) async fn rewrite(&mut self, edit: &ManifestEdit) -> Result<()> {
        reached!("manifest rewritten");
        let identity = (self.database, self.epoch);
        *self = Self::replace(&self.env, &self.directory, identity, self.edit + 1, edit).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ManifestEdit {
        ManifestEdit {
            catalog: Some(PageRef { id: PageId(3), checksum: 77 }),
            lsn: Lsn(1000),
            log_durable: Lsn(1003),
            log: LogPosition { segment: 2, offset: 4096 },
            next_page_segment: 9,
            removed: vec![PageId(1), PageId(200)],
            added: vec![(PageId(3), Location { segment: 8, offset: 512, len: 8000 })],
        }
    }

    #[test]
    fn edits_round_trip() {
        for edit in [ManifestEdit::default(), sample()] {
            assert_eq!(ManifestEdit::decode(&edit.encode()), Ok(edit));
        }
    }

    #[test]
    fn truncated_edits_and_edits_with_a_trailing_byte_are_refused() {
        let whole = sample().encode();
        for len in 0..whole.len() {
            assert!(ManifestEdit::decode(&whole[..len]).is_err(), "cut at {len}");
        }
        assert!(ManifestEdit::decode(&[whole, vec![0]].concat()).is_err());
    }

    #[test]
    fn a_header_of_another_format_is_named() {
        let mut header = encode_header([1; 16], 1, 2);
        assert!(decode_header(Path::new("m"), &header).is_ok());
        header[8] = 2;
        let error = decode_header(Path::new("m"), &header).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "a number that is damaged is none");
        header[HEADER_CRC] ^= 1;
        let error = decode_header(Path::new("m"), &header).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
        assert!(error.to_string().contains("format 2"));
    }
}
