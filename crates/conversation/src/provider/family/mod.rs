//! Provider families: how to build requests and read answers. Each family has one file of pure
//! functions over JSON.

mod anthropic;
mod calls;
mod effort;
mod facts;
mod gemini;
mod ollama;
mod openai;
mod responses;
mod shape;
mod think;

use serde_json::{Value, json};

use self::calls::{AnswerCalls, Finished};
pub(super) use self::effort::{fit_budget, other_effort, sends_effort};
use self::facts::FamilyFacts;
pub(super) use self::facts::{DEPLOYMENTS, LimitsIn};
pub(super) use self::openai::fill_in_reasoning;
pub(super) use self::responses::INCLUDED;
use self::shape::{Halves, stop};
use self::think::Think;
use super::chat::{KEPT, Request, Stop, StreamEvent, ToolDefinition, Usage};
use super::error::ErrorKind;
use super::normal::{IDS, MessageForm, arguments};
use super::refusal::ServerRefusal;
use crate::names::names;
use crate::session::message::ToolCall;

/// Maximum number of commas and opening brackets in one piece, which bounds the memory for its
/// JSON.
const MOST_DATA: usize = 500_000;

names! {
    /// A kind of server.
    Family {
        /// `OpenAI`'s chat completions, which most model servers offer: `OpenAI`, `OpenRouter`,
        /// llama.cpp, vLLM, LM Studio.
        Openai => "openai",
        /// `OpenAI`'s Responses API, which some models need.
        Responses => "responses",
        /// Anthropic's Messages API.
        Anthropic => "anthropic",
        /// Google's Gemini API.
        Gemini => "gemini",
        /// Ollama's own API.
        Ollama => "ollama",
    }
}

/// What differs between the families when an answer is read.
trait Decoder: Send {
    /// Reads one event.
    fn take(&mut self, said: &Value, out: &mut GatheredAnswer) -> Result<(), Broken>;

    /// Returns the data to send back with the message, if any, once the answer is complete.
    fn kept(&mut self, calls: &[ToolCall], out: &GatheredAnswer) -> Value;
}

/// An error in an answer: one that the server tells, or that of an answer that cannot be read.
#[derive(Debug)]
pub(super) struct Broken(pub(super) Box<ServerRefusal>);

impl Broken {
    pub(super) fn malformed(what: impl Into<String>) -> Self {
        Self(Box::new(ServerRefusal::new(ErrorKind::Malformed, what.into())))
    }
}

impl From<ServerRefusal> for Broken {
    fn from(refusal: ServerRefusal) -> Self {
        Self(Box::new(refusal))
    }
}

/// What is known of an answer so far, in the form that all families share.
struct GatheredAnswer {
    calls: AnswerCalls,
    /// The extra data of calls; see [`Finished`].
    extras: Vec<Value>,
    stop: Option<Stop>,
    /// True once nothing more will come.
    is_done: bool,
    /// True once text, reasoning or a call has come.
    has_begun: bool,
    pieces: Vec<StreamEvent>,
    halves: [Halves; 2],
    think: Think,
    /// The text as it came, for servers that leave reasoning in it.
    text: String,
}

impl GatheredAnswer {
    fn text(&mut self, more: &str) {
        let more = self.halves[0].add(more);
        self.has_begun |= !more.is_empty();
        let pieces = &mut self.pieces;
        self.text += &more;
        self.think.add(&more, &mut |thinks, more| tell(pieces, thinks, more));
        if self.think.is_without() {
            self.text.clear();
        }
    }

    fn reasoning(&mut self, more: &str) {
        let more = self.halves[1].add(more);
        self.has_begun |= !more.is_empty();
        tell(&mut self.pieces, true, &more);
    }

    fn usage(&mut self, usage: Usage) {
        self.pieces.push(StreamEvent::Usage(usage));
    }

    fn end(&mut self) {
        let reasoning = self.halves[1].end();
        tell(&mut self.pieces, true, &reasoning);
        let text = self.halves[0].end();
        let pieces = &mut self.pieces;
        self.think.add(&text, &mut |thinks, more| tell(pieces, thinks, more));
        self.think.end(&mut |thinks, more| tell(pieces, thinks, more));
    }
}

