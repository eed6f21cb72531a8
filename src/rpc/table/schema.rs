//! The JSON Schema of the protocol, made from the structs that parameters are read into and results
//! are written from. Names are spelled as in JSON messages.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};

use super::methods;
use crate::rpc::method::Method;
use crate::rpc::params::KEY;
use crate::rpc::params::RequestKey;

/// Returns the schema of all methods as one JSON document. Takes some milliseconds.
pub(crate) fn document() -> Json {
    let mut params = SchemaSettings::draft2020_12().into_generator();
    let mut results = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut listed = Map::new();
    for method in methods() {
        listed.insert(method.name.to_owned(), described(method, &mut params, &mut results));
    }
    let mut definitions = params.take_definitions(true);
    definitions.extend(results.take_definitions(true));
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol of Contexture",
        "description": "Names of members are spelled as in JSON, with underscores. Members that \
                        are not here may be added by later versions.",
        "version": env!("CARGO_PKG_VERSION"),
        "methods": listed,
        "$defs": definitions,
    });
    spell_as_json(&mut document);
    document
}

fn described(method: &Method, params: &mut SchemaGenerator, results: &mut SchemaGenerator) -> Json {
    let [of_params, of_result] = method.schemas;
    let mut given = of_params(params).to_value();
    if method.params().iter().any(|param| param.name == KEY) {
        given["properties"][KEY] = params.subschema_for::<RequestKey>().to_value();
    }
    given["additionalProperties"] = false.into();
    let mut described = json!({
        "description": method.doc,
        "family": method.family,
        "params": given,
        "result": of_result(results),
    });
    if let Some(progress) = method.progress {
        described["progress"] = progress(results).to_value();
    }
    described
}

/// Spells the names of members as in JSON messages, and leaves out line breaks and the sizes of
/// integers.
fn spell_as_json(schema: &mut Json) {
    match schema {
        Json::Array(items) => items.iter_mut().for_each(spell_as_json),
        Json::Object(members) => {
            if let Some(Json::Object(properties)) = members.get_mut("properties") {
                let named = std::mem::take(properties).into_iter();
                *properties = named.map(|(name, of)| (name.replace('-', "_"), of)).collect();
            }
            if let Some(Json::Array(required)) = members.get_mut("required") {
                for name in required {
                    *name = name.as_str().unwrap_or_default().replace('-', "_").into();
                }
            }
            if members.get("type").is_some_and(|of| of != "string") {
                members.remove("format");
            }
            if let Some(Json::String(text)) = members.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            members.values_mut().for_each(spell_as_json);
        }
        _ => {}
    }
}
