//! Who answers what a person types: the seam between a REPL and a model.
//!
//! An [`Answerer`] knows sessions only through the methods, and the person only through a
//! [`Listener`]; it knows neither connection nor dialect.

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

/// Calls methods as the client at the other end of the connection would.
pub trait Caller: Send + Sync {
    /// Calls a method and gives its answer. Dropping what this returns cancels the call.
    fn call(&self, method: &str, params: Value) -> Later<'_, Result<Value, WireError>>;

    /// Calls a method that streams: `progress` gets what it has to say meanwhile. Once `cancelled`
    /// is set, the call is cancelled, and its answer comes when it has ended.
    fn stream(
        &self,
        method: &str,
        params: Value,
        progress: Arc<dyn Peer>,
        cancelled: CancellationToken,
    ) -> Later<'_, Result<Value, WireError>>;
}

/// The person whose turn it is.
pub trait Listener: Send + Sync {
    /// Shows the next piece of the answer.
    fn say(&self, piece: &str);

    /// Waits until what was said is shown, so that no more is on its way than the person wants to
    /// wait for when it is to stop.
    fn shown(&self) -> Later<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Asks whether something may be done.
    fn allow(&self, request: Approval) -> Later<'_, Decision>;

    /// Asks a question whose answer is yes or no.
    fn confirm(&self, question: String) -> Later<'_, bool>;
}

/// Something that a person must allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// What is to be done, in a line.
    pub title: String,
    /// More about it, line by line.
    pub details: Vec<String>,
}

/// Input of a person.
#[derive(Debug, Clone)]
pub struct UserInput {
    /// The session's name.
    pub session: String,
    /// The text as it was typed.
    pub text: String,
    /// Set when the person no longer wants the answer. The turn must then end by itself; it is
    /// dropped after [`LONGEST_END`].
    pub cancelled: CancellationToken,
}

/// Maximum time from cancelling a call or a turn until nobody waits for it any more. One that stores
/// what it has so far needs much less, unless the disk or the engine is slow.
pub const LONGEST_END: Duration = Duration::from_secs(5);

/// Takes turns with a person.
pub trait Answerer: Send + Sync {
    /// Whether a model answers, and which: `:provider` and `:model`, or `:error` with the reason
    /// why none does.
    fn describe(&self) -> Value;

    /// Takes a turn. What it answers goes to the listener piece by piece, as it comes.
    fn take_turn<'a>(
        &'a self,
        turn: UserInput,
        caller: &'a dyn Caller,
        listener: &'a dyn Listener,
    ) -> Later<'a, Result<(), WireError>>;
}

/// Keeps what is said and has nothing to answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModel;

/// Text that a person gets instead of an answer.
const NO_MODEL: &str = "no model is configured, so nobody answers; a [[providers]] table in the configuration file, \
     with name, kind and model, sets one up";

/// Parameters of a turn.
#[derive(Serialize)]
struct TurnParams<'a> {
    session: &'a str,
    content: &'a str,
}

/// Parameters of `approve`.
#[derive(Serialize)]
struct ApproveParams {
    approval: Value,
    decision: Decision,
}

/// The model that answers.
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
        caller: &'a dyn Caller,
        listener: &'a dyn Listener,
    ) -> Later<'a, Result<(), WireError>> {
        Box::pin(async move {
            let params = Value::of(&TurnParams { session: &turn.session, content: &turn.text });
            let done = caller.call("process-turn", params).await?;
            let Some(Value::Str(id)) = done.get("id") else { return Ok(()) };
            listener.say(&format!("; {id} is kept in {}; {NO_MODEL}\n", turn.session));
            Ok(())
        })
    }
}

/// Lets the model answer that `chat` talks to when no other is named, as soon as there is one.
pub struct Model {
    providers: Providers,
}

/// Passes on what a chat has to say.
struct Pieces(mpsc::Sender<Heard>);

/// How many pieces wait to be shown before a chat waits too; it may have as many again to say that do
/// not wait, such as results of tools.
const WAITING: usize = 256;
/// After how many bytes of text it is waited for until they are shown.
const SHOWN_AT_ONCE: usize = 4 << 10;

/// What a chat has to say while it goes on.
enum Heard {
    Text(String),
    /// It waits for leave to use a tool.
    Question(Value, Approval),
}

