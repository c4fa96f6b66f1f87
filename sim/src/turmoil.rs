//! Machines that talk over turmoil's TCP.
//!
//! turmoil carries streams between hosts as segments with latencies of their own, which are put in order, acknowledged,
//! refused, held and lost by code that nobody here wrote. Each machine is the guest of a host: disk, entropy, crashes
//! and choices are the laboratory's own. What nobody chose follows from the simulation's seed.
//!
//! A simulation is for one run. turmoil ends a host by dropping its runtime, and what is dropped last then is not the
//! same twice; so a machine has one life here, and crashes are for the other simulators.

mod network;

/// A partition between hosts, by the names of their machines, that keeps what is sent until it heals. For tasks of a
/// machine. (turmoil can lose segments as well, but does not send them again as TCP does.)
pub use ::turmoil::{hold, release};

use crate::choices::Choices;
use crate::disk::Volume;
use crate::executor::EventLog;
use crate::guest::{Birth, Guest, Host, STRETCH};
use crate::machine::{Handle, LifeEnd, MachineOptions};
use ::turmoil::{Builder, Sim};
use ironleaf::env::{BoxFuture, Env};
use network::TcpNetwork;
use std::fmt;
use std::future::{Future, pending};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use tokio::runtime;

/// Some machines and the network between them.
pub struct Simulation {
    sim: Sim<'static>,
    guests: Vec<Arc<Guest<Node>>>,
}

/// A machine on a host of turmoil.
pub struct TurmoilMachine {
    name: String,
    options: MachineOptions,
    volume: Arc<Volume>,
    runtime: runtime::Handle,
    guest: Arc<Guest<Node>>,
}

/// A host of turmoil.
struct Node {
    runtime: runtime::Handle,
    /// The time in nanoseconds when somebody last asked from within the simulation, which outside of it stands still.
    last: AtomicU64,
}

impl Host for Node {
    fn now(&self) -> Duration {
        if let Some(now) = ::turmoil::sim_elapsed() {
            self.last.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        }
        Duration::from_nanos(self.last.load(Relaxed))
    }

    #[expect(clippy::disallowed_methods, reason = "the clock of a host's runtime is virtual")]
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) -> Box<dyn FnOnce() + Send + Sync> {
        let abort = self.runtime.spawn(future).abort_handle();
        Box::new(move || abort.abort())
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("machines", &self.guests.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for TurmoilMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurmoilMachine")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Simulation {
    /// A simulation in which the latencies and the order of hosts follow from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let sim = Builder::new()
            .rng_seed(seed)
            .enable_random_order()
            .epoch(UNIX_EPOCH)
            .simulation_duration(Duration::MAX)
            .build();
        Self { sim, guests: Vec::new() }
    }

    /// Adds a machine with an empty disk, which others reach under this name and itself also as "localhost". It runs
    /// whatever its environment is asked to spawn.
    ///
    /// # Panics
    /// If two machines have one name.
    #[must_use]
    pub fn machine(&mut self, name: &str, choices: Choices, options: MachineOptions) -> TurmoilMachine {
        let runtime = self.host(name);
        let volume = Volume::new(options.disk_bytes_max);
        let birth = Birth {
            choices,
            volume: Arc::clone(&volume),
            entropy_seed: options.entropy_seed,
            polls_max: options.polls_max,
            log: EventLog::new(options.trace),
        };
        let node = Node { runtime: runtime.clone(), last: AtomicU64::new(0) };
        let guest = Guest::new(node, birth);
        self.guests.push(Arc::clone(&guest));
        TurmoilMachine { name: name.to_owned(), options, volume, runtime, guest }
    }

    /// Gives the runtime of a new host.
    fn host(&mut self, name: &str) -> runtime::Handle {
        let slot = Arc::new(OnceLock::new());
        let found = Arc::clone(&slot);
        self.sim.host(name, move || {
            found.get_or_init(runtime::Handle::current);
            pending()
        });
        slot.get().expect("a host's software is started on its runtime").clone()
    }

    /// Runs `main` as the task "main" of `machine` until it finishes, the machine crashes, or nothing goes on there any
    /// more. All tasks of all machines are then dropped. See [`Machine::run`](crate::machine::Machine::run).
    ///
    /// # Panics
    /// If a stream is used by a task of another machine than the one that made it.
    pub fn run<T: Send + 'static>(
        mut self,
        machine: &TurmoilMachine,
        main: impl Future<Output = T> + Send + 'static,
    ) -> LifeEnd<T> {
        let slot = Arc::new(Mutex::new(None));
        let (guest, output) = (Arc::clone(&machine.guest), Arc::clone(&slot));
        let time_max = machine.options.virtual_time_max * STRETCH;
        drop(machine.runtime.spawn(async move {
            let end = guest.live(time_max, main).await;
            *output.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        }));
        let end = loop {
            self.sim.step().expect("hosts that wait for ever do not fail");
            if let Some(end) = slot.lock().unwrap_or_else(PoisonError::into_inner).take() {
                break end;
            }
        };
        let guests = std::mem::take(&mut self.guests);
        guests.iter().for_each(|guest| guest.close());
        if matches!(end, LifeEnd::Finished(_)) {
            machine.volume.finish();
        }
        drop(self);
        match (end, guests.iter().find_map(|guest| guest.drop_panic())) {
            (LifeEnd::Finished(_), Some(message)) => LifeEnd::Panicked(message),
            (end, _) => end,
        }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.guests.iter().for_each(|guest| guest.close());
    }
}

impl TurmoilMachine {
    /// The machine's environment; it refuses every operation once the simulation has run.
    #[must_use]
    pub fn env(&self) -> Env {
        self.guest.env(Arc::new(TcpNetwork::new(self.name.clone(), Arc::clone(&self.guest) as _)))
    }

    /// The test's side of the machine.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.guest) as _)
    }

    /// Digest of everything that happened on the machine; equal for equal runs.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.guest.log(|log| log.digest())
    }

    /// Number of events so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.guest.log(|log| log.events())
    }
}
