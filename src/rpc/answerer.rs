//! Answers to the text that a person types: the interface between a REPL and a model.
//!
//! An [`Answerer`] knows sessions only through the methods, and the person only through a
//! [`Listener`]; it knows neither the connection nor its dialect.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::peer::Peer;
use crate::agent::{Decision, Later, Providers};
use crate::value::Value;
use crate::visible::{visible, visible_lines};
use crate::wire::message::WireError;

/// A caller of methods, on behalf of the client at the other end of the connection.
pub trait MethodCaller: Send + Sync {
    /// Calls a method and returns its answer. Dropping the future cancels the call.
    fn call(&self, method: &str, params: Value) -> Later<'_, Result<Value, WireError>>;

    /// Calls a method that streams; `progress` receives its progress. Cancelling `cancelled`
    /// cancels the call, which still returns once it has ended.
    fn stream(
        &self,
        method: &str,
        params: Value,
        progress: Arc<dyn Peer>,
        cancelled: CancellationToken,
    ) -> Later<'_, Result<Value, WireError>>;
}

/// The person who takes part in a turn: reads the answer, and is asked for decisions.
pub trait Listener: Send + Sync {
    /// Shows the next piece of the answer.
    fn say(&self, piece: &str);

    /// Waits until all output so far is shown, so that a person who interrupts the turn need not
    /// wait for much more output.
    fn shown(&self) -> Later<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Asks for permission.
    fn allow(&self, request: Approval) -> Later<'_, Decision>;

    /// Asks a yes-or-no question.
    fn confirm(&self, question: String) -> Later<'_, bool>;
}

/// A request for a person's permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The action, in one line.
    pub title: String,
    /// Details, line by line.
    pub details: Vec<String>,
}

/// Input from a person.
#[derive(Debug, Clone)]
pub struct UserInput {
    /// Name of the session.
    pub session: String,
    /// The text as it was typed.
    pub text: String,
    /// True if the session's items are sent to the model, too.
    pub with_items: bool,
    /// Cancelled when the person no longer wants the answer. The turn must then end by itself, or
    /// is dropped after [`LONGEST_END`].
    pub cancelled: CancellationToken,
}

/// Maximum wait for a cancelled call or turn to end. Storing the answer so far takes much less,
/// unless the disk or the engine is slow.
pub(crate) const LONGEST_END: Duration = Duration::from_secs(5);

/// Answers what a person types in a REPL.
pub trait Answerer: Send + Sync {
    /// Describes the model that answers: `:provider` and `:model`, or `:error` with the reason why
    /// there is none.
    fn describe(&self) -> Value;

    /// Takes a turn, and sends the answer to the listener piece by piece.
    fn take_turn<'a>(
        &'a self,
        turn: UserInput,
        caller: &'a dyn MethodCaller,
        listener: &'a dyn Listener,
    ) -> Later<'a, Result<(), WireError>>;
}

/// An answerer without a model. It stores the message and says that no model is configured.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoModel;

/// Text in place of an answer.
const NO_MODEL: &str = "no model is configured, so nobody answers; to set one up, add a \
                        [[providers]] table with name, kind and model to the configuration file, \
                        and start the server again";

/// Parameters of `chat` or `process-turn`.
#[derive(Serialize)]
struct TurnParams<'a> {
    session: &'a str,
    content: &'a str,
    /// Empty if no items are to be sent; `None` for the session's managers.
    #[serde(skip_serializing_if = "Option::is_none")]
    managers: Option<[&'a str; 0]>,
}

#[derive(Serialize)]
struct ApproveParams {
    approval: Value,
    decision: Decision,
}

#[derive(Serialize)]
struct ModelShown<'a> {
    provider: &'a str,
    model: &'a str,
}

impl Answerer for NoModel {
    fn describe(&self) -> Value {
        Value::Map(vec![("error".into(), NO_MODEL.into())])
    }

