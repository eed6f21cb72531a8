//! Questions to the person: a debugger buffer whose restarts are the answers, or a yes or no.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::lisp::{keyword, list, number, text};
use super::{Editor, locked};
use crate::rpc::{Approval, Decision};
use crate::value::Value;

/// The debugger's restarts in their order, and what each means.
const RESTARTS: [(&str, &str, Decision); 3] = [
    ("ALLOW", "Allow it once.", Decision::Once),
    ("ALWAYS", "Allow it, and whatever is like it, from now on.", Decision::Always),
    ("*ABORT", "Refuse it.", Decision::Refuse),
];
/// How long a client may take to say that it has done what it was told; one that does not say so is
/// not asked again.
const PONG_TIME: Duration = Duration::from_secs(5);
/// The debugger's level: it never asks within a question.
const LEVEL: Value = Value::Int(1);

/// The questions of one connection that are not answered yet.
pub(super) struct Questions {
    editor: Arc<dyn Editor>,
    /// By thread, each of which can ask one thing at a time.
    debuggers: Mutex<HashMap<i64, oneshot::Sender<Decision>>>,
    /// By tag; what was pinged too.
    confirmations: Mutex<HashMap<i64, oneshot::Sender<bool>>>,
    next_tag: AtomicI64,
    /// Whether the client has left a ping without an answer.
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

    /// Shows a debugger buffer until a restart is chosen, or nobody waits for it any more.
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
        let (tag, decision) = self.open();
        let asked = [keyword("y-or-n-p"), Value::Int(thread), Value::Int(tag), text(question)];
        self.editor.tell(list(asked));
        decision.await.unwrap_or(false)
    }

    /// Waits until the client has done what it was told before, though not for ever.
    pub(super) async fn done(&self, thread: i64) {
        if self.is_silent.load(Ordering::Relaxed) {
            return;
        }
        let (tag, pong) = self.open();
        self.editor.tell(list([keyword("ping"), Value::Int(thread), Value::Int(tag)]));
        if tokio::time::timeout(PONG_TIME, pong).await.is_err() {
            self.is_silent.store(true, Ordering::Relaxed);
        }
        locked(&self.confirmations).remove(&tag);
    }

    /// A question that is answered under a tag.
    fn open(&self) -> (i64, oneshot::Receiver<bool>) {
        let (decide, decision) = oneshot::channel();
        let tag = self.next_tag.fetch_add(1, Ordering::Relaxed);
        locked(&self.confirmations).insert(tag, decide);
        (tag, decision)
    }

    /// A yes or no has come.
    pub(super) fn answered(&self, tag: &Value, value: &Value) {
        let Value::Int(tag) = tag else { return };
        if let Some(decide) = locked(&self.confirmations).remove(tag) {
            // Who no longer waits needs no answer.
            let _ = decide.send(*value != Value::Nil);
        }
    }

    /// A restart was chosen in the debugger of a thread; whether there is one.
    pub(super) fn restart(&self, thread: Option<i64>, restart: usize) -> bool {
        let decision = RESTARTS.get(restart).map_or(Decision::Refuse, |(_, _, means)| *means);
        let mut debuggers = locked(&self.debuggers);
        let thread = thread.or_else(|| debuggers.keys().copied().next());
        match thread.and_then(|thread| debuggers.remove(&thread)) {
            Some(decide) => decide.send(decision).is_ok(),
            None => false,
        }
    }

    /// Refuses what a thread asks.
    pub(super) fn refuse(&self, thread: Option<i64>) -> bool {
        self.restart(thread, RESTARTS.len())
    }
}

/// A debugger buffer; it is closed however the question ends.
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
