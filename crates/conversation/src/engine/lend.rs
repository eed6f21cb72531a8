//! Lends engines to threads for work that may take long. All engines of the process share the
//! threads, so that an engine without such work has none. They are not those of the runtime: tasks
//! on these may wait for an engine.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use tokio::sync::oneshot;

use super::Engine;

/// Maximum number of threads that wait for work.
const MOST_IDLE: usize = 4;

/// The threads that wait for work.
static IDLE: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// A thread that borrows engines.
#[derive(Clone)]
struct Worker(mpsc::Sender<LentJob>);

/// Work for a thread. Returns whether the thread waits for more.
type LentJob = Box<dyn FnOnce(&Worker) -> bool + Send>;

/// Runs `work` on another thread (on the caller's if there can be none), then returns the engine and
/// the result. Returns `None` if the work panicked; the engine is lost then.
pub(super) async fn lend<T: Send + 'static>(
    mut engine: Box<Engine>,
    work: impl FnOnce(&mut Engine) -> T + Send + 'static,
) -> Option<(Box<Engine>, T)> {
    let (sender, receiver) = oneshot::channel();
    let job = move |worker: &Worker| {
        let done = work(&mut engine);
        // Before the result, so that the next work finds this thread.
        let waits = worker.rest();
        // Sending fails only if the loop is gone because the program is ending.
        drop(sender.send((engine, done)));
        waits
    };
    carry_out(Box::new(job));
    receiver.await.ok()
}

/// Gives the job to a thread that waits, or to a new one.
fn carry_out(mut job: LentJob) {
    loop {
        let waiting = idle().pop();
        let Some(worker) = waiting else { break };
        match worker.0.send(job) {
            Ok(()) => return,
            Err(mpsc::SendError(returned)) => job = returned,
        }
    }
    let (jobs, waiting) = mpsc::channel::<LentJob>();
    let worker = Worker(jobs);
    let of_thread = worker.clone();
    let work = move || while waiting.recv().is_ok_and(|job| job(&of_thread)) {};
    match thread::Builder::new().name("engine".to_owned()).spawn(work) {
        // The thread has its receiver until it has carried this out.
        Ok(_) => drop(worker.0.send(job)),
        Err(error) => {
            tracing::warn!("cannot start a thread: {error}; others have to wait during long work");
            job(&worker);
        }
    }
}

fn idle() -> MutexGuard<'static, Vec<Worker>> {
    // A panic cannot leave the list inconsistent: each change is one insertion or removal.
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// Makes this thread one that waits, unless enough others do. Returns whether it waits.
    fn rest(&self) -> bool {
        let mut idle = idle();
        let waits = idle.len() < MOST_IDLE;
        if waits {
            idle.push(self.clone());
        }
        waits
    }
}
