//! The task that makes checkpoints, one at a time, and answers whoever needs the pages to stand still.

use super::manifest::{Manifest, ManifestEdit};
use super::merge::merge;
use crate::database::{Engine, ReadState, Report, SnapshotState};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Lsn;
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::page::{Location, PageWriter, RootVersion, Written, page_segment_name};
use crate::sync::Arc;
use crate::tree::{PageId, PageRef};
use crate::wal::LogPosition;
use std::collections::BTreeSet;
use tokio::sync::{mpsc, oneshot};

/// What the checkpointer is asked for.
pub(crate) enum Command {
    /// Make a checkpoint, and answer when it is durable, with the position up to which pages hold everything.
    Checkpoint(Option<oneshot::Sender<Result<Lsn>>>),
    /// Note how far the log is durable.
    NoteLog,
    /// Verify all pages.
    Check(oneshot::Sender<Result<Report>>),
    /// Note how far the log is durable, answer, and stop.
    Stop(oneshot::Sender<Result<()>>),
}

/// Makes checkpoints. Owns the manifest and the pages that are being written.
pub(crate) struct Checkpointer {
    engine: Arc<Engine>,
    writer: PageWriter,
    manifest: Manifest,
    /// A freeze whose checkpoint has not succeeded yet: it has not begun, or the disk was full.
    frozen: Option<Frozen>,
}

/// Edits that are on their way into pages.
#[derive(Clone)]
struct Frozen {
    memtable: Arc<Memtable>,
    upto: Lsn,
    /// Where the log goes on behind them.
    log: LogPosition,
    /// Snapshots that were open inside of them.
    snapshots: Vec<Arc<SnapshotState>>,
}

/// A root that was made for the position of a snapshot, or the last one.
struct Stage {
    catalog: Option<PageRef>,
    lsn: Lsn,
    /// Pages that the stage before reaches and this one does not.
    retired: Vec<PageId>,
}

/// A checkpoint whose pages are written and not yet synced.
struct Prepared {
    frozen: Frozen,
    root: Arc<RootVersion>,
    stages: Vec<Stage>,
}

impl Checkpointer {
    pub(crate) fn new(engine: Arc<Engine>, mut writer: PageWriter, manifest: Manifest) -> Self {
        let pace = engine.pace.clone();
        writer.report_merged(move |edits| pace.progress(edits));
        Self { engine, writer, manifest, frozen: None }
    }

