//! The medium, and the operations on it that are in flight.

use super::content::Content;
use super::fault::{Completion, Faults, Trouble};
use super::fork::Copier;
use super::loss::{Struck, strike};
use super::operation::{Operation, Outcome};
use super::tree::{Directory, FileChange, LockState, Node, Space, Stamp};
use crate::choices::{Choices, Site};
use crate::executor::{Actor, EventKind};
use crate::ground::Ground;
use ironleaf::env::DiskResult;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A machine's disk. It outlives the machine's lives.
pub(crate) struct Volume(Mutex<VolumeState>);

pub(super) struct VolumeState {
    pub(super) root: Arc<Directory>,
    pub(super) space: Arc<Space>,
    /// How often the machine was restarted on it.
    pub(super) epoch: u32,
    /// By number, which is the order of submission.
    slots: BTreeMap<u64, Slot>,
    /// Completions so far.
    completed: u64,
    ids: u64,
    pub(super) trouble: Trouble,
    pub(super) losses: BTreeMap<&'static str, u64>,
}

enum Slot {
    InFlight(InFlight),
    Done(DiskResult<Outcome>),
}

struct InFlight {
    operation: Operation,
    actor: Actor,
    directory: Option<Arc<Directory>>,
    waker: Option<Waker>,
    /// Its future was dropped: it goes on, but nobody takes the outcome.
    abandoned: bool,
}

