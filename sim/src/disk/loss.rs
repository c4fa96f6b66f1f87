//! What a power loss keeps of what is pending.
//!
//! Pending changes are taken apart into units that the medium keeps or loses on their own: the data of one write, the
//! length it set, one operation on directory entries. A class of outcome decides the units in broad strokes; details
//! follow as further picks. Counting backwards from the newest unit keeps a recorded pick meaningful when older
//! operations are removed.

use super::content::{Content, sectors};
use super::tree::{Directory, FileChange, FileState, Inode, Node};
use super::volume::VolumeState;
use crate::choices::{Choices, Site};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The classes of outcome, by pick at the choice "class"; the names are those of [`Machine::losses`].
///
/// [`Machine::losses`]: crate::machine::Machine::losses
pub const CLASSES: [&str; 14] = [
    "kept_all",
    "dropped_all",
    "one_dropped",
    "one_kept",
    "prefix",
    "inversion",
    "scattered",
    "torn",
    "entries_dropped",
    "lengths_dropped",
    "sectors_scattered",
    "in_flight_dropped",
    "sector_destroyed",
    "subset",
];

/// What a sector holds that power loss has destroyed: neither what was written nor what had been there.
pub(super) const DESTROYED: [u8; super::content::SECTOR_BYTES as usize] =
    [0xa5; super::content::SECTOR_BYTES as usize];

/// What a power loss did, for digest and trace.
pub(crate) struct Struck {
    pub(crate) class: u64,
    /// Hash of what was kept of each unit.
    pub(crate) kept: u64,
    /// One line for each unit that was not kept whole.
    pub(crate) lines: Vec<String>,
}

