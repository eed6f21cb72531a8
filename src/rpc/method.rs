//! The declaration of methods in the tables of the families.

use super::Step;
use super::call::Call;
use super::param::Param;
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
    /// Description of the result.
    pub result: &'static str,
    /// Place where the first part of the method runs.
    pub pace: Pace,
    pub(super) params: fn() -> &'static [Param],
    pub(super) run: fn(Call, Value) -> Result<Step, WireError>,
    pub(super) needs_session: fn(&Value) -> bool,
}

/// Place where the first part of a method, the one before the engine, runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// On the connection's own thread, for work that is quick and never waits.
    Prompt,
    /// On a thread that may block. Later calls of the connection wait for it.
    InOrder,
    /// On a thread that may block, alongside the connection's later calls.
    Aside,
}

/// Declares a method of a family, which runs at once. The handler's argument gives the parameters.
macro_rules! method {
    ($family:literal, $name:literal, $handler:path) => {
        $crate::rpc::method::Method {
            name: $name,
            family: $family,
            doc: "",
            result: "",
            pace: $crate::rpc::method::Pace::Prompt,
            params: || {
                static PARAMS: ::std::sync::LazyLock<Vec<$crate::rpc::param::Param>> =
                    ::std::sync::LazyLock::new(|| $crate::rpc::param::params_of($handler));
                &PARAMS
            },
            run: |call, params| $handler(call, $crate::rpc::params::decode(params)?),
            needs_session: |_| true,
        }
    };
}
pub(super) use method;

impl Method {
    pub(super) const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    pub(super) const fn result(self, result: &'static str) -> Self {
        Self { result, ..self }
    }

    pub(super) const fn pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Sets which calls need a session. By default, all that can name one do.
    pub(super) const fn needs_session(self, needs_session: fn(&Value) -> bool) -> Self {
        Self { needs_session, ..self }
    }

    /// Returns the parameters in the order of the documentation.
    pub fn params(&self) -> &'static [Param] {
        (self.params)()
    }

    /// Runs the part of the method before the engine.
    ///
    /// # Errors
    /// Fails if the parameters are invalid or name something that does not exist.
    pub fn run(&self, call: Call, params: Value) -> Result<Step, WireError> {
        (self.run)(call, params)
    }

    /// Returns whether a call with these parameters is about the current session.
    pub fn is_about_current_session(&self, params: &Value) -> bool {
        let is_left_out = |param: &Param| param.is_current_session && lacks(params, param.name);
        self.params().iter().any(is_left_out) && (self.needs_session)(params)
    }
}

/// Returns whether a call omits a parameter or passes `nil` for it.
pub(super) fn lacks(params: &Value, name: &str) -> bool {
    matches!(params.get(name), None | Some(Value::Nil))
}
