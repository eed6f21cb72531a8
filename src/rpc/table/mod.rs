//! The method table: what the server can do, in the words of its documentation.

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

/// Every method, in the order of the documentation.
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

/// A method: how it is called, what it answers, and how it is run.
pub struct Method {
    /// Its name on the wire.
    pub name: &'static str,
    /// The family it belongs to.
    pub family: &'static str,
    /// What it does, in a sentence or two.
    pub doc: &'static str,
    /// Its parameters in the order in which the documentation lists them.
    pub params: &'static [Param],
    /// What it answers.
    pub result: &'static str,
    /// Where its first part runs.
    pub pace: Pace,
    run: fn(Call, Value) -> Result<Step, WireError>,
}

/// A parameter of a method.
pub struct Param {
    /// Its name, kebab-case.
    pub name: &'static str,
    /// The type of its value.
    pub kind: &'static str,
    /// Whether a call without it is refused.
    pub required: bool,
    /// What it means, and what its absence means.
    pub doc: &'static str,
    /// The values it can have, where they are a closed list.
    pub values: fn() -> Vec<&'static str>,
    /// Whether the current session stands for it in a call with these parameters that lacks it.
    current: fn(&Value) -> bool,
}

/// Where the part of a method that comes before the engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once: it neither waits nor works long.
    Prompt,
    /// On a thread that may block; later calls of the connection wait for it.
    InOrder,
    /// On a thread that may block, beside the connection's later calls.
    Aside,
}

impl Method {
    /// Runs the part before the engine.
    ///
    /// # Errors
    /// Whatever is wrong with the parameters or with what they name.
    pub fn run(&self, call: Call, params: Value) -> Result<Step, WireError> {
        (self.run)(call, params)
    }

    /// Returns whether a call with these parameters is about the session that is current.
    pub fn is_about_current_session(&self, params: &Value) -> bool {
        self.params.iter().any(|param| lacks(params, param.name) && (param.current)(params))
    }
}

/// Returns whether a call leaves a parameter out, or gives it as `nil`.
fn lacks(params: &Value, name: &str) -> bool {
    matches!(params.get(name), None | Some(Value::Nil))
}

/// The method with this name.
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
    "A name for this call: a call with the same key is answered again and not applied again.",
);
