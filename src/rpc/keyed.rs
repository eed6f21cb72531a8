//! Request keys: a call repeated with the same key gets the first answer and changes nothing.
//! Handlers do not know about them.

use std::borrow::Cow;

use blake3::Hasher;

use super::alias::kept_name;
use super::error::{application, engine_error, param_error, refused};
use super::error_data::{ErrorData, PlainKind};
use super::params::{KEY, RequestKey};
use super::{Finish, Operation, Step};
use crate::engine::{Engine, EngineError, Handle, Reach};
use crate::store::metadata::{print_value, read_value};
use crate::value::{Keyword, Value, kebab, sexp};
use crate::wire::message::WireError;

/// Parameters that name the place of a change. The same key counts separately for each place.
const PLACES: [&str; 4] = ["session", "manager", "managers", "name"];

/// The key of a call, with the name and hash for storing its answer.
#[derive(Clone)]
pub(super) struct Keyed {
    /// Method, key, and a hash of the place.
    name: String,
    /// Name under which earlier releases stored their answers.
    earlier: String,
    /// Hash of the parameters.
    hash: String,
}

/// The outcome of looking up a key.
enum Known {
    /// The stored answer of an earlier call.
    Answer(Value),
    /// The reason why the call cannot be answered.
    Reused(WireError),
}

impl Keyed {
    /// Takes the key out of the parameters of a call. A session that the server filled in is not a
    /// place that the call names, since a repeated call uses the session of the first call.
    pub(super) fn take(
        method: &str,
        params: &mut Value,
        is_session_named: bool,
    ) -> Result<Option<Self>, WireError> {
        let Some(key) = params.take_named(KEY).filter(|key| *key != Value::Nil) else {
            return Ok(None);
        };
        let RequestKey(key) = key.decode().map_err(|error| param_error(KEY, &error.message))?;
        let is_told = |name: &str| name != "session" || is_session_named;
        let place = hash(|hasher| {
            for name in PLACES {
                feed(hasher, params.get(name).filter(|_| is_told(name)).unwrap_or(&Value::Nil));
            }
        });
        let hash = hash(|hasher| feed_entries(hasher, params, is_told));
        let earlier = format!("{} {key}", kept_name(method, params));
        Ok(Some(Self { name: format!("\u{1}{earlier} {place}"), earlier, hash }))
    }

    /// Returns the answer of an earlier call with this key, if it was applied. Waits for the
    /// engine.
    pub(super) fn look_up(&self, engine: &Handle) -> Result<Option<Value>, WireError> {
        let keyed = self.clone();
        match engine.ask_blocking(move |engine| keyed.known(engine)).map_err(engine_error)? {
            None => Ok(None),
            Some(Known::Answer(value)) => Ok(Some(value)),
            Some(Known::Reused(error)) => Err(error),
        }
    }

    fn known(&self, engine: &mut Engine) -> Result<Option<Known>, EngineError> {
        let kept = engine.recorded(&self.name)?;
        let is_earlier = kept.is_none() && engine.recorded(&self.earlier)?.is_some();
        let kept = kept.as_deref().and_then(|kept| kept.split_once(' '));
        Ok(match kept {
            None if is_earlier => Some(Known::Reused(reused(
                "was answered by an earlier release, which stored no answer to repeat; check \
                 whether the change was made, and use a new key to make another",
            ))),
            None => None,
            Some((hash, text)) if hash == self.hash => {
                Some(read_value(text).map_or_else(|| Known::Reused(damaged()), Known::Answer))
            }
            Some(_) => Some(Known::Reused(reused(
                "was used for a call with other parameters; use a new key for each call, and the \
                 same key only to repeat a call unchanged",
            ))),
        })
    }

    /// Wraps the operation of a call, so that it runs once and its answer is stored with its
    /// changes.
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

    fn once(self, operation: Operation) -> Operation {
        Box::new(move |engine| {
            match self.known(engine)? {
                Some(Known::Answer(value)) => return Ok(Finish::Now(value)),
                Some(Known::Reused(error)) => return Ok(Finish::Refused(error)),
                None => {}
            }
            // What is made later is made now: it is kept in the same step as the change.
            let answer = match operation(engine)? {
                Finish::Now(value) => Ok(value),
                Finish::Later(work) => work(),
                Finish::Refused(error) => Err(error),
            };
            match answer {
                Err(error) => Ok(Finish::Refused(error)),
                Ok(value) => {
                    let text = format!("{} {}", self.hash, print_value(&value));
                    engine.record(&self.name, &text)?;
                    Ok(Finish::Now(value))
                }
            }
        })
    }
}

