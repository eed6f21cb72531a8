//! The tools by which a model may look at its context and change it: the same methods that clients
//! call, with the session filled in.

mod table;

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::call::Call;
use super::error::internal_error;
use super::files::add_named;
use super::method::Method;
use super::present::entry;
use super::{Finish, Step, context, memories, sessions};
use crate::agent::Later;
use crate::agent::tools::{self, Tool};
use crate::engine::Engine;
use crate::files::{self, Named};
use crate::provider::chat;
use crate::store::session::SessionRow;
use crate::value::Value;
use crate::value::json::{from_json, json_text};
use crate::visible::visible;
use crate::wire::message::WireError;

pub(super) use self::table::ALL;

/// The longest result that a model is shown, in bytes.
const MAX_RESULT_BYTES: usize = 64 << 10;

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

/// What the model says that the method takes under the same name.
const PASSED_ON: [&str; 5] = ["content", "ids", "query", "start-line", "end-line"];

/// The tool of this name.
pub(super) fn find(name: &str) -> Option<&'static ContextTool> {
    ALL.iter().find(|tool| tool.name == name)
}

/// The names of all tools.
pub(super) fn names() -> Vec<&'static str> {
    ALL.iter().map(|tool| tool.name).collect()
}

/// The tools that there are, for the turn of a call.
pub(super) fn toolbox(call: &Call) -> Vec<Arc<dyn Tool>> {
    let tool = |tool| -> Arc<dyn Tool> { Arc::new(OfCall { tool, call: call.clone() }) };
    ALL.iter().map(tool).collect()
}

/// A tool whose methods run for a call.
struct OfCall {
    tool: &'static ContextTool,
    call: Call,
}

impl Tool for OfCall {
    fn name(&self) -> &str {
        self.tool.name
    }

    fn offered(&self) -> chat::Tool {
        self.tool.offered()
    }

    fn understand<'a>(
        &'a self,
        arguments: &'a str,
        session: &'a SessionRow,
    ) -> Later<'a, Result<Box<dyn tools::ToolRequest>, String>> {
        Box::pin(async move {
            let mut request = self.tool.understood(arguments)?;
            request.resolve(session).await?;
            let request = RequestOfCall { request, call: self.call.clone() };
            Ok(Box::new(request) as Box<dyn tools::ToolRequest>)
        })
    }
}

/// A request whose method runs for a call.
struct RequestOfCall {
    request: ToolRequest,
    call: Call,
}

impl tools::ToolRequest for RequestOfCall {
    fn phrase(&self) -> String {
        self.request.phrase()
    }

    fn outside(&self) -> Option<String> {
        self.request.reaches_out()
    }

    fn carry_out<'a>(&'a self, session: &'a SessionRow) -> Later<'a, Result<String, String>> {
        Box::pin(self.request.carried_out(&self.call, session))
    }
}

/// What a model asked for, understood.
struct ToolRequest {
    tool: &'static ContextTool,
    arguments: Value,
    /// The file that is meant, once it is resolved.
    file: Option<Arc<Named>>,
}

impl ContextTool {
    /// The tool as a provider is told of it.
    fn offered(&self) -> chat::Tool {
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
        chat::Tool {
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
    fn understood(&'static self, arguments: &str) -> Result<ToolRequest, String> {
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
        let request = ToolRequest { tool: self, arguments: value, file: None };
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

    /// Finds the file that is meant and holds it: what a person allows is what is then read,
    /// whatever its name has become.
    ///
    /// # Errors
    /// A phrase for the model, when the name can mean no file whoever allows it.
    async fn resolve(&mut self, row: &SessionRow) -> Result<(), String> {
        if self.tool.method != "add-file" {
            return Ok(());
        }
        let Some(Value::Str(name)) = self.argument("path").cloned() else {
            return Err("path must be a string".to_owned());
        };
        let project = row.project.clone();
        let resolving = tokio::task::spawn_blocking(move || {
            files::resolve(&name, project.as_deref().map(Path::new)).map_err(|_| {
                let name = json_text(&Value::Str(name));
                format!(
                    "{name} is no absolute file name, and the session is of no project's folder"
                )
            })
        });
        let named = resolving.await.map_err(|_| "internal error in a tool".to_owned())??;
        self.file = Some(Arc::new(named));
        Ok(())
    }

    /// What is to be done, in a line for a person.
    fn phrase(&self) -> String {
        let Value::Map(given) = &self.arguments else { return self.tool.phrase.to_owned() };
        let shown = |value: &Value| match value {
            Value::Str(text) => visible(&one_line(text)).into_owned(),
            other => visible(&json_text(other)).into_owned(),
        };
        let what: Vec<String> = given.iter().map(|(_, value)| shown(value)).collect();
        format!("{} {}", self.tool.phrase, what.join(" ")).trim_end().to_owned()
    }

    /// The place that it reaches out to from the session's project, which a person must allow each
    /// time.
    fn reaches_out(&self) -> Option<String> {
        let named = self.file.as_ref()?;
        (!named.is_inside).then(|| self.place())
    }

    /// The name of the file that was resolved.
    fn place(&self) -> String {
        let file = self.file.as_ref().and_then(|named| named.file.as_ref().ok());
        file.map(|file| file.path().to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Does it, and gives the result as a model reads it.
    ///
    /// # Errors
    /// A phrase for the model.
    async fn carried_out(&self, call: &Call, row: &SessionRow) -> Result<String, String> {
        let mut params = (self.tool.params)(self, row);
        let given_as = |name: &str| self.argument(name).map(|value| entry(name, value.clone()));
        params.extend(PASSED_ON.into_iter().filter_map(given_as));
        let done = run(call, self, Value::Map(params)).await;
        let value = done.map_err(|error| error.message)?;
        (self.tool.shown)(self, value, row).map(|value| cut(json_text(&value)))
    }
}

/// Finds the method that a tool is. It is of one of these families.
fn find_method(name: &str) -> Result<&'static Method, WireError> {
    let families = [context::METHODS, sessions::METHODS, memories::METHODS];
    let found = families.into_iter().flatten().find(|method| method.name == name);
    found.ok_or_else(|| internal_error("a tool"))
}

/// Runs a method to its end, as the program that is called.
async fn run(call: &Call, asked: &ToolRequest, params: Value) -> Result<Value, WireError> {
    let method = find_method(asked.tool.method)?;
    let (own, file) = (call.clone(), asked.file.clone());
    let broken = || internal_error("a tool");
    let begun = tokio::task::spawn_blocking(move || match file {
        Some(file) => add_named(&own, params, &file),
        None => method.run(own, params),
    });
    let begun = begun.await;
    let mut step = begun.map_err(|_| broken())??;
    while let Step::Await(work) = step {
        step = work.await?;
    }
    let operation = match step {
        Step::Done(value) => return Ok(value),
        Step::State(_, operation) => operation,
        Step::Await(_)
        | Step::AwaitEnd(_)
        | Step::Cancel(_)
        | Step::Subscribe(_)
        | Step::ShutDown => {
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
mod tests;