impl Model {
    /// The default of these models answers, whichever that is at the time.
    pub fn new(providers: Providers) -> Self {
        Self { providers }
    }
}

impl Peer for Pieces {
    fn progress(&self, params: Value) -> bool {
        let (Some(Value::Keyword(kind)), Some(Value::Str(text))) =
            (params.get("kind"), params.get("text"))
        else {
            return false;
        };
        let heard = match &**kind {
            "text" => Heard::Text(text.clone()),
            "status" | "retry" | "tool-result" => {
                Heard::Text(format!("; {}\n", visible_lines(text)))
            }
            "approval" => question(&params, text),
            _ => return false,
        };
        // Who no longer listens needs no piece.
        self.0.try_send(heard).is_ok()
    }

    fn room(&self) -> Later<'_, ()> {
        // It is given back at once: what is sent next has it.
        Box::pin(async { drop(self.0.reserve_many(WAITING).await) })
    }
}

fn question(params: &Value, phrase: &str) -> Heard {
    let said = |name: &str| match params.get(name) {
        Some(Value::Str(text)) => text.clone(),
        _ => String::new(),
    };
    let number = params.get("approval").cloned().unwrap_or_default();
    let details = [format!("Tool: {}", said("tool")), format!("Arguments: {}", said("arguments"))];
    let details = details.iter().map(|line| visible(line).into_owned()).collect();
    // The phrase has the name that the model gave, which may be a link's.
    let place = match said("outside") {
        place if place.is_empty() => place,
        place => format!(" (outside the project: {})", visible(&place)),
    };
    let title = format!("The model wants to {}{place}", visible(phrase));
    Heard::Question(number, Approval { title, details })
}

/// Passes on what is heard until the turn waits for leave, and then what the person says, until
/// nothing more comes. A question that was settled without the person is taken back.
async fn pass_on(
    heard: Heard,
    pieces: &mut mpsc::Receiver<Heard>,
    unshown: &mut usize,
    caller: &dyn Caller,
    listener: &dyn Listener,
) {
    let mut next = Some(heard);
    while let Some(heard) = next.take() {
        let (number, approval) = match heard {
            Heard::Text(mut text) => {
                while text.len() < SHOWN_AT_ONCE {
                    match pieces.try_recv() {
                        Ok(Heard::Text(more)) => text += &more,
                        Ok(question) => {
                            next = Some(question);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                listener.say(&text);
                *unshown += text.len();
                if *unshown >= SHOWN_AT_ONCE {
                    *unshown = 0;
                    listener.shown().await;
                }
                continue;
            }
            Heard::Question(number, approval) => (number, approval),
        };
        let decision = tokio::select! {
            biased;
            // The turn waits for the answer: what it says meanwhile, it says after the question.
            heard = pieces.recv() => {
                next = heard;
                continue;
            }
            decision = listener.allow(approval) => decision,
        };
        let params = Value::of(&ApproveParams { approval: number, decision });
        if caller.call("approve", params).await.is_err() {
            listener.say("; that came too late: the turn no longer waits for it\n");
        }
    }
}

impl Answerer for Model {
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
        caller: &'a dyn Caller,
        listener: &'a dyn Listener,
    ) -> Later<'a, Result<(), WireError>> {
        if self.providers.is_empty() {
            return NoModel.take_turn(turn, caller, listener);
        }
        Box::pin(async move {
            let params = Value::of(&TurnParams { session: &turn.session, content: &turn.text });
            let (sender, mut pieces) = mpsc::channel(2 * WAITING);
            let mut unshown = 0;
            let progress = Arc::new(Pieces(sender));
            let cancelled = turn.cancelled.clone();
            let answer = caller.stream("chat", params, progress, cancelled);
            tokio::pin!(answer);
            let heard_out = async {
                let outcome = loop {
                    tokio::select! {
                        biased;
                        Some(heard) = pieces.recv() => {
                            pass_on(heard, &mut pieces, &mut unshown, caller, listener).await;
                        }
                        outcome = &mut answer => break outcome,
                    }
                };
                while let Ok(heard) = pieces.try_recv() {
                    pass_on(heard, &mut pieces, &mut unshown, caller, listener).await;
                }
                outcome
            };
            let Some(outcome) = turn.cancelled.run_until_cancelled(heard_out).await else {
                // What it still says is not shown.
                drop(pieces);
                return answer.await.map(drop);
            };
            outcome?;
            listener.say("\n");
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
