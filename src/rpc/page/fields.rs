//! Finds the lists in results, and chooses the members of their entries.

use serde_json::Value as Json;

use crate::rpc::error::param_error;
use crate::value::{Key, Value, kebab};
use crate::wire::message::WireError;

/// Returns the list at a path such as `report.parts`, if there is one.
pub(super) fn list_at<'v>(result: &'v mut Value, path: &str) -> Option<&'v mut Vec<Value>> {
    let found = path.split('.').try_fold(result, |value, name| match value {
        Value::Map(entries) => {
            entries.iter_mut().find(|(key, _)| key.kebab() == name).map(|(_, value)| value)
        }
        _ => None,
    });
    match found? {
        Value::List(items) => Some(items),
        _ => None,
    }
}

/// Puts a list at a path, and adds the objects that are missing on the way.
pub(super) fn put_list(page: &mut Value, path: &str, items: Vec<Value>) {
    let mut place = page;
    for name in path.split('.') {
        if !matches!(place, Value::Map(_)) {
            *place = Value::Map(Vec::new());
        }
        let Value::Map(entries) = place else { return };
        let at = entries.iter().position(|(key, _)| key.kebab() == name).unwrap_or_else(|| {
            entries.push((Key::from(name), Value::Nil));
            entries.len() - 1
        });
        place = &mut entries[at].1;
    }
    *place = Value::List(items);
}

/// Removes the members that `brief` names from each entry of `list`.
pub(super) fn shorten(list: &mut [Value], brief: &[&str]) {
    for entry in list {
        let Value::Map(entries) = entry else { continue };
        entries.retain(|(key, _)| !brief.contains(&&*key.kebab()));
    }
}

/// The members that `:fields` of a call chooses from the entries of the result's lists.
pub(super) struct ChosenFields {
    names: Vec<String>,
    /// For each list, true if its entries can have any of `names`.
    are_there: Vec<bool>,
}

impl ChosenFields {
    /// Checks the names in `given` against the schema of the entries, even if there are no entries.
    /// Each name must be that of a member in the entries of one of `lists`. `result` is the schema
    /// of the whole result.
    pub(super) fn new(given: &[String], lists: &[&str], result: &Json) -> Result<Self, WireError> {
        let names: Vec<_> = given.iter().map(|name| kebab(name).into_owned()).collect();
        let of_lists: Vec<_> = match lists {
            [] => vec![of_entries(result)],
            paths => paths.iter().map(|path| of_entries(at(result, path))).collect(),
        };
        let are_there = of_lists.iter().map(|of| names.iter().any(|name| of.contains(name)));
        let are_there = are_there.collect();
        let mut known: Vec<String> = Vec::new();
        for name in of_lists.into_iter().flatten() {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        if let Some(unknown) = names.iter().find(|name| !known.contains(*name)) {
            let known = match known.is_empty() {
                true => "the entries have none".to_owned(),
                false => format!("the entries have {}", known.join(", ")),
            };
            let message = format!("must name members of the entries, got {unknown:?}; {known}");
            return Err(param_error("fields", &message));
        }
        Ok(Self { names, are_there })
    }

    /// Keeps only the chosen members of each entry of `list`, whose index is `at`. Empties a list
    /// whose entries can have none of them.
    pub(super) fn keep(&self, at: usize, list: &mut Vec<Value>) {
        if !self.are_there.get(at).is_some_and(|there| *there) {
            list.clear();
        }
        for entry in list {
            let Value::Map(entries) = entry else { continue };
            entries.retain(|(key, _)| self.names.iter().any(|name| *name == key.kebab()));
        }
    }
}

/// Returns `schema` and the schemas that it combines by `anyOf`, `oneOf` or `allOf`.
fn forms(schema: &Json) -> Vec<&Json> {
    let alternatives = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema[key].as_array());
    let alternatives = alternatives.flatten().flat_map(forms);
    std::iter::once(schema).chain(alternatives).collect()
}

/// Returns the schema at a path such as `report.parts`; null if there is none.
fn at<'s>(result: &'s Json, path: &str) -> &'s Json {
    path.split('.').fold(result, |schema, name| {
        let properties =
            forms(schema).into_iter().filter_map(|form| form["properties"].as_object());
        let mut members = properties.flatten();
        members.find(|(key, _)| kebab(key) == name).map_or(&Json::Null, |(_, of)| of)
    })
}

/// Returns the names of the members that the entries of a list may have.
fn of_entries(list: &Json) -> Vec<String> {
    let entries = forms(list).into_iter().filter_map(|form| form.get("items"));
    entries.flat_map(members).collect()
}

/// Returns the names of the members in the schema of an object, those that are always present
/// first. A name may occur twice.
fn members(object: &Json) -> Vec<String> {
    let forms = forms(object);
    let required = forms.iter().filter_map(|form| form["required"].as_array()).flatten();
    let all = forms.iter().filter_map(|form| form["properties"].as_object()).flatten();
    let names = required.filter_map(Json::as_str).chain(all.map(|(name, _)| name.as_str()));
    names.map(|name| kebab(name).into_owned()).collect()
}
