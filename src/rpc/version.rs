//! Versions of managers and sessions in calls: `:version` in results, `:if-version` in changes, and
//! `:since` in reads. Handlers do not see these parameters, except those whose change takes several
//! steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::error::param_error;
use super::page::taken;
use super::params::{decode, lacks, named, not_negative};
use super::{EngineOperation, Finish, Step};
use crate::agent::shown_version;
use crate::engine::{Beside, Engine, EngineError, SHARED_MANAGER, Versioned, VersionedName};
use crate::ids::SessionId;
use crate::value::{Key, Value};
use crate::wire::message::WireError;

/// Parameter of methods that change one manager or session.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameter")]
pub(super) struct IfVersion {
    /// Do nothing unless the manager or session has this version; the error is `conflict`.
    if_version: Option<u64>,
}

/// Parameter of methods that show one manager or session.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameter")]
pub(super) struct Since {
    /// `:version` of an earlier answer. If nothing has changed since, the answer only says so.
    since: Option<u64>,
}

/// The answer to a read when nothing has changed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Unchanged {
    /// Version of the manager or session.
    version: u64,
    /// Always true.
    unchanged: bool,
}

/// The manager or session whose version a method returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionOwner {
    /// The manager that the call names.
    Manager,
    /// The session that the call names, or else the manager.
    Either,
    /// The session that the call names.
    Session,
    /// The session that the call names, or else the current one.
    CurrentSession,
    /// The session that the call names, which is a deleted one if the call has `:deleted nil`.
    Deleted,
    /// The session with the name that the call gives, if there is one.
    Opened,
}

/// The subject of a call.
enum VersionSubject {
    Manager(String),
    Session(Option<String>),
    /// The session with this name; a deleted one takes precedence.
    Deleted(String),
    /// A session that may not exist yet.
    Opened(String),
    /// A new session, which only the result names.
    New,
}

/// The parameters of a call that are about versions, with the subject of the call.
pub(super) struct Versions {
    subject: VersionSubject,
    beside: Beside,
    since: Option<u64>,
    if_version: Option<u64>,
}

const VERSION: &str = "version";

impl Versions {
    /// Takes the parameters about versions out of the parameters of a call. Returns `None` if the
    /// call is not about one manager or session, or asks for a later page. Fails if a parameter is
    /// not a version, or if the call gives one but is not about exactly one existing manager or
    /// session.
    pub(super) fn take(
        about: VersionOwner,
        beside: Beside,
        params: &mut Value,
    ) -> Result<Option<Self>, WireError> {
        // A later page shows its list as it was when the first page was made.
        if !lacks(params, "cursor") {
            return Ok(None);
        }
        let mut version = |name: &str| -> Result<Option<u64>, WireError> {
            not_negative(name, taken(params, name)?)
        };
        let (since, if_version) = (version("since")?, version("if-version")?);
        let given = since.map(|_| "since").or(if_version.map(|_| "if-version"));
        match (subject(about, params), given) {
            (None | Some(VersionSubject::New), Some(given)) => Err(param_error(
                given,
                "is allowed only in calls about exactly one existing manager or session",
            )),
            (subject, _) => Ok(subject.map(|subject| Self { subject, beside, since, if_version })),
        }
    }

    /// Returns the version that the subject must have, and leaves checking it to the caller.
    pub(super) fn take_expected(&mut self) -> Option<u64> {
        self.if_version.take()
    }

    /// Wraps the operation of a call, so that the version is checked and returned in the same step.
    pub(super) fn wrap(self, step: Step) -> Step {
        match step {
            Step::State(reach, operation) => Step::State(reach, self.around(operation)),
            Step::Done(value) => {
                let tell = move |engine: &mut Engine| {
                    let target = self.target(engine)?;
                    let version = target.map(|target| engine.version(&target)).transpose()?;
                    // An answer that has its version was made by an earlier step.
                    Ok(Finish::Now(match (version, value.get(VERSION)) {
                        (Some(version), None) => told(value, version, self.since.is_some()),
                        _ => value,
                    }))
                };
                Step::State(super::Reach::Anything, Box::new(tell))
            }
            Step::Await(work) => Step::Await(Box::pin(async { Ok(self.wrap(work.await?)) })),
            Step::AwaitEnd(work) => Step::AwaitEnd(Box::pin(async { Ok(self.wrap(work.await?)) })),
            other => other,
        }
    }

    fn around(self, operation: EngineOperation) -> EngineOperation {
        Box::new(move |engine| {
            let target = self.target(engine)?;
            self.check(engine, target.as_ref())?;
            if let (Some(since), Some(target)) = (self.since, &target)
                && engine.is_unchanged(target, since, self.beside)?
            {
                return Ok(Finish::now(&Unchanged { version: since, unchanged: true }));
            }
            let finish = operation(engine)?;
            let shown = match &finish {
                Finish::Now(value) => session_in(value).map(Versioned::Session),
                Finish::Later(_) => None,
                Finish::Refused(_) => return Ok(finish),
            };
            let Some(target) = shown.or(target) else { return Ok(finish) };
            let (version, is_asked) = (engine.version(&target)?, self.since.is_some());
            Ok(match finish {
                Finish::Now(value) => Finish::Now(told(value, version, is_asked)),
                Finish::Later(work) => Finish::Later(Box::new(move || {
                    let (value, version) = match &target {
                        Versioned::Manager(name) => shown_version::after(name, version, work),
                        Versioned::Session(_) => (work(), version),
                    };
                    Ok(told(value?, version, is_asked))
                })),
                refused @ Finish::Refused(_) => refused,
            })
        })
    }

