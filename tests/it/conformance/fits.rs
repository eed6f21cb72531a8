//! Holds data against the schema, in either dialect, and counts the members that were seen.

use std::collections::BTreeSet;

use contexture_program::internals::value::Value;
use serde_json::Value as Json;

use crate::support::Dialect;

/// Types with their members, `Item.tokens`.
pub(super) type Members = BTreeSet<String>;

/// Returns the members of all types that a schema reaches.
pub(super) fn members(document: &Json, schema: &Json, at: &str, found: &mut Members) {
    let part = schema["x-part-of"].as_str().map(|name| (name, &document["$defs"][name]));
    if let Some((name, target)) = target(document, schema).or(part) {
        let is_new = !found.iter().any(|member| member.starts_with(&format!("{name}.")));
        if is_new {
            members(document, target, name, found);
        }
        return;
    }
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        found.insert(format!("{at}.{name}"));
        members(document, of, &format!("{at}.{name}"), found);
    }
    let branches = ["anyOf", "oneOf"].iter().filter_map(|key| schema[key].as_array()).flatten();
    for branch in branches.chain(schema.get("items")).chain(schema.get("additionalProperties")) {
        members(document, branch, at, found);
    }
}

/// A schema with its document, for data of a dialect.
pub(super) struct Fit<'a> {
    pub(super) document: &'a Json,
    pub(super) dialect: Dialect,
}

impl Fit<'_> {
    /// Returns the members in the data, or the place and reason why they do not fit.
    pub(super) fn check(&self, value: &Value, schema: &Json, at: &str) -> Result<Members, String> {
        if let Some((name, target)) = target(self.document, schema) {
            return self.check(value, target, name);
        }
        // An entry of a page has members of a type, but perhaps not all that are required.
        let at = schema["x-part-of"].as_str().unwrap_or(at);
        let wrong = |why: &str| Err(format!("{at}: {value:?} {why} {schema}"));
        let says = ["type", "anyOf", "oneOf", "enum", "const"];
        let is_open = |of: &serde_json::Map<_, _>| !says.iter().any(|key| of.contains_key(*key));
        if schema == &Json::Bool(true) || schema.as_object().is_some_and(is_open) {
            return Ok(Members::new());
        }
        if let Some(branches) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            let mut tried = branches.iter().map(|branch| self.check(value, branch, at));
            let fits = tried.find(Result::is_ok);
            return fits.unwrap_or_else(|| wrong("fits none of"));
        }
        if !self.is_listed(value, schema) {
            return wrong("is not a value of");
        }
        match self.shape(value, schema) {
            Some(Shape::Atom) => Ok(Members::new()),
            Some(Shape::List(items)) => {
                let each = items.iter().map(|item| self.check(item, &schema["items"], at));
                each.collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().flatten().collect())
            }
            Some(Shape::Object(entries)) => self.object(&entries, schema, at),
            None => wrong("has not the type of"),
        }
    }

    /// Whether a value from a closed list is one of it: in the native dialect, as a keyword.
    fn is_listed(&self, value: &Value, schema: &Json) -> bool {
        let listed = schema["enum"].as_array().map(Vec::as_slice);
        let only = schema.get("const").map(std::slice::from_ref);
        let is_keyword = listed.or(only).is_some() || schema["format"] == "keyword";
        let may_be_either = schema["format"] == "keyword or text";
        match value {
            Value::Keyword(_) if may_be_either => true,
            Value::Str(_) if is_keyword && self.dialect == Dialect::Native => false,
            Value::Keyword(_) if !is_keyword => false,
            Value::Str(name) => is_one_of(name, listed.or(only)),
            Value::Keyword(name) => is_one_of(name, listed.or(only)),
            _ => true,
        }
    }

    /// Returns the shape of a value, if the schema allows its type.
    fn shape<'v>(&self, value: &'v Value, schema: &Json) -> Option<Shape<'v>> {
        let types = match &schema["type"] {
            Json::String(one) => vec![one.as_str()],
            Json::Array(several) => several.iter().filter_map(Json::as_str).collect(),
            _ => match value {
                Value::Str(_) | Value::Keyword(_) => vec!["string"],
                _ => vec![],
            },
        };
        let may_be = |name: &str| types.contains(&name);
        let atom = |name: &str| may_be(name).then_some(Shape::Atom);
        match value {
            Value::Nil if self.dialect == Dialect::Native => match () {
                () if may_be("null") || may_be("boolean") => Some(Shape::Atom),
                () if may_be("array") => Some(Shape::List(&[])),
                () => may_be("object").then(|| Shape::Object(Vec::new())),
            },
            Value::Nil => atom("null"),
            Value::Bool(_) => atom("boolean"),
            Value::Int(_) | Value::BigInt(_) => atom("integer").or(atom("number")),
            Value::Float(_) | Value::FloatText(..) => atom("number"),
            Value::Str(_) | Value::Keyword(_) => atom("string"),
            Value::Map(entries) if may_be("object") => {
                let entries = entries.iter().map(|(name, value)| (name.replace('-', "_"), value));
                Some(Shape::Object(entries.collect()))
            }
            Value::List(flat) if may_be("object") && value.is_plist() => {
                let entry = |pair: &'v [Value]| match &pair[0] {
                    Value::Keyword(name) => (name.replace('-', "_"), &pair[1]),
                    other => panic!("{other:?} is no name"),
                };
                Some(Shape::Object(flat.chunks(2).map(entry).collect()))
            }
            Value::List(items) if may_be("array") => Some(Shape::List(items)),
            _ => None,
        }
    }

    fn object(
        &self,
        entries: &[(String, &Value)],
        schema: &Json,
        at: &str,
    ) -> Result<Members, String> {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        for name in required {
            if !entries.iter().any(|(entry, _)| entry == name) {
                return Err(format!("{at}: {name} is missing in {entries:?}"));
            }
        }
        let mut found = Members::new();
        for (name, value) in entries {
            let here = format!("{at}.{name}");
            let of = schema["properties"].get(name).or(schema.get("additionalProperties"));
            let of = of.ok_or_else(|| format!("{here} is not in the schema; it is {value:?}"))?;
            found.extend(self.check(value, of, &here)?);
            found.insert(here);
        }
        Ok(found)
    }
}

enum Shape<'v> {
    Atom,
    List(&'v [Value]),
    Object(Vec<(String, &'v Value)>),
}

fn is_one_of(name: &str, list: Option<&[Json]>) -> bool {
    list.is_none_or(|list| list.iter().any(|one| one == name))
}

/// Returns the type that a schema refers to.
fn target<'a>(document: &'a Json, schema: &'a Json) -> Option<(&'a str, &'a Json)> {
    let name = schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
    Some((name, &document["$defs"][name]))
}
