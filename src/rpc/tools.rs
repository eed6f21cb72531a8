//! The tools by which a model may look at its context and change it: the same methods that clients
//! call, with the session filled in.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::call::Call;
use super::present::{entry, figure};
use super::{Finish, Step, find as find_method};
use crate::engine::Engine;
use crate::files;
use crate::provider::chat::Tool;
use crate::store::session::SessionRow;
use crate::value::Value;
use crate::value::json::{from_json, json_text};
use crate::wire::message::WireError;

/// The longest result that a model is shown, in bytes.
pub(super) const MAX_RESULT_BYTES: usize = 64 << 10;
/// How many memories or messages a search gives.
const FOUND: usize = 8;
/// How many hits of all sessions are looked at for those of one.
const HITS_LOOKED_AT: u64 = 200;

/// A parameter of a method with its name.
type Entry = (Box<str>, Value);

/// A tool that a model may be offered.
pub(super) struct ContextTool {
    pub(super) name: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
    /// The method that it is.
    method: &'static str,
    /// How a call of it begins in a line for a person.
    phrase: &'static str,
    /// The parameters that the model does not say.
    params: fn(&ToolRequest, &SessionRow) -> Vec<Entry>,
    /// What of the method's answer a model is shown.
    shown: fn(&ToolRequest, Value, &SessionRow) -> Result<Value, String>,
}

/// An argument of a tool.
struct Argument {
    name: &'static str,
    /// Its JSON type; an array is one of strings.
    kind: &'static str,
    meaning: &'static str,
    required: bool,
}

const fn required(name: &'static str, kind: &'static str, meaning: &'static str) -> Argument {
    Argument { name, kind, meaning, required: true }
}

const fn optional(name: &'static str, kind: &'static str, meaning: &'static str) -> Argument {
    Argument { name, kind, meaning, required: false }
}

/// Every tool, in the order in which they are offered.
pub(super) static ALL: &[ContextTool] = &[
    ContextTool {
        name: "list_context",
        description: "Lists the items of your context with their ids, types, sources and tokens.",
        arguments: &[],
        method: "get-context",
        phrase: "list the context",
        params: |_, row| vec![manager(row), entry("brief", true)],
        shown: as_it_is,
    },
    ContextTool {
        name: "read_context",
        description: "Gives the whole content of an item of your context.",
        arguments: &[required("id", "string", "The item's id, such as ctx-7.")],
        method: "get-context",
        phrase: "read the item",
        params: |request, row| {
            let ids = request.argument("id").cloned().into_iter().collect();
            vec![manager(row), entry("ids", Value::List(ids))]
        },
        shown: only_item,
    },
    ContextTool {
        name: "add_file",
        description: "Adds a file, or some of its lines, to your context; from now on you see it.",
        arguments: &[
            required("path", "string", "Its name, absolute or from the project's folder."),
            optional("start_line", "integer", "The first line, from 1."),
            optional("end_line", "integer", "The last line."),
        ],
        method: "add-file",
        phrase: "add the file",
        params: |request, row| {
            let path = request.path(row).map(|path| path.to_string_lossy().into_owned());
            vec![manager(row), entry("path", path.unwrap_or_default()), entry("brief", true)]
        },
        shown: as_it_is,
    },
    ContextTool {
        name: "add_text",
        description: "Adds a text of your own to your context; from now on you see it.",
        arguments: &[required("content", "string", "The text.")],
        method: "add-context",
        phrase: "add a text",
        params: |_, row| vec![manager(row), entry("type", "text"), entry("brief", true)],
        shown: as_it_is,
    },
    ContextTool {
        name: "drop_context",
        description: "Takes items out of your context; the user can bring them back.",
        arguments: &[required("ids", "array", "The items' ids.")],
        method: "remove-context",
        phrase: "drop the items",
        params: |_, row| vec![manager(row)],
        shown: as_it_is,
    },
    ContextTool {
        name: "search_memory",
        description: "Finds what is remembered from earlier work that fits a text.",
        arguments: &[required("query", "string", "The text.")],
        method: "ground-query",
        phrase: "search the memories for",
        params: |_, row| vec![entry("session", session(row)), entry("limit", figure(FOUND as u64))],
        shown: as_it_is,
    },
    ContextTool {
        name: "search_session",
        description: "Finds words in this conversation, also in messages that you do not see.",
        arguments: &[required("query", "string", "The words.")],
        method: "search-sessions",
        phrase: "search the conversation for",
        params: |_, _| vec![entry("limit", figure(HITS_LOOKED_AT))],
        shown: own_hits,
    },
];

