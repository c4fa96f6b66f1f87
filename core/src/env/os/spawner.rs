use crate::env::{BoxFuture, Spawner, TaskHandle};
use tokio::runtime::Handle;

/// Starts tasks on a tokio runtime.
pub(super) struct OsSpawner {
    runtime: Handle,
}

impl OsSpawner {
    pub(super) fn new(runtime: Handle) -> Self {
        Self { runtime }
    }
}

impl Spawner for OsSpawner {
    fn spawn(&self, _name: &'static str, future: BoxFuture<'static, ()>) -> TaskHandle {
        let task = self.runtime.spawn(future).abort_handle();
        TaskHandle::new(move || task.abort())
    }
}
