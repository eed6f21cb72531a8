//! One REPL. It handles its inputs, which are messages to the model or commands, one after the
//! other, and shows their output.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::lisp::{keyword, list, number, refusal, text};
use super::retry::{self, RetryableQuestion};
use super::session::SessionSlot;
use super::{MessageRoom, PACKAGE, ReplShared, WAITING_INPUTS, command, locked};
use crate::rpc::{Approval, Decision, LONGEST_END, Later, Listener, UserInput};
use crate::value::Value;
use crate::visible::visible;
use crate::wire::message::WireError;

/// Maximum length of a piece of output in one message, in bytes.
const LONGEST_PIECE: usize = 64 << 10;
/// Name of the condition that the client shows for an interrupted evaluation.
pub(super) const INTERRUPT: &str = "interrupt";

/// The way in which a REPL shows its output.
#[derive(Debug, Clone, Copy)]
pub(super) enum OutputMode {
    /// On one of the client's channels, as SLY expects.
    Channel(i64),
    /// In messages without a channel, as SLIME expects.
    TopLevel,
}

/// An input of a REPL.
pub(super) enum Input {
    /// Start of the REPL.
    Greeting,
    /// Typed text. SLIME waits for an answer with the id in `answer`; SLY waits for none.
    Text { text: String, answer: Option<i64> },
    /// Request to clear the client's history.
    Clear,
}

/// The handle of a REPL. The REPL ends when the handle is dropped.
pub(super) struct Repl {
    inputs: mpsc::Sender<(Input, CancellationToken, MessageRoom)>,
    /// Tokens that cancel inputs: first that of the current input, then those of waiting inputs.
    running: Arc<Mutex<VecDeque<CancellationToken>>>,
    output: Arc<ReplOutput>,
    /// Room that the REPL takes as long as it is there.
    _room: MessageRoom,
    /// Cancels the inputs once the handle is dropped.
    _ending: DropGuard,
}

impl Repl {
    pub(super) fn begin(
        shared: Arc<ReplShared>,
        thread: i64,
        (way, _room): (OutputMode, MessageRoom),
        place: Arc<SessionSlot>,
    ) -> Self {
        let (inputs, waiting) = mpsc::channel(WAITING_INPUTS);
        let running = Arc::new(Mutex::new(VecDeque::new()));
        let ended = shared.ended.child_token();
        let output = Arc::new(ReplOutput { shared, thread, way, place, ended: ended.clone() });
        let input = ReplInput {
            output: Arc::clone(&output),
            running: Arc::clone(&running),
            inputs: 0,
            asked: None,
        };
        tokio::spawn(input.listen(waiting));
        Self { inputs, running, output, _room, _ending: ended.drop_guard() }
    }

    /// Returns the place of the REPL's session.
    pub(super) fn place(&self) -> &Arc<SessionSlot> {
        &self.output.place
    }

    pub(super) fn input(&self, input: Input, room: MessageRoom) {
        let token = self.output.ended.child_token();
        locked(&self.running).push_back(token.clone());
        if let Err(refused) = self.inputs.try_send((input, token, room)) {
            locked(&self.running).pop_back();
            let why = "too many inputs are waiting in this REPL, so this one was dropped";
            match refused.into_inner().0 {
                Input::Text { answer: Some(id), .. } => {
                    self.output.shared.editor.answer(id, Err(refusal(why)));
                }
                _ => self.output.say(&format!("; {why}\n")),
            }
        }
    }

    pub(super) fn interrupt(&self) {
        if let Some(token) = locked(&self.running).front() {
            token.cancel();
        }
    }

    /// Returns whether the REPL is working on an input.
    pub(super) fn is_busy(&self) -> bool {
        !locked(&self.running).is_empty()
    }
}

/// The input side of a REPL.
struct ReplInput {
    output: Arc<ReplOutput>,
    running: Arc<Mutex<VecDeque<CancellationToken>>>,
    inputs: usize,
    /// The last question, which `/retry` asks again; `None` if there is none.
    asked: Option<RetryableQuestion>,
}

impl ReplInput {
    async fn listen(
        mut self,
        mut waiting: mpsc::Receiver<(Input, CancellationToken, MessageRoom)>,
    ) {
        while let Some((input, cancelled, _room)) = waiting.recv().await {
            match input {
                Input::Greeting => self.prompt(),
                Input::Clear => {
                    self.output.tell("clear-repl-history", []);
                    self.prompt();
                }
                Input::Text { text, answer } => self.text(text, answer, cancelled).await,
            }
            locked(&self.running).pop_front();
        }
    }