impl Volume {
    pub(crate) fn new(bytes_max: Option<u64>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(VolumeState {
            root: Directory::new(0, String::new()),
            space: Space::new(bytes_max.unwrap_or(u64::MAX)),
            epoch: 0,
            slots: BTreeMap::new(),
            completed: 0,
            ids: 0,
            trouble: Trouble::new(bytes_max.unwrap_or(u64::MAX)),
            losses: BTreeMap::new(),
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, VolumeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an operation in flight.
    pub(super) fn submit(
        self: &Arc<Self>,
        ground: &dyn Ground,
        operation: impl FnOnce(&VolumeState) -> Operation,
    ) -> Submitted {
        let mut state = self.lock();
        let operation = operation(&state);
        let traits = operation.traits();
        let words = operation.words();
        let stall = if ground.is_open() {
            state.trouble.stall(traits.stalls, ground.choices())
        } else {
            Duration::ZERO
        };
        let latency = (traits.latency, stall);
        let Some((number, actor)) = ground.submit(traits.name, latency, words, &|| operation.to_string())
        else {
            return Submitted::Refused(operation);
        };
        let directory = operation.directory(&state);
        if let Some(directory) = &directory {
            directory.enter();
        }
        let in_flight = InFlight { operation, actor, directory, waker: None, abandoned: false };
        state.slots.insert(number, Slot::InFlight(in_flight));
        drop(state);
        if let Some([submitted, _]) = traits.crash_points {
            ground.crash_point(submitted);
        }
        Submitted::InFlight { volume: Arc::clone(self), number }
    }

    /// Carries out the operation whose time has come, and wakes who waits for it.
    pub(crate) fn complete(&self, ground: &dyn Ground, number: u64) {
        let mut state = self.lock();
        let Some(Slot::InFlight(in_flight)) = state.slots.remove(&number) else { return };
        let InFlight { operation, actor, directory, waker, abandoned } = in_flight;
        ground.choices().set_actor_id(actor.0, actor.1);
        let Completion { outcome, fault } =
            operation.complete(&mut state, number, ground.now(), ground.choices());
        state.trouble.count(&operation, &outcome, fault, !abandoned);
        if let Some(directory) = directory {
            directory.leave();
        }
        ground.record(EventKind::Complete, [number, digest_of(&outcome), 0], &|| {
            let failure = outcome.as_ref().err().map_or_else(String::new, |error| format!(": {error}"));
            format!("completes {operation} (#{number}){failure}")
        });
        let unclaimed = if abandoned {
            Some(outcome)
        } else {
            state.slots.insert(number, Slot::Done(outcome));
            None
        };
        drop(state);
        drop(unclaimed);
        if let Some([_, completed]) = operation.traits().crash_points {
            ground.crash_point(completed);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        drop(operation);
    }

    /// Forgets what is in flight. The machine is gone.
    pub(crate) fn forget_in_flight(&self) {
        let slots = std::mem::take(&mut self.lock().slots);
        drop(slots);
    }

    /// What the end of a process in order leaves: everything in flight completes, locks and handles are gone.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        let ended = state.carry_out_in_flight(false, |_| true);
        state.begin_epoch();
        drop(state);
        drop(ended);
    }

    /// What the death of a process leaves: everything that completed, and of what was in flight what the choices
    /// say. All of it is still pending.
    pub(crate) fn process_death(&self, choices: &Choices) {
        let mut state = self.lock();
        let mut dropped = 0;
        let ended = state.carry_out_in_flight(false, |in_flight| {
            if !in_flight.operation.changes_disk() {
                return false;
            }
            choices.set_actor_id(in_flight.actor.0, in_flight.actor.1);
            let keep = choices.pick(Site::PowerLoss, "in_flight", 2) == 0;
            dropped += u64::from(!keep);
            keep
        });
        if dropped > 0 {
            state.count("in_flight_dropped");
        }
        state.begin_epoch();
        drop(state);
        drop(ended);
    }

    /// What a power loss leaves: see [`loss`](super::loss).
    pub(crate) fn power_loss(&self, choices: &Choices, traced: bool) -> Struck {
        let mut state = self.lock();
        let ended = state.carry_out_in_flight(true, |in_flight| in_flight.operation.changes_disk());
        let struck = strike(&mut state, choices, traced);
        state.begin_epoch();
        drop(state);
        drop(ended);
        struck
    }

    /// Lets the files decay as the choices say, if that knob is on. Nothing is in flight.
    pub(crate) fn decay(&self, choices: &Choices) {
        self.lock().decay(choices);
    }

    /// Chooses which operations may fail from now on.
    pub(crate) fn set_faults(&self, faults: Faults) {
        self.lock().trouble.set_faults(faults);
    }

    /// Ends a spell of faults for good: what could not be read can be read, and space returns.
    pub(crate) fn end_faults(&self) {
        let mut state = self.lock();
        let state = &mut *state;
        state.trouble.end(&state.space);
    }

    /// What went wrong so far.
    pub(crate) fn troubles<T>(&self, look: impl FnOnce(&Trouble) -> T) -> T {
        look(&self.lock().trouble)
    }

    /// The kinds of loss that had an effect, and how often.
    pub(crate) fn losses(&self) -> BTreeMap<&'static str, u64> {
        self.lock().losses.clone()
    }

    /// A second volume in the same state, operations in flight included.
    pub(crate) fn fork(&self, choices: &Choices, forked_choices: &Choices) -> Arc<Self> {
        let state = self.lock();
        let space = state.space.copy();
        let mut copier = Copier::new(Arc::clone(&space));
        let root = copier.directory(&state.root);
        let mut slots = BTreeMap::new();
        for (number, slot) in &state.slots {
            let Slot::InFlight(in_flight) = slot else { continue };
            let (actor, operation) = in_flight.actor;
            let actor = (forked_choices.actor_id(&choices.actor_text(actor)), operation);
            let operation = copier.operation(&in_flight.operation);
            // Its task stays with the original.
            let copy = InFlight { operation, actor, directory: None, waker: None, abandoned: true };
            slots.insert(*number, Slot::InFlight(copy));
        }
        Arc::new(Self(Mutex::new(VolumeState {
            root,
            space,
            epoch: state.epoch,
            slots,
            completed: state.completed,
            ids: state.ids,
            trouble: state.trouble.clone(),
            losses: state.losses.clone(),
        })))
    }

    /// Replaces what a file holds, durable and visible.
    pub(crate) fn overwrite(&self, path: &Path, bytes: &[u8]) -> bool {
        let state = self.lock();
        let Ok((directory, name)) = state.parent("overwrite", path) else { return false };
        let directory = directory.lock();
        let Some(Node::File(inode)) = directory.current.get(name) else { return false };
        let mut content = Content::default();
        content.write(0, bytes);
        content.set_len(bytes.len() as u64);
        inode.lock().overwrite(content);
        true
    }

    /// A hash of all files and names, and of what of them is pending: equal digests, equal disks.
    pub(crate) fn digest(&self) -> u64 {
        let root = Arc::clone(&self.lock().root);
        let mut hash = Xxh3::new();
        hash_into(&mut hash, &root);
        hash.digest()
    }

    /// Every file, as the process sees it.
    pub(crate) fn dump(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let root = Arc::clone(&self.lock().root);
        let mut files = Vec::new();
        collect(&root, &mut files);
        files
    }
}

fn collect(directory: &Directory, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for (name, node) in &directory.lock().current {
        match node {
            Node::File(inode) => {
                let state = inode.lock();
                let len =
                    usize::try_from(state.current.len()).expect("a file that is dumped fits into memory");
                files.push((PathBuf::from(directory.path_of(name)), state.current.read(0, len)));
            }
            Node::Directory(inner) => collect(inner, files),
        }
    }
}

fn hash_into(hash: &mut Xxh3, directory: &Directory) {
    let state = directory.lock();
    let mut text = |text: &str| {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    for event in &state.pending {
        event.change.names().for_each(|name| text(name));
    }
    text("");
    for name in state.durable.keys().chain(state.current.keys()) {
        text(name);
    }
    for node in state.current.values() {
        match node {
            Node::Directory(inner) => hash_into(hash, inner),
            Node::File(inode) => {
                let file = inode.lock();
                file.current.hash_into(hash);
                if file.diverged || !file.pending.is_empty() {
                    file.durable.hash_into(hash);
                }
                for event in &file.pending {
                    match &event.change {
                        FileChange::Data { offset, bytes } => {
                            hash.update(&offset.to_le_bytes());
                            hash.update(bytes);
                        }
                        FileChange::Length(len) => hash.update(&len.to_le_bytes()),
                    }
                }
            }
        }
    }
}

fn digest_of(outcome: &DiskResult<Outcome>) -> u64 {
    match outcome {
        Err(error) => error.kind as u64 + 1,
        Ok(Outcome::Done | Outcome::Locked(_)) => 0,
        Ok(Outcome::Bytes(bytes)) => xxh3_64(bytes),
        Ok(Outcome::Len(len)) => *len,
        Ok(Outcome::Names(names)) => names.len() as u64,
        Ok(Outcome::Opened(file)) => file.inode.id,
    }
}

impl VolumeState {
    pub(super) fn new_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Completions so far: what a sync that is submitted now covers.
    pub(super) const fn completed(&self) -> u64 {
        self.completed
    }

    pub(super) const fn stamp(&mut self, in_flight: bool) -> Stamp {
        self.completed += 1;
        Stamp { order: self.completed, in_flight }
    }

    pub(super) fn count(&mut self, loss: &'static str) {
        *self.losses.entry(loss).or_insert(0) += 1;
    }

    /// Carries out, in the order of submission, the operations in flight that `which` selects; forgets the others. All
    /// are for the caller to drop, without the volume's lock: a waker may hold what waits for another operation.
    #[must_use]
    fn carry_out_in_flight(
        &mut self,
        as_in_flight: bool,
        mut which: impl FnMut(&InFlight) -> bool,
    ) -> BTreeMap<u64, Slot> {
        let slots = std::mem::take(&mut self.slots);
        for (number, slot) in &slots {
            if let Slot::InFlight(in_flight) = slot
                && which(in_flight)
            {
                // An operation that fails changes nothing, and nobody is left to be told.
                drop(in_flight.operation.execute(self, *number, as_in_flight));
            }
        }
        slots
    }

    /// Locks, handles and operations in flight belong to a process: the next one starts without.
    fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.trouble.begin_epoch();
        self.space = Space::new(self.trouble.bytes_max());
        begin_epoch_of(&self.root, self.epoch, &self.space);
    }
}

fn begin_epoch_of(directory: &Directory, epoch: u32, space: &Space) {
    let mut state = directory.lock();
    state.lock = LockState::Free;
    state.in_flight = 0;
    for node in state.current.values() {
        match node {
            Node::File(inode) => {
                let mut file = inode.lock();
                file.epoch = epoch;
                file.handles = 0;
                file.linked = true;
                space.charge(file.allocated);
            }
            Node::Directory(inner) => begin_epoch_of(inner, epoch, space),
        }
    }
}

/// The caller's end of an operation.
pub(super) enum Submitted {
    InFlight { volume: Arc<Volume>, number: u64 },
    Refused(Operation),
}

impl Future for Submitted {
    type Output = DiskResult<Outcome>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (volume, number) = match &*self {
            Self::InFlight { volume, number } => (volume, *number),
            Self::Refused(operation) => {
                return Poll::Ready(Err(operation.io_error("the simulated machine is off")));
            }
        };
        let mut state = volume.lock();
        match state.slots.get_mut(&number) {
            Some(Slot::InFlight(in_flight)) => {
                let before = in_flight.waker.replace(context.waker().clone());
                drop(state);
                drop(before);
                Poll::Pending
            }
            Some(Slot::Done(_)) => match state.slots.remove(&number) {
                Some(Slot::Done(outcome)) => Poll::Ready(outcome),
                _ => Poll::Pending,
            },
            // The life has ended: nothing completes any more.
            None => Poll::Pending,
        }
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        let Self::InFlight { volume, number } = self else { return };
        let mut state = volume.lock();
        let unclaimed = match state.slots.get_mut(number) {
            Some(Slot::InFlight(in_flight)) => {
                in_flight.abandoned = true;
                in_flight.waker.take().map(|waker| (Some(waker), None))
            }
            Some(Slot::Done(_)) => state.slots.remove(number).map(|slot| (None, Some(slot))),
            None => None,
        };
        drop(state);
        drop(unclaimed);
    }
}
