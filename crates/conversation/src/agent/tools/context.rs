//! The tools with which a model can list, change and search its context.

mod request;
mod table;

use std::sync::Arc;

use serde_json::json;

use self::request::ContextRequest;
pub use self::table::ALL;
use super::{OfferedTool, ToolRequest, ToolTurn, one_line};
use crate::agent::{Job, Later};
use crate::provider::chat;
use crate::session::message::ToolCall;
use crate::store::session::SessionRow;
use crate::value::Value;
use crate::value::json::{from_json, json_text};
use crate::visible::visible;

/// A tool with which a model can list, change or search its context.
#[derive(Clone, Copy)]
pub struct ContextTool {
    /// Name of the tool.
    pub name: &'static str,
    /// What the tool does, for the model.
    pub description: &'static str,
    arguments: &'static [Argument],
    /// Beginning of the line that tells the user about a call.
    phrase: &'static str,
}

#[derive(Clone, Copy)]
struct Argument {
    name: &'static str,
    /// JSON type; the elements of an array are strings.
    kind: &'static str,
    meaning: &'static str,
    required: bool,
}

pub fn find(name: &str) -> Option<&'static ContextTool> {
    ALL.iter().find(|tool| tool.name == name)
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|tool| tool.name).collect()
}

/// Returns all tools, for a turn.
pub fn toolbox() -> Vec<Arc<dyn OfferedTool>> {
    ALL.iter().map(|tool| Arc::new(*tool) as Arc<dyn OfferedTool>).collect()
}

/// A tool call with its arguments, both unparsed and parsed.
struct ContextCall {
    tool: ContextTool,
    given: Value,
    request: ContextRequest,
}

impl OfferedTool for ContextTool {
    fn name(&self) -> &str {
        self.name
    }

    fn offered(&self) -> chat::ToolDefinition {
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
        chat::ToolDefinition {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            schema: json!({
                "type": "object", "properties": properties, "required": required,
            }),
        }
    }

    fn understand<'a>(
        &'a self,
        called: &'a ToolCall,
        session: &'a SessionRow,
    ) -> Later<'a, Result<Box<dyn ToolRequest>, String>> {
        Box::pin(async move {
            let mut call = self.called(&called.arguments)?;
            call.request.resolve(session).await?;
            Ok(Box::new(call) as Box<dyn ToolRequest>)
        })
    }
}

impl ContextTool {
    /// Returns the names of the arguments.
    pub fn arguments(&self) -> impl Iterator<Item = &'static str> {
        self.arguments.iter().map(|argument| argument.name)
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// The reason, as text for the model.
    fn called(self, arguments: &str) -> Result<ContextCall, String> {
        let text = if arguments.trim().is_empty() { "{}" } else { arguments };
        let given = from_json(text.as_bytes())
            .map_err(|error| format!("the arguments are not JSON: {error}"))?;
        let Value::Map(entries) = &given else {
            return Err("the arguments must be a JSON object".to_owned());
        };
        let is_known = |name: &str| self.arguments.iter().any(|known| known.key() == name);
        if let Some((name, _)) = entries.iter().find(|(name, _)| !is_known(name)) {
            return Err(format!("{} has no argument {name}", self.name));
        }
        let is_missing = |argument: &&Argument| {
            argument.required && given.get(&argument.key()).is_none_or(|value| *value == Value::Nil)
        };
        if let Some(Argument { name, .. }) = self.arguments.iter().find(is_missing) {
            return Err(format!("{} needs the argument {name}", self.name));
        }
        Ok(ContextCall {
            tool: self,
            request: ContextRequest::read(self.name, given.clone())?,
            given,
        })
    }
}

impl Argument {
    /// Returns the argument's name with hyphens, as the key of a parsed value has it.
    fn key(&self) -> String {
        self.name.replace('_', "-")
    }
}

impl ToolRequest for ContextCall {
    fn phrase(&self) -> String {
        let Value::Map(given) = &self.given else { return self.tool.phrase.to_owned() };
        let one = |value: &Value| match value {
            Value::Str(text) => visible(&one_line(text)).into_owned(),
            other => visible(&json_text(other)).into_owned(),
        };
        let shown = |value: &Value| match value {
            Value::List(all) | Value::Vector(all) => {
                all.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            value => one(value),
        };
        let is_line = |name: &str| name == "start-line" || name == "end-line";
        let others = given.iter().filter(|(name, _)| !is_line(name));
        let what: Vec<String> = others.map(|(_, value)| shown(value)).collect();
        let lines = match (self.given.get("start-line"), self.given.get("end-line")) {
            (Some(Value::Int(start)), Some(Value::Int(end))) => format!(", lines {start} to {end}"),
            (Some(Value::Int(start)), _) => format!(" from line {start}"),
            _ => String::new(),
        };
        let phrase = format!("{} {}", self.tool.phrase, what.join(" "));
        let secrets = if self.reaches_secrets() { " (may hold secrets)" } else { "" };
        format!("{}{lines}{secrets}", phrase.trim_end())
    }

    fn outside(&self) -> Option<String> {
        self.request.outside()
    }

    fn reaches_secrets(&self) -> bool {
        self.request.reaches_secrets()
    }

    fn carry_out<'a>(
        &'a self,
        job: &'a Job,
        turn: ToolTurn<'a>,
    ) -> Later<'a, Result<String, String>> {
        Box::pin(async move {
            let result = self.request.carry_out(job, turn).await?;
            Ok(json_text(&result))
        })
    }
}

#[cfg(test)]
mod tests;
