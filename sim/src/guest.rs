//! A machine as the guest of another simulator, such as madsim.
//!
//! The host schedules the tasks and keeps the time; disk, network, entropy, crashes and choices are the laboratory's own. So
//! the same engine, workload and oracles run under a scheduler that nobody here wrote, which catches what the
//! laboratory's executor might hide.
//!
//! Hosts count time in milliseconds where the laboratory counts in microseconds: everything takes [`STRETCH`] times
//! as long, which leaves its proportions as they are.
//!
//! A host stops a machine only at its leisure. So each task is [`Guarded`]: once a crash was chosen or the life has
//! ended, nothing of it runs any more, whatever the host still schedules.

mod guarded;
mod hooks;

use crate::choices::{ActorId, Choices, DELAYS, LabelId, Site};
use crate::disk::{Front, Volume};
use crate::executor::{Actor, EventKind, EventLog, TaskNames, kind_of, pick_latency};
use crate::ground::Ground;
use crate::machine::{CrashKind, LifeEnd};
use crate::random::SplitMix64;
use guarded::Guarded;
use ironleaf::env::{BoxFuture, Env, Network};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

/// How many times as long everything takes as on the laboratory's executor.
pub(crate) const STRETCH: u32 = 100;

/// What a guest needs of its host.
pub(crate) trait Host: Send + Sync + 'static {
    /// Time since the simulation began.
    fn now(&self) -> Duration;

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Starts a task on the guest's machine; gives what aborts it.
    fn spawn(&self, future: BoxFuture<'static, ()>) -> Box<dyn FnOnce() + Send + Sync>;
}

/// One life of a machine on a host.
pub(crate) struct Guest<H> {
    me: Weak<Self>,
    host: H,
    choices: Choices,
    machine: ActorId,
    volume: Arc<Volume>,
    entropy: Mutex<SplitMix64>,
    state: Mutex<State>,
}

struct State {
    /// Whether what tasks do still has an effect.
    open: bool,
    end: Option<LifeEnd<()>>,
    /// Waits for the end.
    watcher: Option<Waker>,
    names: TaskNames,
    tasks: Vec<Task>,
    /// Index of the task that is polled.
    current: Option<usize>,
    polls: u64,
    polls_max: u64,
    /// The first panic of a task that was dropped.
    drop_panic: Option<String>,
    log: EventLog,
}

struct Task {
    name: String,
    actor: ActorId,
    /// The label of its wake-ups.
    kind: LabelId,
    operation: Option<u32>,
    done: bool,
}

/// How a life begins.
pub(crate) struct Birth {
    pub(crate) choices: Choices,
    pub(crate) volume: Arc<Volume>,
    pub(crate) entropy_seed: u64,
    pub(crate) polls_max: u64,
    pub(crate) log: EventLog,
}

