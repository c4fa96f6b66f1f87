use super::clock::OsClock;
use super::disk::OsDisk;
use super::entropy::OsEntropy;
#[cfg(feature = "network")]
use super::network::OsNetwork;
use super::spawner::OsSpawner;
#[cfg(not(feature = "network"))]
use crate::env::NoNetwork;
use crate::env::{Env, Network};
use crate::error::{Error, Result};
use crate::sync::Arc;
use tokio::runtime::Handle;

/// This machine, with the tokio runtime that the caller runs in.
///
/// The runtime's timer must be enabled (`enable_time` or `enable_all`), and the runtime must outlive the database:
/// what is submitted after its end fails as an I/O error. Streams need the feature `network` and the runtime's I/O
/// driver (`enable_io` or `enable_all`); without them, listening and connecting are errors.
///
/// # Errors
/// `InvalidInput` outside of a tokio runtime; [`environment_on`] works there too.
pub fn environment() -> Result<Env> {
    let runtime = Handle::try_current().map_err(|_| {
        Error::invalid_input(
            "there is no tokio runtime here: call this within one, or hand one to environment_on",
        )
    })?;
    Ok(environment_on(&runtime))
}

/// This machine, with background tasks, timers and blocking calls on `runtime`.
#[must_use]
pub fn environment_on(runtime: &Handle) -> Env {
    Env {
        clock: Arc::new(OsClock::new(runtime.clone())),
        disk: Arc::new(OsDisk::new(runtime.clone())),
        network: network(runtime),
        entropy: Arc::new(OsEntropy),
        spawner: Arc::new(OsSpawner::new(runtime.clone())),
        #[cfg(ironleaf_lab)]
        hooks: None,
    }
}

#[cfg(feature = "network")]
fn network(runtime: &Handle) -> Arc<dyn Network> {
    Arc::new(OsNetwork::new(runtime.clone()))
}

#[cfg(not(feature = "network"))]
fn network(_runtime: &Handle) -> Arc<dyn Network> {
    Arc::new(NoNetwork)
}
