//! The JSON Schema of the protocol, made from the structs that parameters are read into and results
//! are written from. Names are spelled as in JSON messages.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value as Json, json};

use super::methods;
use crate::rpc::client_tools;
use crate::rpc::error_data::{CODES, ErrorData, PlainKind};
use crate::rpc::method::Method;
use crate::rpc::notification::{Topic, schema_of};
use crate::rpc::page::{self, PageParams};
use crate::rpc::params::{KEY, RequestKey};
use crate::rpc::version::{self, IfVersion, Since, Unchanged};
use crate::wire::message::WireError;

/// Formats that name the Rust type of a number.
const SIZES: [&str; 6] = ["int32", "int64", "uint32", "uint64", "uint", "double"];

/// Returns the schema of all methods as one JSON document. Takes a few milliseconds.
pub(crate) fn document() -> Json {
    let mut params = SchemaSettings::draft2020_12().into_generator();
    let mut results = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut listed = Map::new();
    for method in methods() {
        listed.insert(method.name.to_owned(), described(method, &mut params, &mut results));
    }
    results.subschema_for::<Unchanged>();
    let errors = errors(&mut results);
    let notifications = notifications(&mut results);
    let envelope = envelope(&mut params);
    let mut definitions = params.take_definitions(true);
    definitions.extend(results.take_definitions(true));
    for method in methods() {
        if method.about().is_some() {
            let described = &mut listed[method.name];
            let is_always = method.is_about_one();
            version::describe(described, &mut definitions, is_always, method.takes_history);
        }
    }
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol of Contexture",
        "description": "Names of members are spelled as in JSON, with underscores. Members that \
                        are not here may be added by later versions.",
        "version": env!("CARGO_PKG_VERSION"),
        "envelope": envelope,
        "methods": listed,
        "errors": errors,
        "notifications": notifications,
        "$defs": definitions,
    });
    spell_as_json(&mut document);
    document
}

fn described(method: &Method, params: &mut SchemaGenerator, results: &mut SchemaGenerator) -> Json {
    let [of_params, of_result] = method.schemas;
    let mut given = of_params(params).to_value();
    let envelope = envelope(params);
    for name in method.params().iter().map(|param| param.name) {
        let field = name.replace('-', "_");
        if given["properties"].get(name).or(given["properties"].get(&field)).is_none()
            && let Some(of) = envelope["properties"].get(name)
        {
            given["properties"][name] = of.clone();
        }
    }
    let mut result = of_result(results).to_value();
    if let Some(paged) = method.paged {
        let types = results.definitions_mut();
        let all = result["anyOf"].as_array().cloned().unwrap_or_else(|| vec![result]);
        let mut forms = Vec::new();
        for (at, form) in all.into_iter().enumerate() {
            let has_lists = match paged.lists.is_empty() {
                true => form["type"] == "array",
                // The other forms of such a result have no lists.
                false => at == 0,
            };
            if !has_lists {
                forms.push(form);
                continue;
            }
            let part = in_parts(&form, paged.lists, types);
            let mut whole = target(&part, types).map_or_else(|| part.clone(), |(_, object)| object);
            if let Some(whole) = whole.as_object_mut() {
                whole.remove("x-part-of");
            }
            forms.extend([form, part, page::schema(paged, whole)]);
        }
        result = Json::Array(forms);
        result = json!({ "anyOf": result });
    }
    given["additionalProperties"] = false.into();
    let mut described = json!({
        "description": method.doc,
        "returns": method.result,
        "family": method.family,
        "aliases": method.contract_names().collect::<Vec<_>>(),
        "params": given,
        "result": result,
    });
    if !method.left_out_by_brief().is_empty() {
        let names = method.left_out_by_brief().iter().map(|name| name.replace('-', "_"));
        described["left_out_by_brief"] = names.collect::<Vec<_>>().into();
    }
    if let Some(progress) = method.progress {
        described["progress"] = progress(results).to_value();
    }
    if let Some(in_errors) = method.in_errors {
        described["error_data"] = in_errors(results).to_value();
    }
    described
}

