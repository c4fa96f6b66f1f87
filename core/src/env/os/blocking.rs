use super::lock::Hold;
use crate::env::{BoxFuture, DiskError, DiskErrorKind, DiskResult};
use crate::sync::Arc;
use rustix::io::Errno;
use std::future::ready;
use std::io;
use std::path::PathBuf;
use tokio::runtime::Handle;

/// A call to the operating system, with what its errors name.
pub(super) struct Call {
    pub(super) operation: &'static str,
    pub(super) path: PathBuf,
    /// Keeps the directory locked until the call has ended.
    pub(super) hold: Option<Arc<Hold>>,
}

impl Call {
    /// Carries the call out on the calling thread.
    pub(super) fn inline<T: Send + 'static>(
        self,
        work: impl FnOnce(&Self) -> io::Result<T>,
    ) -> BoxFuture<'static, DiskResult<T>> {
        let outcome = work(&self).map_err(|error| self.error(error));
        Box::pin(ready(outcome))
    }

    /// Hands the call to a blocking thread of `runtime`. Once handed over it is carried out even if the future is
    /// dropped; only the end of the runtime can prevent it.
    pub(super) fn blocking<T: Send + 'static>(
        self,
        runtime: &Handle,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, DiskResult<T>> {
        let (operation, path) = (self.operation, self.path.clone());
        let task = runtime.spawn_blocking(move || {
            let outcome = work(&self).map_err(|error| self.error(error));
            // Whoever sees the outcome must also see the directory's lock let go.
            drop(self);
            outcome
        });
        Box::pin(async move {
            task.await
                .unwrap_or_else(|ended| Err(DiskError::from_io(operation, path, io::Error::other(ended))))
        })
    }

    fn error(&self, error: io::Error) -> DiskError {
        let is_too_many = |errno: &Errno| error.raw_os_error() == Some(errno.raw_os_error());
        if [Errno::MFILE, Errno::NFILE].iter().any(is_too_many) {
            let source = Some(Arc::new(error));
            return DiskError {
                source,
                ..DiskError::new(DiskErrorKind::TooManyFiles, self.operation, &self.path)
            };
        }
        DiskError::from_io(self.operation, &self.path, error)
    }
}
