//! The table of tools, in the order that clients see. A tool parses its arguments, calls methods of
//! the server, and answers with a text that says its size.

pub(super) mod context;
mod explain;
pub(super) mod handoff;
mod map;
pub(super) mod read;
mod remember;
mod search;
mod sessions;

use std::pin::Pin;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{JsonObject, ToolAnnotations};
use rmcp::service::RequestContext;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use self::context::GivenAnswers;
use super::answer::Trouble;
use super::link::ServerLink;
use super::project::{AgentProject, AgentProjects};

/// Everything that a call needs besides its arguments.
pub(super) struct ToolCallContext<'a> {
    pub(super) link: &'a ServerLink,
    pub(super) projects: &'a AgentProjects,
    pub(super) given: &'a GivenAnswers,
    pub(super) context: &'a RequestContext<RoleServer>,
}

/// The result of the method `open-layers`.
#[derive(Deserialize)]
struct ToolLayers {
    layers: Vec<ToolLayer>,
}

#[derive(Deserialize)]
struct ToolLayer {
    manager: String,
}

/// A future that returns a tool's answer.
type Answering<'a> = Pin<Box<dyn Future<Output = Result<String, Trouble>> + Send + 'a>>;

/// A tool that models can call.
pub(super) struct McpTool {
    pub(super) name: &'static str,
    description: &'static str,
    schema: fn() -> JsonObject,
    is_read_only: bool,
    pub(super) call: for<'a> fn(&'a ToolCallContext<'a>, JsonObject) -> Answering<'a>,
}

/// Creates the entry of a tool that only reads.
macro_rules! tool {
    ($name:ident, $arguments:ident, $description:expr) => {
        McpTool {
            name: stringify!($name),
            description: $description,
            schema: schema::<$name::$arguments>,
            is_read_only: true,
            call: |asked, given| {
                Box::pin(async move { $name::answer(asked, arguments(given)?).await })
            },
        }
    };
}

impl McpTool {
    /// All tools. Their order must stay the same, since clients cache prompts that list the tools.
    pub(super) const ALL: &[Self] = &[
        tool!(
            context,
            ContextArguments,
            "Returns what the user marked for you in the editor: code, files, notes. Call it at \
             the start of a task. Each answer has a revision; pass it as `since` to get only changes."
        ),
        tool!(
            search,
            SearchArguments,
            "Searches marked items, past sessions and memories of this project. Returns excerpts \
             with ids for `read`."
        ),
        tool!(
            read,
            ReadArguments,
            "Reads an item (ctx-N), a message (ses-N/msg-N), whole or some lines, or a file of the project as the \
             user's editor has it, with its unsaved text."
        ),
        Self {
            is_read_only: false,
            ..tool!(
                remember,
                RememberArguments,
                "Stores a fact for later sessions of this project, such as a decision of the \
                 user. State the fact in one or two sentences that stand alone."
            )
        },
        tool!(
            handoff,
            HandoffArguments,
            "Returns the facts of a session: the user's words, newest first, and the paths and \
             commands of the work, each with its message. Use it to continue after your context \
             was compacted."
        ),
        tool!(
            explain,
            ExplainArguments,
            "Explains what `context` or a session's window left out, and why."
        ),
        tool!(
            map,
            MapArguments,
            "Returns the project's files and definitions that matter for a task, within a budget. \
             Call it before you search through files."
        ),
    ];

    pub(super) fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|tool| tool.name == name)
    }

    /// Describes the tool to clients.
    pub(super) fn offered(&self) -> rmcp::model::Tool {
        let hints = ToolAnnotations::new().read_only(self.is_read_only).open_world(false);
        let hints = if self.is_read_only { hints } else { hints.destructive(false) };
        rmcp::model::Tool::new(self.name, self.description, Arc::new((self.schema)()))
            .with_annotations(hints)
    }
}

