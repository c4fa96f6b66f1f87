//! A single-threaded executor in virtual time.
//!
//! Time stands still while tasks run and jumps to the next entry of the agenda when none is ready. In that time a
//! schedule is data: each wake-up of a task and each labelled point of the engine asks for a delay, so any
//! interleaving of the engine's awaits is a finite list of named delays.
//!
//! An executor lives as long as one life of the machine. Once closed it ignores wake-ups, spawns and submissions, so
//! the futures of a life that ended may be dropped at leisure.

mod hooks;
mod log;
pub(crate) mod panics;
mod sleep;
mod task;

#[cfg(test)]
mod tests;

pub(crate) use hooks::{Life, WALL_ORIGIN};
pub(crate) use log::{EventKind, EventLog};
pub(crate) use sleep::SleepCell;
pub(crate) use task::{TaskId, TaskNames, kind_of};

use crate::choices::{ActorId, Choices, DELAYS, LabelId, Site};
use crate::machine::CrashKind;
use ironleaf::env::BoxFuture;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use task::{Task, TaskState, TaskWaker};

/// Who a choice is made for: a task, and the operation that it carries out.
pub(crate) type Actor = (ActorId, Option<u32>);

/// What a pick at [`Site::Latency`] means: pick `i` makes an I/O take `LATENCY_FACTORS[i - 1]` quarters of its usual
/// time.
const LATENCY_FACTORS: [u32; 7] = [1, 2, 8, 16, 40, 120, 400];

/// How long an I/O takes that usually takes `usual`.
pub(crate) fn pick_latency(choices: &Choices, label: &str, usual: Duration) -> Duration {
    let pick = choices.pick(Site::Latency, label, LATENCY_FACTORS.len() as u64 + 1);
    match usize::try_from(pick).unwrap_or(0).checked_sub(1) {
        None => usual,
        Some(index) => usual * LATENCY_FACTORS[index] / 4,
    }
}

/// The tasks, the clock and the agenda of one life.
pub(crate) struct Executor {
    pub(crate) choices: Choices,
    machine: ActorId,
    state: Mutex<State>,
}

struct State {
    open: bool,
    /// Virtual nanoseconds since the machine was built.
    now: u64,
    sequence: u64,
    agenda: BinaryHeap<Entry>,
    ready: VecDeque<TaskId>,
    tasks: Vec<Task>,
    names: TaskNames,
    current: Option<TaskId>,
    aborts: Vec<TaskId>,
    crash: Option<CrashKind>,
    polls: u64,
    log: EventLog,
}

/// What is due at an instant.
enum Due {
    Task(TaskId),
    Sleep(Arc<SleepCell>),
    Io(u64),
}

struct Entry {
    at: u64,
    sequence: u64,
    due: Due,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The earliest entry is the greatest: `BinaryHeap` pops the greatest.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

/// When a life that does not end by itself is ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// In virtual nanoseconds since the machine was built.
    pub(crate) now_max: u64,
    pub(crate) polls_max: u64,
}

/// What the machine does next.
pub(crate) enum Step {
    Poll(TaskId),
    Elapsed(Arc<SleepCell>),
    Complete(u64),
    Crash(CrashKind),
    Stuck(String),
    TimedOut(String),
}

/// How a poll ended.
pub(crate) enum Polled {
    Pending,
    Finished,
    Panicked(String),
}

