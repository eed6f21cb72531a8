//! Tools that your program offers to models.

use std::fmt::Display;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::Error;
use crate::agent::tools::{OfferedTool, ToolRequest, one_line};
use crate::agent::{Job, Later};
use crate::provider::chat;
use crate::store::session::SessionRow;
use crate::visible::visible;

/// Maximum length of a tool's name, in bytes; some providers refuse longer ones.
const MAX_NAME_BYTES: usize = 64;

/// A tool that a model can call.
///
/// ```
/// use contexture::Tool;
/// use serde::Deserialize;
/// use serde_json::{Value, json};
///
/// struct Add;
///
/// #[derive(Deserialize)]
/// struct Numbers {
///     a: i64,
///     b: i64,
/// }
///
/// impl Tool for Add {
///     const NAME: &'static str = "add";
///     type Args = Numbers;
///     type Error = &'static str;
///
///     fn description(&self) -> String {
///         "Adds two numbers.".into()
///     }
///
///     fn parameters(&self) -> Value {
///         json!({
///             "type": "object",
///             "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
///             "required": ["a", "b"],
///         })
///     }
///
///     async fn call(&self, Numbers { a, b }: Numbers) -> Result<String, &'static str> {
///         a.checked_add(b).map(|sum| sum.to_string()).ok_or("the sum is too large")
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Name for the model: 1 to 64 ASCII letters, digits, `_` and `-`.
    const NAME: &'static str;

    /// Arguments of a call.
    type Args: DeserializeOwned + Send + 'static;

    /// Reason why a call failed. The model reads the reason, and can try again.
    type Error: Display;

    /// Describes the tool to the model.
    fn description(&self) -> String;

    /// Returns the JSON schema of [`Args`](Self::Args).
    fn parameters(&self) -> serde_json::Value;

    /// Returns whether the user must allow each call; false by default. Before such a call, the
    /// turn waits for [`Conversation::approve`](super::Conversation::approve), unless
    /// [`Builder::allow`](super::Builder::allow) or an earlier decision allows the tool.
    fn needs_approval(&self) -> bool {
        false
    }

    /// Carries out a call. Returns the text for the model. The future is dropped when the turn is
    /// cancelled.
    fn call(&self, args: Self::Args) -> impl Future<Output = Result<String, Self::Error>> + Send;
}

/// A function that begins a call if the arguments are valid. The error is a text for the model.
type Begin = dyn Fn(&str) -> Result<Later<'static, Result<String, String>>, String> + Send + Sync;

/// Refuses a name that none of the tools has.
pub(super) fn check_exist(names: &[String], tools: &[Arc<dyn OfferedTool>]) -> Result<(), Error> {
    let known: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
    let Some(name) = unknown.cloned() else { return Ok(()) };
    let what = match &known[..] {
        [] => "does not exist; there are no tools".to_owned(),
        [only] => format!("does not exist; the only tool is {only}"),
        known => format!("does not exist; the tools are {}", known.join(", ")),
    };
    Err(Error::Tool { name, what })
}

/// A tool in the form in which it is offered to models.
pub(super) struct Offered {
    definition: chat::Tool,
    needs_approval: bool,
    begin: Arc<Begin>,
}

/// A call with valid arguments.
struct Call {
    name: String,
    arguments: String,
    begin: Arc<Begin>,
}

/// Reads the arguments of a call. The error is a text for the model.
fn read<A: DeserializeOwned>(arguments: &str) -> Result<A, String> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(text)
        .map_err(|error| format!("the arguments do not match the tool's parameters: {error}"))
}

impl Offered {
    /// Creates the offered form of a tool.
    pub(super) fn tool<T: Tool>(tool: T) -> Self {
        let (description, schema) = (tool.description(), tool.parameters());
        let definition = chat::Tool { name: T::NAME.to_owned(), description, schema };
        let (needs_approval, tool) = (tool.needs_approval(), Arc::new(tool));
        let call = move |args| {
            let tool = Arc::clone(&tool);
            async move { tool.call(args).await }
        };
        Self { needs_approval, ..Self::function(definition, call) }
    }

    /// Creates the offered form of a function.
    pub(super) fn function<A, E, F>(
        definition: chat::Tool,
        call: impl Fn(A) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        E: Display,
        F: Future<Output = Result<String, E>> + Send + 'static,
    {
        let call = Arc::new(call);
        let begin = move |arguments: &str| {
            let (args, call) = (read(arguments)?, Arc::clone(&call));
            let result = async move { call(args).await.map_err(|error| error.to_string()) };
            Ok(Box::pin(result) as Later<'static, _>)
        };
        Self { definition, needs_approval: false, begin: Arc::new(begin) }
    }

    /// Converts the tool to the form that turns use.
    ///
    /// # Errors
    /// [`Error::Tool`] for a name that providers refuse.
    pub(super) fn checked(self) -> Result<Arc<dyn OfferedTool>, Error> {
        let name = &self.definition.name;
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_allowed) {
            let what = format!(
                "must have a name of 1 to {MAX_NAME_BYTES} ASCII letters, digits, underscores and \
                 hyphens"
            );
            return Err(Error::Tool { name: name.clone(), what });
        }
        Ok(Arc::new(self))
    }
}

impl OfferedTool for Offered {
    fn name(&self) -> &str {
        &self.definition.name
    }

    fn offered(&self) -> chat::Tool {
        self.definition.clone()
    }

    fn needs_approval(&self) -> bool {
        self.needs_approval
    }

    fn understand<'a>(
        &'a self,
        arguments: &'a str,
        _: &'a SessionRow,
    ) -> Later<'a, Result<Box<dyn ToolRequest>, String>> {
        Box::pin(async move {
            // The call itself begins once it is allowed: only its arguments are checked here.
            drop((self.begin)(arguments)?);
            let (name, arguments) = (self.definition.name.clone(), arguments.to_owned());
            let call = Call { name, arguments, begin: Arc::clone(&self.begin) };
            Ok(Box::new(call) as Box<dyn ToolRequest>)
        })
    }
}

impl ToolRequest for Call {
    fn phrase(&self) -> String {
        format!("call {} {}", self.name, visible(&one_line(&self.arguments))).trim_end().to_owned()
    }

    fn carry_out<'a>(
        &'a self,
        job: &'a Job,
        _: &'a SessionRow,
    ) -> Later<'a, Result<String, String>> {
        Box::pin(async move {
            // The call has its own task, which ends with the turn. A panic only fails the call.
            let mut calls = JoinSet::new();
            calls.spawn((self.begin)(&self.arguments)?);
            match job.cancelled.run_until_cancelled(calls.join_next()).await {
                Some(Some(Ok(result))) => result,
                Some(_) => Err(format!("the tool {} failed with a panic", self.name)),
                None => Err("the turn was cancelled".to_owned()),
            }
        })
    }
}
