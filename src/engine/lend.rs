//! A thread that borrows the engine for work that may take long.

use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use super::Engine;

type Job = Box<dyn FnOnce() + Send>;

/// Lends the engine to a thread, which ends when this value is dropped.
pub(super) struct Lender {
    /// `None` if the operating system could not start a thread.
    jobs: Option<mpsc::Sender<Job>>,
}

impl Lender {
    pub(super) fn start() -> Self {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let work = move || waiting.into_iter().for_each(|job| job());
        let thread = thread::Builder::new().name("engine".to_owned()).spawn(work);
        if let Err(error) = &thread {
            tracing::warn!(
                "cannot start a thread: {error}; clients will have to wait during long work"
            );
        }
        Self { jobs: thread.is_ok().then_some(jobs) }
    }

    /// Runs `work` on the thread (on the caller's thread if there is none), then returns the engine
    /// and the result. Returns `None` if the work panicked on the thread; the engine is lost then.
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
            // Sending fails only if the loop is gone because the program is ending.
            drop(sender.send((engine, done)));
        };
        jobs.send(Box::new(job)).ok()?;
        receiver.await.ok()
    }
}
