//! Tools that your program offers to models.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::panic::catch_unwind;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::{Conversation, Error};
use crate::agent::tools::{OfferedTool, ToolRequest, ToolTurn, one_line};
use crate::agent::{Job, Later};
use crate::provider::chat::ToolDefinition;
use crate::session::message::ToolCall;
use crate::store::session::SessionRow;
use crate::visible::visible;

/// Maximum length of a tool's name, in bytes; some providers refuse longer ones.
const MAX_NAME_BYTES: usize = 64;

/// A tool that a model can call.
///
/// ```
/// use std::borrow::Cow;
///
/// use contexture::{Tool, ToolContext};
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
///     type Args = Numbers;
///     type Error = &'static str;
///
///     fn name(&self) -> Cow<'_, str> {
///         "add".into()
///     }
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
///     async fn call(&self, numbers: Numbers, _: ToolContext) -> Result<String, &'static str> {
///         let Numbers { a, b } = numbers;
///         a.checked_add(b).map(|sum| sum.to_string()).ok_or("the sum is too large")
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Arguments of a call.
    type Args: DeserializeOwned + Send + 'static;

    /// Reason why a call failed. The model reads the reason, and can try again.
    type Error: Display;

    /// Returns the name for the model: 1 to 64 ASCII letters, digits, `_` and `-`. The name is read
    /// once, when the tool is added.
    fn name(&self) -> Cow<'_, str>;

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
    fn call(
        &self,
        args: Self::Args,
        context: ToolContext,
    ) -> impl Future<Output = Result<String, Self::Error>> + Send;
}

/// Where a tool is called.
#[derive(Clone)]
pub struct ToolContext {
    conversation: Conversation,
    call: String,
}

impl ToolContext {
    /// Returns the conversation whose model calls the tool. The tool can add items to it, and read
    /// its messages. Turns of it are refused with [`Error::Busy`] until the call ends.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the id of the call, which the [events](crate::TurnEvent) of the turn have, too.
    pub fn call_id(&self) -> &str {
        &self.call
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ToolContext").field("call", &self.call).finish_non_exhaustive()
    }
}

tokio::task_local! {
    /// The conversations whose turns wait for this task.
    static WAITING: WaitingTurns;
}

/// Conversations whose turns wait for a tool, by the addresses of what their handles share.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingTurns(Vec<usize>);

impl WaitingTurns {
    /// Returns the conversations whose turns wait for the current task.
    pub(super) fn here() -> Self {
        WAITING.try_with(Self::clone).unwrap_or_default()
    }

    /// Returns whether a turn of the conversation is among them.
    pub(super) fn has(&self, conversation: &Conversation) -> bool {
        self.0.contains(&place(conversation))
    }

    fn and(mut self, conversation: &Conversation) -> Self {
        self.0.push(place(conversation));
        self
    }
}

fn place(conversation: &Conversation) -> usize {
    Arc::as_ptr(&conversation.inner.shared).addr()
}

/// Checks the arguments of a call. The error is a text for the model.
type Check = dyn Fn(&str) -> Result<(), String> + Send + Sync;
/// Begins a call. The error is a text for the model.
type Begin = dyn Fn(&str, ToolContext) -> Result<Later<'static, Result<String, String>>, String>
    + Send
    + Sync;

/// Refuses two tools with the same name.
pub(super) fn check_names(tools: &[Offering]) -> Result<(), Error> {
    for (at, tool) in tools.iter().enumerate() {
        if tools[..at].iter().any(|other| other.name() == tool.name()) {
            let what = "is defined twice; give each tool its own name".to_owned();
            return Err(Error::Tool { name: tool.name().to_owned(), what });
        }
    }
    Ok(())
}

/// Refuses a name that none of the tools has.
pub(super) fn check_exist(names: &[String], tools: &[Offering]) -> Result<(), Error> {
    let known: Vec<&str> = tools.iter().map(Offering::name).collect();
    let unknown = names.iter().find(|name| !known.contains(&name.as_str()));
    let Some(name) = unknown.cloned() else { return Ok(()) };
    let what = match &known[..] {
        [] => "does not exist; there are no tools".to_owned(),
        [only] => format!("does not exist; the only tool is {only}"),
        known => format!("does not exist; the tools are {}", known.join(", ")),
    };
    Err(Error::Tool { name, what })
}

/// A tool that a conversation offers.
#[derive(Clone)]
pub(super) enum Offering {
    /// A tool of the program.
    Own(Arc<ProgramTool>),
    /// A tool of the library.
    Context(Arc<dyn OfferedTool>),
}

impl Offering {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Own(tool) => &tool.definition.name,
            Self::Context(tool) => tool.name(),
        }
    }

    /// Returns the tool for a turn of a conversation. `waiting` are the conversations whose turns
    /// wait for this one.
    pub(super) fn for_turn(
        &self,
        conversation: &Conversation,
        waiting: &WaitingTurns,
    ) -> Arc<dyn OfferedTool> {
        match self {
            Self::Own(tool) => Arc::new(Bound {
                tool: Arc::clone(tool),
                conversation: conversation.clone(),
                waiting: waiting.clone().and(conversation),
            }),
            Self::Context(tool) => Arc::clone(tool),
        }
    }
}