fn reused(why: &str) -> WireError {
    application(&ErrorData::KeyReused { param: Keyword(KEY) }, format!("{KEY} {why}"))
}

fn damaged() -> WireError {
    refused(PlainKind::StoreFailed, format!("the answer kept under {KEY} cannot be read"))
}

fn hash(feed: impl FnOnce(&mut Hasher)) -> String {
    let mut hasher = Hasher::new();
    feed(&mut hasher);
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Feeds a datum to a hash, in the same way for JSON and for an s-expression.
fn feed(hasher: &mut Hasher, value: &Value) {
    let mut part = |kind: u8, bytes: &[u8]| feed_part(hasher, kind, bytes);
    match value {
        Value::Nil | Value::Bool(false) => part(b'0', b""),
        Value::Bool(true) => part(b'1', b""),
        Value::Int(number) => part(b'i', number.to_string().as_bytes()),
        Value::BigInt(digits) => part(b'i', digits.as_bytes()),
        Value::Float(number) | Value::FloatText(number, _) => part(b'f', &number.to_le_bytes()),
        Value::Str(text) | Value::Propertized(text, _) => part(b's', text.as_bytes()),
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
        [Value::Keyword(name), value] => Some((kebab(name), value)),
        _ => None,
    }
}

fn feed_part(hasher: &mut Hasher, kind: u8, bytes: &[u8]) {
    hasher.update(&[kind]).update(&bytes.len().to_le_bytes()).update(bytes);
}

/// Feeds the entries to a hash, sorted by name. Entries that are nil do not count.
fn feed_entries(hasher: &mut Hasher, map: &Value, counts: impl Fn(&str) -> bool) {
    let mut entries: Vec<(Cow<'_, str>, &Value)> = match map {
        Value::Map(entries) => entries.iter().map(|(key, value)| (key.kebab(), value)).collect(),
        Value::List(items) => items.chunks_exact(2).filter_map(entry_of).collect(),
        _ => Vec::new(),
    };
    // Of equal names the first counts, and the order is kept among them.
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
mod tests {
    use super::*;
    use crate::context::change::Settings;
    use crate::store::sqlite::SqliteStore;
    use crate::value::json::from_json;

    fn keyed(mut params: Value) -> Keyed {
        let keyed = Keyed::take("undo", &mut params, true).unwrap().unwrap();
        assert_eq!(params.get(KEY), None);
        keyed
    }

    #[test]
    fn a_call_is_the_same_in_either_notation() {
        let lisp = r#"(:request-key k :types (:code :file) :metadata (:b_c 1 :a (2 t)) :limit nil :request-key other)"#;
        let json =
            br#"{"metadata": {"a": [2, true], "b_c": 1}, "types": ["code", "file"], "live": false,
                        "request_key": "k"}"#;
        let (lisp, json) = (keyed(sexp::read(lisp).unwrap()), keyed(from_json(json).unwrap()));
        assert_eq!((&lisp.name, &lisp.hash), (&json.name, &json.hash));
        let other = keyed(sexp::read("(:request-key k :types (:file))").unwrap());
        assert_eq!(other.name, lisp.name);
        assert_ne!(other.hash, lisp.hash);
        let elsewhere = keyed(sexp::read("(:request-key k :manager m)").unwrap());
        assert_ne!(elsewhere.name, lisp.name);
    }

    #[test]
    fn what_an_earlier_release_applied_is_not_applied_again() {
        let store = Box::new(SqliteStore::in_memory().unwrap());
        let mut engine = Engine::new(store, Box::new(|| 0), Settings { max_items: 3 }).unwrap();
        engine.record("undo k", "null").unwrap();
        let once = keyed(sexp::read("(:request-key k)").unwrap())
            .once(Box::new(|_| panic!("it was applied before")));
        let Ok(Finish::Refused(error)) = once(&mut engine) else { panic!("it must be refused") };
        assert!(error.message.contains("earlier release"), "{}", error.message);
        let once = keyed(sexp::read("(:request-key l)").unwrap())
            .once(Box::new(|_| Ok(Finish::Now(Value::Nil))));
        assert!(matches!(once(&mut engine), Ok(Finish::Now(Value::Nil))));
    }
}
