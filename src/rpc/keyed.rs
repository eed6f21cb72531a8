//! Request keys: a call repeated with the same key gets the first answer and changes nothing.
//! Handlers do not see the keys, except that of `chat`, whose turn has several steps.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::SystemTime;

use blake3::Hasher;

use super::error::{application, param_error, refused};
use super::error_data::{ErrorData, PlainKind};
use super::params::{KEY, RequestKey};
use super::{EngineOperation, Finish, Step};
use crate::engine::{Engine, EngineError, Handle, Reach};
use crate::store::metadata::{print_value, read_value};
use crate::value::{Keyword, Value, sexp};
use crate::wire::message::WireError;

/// Parameters that name the target of a change, or that make it another call of the contract. With
/// other values of these, the same key counts as another key.
const TARGETS: [&str; 5] = ["session", "manager", "managers", "name", "if-needed"];

/// Mark of this run of the server. It is part of the names of keys that are valid only in this run.
static START: LazyLock<String> = LazyLock::new(|| {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x} ", std::process::id(), since.as_nanos())
});

/// The key of a call, with the name and hash for storing its answer.
#[derive(Clone)]
pub(crate) struct Keyed {
    /// Method, key, and a hash of the target.
    name: String,
    /// Hash of the parameters.
    hash: String,
}

/// The answer to a call whose key was used before: the stored outcome of the earlier call, or the
/// error that there is none for this call.
type EarlierAnswer = Result<Value, WireError>;

/// The way in which a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With an answer, or with an error of its own.
    ByItself,
    /// The client cancelled the turn.
    Cancelled,
    /// The turn was broken off for this reason.
    BrokenOff(&'static str),
}

impl Keyed {
    /// Takes the key out of `params`; `None` if there is none. Unless `is_session_named`, the
    /// server filled in the session, which then does not count: a repeated call gets the first
    /// answer even if another session is current by then.
    pub(super) fn take(
        method: &str,
        params: &mut Value,
        is_session_named: bool,
    ) -> Result<Option<Self>, WireError> {
        let Some(key) = params.take_named(KEY).filter(|key| *key != Value::Nil) else {
            return Ok(None);
        };
        let RequestKey(key) = key.decode().map_err(|error| param_error(KEY, &error.message))?;
        let is_counted = |name: &str| name != "session" || is_session_named;
        let target = hash(|hasher| {
            for name in TARGETS {
                feed(hasher, params.get(name).filter(|_| is_counted(name)).unwrap_or(&Value::Nil));
            }
        });
        let hash = hash(|hasher| feed_entries(hasher, params, is_counted));
        Ok(Some(Self { name: format!("\u{1}{method} {key} {target}"), hash }))
    }

    /// Returns the answer of an earlier call with this key, if that call took effect. Waits for the
    /// engine.
    pub(super) fn look_up(&self, engine: &Handle) -> Result<Option<Value>, WireError> {
        let keyed = self.clone();
        engine.ask_blocking(move |engine| keyed.known(engine))?.transpose()
    }

    /// Limits the key to the running server, for changes that do not outlive it.
    pub(super) fn of_this_run(mut self) -> Self {
        self.name.insert_str(1, &START);
        self
    }

    /// Returns the name under which the steps of a turn are recorded.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Binds the key to the parameters of a turn. Returns the answer of the call if the turn must
    /// not begin; `None` if it may.
    pub(super) async fn begin(&self, engine: &Handle) -> Result<Option<EarlierAnswer>, WireError> {
        let keyed = self.clone();
        let begun = self.of_turn("begun");
        let known = engine.ask(move |engine| {
            if let Some(known) = keyed.known(engine)? {
                return Ok(Some(known));
            }
            match engine.recorded(&begun)? {
                None => engine.record(&begun, &keyed.hash).map(|()| None),
                Some(hash) => Ok((hash != keyed.hash).then(|| Err(other_params()))),
            }
        });
        Ok(known.await?)
    }