    async fn text(&mut self, text: String, answer: Option<i64>, cancelled: CancellationToken) {
        self.inputs += 1;
        let outcome = self.take(text, cancelled.clone()).await;
        let aborted = cancelled.is_cancelled();
        if let Err(error) = outcome
            && !aborted
        {
            self.output.say(&format!("; {error}\n"));
        }
        if aborted && answer.is_none() {
            self.output.tell("evaluation-aborted", [super::text(INTERRUPT)]);
        }
        self.output.place.row(&self.output.shared).await;
        self.prompt();
        if let Some(id) = answer {
            let outcome = if aborted { Err(refusal(INTERRUPT)) } else { Ok(Value::Nil) };
            self.output.shared.editor.answer(id, outcome);
        }
    }

    async fn take(&mut self, text: String, cancelled: CancellationToken) -> Result<(), WireError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let output = Arc::clone(&self.output);
        let beginning = async {
            match command::of(&text) {
                None => {
                    let session = output.place.session(&output.shared).await?;
                    Ok(Some(retry::before(&output.shared, session, text).await?))
                }
                Some(command) if command.name == "/retry" => {
                    retry::again(&output.shared, self.asked.take()).await.map(Some)
                }
                Some(command) => {
                    let said = command::run(&output.shared, command, &output.place).await?;
                    output.say(&said);
                    Ok::<_, WireError>(None)
                }
            }
        };
        let begun = cancelled.run_until_cancelled(beginning).await.transpose()?.flatten();
        let Some(asked) = begun else { return Ok(()) };
        let (session, text) = (asked.session.name.clone(), asked.text.clone());
        self.asked = Some(asked);
        let turn = UserInput { session, text, with_items: true, cancelled: cancelled.clone() };
        let mut answering =
            output.shared.answerer().take_turn(turn, &*output.shared.caller, &*output);
        if let Some(outcome) = cancelled.run_until_cancelled(&mut answering).await {
            return outcome;
        }
        // The session is free for the next input once the turn has ended.
        tokio::time::timeout(LONGEST_END, answering).await.unwrap_or(Ok(()))
    }

    fn prompt(&self) {
        let name = self.output.place.shown_name();
        match self.output.way {
            OutputMode::Channel(_) => {
                let arguments = [text(PACKAGE), text(name), Value::Int(0), number(self.inputs)];
                self.output.tell("prompt", arguments);
            }
            OutputMode::TopLevel => self.output.tell("new-package", [text(PACKAGE), text(name)]),
        }
    }
}

/// The output side of a REPL.
struct ReplOutput {
    shared: Arc<ReplShared>,
    thread: i64,
    way: OutputMode,
    /// The place of the session.
    place: Arc<SessionSlot>,
    /// Cancelled when the REPL has ended; nothing may be sent to its channel then.
    ended: CancellationToken,
}

impl ReplOutput {
    fn tell<const N: usize>(&self, what: &str, arguments: [Value; N]) {
        if self.ended.is_cancelled() {
            return;
        }
        let message = list(std::iter::once(keyword(what)).chain(arguments));
        self.shared.editor.tell(match self.way {
            OutputMode::Channel(channel) => {
                list([keyword("channel-send"), Value::Int(channel), message])
            }
            OutputMode::TopLevel => message,
        });
    }
}

impl Listener for ReplOutput {
    fn say(&self, piece: &str) {
        for piece in pieces(piece) {
            self.tell("write-string", [text(piece)]);
        }
    }

    fn shown(&self) -> Later<'_, ()> {
        Box::pin(self.shared.questions.done(self.thread))
    }

    fn allow(&self, mut request: Approval) -> Later<'_, Decision> {
        let project = self.place.known().and_then(|session| session.project);
        let project = project.as_deref().map_or("none".into(), visible);
        request.details.push(format!("Project: {project}"));
        Box::pin(self.shared.questions.allow(self.thread, request))
    }

    fn confirm(&self, question: String) -> Later<'_, bool> {
        Box::pin(self.shared.questions.confirm(self.thread, question))
    }
}

/// Splits a text into pieces of at most [`LONGEST_PIECE`] bytes, never within a character.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(LONGEST_PIECE));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_characters() {
        assert_eq!(pieces("").count(), 0);
        let long = "aλ😀".repeat(30_000);
        let cut: Vec<_> = pieces(&long).collect();
        assert!(cut.len() == 4 && cut.iter().all(|piece| piece.len() <= LONGEST_PIECE));
        assert_eq!(cut.concat(), long);
    }
}