    /// Returns the manager or session that the call is about, if it exists.
    fn target(&self, engine: &mut Engine) -> Result<Option<Versioned>, EngineError> {
        let id = match &self.subject {
            VersionSubject::Manager(name) => return Ok(Some(Versioned::Manager(name.clone()))),
            VersionSubject::Session(name) => engine.session_id(name.as_deref())?,
            VersionSubject::Opened(name) => engine.session_id(Some(name))?,
            VersionSubject::Deleted(name) => match engine.deleted_session_id(name)? {
                None => engine.session_id(Some(name))?,
                found => found,
            },
            VersionSubject::New => None,
        };
        Ok(id.map(Versioned::Session))
    }

    fn check(&self, engine: &mut Engine, target: Option<&Versioned>) -> Result<(), EngineError> {
        match (self.if_version, target, &self.subject) {
            (Some(expected), Some(target), _) => engine.expect_version(target, expected),
            (Some(expected), None, VersionSubject::Opened(name)) if expected != 0 => {
                let of = VersionedName::Session(name.clone(), None);
                Err(EngineError::Conflict { of, expected, version: 0 })
            }
            // The operation reports a session that does not exist.
            _ => Ok(()),
        }
    }
}

fn subject(about: VersionOwner, params: &Value) -> Option<VersionSubject> {
    let session = || named(params, "session");
    Some(match about {
        VersionOwner::Manager if !lacks(params, "managers") => return None,
        VersionOwner::Either if !lacks(params, "session") => VersionSubject::Session(session()),
        VersionOwner::Manager | VersionOwner::Either => {
            let shared = || SHARED_MANAGER.to_owned();
            VersionSubject::Manager(named(params, "manager").unwrap_or_else(shared))
        }
        VersionOwner::Session => VersionSubject::Session(Some(session()?)),
        VersionOwner::CurrentSession => VersionSubject::Session(session()),
        // False has several notations.
        VersionOwner::Deleted => match params.get("deleted").cloned().map(decode::<bool>) {
            Some(Ok(false)) => VersionSubject::Deleted(session()?),
            _ => VersionSubject::Session(Some(session()?)),
        },
        VersionOwner::Opened => {
            named(params, "name").map_or(VersionSubject::New, VersionSubject::Opened)
        }
    })
}

/// Returns the number of the session that a result describes, if it describes one.
fn session_in(result: &Value) -> Option<u64> {
    let Value::Str(id) = result.get("id")? else { return None };
    id.parse().ok().map(|SessionId(id)| id)
}

/// Puts `version` into a result. A list or text has no place for the version, so it is wrapped in
/// an object if `is_asked`, that is, if the call has `:since`.
fn told(result: Value, version: u64, is_asked: bool) -> Value {
    let version = Value::from(version);
    let with = |name: &str, value| {
        Value::Map(vec![(Key::from(name), value), (Key::from(VERSION), version.clone())])
    };
    match result {
        Value::Map(mut entries) => {
            entries.retain(|(name, _)| name.kebab() != VERSION);
            entries.push((Key::from(VERSION), version));
            Value::Map(entries)
        }
        list @ Value::List(_) if is_asked => with("items", list),
        text @ Value::Str(_) if is_asked => with("text", text),
        other => other,
    }
}

/// Adds the effects of versions to the schema of a method about a manager or session: the member
/// `:version` of its result, required if `is_always`, and the result of a call with `:since`.
pub(super) fn describe(
    described: &mut Json,
    types: &mut Map<String, Json>,
    is_always: bool,
    takes_history: bool,
) {
    let result = &mut described["result"];
    match result.get_mut("anyOf").and_then(Json::as_array_mut).filter(|_| takes_history) {
        // The last result is about a history that the client keeps itself.
        Some(forms) => {
            let of_sessions = forms.len().saturating_sub(1);
            forms.iter_mut().take(of_sessions).for_each(|form| stamp(form, types, is_always));
        }
        None => stamp(result, types, is_always),
    }
    if described["params"]["properties"].get("since").is_none() {
        return;
    }
    let whole = described["result"].clone();
    let branches = whole["anyOf"].as_array();
    let mut with = |name: &str, of: &Json| {
        let mut form = json!({ "type": "object", "properties": { name: of }, "required": [name] });
        stamp(&mut form, types, true);
        form
    };
    let form = |of: &Json| match of["type"].as_str() {
        Some("array") => with("items", of),
        Some("string") => with("text", of),
        _ => of.clone(),
    };
    let mut forms: Vec<Json> =
        branches.map_or(std::slice::from_ref(&whole), Vec::as_slice).iter().map(form).collect();
    forms.push(json!({ "$ref": "#/$defs/Unchanged" }));
    described["result_since"] = json!({ "anyOf": forms });
}

/// Adds the version to the schema of a result, if that is an object.
fn stamp(schema: &mut Json, types: &mut Map<String, Json>, is_always: bool) {
    if let Some(branches) = schema.get_mut("anyOf").and_then(Json::as_array_mut) {
        branches.iter_mut().for_each(|branch| stamp(branch, types, is_always));
        return;
    }
    let name = schema["$ref"].as_str().and_then(|at| at.rsplit_once('/')).map(|(_, name)| name);
    let object = match name {
        Some(name) => types.get_mut(name),
        None => Some(schema),
    };
    let Some(object) = object.filter(|object| object["properties"].is_object()) else { return };
    // A later page shows its list as it was when the first page was made.
    let is_page = object["properties"].get("next").is_some();
    object["properties"][VERSION] = json!({
        "type": "integer",
        "minimum": 0,
        "description": "Version of the manager or session after the call.",
    });
    let required = object["required"].as_array_mut();
    if let Some(required) = required.filter(|_| is_always && !is_page)
        && !required.iter().any(|name| name == VERSION)
    {
        required.push(VERSION.into());
    }
}
