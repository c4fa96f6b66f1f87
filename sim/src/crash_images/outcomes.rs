//! The outcomes of one crash, one after the other.

use crate::choices::Watched;
use crate::disk::CLASSES;
use crate::machine::CrashKind;
use crate::random::SplitMix64;

/// How many outcomes of one crash are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Every subset of what is pending is tried where it has at most so many units: sectors, lengths, entries.
    pub units_max: u32,
    /// Most different images at a crash with more units.
    pub images_max: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { units_max: 10, images_max: 64 }
    }
}

/// What came of one outcome.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The choices that came up at [`Site::PowerLoss`](crate::choices::Site::PowerLoss), in order.
    pub met: Vec<Watched>,
    /// Whether the image is one that no outcome gave before.
    pub is_new: bool,
    /// Whether to go on.
    pub goes_on: bool,
}

/// How much of what a crash may leave was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Sectors, lengths and entries that are kept or lost on their own.
    pub units: u32,
    /// Whether every legal image was tried.
    pub is_exhaustive: bool,
}

/// The class of outcome in which every unit is a choice of its own.
const SUBSET: &str = "subset";
/// The class of outcome in which a sector is destroyed, and any subset of the rest may be lost.
const DESTROYED: &str = "sector_destroyed";
/// The classes that are tried where there are too many subsets: those first that find most.
const CLASSES_FIRST: [&str; 12] = [
    "kept_all",
    "dropped_all",
    "in_flight_dropped",
    "entries_dropped",
    "lengths_dropped",
    "one_dropped",
    "one_kept",
    "inversion",
    "torn",
    DESTROYED,
    "prefix",
    "scattered",
];
/// Outcomes that are tried for each image that there may be, before a crash counts as seen.
const OUTCOMES_PER_IMAGE: u64 = 8;

fn class(name: &str) -> u64 {
    CLASSES.iter().position(|class| *class == name).expect("classes are named as the disk names them") as u64
}

/// Tries the outcomes of a crash of this `kind`. `attempt` makes one on a copy of the machine, with the given picks
/// at [`Site::PowerLoss`](crate::choices::Site::PowerLoss) and zeros behind them.
pub fn outcomes(kind: CrashKind, bounds: Bounds, seed: u64, attempt: impl FnMut(Vec<u64>) -> Tried) -> Space {
    let mut walker = Walker { attempt, room: Some((u64::MAX, u64::MAX)) };
    let root: &[u64] = match kind {
        CrashKind::PowerLoss => &[class(SUBSET)],
        CrashKind::ProcessDeath => &[],
    };
    // The first outcome keeps everything, and tells how many units there are.
    let units = walker.attempt(root.to_vec()).len().saturating_sub(root.len());
    let is_small = units <= bounds.units_max as usize;
    if is_small {
        walker.walk(root);
        if kind == CrashKind::PowerLoss {
            walker.walk(&[class(DESTROYED)]);
        }
    } else {
        walker.limit(bounds.images_max);
        if kind == CrashKind::PowerLoss {
            for name in CLASSES_FIRST {
                walker.walk(&[class(name)]);
            }
        }
        let mut random = SplitMix64::new(seed);
        while walker.has_room() {
            let subset = (0..units).map(|_| random.below(2));
            walker.attempt(root.iter().copied().chain(subset).collect());
        }
    }
    Space { units: u32::try_from(units).unwrap_or(u32::MAX), is_exhaustive: is_small && walker.has_room() }
}

struct Walker<A> {
    attempt: A,
    /// Images and outcomes that may follow; `None` once the caller has had enough.
    room: Option<(u64, u64)>,
}

impl<A: FnMut(Vec<u64>) -> Tried> Walker<A> {
    fn limit(&mut self, images_max: u64) {
        if let Some(room) = &mut self.room {
            *room = (images_max, images_max.saturating_mul(OUTCOMES_PER_IMAGE));
        }
    }

    fn has_room(&self) -> bool {
        self.room.is_some_and(|(images, outcomes)| images > 0 && outcomes > 0)
    }

    fn attempt(&mut self, picks: Vec<u64>) -> Vec<Watched> {
        let Tried { met, is_new, goes_on } = (self.attempt)(picks);
        self.room = self
            .room
            .filter(|_| goes_on)
            .map(|(images, outcomes)| (images.saturating_sub(u64::from(is_new)), outcomes.saturating_sub(1)));
        met
    }

    /// Tries every outcome whose picks begin with `root`, as far as there is room.
    fn walk(&mut self, root: &[u64]) {
        let mut next = Some(root.to_vec());
        while let Some(picks) = next.take()
            && self.has_room()
        {
            next = successor(&self.attempt(picks), root.len());
        }
    }
}

/// The picks after these in the order of an odometer; the first `fixed` stay.
fn successor(met: &[Watched], fixed: usize) -> Option<Vec<u64>> {
    let last = met.iter().skip(fixed).rposition(|met| met.pick + 1 < met.limit)? + fixed;
    let mut picks: Vec<u64> = met[..=last].iter().map(|met| met.pick).collect();
    picks[last] += 1;
    Some(picks)
}