    fn take_turn<'a>(
        &'a self,
        turn: UserInput,
        caller: &'a dyn MethodCaller,
        listener: &'a dyn Listener,
    ) -> Later<'a, Result<(), WireError>> {
        Box::pin(async move {
            let (session, content) = (&*turn.session, &*turn.text);
            let params = Value::of(&TurnParams { session, content, managers: None });
            let done = caller.call("process-turn", params).await?;
            let Some(Value::Str(id)) = done.get("id") else { return Ok(()) };
            listener.say(&format!("; {id} is stored in {}; {NO_MODEL}\n", turn.session));
            Ok(())
        })
    }
}

/// An answerer that uses the default model of `chat`, once there is one.
pub(crate) struct ModelAnswerer {
    providers: Providers,
}

/// Receives the progress of a chat, and sends it on as pieces.
struct PieceSender(mpsc::Sender<ProgressPiece>);

/// Maximum number of pieces that wait to be shown before the chat waits too. The channel holds
/// twice as many, since some pieces, such as results of tools, are sent without waiting.
const WAITING: usize = 256;
/// Number of bytes of text after which to wait until the listener has shown the text.
const SHOWN_AT_ONCE: usize = 4 << 10;

/// A piece of a chat's progress.
enum ProgressPiece {
    Text(String),
    /// A note on the turn, to be shown on lines of its own.
    Note(String),
    /// A request for permission to use a tool, with the number of the question.
    Question(Value, Approval),
}

impl ModelAnswerer {
    /// Creates an answerer that uses the default model at the time of each turn.
    pub(crate) fn new(providers: Providers) -> Self {
        Self { providers }
    }
}

impl Peer for PieceSender {
    fn progress(&self, params: Value) -> bool {
        let (Some(Value::Keyword(kind)), Some(Value::Str(text))) =
            (params.get("kind"), params.get("text"))
        else {
            return false;
        };
        let heard = match &**kind {
            "text" => ProgressPiece::Text(text.clone()),
            "status" | "retry" | "tool-result" => {
                ProgressPiece::Note(format!("; {}\n", visible_lines(text)))
            }
            "approval" => question(&params, text),
            _ => return false,
        };
        // A listener that is gone needs no pieces.
        self.0.try_send(heard).is_ok()
    }

    fn room(&self) -> Later<'_, ()> {
        // Released at once, which makes room for the next piece.
        Box::pin(async { drop(self.0.reserve_many(WAITING).await) })
    }
}

fn question(params: &Value, phrase: &str) -> ProgressPiece {
    let said = |name: &str| match params.get(name) {
        Some(Value::Str(text)) => text.clone(),
        _ => String::new(),
    };
    let number = params.get("approval").cloned().unwrap_or_default();
    let details = [format!("Tool: {}", said("tool")), format!("Arguments: {}", said("arguments"))];
    let details = details.iter().map(|line| visible(line).into_owned()).collect();
    // The phrase contains the file name that the model gave, which may be the name of a link.
    let place = match said("outside") {
        place if place.is_empty() => place,
        place => format!(" (outside the project: {})", visible(&place)),
    };
    let title = format!("The model wants to {}{place}", visible(phrase));
    ProgressPiece::Question(number, Approval { title, details })
}

/// The progress of showing an answer to a listener.
#[derive(Default)]
struct ShownProgress {
    /// Number of bytes that were shown since the last wait for the listener.
    waiting: usize,
    /// True if the last line has no newline yet.
    is_within_line: bool,
}

impl ShownProgress {
    /// Appends a piece to `text`, which goes to the listener next; ignores a question.
    fn append(&mut self, piece: ProgressPiece, text: &mut String) {
        let piece = match piece {
            ProgressPiece::Text(piece) => piece,
            ProgressPiece::Note(note) => {
                if std::mem::take(&mut self.is_within_line) {
                    text.push('\n');
                }
                note
            }
            ProgressPiece::Question(..) => return,
        };
        if !piece.is_empty() {
            self.is_within_line = !piece.ends_with('\n');
        }
        text.push_str(&piece);
    }
}

