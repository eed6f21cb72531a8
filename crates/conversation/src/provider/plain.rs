//! Schemas of tools in the form that all servers take.

use serde_json::{Value, json};

/// Returns a schema of types, descriptions, closed lists, properties and items only, down to a
/// depth.
pub(super) fn plain(schema: &Value, depth: usize) -> Value {
    let mut made = json!({});
    let first_of = |list: &Value| {
        let list = list.as_array().into_iter().flatten();
        list.into_iter()
            .find(|it| **it != "null" && it["type"] != "null")
            .cloned()
            .unwrap_or_default()
    };
    if depth == 0 {
        return made;
    }
    if let Some(choice) = ["anyOf", "oneOf", "allOf"].iter().find(|name| schema[**name].is_array())
    {
        made = plain(&first_of(&schema[*choice]), depth - 1);
    }
    let kind =
        if schema["type"].is_array() { first_of(&schema["type"]) } else { schema["type"].clone() };
    if kind.is_string() {
        made["type"] = kind;
    }
    if schema["description"].is_string() {
        made["description"] = schema["description"].clone();
    }
    let texts = |list: &[Value]| list.iter().all(Value::is_string);
    let constant = [schema["const"].clone()];
    let closed = schema["enum"].as_array().map_or(&constant[..], Vec::as_slice);
    if texts(closed) {
        made["enum"] = closed.into();
    }
    if let Some(properties) = schema["properties"].as_object() {
        let plain = |(name, schema): (&String, &Value)| (name.clone(), plain(schema, depth - 1));
        made["properties"] = properties.iter().map(plain).collect();
        if schema["required"].as_array().is_some_and(|required| !required.is_empty()) {
            made["required"] = schema["required"].clone();
        }
    }
    if schema["items"].is_object() || made["type"] == "array" {
        made["items"] = plain(&schema["items"], depth - 1);
    }
    if made["type"].is_null() {
        let kind = match () {
            () if made["properties"].is_object() => "object",
            () if made["items"].is_object() => "array",
            () => "string",
        };
        made["type"] = kind.into();
    }
    made
}
