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
    /// Name for the model: letters, digits, `_` and `-`.
    const NAME: &'static str;

    /// Arguments of a call.
    type Args: DeserializeOwned + Send;

    /// Reason why a call failed. The model reads it, and can try again.
    type Error: Display;

    /// Describes the tool to the model.
    fn description(&self) -> String;

    /// Returns the JSON schema of [`Args`](Self::Args).
    fn parameters(&self) -> serde_json::Value;

    /// Returns whether a person must allow each call. The turn then waits for
    /// [`Conversation::approve`](super::Conversation::approve).
    fn needs_approval(&self) -> bool {
        false
    }

    /// Carries out a call. Returns the text for the model. The future is dropped when the turn is
    /// cancelled.
    fn call(&self, args: Self::Args) -> impl Future<Output = Result<String, Self::Error>> + Send;
}

/// Converts a tool to the form that turns use.
///
/// # Errors
/// [`Error::Tool`] for a name that providers refuse.
pub(super) fn offered<T: Tool>(tool: T) -> Result<Arc<dyn OfferedTool>, Error> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if T::NAME.is_empty() || T::NAME.len() > MAX_NAME_BYTES || !T::NAME.chars().all(is_allowed) {
        let what = format!(
            "must have a name of 1 to {MAX_NAME_BYTES} ASCII letters, digits, underscores and hyphens"
        );
        return Err(Error::Tool { name: T::NAME.to_owned(), what });
    }
    Ok(Arc::new(Offered(Arc::new(tool))))
}

/// A tool that is offered to models.
struct Offered<T>(Arc<T>);

/// A call with valid arguments.
struct Call<T> {
    tool: Arc<T>,
    arguments: String,
}

/// Reads the arguments of a call. The error is a phrase for the model.
fn read<A: DeserializeOwned>(arguments: &str) -> Result<A, String> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(text).map_err(|error| format!("the arguments do not fit: {error}"))
}

impl<T: Tool> OfferedTool for Offered<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn offered(&self) -> chat::Tool {
        chat::Tool {
            name: T::NAME.to_owned(),
            description: self.0.description(),
            schema: self.0.parameters(),
        }
    }

    fn needs_approval(&self) -> bool {
        self.0.needs_approval()
    }

    fn understand<'a>(
        &'a self,
        arguments: &'a str,
        _: &'a SessionRow,
    ) -> Later<'a, Result<Box<dyn ToolRequest>, String>> {
        Box::pin(async move {
            read::<T::Args>(arguments)?;
            let call = Call { tool: Arc::clone(&self.0), arguments: arguments.to_owned() };
            Ok(Box::new(call) as Box<dyn ToolRequest>)
        })
    }
}

impl<T: Tool> ToolRequest for Call<T> {
    fn phrase(&self) -> String {
        format!("call {} {}", T::NAME, visible(&one_line(&self.arguments))).trim_end().to_owned()
    }

    fn carry_out<'a>(
        &'a self,
        job: &'a Job,
        _: &'a SessionRow,
    ) -> Later<'a, Result<String, String>> {
        Box::pin(async move {
            let args = read(&self.arguments)?;
            let tool = Arc::clone(&self.tool);
            // Runs in a task of its own, so that a panic only fails the call. The task ends with
            // the turn.
            let mut calls = JoinSet::new();
            calls.spawn(async move { tool.call(args).await.map_err(|error| error.to_string()) });
            match job.cancelled.run_until_cancelled(calls.join_next()).await {
                Some(Some(Ok(result))) => result,
                Some(_) => Err(format!("the tool {} failed with a panic", T::NAME)),
                None => Err("the turn was cancelled".to_owned()),
            }
        })
    }
}
