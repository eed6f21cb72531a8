//! A provider that plays answers from a file: for tests, demonstrations, and people without a key.
//!
//! A script is TOML, a list of answers:
//!
//! ```toml
//! [[answer]]
//! when = "tests"                     # only if the last message contains this; by default always
//! reasoning = "They ask for tests."  # said before the text
//! text = ["Here is ", "a test."]     # in these pieces, or one string
//! delay = 0.02                       # seconds before each piece
//! calls = [{ name = "read_file", arguments = '{"path": "a.rs"}' }]
//! opaque = { signature = "x" }       # to be sent back with the answer
//! usage = { input = 12, output = 4, cached = 8 }
//!
//! [[answer]]
//! error = "rate-limited"             # fails with this kind of error, before the answer begins
//! message = "too many requests"
//! retry-after = 2
//!
//! [[answer]]
//! text = "This breaks o"
//! cut = true                         # breaks off after the text
//!
//! [[answer]]
//! text = "Nothing more com"
//! hang = true                        # says nothing more, and never ends
//!
//! [[answer]]
//! text = "This was not all"
//! stop = "length"                    # ends at the token limit; or "refused"
//!
//! [[answer]]
//! echo = true                        # repeats the payload of the request after its text
//! ```
//!
//! Each answer that fits is played once, in order; after the last, the first comes again. An answer
//! without `when` fits everything, but an answer whose `when` matches takes precedence.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use super::chat::{
    AnswerStream, ChatMessage, ChatProvider, Request, Stop, StreamEvent, ToolChoice, Usage,
};
use super::normal::{STRICT, normal};
use super::origin::SCRIPTED;
use super::{Answer, ErrorKind, Overflow, ProviderError};
use crate::session::message::ToolCall;
use crate::visible::visible_path;
use crate::whole_file::read_text;

/// Maximum delay before a piece, in seconds.
const LONGEST_DELAY: f64 = 3600.0;
/// Message form of the strictest servers.
/// Maximum length of a script in bytes.
const LONGEST_SCRIPT: u64 = 16 << 20;

/// A provider that follows a script.
#[derive(Clone)]
pub struct Scripted {
    model: String,
    answers: Arc<Mutex<Answers>>,
    file: Option<PathBuf>,
}

