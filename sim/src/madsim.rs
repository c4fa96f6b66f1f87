//! The second opinion: the same engine, workload and oracles under madsim's scheduler.
//!
//! madsim picks the next task at random and interposes the C library's clock and randomness, so it shows what slips
//! past the seam. The machine is its guest: a node of madsim that is killed at the crash and restarted. A run is a function
//! of the scenario, its deviations and the seed of madsim's schedule. That schedule is no list that could be cut down,
//! so what fails here is looked for on the laboratory's executor as well ([`campaign`](crate::campaign)).
//!
//! Three things keep a run exact. A seed has a thread of its own: madsim seeds the standard library's hashers once for
//! each thread. tokio's random numbers are seeded and its budget is switched off, or both would leak into the order of
//! tasks. And a node that was killed is drained before the next life: its futures are dropped only when madsim comes
//! to them.

mod machine;

pub use machine::MadsimMachine;

use ::madsim::Config;
use ::madsim::runtime::Runtime;
use std::panic::resume_unwind;
use std::thread;

/// Calls `body` with a new simulation, where everything random follows from the seed.
///
/// # Panics
/// If `body` does.
pub fn simulate<T: Send>(seed: u64, body: impl FnOnce(Runtime) -> T + Send) -> T {
    let simulation = || {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let tokio = tokio::runtime::Builder::new_current_thread()
            .rng_seed(tokio::runtime::RngSeed::from_bytes(&bytes))
            .build()
            .expect("a runtime without drivers needs nothing of the machine");
        tokio.block_on(tokio::task::unconstrained(async {
            body(Runtime::with_seed_and_config(seed, Config::default()))
        }))
    };
    thread::scope(|scope| scope.spawn(simulation).join()).unwrap_or_else(|panic| resume_unwind(panic))
}
