//! The codes of errors, and the data of those that have no kind.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::rpc::shapes::ParamPath;
use crate::wire::message::WireError;

/// The data of the error −32700.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "it only describes data that the dialects make")]
pub(in crate::rpc) struct Unreadable {
    /// Column of the error in the line, counted from 1 in characters; absent if the error has no
    /// place in the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
}

/// The data of the error −32601.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(in crate::rpc) struct UnknownMethod {
    /// The methods with the nearest names; at most three.
    pub(in crate::rpc) nearest: Vec<&'static str>,
}

/// The data of the error −32602.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(in crate::rpc) struct BadParameter<'a> {
    /// Name of the parameter, or path of a member in a parameter; absent if the error is not about
    /// a single parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::rpc) param: Option<ParamPath<'a>>,
}

/// A function that makes a schema.
type SchemaMaker = fn(&mut SchemaGenerator) -> Schema;

/// The codes of errors, their meanings, and their data if they have no `:kind`.
pub(in crate::rpc) const CODES: [(i32, &str, Option<SchemaMaker>); 7] = [
    (WireError::PARSE, "The line could not be read.", Some(made::<Unreadable>)),
    (
        WireError::INVALID_REQUEST,
        "The message is not a request, or the message or its answer is too large.",
        None,
    ),
    (WireError::METHOD_NOT_FOUND, "No method has this name.", Some(made::<UnknownMethod>)),
    (
        WireError::INVALID_PARAMS,
        "A parameter is missing, unknown or invalid.",
        Some(made::<BadParameter<'_>>),
    ),
    (
        WireError::INTERNAL,
        "A defect in the server; if the failed step was undone, the message says so.",
        None,
    ),
    (WireError::CANCELLED, "The call was cancelled.", None),
    (WireError::APPLICATION, "The call was understood, but refused.", None),
];

fn made<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
