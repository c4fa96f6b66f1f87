//! A simulated machine.

use crate::choices::Choices;
use crate::disk::{FaultCount, Faults, Front, Troubles, Volume};
use crate::executor::{EventKind, EventLog, Executor, Life, Limits, Polled, Step, TaskId};
use crate::ground::Ground;
use crate::lives::{crash_disk, decay_disk, entropy_seed};
use crate::network::{Link, NetworkHandle};
use ironleaf::env::{BoxFuture, Env};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// A simulated machine: disk, virtual clock, entropy and choices survive from life to life; tasks do not.
///
/// A life begins with the machine or with [`restart`](Self::restart), and ends when [`run`](Self::run) returns.
pub struct Machine {
    choices: Choices,
    options: MachineOptions,
    volume: Arc<Volume>,
    executor: Arc<Executor>,
    link: Arc<Link>,
    env: Env,
    life: u32,
    /// Runs so far.
    runs: u64,
    /// Whether a crash ended the last run: the machine is off until it is restarted.
    crashed: bool,
}

/// How a machine is built.
#[derive(Clone, Debug)]
pub struct MachineOptions {
    /// Determines every random number that the engine draws.
    pub entropy_seed: u64,
    /// Whether [`Machine::trace`] has something to show.
    pub trace: bool,
    /// Virtual time after which a life ends as [`LifeEnd::TimedOut`].
    pub virtual_time_max: Duration,
    /// Polls after which a life ends as [`LifeEnd::TimedOut`].
    pub polls_max: u64,
    /// Capacity of the disk in bytes; none means unlimited.
    pub disk_bytes_max: Option<u64>,
}

impl Default for MachineOptions {
    fn default() -> Self {
        Self {
            entropy_seed: 0,
            trace: false,
            virtual_time_max: Duration::from_secs(600),
            polls_max: 1_000_000,
            disk_bytes_max: None,
        }
    }
}

/// How a machine goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    /// The medium keeps what is durable, and what the choices say of the rest.
    PowerLoss,
    /// The medium keeps what was written, but the process and what it held in memory are gone.
    ProcessDeath,
}

/// How a life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeEnd<T> {
    /// The main task finished.
    Finished(T),
    /// A crash was chosen.
    Crashed(CrashKind),
    /// Nothing is ready and nothing is due; the names of the tasks that wait.
    Stuck(String),
    /// A task panicked: message, file and line.
    Panicked(String),
    /// A bound was reached, and which.
    TimedOut(String),
}

impl<T> LifeEnd<T> {
    /// The same end with another output of the main task.
    pub fn map_finished<U>(self, map: impl FnOnce(T) -> U) -> LifeEnd<U> {
        match self {
            Self::Finished(output) => LifeEnd::Finished(map(output)),
            Self::Crashed(kind) => LifeEnd::Crashed(kind),
            Self::Stuck(names) => LifeEnd::Stuck(names),
            Self::Panicked(message) => LifeEnd::Panicked(message),
            Self::TimedOut(bound) => LifeEnd::TimedOut(bound),
        }
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("life", &self.life)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine with an empty disk, in its first life.
    #[must_use]
    pub fn new(choices: Choices, options: MachineOptions) -> Self {
        let volume = Volume::new(options.disk_bytes_max);
        let log = EventLog::new(options.trace);
        let executor = Executor::new(choices.clone(), Duration::ZERO, log);
        let link = Link::new(Arc::clone(&executor) as _);
        let env = environment(&executor, &volume, &link, options.entropy_seed);
        Self { choices, options, volume, executor, link, env, life: 0, runs: 0, crashed: false }
    }

    /// The environment of the current life. An earlier life's environment refuses every operation.
    #[must_use]
    pub fn env(&self) -> Env {
        self.env.clone()
    }

    /// The test's side of the current life.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.executor) as _)
    }

    /// The test's side of the current life's network.
    #[must_use]
    pub fn network(&self) -> NetworkHandle {
        NetworkHandle::new(Arc::clone(&self.link))
    }