/// Returns the schema of a tool's arguments, without members that cost tokens and do not help
/// models.
fn schema<T: JsonSchema>() -> JsonObject {
    let mut whole = schemars::schema_for!(T).to_value();
    let properties = whole["properties"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let plain = properties.into_iter().map(|(name, mut of)| {
        if let Some(members) = of.as_object_mut() {
            members.retain(|member, _| !["format", "minimum", "default"].contains(&&**member));
            if let Some(Json::Array(types)) = members.get("type").cloned() {
                members.insert("type".into(), types.first().cloned().unwrap_or_default());
            }
        }
        (name, of)
    });
    let plain = Json::Object(plain.collect());
    let mut all =
        JsonObject::from_iter([("type".into(), "object".into()), ("properties".into(), plain)]);
    if let Some(required) = whole.get("required") {
        all.insert("required".into(), required.clone());
    }
    all
}

/// Reads the arguments of a call. Models write numbers as strings and the other way round, whole
/// numbers with a fraction of zero, and truth values as strings; these are taken as what the tool's schema asks for.
fn arguments<T: DeserializeOwned + JsonSchema>(mut given: JsonObject) -> Result<T, Trouble> {
    let asked = schema::<T>();
    for (name, value) in &mut given {
        let kind = asked["properties"][name.as_str()]["type"].as_str().unwrap_or_default();
        let mended = match (kind, &*value) {
            ("integer", Json::String(text)) => text.trim().parse().ok().and_then(whole),
            ("integer", Json::Number(number)) if !number.is_i64() && !number.is_u64() => {
                number.as_f64().and_then(whole)
            }
            ("boolean", Json::String(text)) => {
                text.trim().to_ascii_lowercase().parse().ok().map(Json::Bool)
            }
            ("string", Json::Number(number)) => Some(Json::String(number.to_string())),
            _ => None,
        };
        if let Some(mended) = mended {
            *value = mended;
        }
    }
    let wrong = |error| Trouble::Wrong(format!("the arguments are wrong: {error}"));
    serde_json::from_value(Json::Object(given)).map_err(wrong)
}

/// Returns a number as a JSON integer, if it is whole and not negative.
fn whole(number: f64) -> Option<Json> {
    // Larger numbers are not exact.
    let is_whole = number.fract() == 0.0 && (0.0..=9e15).contains(&number);
    is_whole.then(|| Json::from(number as u64))
}

impl ToolCallContext<'_> {
    pub(super) async fn project(&self, asked: Option<&str>) -> Result<AgentProject, Trouble> {
        self.projects.choose(asked, self.context).await
    }

    /// Returns the managers of the project's layers, from the most general to the most specific, once
    /// the editors have sent their unsaved text to the server.
    async fn layers(&self, project: &AgentProject) -> Result<Vec<String>, Trouble> {
        let place = json!({ "directory": project.directory(), "ask_editors": true });
        let ToolLayers { layers } = self.link.call("open_layers", place).await?;
        Ok(layers.into_iter().map(|layer| layer.manager).collect())
    }
}

/// Makes the error for an item that the project does not have.
fn no_item(id: &str) -> Trouble {
    let advice = "`context` lists the marked items";
    Trouble::Wrong(format!("no item {id} is marked in this project; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::{Bpe, Counter};

    #[test]
    fn all_schemas_together_are_small() {
        let offered: Vec<_> = McpTool::ALL.iter().map(McpTool::offered).collect();
        let tokens = Bpe::O200K.count(&serde_json::to_string(&offered).unwrap());
        let count = offered.len();
        assert!(count <= 7, "{count} tools, but at most 7: give one an argument, or let one go");
        assert!(tokens <= 2_500, "{tokens} tokens");
    }

    #[test]
    fn numbers_are_read_in_every_form_that_models_write() {
        for limit in [json!(5), json!("5"), json!(" 5 "), json!(5.0), json!("5.0")] {
            let given = json!({ "query": 42, "limit": limit });
            let Json::Object(given) = given else { panic!() };
            assert!(arguments::<search::SearchArguments>(given).is_ok(), "{limit}");
        }
        for limit in [json!(-1), json!("five"), json!(5.5), json!(true)] {
            let Json::Object(given) = json!({ "query": "a", "limit": limit }) else { panic!() };
            assert!(arguments::<search::SearchArguments>(given).is_err(), "{limit}");
        }
    }

    #[test]
    fn truth_values_are_read_as_strings_too() {
        let read = |value: Json| {
            let Json::Object(given) = json!({ "text": "a", "everywhere": value }) else { panic!() };
            arguments::<remember::RememberArguments>(given).is_ok()
        };
        for value in [json!(true), json!("true"), json!("False"), json!(null)] {
            assert!(read(value.clone()), "{value}");
        }
        for value in [json!("yes"), json!(1), json!("")] {
            assert!(!read(value.clone()), "{value}");
        }
    }

    #[test]
    fn schemas_have_what_models_need() {
        let schema = schema::<search::SearchArguments>();
        assert_eq!(schema["required"], json!(["query"]));
        assert_eq!(schema["properties"]["limit"]["type"], "integer");
        assert!(schema["properties"]["query"]["description"].is_string());
        assert!(schema.get("$schema").is_none());
    }
}