    /// Serves commands until it is stopped.
    pub(crate) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        while let Some(command) = commands.recv().await {
            match command {
                Command::Checkpoint(answer) => {
                    self.engine.pace.asked();
                    let outcome = match &answer {
                        Some(_) => self.checkpoint_and_compact().await,
                        None => self.checkpoint().await,
                    };
                    self.engine.pace.finished(outcome.as_ref().err());
                    if let Some(answer) = answer {
                        let _ = answer.send(outcome.map(|()| self.engine.state.load().root.lsn));
                    }
                }
                Command::NoteLog => {
                    // If it fails the log is poisoned, and whoever writes is told.
                    let _ = self.note_end_of_log().await;
                }
                Command::Check(answer) => {
                    let report = self.engine.verify().await;
                    if planted!("check-drops-memtable") && self.frozen.is_none() {
                        self.engine.drop_edits();
                    }
                    let _ = answer.send(report);
                }
                Command::Stop(answer) => {
                    let _ = answer.send(self.note_end_of_log().await);
                    return;
                }
            }
        }
    }

    /// A checkpoint, and others behind it until no segment is mostly dead.
    async fn checkpoint_and_compact(&mut self) -> Result<()> {
        let mut rounds = self.engine.store.table.lock().segments.len();
        let asked = self.engine.state.load().active.visible();
        self.checkpoint().await?;
        if self.engine.state.load().root.lsn < asked && !planted!("checkpoint-stops-short") {
            // That one was of edits that were frozen before; this one is of what was active then.
            self.checkpoint().await?;
        }
        while rounds > 0 && self.has_sparse_segments() {
            rounds -= 1;
            self.checkpoint().await?;
        }
        Ok(())
    }

    fn has_sparse_segments(&self) -> bool {
        let table = self.engine.store.table.lock();
        !table.sparse_segments(self.writer.current_segment(), &BTreeSet::new()).is_empty()
    }

    pub(crate) async fn checkpoint(&mut self) -> Result<()> {
        self.engine.log.lock().writable()?;
        let log = self.engine.log.clone();
        let mut loan = None;
        let prepared = match self.prepare_or_abandon().await {
            Err(error) if error.kind() == ErrorKind::DiskFull => {
                loan = log.borrow_reserve().await;
                if loan.is_none() {
                    return Err(error);
                }
                self.prepare_or_abandon().await?
            }
            prepared => prepared?,
        };
        let Some(prepared) = prepared else { return Ok(()) };
        // From here on an error leaves open what is durable, and nothing is tried twice.
        self.complete(prepared).await.inspect_err(|error| log.poison(error))?;
        drop(loan);
        log.restore_reserve_soon();
        Ok(())
    }

    async fn prepare_or_abandon(&mut self) -> Result<Option<Prepared>> {
        let prepared = self.prepare().await;
        if let Err(error) = &prepared {
            // Nothing was synced or published. If something was short or a page could not be read, the same edits are
            // tried again, into new segments.
            self.writer.abandon();
            self.remove_dead_segments().await;
            if !error.is_shortage() && !error.is_failed_read() {
                self.engine.log.poison(error);
            }
        }
        prepared
    }

    /// Writes the pages. `None` if there is nothing to checkpoint.
    async fn prepare(&mut self) -> Result<Option<Prepared>> {
        if self.frozen.is_none() {
            self.frozen = self.engine.freeze(self.has_sparse_segments());
        }
        let Some(frozen) = self.frozen.clone() else {
            self.remove_dead_segments().await;
            return Ok(None);
        };
        self.engine.env.point("memtable frozen").await;
        self.engine.log.reach(frozen.upto, Durability::Synced).await?;
        if planted!("log-truncated-first") {
            self.release_log(&frozen).await;
        }
        let root = self.engine.state.load().root.clone();
        let stages = self.make_stages(&frozen, &root).await?;
        self.relocate(&stages).await?;
        self.writer.flush().await?;
        // What is freed meanwhile only makes it shorter.
        let edit = self.edit(&frozen, &stages, self.writer.written());
        self.manifest.reserve(&edit).await?;
        Ok(Some(Prepared { frozen, root, stages }))
    }

    /// Makes the pages the database.
    async fn complete(&mut self, Prepared { frozen, root, stages }: Prepared) -> Result<()> {
        if let Err(error) = self.writer.sync().await {
            self.writer.abandon();
            return Err(error);
        }
        self.engine.env.point("pages synced").await;
        let written = self.writer.take();
        let edit = self.edit(&frozen, &stages, &written);
        if let Err(error) = self.manifest.append(&edit).await {
            // Reads go on from the root that there is. The files stay: reopening may find that the edit is durable.
            self.engine.store.release(written.created);
            return Err(error);
        }
        self.engine.log.note_manifest_edit(self.manifest.edit());
        self.engine.env.point("manifest edit synced").await;
        self.publish(&frozen, root, stages, &written);
        // Writers that wait for memory need not wait for the tidying below.
        self.frozen = self
            .engine
            .pace
            .is_due(self.engine.state.load().active.bytes())
            .then(|| self.engine.freeze(false))
            .flatten();
        self.engine.pace.wake();
        self.engine.counters.checkpoints.add(1);
        self.engine.counters.page_bytes_written.add(written.bytes);
        tracing::debug!(position = frozen.upto.0, page_bytes = written.bytes, "checkpoint finished");
        self.release_log(&frozen).await;
        self.remove_dead_segments().await;
        self.rewrite_manifest_if_long().await
    }

    /// Makes a root for each position at which a snapshot is open, and the last one.
    async fn make_stages(&mut self, frozen: &Frozen, root: &RootVersion) -> Result<Vec<Stage>> {
        let positions: BTreeSet<Lsn> = frozen
            .snapshots
            .iter()
            .map(|snapshot| snapshot.lsn)
            .filter(|lsn| *lsn > root.lsn)
            .chain([frozen.upto])
            .collect();
        let (mut catalog, mut after) = (root.catalog, root.lsn);
        let mut stages = Vec::new();
        let mut known = 0;
        let active = self.engine.state.load().active.bytes();
        self.engine.pace.begin(frozen.memtable.names() * positions.len(), active);
        for upto in positions {
            if upto < frozen.upto {
                reached!("checkpoint stage for a snapshot");
            }
            catalog = merge(&mut self.writer, catalog, &frozen.memtable, (after, upto)).await?;
            let retired = self.writer.retired()[known..].to_vec();
            known += retired.len();
            stages.push(Stage { catalog, lsn: upto, retired });
            after = upto;
        }
        self.engine.pace.merged();
        Ok(stages)
    }

    /// Copies what is alive out of segments that are mostly dead, as much as was written anew at most.
    async fn relocate(&mut self, stages: &[Stage]) -> Result<()> {
        // Less than half of a segment is alive where it is worth it, so one always fits.
        let allowance = self.writer.bytes() + self.engine.options.page_segment_bytes as u64 / 2;
        let retired: BTreeSet<PageId> =
            stages.iter().flat_map(|stage| stage.retired.iter().copied()).collect();
        let victims = self.engine.store.table.lock().sparse_segments(self.writer.current_segment(), &retired);
        let mut moved = 0;
        for (segment, live) in victims {
            if moved + live > allowance {
                continue;
            }
            moved += live;
            tracing::debug!(segment, live_bytes = live, "segment relocated");
            self.writer.relocate(segment, &retired).await?;
        }
        Ok(())
    }

    fn edit(&self, frozen: &Frozen, stages: &[Stage], written: &Written) -> ManifestEdit {
        let retired: BTreeSet<PageId> = written.retired.iter().copied().collect();
        let created: BTreeSet<PageId> = written.created.iter().copied().collect();
        let table = self.engine.store.table.lock();
        let is_current = |id: &PageId| !retired.contains(id) && !table.is_retired(*id);
        let added = created
            .iter()
            .filter(|id| is_current(id))
            .map(|id| (*id, table.location(*id).expect("a created page has a place")));
        // A page that was freed while its copy was made is nobody's: the copy stays dead.
        let is_still_there =
            |id: &PageId, from: &Location| table.location(*id) == Some(*from) && is_current(id);
        let moved = written.moved.iter().filter(|(id, from, _)| is_still_there(id, from));
        let moved = moved.map(|(id, _, to)| (*id, *to));
        ManifestEdit {
            catalog: stages.last().expect("there is a last stage").catalog,
            lsn: frozen.upto,
            log_durable: self.log_durable(),
            log: frozen.log,
            next_page_segment: table.next_segment,
            removed: retired.difference(&created).copied().collect(),
            added: added.chain(moved).collect(),
        }
    }

    /// Makes the new root visible, gives snapshots theirs, and lets go of the frozen edits.
    fn publish(&self, frozen: &Frozen, root: Arc<RootVersion>, stages: Vec<Stage>, written: &Written) {
        let engine = &self.engine;
        {
            let mut table = engine.store.table.lock();
            for id in &written.retired {
                table.retire(*id);
            }
            for (id, from, to) in &written.moved {
                table.relocate(*id, *from, *to);
            }
        }
        let mut roots = vec![root];
        for stage in stages {
            let newer = RootVersion::new(engine.store.clone(), stage.catalog, stage.lsn);
            roots.last().expect("never empty").succeed(newer.clone(), stage.retired);
            roots.push(newer);
        }
        engine.publish(&frozen.memtable, &roots);
    }

    /// Gives up the log before the frozen edits.
    async fn release_log(&self, frozen: &Frozen) {
        let log = &self.engine.log;
        log.remove_files(log.release_before(frozen.log.segment)).await;
    }

    /// Removes a file that nothing names any more. If that fails the next open tries again.
    async fn remove(&self, name: &str) {
        let _ = self.engine.env.disk.remove(&self.engine.directory.join(name)).await;
    }

    async fn remove_dead_segments(&mut self) {
        let dead = self.engine.store.take_dead_segments(self.writer.current_segment());
        for segment in dead {
            reached!("page segment removed");
            if planted!("dead-segments-stay") {
                continue;
            }
            self.remove(&page_segment_name(segment)).await;
        }
    }

    async fn rewrite_manifest_if_long(&mut self) -> Result<()> {
        if !self.manifest.is_long(16 * self.engine.options.page_bytes as u64) {
            return Ok(());
        }
        let added = self.engine.store.table.lock().current().collect();
        let edit = ManifestEdit { added, ..self.edit_without_changes() };
        match self.manifest.rewrite(&edit).await {
            // The old one stays, until there is space.
            Err(error) if error.is_shortage() => return Ok(()),
            rewritten => rewritten?,
        }
        self.engine.log.note_manifest_edit(self.manifest.edit());
        Ok(())
    }

    /// An edit that changes nothing and states how far the log is durable.
    fn edit_without_changes(&self) -> ManifestEdit {
        let next_page_segment = self.engine.store.table.lock().next_segment;
        ManifestEdit { log_durable: self.log_durable(), next_page_segment, ..self.manifest.last().clone() }
    }

    fn log_durable(&self) -> Lsn {
        let tail = self.engine.log.lock();
        if planted!("end-of-log-noted-early") { tail.appended() } else { tail.durable() }
    }

    /// Puts the durable end of the log on record, so that damage to its last records, or the loss of a segment that was
    /// begun, is told from an unfinished tail. Nothing depends on it, so a full disk passes without.
    async fn note_end_of_log(&mut self) -> Result<()> {
        let edit = self.edit_without_changes();
        if self.engine.log.lock().is_poisoned() || edit.log_durable == self.manifest.last().log_durable {
            return Ok(());
        }
        match self.manifest.reserve(&edit).await {
            Err(error) if error.is_shortage() => return Ok(()),
            reserved => reserved?,
        }
        self.manifest.append(&edit).await.inspect_err(|error| self.engine.log.poison(error))?;
        self.engine.log.note_manifest_edit(self.manifest.edit());
        Ok(())
    }
}