/// What the model says that the method takes under the same name.
const PASSED_ON: [&str; 5] = ["content", "ids", "query", "start-line", "end-line"];

fn manager(row: &SessionRow) -> Entry {
    entry("manager", row.manager_name())
}

fn session(row: &SessionRow) -> Value {
    Value::Str(format!("ses-{}", row.id))
}

fn as_it_is(_: &ToolRequest, value: Value, _: &SessionRow) -> Result<Value, String> {
    Ok(value)
}

/// Of a list of one item, that.
fn only_item(request: &ToolRequest, value: Value, _: &SessionRow) -> Result<Value, String> {
    let item = match value {
        Value::List(mut items) => items.pop(),
        _ => None,
    };
    item.ok_or_else(|| {
        let id = request.argument("id").map(json_text).unwrap_or_default();
        format!("there is no item {id} in the context; list_context lists what there is")
    })
}

/// Of hits in all sessions, this one's.
fn own_hits(_: &ToolRequest, value: Value, row: &SessionRow) -> Result<Value, String> {
    let Value::List(hits) = value else { return Ok(value) };
    let id = session(row);
    let own = hits.into_iter().filter(|hit| hit.get("id") == Some(&id));
    Ok(Value::List(own.take(FOUND).collect()))
}

/// The tool of this name.
pub(super) fn find(name: &str) -> Option<&'static ContextTool> {
    ALL.iter().find(|tool| tool.name == name)
}

/// The names of all tools.
pub(super) fn names() -> Vec<&'static str> {
    ALL.iter().map(|tool| tool.name).collect()
}

/// What a model asked for, understood.
pub(super) struct ToolRequest {
    pub(super) tool: &'static ContextTool,
    arguments: Value,
}

impl ContextTool {
    /// The tool as a provider is told of it.
    pub(super) fn offered(&self) -> Tool {
        let property = |argument: &Argument| {
            let mut property = json!({ "type": argument.kind, "description": argument.meaning });
            if argument.kind == "array" {
                property["items"] = json!({ "type": "string" });
            }
            (argument.name.to_owned(), property)
        };
        let properties: serde_json::Map<String, serde_json::Value> =
            self.arguments.iter().map(property).collect();
        let required = self.arguments.iter().filter(|argument| argument.required);
        let required: Vec<&str> = required.map(|argument| argument.name).collect();
        Tool {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            schema: json!({
                "type": "object", "properties": properties, "required": required,
            }),
        }
    }

    /// Understands the arguments of a call.
    ///
    /// # Errors
    /// A phrase for the model.
    pub(super) fn understood(&'static self, arguments: &str) -> Result<ToolRequest, String> {
        let text = if arguments.trim().is_empty() { "{}" } else { arguments };
        let value = from_json(text.as_bytes())
            .map_err(|error| format!("the arguments are no JSON: {error}"))?;
        let Value::Map(given) = &value else {
            return Err("the arguments must be a JSON object".to_owned());
        };
        let known = |name: &str| {
            self.arguments.iter().any(|argument| argument.name.replace('_', "-") == *name)
        };
        if let Some((name, _)) = given.iter().find(|(name, _)| !known(name)) {
            return Err(format!("{} has no argument {name}", self.name));
        }
        let request = ToolRequest { tool: self, arguments: value };
        let is_missing = |argument: &&Argument| {
            let given = request.argument(&argument.name.replace('_', "-"));
            argument.required && given.is_none_or(|value| *value == Value::Nil)
        };
        match self.arguments.iter().find(is_missing) {
            Some(Argument { name, .. }) => Err(format!("{} needs the argument {name}", self.name)),
            None => Ok(request),
        }
    }
}

