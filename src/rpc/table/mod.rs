//! The method table: every method with its documentation.

mod context;
mod curation;
mod memory;
mod model;
mod server;
mod session;
mod template;

use super::Step;
use super::call::Call;
use crate::value::Value;
use crate::wire::message::WireError;

/// Returns every method, in the order of the documentation.
pub fn methods() -> impl Iterator<Item = &'static Method> + Clone {
    [
        context::METHODS,
        session::METHODS,
        curation::METHODS,
        memory::METHODS,
        template::METHODS,
        model::METHODS,
        server::METHODS,
    ]
    .into_iter()
    .flatten()
}

/// A method: its parameters, its result, and the function that runs it.
pub struct Method {
    /// Name on the wire.
    pub name: &'static str,
    /// Family that it belongs to.
    pub family: &'static str,
    /// Description in a sentence or two.
    pub doc: &'static str,
    /// Parameters in the order of the documentation.
    pub params: &'static [Param],
    /// Description of the result.
    pub result: &'static str,
    /// Place where its first part runs.
    pub pace: Pace,
    run: fn(Call, Value) -> Result<Step, WireError>,
}

/// A parameter of a method.
pub struct Param {
    /// Name in kebab-case.
    pub name: &'static str,
    /// Type of the value.
    pub kind: &'static str,
    /// True if a call without it is refused.
    pub required: bool,
    /// Meaning, and default if it is absent.
    pub doc: &'static str,
    /// Allowed values, if they are a closed list.
    pub values: fn() -> Vec<&'static str>,
    /// Returns whether the current session stands in for it in a call that leaves it out.
    current: fn(&Value) -> bool,
}

/// Place where a method's part before the engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// On the connection's own thread: it neither waits nor takes long.
    Prompt,
    /// On a thread that may block. Later calls of the connection wait for it.
    InOrder,
    /// On a thread that may block, alongside the connection's later calls.
    Aside,
}

impl Method {
    /// Runs the method's part before the engine.
    ///
    /// # Errors
    /// Fails if the parameters are invalid or name something that does not exist.
    pub fn run(&self, call: Call, params: Value) -> Result<Step, WireError> {
        (self.run)(call, params)
    }

    /// Returns whether a call with these parameters is about the current session.
    pub fn is_about_current_session(&self, params: &Value) -> bool {
        self.params.iter().any(|param| lacks(params, param.name) && (param.current)(params))
    }
}

/// Returns whether a call leaves a parameter out, or gives it as `nil`.
fn lacks(params: &Value, name: &str) -> bool {
    matches!(params.get(name), None | Some(Value::Nil))
}

/// Finds the method with this name.
///
/// # Errors
/// −32601 with the nearest names.
pub fn find(name: &str) -> Result<&'static Method, WireError> {
    methods().find(|method| method.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> WireError {
    let mut near: Vec<_> =
        methods().map(|method| (strsim::jaro_winkler(name, method.name), method.name)).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<_> = near.into_iter().take(3).map(|(_, name)| name).collect();
    let nearest = near.iter().map(|name| Value::Str((*name).to_owned())).collect();
    let message =
        format!("no method {name:?}; the nearest are {}; `methods` lists all", near.join(", "));
    let data = Value::Map(vec![("nearest".into(), Value::List(nearest))]);
    WireError { data, ..WireError::new(WireError::METHOD_NOT_FOUND, message) }
}

const fn required(name: &'static str, kind: &'static str, doc: &'static str) -> Param {
    Param { name, kind, required: true, doc, values: Vec::new, current: |_| false }
}

const fn optional(name: &'static str, kind: &'static str, doc: &'static str) -> Param {
    Param { name, kind, required: false, doc, values: Vec::new, current: |_| false }
}

impl Param {
    const fn of(mut self, values: fn() -> Vec<&'static str>) -> Self {
        self.values = values;
        self
    }

    const fn or_current(mut self, when: fn(&Value) -> bool) -> Self {
        self.current = when;
        self
    }
}

const KEY: Param = optional(
    "request-key",
    "string",
    "Key that identifies this call. A repeated call with the same key gets the first answer and \
     changes nothing.",
);
