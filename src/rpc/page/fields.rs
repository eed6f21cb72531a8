//! Finds the lists in results, and chooses the members of their entries.

use crate::rpc::error::param_error;
use crate::value::{Key, Value, kebab};
use crate::wire::message::WireError;

/// Returns the list at a path such as `report.parts`.
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

/// Puts a list at a path, and adds what is missing on the way.
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

/// Keeps the wanted members of each entry, and leaves out those of `:brief`.
pub(super) fn choose(
    list: &mut [Value],
    fields: Option<&[String]>,
    brief: &[&str],
) -> Result<(), WireError> {
    let fields: Option<Vec<_>> =
        fields.map(|fields| fields.iter().map(|name| kebab(name)).collect());
    let has = |name: &str| list.iter().any(|entry| entry.get(name).is_some());
    if let Some(unknown) = fields.iter().flatten().find(|name| !list.is_empty() && !has(name)) {
        let known: Vec<_> = match list.first() {
            Some(Value::Map(entries)) => entries.iter().map(|(key, _)| key.kebab()).collect(),
            _ => Vec::new(),
        };
        let known = known.join(", ");
        let message =
            format!("must name members of the entries, got {unknown:?}; they have {known}");
        return Err(param_error("fields", &message));
    }
    for entry in list {
        let Value::Map(entries) = entry else { continue };
        entries.retain(|(key, _)| {
            let name = key.kebab();
            fields.as_ref().is_none_or(|fields| fields.contains(&name)) && !brief.contains(&&*name)
        });
    }
    Ok(())
}
