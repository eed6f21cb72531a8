//! Prompts: the marked items and the facts of a session, as messages that the user can insert.

use rmcp::model::{
    ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt,
    PromptArgument, PromptMessage, Role,
};

use super::answer::{Trouble, refused};
use super::tools::{ToolCallContext, context, handoff};

pub(super) fn list() -> ListPromptsResult {
    let session = PromptArgument::new("session")
        .with_description("Name or id of the session; the latest by default")
        .with_required(false);
    ListPromptsResult::with_all_items(vec![
        Prompt::new("context", Some("Inserts what you marked in the editor"), None),
        Prompt::new("handoff", Some("Inserts the facts of a session"), Some(vec![session])),
    ])
}

/// Returns the messages of a prompt.
pub(super) async fn get(
    asked: &ToolCallContext<'_>,
    request: GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let text = match &*request.name {
        "context" => context::answer(asked, context::ContextArguments::default()).await,
        "handoff" => {
            let arguments = request.arguments.unwrap_or_default();
            let session = arguments.get("session").and_then(|name| name.as_str());
            let session = session.filter(|name| !name.is_empty()).map(str::to_owned);
            handoff::answer(asked, handoff::HandoffArguments { session }).await
        }
        other => {
            Err(Trouble::Wrong(format!("no prompt {other:?}; the prompts are context and handoff")))
        }
    };
    let text = text.map_err(|trouble| refused(ErrorCode::INVALID_PARAMS, &trouble))?;
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}