enum Place {
    File(Arc<Inode>),
    Directory(Arc<Directory>),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum UnitKind {
    Data,
    Length,
    Entry,
}

struct Unit {
    /// When it completed; the units of one operation have this in common.
    order: u64,
    kind: UnitKind,
    /// Index of the file or directory among the places.
    place: usize,
    /// Index among the pending changes of its place.
    event: usize,
    /// Sectors that it touches, if it is data.
    sectors: usize,
    in_flight: bool,
    kept: bool,
    /// Which sectors are kept, where a write is kept in part.
    torn: Option<Vec<bool>>,
    /// Which sector was being written when the power went, and is destroyed.
    destroyed: Option<usize>,
}

/// Decides what is kept of everything pending, and makes that the state of the disk.
pub(super) fn strike(state: &mut VolumeState, choices: &Choices, traced: bool) -> Struck {
    let places = places_below(&state.root);
    let mut units = units_of(&places);
    choices.set_actor("machine", None);
    let class = choices.pick(Site::PowerLoss, "class", CLASSES.len() as u64);
    if !units.is_empty() {
        decide(class, &mut units, &places, choices);
    }
    let mut changed = Changes::default();
    // Entries first: an operation that loses its predecessor on the same name is lost with it.
    for (index, place) in places.iter().enumerate() {
        let mine = units.iter_mut().filter(|unit| unit.place == index);
        match place {
            Place::Directory(directory) => changed.entries |= settle_directory(directory, mine),
            Place::File(inode) => {
                let mine: Vec<&Unit> = mine.map(|unit| &*unit).collect();
                let mut file = inode.lock();
                let diverged = file.diverged;
                let (content, length) = settle_file(&mut file, &mine);
                changed.failed_sync |= content && diverged;
                changed.torn |= content && mine.iter().any(|unit| unit.torn.is_some());
                changed.content |= content;
                changed.lengths |= length;
            }
        }
    }
    count(state, class, &units, &changed);
    let kept: Vec<u8> = units
        .iter()
        .map(|unit| {
            u8::from(unit.kept) + 2 * u8::from(unit.torn.is_some()) + 4 * u8::from(unit.destroyed.is_some())
        })
        .collect();
    let lines = if traced { describe(&units, &places) } else { Vec::new() };
    Struck { class, kept: xxh3_64(&kept), lines }
}

#[derive(Default)]
struct Changes {
    entries: bool,
    content: bool,
    lengths: bool,
    torn: bool,
    /// A file lost what a failed sync had left readable.
    failed_sync: bool,
}

fn count(state: &mut VolumeState, class: u64, units: &[Unit], changed: &Changes) {
    let any = changed.entries || changed.content;
    if (class == 0 && !units.is_empty()) || (class != 0 && any) {
        state.count(CLASSES[usize::try_from(class).unwrap_or(0)]);
    }
    for (happened, name) in [
        (changed.failed_sync, "failed_sync"),
        (changed.entries, "entry_lost"),
        (changed.lengths, "length_lost"),
        (changed.torn && class != 7, "torn"),
        (units.iter().any(|unit| unit.in_flight && unit.kept), "in_flight_kept"),
        (any && units.iter().any(|unit| unit.in_flight && !unit.kept), "in_flight_lost"),
    ] {
        if happened {
            state.count(name);
        }
    }
}

/// Every file and directory that something pending may concern, by id.
fn places_below(root: &Arc<Directory>) -> Vec<Place> {
    fn visit(node: &Node, places: &mut BTreeMap<u64, Place>) {
        match node {
            Node::File(inode) => {
                places.entry(inode.id).or_insert_with(|| Place::File(Arc::clone(inode)));
            }
            Node::Directory(directory) => {
                if places.insert(directory.id, Place::Directory(Arc::clone(directory))).is_some() {
                    return;
                }
                let state = directory.lock();
                let pending = state.pending.iter().filter_map(|event| event.change.node());
                for node in state.durable.values().chain(state.current.values()).chain(pending) {
                    visit(node, places);
                }
            }
        }
    }
    let mut places = BTreeMap::new();
    visit(&Node::Directory(Arc::clone(root)), &mut places);
    places.into_values().collect()
}

/// Everything pending, the oldest first.
fn units_of(places: &[Place]) -> Vec<Unit> {
    let mut units = Vec::new();
    for (place, at) in places.iter().enumerate() {
        match at {
            Place::File(inode) => {
                for (event, pending) in inode.lock().pending.iter().enumerate() {
                    let (kind, touched) = match &pending.change {
                        FileChange::Data { offset, bytes } => {
                            (UnitKind::Data, sectors(*offset, bytes.len()).count())
                        }
                        FileChange::Length(_) => (UnitKind::Length, 0),
                    };
                    let (order, in_flight) = (pending.stamp.order, pending.stamp.in_flight);
                    units.push(Unit {
                        order,
                        kind,
                        place,
                        event,
                        sectors: touched,
                        in_flight,
                        kept: true,
                        torn: None,
                        destroyed: None,
                    });
                }
            }
            Place::Directory(directory) => {
                for (event, pending) in directory.lock().pending.iter().enumerate() {
                    let (order, in_flight) = (pending.stamp.order, pending.stamp.in_flight);
                    let kind = UnitKind::Entry;
                    units.push(Unit {
                        order,
                        kind,
                        place,
                        event,
                        sectors: 0,
                        in_flight,
                        kept: true,
                        torn: None,
                        destroyed: None,
                    });
                }
            }
        }
    }
    units.sort_by_key(|unit| (unit.order, unit.kind));
    units
}

fn decide(class: u64, units: &mut [Unit], places: &[Place], choices: &Choices) {
    let count = units.len();
    // The picks count backwards from the newest.
    let back = |label, limit: usize| limit - 1 - pick(choices, label, limit);
    match class {
        1 => {
            let keep_entries = pick(choices, "entries", 2) == 1;
            keep(units, |unit| keep_entries && unit.kind == UnitKind::Entry);
        }
        2 => units[back("drop", count)].kept = false,
        3 => {
            let order = units[back("keep", count)].order;
            let keep_entries = pick(choices, "entries", 2) == 0;
            keep(units, |unit| unit.order == order || (keep_entries && unit.kind == UnitKind::Entry));
        }
        4 => drop_suffixes(units, places, choices),
        5 => {
            let order = units[back("keep", count)].order;
            let keep_entries = pick(choices, "entries", 2) == 0;
            keep(units, |unit| unit.order >= order || (keep_entries && unit.kind == UnitKind::Entry));
        }
        6 => {
            for unit in units {
                places[unit.place].name_choices(choices);
                unit.kept = pick(choices, "drop", 2) == 0;
            }
        }
        7 => {
            let mut larger: Vec<&mut Unit> = units.iter_mut().filter(|unit| unit.sectors > 1).collect();
            if !larger.is_empty() {
                let torn = back("torn", larger.len());
                larger[torn].tear(choices);
            }
        }
        8 => keep(units, |unit| unit.kind != UnitKind::Entry),
        9 => keep(units, |unit| unit.kind != UnitKind::Length),
        10 => {
            for unit in units.iter_mut().filter(|unit| unit.kind == UnitKind::Data) {
                places[unit.place].name_choices(choices);
                match pick(choices, "sectors", if unit.sectors > 1 { 3 } else { 2 }) {
                    0 => {}
                    1 => unit.kept = false,
                    _ => unit.tear(choices),
                }
            }
        }
        11 => keep(units, |unit| !unit.in_flight),
        12 => {
            let mut written: Vec<&mut Unit> =
                units.iter_mut().filter(|unit| unit.kind == UnitKind::Data).collect();
            if !written.is_empty() {
                let at = back("drop", written.len());
                written[at].destroyed = Some(pick(choices, "sector", written[at].sectors));
                if pick(choices, "rest", 2) == 1 {
                    keep_subset(units, places, choices);
                }
            }
        }
        13 => keep_subset(units, places, choices),
        _ => {}
    }
}

fn pick(choices: &Choices, label: &str, limit: usize) -> usize {
    usize::try_from(choices.pick(Site::PowerLoss, label, limit as u64)).expect("a pick is below its limit")
}

fn keep(units: &mut [Unit], which: impl Fn(&Unit) -> bool) {
    for unit in units {
        unit.kept = which(unit);
    }
}

/// Each sector, length and entry is kept or lost on its own: every outcome but a destroyed sector.
fn keep_subset(units: &mut [Unit], places: &[Place], choices: &Choices) {
    for unit in units {
        places[unit.place].name_choices(choices);
        unit.keep_subset(choices);
    }
}

/// Each file and directory loses some of its newest changes.
fn drop_suffixes(units: &mut [Unit], places: &[Place], choices: &Choices) {
    for (index, place) in places.iter().enumerate() {
        let count = units.iter().filter(|unit| unit.place == index).count();
        if count > 0 {
            place.name_choices(choices);
            let dropped = pick(choices, "prefix", count + 1);
            for unit in units.iter_mut().rev().filter(|unit| unit.place == index).take(dropped) {
                unit.kept = false;
            }
        }
    }
}

impl Place {
    fn path(&self) -> &str {
        match self {
            Self::File(inode) => &inode.path,
            Self::Directory(directory) => &directory.path,
        }
    }

