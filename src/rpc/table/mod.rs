//! The method table: every method with its documentation.

mod batch;
mod curation;
mod model;
mod notes;
mod schema;

pub(crate) use self::schema::document;

use serde_json::Value as Json;

use super::call::MethodCall;
use super::contract::{ContractCall, in_contract, resolve};
use super::error::internal_error;
use super::error_data::UnknownMethod;
use super::limits::MAX_QUOTED_BYTES;
use super::method::{Method, Pace, method};
use super::params::Nothing;
use super::{Step, agents, context, memories, server, sessions, spelling, templates};
use crate::value::Value;
use crate::value::json::from_json;
use crate::visible::shortened;
use crate::wire::dialect::Dialect;
use crate::wire::message::WireError;

/// The methods of the server family that use this table; the others are in [`server`].
static SERVER: &[Method] = &[
    method!("server", "batch", batch::batch => batch::BatchResult)
        .in_errors::<batch::InBatch>()
        .changes()
        .doc(
            "Carries out several calls in their order, with one answer, and one notification for \
             each manager and session. Methods that wait, take long to compute, change files, or \
             concern models or the server cannot be in a batch.",
        )
        .result(
            "The result or the error of each call. If an atomic batch fails, its error is that of \
             the call that failed.",
        )
        .pace(Pace::InOrder),
    method!("server", "schema", schema => Json)
        .doc(
            "Returns the JSON Schema of all methods, errors and notifications, from which a \
              client can be generated.",
        )
        .result("The schema, with its names spelled as in JSON in every dialect.")
        .pace(Pace::Aside),
];

/// Returns every method, in the order of the documentation.
pub fn methods() -> impl Iterator<Item = &'static Method> + Clone {
    [
        context::METHODS,
        sessions::METHODS,
        curation::METHODS,
        memories::METHODS,
        agents::METHODS,
        templates::METHODS,
        notes::METHODS,
        model::METHODS,
        SERVER,
        server::METHODS,
    ]
    .into_iter()
    .flatten()
}

/// Finds the method with this name. For a name of the contract, finds the method that carries it
/// out, and changes the parameters to those of that method. Fails with the nearest names.
pub(crate) fn find(name: &str, params: &mut Value) -> Result<CalledMethod, WireError> {
    let (row, of_method) = resolve(name, params).unzip();
    let method = methods().find(|method| method.name == of_method.unwrap_or(name));
    method.map(|method| CalledMethod { method, row }).ok_or_else(|| unknown(name))
}

/// Returns the error of a call in the words of the dialect. `method` is the called method, if there
/// is one.
pub(crate) fn spelled(error: WireError, dialect: Dialect, method: Option<&Method>) -> WireError {
    let is_method = |word: &str| {
        methods().any(|of| of.name == word || of.contract_names().any(|name| name == word))
    };
    spelling::spelled(error, dialect, method, is_method)
}

fn unknown(name: &str) -> WireError {
    let name = &*shortened(name, MAX_QUOTED_BYTES);
    let asked = name.to_lowercase();
    // Compares the nearest name of each method.
    let nearness = |known: &'static str| (strsim::jaro_winkler(&asked, known), known);
    let nearest = |method: &'static Method| {
        let names = method.contract_names().chain([method.name]).map(nearness);
        names.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let mut near: Vec<_> = methods().filter_map(nearest).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<_> = near.into_iter().take(3).map(|(_, name)| name).collect();
    let message =
        format!("no method {name:?}; the nearest are {}; `schema` lists all", near.join(", "));
    let data = Value::of(&UnknownMethod { nearest: near });
    WireError::new(WireError::METHOD_NOT_FOUND, message).with(data)
}

fn schema(_: MethodCall, _: Nothing) -> Result<Step, WireError> {
    let text = document().to_string();
    // Keys that were read from JSON keep their spelling.
    let schema = from_json(text.as_bytes()).map_err(|_| internal_error("the schema"))?;
    Ok(Step::Done(schema))
}

/// A method, as a call named it.
#[derive(Clone, Copy)]
pub(crate) struct CalledMethod {
    /// The method.
    pub(crate) method: &'static Method,
    /// Call of the contract that the client made, if it used a name of the contract.
    row: Option<&'static ContractCall>,
}

impl CalledMethod {
    /// Like [`Method::run`], with the contract's names in errors.
    ///
    /// # Errors
    /// Same as [`Method::run`].
    pub(crate) fn run(&self, call: MethodCall, params: Value) -> Result<Step, WireError> {
        let step = self.method.run(call, params);
        step.map_err(|error| match self.row {
            Some(row) => in_contract(error, row),
            None => error,
        })
    }
}

impl std::ops::Deref for CalledMethod {
    type Target = Method;

    fn deref(&self) -> &Method {
        self.method
    }
}