/// Returns the schema of the parameters that many methods take in addition to their own.
fn envelope(generator: &mut SchemaGenerator) -> Json {
    let shared = [
        Since::json_schema(generator),
        IfVersion::json_schema(generator),
        PageParams::json_schema(generator),
    ];
    let mut properties = Map::new();
    for of in shared {
        let members = of.get("properties").and_then(Json::as_object).cloned().unwrap_or_default();
        properties.extend(members.into_iter().map(|(name, of)| (name.replace('_', "-"), of)));
    }
    properties.insert(KEY.to_owned(), generator.subschema_for::<RequestKey>().to_value());
    json!({ "type": "object", "properties": properties })
}

/// Returns the schema of a result whose entries may lack members, since `:fields` and `:brief`
/// leave some out. `lists` are the paths of the lists in the result; empty if the result itself is
/// a list.
fn in_parts(result: &Json, lists: &[&str], types: &mut Map<String, Json>) -> Json {
    if lists.is_empty() {
        return list_in_parts(result, types);
    }
    let Some((name, mut object)) = target(result, types) else { return result.clone() };
    for path in lists {
        let (first, rest) = path.split_once('.').unzip();
        let member = &mut object["properties"][first.unwrap_or(path)];
        *member = in_parts(member, &Vec::from_iter(rest), types);
    }
    object["x-part-of"] = name.clone().into();
    add(format!("Cut{name}"), object, types)
}

fn list_in_parts(list: &Json, types: &mut Map<String, Json>) -> Json {
    let mut list = list.clone();
    if let Some((name, mut entry)) = target(&list["items"], types) {
        entry["required"] = json!([]);
        page::mark_as_cut(&mut entry);
        entry["x-part-of"] = name.clone().into();
        list["items"] = add(format!("PartOf{name}"), entry, types);
    }
    list
}

/// Adds a type, and returns a reference to it.
fn add(name: String, of: Json, types: &mut Map<String, Json>) -> Json {
    let reference = json!({ "$ref": format!("#/$defs/{name}") });
    types.insert(name, of);
    reference
}

/// Returns the type that a schema refers to, with its name; `None` if the schema is no reference.
fn target(schema: &Json, types: &Map<String, Json>) -> Option<(String, Json)> {
    let (_, name) = schema["$ref"].as_str()?.rsplit_once('/')?;
    Some((name.to_owned(), types.get(name)?.clone()))
}

/// Returns the codes and the kinds of errors, with their data.
fn errors(generator: &mut SchemaGenerator) -> Json {
    let plain = generator.root_schema_for::<PlainKind>().to_value();
    let other = generator.subschema_for::<ErrorData<'_>>().to_value();
    let mut kinds = Map::new();
    for kind in list(&plain["oneOf"]) {
        let name = kind["const"].as_str().unwrap_or_default();
        let code = PlainKind::from_name(name).map(PlainKind::code);
        let tag = json!({ "type": "string", "const": name });
        let data = json!({
            "type": "object", "properties": { "kind": tag }, "required": ["kind"],
        });
        let described = json!({ "description": kind["description"], "code": code, "data": data });
        kinds.insert(name.to_owned(), described);
    }
    for mut data in list(&other["oneOf"]).cloned() {
        let description = data.as_object_mut().and_then(|data| data.remove("description"));
        let name = data["properties"]["kind"]["const"].as_str().unwrap_or_default().to_owned();
        let code = WireError::APPLICATION;
        kinds.insert(name, json!({ "description": description, "code": code, "data": data }));
    }
    let codes: Vec<Json> = CODES
        .iter()
        .map(|(code, meaning, data)| {
            let data = data.map(|data| data(generator).to_value());
            json!({ "code": code, "description": meaning, "data": data })
        })
        .collect();
    json!({ "codes": codes, "kinds": kinds })
}

/// Returns the schemas of the parameters of notifications, by topic. Includes the notifications
/// that need no subscription.
fn notifications(generator: &mut SchemaGenerator) -> Json {
    let topic = |topic: &Topic| (topic.name().to_owned(), schema_of(*topic, generator).to_value());
    let mut all: Map<_, _> = Topic::ALL.iter().map(topic).collect();
    client_tools::describe(generator, &mut all);
    all.into()
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

/// Spells the names of members as in JSON messages. Removes the line breaks in descriptions, and
/// the Rust types of numbers.
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
            let is_size = |of: &Json| of.as_str().is_some_and(|of| SIZES.contains(&of));
            if members.get("format").is_some_and(is_size) {
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