impl ToolRequest {
    fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.get(name)
    }

    /// Why it cannot be done in this session, whoever allows it.
    pub(super) fn refusal(&self, row: &SessionRow) -> Option<String> {
        let name = self.argument("path").filter(|_| self.tool.method == "add-file")?;
        let reason = || {
            let name = json_text(name);
            format!("{name} is no absolute file name, and the session is of no project's folder")
        };
        self.path(row).is_none().then(reason)
    }

    /// What is to be done, in a line for a person.
    pub(super) fn phrase(&self) -> String {
        let Value::Map(given) = &self.arguments else { return self.tool.phrase.to_owned() };
        let shown = |value: &Value| match value {
            Value::Str(text) => one_line(text),
            other => json_text(other),
        };
        let what: Vec<String> = given.iter().map(|(_, value)| shown(value)).collect();
        format!("{} {}", self.tool.phrase, what.join(" ")).trim_end().to_owned()
    }

    /// Whether it reaches out of the session's project, which a person must allow each time.
    pub(super) fn reaches_out(&self, row: &SessionRow) -> bool {
        if self.tool.method != "add-file" {
            return false;
        }
        let (Some(path), Some(project)) = (self.path(row), row.project.as_deref()) else {
            return true;
        };
        // What links lead to counts, not what they are called.
        match (path.canonicalize(), Path::new(project).canonicalize()) {
            (Ok(path), Ok(project)) => !path.starts_with(project),
            // What is not there cannot be read either.
            (Err(_), _) => false,
            (Ok(_), Err(_)) => true,
        }
    }

    /// The file that is meant: names are from the project's folder.
    fn path(&self, row: &SessionRow) -> Option<PathBuf> {
        let Some(Value::Str(name)) = self.argument("path") else { return None };
        match (name.starts_with(['/', '~']), row.project.as_deref()) {
            (true, _) | (false, None) => files::absolute(name).ok(),
            (false, Some(project)) => Some(Path::new(project).join(name)),
        }
    }

    /// Does it, and gives the result as a model reads it.
    ///
    /// # Errors
    /// A phrase for the model.
    pub(super) async fn carried_out(
        &self,
        call: &Call,
        row: &SessionRow,
    ) -> Result<String, String> {
        let mut params = (self.tool.params)(self, row);
        let given_as = |name: &str| self.argument(name).map(|value| entry(name, value.clone()));
        params.extend(PASSED_ON.into_iter().filter_map(given_as));
        let done = run(call, self.tool.method, Value::Map(params)).await;
        let value = done.map_err(|error| error.message)?;
        (self.tool.shown)(self, value, row).map(|value| cut(json_text(&value)))
    }
}

/// Runs a method to its end, as the program that is called.
async fn run(call: &Call, method: &str, params: Value) -> Result<Value, WireError> {
    let method = find_method(method)?;
    let own = call.clone();
    let broken = || WireError::new(WireError::INTERNAL, "internal error in a tool");
    let begun = tokio::task::spawn_blocking(move || method.run(own, params)).await;
    let mut step = begun.map_err(|_| broken())??;
    while let Step::Await(work) = step {
        step = work.await?;
    }
    let operation = match step {
        Step::Done(value) => return Ok(value),
        Step::State(operation) => operation,
        Step::Await(_) | Step::Cancel(_) | Step::Subscribe(_) | Step::ShutDown => {
            return Err(broken());
        }
    };
    let asked = call.tools.engine.ask(move |engine: &mut Engine| operation(engine)).await;
    match asked.map_err(super::engine_error)? {
        Finish::Now(value) => Ok(value),
        Finish::Refused(error) => Err(error),
        Finish::Later(work) => {
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(broken()))
        }
    }
}

/// The longest text that a line for a person shows, in characters.
const SHOWN: usize = 80;

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.to_owned(),
    }
}

/// A result within what a model is shown.
fn cut(text: String) -> String {
    if text.len() <= MAX_RESULT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MAX_RESULT_BYTES);
    format!("{}… ({} of {} bytes)", &text[..end], end, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: &str, expected: Result<&str, &str>) {
        let asked = find(name).unwrap().understood(arguments);
        let found = asked.map(|asked| asked.phrase());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn calls_are_told_in_a_line() {
        check("list_context", "", Ok("list the context"));
        check("add_file", r#"{"path": "a.rs", "start_line": 3}"#, Ok("add the file a.rs 3"));
        check("add_text", r#"{"content": "one\ntwo"}"#, Ok("add a text one…"));
        check("drop_context", r#"{"ids": ["ctx-1"]}"#, Ok(r#"drop the items ["ctx-1"]"#));
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        check("read_context", "{}", Err("read_context needs the argument id"));
        check("read_context", r#"{"id": null}"#, Err("read_context needs the argument id"));
        check(
            "add_text",
            r#"{"content": "x", "manager": "y"}"#,
            Err("add_text has no argument manager"),
        );
        check("add_text", "[]", Err("the arguments must be a JSON object"));
    }

    #[test]
    fn every_tool_has_a_method_and_a_sound_schema() {
        for tool in ALL {
            assert!(find_method(tool.method).is_ok(), "{}", tool.name);
            let schema = tool.offered().schema;
            assert_eq!(schema["properties"].as_object().unwrap().len(), tool.arguments.len());
        }
    }
}