/// A tool of the program in the form in which it is offered to models.
pub(super) struct ProgramTool {
    definition: ToolDefinition,
    needs_approval: bool,
    check: Arc<Check>,
    begin: Arc<Begin>,
}

/// A tool of the program in a turn.
struct Bound {
    tool: Arc<ProgramTool>,
    conversation: Conversation,
    waiting: WaitingTurns,
}

/// A call with valid arguments.
struct ProgramCall {
    name: String,
    arguments: String,
    begin: Arc<Begin>,
    context: ToolContext,
    waiting: WaitingTurns,
}

/// Reads the arguments of a call. The error is a text for the model. A panic of the program's own
/// reading only fails the call.
fn read<A: DeserializeOwned>(arguments: &str) -> Result<A, String> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    match catch_unwind(|| serde_json::from_str(text)) {
        Ok(Ok(args)) => Ok(args),
        Ok(Err(error)) => Err(format!("the arguments do not match the tool's parameters: {error}")),
        Err(_) => Err("reading the arguments failed with a panic".to_owned()),
    }
}

impl ProgramTool {
    /// Creates the offered form of a tool.
    pub(super) fn tool<T: Tool>(tool: T) -> Self {
        let (description, schema) = (tool.description(), tool.parameters());
        let definition = ToolDefinition { name: tool.name().into_owned(), description, schema };
        let (needs_approval, tool) = (tool.needs_approval(), Arc::new(tool));
        let call = move |args, context| {
            let tool = Arc::clone(&tool);
            async move { tool.call(args, context).await }
        };
        Self { needs_approval, ..Self::function(definition, call) }
    }

    /// Creates the offered form of a function.
    pub(super) fn function<A, E, F>(
        definition: ToolDefinition,
        call: impl Fn(A, ToolContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        E: Display,
        F: Future<Output = Result<String, E>> + Send + 'static,
    {
        let call = Arc::new(call);
        let begin = move |arguments: &str, context: ToolContext| {
            let (args, call) = (read(arguments)?, Arc::clone(&call));
            let result =
                async move { call(args, context).await.map_err(|error| error.to_string()) };
            Ok(Box::pin(result) as Later<'static, _>)
        };
        let check = |arguments: &str| read::<A>(arguments).map(drop);
        Self { definition, needs_approval: false, check: Arc::new(check), begin: Arc::new(begin) }
    }

    /// Converts the tool to the form that conversations keep.
    ///
    /// # Errors
    /// [`Error::Tool`] for a name that providers refuse.
    pub(super) fn checked(self) -> Result<Offering, Error> {
        let name = &self.definition.name;
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_allowed) {
            let what = format!(
                "must have a name of 1 to {MAX_NAME_BYTES} ASCII letters, digits, underscores and \
                 hyphens"
            );
            return Err(Error::Tool { name: name.clone(), what });
        }
        Ok(Offering::Own(Arc::new(self)))
    }
}

impl OfferedTool for Bound {
    fn name(&self) -> &str {
        &self.tool.definition.name
    }

    fn offered(&self) -> ToolDefinition {
        self.tool.definition.clone()
    }

    fn needs_approval(&self) -> bool {
        let asked = &self.conversation.inner.asked;
        self.tool.needs_approval || asked.iter().any(|name| name == self.name())
    }

    fn understand<'a>(
        &'a self,
        called: &'a ToolCall,
        _: &'a SessionRow,
    ) -> Later<'a, Result<Box<dyn ToolRequest>, String>> {
        Box::pin(async move {
            // The call itself begins once it is allowed.
            (self.tool.check)(&called.arguments)?;
            let (conversation, call) = (self.conversation.clone(), called.id.clone());
            let call = ProgramCall {
                name: called.name.clone(),
                arguments: called.arguments.clone(),
                begin: Arc::clone(&self.tool.begin),
                context: ToolContext { conversation, call },
                waiting: self.waiting.clone(),
            };
            Ok(Box::new(call) as Box<dyn ToolRequest>)
        })
    }
}

impl ToolRequest for ProgramCall {
    fn phrase(&self) -> String {
        format!("call {} {}", self.name, visible(&one_line(&self.arguments))).trim_end().to_owned()
    }

    fn carry_out<'a>(&'a self, job: &'a Job, _: ToolTurn<'a>) -> Later<'a, Result<String, String>> {
        Box::pin(async move {
            // The call has its own task, which ends with the turn. A panic only fails the call.
            let call = (self.begin)(&self.arguments, self.context.clone())?;
            let mut calls = JoinSet::new();
            calls.spawn(WAITING.scope(self.waiting.clone(), call));
            match job.cancelled.run_until_cancelled(calls.join_next()).await {
                Some(Some(Ok(result))) => result,
                Some(_) => Err(format!("the tool {} failed with a panic", self.name)),
                None => Err("the turn was cancelled".to_owned()),
            }
        })
    }
}
