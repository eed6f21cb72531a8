//! Talking to a model: one turn from the user's words to the answer in the log.
//!
//! A turn is processed as by `process-turn`, a window is built, and the answer is streamed. Once the
//! user's message is in the log, whatever fails leaves it there, and what came of an answer too.

use std::sync::Arc;

use serde::Deserialize;

use super::call::{Call, Tools};
use super::curate::session_costs;
use super::embedding::{Embedded, embedded};
use super::error::{application, engine_error};
use super::messages::MessageParam;
use super::params::{Name, RequestKey, decode};
use super::present::{entry, figure, keyword};
use super::providers::Configured;
use super::window::{SectionTexts, Wish, build_of};
use super::{Step, messages, turn};
use crate::curation::section::{Counted, Section, Sections};
use crate::curation::summary::Extractive;
use crate::curation::window::Window;
use crate::engine::{EngineError, Material, NewMessage, Turn, TurnDone};
use crate::provider::chat::{Piece, Request, Said, Stop, Usage, Whole, cancelled};
use crate::provider::{ErrorKind, ProviderError};
use crate::session::message::{Message, Phase, Role};
use crate::store::session::Spent;
use crate::value::Value;
use crate::wire::message::WireError;

/// By how much the window is made smaller when the provider finds it too long.
const SMALLER: f64 = 0.5;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ChatParams {
    session: Option<Name>,
    content: String,
    phase: Option<Phase>,
    provider: Option<Name>,
    sections: Option<SectionTexts>,
    dry_run: Option<bool>,
    request_key: Option<RequestKey>,
}

/// What a turn of a chat needs, once its parameters are known to be good.
struct Chat {
    call: Call,
    configured: Configured,
    session: Option<String>,
    message: NewMessage,
    phase: Option<Phase>,
    sections: Sections,
    vector: Option<(String, Vec<f32>)>,
    /// By which a call that is made again is known.
    key: Option<String>,
}

/// What became of a turn before the model was asked.
struct Begun {
    id: u64,
    name: String,
    turn: TurnDone,
}

pub(super) fn chat(call: Call, params: Value) -> Result<Step, WireError> {
    let given: ChatParams = decode(params)?;
    let configured = call.tools.providers.find(given.provider.as_deref(), None)?;
    let counter = &*call.tools.counter;
    let message = MessageParam::of_user(given.content, given.phase).counted(counter)?;
    let sections = given.sections.unwrap_or_default().counted(counter);
    let (session, phase) = (given.session.map(|Name(name)| name), given.phase);
    let dry_run = given.dry_run.unwrap_or(false);
    let text = message.content.to_string();
    let next = call.clone();
    let key = given.request_key.map(|key| key.to_string());
    embedded(&call, text, move |Embedded { vector, .. }| {
        let chat = Chat { call: next, configured, session, message, phase, sections, vector, key };
        Ok(Step::Await(Box::pin(async move {
            let outcome = match dry_run {
                true => chat.dry_run().await,
                // A task of its own: when the call is cancelled, it still keeps what had come.
                false => tokio::spawn(chat.hold()).await.unwrap_or_else(|_| Err(broken())),
            };
            outcome.map(Step::Done)
        })))
    })
}

fn broken() -> WireError {
    WireError::new(WireError::INTERNAL, "internal error in chat; the server goes on")
}

impl Chat {
    /// The whole turn; other turns of the session are refused meanwhile.
    async fn hold(self) -> Result<Value, WireError> {
        let session = self.session.clone();
        let begin = move |engine: &mut crate::engine::Engine| {
            let id = engine.find_session(session.as_deref())?.id;
            engine.begin_turn(id)?;
            Ok(id)
        };
        let engine = self.call.tools.engine.clone();
        let id = engine.ask(begin).await.map_err(engine_error)?;
        let outcome = tokio::spawn(self.turn(id)).await.unwrap_or_else(|_| Err(broken()));
        let end = move |engine: &mut crate::engine::Engine| {
            engine.end_turn(id);
            Ok(())
        };
        engine.ask(end).await.map_err(engine_error)?;
        outcome
    }

    async fn turn(self, id: u64) -> Result<Value, WireError> {
        let begun = self.begin(id).await?;
        if let Some(answer) = self.answered_before(&begun).await? {
            return Ok(answer);
        }
        if begun.turn.summarized.is_some() {
            self.progress("status", "older turns were summarized");
        }
        let mut whole = Whole::default();
        let mut max_tokens = None;
        let (mut window, mut line) = self.window(&begun, max_tokens).await?;
        loop {
            let Err(error) = self.stream(&window, &mut whole).await else { break };
            let nothing_came = whole == Whole::default();
            if error.kind == ErrorKind::ContextTooLong && max_tokens.is_none() && nothing_came {
                let smaller = (window.tokens as f64 * SMALLER) as u64;
                self.progress(
                    "retry",
                    "the window was too long for the model; trying a smaller one",
                );
                max_tokens = Some(smaller);
                (window, line) = self.window(&begun, max_tokens).await?;
                continue;
            }
            if !nothing_came {
                self.account(line, &window, &whole).await;
            }
            return Err(self.failed(&begun, whole, error).await);
        }
        let answer = self.log(&begun, &whole).await?;
        self.account(line, &window, &whole).await;
        Ok(self.told(&begun, window.tokens, &whole, answer))
    }