impl Executor {
    pub(crate) fn new(choices: Choices, now: Duration, log: EventLog) -> Arc<Self> {
        let machine = choices.actor_id("machine");
        choices.set_actor_id(machine, None);
        Arc::new(Self {
            choices,
            machine,
            state: Mutex::new(State {
                open: true,
                now: nanoseconds(now),
                sequence: 0,
                agenda: BinaryHeap::new(),
                ready: VecDeque::new(),
                tasks: Vec::new(),
                names: TaskNames::default(),
                current: None,
                aborts: Vec::new(),
                crash: None,
                polls: 0,
                log,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().open
    }

    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.lock().now)
    }

    /// Access to the event log, which outlives the life.
    pub(crate) fn log<T>(&self, with: impl FnOnce(&mut EventLog) -> T) -> T {
        with(&mut self.lock().log)
    }

    /// Makes an event part of the digest, and of the trace where there is one.
    pub(crate) fn record(&self, kind: EventKind, words: [u64; 3], detail: impl FnOnce() -> String) {
        self.lock().record(kind, words, detail);
    }

    /// The actor that runs now: the polled task, or the machine itself.
    pub(crate) fn actor(&self) -> Actor {
        let state = self.lock();
        state.current.map_or((self.machine, None), |id| state.tasks[id.index()].actor())
    }

    /// Starts a task; `None` once the life has ended.
    pub(crate) fn spawn(self: &Arc<Self>, name: &str, future: BoxFuture<'static, ()>) -> Option<TaskId> {
        let mut state = self.lock();
        if !state.open {
            // Dropped without the lock: the future's own drop may come back here.
            drop(state);
            drop(future);
            return None;
        }
        let name = state.names.unique(name);
        let actor = self.choices.actor_id(&name);
        let kind = self.choices.label_id(task::kind_of(&name));
        let id = TaskId::new(state.tasks.len());
        let waker = Waker::from(Arc::new(TaskWaker::new(Arc::clone(self), id)));
        state.record(EventKind::Spawn, [id.word(), 0, 0], || format!("spawns {name}"));
        state.tasks.push(Task::new(name, actor, kind, future, waker));
        self.schedule(&mut state, id);
        Some(id)
    }

    /// Drops a task's future before anything else runs.
    pub(crate) fn abort(&self, id: TaskId) {
        let mut state = self.lock();
        if state.open && !state.tasks[id.index()].is_done() {
            state.aborts.push(id);
        }
    }

    /// Sets the operation that the current task carries out.
    pub(crate) fn set_operation(&self, operation: Option<u32>) {
        let mut state = self.lock();
        if let Some(id) = state.current {
            let task = &mut state.tasks[id.index()];
            task.operation = operation;
            let (actor, operation) = task.actor();
            drop(state);
            self.choices.set_actor_id(actor, operation);
        }
    }

    fn wake(&self, id: TaskId) {
        let mut state = self.lock();
        if !state.open {
            return;
        }
        let task = &mut state.tasks[id.index()];
        match task.state {
            TaskState::Idle => self.schedule(&mut state, id),
            TaskState::Running => task.state = TaskState::RunningWoken,
            TaskState::Scheduled | TaskState::RunningWoken | TaskState::Done => {}
        }
    }

    /// Makes a task ready, now or after the delay that the choices ask for.
    fn schedule(&self, state: &mut State, id: TaskId) {
        let task = &mut state.tasks[id.index()];
        task.state = TaskState::Scheduled;
        let (actor, kind) = (task.actor(), task.kind);
        match self.delay(actor, Site::Wake, kind) {
            None => state.ready.push_back(id),
            Some(delay) => {
                let at = state.now.saturating_add(delay);
                state.record(EventKind::Delay, [id.word(), delay, 0], || format!("wakes {id} in {delay} ns"));
                state.push(at, Due::Task(id));
            }
        }
    }

    fn delay(&self, actor: Actor, site: Site, label: LabelId) -> Option<u64> {
        let pick = self.choices.pick_for(actor, site, label, DELAYS.len() as u64 + 1);
        let index = usize::try_from(pick).ok()?.checked_sub(1)?;
        Some(nanoseconds(DELAYS[index]))
    }

    /// Puts the completion of an I/O on the agenda. Gives its number, which is unique over all lives, and whom it is
    /// for; `None` once the life has ended.
    pub(crate) fn submit(
        &self,
        label: &str,
        (latency, stall): (Duration, Duration),
        words: [u64; 2],
        detail: impl FnOnce() -> String,
    ) -> Option<(u64, Actor)> {
        let mut state = self.lock();
        if !state.open {
            return None;
        }
        let latency = nanoseconds(pick_latency(&self.choices, label, latency).saturating_add(stall));
        let number = state.log.events();
        state.record(EventKind::Submit, [words[0], words[1], latency], || {
            format!("submits {} (#{number}, {latency} ns)", detail())
        });
        let at = state.now.saturating_add(latency);
        state.push(at, Due::Io(number));
        let actor = state.current.map_or((self.machine, None), |id| state.tasks[id.index()].actor());
        Some((number, actor))
    }

    /// A place where the machine may crash. The poll or completion that passes it still ends.
    pub(crate) fn crash_point(&self, label: &str) {
        let mut state = self.lock();
        if !state.open || state.crash.is_some() {
            return;
        }
        let pick = self.choices.pick(Site::Crash, label, 3);
        let kind = match pick {
            0 => return,
            1 => CrashKind::PowerLoss,
            _ => CrashKind::ProcessDeath,
        };
        state.crash = Some(kind);
        state.record(EventKind::Crash, [pick, 0, 0], || format!("crash at \"{label}\": {kind:?}"));
    }

    /// Whether a crash was chosen that takes effect when the present poll ends.
    pub(crate) fn is_crashing(&self) -> bool {
        self.lock().crash.is_some()
    }

    /// Drops the futures of aborted tasks; gives the message of a drop that panicked.
    pub(crate) fn reap(&self) -> Result<(), String> {
        loop {
            let mut state = self.lock();
            let Some(id) = state.aborts.pop() else { return Ok(()) };
            let task = &mut state.tasks[id.index()];
            task.state = TaskState::Done;
            let future = task.future.take();
            let (actor, operation) = task.actor();
            state.record(EventKind::Abort, [id.word(), 0, 0], || format!("aborts {id}"));
            drop(state);
            self.choices.set_actor_id(actor, operation);
            panics::caught(|| drop(future))?;
        }
    }

    /// What comes next in virtual time.
    pub(crate) fn next_step(&self, limits: &Limits) -> Step {
        let mut state = self.lock();
        if let Some(kind) = state.crash {
            return Step::Crash(kind);
        }
        loop {
            if let Some(id) = state.ready.pop_front() {
                if state.tasks[id.index()].is_done() {
                    continue;
                }
                if state.polls >= limits.polls_max {
                    return Step::TimedOut(format!("{} polls", state.polls));
                }
                return Step::Poll(id);
            }
            let Some(entry) = state.agenda.pop() else {
                return Step::Stuck(state.waiting());
            };
            let superseded = match &entry.due {
                Due::Task(id) => state.tasks[id.index()].is_done(),
                Due::Sleep(cell) => cell.is_cancelled(),
                Due::Io(_) => false,
            };
            if superseded {
                continue;
            }
            if entry.at > limits.now_max {
                return Step::TimedOut(format!(
                    "{:?} of virtual time; waiting: {}",
                    Duration::from_nanos(state.now),
                    state.waiting()
                ));
            }
            state.now = entry.at;
            match entry.due {
                Due::Task(id) => state.ready.push_back(id),
                Due::Sleep(cell) => return Step::Elapsed(cell),
                Due::Io(number) => return Step::Complete(number),
            }
        }
    }

    /// Polls a task once.
    pub(crate) fn poll(self: &Arc<Self>, id: TaskId) -> Polled {
        let mut state = self.lock();
        state.polls += 1;
        state.current = Some(id);
        state.record(EventKind::Poll, [id.word(), 0, 0], || "runs".to_owned());
        let task = &mut state.tasks[id.index()];
        task.state = TaskState::Running;
        let (actor, operation) = task.actor();
        let waker = task.waker.clone();
        let mut future = task.future.take().expect("a task that is scheduled has a future");
        drop(state);

        self.choices.set_actor_id(actor, operation);
        let outcome = panics::caught(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
        let polled = match outcome {
            Ok(Poll::Pending) => {
                self.suspend(id, future);
                return Polled::Pending;
            }
            Ok(Poll::Ready(())) => {
                panics::caught(|| drop(future)).map_or_else(Polled::Panicked, |()| Polled::Finished)
            }
            Err(message) => {
                // Only the first panic is reported: what the drop of broken state adds is noise.
                let _ = panics::caught(|| drop(future));
                Polled::Panicked(message)
            }
        };
        let mut state = self.lock();
        state.tasks[id.index()].state = TaskState::Done;
        state.current = None;
        drop(state);
        self.choices.set_actor_id(self.machine, None);
        polled
    }

    fn suspend(&self, id: TaskId, future: BoxFuture<'static, ()>) {
        let mut state = self.lock();
        let task = &mut state.tasks[id.index()];
        task.future = Some(future);
        if std::mem::replace(&mut task.state, TaskState::Idle) == TaskState::RunningWoken {
            self.schedule(&mut state, id);
        }
        state.current = None;
        drop(state);
        self.choices.set_actor_id(self.machine, None);
    }

    /// Ends the life: nothing that its tasks still do has an effect. Their futures are left for
    /// [`drop_tasks`](Self::drop_tasks).
    pub(crate) fn close(&self) {
        self.lock().open = false;
    }

    /// Drops every task of a life that ended; gives the first panic among the drops.
    pub(crate) fn drop_tasks(&self) -> Result<(), String> {
        let mut state = self.lock();
        state.ready.clear();
        state.aborts.clear();
        let (mut tasks, agenda) = (std::mem::take(&mut state.tasks), std::mem::take(&mut state.agenda));
        drop(state);
        let mut result = Ok(());
        for task in &mut tasks {
            let future = task.future.take();
            result = result.and(panics::caught(|| drop(future)));
        }
        result.and(panics::caught(|| drop((tasks, agenda))))
    }
}

impl State {
    fn push(&mut self, at: u64, due: Due) {
        self.sequence += 1;
        self.agenda.push(Entry { at, sequence: self.sequence, due });
    }

    fn record(&mut self, kind: EventKind, words: [u64; 3], detail: impl FnOnce() -> String) {
        let Self { log, tasks, current, now, .. } = self;
        log.record(kind, words, *now, || {
            (current.map_or("machine", |id| tasks[id.index()].name.as_str()), detail())
        });
    }

    fn waiting(&self) -> String {
        let names: Vec<&str> =
            self.tasks.iter().filter(|task| !task.is_done()).map(|task| task.name.as_str()).collect();
        names.join(", ")
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