impl Engine {
    /// What the planted bug does that reads everything from the disk again.
    fn drop_edits(&self) {
        let _tail = self.log.lock();
        let state = self.state.load_full();
        let active = Arc::new(Memtable::new(state.active.visible(), self.memtable_seed));
        self.state.store(Arc::new(ReadState {
            overlay: None,
            active,
            frozen: None,
            root: state.root.clone(),
        }));
    }

    /// Puts an empty memtable in the place of the active one. `None` if that is empty already, unless the caller has
    /// something to do `also_empty`.
    fn freeze(&self, also_empty: bool) -> Option<Frozen> {
        let tail = self.log.lock();
        let registry = self.snapshots.lock();
        let state = self.state.load_full();
        if state.active.is_empty() && !also_empty {
            return None;
        }
        let upto = state.active.visible();
        debug_assert_eq!(upto, tail.appended(), "positions are given and applied under one lock");
        let next = Arc::new(ReadState {
            overlay: None,
            active: Arc::new(Memtable::new(upto, self.memtable_seed)),
            frozen: Some(state.active.clone()),
            root: state.root.clone(),
        });
        let log = tail.position();
        let _tail = if sabotaged!("frozen-outside-the-log") {
            drop(tail);
            None
        } else {
            Some(tail)
        };
        self.state.store(next);
        let snapshots = registry.within(state.root.lsn, upto);
        Some(Frozen { memtable: state.active.clone(), upto, log, snapshots })
    }