impl<H: Host> Guest<H> {
    pub(crate) fn new(host: H, birth: Birth) -> Arc<Self> {
        let Birth { choices, volume, entropy_seed, polls_max, log } = birth;
        let machine = choices.actor_id("machine");
        choices.set_actor_id(machine, None);
        let state = State {
            open: true,
            end: None,
            watcher: None,
            names: TaskNames::default(),
            tasks: Vec::new(),
            current: None,
            polls: 0,
            polls_max,
            drop_panic: None,
            log,
        };
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            host,
            choices,
            machine,
            volume,
            entropy: Mutex::new(SplitMix64::new(entropy_seed)),
            state: Mutex::new(state),
        })
    }

    /// The seam as the engine gets it.
    pub(crate) fn env(self: &Arc<Self>, network: Arc<dyn Network>) -> Env {
        Env {
            clock: Arc::clone(self) as _,
            disk: Arc::new(Front::new(Arc::clone(self) as _, Arc::clone(&self.volume))),
            network,
            entropy: Arc::clone(self) as _,
            spawner: Arc::clone(self) as _,
            #[cfg(ironleaf_lab)]
            hooks: Some(Arc::clone(self) as _),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Access to the event log, which outlives the life.
    pub(crate) fn log<T>(&self, with: impl FnOnce(&mut EventLog) -> T) -> T {
        with(&mut self.lock().log)
    }

    /// Runs `main` as the task "main" and waits for the end of the life: its output, a crash, a panic, or that nothing
    /// goes on any more.
    pub(crate) async fn live<T: Send + 'static>(
        self: &Arc<Self>,
        time_max: Duration,
        main: impl Future<Output = T> + Send + 'static,
    ) -> LifeEnd<T> {
        let slot = Arc::new(Mutex::new(None));
        let (guest, output) = (Arc::clone(self), Arc::clone(&slot));
        let main = async move {
            let value = main.await;
            *output.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            guest.end(LifeEnd::Finished(()));
        };
        self.spawn_named("main", Box::pin(main));
        self.watch(time_max).await.map_finished(|()| {
            let output = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            output.expect("a main task that finished left its output")
        })
    }

    /// Waits for the end; a life without events for a tenth of `time_max` is stuck.
    async fn watch(&self, time_max: Duration) -> LifeEnd<()> {
        let limit = self.host.now().saturating_add(time_max);
        loop {
            let before = self.log(|log| log.events());
            let mut patience = pin!(self.host.sleep(time_max / 10));
            let end = poll_fn(|context| {
                let mut state = self.lock();
                if let Some(end) = state.end.take() {
                    return Poll::Ready(Some(end));
                }
                state.watcher = Some(context.waker().clone());
                drop(state);
                patience.as_mut().poll(context).map(|()| None)
            })
            .await;
            if let Some(end) = end {
                return end;
            }
            let state = self.lock();
            if state.log.events() == before {
                return LifeEnd::Stuck(state.waiting());
            }
            if self.host.now() >= limit {
                return LifeEnd::TimedOut(format!(
                    "{:?} of virtual time; waiting: {}",
                    self.host.now(),
                    state.waiting()
                ));
            }
        }
    }

    /// Ends the life: nothing that its tasks still do has an effect.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.open = false;
        let watcher = state.watcher.take();
        drop(state);
        drop(watcher);
    }

    /// The first panic among the drops of tasks.
    pub(crate) fn drop_panic(&self) -> Option<String> {
        self.lock().drop_panic.take()
    }

    /// Ends the life this way, unless it has ended in another; finishing outranks a crash in the same poll.
    fn end(&self, end: LifeEnd<()>) {
        let mut state = self.lock();
        let outranks = matches!(end, LifeEnd::Finished(())) && matches!(state.end, Some(LifeEnd::Crashed(_)));
        if state.open && (state.end.is_none() || outranks) {
            state.end = Some(end);
        }
        let watcher = state.watcher.take();
        drop(state);
        if let Some(watcher) = watcher {
            watcher.wake();
        }
    }

    /// Starts a task; `None` once the life has ended.
    fn spawn_named(
        &self,
        name: &str,
        future: BoxFuture<'static, ()>,
    ) -> Option<Box<dyn FnOnce() + Send + Sync>> {
        let mut state = self.lock();
        if !state.open {
            // Dropped without the lock: the future's own drop may come back here.
            drop(state);
            drop(future);
            return None;
        }
        let name = state.names.unique(name);
        let actor = self.choices.actor_id(&name);
        let kind = self.choices.label_id(kind_of(&name));
        let index = state.tasks.len();
        state.record(self.host.now(), EventKind::Spawn, [index as u64, 0, 0], || format!("spawns {name}"));
        state.tasks.push(Task { name, actor, kind, operation: None, done: false });
        drop(state);
        let guest = self.me.upgrade()?;
        Some(self.host.spawn(Box::pin(Guarded::new(guest, index, future))))
    }

    fn actor(&self, state: &State) -> Actor {
        state.current.map_or((self.machine, None), |index| state.tasks[index].actor())
    }
}

