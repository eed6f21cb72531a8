//! A thread for the connections to one server. A server can send more than the program can read
//! without a pause; then only this thread is busy, and nobody else waits.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::context::TokioContext;

/// The thread, which ends with this value.
pub(super) struct Network {
    handle: Handle,
    _end: oneshot::Sender<()>,
}

impl Network {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let run = move || {
            // An error says that the value is gone.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        };
        thread::Builder::new().name("network".to_owned()).spawn(run)?;
        Ok(Self { handle, _end: end })
    }

    /// Runs `work` on the thread of the caller, and the connections that it opens on this one.
    pub(super) async fn with<T>(&self, work: impl Future<Output = T>) -> T {
        TokioContext::new(work, self.handle.clone()).await
    }
}