    fn name_choices(&self, choices: &Choices) {
        choices.set_actor(self.path(), None);
    }
}

impl Unit {
    /// Keeps a write in part: its first sectors, its last ones, or all but one.
    fn tear(&mut self, choices: &Choices) {
        let shape = pick(choices, "shape", 3);
        let at = pick(choices, "sector", if shape == 2 { self.sectors } else { self.sectors - 1 });
        let kept = (0..self.sectors).map(|sector| match shape {
            0 => sector <= at,
            1 => sector > at,
            _ => sector != at,
        });
        self.torn = Some(kept.collect());
    }

    /// Decides for each of its sectors, or for it as a whole.
    fn keep_subset(&mut self, choices: &Choices) {
        let is_kept = || pick(choices, "lost", 2) == 0;
        if self.kind != UnitKind::Data {
            self.kept = is_kept();
            return;
        }
        let kept: Vec<bool> = (0..self.sectors).map(|_| is_kept()).collect();
        self.kept = kept.contains(&true);
        self.torn = (self.kept && kept.contains(&false)).then_some(kept);
    }

    fn is_whole(&self) -> bool {
        self.kept && self.torn.is_none() && self.destroyed.is_none()
    }

    fn keeps_sector(&self, sector: usize) -> bool {
        self.torn.as_ref().map_or(self.kept, |kept| kept[sector])
    }
}

/// Makes the kept changes of a directory its state. Gives whether that differs from what the process saw.
fn settle_directory<'a>(directory: &Directory, units: impl Iterator<Item = &'a mut Unit>) -> bool {
    let mut state = directory.lock();
    let pending = std::mem::take(&mut state.pending);
    let mut lost = BTreeSet::new();
    for unit in units {
        let change = &pending[unit.event].change;
        // The journal of a file system has an order: no change without the earlier ones of the same name.
        unit.kept &= !change.names().any(|name| lost.contains(name));
        if unit.kept {
            change.apply(&mut state.durable);
        } else {
            lost.extend(change.names().cloned());
        }
    }
    let entries = state.durable.clone();
    let seen = std::mem::replace(&mut state.current, entries);
    !state
        .current
        .iter()
        .map(|(name, node)| (name, node.id()))
        .eq(seen.iter().map(|(name, node)| (name, node.id())))
}