    /// Runs `main` as the task "main" until it finishes, a crash is chosen, or nothing can go on. All tasks are then
    /// dropped. After `Finished` the disk is as the end of a process leaves it: whatever was in flight completed;
    /// and another run may follow in the same life, with a new environment.
    ///
    /// # Panics
    /// If the machine crashed and was not restarted.
    pub fn run<T: Send + 'static>(&mut self, main: impl Future<Output = T> + Send + 'static) -> LifeEnd<T> {
        assert!(!self.crashed, "a machine that crashed has to be restarted");
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let main = async move {
            let output = main.await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
        };
        let main = self.executor.spawn("main", Box::pin(main)).expect("a run starts with its life open");
        let end = self.drive(main);
        self.executor.close();
        let finished = matches!(end, LifeEnd::Finished(()));
        if finished {
            self.volume.finish();
        }
        let dropped = self.executor.drop_tasks();
        self.crashed = !finished;
        if finished {
            self.begin();
        }
        if finished && let Err(message) = dropped {
            // What a crash interrupts is never dropped on a real machine; what ends in order is.
            return LifeEnd::Panicked(message);
        }
        end.map_finished(|()| {
            let output = result.lock().unwrap_or_else(PoisonError::into_inner).take();
            output.expect("a main task that finished left its output")
        })
    }

    fn drive(&self, main: TaskId) -> LifeEnd<()> {
        let limits = Limits {
            now_max: nanoseconds(self.executor.now().saturating_add(self.options.virtual_time_max)),
            polls_max: self.options.polls_max,
        };
        loop {
            if let Err(message) = self.executor.reap() {
                return LifeEnd::Panicked(message);
            }
            match self.executor.next_step(&limits) {
                Step::Poll(task) => match self.executor.poll(task) {
                    Polled::Panicked(message) => return LifeEnd::Panicked(message),
                    Polled::Finished if task == main => return LifeEnd::Finished(()),
                    Polled::Finished | Polled::Pending => {}
                },
                Step::Elapsed(sleep) => sleep.elapse(),
                Step::Complete(number) => self.volume.complete(&*self.executor, number),
                Step::Crash(kind) => return LifeEnd::Crashed(kind),
                Step::Stuck(names) => return LifeEnd::Stuck(names),
                Step::TimedOut(bound) => return LifeEnd::TimedOut(bound),
            }
        }
    }

    /// Takes the machine down as `kind` does, and starts its next life on what that left of the disk.
    pub fn restart(&mut self, kind: CrashKind) {
        // A panic in the drop of a life that was never run is of no interest: the life is over.
        self.executor.close();
        let _ = self.executor.drop_tasks();
        let traced = self.executor.log(|log| log.is_traced());
        crash_disk(&self.volume, &self.choices, kind, &*self.executor, traced);
        self.life += 1;
        self.choices.set_life(self.life);
        self.crashed = false;
        self.begin();
        let life = u64::from(self.life);
        self.executor.log(|log| log.set_life(self.life));
        self.executor.record(EventKind::Restart, [life, kind as u64, 0], || format!("starts after {kind:?}"));
    }

    /// A second machine in the state that the last run left, operations in flight included, with choices of its own:
    /// to try another outcome of the same crash. Without tasks: those of a run that ended are gone.
    #[must_use]
    pub fn fork(&self, choices: Choices) -> Self {
        choices.set_life(self.life);
        let volume = self.volume.fork(&self.choices, &choices);
        let log = self.executor.log(|log| log.clone());
        let executor = Executor::new(choices.clone(), self.executor.now(), log);
        let link = Link::new(Arc::clone(&executor) as _);
        let env = environment(&executor, &volume, &link, self.entropy_seed());
        let (options, life, runs, crashed) = (self.options.clone(), self.life, self.runs, self.crashed);
        Self { choices, options, volume, executor, link, env, life, runs, crashed }
    }

    const fn entropy_seed(&self) -> u64 {
        entropy_seed(self.options.entropy_seed, self.runs)
    }

    fn begin(&mut self) {
        self.runs += 1;
        let log = self.executor.log(std::mem::take);
        self.executor = Executor::new(self.choices.clone(), self.executor.now(), log);
        self.link = Link::new(Arc::clone(&self.executor) as _);
        self.env = environment(&self.executor, &self.volume, &self.link, self.entropy_seed());
    }

    /// The choices that the machine was built with.
    #[must_use]
    pub const fn choices(&self) -> &Choices {
        &self.choices
    }

    /// How often the machine has been restarted.
    #[must_use]
    pub const fn life(&self) -> u32 {
        self.life
    }

    /// A rolling hash of everything that happened: equal digests, equal runs.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.executor.log(|log| log.digest())
    }

    /// How many events the digest covers.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.executor.log(|log| log.events())
    }

    /// Virtual time since the machine was built.
    #[must_use]
    pub fn virtual_time(&self) -> Duration {
        self.executor.now()
    }

    /// One line per event, if tracing is on.
    #[must_use]
    pub fn trace(&self) -> Vec<String> {
        self.executor.log(|log| log.trace().to_vec())
    }

    /// Every file and its content, as the current process sees it.
    #[must_use]
    pub fn disk_dump(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.volume.dump()
    }

    /// A hash of the disk's files and names, and of what of them is pending: equal digests, equal disks.
    #[must_use]
    pub fn disk_digest(&self) -> u64 {
        self.volume.digest()
    }

    /// Chooses which disk operations may fail from now on, through the choices at `Site::Fault`.
    pub fn set_faults(&mut self, faults: Faults) {
        self.volume.set_faults(faults);
    }

    /// The test's side of the disk's faults, for whoever runs on the machine.
    #[must_use]
    pub fn trouble(&self) -> TroubleHandle {
        TroubleHandle::new(Arc::clone(&self.volume))
    }

    /// Lets the files decay as the choices at `Site::Fault` say: see [`Fault::Decay`](crate::disk::Fault::Decay).
    /// Between two runs.
    pub fn decay(&mut self) {
        decay_disk(&self.volume, &self.choices, &*self.executor);
    }

    /// How often each kind of fault was injected, and how often with effect.
    #[must_use]
    pub fn fault_counts(&self) -> BTreeMap<&'static str, FaultCount> {
        self.volume.troubles(|trouble| trouble.counts().clone())
    }

    /// Replaces the content of a file behind everybody's back, durably: bit rot, a stale or misdirected sector, a
    /// truncation. `false` if there is no such file.
    pub fn overwrite_file(&mut self, path: &Path, content: &[u8]) -> bool {
        let found = self.volume.overwrite(path, content);
        let words = [xxh3_64(path.as_os_str().as_encoded_bytes()), xxh3_64(content), 0];
        self.executor.record(EventKind::Edit, words, || format!("overwrites {}", path.display()));
        found
    }

    /// How often each kind of loss was chosen *and* changed something.
    #[must_use]
    pub fn losses(&self) -> BTreeMap<&'static str, u64> {
        self.volume.losses()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Tasks hold the executor that holds them, and wakers the work that waits for the disk: they would leak.
        self.executor.close();
        let _ = self.executor.drop_tasks();
        self.volume.forget_in_flight();
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn environment(executor: &Arc<Executor>, volume: &Arc<Volume>, link: &Arc<Link>, entropy_seed: u64) -> Env {
    let life = Life::new(Arc::clone(executor), entropy_seed);
    Env {
        clock: Arc::clone(&life) as _,
        disk: Arc::new(Front::new(Arc::clone(executor) as _, Arc::clone(volume))),
        network: Arc::clone(link) as _,
        entropy: Arc::clone(&life) as _,
        spawner: Arc::clone(&life) as _,
        #[cfg(ironleaf_lab)]
        hooks: Some(life),
    }
}