    /// The turn as `process-turn` does it.
    async fn begin(&self, id: u64) -> Result<Begun, WireError> {
        let (message, vector) = (self.message.clone(), self.vector.clone());
        let key = self.key.clone();
        let asked = self.call.tools.engine.ask(move |engine| {
            let row = engine.row(id)?;
            let costs = session_costs(engine, &row.settings, None)?;
            let turn = engine.once("chat", key.as_deref(), |engine| {
                let turn = Turn { message, coherence: None, vector };
                engine.process_turn(id, turn, &costs, &Extractive)
            })?;
            Ok(Begun { id, name: row.name, turn })
        });
        asked.await.map_err(engine_error)
    }

    /// The answer that a call of the same key has brought already; the question was not put into
    /// the log again. A call that had brought none goes on.
    async fn answered_before(&self, begun: &Begun) -> Result<Option<Value>, WireError> {
        if self.key.is_none() {
            return Ok(None);
        }
        let (id, next) = (begun.id, begun.turn.message + 1);
        let asked = self.call.tools.engine.ask(move |engine| {
            let said = engine.session(id)?.message(next);
            Ok(said.filter(|said| said.role == Role::Assistant).cloned())
        });
        let Some(said) = asked.await.map_err(engine_error)? else { return Ok(None) };
        let whole = Whole { text: said.content.to_string(), ..Whole::default() };
        Ok(Some(self.told(begun, 0, &whole, Some(said.number))))
    }

    /// The window, and the number of its line in the log of usage.
    async fn window(
        &self,
        begun: &Begun,
        max_tokens: Option<u64>,
    ) -> Result<(Window, u64), WireError> {
        let session = format!("ses-{}", begun.id);
        let model = self.configured.provider.model().to_owned();
        let material =
            self.call.tools.engine.ask(move |engine| engine.material(Some(&session), Some(&model)));
        let material = material.await.map_err(engine_error)?;
        let grounding = begun.turn.grounding.clone();
        let window = self.build(material, grounding, max_tokens).await?;
        let (id, noted) = (begun.id, window.clone());
        let note = self.call.tools.engine.ask(move |engine| engine.note_window(id, &noted));
        let line = note.await.map_err(engine_error)?;
        Ok((window, line))
    }

    /// Builds a window on a thread that may block: files of live items are read.
    async fn build(
        &self,
        material: Material,
        grounding: String,
        max_tokens: Option<u64>,
    ) -> Result<Window, WireError> {
        let tools: Arc<Tools> = Arc::clone(&self.call.tools);
        let mut sections = self.sections.clone();
        if sections.grounding.is_none() && !grounding.is_empty() {
            sections.grounding = Some(Counted::new(grounding, &*tools.counter));
        }
        let wish = Wish { phase: self.phase, strategy: None, max_tokens, query: None, sections };
        let built = tokio::task::spawn_blocking(move || build_of(&tools, material, wish));
        built.await.unwrap_or_else(|_| Err(broken())).map(|built| built.window)
    }

    /// Asks the model and passes on what it says, until the end or until nobody wants it.
    async fn stream(&self, window: &Window, whole: &mut Whole) -> Result<(), ProviderError> {
        let provider = &*self.configured.provider;
        let request = self.request(window);
        let gone = self.call.cancelled.cancelled();
        tokio::pin!(gone);
        let mut reply = tokio::select! {
            reply = provider.chat(&request) => reply?,
            () = &mut gone => return Err(cancelled(provider)),
        };
        loop {
            let piece = tokio::select! {
                piece = reply.next() => piece?,
                () = &mut gone => return Err(cancelled(provider)),
            };
            let Some(piece) = piece else { return Ok(()) };
            match &piece {
                Piece::Text(text) => self.progress("text", text),
                Piece::Reasoning(text) => self.progress("reasoning", text),
                Piece::Call(called) => self.progress("tool-call", &called.name),
                Piece::Usage(_) | Piece::Stopped(_) => {}
            }
            whole.add(piece);
        }
    }

    fn request(&self, window: &Window) -> Request {
        let spoken = window.parts.iter().filter(|part| part.section != Section::ToolSchemas);
        let messages: Vec<Said> = spoken
            .map(|part| Said {
                role: part.role,
                content: Arc::clone(&part.content),
                tool_calls: part.tool_calls.clone(),
                tool_call_id: part.tool_call_id.clone(),
            })
            .collect();
        // What comes before the user's new message is the same in the next request, as far as the
        // strategy lets it be.
        let stable = messages.iter().rposition(|said| said.role == Role::User).unwrap_or(0);
        Request { messages, stable, max_tokens: self.configured.max_tokens, ..Request::default() }
    }

