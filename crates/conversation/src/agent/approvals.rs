//! Asks the user whether a tool may be called, and keeps each question open until it is answered or
//! withdrawn.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::engine::SessionName;
use crate::names::names;

names! {
    /// The user's decision about a tool call.
    Decision {
        /// Allow this call.
        Once => "once",
        /// Allow this call and all later calls of the same tool in this conversation, even after
        /// the conversation is opened again. Calls that reach outside the project still need
        /// permission.
        Always => "always",
        /// Refuse this call.
        Refuse => "refuse",
    }
}

/// The questions that wait for the user's answer. Clones share the questions.
#[derive(Clone, Default)]
pub struct Approvals(Arc<Mutex<OpenQuestions>>);

#[derive(Default)]
struct OpenQuestions {
    last: u64,
    waiting: BTreeMap<u64, (oneshot::Sender<Decision>, WaitingQuestion)>,
}

/// A question to the user: may this tool be called?
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalQuestion {
    /// Number of the question; the answer must name the same number.
    pub number: u64,
    /// Id of the call.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments, as JSON.
    pub arguments: String,
    /// One-line description of the call for the user.
    pub phrase: String,
    /// Place outside the session's project that the call reaches, if any.
    pub outside: Option<String>,
}

/// A question that waits for its answer.
#[derive(Debug, Clone)]
pub struct WaitingQuestion {
    /// Session whose turn asks the question.
    pub session: SessionName,
    pub asked: ApprovalQuestion,
}

/// An open question. Dropping it withdraws the question.
pub struct OpenQuestion {
    /// Number of the question; the answer must name the same number.
    pub number: u64,
    answer: oneshot::Receiver<Decision>,
    approvals: Approvals,
}

impl Approvals {
    /// Opens a question for a turn of `session`. `asked` builds the question from its number.
    pub fn ask(
        &self,
        session: SessionName,
        asked: impl FnOnce(u64) -> ApprovalQuestion,
    ) -> OpenQuestion {
        let (sender, answer) = oneshot::channel();
        let mut open = self.open();
        open.last += 1;
        let number = open.last;
        open.waiting.insert(number, (sender, WaitingQuestion { session, asked: asked(number) }));
        drop(open);
        OpenQuestion { number, answer, approvals: self.clone() }
    }

    /// Answers a question. Returns whether the question was open.
    pub fn answer(&self, number: u64, decision: Decision) -> bool {
        let waiting = self.open().waiting.remove(&number);
        waiting.is_some_and(|(waiting, _)| waiting.send(decision).is_ok())
    }

    /// Returns the open questions, oldest first.
    pub fn waiting(&self) -> Vec<WaitingQuestion> {
        self.open().waiting.values().map(|(_, waiting)| waiting.clone()).collect()
    }

    fn open(&self) -> MutexGuard<'_, OpenQuestions> {
        // A panic cannot leave the questions inconsistent: each change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenQuestion {
    /// Waits for the answer.
    pub async fn answered(&mut self) -> Decision {
        // The other end is dropped only when this question is dropped.
        (&mut self.answer).await.unwrap_or(Decision::Refuse)
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.approvals.open().waiting.remove(&self.number);
    }
}