    /// Returns the kind of the error with which an earlier call with the key failed, if any. Must
    /// be called after this call's turn: the turn waits only until the earlier call frees the
    /// session, and the earlier call stores its outcome just after that.
    pub(super) async fn failed_before(&self, engine: &Handle) -> Result<Option<String>, WireError> {
        let failed = self.of_turn("failed");
        Ok(engine.ask(move |engine| engine.recorded(&failed)).await?)
    }

    /// Stores the outcome of a turn: its answer, or that the turn was cancelled. For any other
    /// failure, stores only its kind, since the call may be tried again.
    pub(super) async fn end(&self, engine: &Handle, outcome: &Result<Value, WireError>, end: End) {
        let record = match outcome {
            Ok(value) => (self.name.clone(), format!("{} {}", self.hash, print_value(value))),
            // If the question is not in the log, nothing has happened.
            Err(error) if error.data.get("question").is_none() => return,
            Err(error) if end == End::Cancelled => {
                (self.name.clone(), format!("{CANCELLED}{} {}", self.hash, print_error(error)))
            }
            Err(error) => match (error.data.get("kind"), end) {
                (_, End::BrokenOff(why)) if error.code == WireError::CANCELLED => {
                    (self.of_turn("failed"), why.to_owned())
                }
                (Some(Value::Keyword(kind)), _) => (self.of_turn("failed"), kind.to_string()),
                _ => return,
            },
        };
        let kept = engine.ask(move |engine| match engine.recorded(&record.0)? {
            Some(_) => Ok(()),
            None => engine.record(&record.0, &record.1),
        });
        // The outcome matters more than its record.
        if let Err(error) = kept.await {
            tracing::warn!(
                "cannot store the outcome of a turn, which may run again if the client repeats \
                 its call with the same request key: {error}"
            );
        }
    }

    fn of_turn(&self, what: &str) -> String {
        format!("{} {what}", self.name)
    }

    fn known(&self, engine: &mut Engine) -> Result<Option<EarlierAnswer>, EngineError> {
        let kept = engine.recorded(&self.name)?;
        let kept = kept.as_deref().and_then(|kept| kept.split_once(' '));
        Ok(match kept {
            None => None,
            Some((hash, text)) if hash == self.hash => Some(read_value(text).ok_or_else(damaged)),
            Some((hash, text)) if hash.strip_prefix(CANCELLED) == Some(&self.hash) => {
                Some(Err(read_error(text).unwrap_or_else(damaged)))
            }
            Some(_) => Some(Err(other_params())),
        })
    }

    /// Wraps the operation of a call, so that the operation runs only once and its answer is stored
    /// together with its changes.
    pub(super) fn wrap(self, step: Step) -> Step {
        match step {
            Step::Done(value) => {
                Step::State(Reach::Anything, self.once(Box::new(|_| Ok(Finish::Now(value)))))
            }
            Step::State(reach, operation) => Step::State(reach, self.once(operation)),
            Step::Await(work) => Step::Await(Box::pin(async { Ok(self.wrap(work.await?)) })),
            other => other,
        }
    }

    fn once(self, operation: EngineOperation) -> EngineOperation {
        Box::new(move |engine| {
            if let Some(known) = self.known(engine)? {
                return Ok(known.into());
            }
            // Does now the work that was left for later, so that the answer is stored in the same
            // step as the change.
            let answer = operation(engine)?.answer();
            if let Ok(value) = &answer {
                engine.record(&self.name, &format!("{} {}", self.hash, print_value(value)))?;
            }
            Ok(answer.into())
        })
    }
}

/// First character of the stored error of a cancelled turn.
const CANCELLED: char = '!';

fn print_error(error: &WireError) -> String {
    print_value(&Value::List(vec![Value::from(&*error.message), error.data.clone()]))
}

