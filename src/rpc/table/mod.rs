//! The method table: every method with its documentation.

mod curation;
mod model;
mod notes;

use serde::Serialize;

use super::call::Call;
use super::method::{Method, method};
use super::param::Param;
use super::params::Nothing;
use super::{Step, context, memories, server, sessions, templates};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

/// The method that shows this table; the others of its family are in [`server`].
static SERVER: &[Method] = &[method!("server", "methods", list).doc("Lists the methods.").result(
    "A list of `:name :doc :params :result`; a parameter has `:name :type :required :doc`, \
         and `:values` if they are a closed list.",
)];

/// Returns every method, in the order of the documentation.
pub fn methods() -> impl Iterator<Item = &'static Method> + Clone {
    [
        context::METHODS,
        sessions::METHODS,
        curation::METHODS,
        memories::METHODS,
        templates::METHODS,
        notes::METHODS,
        model::METHODS,
        SERVER,
        server::METHODS,
    ]
    .into_iter()
    .flatten()
}

/// Finds the method with this name.
///
/// # Errors
/// −32601 with the nearest names.
pub(crate) fn find(name: &str) -> Result<&'static Method, WireError> {
    methods().find(|method| method.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> WireError {
    let mut near: Vec<_> =
        methods().map(|method| (strsim::jaro_winkler(name, method.name), method.name)).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<_> = near.into_iter().take(3).map(|(_, name)| name).collect();
    let message =
        format!("no method {name:?}; the nearest are {}; `methods` lists all", near.join(", "));
    let data = Value::Map(vec![("nearest".into(), Value::of(&near))]);
    WireError { data, ..WireError::new(WireError::METHOD_NOT_FOUND, message) }
}

/// A method as `methods` lists it.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    doc: &'static str,
    params: Vec<Documented>,
    result: &'static str,
}

#[derive(Serialize)]
struct Documented {
    name: &'static str,
    r#type: &'static str,
    required: bool,
    doc: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<Keyword<&'static str>>,
}

fn list(_: Call, _: Nothing) -> Result<Step, WireError> {
    let listed = |method: &'static Method| Listed {
        name: method.name,
        doc: method.doc,
        params: method.params().iter().map(documented).collect(),
        result: method.result,
    };
    Step::done(&methods().map(listed).collect::<Vec<_>>())
}

fn documented(param: &'static Param) -> Documented {
    let Param { name, kind, required, doc, ref values, .. } = *param;
    let values = values.iter().copied().map(Keyword).collect();
    Documented { name, r#type: kind, required, doc, values }
}