/// The test's side of the disk's faults.
#[derive(Clone)]
pub struct TroubleHandle {
    volume: Arc<Volume>,
}

impl fmt::Debug for TroubleHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TroubleHandle").field("so_far", &self.so_far()).finish()
    }
}

impl TroubleHandle {
    pub(crate) const fn new(volume: Arc<Volume>) -> Self {
        Self { volume }
    }

    /// Chooses which operations may fail from now on. A disk that is full stays so.
    pub fn set_faults(&self, faults: Faults) {
        self.volume.set_faults(faults);
    }

    /// Ends all faults: what could not be read can be read, and space returns.
    pub fn end(&self) {
        self.volume.end_faults();
    }

    /// Names of the files that were damaged or read wrong.
    #[must_use]
    pub fn damaged_files(&self) -> Vec<String> {
        self.volume.troubles(|trouble| trouble.damaged_files().iter().cloned().collect())
    }

    /// What has gone wrong so far.
    #[must_use]
    pub fn so_far(&self) -> Troubles {
        self.volume.troubles(|trouble| trouble.so_far())
    }
}

/// The test's side of one life: named tasks, operations, notes and crash points.
#[derive(Clone)]
pub struct Handle {
    ground: Arc<dyn Ground>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl Handle {
    pub(crate) const fn new(ground: Arc<dyn Ground>) -> Self {
        Self { ground }
    }

    /// Starts a task. Choices name it; its wake-ups are labelled by the name without a number at its end.
    #[expect(clippy::needless_pass_by_value, reason = "callers build the name for this call")]
    pub fn spawn(&self, name: String, future: BoxFuture<'static, ()>) {
        Arc::clone(&self.ground).start(&name, future);
    }

    /// Names the operation that the current task carries out from now on.
    pub fn set_operation(&self, operation: Option<u32>) {
        self.ground.set_operation(operation);
    }

    /// Virtual time since the machine was built.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.ground.now()
    }

    /// Waits in virtual time.
    pub async fn sleep(&self, duration: Duration) {
        self.ground.sleep(duration).await;
    }

    /// A line of the trace; part of the digest.
    pub fn note(&self, text: impl FnOnce() -> String) {
        let text = text();
        self.ground.record(EventKind::Note, [xxh3_64(text.as_bytes()), 0, 0], &|| text.clone());
    }

    /// A line of the trace of which only `word` is part of the digest: the text is built where there is a trace.
    pub fn mark(&self, word: u64, text: impl FnOnce() -> String) {
        let text = Cell::new(Some(text));
        let line = || text.take().map_or_else(String::new, |text| text());
        self.ground.record(EventKind::Note, [word, 1, 0], &line);
    }

    /// A place where the machine may crash. The runner calls it at every acknowledgement; the disk calls it at the
    /// submission and the completion of whatever changes it.
    pub fn crash_point(&self, label: &str) {
        self.ground.crash_point(label);
    }

    /// Whether the machine goes down as soon as the present poll ends.
    #[must_use]
    pub fn is_crashing(&self) -> bool {
        self.ground.is_crashing()
    }
}