/// Reads what [`print_error`] made of the error of a cancelled turn.
fn read_error(text: &str) -> Option<WireError> {
    let Some(Value::List(parts)) = read_value(text) else { return None };
    let [Value::Str(message), data] = &parts[..] else { return None };
    Some(WireError::new(WireError::CANCELLED, message).with(data.clone()))
}

fn other_params() -> WireError {
    reused(
        "was used for a call with other parameters; use a new key for each call, and the same key \
         only to repeat a call unchanged",
    )
}

fn reused(why: &str) -> WireError {
    application(&ErrorData::KeyReused { param: Keyword(KEY) }, format!("{KEY} {why}"))
}

fn damaged() -> WireError {
    refused(
        PlainKind::StoreFailed,
        format!(
            "{KEY} was used before, but the answer stored for it cannot be read; the earlier call \
             has ended, and this one changed nothing"
        ),
    )
}

fn hash(feed: impl FnOnce(&mut Hasher)) -> String {
    let mut hasher = Hasher::new();
    feed(&mut hasher);
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Feeds `value` to `hasher`. A value has the same hash whether it came as JSON or as an
/// s-expression.
fn feed(hasher: &mut Hasher, value: &Value) {
    let mut part = |kind: u8, bytes: &[u8]| feed_part(hasher, kind, bytes);
    match value {
        Value::Nil | Value::Bool(false) => part(b'0', b""),
        Value::Bool(true) => part(b'1', b""),
        Value::Int(number) => part(b'i', number.to_string().as_bytes()),
        Value::BigInt(digits) => part(b'i', digits.as_bytes()),
        Value::Float(number) | Value::FloatText(number, _) => part(b'f', &number.to_le_bytes()),
        Value::Str(text) => part(b's', text.as_bytes()),
        Value::Symbol(name) | Value::Keyword(name) => part(b's', name.as_bytes()),
        Value::Map(_) => feed_entries(hasher, value, |_| true),
        Value::List(items) | Value::Vector(items) if items.is_empty() => part(b'0', b""),
        Value::List(items)
            if value.is_plist() && !items.iter().all(|i| matches!(i, Value::Keyword(_))) =>
        {
            feed_entries(hasher, value, |_| true);
        }
        Value::List(items) | Value::Vector(items) => {
            part(b'l', &items.len().to_le_bytes());
            items.iter().for_each(|item| feed(hasher, item));
        }
        other => part(b'x', sexp::print(other).as_bytes()),
    }
}

fn entry_of(pair: &[Value]) -> Option<(Cow<'_, str>, &Value)> {
    match pair {
        [key, value] => Some((key.plist_key()?, value)),
        _ => None,
    }
}

fn feed_part(hasher: &mut Hasher, kind: u8, bytes: &[u8]) {
    hasher.update(&[kind]).update(&bytes.len().to_le_bytes()).update(bytes);
}

/// Feeds the entries of `map`, a map or property list, to `hasher`, sorted by name. Leaves out
/// entries that are nil or false, and those for whose names `counts` returns false.
fn feed_entries(hasher: &mut Hasher, map: &Value, counts: impl Fn(&str) -> bool) {
    let mut entries: Vec<(Cow<'_, str>, &Value)> = match map {
        Value::Map(entries) => entries.iter().map(|(key, value)| (key.kebab(), value)).collect(),
        Value::List(items) => items.chunks_exact(2).filter_map(entry_of).collect(),
        _ => Vec::new(),
    };
    // If names are equal, the first one counts; sorting keeps their order.
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    entries.dedup_by(|later, first| later.0 == first.0);
    let is_given = |value: &Value| !matches!(value, Value::Nil | Value::Bool(false));
    entries.retain(|(name, value)| counts(name) && is_given(value));
    hasher.update(b"m").update(&entries.len().to_le_bytes());
    for (name, value) in entries {
        feed_part(hasher, b's', name.as_bytes());
        feed(hasher, value);
    }
}

#[cfg(test)]
mod tests;