/// Returns whether this text of a stream is the mark of its end.
fn is_end(text: &str) -> bool {
    undoubled(text).eq_ignore_ascii_case("[DONE]")
}

/// Returns a text of a stream without the name of its line, which some proxies write once more.
fn undoubled(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = text.strip_prefix("data:") {
        text = rest.trim_start();
    }
    text
}

fn tell(pieces: &mut Vec<StreamEvent>, thinks: bool, more: &str) {
    if !more.is_empty() {
        let piece = if thinks { StreamEvent::Reasoning } else { StreamEvent::Text };
        pieces.push(piece(more.to_owned()));
    }
}

/// Reads an answer: text by text as the stream has them.
pub(super) struct AnswerReader {
    decoder: Box<dyn Decoder>,
    out: GatheredAnswer,
    has_ended: bool,
}

impl AnswerReader {
    /// Begins an answer. For calls without ids, `stamp` makes generated ids differ from those of
    /// other answers. `thinks` is true if the answer begins within reasoning.
    pub(super) fn new(family: Family, stamp: i64, thinks: bool) -> Self {
        let out = GatheredAnswer {
            calls: AnswerCalls::new(stamp),
            extras: Vec::new(),
            stop: None,
            is_done: false,
            has_begun: false,
            pieces: Vec::new(),
            halves: [Halves::default(), Halves::default()],
            think: Think::new(thinks),
            text: String::new(),
        };
        Self { decoder: (family.facts().decoder)(), out, has_ended: false }
    }

    /// Reads a text of the stream: an event, or the mark of the end. Adds the pieces of the answer
    /// that came before an error, too.
    pub(super) fn take(&mut self, text: &str, pieces: &mut Vec<StreamEvent>) -> Result<(), Broken> {
        if self.has_ended {
            return Ok(());
        }
        let read = self.read(text);
        pieces.append(&mut self.out.pieces);
        if read.is_ok() && self.out.is_done {
            self.end(pieces);
        }
        read
    }

    /// Reads what came last before the connection ended. A part of a text says nothing.
    pub(super) fn take_last(
        &mut self,
        text: &str,
        pieces: &mut Vec<StreamEvent>,
    ) -> Result<(), Broken> {
        let is_whole = |text: &&str| is_end(text) || shape::parse(undoubled(text)).is_ok();
        if is_whole(&text) {
            return self.take(text, pieces);
        }
        // Without empty lines, all events come as one.
        let lines = text.lines().filter(|line| line.len() < text.len());
        lines.take_while(is_whole).try_for_each(|line| self.take(line, pieces))
    }

    fn read(&mut self, text: &str) -> Result<(), Broken> {
        let text = undoubled(text);
        if text.is_empty() {
            return Ok(());
        }
        if is_end(text) {
            self.out.stop = self.out.stop.take().or(Some(Stop::Finished));
            self.out.is_done = true;
            return Ok(());
        }
        let data = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
        if data > MOST_DATA {
            let what = format!("a piece of the answer has more than {MOST_DATA} values");
            return Err(Broken::malformed(what));
        }
        let parsed = match shape::parse(text) {
            // Without empty lines between them, several events come as one.
            Err(_) if text.contains('\n') => {
                return text.lines().try_for_each(|line| self.read(line));
            }
            parsed => parsed?,
        };
        match parsed {
            Value::Null => Ok(()),
            Value::Array(events) => events.iter().try_for_each(|event| self.event(event)),
            event => self.event(&event),
        }
    }

    fn event(&mut self, said: &Value) -> Result<(), Broken> {
        if said.is_null() {
            return Ok(());
        }
        if !said.is_object() {
            return Err(shape::unknown("an event", said));
        }
        match ServerRefusal::in_answer(said) {
            Some(refusal) => {
                Err(ServerRefusal { said: shape::mended(&refusal.said), ..refusal }.into())
            }
            None => self.decoder.take(said, &mut self.out),
        }
    }