    /// Puts what came of the answer into the log, and gives its number.
    async fn log(&self, begun: &Begun, whole: &Whole) -> Result<Option<u64>, WireError> {
        if whole.text.is_empty() && whole.calls.is_empty() {
            return Ok(None);
        }
        let counter = &*self.call.tools.counter;
        let answer = NewMessage {
            role: Role::Assistant,
            content: Arc::from(&*whole.text),
            phase: self.phase,
            tool_calls: whole.calls.clone(),
            tool_call_id: None,
            pinned: false,
            tokens: NewMessage::tokens_of(counter, &whole.text, &whole.calls),
            counted_by: counter.name(),
            timestamp: None,
        };
        let id = begun.id;
        let said = self.call.tools.engine.ask(move |engine| engine.add_messages(id, vec![answer]));
        Ok(said.await.map_err(engine_error)?.numbers.last().copied())
    }

    /// The error of an answer that failed, of which the beginning is kept.
    async fn failed(&self, begun: &Begun, whole: Whole, error: ProviderError) -> WireError {
        let kept = self.log(begun, &whole).await.ok().flatten();
        let mut wire = match error.kind {
            ErrorKind::Cancelled => engine_error(EngineError::Cancelled),
            kind => application(kind.name(), error.to_string(), vec![]),
        };
        if let Value::Map(data) = &mut wire.data {
            data.push(entry("question", messages::name(begun.turn.message)));
            data.push(entry("id", kept.map_or(Value::Nil, messages::name)));
            data.push(entry("provider", &*self.configured.name));
        }
        wire
    }

    /// Notes what the answer took, and learns from the tokens that the provider counted.
    async fn account(&self, line: u64, window: &Window, whole: &Whole) {
        let Usage { input, output, cache_read, .. } = whole.usage;
        let model = self.configured.provider.model().to_owned();
        let provider = self.configured.name.clone();
        let cost = self.configured.cost(&whole.usage);
        let spent = Spent { provider, model, input, output, cached: cache_read, cost };
        let counted = window.tokens;
        let noted = self.call.tools.engine.ask(move |engine| {
            engine.note_usage(line, &spent)?;
            if let Some(reported) = spent.input {
                engine.report_usage(&spent.model, counted, reported)?;
            }
            Ok(())
        });
        if let Err(error) = noted.await {
            tracing::warn!("what the provider reported was not kept: {error}");
        }
    }

    fn told(&self, begun: &Begun, tokens: u64, whole: &Whole, answer: Option<u64>) -> Value {
        let usage = &whole.usage;
        let count = |count: Option<u64>| count.map_or(Value::Nil, figure);
        let stop = match &whole.stop {
            Some(Stop::Finished) | None => "stop",
            Some(Stop::Length) => "length",
            Some(Stop::Calls) => "tool-calls",
            Some(Stop::Refused) => "refused",
            Some(Stop::Other(_)) => "other",
        };
        Value::Map(vec![
            entry("session", &*begun.name),
            entry("id", answer.map_or(Value::Nil, messages::name)),
            entry("question", messages::name(begun.turn.message)),
            entry("content", &*whole.text),
            entry("stop-reason", keyword(stop)),
            entry(
                "usage",
                Value::Map(vec![
                    entry("input", count(usage.input)),
                    entry("output", count(usage.output)),
                    entry("cached", count(usage.cache_read)),
                ]),
            ),
            entry("cost", self.configured.cost(usage).map_or(Value::Nil, Value::from)),
            entry("provider", &*self.configured.name),
            entry("model", self.configured.provider.model()),
            entry("window-tokens", figure(tokens)),
            entry("turn", Value::Map(turn::turn_map(&begun.turn))),
        ])
    }

    /// What would be sent, without sending or changing anything.
    async fn dry_run(self) -> Result<Value, WireError> {
        let (session, message) = (self.session.clone(), self.message.clone());
        let model = self.configured.provider.model().to_owned();
        let material = self.call.tools.engine.ask(move |engine| {
            let mut material = engine.material(session.as_deref(), Some(&model))?;
            let number = engine.session(material.row.id)?.length() + 1;
            let said: Message = message.into_message(number, 0);
            material.messages.push(Arc::new(said));
            Ok(material)
        });
        let material = material.await.map_err(engine_error)?;
        let name = material.row.name.clone();
        let window = self.build(material, String::new(), None).await?;
        let payload = self.configured.provider.payload(&self.request(&window));
        let parts = window.parts.iter().map(|part| {
            let mut map = vec![
                entry("section", keyword(part.section.name())),
                entry("role", keyword(part.role.name())),
                entry("tokens", figure(part.tokens)),
            ];
            map.extend(part.message.map(|number| entry("id", messages::name(number))));
            Value::Map(map)
        });
        Ok(Value::Map(vec![
            entry("session", name),
            entry("provider", &*self.configured.name),
            entry("model", self.configured.provider.model()),
            entry("tokens", figure(window.tokens)),
            entry("parts", Value::List(parts.collect())),
            entry("payload", payload),
        ]))
    }

    fn progress(&self, kind: &str, text: &str) {
        let Some(id) = self.call.id.clone() else { return };
        self.call.peer.progress(Value::Map(vec![
            entry("id", Value::from(id)),
            entry("kind", keyword(kind)),
            entry("text", text),
        ]));
    }
}
