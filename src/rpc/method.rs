//! Methods as the tables of the families declare them, and the parameters that several share.

use super::Step;
use super::call::Call;
use crate::session::message::Phase;
use crate::value::Value;
use crate::wire::message::WireError;

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
    pub(super) run: Run,
}

/// Runs the part of a method before the engine.
pub(super) type Run = fn(Call, Value) -> Result<Step, WireError>;

/// Turns a handler that takes its parameters as a struct into a [`Run`], which decodes them.
macro_rules! typed {
    ($handler:path) => {
        |call, params| $handler(call, $crate::rpc::params::decode(params)?)
    };
}
pub(super) use typed;

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
    /// Declares a method that takes no parameters and runs at once.
    pub(super) const fn new(family: &'static str, name: &'static str, run: Run) -> Self {
        Self { name, family, doc: "", params: &[], result: "", pace: Pace::Prompt, run }
    }

    pub(super) const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    pub(super) const fn params(self, params: &'static [Param]) -> Self {
        Self { params, ..self }
    }

    pub(super) const fn result(self, result: &'static str) -> Self {
        Self { result, ..self }
    }

    pub(super) const fn pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

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
pub(super) fn lacks(params: &Value, name: &str) -> bool {
    matches!(params.get(name), None | Some(Value::Nil))
}

pub(super) const fn required(name: &'static str, kind: &'static str, doc: &'static str) -> Param {
    Param { name, kind, required: true, doc, values: Vec::new, current: |_| false }
}

pub(super) const fn optional(name: &'static str, kind: &'static str, doc: &'static str) -> Param {
    Param { name, kind, required: false, doc, values: Vec::new, current: |_| false }
}

impl Param {
    pub(super) const fn of(mut self, values: fn() -> Vec<&'static str>) -> Self {
        self.values = values;
        self
    }

    pub(super) const fn or_current(mut self, when: fn(&Value) -> bool) -> Self {
        self.current = when;
        self
    }
}

pub(super) const KEY: Param = optional(
    "request-key",
    "string",
    "Key that identifies this call. A repeated call with the same key gets the first answer and \
     changes nothing.",
);
pub(super) const SESSION: Param = optional(
    "session",
    "string",
    "Name or id of the session, `ses-N`; defaults to the one last opened or switched to.",
)
.or_current(|_| true);
pub(super) const PHASE: Param = optional("phase", "name", "Phase of the work.").of(phase_names);

fn phase_names() -> Vec<&'static str> {
    Phase::ALL.iter().map(|phase| phase.name()).collect()
}
