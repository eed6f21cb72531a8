//! Formats JSON values, and finds the hooks in them. Nothing here has side effects.

use std::ops::Range;
use std::path::Path;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;

/// Name of the entry for Contexture's server. The entry is removed as a whole, even if the user has
/// added to it. An entry of this name that does not start our server is another program's.
pub(super) const ENTRY: &str = "contexture";

/// Why no entry is added in the place of another program's.
pub(super) const TAKEN: &str = "the entry contexture starts another program, or connects to a server; \
                                rename or remove it first";

/// A part to add to an object or an array.
pub(super) enum Child<'v, 'a> {
    Property(&'v ObjectProp<'a>),
    Element(&'v Value<'a>),
}

impl Child<'_, '_> {
    pub(super) fn render(&self, indent: &str, step: &str, line_end: &str) -> String {
        match self {
            Self::Property(property) => {
                let value = render(&property.value, indent, step, line_end);
                format!("{}: {value}", quoted(property.name.as_str()))
            }
            Self::Element(value) => render(value, indent, step, line_end),
        }
    }
}

/// Returns the byte ranges of an object's properties or an array's elements; empty for any other
/// value.
pub(super) fn children(value: &Value<'_>) -> Vec<Range<usize>> {
    let range = |it: &dyn Ranged| it.range().start..it.range().end;
    match value {
        Value::Object(Object { properties, .. }) => properties.iter().map(|it| range(it)).collect(),
        Value::Array(array) => array.elements.iter().map(|it| range(it)).collect(),
        _ => Vec::new(),
    }
}

/// Formats a value over several lines, as JavaScript's `JSON.stringify` does. `indent` is the
/// indentation of the line in which the value begins, and `step` that of each level within.
pub(super) fn render(value: &Value<'_>, indent: &str, step: &str, line_end: &str) -> String {
    let below = format!("{indent}{step}");
    let (open, close, parts) = match value {
        Value::Object(object) => {
            let one = |it| Child::Property(it).render(&below, step, line_end);
            ('{', '}', object.properties.iter().map(one).collect::<Vec<_>>())
        }
        Value::Array(array) => {
            let one = |it| render(it, &below, step, line_end);
            ('[', ']', array.elements.iter().map(one).collect())
        }
        _ => return bare(value),
    };
    if parts.is_empty() {
        return format!("{open}{close}");
    }
    let parts = parts.join(&format!(",{line_end}{below}"));
    format!("{open}{line_end}{below}{parts}{line_end}{indent}{close}")
}

/// Formats a value on one line.
pub(super) fn bare(value: &Value<'_>) -> String {
    match value {
        Value::StringLit(text) => quoted(&text.value),
        Value::NumberLit(number) => number.value.to_owned(),
        Value::BooleanLit(it) => it.value.to_string(),
        Value::NullKeyword(_) => "null".to_owned(),
        Value::Object(object) => {
            let one =
                |it: &ObjectProp<'_>| format!("{}: {}", quoted(it.name.as_str()), bare(&it.value));
            format!("{{{}}}", object.properties.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Value::Array(array) => {
            format!("[{}]", array.elements.iter().map(bare).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Formats a text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns whether an array holds a group of hooks.
pub(super) fn are_groups(groups: &Array<'_>) -> bool {
    groups.elements.iter().any(|group| commands(group).next().is_some())
}

/// Returns the commands of a group of hooks, with their byte ranges.
pub(super) fn commands<'v>(group: &'v Value<'_>) -> impl Iterator<Item = (&'v str, Range<usize>)> {
    let all = hooks(group).and_then(Value::as_array).into_iter().flat_map(|all| &all.elements);
    all.filter_map(command)
}

/// Returns the value of `hooks` in a group, if there is one.
pub(super) fn hooks<'v, 'a>(group: &'v Value<'a>) -> Option<&'v Value<'a>> {
    Some(&group.as_object()?.get("hooks")?.value)
}

/// Returns the command of a hook, with its byte range; `None` if the hook has no command.
pub(super) fn command<'v>(hook: &'v Value<'_>) -> Option<(&'v str, Range<usize>)> {
    let text = hook.as_object()?.get("command")?.value.as_string_lit()?;
    Some((&text.value, text.range.start..text.range.end))
}

/// Returns whether two commands run the same hook of this program, wherever the program is
/// installed.
pub(super) fn same_hook(one: &str, other: &str) -> bool {
    match (hook_of(one), hook_of(other)) {
        (Some((a, one)), Some((b, other))) => one == other && same_program(a, b),
        _ => false,
    }
}

/// Returns the words of the command that an entry of a server has; empty if it has none.
pub(super) fn server_words(entry: &Value<'_>) -> Vec<String> {
    let Some(entry) = entry.as_object() else { return Vec::new() };
    let value = |name: &str| entry.get(name).map(|it| strings(&it.value));
    value("command").into_iter().chain(value("args")).flatten().collect()
}

/// Returns all strings in an array, or just the string if `value` is a string; empty for any other
/// value.
fn strings(value: &Value<'_>) -> Vec<String> {
    match value {
        Value::StringLit(text) => vec![text.value.to_string()],
        Value::Array(all) => all.elements.iter().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

/// Returns whether two commands start the same server, wherever the program is installed.
pub(super) fn same_server(one: &[String], other: &[String]) -> bool {
    let [Some(a), Some(b)] = [one, other].map(<[String]>::first) else { return false };
    one.last() == other.last() && same_program(a, b)
}

/// Returns whether two paths lead to our program, as their names tell.
fn same_program(one: &str, other: &str) -> bool {
    let name = |path| Path::new(path).file_name().map(|name| name.to_string_lossy());
    let (Some(a), Some(b)) = (name(one), name(other)) else { return false };
    a == b || [a, b].iter().all(|it| it.contains(ENTRY))
}

/// Splits the command of a hook into the path of the program and the rest: the agent and the event.
/// Returns `None` if `command` runs no hook.
fn hook_of(command: &str) -> Option<(&str, &str)> {
    let (program, hook) = command.trim().rsplit_once(" hook ")?;
    let path = match program.strip_prefix('\'') {
        Some(rest) => rest.split('\'').next()?,
        None => program.split(' ').next()?,
    };
    Some((path, hook))
}