/// Shows the piece `heard`, and with it the pieces that are ready after it. If a piece is a
/// question, passes the person's decision on to the turn, or withdraws the question if the turn
/// continues without the decision.
async fn pass_on(
    heard: ProgressPiece,
    pieces: &mut mpsc::Receiver<ProgressPiece>,
    shown: &mut ShownProgress,
    caller: &dyn MethodCaller,
    listener: &dyn Listener,
) {
    let mut next = Some(heard);
    while let Some(heard) = next.take() {
        let (number, approval) = match heard {
            ProgressPiece::Question(number, approval) => (number, approval),
            piece => {
                let mut text = String::new();
                shown.append(piece, &mut text);
                while text.len() < SHOWN_AT_ONCE {
                    match pieces.try_recv() {
                        Ok(question @ ProgressPiece::Question(..)) => {
                            next = Some(question);
                            break;
                        }
                        Ok(piece) => shown.append(piece, &mut text),
                        Err(_) => break,
                    }
                }
                listener.say(&text);
                shown.waiting += text.len();
                if shown.waiting >= SHOWN_AT_ONCE {
                    shown.waiting = 0;
                    listener.shown().await;
                }
                continue;
            }
        };
        let decision = tokio::select! {
            biased;
            // The turn waits for the decision; anything else that it sends comes after the
            // question.
            heard = pieces.recv() => {
                next = heard;
                continue;
            }
            decision = listener.allow(approval) => decision,
        };
        let params = Value::of(&ApproveParams { approval: number, decision });
        if caller.call("approve", params).await.is_err() {
            listener.say("; the decision came too late: the turn no longer waits for it\n");
        }
    }
}

impl Answerer for ModelAnswerer {
    fn describe(&self) -> Value {
        match self.providers.find(None, None) {
            Err(_) => NoModel.describe(),
            Ok(first) => {
                Value::of(&ModelShown { provider: &first.name, model: first.provider.model() })
            }
        }
    }

    fn take_turn<'a>(
        &'a self,
        turn: UserInput,
        caller: &'a dyn MethodCaller,
        listener: &'a dyn Listener,
    ) -> Later<'a, Result<(), WireError>> {
        if self.providers.is_empty() {
            return NoModel.take_turn(turn, caller, listener);
        }
        Box::pin(async move {
            let params = Value::of(&TurnParams {
                session: &turn.session,
                content: &turn.text,
                managers: (!turn.with_items).then_some([]),
            });
            let (sender, mut pieces) = mpsc::channel(2 * WAITING);
            let mut shown = ShownProgress::default();
            let progress = Arc::new(PieceSender(sender));
            let cancelled = turn.cancelled.clone();
            let answer = caller.stream("chat", params, progress, cancelled);
            tokio::pin!(answer);
            let heard_out = async {
                let outcome = loop {
                    tokio::select! {
                        biased;
                        Some(heard) = pieces.recv() => {
                            pass_on(heard, &mut pieces, &mut shown, caller, listener).await;
                        }
                        outcome = &mut answer => break outcome,
                    }
                };
                while let Ok(heard) = pieces.try_recv() {
                    pass_on(heard, &mut pieces, &mut shown, caller, listener).await;
                }
                outcome
            };
            let Some(outcome) = turn.cancelled.run_until_cancelled(heard_out).await else {
                // Later output is not shown.
                drop(pieces);
                return answer.await.map(drop);
            };
            let answered = outcome?;
            let mut last = "\n".to_owned();
            if let Some(Value::Str(why)) = answered.get("ending") {
                last.clear();
                shown.append(ProgressPiece::Note(format!("; {}\n", visible_lines(why))), &mut last);
            }
            listener.say(&last);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
