//! The parameters of methods, derived from the structs that handlers take. The method table, Emacs
//! and the reference show what the names, types, comments and serde attributes of the fields say.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value as Json;

use super::Step;
use super::call::MethodCall;
use super::params::{KEY, RequestKey};
use crate::value::{self, kebab};
use crate::wire::message::WireError;

/// A parameter of a method.
#[derive(Clone)]
pub struct Param {
    /// Name in kebab-case.
    pub name: &'static str,
    /// Type of the value.
    pub kind: &'static str,
    /// True if a call without the parameter is refused.
    pub required: bool,
    /// Meaning, and the default if the parameter is absent.
    pub doc: &'static str,
    /// Allowed values, if they are a closed list.
    pub values: Vec<&'static str>,
    /// Names within the value, such as those of a message's members.
    pub(super) inner: Vec<&'static str>,
    /// True if a call without the parameter uses the current session.
    pub(super) is_current_session: bool,
}

/// Returns the parameters of a handler. Leaks their texts, so call this function only once for each
/// method.
pub(super) fn params_of<P: JsonSchema + DeserializeOwned>(
    _handler: fn(MethodCall, P) -> Result<Step, WireError>,
) -> Vec<Param> {
    own_params_of::<P>()
}

/// Returns the parameter with the request key, which each method that changes something takes.
pub(super) fn key() -> Param {
    let key = generator().subschema_for::<RequestKey>().to_value();
    param(KEY, &key, false)
}

/// Returns the schema of a result, with each type in place of the references to it.
pub(super) fn inlined<R: JsonSchema>() -> Json {
    let settings = SchemaSettings::default().for_serialize();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<R>().to_value()
}

/// Returns whether a schema has a member with this name, at any depth.
pub(super) fn has_member(schema: &Json, name: &str) -> bool {
    match schema {
        Json::Array(all) => all.iter().any(|one| has_member(one, name)),
        Json::Object(parts) => parts.iter().any(|(part, of)| {
            let is_here = part == "properties"
                && of.as_object().is_some_and(|of| of.keys().any(|key| kebab(key) == name));
            is_here || has_member(of, name)
        }),
        _ => false,
    }
}

fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::default().with(|settings| settings.inline_subschemas = true);
    settings.into_generator()
}

/// Returns the parameters that the fields of a struct describe.
pub(super) fn own_params_of<P: JsonSchema + DeserializeOwned>() -> Vec<Param> {
    let schema = generator().root_schema_for::<P>().to_value();
    let required = |name: &str| {
        let names = schema["required"].as_array().into_iter().flatten();
        names.filter_map(Json::as_str).any(|required| required == name)
    };
    let param = |field: &'static str| param(field, &schema["properties"][field], required(field));
    field_names::<P>().iter().copied().map(param).collect()
}

/// Returns the schema of the parameters that a handler takes.
pub(super) fn schema_of<P: JsonSchema>(
    _handler: fn(MethodCall, P) -> Result<Step, WireError>,
    generator: &mut SchemaGenerator,
) -> Schema {
    P::json_schema(generator)
}

fn param(field: &'static str, schema: &Json, required: bool) -> Param {
    let given = unless_null(schema);
    let doc = schema["description"].as_str().or_else(|| given["description"].as_str());
    let doc = doc.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let own = |schema| Some(values(schema)).filter(|values| !values.is_empty());
    let of_a_property =
        || given["properties"].as_object().into_iter().flat_map(|map| map.values()).find_map(own);
    let values = own(given).or_else(|| own(&given["items"])).or_else(of_a_property);
    let mut inner = Vec::new();
    add_inner_names(given, &mut inner);
    Param {
        name: field.replace('_', "-").leak(),
        kind: kind(given).leak(),
        required,
        doc: doc.leak(),
        values: values.into_iter().flatten().map(|name| &*name.leak()).collect(),
        inner,
        is_current_session: given["x-current-session"] == true,
    }
}

/// Adds the names of all members within a schema.
fn add_inner_names(schema: &Json, names: &mut Vec<&'static str>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        names.push(name.replace('_', "-").leak());
        add_inner_names(unless_null(inner), names);
    }
    if let Some(items) = schema.get("items") {
        add_inner_names(unless_null(items), names);
    }
}

/// Returns the schema without the null of an optional value.
fn unless_null(schema: &Json) -> &Json {
    schema.get("anyOf").map_or(schema, |either| &either[0])
}

/// Returns the name that the reference uses for the type of a schema.
fn kind(schema: &Json) -> String {
    let types: Vec<&str> = match &schema["type"] {
        Json::Array(types) => types.iter().filter_map(Json::as_str).collect(),
        other => vec![other.as_str().unwrap_or("string")],
    };
    let words = types.into_iter().filter(|name| *name != "null").map(|name| match name {
        "string" if !values(schema).is_empty() => "name".to_owned(),
        "array" => format!("list of {}s", kind(&schema["items"])),
        "object" => "plist".to_owned(),
        name => name.to_owned(),
    });
    words.collect::<Vec<_>>().join(" or ")
}

/// Returns a schema's closed list of values; empty if it has none.
fn values(schema: &Json) -> Vec<String> {
    let schema = unless_null(schema);
    let variants = schema["oneOf"].as_array().into_iter().flatten().map(|one| &one["const"]);
    let names = schema["enum"].as_array().into_iter().flatten().chain(variants);
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Returns the names of a struct's fields as its `Deserialize` knows them, in their order.
fn field_names<P: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    // `deserialize` asks for its fields by name. The names are recorded, and no field is given.
    let _ = P::deserialize(FieldNames(&mut names));
    names
}

struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("has no fields"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
