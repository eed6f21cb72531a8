//! Questions to the user whether tools may be called. Each question waits for its answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::names::names;

names! {
    /// The user's decision about a tool call.
    Decision {
        /// Allow this call.
        Once => "once",
        /// Allow this call and all later calls of the same tool in this conversation, also after
        /// the conversation is opened again. Calls that reach outside the project still need
        /// permission.
        Always => "always",
        /// Refuse this call.
        Refuse => "refuse",
    }
}

/// The open questions. Clones share the questions.
#[derive(Clone, Default)]
pub struct Approvals(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Decision>>,
}

/// An open question. Dropping it withdraws the question.
pub struct Question {
    /// Number of the question, which the answer must name.
    pub number: u64,
    answer: oneshot::Receiver<Decision>,
    approvals: Approvals,
}

impl Approvals {
    /// Opens a question.
    pub fn ask(&self) -> Question {
        let (sender, answer) = oneshot::channel();
        let mut open = self.open();
        open.last += 1;
        let number = open.last;
        open.waiting.insert(number, sender);
        drop(open);
        Question { number, answer, approvals: self.clone() }
    }

    /// Answers a question. Returns whether the question was open.
    pub fn answer(&self, number: u64, decision: Decision) -> bool {
        let waiting = self.open().waiting.remove(&number);
        waiting.is_some_and(|waiting| waiting.send(decision).is_ok())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // A panic leaves nothing in part: every change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    /// Waits for the answer.
    pub async fn answered(&mut self) -> Decision {
        // Only this question itself can drop the other end.
        (&mut self.answer).await.unwrap_or(Decision::Refuse)
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.approvals.open().waiting.remove(&self.number);
    }
}
