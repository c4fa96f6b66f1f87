//! A machine on a node of madsim.

use crate::choices::Choices;
use crate::disk::Volume;
use crate::executor::{EventKind, EventLog};
use crate::ground::Ground;
use crate::guest::{Birth, Guest, Host, STRETCH};
use crate::lives::{Lives, Remains, crash_disk, decay_disk, entropy_seed};
use crate::machine::{CrashKind, Handle, LifeEnd, MachineOptions, TroubleHandle};
use crate::network::{Link, NetworkHandle};
use ::madsim::runtime::{NodeHandle, Runtime};
use ::madsim::task::NodeId;
use ::madsim::time::TimeHandle;
use ironleaf::env::{BoxFuture, Env};
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A simulated machine as a node of madsim: disk, entropy and choices survive from life to life, tasks do not.
///
/// It lives and crashes as a [`Machine`](crate::machine::Machine) does.
pub struct MadsimMachine {
    runtime: Runtime,
    node: NodeId,
    choices: Choices,
    options: MachineOptions,
    volume: Arc<Volume>,
    guest: Arc<Guest<Node>>,
    link: Arc<Link>,
    life: u32,
    runs: u64,
}

/// A node of madsim, in one of its lives.
struct Node {
    handle: NodeHandle,
    time: TimeHandle,
}

impl Host for Node {
    fn now(&self) -> Duration {
        self.time.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.time.sleep(duration))
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) -> Box<dyn FnOnce() + Send + Sync> {
        let abort = self.handle.spawn(future).abort_handle();
        Box::new(move || abort.abort())
    }
}

impl fmt::Debug for MadsimMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MadsimMachine")
            .field("life", &self.life)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl MadsimMachine {
    /// A machine with an empty disk, in its first life.
    #[must_use]
    pub fn new(runtime: Runtime, choices: Choices, options: MachineOptions) -> Self {
        let ip = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        let node = runtime.create_node().name("machine").ip(ip).build().id();
        let volume = Volume::new(options.disk_bytes_max);
        let log = EventLog::new(options.trace);
        let birth = Birth {
            choices: choices.clone(),
            volume: Arc::clone(&volume),
            entropy_seed: options.entropy_seed,
            polls_max: options.polls_max,
            log,
        };
        let guest = Guest::new(host(&runtime, node), birth);
        let link = Link::new(Arc::clone(&guest) as _);
        Self { runtime, node, choices, options, volume, guest, link, life: 0, runs: 0 }
    }

    /// The environment of the current life. An earlier life's environment refuses every operation.
    #[must_use]
    pub fn env(&self) -> Env {
        self.guest.env(Arc::clone(&self.link) as _)
    }

    /// The test's side of the current life.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.guest) as _)
    }

    /// The test's side of the current life's network.
    #[must_use]
    pub fn network(&self) -> NetworkHandle {
        NetworkHandle::new(Arc::clone(&self.link))
    }

    /// Runs `main` until it finishes, a crash is chosen, or nothing goes on any more; see
    /// [`Machine::run`](crate::machine::Machine::run).
    pub fn run<T: Send + 'static>(&mut self, main: impl Future<Output = T> + Send + 'static) -> LifeEnd<T> {
        let end = self.runtime.block_on(self.guest.live(self.options.virtual_time_max * STRETCH, main));
        let finished = matches!(end, LifeEnd::Finished(_));
        self.guest.close();
        if finished {
            self.volume.finish();
        }
        self.drain();
        let dropped = self.guest.drop_panic();
        if finished {
            self.begin();
            if let Some(message) = dropped {
                // What a crash interrupts is never dropped on a real machine; what ends in order is.
                return LifeEnd::Panicked(message);
            }
        }
        end
    }

    /// Takes the machine down as `kind` does, and starts its next life on what that left of the disk.
    pub fn restart(&mut self, kind: CrashKind) {
        self.guest.close();
        self.drain();
        let traced = self.guest.log(|log| log.is_traced());
        crash_disk(&self.volume, &self.choices, kind, &*self.guest, traced);
        self.life += 1;
        self.choices.set_life(self.life);
        self.begin();
        self.guest.log(|log| log.set_life(self.life));
        self.guest.record(EventKind::Restart, [u64::from(self.life), kind as u64, 0], &|| {
            format!("starts after {kind:?}")
        });
    }

    /// Kills the node and has madsim drop its tasks.
    fn drain(&self) {
        self.runtime.handle().kill(self.node);
        self.runtime.block_on(async {});
    }

    fn begin(&mut self) {
        self.runs += 1;
        self.runtime.handle().restart(self.node);
        let birth = Birth {
            choices: self.choices.clone(),
            volume: Arc::clone(&self.volume),
            entropy_seed: entropy_seed(self.options.entropy_seed, self.runs),
            polls_max: self.options.polls_max,
            log: self.guest.log(std::mem::take),
        };
        self.guest = Guest::new(host(&self.runtime, self.node), birth);
        self.link = Link::new(Arc::clone(&self.guest) as _);
    }
}

impl Drop for MadsimMachine {
    fn drop(&mut self) {
        self.guest.close();
        self.drain();
        self.volume.forget_in_flight();
    }
}

fn host(runtime: &Runtime, node: NodeId) -> Node {
    let handle = runtime.handle().get_node(node).expect("a machine keeps its node");
    Node { handle, time: runtime.block_on(async { TimeHandle::current() }) }
}

impl Lives for MadsimMachine {
    fn env(&self) -> Env {
        self.env()
    }

    fn handle(&self) -> Handle {
        self.handle()
    }

    fn trouble(&self) -> TroubleHandle {
        TroubleHandle::new(Arc::clone(&self.volume))
    }

    fn run<T: Send + 'static>(&mut self, main: impl Future<Output = T> + Send + 'static) -> LifeEnd<T> {
        self.run(main)
    }

    fn restart(&mut self, kind: CrashKind) {
        self.restart(kind);
    }

    fn decay(&mut self) {
        decay_disk(&self.volume, &self.choices, &*self.guest);
    }

    fn life(&self) -> u32 {
        self.life
    }

    fn remains(&self) -> Remains {
        let (digest, events, trace) =
            self.guest.log(|log| (log.digest(), log.events(), log.trace().to_vec()));
        let (losses, faults) =
            (self.volume.losses(), self.volume.troubles(|trouble| trouble.counts().clone()));
        Remains { digest, events, virtual_time: self.guest.now(), losses, faults, trace }
    }

    fn disk_dump(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.volume.dump()
    }
}
