//! Waiting for futures on the calling thread.

use crate::env::{Env, os};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tokio::runtime::{Builder, Handle};

/// The runtime that carries a database's background tasks. Ends with its last clone.
#[derive(Clone)]
pub(super) struct Runtime(Arc<Ending>);

struct Ending(Option<tokio::runtime::Runtime>);

impl Drop for Ending {
    fn drop(&mut self) {
        // Waits for nobody, so that the last handle may be dropped anywhere.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Runtime {
    pub(super) fn new() -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("ironleaf")
            .enable_time()
            .build()
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot start threads: {error}")))?;
        Ok(Self(Arc::new(Ending(Some(runtime)))))
    }

    fn tokio(&self) -> &tokio::runtime::Runtime {
        self.0.0.as_ref().expect("taken only when it is dropped")
    }

    pub(super) fn env(&self) -> Env {
        os::environment_on(self.tokio().handle())
    }

    /// The output of `future`, which runs on this thread.
    pub(super) fn wait<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        if Handle::try_current().is_ok() {
            return Err(Error::invalid_input(
                "a blocking call on a thread of an async runtime; use ironleaf::Database there, or a thread of its own",
            ));
        }
        let mut future = pin!(future);
        // What needs no waiting, such as a read from memory, need not enter the runtime either.
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => self.tokio().block_on(future),
        }
    }
}
