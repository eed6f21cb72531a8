//! A thread for the connections to one server. A server can send more than the program can read
//! without a pause; then only this thread is busy, and nobody else waits.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use reqwest::{Client, Response};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::context::TokioContext;

/// The connections to one server. They close, and their thread ends, with this value.
pub(super) struct Connections {
    client: Client,
    handle: Handle,
    _end: oneshot::Sender<()>,
}

impl Connections {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(super) fn open(client: Client) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let run = move || {
            // An error says that the value is gone.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        };
        thread::Builder::new().name("network".to_owned()).spawn(run)?;
        Ok(Self { client, handle, _end: end })
    }
}

/// A server's response. The connections live until it is dropped.
pub(super) struct Answered {
    response: Response,
    _connections: Arc<Connections>,
}

impl Deref for Answered {
    type Target = Response;

    fn deref(&self) -> &Response {
        &self.response
    }
}

impl DerefMut for Answered {
    fn deref_mut(&mut self) -> &mut Response {
        &mut self.response
    }
}

/// The connections that the next request uses.
#[derive(Default)]
pub(super) struct CurrentConnections(Mutex<Option<Arc<Connections>>>);

impl CurrentConnections {
    /// Returns the connections, which `open` opens if there are none.
    pub(super) fn get<E>(
        &self,
        open: impl FnOnce() -> Result<Connections, E>,
    ) -> Result<Arc<Connections>, E> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(connections) => Ok(Arc::clone(connections)),
            None => Ok(Arc::clone(current.insert(Arc::new(open()?)))),
        }
    }

    /// Sends a request on the thread of the connections. If the caller does not wait for the response, no
    /// later request uses these connections, so that they close with the last answer on them: a
    /// server that sends headers without end would be read for ever.
    pub(super) async fn ask<F: Future<Output = reqwest::Result<Response>>>(
        &self,
        connections: &Arc<Connections>,
        send: impl FnOnce(&Client) -> F,
    ) -> reqwest::Result<Answered> {
        let mut abandoned = Abandoned { current: Some(self), connections };
        let sent = TokioContext::new(send(&connections.client), connections.handle.clone()).await;
        abandoned.current = None;
        Ok(Answered { response: sent?, _connections: Arc::clone(connections) })
    }
}

/// Takes connections out of use when it is dropped.
struct Abandoned<'c> {
    current: Option<&'c CurrentConnections>,
    connections: &'c Arc<Connections>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let Some(current) = self.current else { return };
        let mut current = current.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.take_if(|current| Arc::ptr_eq(current, self.connections));
    }
}