impl State {
    /// Whether tasks may run.
    fn goes_on(&self) -> bool {
        self.open && self.end.is_none()
    }

    fn record(&mut self, now: Duration, kind: EventKind, words: [u64; 3], detail: impl FnOnce() -> String) {
        let Self { log, tasks, current, .. } = self;
        log.record(kind, words, nanoseconds(now), || {
            (current.map_or("machine", |index| tasks[index].name.as_str()), detail())
        });
    }

    fn waiting(&self) -> String {
        let names: Vec<&str> =
            self.tasks.iter().filter(|task| !task.done).map(|task| task.name.as_str()).collect();
        names.join(", ")
    }
}

impl Task {
    fn actor(&self) -> Actor {
        (self.actor, self.operation)
    }
}

impl<H: Host> Ground for Guest<H> {
    fn choices(&self) -> &Choices {
        &self.choices
    }

    fn now(&self) -> Duration {
        self.host.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.host.sleep(duration)
    }

    fn latency(&self, label: &str, usual: Duration) -> Duration {
        pick_latency(&self.choices, label, usual * STRETCH)
    }

    fn start(self: Arc<Self>, name: &str, future: BoxFuture<'static, ()>) {
        drop(self.spawn_named(name, future));
    }

    fn set_operation(&self, operation: Option<u32>) {
        let mut state = self.lock();
        if let Some(index) = state.current {
            state.tasks[index].operation = operation;
            let (actor, operation) = state.tasks[index].actor();
            drop(state);
            self.choices.set_actor_id(actor, operation);
        }
    }

    fn record(&self, kind: EventKind, words: [u64; 3], detail: &dyn Fn() -> String) {
        self.lock().record(self.host.now(), kind, words, detail);
    }

    fn submit(
        &self,
        label: &str,
        (latency, stall): (Duration, Duration),
        words: [u64; 2],
        detail: &dyn Fn() -> String,
    ) -> Option<(u64, Actor)> {
        let guest = self.me.upgrade()?;
        let mut state = self.lock();
        if !state.open {
            return None;
        }
        let latency = self.latency(label, latency) + stall * STRETCH;
        let number = state.log.events();
        state.record(self.host.now(), EventKind::Submit, [words[0], words[1], nanoseconds(latency)], || {
            format!("submits {} (#{number}, {latency:?})", detail())
        });
        let actor = self.actor(&state);
        drop(state);
        let completion = self.host.sleep(latency);
        drop(self.host.spawn(Box::pin(async move {
            completion.await;
            if guest.lock().goes_on() {
                guest.volume.complete(&*guest, number);
                guest.choices.set_actor_id(guest.machine, None);
            }
        })));
        Some((number, actor))
    }

    fn is_open(&self) -> bool {
        self.lock().open
    }

    fn crash_point(&self, label: &str) {
        let mut state = self.lock();
        if !state.goes_on() {
            return;
        }
        let pick = self.choices.pick(Site::Crash, label, 3);
        let kind = match pick {
            0 => return,
            1 => CrashKind::PowerLoss,
            _ => CrashKind::ProcessDeath,
        };
        state.record(self.host.now(), EventKind::Crash, [pick, 0, 0], || {
            format!("crash at \"{label}\": {kind:?}")
        });
        drop(state);
        self.end(LifeEnd::Crashed(kind));
    }

    fn is_crashing(&self) -> bool {
        matches!(self.lock().end, Some(LifeEnd::Crashed(_)))
    }
}

/// What a pick at [`Site::Wake`] or [`Site::Point`] means on a host.
fn delay(pick: u64) -> Option<Duration> {
    let index = usize::try_from(pick).ok()?.checked_sub(1)?;
    Some(DELAYS[index] * STRETCH)
}

/// How many picks there are at these sites.
const DELAY_PICKS: u64 = DELAYS.len() as u64 + 1;

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