struct Answers {
    /// Each answer with the number of times that it was played.
    lines: Vec<(Arc<ScriptedAnswer>, usize)>,
    /// Time of the last change of the file when it was read.
    changed: Option<SystemTime>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Script {
    #[serde(rename = "answer")]
    answers: Vec<ScriptedAnswer>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ScriptedAnswer {
    when: Option<String>,
    reasoning: Option<String>,
    #[serde(default)]
    text: ScriptedText,
    #[serde(default)]
    delay: f64,
    #[serde(default)]
    calls: Vec<ScriptedCall>,
    opaque: Option<serde_json::Value>,
    #[serde(default)]
    usage: Used,
    error: Option<ErrorKind>,
    message: Option<String>,
    retry_after: Option<u32>,
    #[serde(default)]
    cut: bool,
    #[serde(default)]
    hang: bool,
    stop: Option<ScriptedEnd>,
    #[serde(default)]
    echo: bool,
}

/// The reason why an answer ends early.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ScriptedEnd {
    Length,
    Refused,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ScriptedText {
    Response(String),
    Pieces(Vec<String>),
}

impl Default for ScriptedText {
    fn default() -> Self {
        Self::Pieces(Vec::new())
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    #[serde(default)]
    arguments: String,
    id: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Used {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
}

impl Scripted {
    /// Opens a script. Reads the file again before an answer if it was changed.
    ///
    /// # Errors
    /// The reason why the file cannot be read, or the error of [`Scripted::new`].
    pub fn open(path: &Path, model: &str) -> Result<Self, String> {
        let file = Some(path.to_owned());
        Ok(Self { file, ..Self::of(Answers::read(path, changed(path), 0)?, model) })
    }

    /// Parses a script. `model` is the name that the provider reports.
    ///
    /// # Errors
    /// The problem, with its line if it has one.
    pub fn new(script: &str, model: &str) -> Result<Self, String> {
        Ok(Self::of(Answers::new(script, None, 0)?, model))
    }

    fn of(answers: Answers, model: &str) -> Self {
        let answers = Arc::new(Mutex::new(answers));
        Self { model: model.to_owned(), answers, file: None }
    }

    /// Returns the answer to play next, and how often it was played before.
    ///
    /// # Errors
    /// [`ErrorKind::Unconfigured`] if no answer fits, or if the file was changed and is no longer a
    /// valid script.
    async fn next_line(
        &self,
        request: &Request,
    ) -> Result<(Arc<ScriptedAnswer>, usize), ProviderError> {
        if let Some(file) = self.file.clone() {
            let answers = Arc::clone(&self.answers);
            let reading = tokio::task::spawn_blocking(move || read_again(&file, &answers)).await;
            let wrong = |why: String| self.error(ErrorKind::Unconfigured, &why);
            reading.unwrap_or_else(|error| Err(error.to_string())).map_err(wrong)?;
        }
        let what = "the script has no answer for this message";
        let next = locked(&self.answers).next(request);
        next.ok_or_else(|| self.error(ErrorKind::Unconfigured, what))
    }

    fn error(&self, kind: ErrorKind, what: &str) -> ProviderError {
        let overflow = Overflow::read(what).filter(|_| kind == ErrorKind::ContextTooLong);
        let error = ProviderError::new(kind, self.name(), &*self.model, what);
        ProviderError { overflow: overflow.map(Box::new), ..error }
    }
}

impl Answers {
    fn read(path: &Path, changed: Option<SystemTime>, played: usize) -> Result<Self, String> {
        Self::new(&text_of(path)?, changed, played)
    }

    /// Parses a script of which each answer counts as played this many times.
    fn new(script: &str, changed: Option<SystemTime>, played: usize) -> Result<Self, String> {
        let script: Script = toml::from_str(script).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(script.len()));
            let line = script.as_bytes()[..start].iter().filter(|b| **b == b'\n').count() + 1;
            format!("line {line}: {}", error.message())
        })?;
        let answers = script.answers;
        if answers.is_empty() {
            return Err("the script has no [[answer]]".to_owned());
        }
        if answers.iter().any(|line| !(0.0..=LONGEST_DELAY).contains(&line.delay)) {
            return Err(format!("delay must be from 0 to {LONGEST_DELAY} seconds"));
        }
        let lines = answers.into_iter().map(|line| (Arc::new(line), played)).collect();
        Ok(Self { lines, changed })
    }

    fn next(&mut self, request: &Request) -> Option<(Arc<ScriptedAnswer>, usize)> {
        let asked = normal(request, STRICT);
        let last = asked.messages.last().map_or("", |said| &*said.content);
        let by_text =
            |line: &ScriptedAnswer| line.when.as_ref().is_some_and(|when| last.contains(when));
        let any = self.lines.iter().any(|(line, _)| by_text(line));
        let fits = |line: &ScriptedAnswer| if any { by_text(line) } else { line.when.is_none() };
        let fitting = self.lines.iter_mut().filter(|(line, _)| fits(line));
        let (line, times) = fitting.min_by_key(|(_, times)| *times)?;
        *times += 1;
        Some((Arc::clone(line), *times - 1))
    }
}

/// Reads the script in a file again if the file has changed. The counts of plays go on, so that the
/// ids of calls differ from those before.
fn read_again(file: &Path, answers: &Mutex<Answers>) -> Result<(), String> {
    let now = changed(file);
    let (known, played) = {
        let answers = locked(answers);
        (answers.changed, answers.lines.iter().map(|(_, times)| *times).max().unwrap_or(0))
    };
    if now.is_some() && now != known {
        let read = Answers::read(file, now, played);
        *locked(answers) = read.map_err(|why| format!("{}: {why}", visible_path(file)))?;
    }
    Ok(())
}

fn locked(answers: &Mutex<Answers>) -> MutexGuard<'_, Answers> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

fn text_of(path: &Path) -> Result<String, String> {
    read_text(path, LONGEST_SCRIPT).map_err(|error| error.to_string())
}

impl ChatProvider for Scripted {
    fn name(&self) -> &str {
        SCRIPTED
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn with_model(&self, model: &str) -> Arc<dyn ChatProvider> {
        Arc::new(Self { model: model.to_owned(), ..self.clone() })
    }

    fn payload(&self, request: &Request) -> String {
        let said = |said: &ChatMessage| {
            let mut map = serde_json::json!({"role": said.role.name(), "content": &*said.content});
            if let Some(opaque) = &said.opaque {
                map["opaque"] = opaque.clone();
            }
            map
        };
        let messages: Vec<_> = normal(request, STRICT).messages.iter().map(said).collect();
        let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
        let mut payload = serde_json::json!({"model": self.model, "messages": messages});
        if !tools.is_empty() {
            payload["tools"] = tools.into();
        }
        if request.choice == ToolChoice::None {
            payload["without-calls"] = true.into();
        }
        payload.to_string()
    }

    fn chat<'a>(&'a self, request: &'a Request) -> Answer<'a, Box<dyn AnswerStream>> {
        Box::pin(async move {
            let (line, before) = self.next_line(request).await?;
            if let Some(kind) = line.error {
                let what = line.message.as_deref().unwrap_or("the script fails here");
                let retry_after = line.retry_after.map(|wait| Duration::from_secs(wait.into()));
                return Err(ProviderError { retry_after, ..self.error(kind, what) });
            }
            let cut = "the answer broke off in the middle, as the script says";
            let mut pieces = line.pieces(before, || self.payload(request));
            if request.choice == ToolChoice::None {
                pieces.retain(|piece| {
                    !matches!(piece, StreamEvent::Call(_) | StreamEvent::Opaque(_))
                });
            }
            let reply: Box<dyn AnswerStream> = Box::new(Playing {
                pieces: pieces.into(),
                delay: Duration::from_secs_f64(line.delay),
                cut: line.cut.then(|| self.error(ErrorKind::Unavailable, cut)),
                hang: line.hang,
            });
            Ok(reply)
        })
    }
}

impl ScriptedAnswer {
    fn pieces(&self, before: usize, payload: impl FnOnce() -> String) -> Vec<StreamEvent> {
        let texts = match &self.text {
            ScriptedText::Response(text) => std::slice::from_ref(text),
            ScriptedText::Pieces(texts) => texts,
        };
        let mut pieces: Vec<StreamEvent> = Vec::new();
        pieces.extend(self.reasoning.clone().map(StreamEvent::Reasoning));
        pieces.extend(texts.iter().cloned().map(StreamEvent::Text));
        pieces.extend(self.echo.then(|| StreamEvent::Text(payload())));
        let call = |(at, call): (usize, ScriptedCall)| {
            // Ids differ from those of earlier plays of the same answer.
            let id = call.id.unwrap_or_else(|| format!("call-{before}-{at}"));
            StreamEvent::Call(ToolCall { id, name: call.name, arguments: call.arguments })
        };
        pieces.extend(self.calls.iter().cloned().enumerate().map(call));
        if !self.cut && !self.hang {
            let opaque = self.opaque.clone().filter(|_| !self.calls.is_empty());
            pieces.extend(opaque.map(StreamEvent::Opaque));
            let Used { input, output, cached: cache_read } = self.usage;
            let usage = Usage { input, output, cache_read, ..Usage::default() };
            pieces.push(StreamEvent::Usage(usage));
            let stop = match self.stop {
                Some(ScriptedEnd::Length) => Stop::Length,
                Some(ScriptedEnd::Refused) => Stop::Refused,
                None if self.calls.is_empty() => Stop::Finished,
                None => Stop::Calls,
            };
            pieces.push(StreamEvent::Stopped(stop));
        }
        pieces
    }
}

struct Playing {
    pieces: VecDeque<StreamEvent>,
    delay: Duration,
    cut: Option<ProviderError>,
    hang: bool,
}

impl AnswerStream for Playing {
    fn next(&mut self) -> Answer<'_, Option<StreamEvent>> {
        Box::pin(async move {
            let waits = matches!(
                self.pieces.front(),
                Some(StreamEvent::Text(_) | StreamEvent::Reasoning(_) | StreamEvent::Call(_))
            );
            if waits && !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            match (self.pieces.pop_front(), &self.cut) {
                (Some(piece), _) => Ok(Some(piece)),
                (None, Some(cut)) => Err(cut.clone()),
                (None, None) if self.hang => std::future::pending().await,
                (None, None) => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests;