    /// Returns whether text, reasoning or a call has come.
    pub(super) fn has_begun(&self) -> bool {
        self.out.has_begun || !self.out.calls.is_empty()
    }

    /// Returns whether the reason for the end has come, after which little may follow.
    pub(super) fn has_said_why(&self) -> bool {
        self.has_ended || self.out.stop.is_some()
    }

    /// Handles the end of the connection. Returns whether the answer is complete; if it is, adds its
    /// last pieces.
    pub(super) fn closed(&mut self, pieces: &mut Vec<StreamEvent>) -> bool {
        if !self.has_ended && self.out.stop.is_some() {
            self.end(pieces);
        }
        self.has_ended
    }

    fn end(&mut self, pieces: &mut Vec<StreamEvent>) {
        self.has_ended = true;
        self.out.end();
        pieces.append(&mut self.out.pieces);
        let Finished { calls, ids, extras, has_lost } = self.out.calls.finished();
        self.out.extras = extras;
        let mut opaque = json!({});
        let kept = self.decoder.kept(&calls, &self.out);
        if !kept.is_null() {
            opaque[KEPT] = kept;
        }
        if !ids.is_empty() {
            opaque[IDS] = ids.into();
        }
        let stop = match self.out.stop.take() {
            _ if has_lost => Stop::Malformed,
            Some(Stop::Finished) | None if !calls.is_empty() => Stop::Calls,
            Some(Stop::Calls) if calls.is_empty() => Stop::Malformed,
            stop => stop.unwrap_or(Stop::Finished),
        };
        pieces.extend(calls.into_iter().map(StreamEvent::Call));
        pieces.extend((opaque != json!({})).then_some(StreamEvent::Opaque(opaque)));
        pieces.push(StreamEvent::Stopped(stop));
    }
}

impl Family {
    /// Returns what differs between the families.
    pub(super) fn facts(self) -> &'static FamilyFacts {
        match self {
            Self::Openai => &openai::FACTS,
            Self::Responses => &responses::FACTS,
            Self::Anthropic => &anthropic::FACTS,
            Self::Gemini => &gemini::FACTS,
            Self::Ollama => &ollama::FACTS,
        }
    }

    /// Returns the default address of the interface.
    pub fn usual_url(self) -> &'static str {
        self.facts().usual_url
    }

    /// Returns whether servers of this kind usually run on the user's machine. They want no key, and
    /// are told how large a window to load.
    pub fn is_local(self) -> bool {
        self.facts().usual_key.is_none()
    }

    /// Returns the message form that this family needs; see [`normal`](super::normal::normal).
    pub(super) fn form(self) -> MessageForm {
        MessageForm { joins_results: self.facts().joins_results, takes_calls: true }
    }

    /// Builds the body of a request in [normal form](Self::form). `context` is the window size in
    /// tokens that the server should provide, for families that support this.
    pub(super) fn body(
        self,
        base: &str,
        model: &str,
        request: &Request,
        context: Option<u64>,
    ) -> Value {
        let facts = self.facts();
        let mut body = (facts.body)(base, model, request, context);
        if let Some(effort) = request.effort {
            (facts.effort)(model, effort, &mut body);
        }
        body
    }
}

/// Appends to a text, creating it if needed.
fn append(text: &mut Value, more: &Value) {
    let Some(more) = more.as_str() else { return };
    match text {
        Value::String(text) => text.push_str(more),
        none => *none = more.into(),
    }
}

/// Builds the list of tools as functions, in the form of `OpenAI` and Ollama.
fn functions(tools: &[ToolDefinition]) -> Value {
    let function = |tool: &ToolDefinition| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": schema(tool),
        }})
    };
    tools.iter().map(function).collect()
}

/// Returns the schema of a tool. `OpenAI` refuses an object without properties.
fn schema(tool: &ToolDefinition) -> Value {
    let mut schema = tool.schema.clone();
    if schema["type"] == "object" && !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema
}

/// Sets an entry, if there is a value.
fn set(body: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body[name] = value.into();
    }
}

#[cfg(test)]
mod tests;