    /// Publishes the last of `roots`. Snapshots inside of `frozen` get the root that was made for them; younger ones
    /// get the last one in the place of the frozen edits.
    fn publish(&self, frozen: &Arc<Memtable>, roots: &[Arc<RootVersion>]) {
        let registry = self.snapshots.lock();
        let root = roots.last().expect("never empty");
        let state = self.state.load_full();
        if sabotaged!("frozen-dropped-first") {
            self.state.store(Arc::new(ReadState { frozen: None, ..(*state).clone() }));
        }
        self.state.store(Arc::new(ReadState {
            overlay: None,
            active: state.active.clone(),
            frozen: None,
            root: root.clone(),
        }));
        for snapshot in registry.all() {
            let (state, _) = snapshot.state();
            let holds_active = Arc::ptr_eq(&state.active, frozen);
            let holds_frozen = state.frozen.as_ref().is_some_and(|held| Arc::ptr_eq(held, frozen));
            if (!holds_active && !holds_frozen) || planted!("snapshot-pins-memtable") {
                continue;
            }
            let handed = if snapshot.lsn <= root.lsn {
                let Some(own) = roots.iter().find(|root| root.lsn == snapshot.lsn) else { continue };
                reached!("snapshot handed its root");
                let nothing = Arc::new(Memtable::new(snapshot.lsn, self.memtable_seed));
                ReadState { overlay: None, active: nothing, frozen: None, root: own.clone() }
            } else {
                ReadState { overlay: None, active: state.active.clone(), frozen: None, root: root.clone() }
            };
            snapshot.hand_over(handed);
        }
    }
}

impl Command {
    /// What a command gets when nobody serves it any more.
    pub(crate) fn refused() -> Error {
        let message = "the database is closed, or the runtime that it was opened in has ended: open it again";
        Error::new(ErrorKind::Closed, message)
    }
}
