//! A thread to which the engine is lent for work that may take long.

use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use super::Engine;

type Job = Box<dyn FnOnce() + Send>;

/// Lends the engine to its thread, which ends with this value.
pub(super) struct Lender {
    /// `None` when the system gave no thread.
    jobs: Option<mpsc::Sender<Job>>,
}

impl Lender {
    pub(super) fn start() -> Self {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let work = move || waiting.into_iter().for_each(|job| job());
        let thread = thread::Builder::new().name("engine".to_owned()).spawn(work);
        if let Err(error) = &thread {
            tracing::warn!("long work will keep clients waiting, there is no thread: {error}");
        }
        Self { jobs: thread.is_ok().then_some(jobs) }
    }

    /// Runs `work` on the thread and gives the engine back with what came of it. `None` when the
    /// work panicked, and the engine is lost.
    pub(super) async fn lend<T: Send + 'static>(
        &self,
        mut engine: Box<Engine>,
        work: impl FnOnce(&mut Engine) -> T + Send + 'static,
    ) -> Option<(Box<Engine>, T)> {
        let Some(jobs) = &self.jobs else {
            let done = work(&mut engine);
            return Some((engine, done));
        };
        let (sender, receiver) = oneshot::channel();
        let job = move || {
            let done = work(&mut engine);
            // The loop waits for it, or the whole program ends.
            drop(sender.send((engine, done)));
        };
        jobs.send(Box::new(job)).ok()?;
        receiver.await.ok()
    }
}
