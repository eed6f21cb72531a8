//! Questions to the user of SLY or SLIME: a debugger buffer with the answers as restarts, or a
//! yes-or-no question.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::lisp::{keyword, list, number, text};
use super::{Editor, locked};
use crate::rpc::{Approval, Decision};
use crate::value::Value;

/// The restarts of the debugger, in order: name, description, and the decision that the restart
/// stands for.
const RESTARTS: [(&str, &str, Decision); 3] = [
    ("ALLOW", "Allow this action once.", Decision::Once),
    ("ALWAYS", "Allow this action and all similar ones from now on.", Decision::Always),
    ("*ABORT", "Refuse this action.", Decision::Refuse),
];
/// Time that a client may take to confirm that it has processed earlier messages. A client that
/// does not confirm in time is not asked again.
const PONG_TIME: Duration = Duration::from_secs(5);
/// Level of the debugger, always the first: no question is asked within another.
const LEVEL: Value = Value::Int(1);

/// The unanswered questions of one connection.
pub(super) struct Questions {
    editor: Arc<dyn Editor>,
    /// Open debuggers by thread. Each thread can ask one question at a time.
    debuggers: Mutex<HashMap<i64, oneshot::Sender<Decision>>>,
    /// Open yes-or-no questions and pings, by tag.
    confirmations: Mutex<HashMap<i64, oneshot::Sender<bool>>>,
    next_tag: AtomicI64,
    /// True once the client has failed to answer a ping in time.
    is_silent: AtomicBool,
}

impl Questions {
    pub(super) fn new(editor: Arc<dyn Editor>) -> Self {
        Self {
            editor,
            debuggers: Mutex::default(),
            confirmations: Mutex::default(),
            next_tag: AtomicI64::new(1),
            is_silent: AtomicBool::new(false),
        }
    }

    /// Shows a debugger buffer until the user chooses a restart or the caller stops waiting.
    pub(super) async fn allow(&self, thread: i64, request: Approval) -> Decision {
        let (decide, decision) = oneshot::channel();
        locked(&self.debuggers).insert(thread, decide);
        let _closing = Debugger { questions: self, thread };
        let condition = list([text(request.title), text("[approval]"), Value::Nil]);
        let restarts = RESTARTS.map(|(name, meaning, _)| list([text(name), text(meaning)]));
        let frames = request.details.into_iter().enumerate();
        let frames = frames.map(|(index, line)| list([number(index), text(line)]));
        self.editor.tell(list([
            keyword("debug"),
            Value::Int(thread),
            LEVEL,
            condition,
            list(restarts),
            list(frames),
            Value::Nil,
        ]));
        self.editor.tell(list([keyword("debug-activate"), Value::Int(thread), LEVEL]));
        decision.await.unwrap_or(Decision::Refuse)
    }

    pub(super) async fn confirm(&self, thread: i64, question: String) -> bool {
        let (open, decision) = self.open();
        let asked = [keyword("y-or-n-p"), Value::Int(thread), Value::Int(open.tag), text(question)];
        self.editor.tell(list(asked));
        decision.await.unwrap_or(false)
    }

    /// Waits until the client has processed earlier messages, but no longer than [`PONG_TIME`].
    /// Does not wait for a client that once failed to confirm in time.
    pub(super) async fn done(&self, thread: i64) {
        if self.is_silent.load(Ordering::Relaxed) {
            return;
        }
        let (open, pong) = self.open();
        self.editor.tell(list([keyword("ping"), Value::Int(thread), Value::Int(open.tag)]));
        if tokio::time::timeout(PONG_TIME, pong).await.is_err() {
            self.is_silent.store(true, Ordering::Relaxed);
        }
    }

    /// Opens a yes-or-no question or a ping. Also returns the receiver of its answer.
    fn open(&self) -> (Confirmation<'_>, oneshot::Receiver<bool>) {
        let (decide, decision) = oneshot::channel();
        let tag = self.next_tag.fetch_add(1, Ordering::Relaxed);
        locked(&self.confirmations).insert(tag, decide);
        (Confirmation { questions: self, tag }, decision)
    }

    /// Handles the answer to a yes-or-no question or a ping.
    pub(super) fn answered(&self, tag: &Value, value: &Value) {
        let Value::Int(tag) = tag else { return };
        if let Some(decide) = locked(&self.confirmations).remove(tag) {
            // A caller that no longer waits needs no answer.
            let _ = decide.send(*value != Value::Nil);
        }
    }

    /// Answers the question in the debugger of `thread`, or in any one debugger if `thread` is
    /// `None`. The answer is the restart with the index `restart` in [`RESTARTS`]; any other datum
    /// is a refusal. Returns whether there was such a question.
    pub(super) fn restart(&self, thread: Option<i64>, restart: &Value) -> bool {
        let index =
            if let Value::Int(index) = restart { usize::try_from(*index).ok() } else { None };
        let chosen = index.and_then(|index| RESTARTS.get(index));
        let decision = chosen.map_or(Decision::Refuse, |(_, _, means)| *means);
        let mut debuggers = locked(&self.debuggers);
        let thread = thread.or_else(|| debuggers.keys().copied().next());
        match thread.and_then(|thread| debuggers.remove(&thread)) {
            Some(decide) => decide.send(decision).is_ok(),
            None => false,
        }
    }
}

/// An open question or ping. Dropping the value forgets it.
struct Confirmation<'a> {
    questions: &'a Questions,
    tag: i64,
}

impl Drop for Confirmation<'_> {
    fn drop(&mut self) {
        locked(&self.questions.confirmations).remove(&self.tag);
    }
}

/// An open debugger buffer. Dropping the value closes the buffer.
struct Debugger<'a> {
    questions: &'a Questions,
    thread: i64,
}

impl Drop for Debugger<'_> {
    fn drop(&mut self) {
        locked(&self.questions.debuggers).remove(&self.thread);
        let closed = [keyword("debug-return"), Value::Int(self.thread), LEVEL, Value::Nil];
        self.questions.editor.tell(list(closed));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::wire::message::WireError;

    struct Deaf;

    impl Editor for Deaf {
        fn tell(&self, _: Value) {}

        fn answer(&self, _: i64, _: Result<Value, WireError>) {}
    }

    #[test]
    fn a_question_that_nobody_waits_for_is_forgotten() {
        let questions = Questions::new(Arc::new(Deaf));
        assert_eq!(questions.confirm(1, "Really?".to_owned()).now_or_never(), None);
        assert!(locked(&questions.confirmations).is_empty());
    }
}