/// Makes the kept changes of a file its state. Gives whether content or length, and whether the length, differs from
/// what the process saw.
fn settle_file(state: &mut FileState, units: &[&Unit]) -> (bool, bool) {
    if !state.diverged && units.iter().all(|unit| unit.is_whole()) {
        if !units.is_empty() {
            state.durable = state.current.clone();
            state.pending.clear();
        }
        return (false, false);
    }
    let result = kept_content(state, units);
    let changed = (!result.equals(&state.current), result.len() != state.current.len());
    state.current = result.clone();
    state.durable = result;
    state.diverged = false;
    state.pending.clear();
    state.allocated = state.allocated.min(state.current.len());
    changed
}

/// The durable content with the kept changes.
///
/// A sector reaches the medium whole, as the page cache has it at that moment: keeping one version of it implies all
/// earlier ones. The same holds for the length.
fn kept_content(state: &FileState, units: &[&Unit]) -> Content {
    let mut versions: BTreeMap<u64, usize> = BTreeMap::new();
    let mut lengths_kept = None;
    for unit in units {
        match &state.pending[unit.event].change {
            FileChange::Data { offset, bytes } => {
                for (index, sector) in sectors(*offset, bytes.len()).enumerate() {
                    if unit.keeps_sector(index) {
                        versions.insert(sector, unit.event);
                    }
                }
            }
            FileChange::Length(_) if unit.kept => lengths_kept = Some(unit.event),
            FileChange::Length(_) => {}
        }
    }
    let mut result = state.durable.clone();
    for (event, pending) in state.pending.iter().enumerate() {
        match &pending.change {
            FileChange::Data { offset, bytes } => {
                for sector in sectors(*offset, bytes.len()) {
                    if versions.get(&sector).is_some_and(|version| event <= *version) {
                        let (start, part) = part_in_sector(*offset, bytes, sector);
                        result.write(start, part);
                    }
                }
            }
            FileChange::Length(len) if lengths_kept.is_some_and(|kept| event <= kept) => result.set_len(*len),
            // The cut is lost, but a later version of a sector shows what it had zeroed.
            FileChange::Length(len) => {
                for (sector, _) in versions.iter().filter(|(_, version)| **version > event) {
                    result.zero_sector_from(*sector, *len);
                }
            }
        }
    }
    for unit in units {
        if let (Some(at), FileChange::Data { offset, bytes }) =
            (unit.destroyed, &state.pending[unit.event].change)
        {
            let sector = sectors(*offset, bytes.len()).start + at as u64;
            result.write(sector * super::content::SECTOR_BYTES, &DESTROYED);
        }
    }
    result.zero_from(result.len());
    result
}

/// The part of a write that lies in `sector`, and its offset in the file.
fn part_in_sector(offset: u64, bytes: &[u8], sector: u64) -> (u64, &[u8]) {
    let start = offset.max(sector * super::content::SECTOR_BYTES);
    let end = (offset + bytes.len() as u64).min((sector + 1) * super::content::SECTOR_BYTES);
    (start, &bytes[(start - offset) as usize..(end - offset) as usize])
}

fn describe(units: &[Unit], places: &[Place]) -> Vec<String> {
    let lost = units.iter().filter(|unit| !unit.is_whole());
    lost.map(|unit| {
        let place = &places[unit.place];
        let what = match (unit.kind, &unit.torn) {
            (UnitKind::Data, None) => match unit.destroyed {
                None => "loses data".to_owned(),
                Some(sector) => format!("has sector {sector} of data destroyed"),
            },
            (UnitKind::Data, Some(kept)) => {
                let kept: String = kept.iter().map(|kept| if *kept { '#' } else { '.' }).collect();
                format!("keeps sectors {kept} of data")
            }
            (UnitKind::Length, _) => "loses a length".to_owned(),
            (UnitKind::Entry, _) => "loses an entry operation".to_owned(),
        };
        let when = if unit.in_flight { "in flight" } else { "completed" };
        format!("\"{}\" {what} ({when}, place {} in the order of completion)", place.path(), unit.order)
    })
    .collect()
}
