//! Resources, each with an address: the marked items of a project, a single item, and the facts of
//! a session.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{
    ErrorCode, ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};

use super::answer::{Trouble, refused};
use super::tools::{ToolCallContext, context, handoff, read as item};

const SCHEME: &str = "contexture://";

/// Lists the context of the project as the only resource. Items and facts have addresses that
/// follow [`templates`].
pub(super) async fn list(asked: &ToolCallContext<'_>) -> Result<ListResourcesResult, ErrorData> {
    let project = asked.projects.choose(None, asked.context).await.map_err(not_found)?;
    let name = utf8_percent_encode(&project.label(), NON_ALPHANUMERIC).to_string();
    let context = Resource::new(format!("{SCHEME}{name}/context"), "context")
        .with_description("What the user marked in the editor")
        .with_mime_type("text/markdown");
    Ok(ListResourcesResult::with_all_items(vec![context]))
}

/// Lists the templates of the addresses of items and facts.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let one = |form: &str, name, description| {
        ResourceTemplate::new(format!("{SCHEME}{form}"), name)
            .with_description(description)
            .with_mime_type("text/markdown")
    };
    ListResourceTemplatesResult::with_all_items(vec![
        one("{project}/item/{id}", "item", "A marked item"),
        one("{project}/session/{id}/facts", "facts", "The facts of a session"),
    ])
}

/// Reads the resource at an address.
pub(super) async fn read(
    asked: &ToolCallContext<'_>,
    uri: String,
) -> Result<ReadResourceResult, ErrorData> {
    let text = text_of(asked, &uri).await.map_err(not_found)?;
    let contents = ResourceContents::text(text, uri).with_mime_type("text/markdown");
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn text_of(asked: &ToolCallContext<'_>, uri: &str) -> Result<String, Trouble> {
    let unknown = || {
        let message = format!("no resource {uri:?}; ask for the list of resources and templates");
        Trouble::Wrong(message)
    };
    let parts = uri.strip_prefix(SCHEME).ok_or_else(unknown)?;
    let parts: Vec<&str> = parts.split('/').collect();
    let (name, rest) = parts.split_first().ok_or_else(unknown)?;
    let name = percent_decode_str(name).decode_utf8().map_err(|_| unknown())?;
    let project = asked.projects.choose(Some(&name), asked.context).await?;
    match rest {
        ["context"] => context::answer(asked, context::ContextArguments::of(&name)).await,
        ["item", id] => Ok(item::item(asked, &project, id).await?.cut()),
        ["session", id, "facts"] => handoff::of(asked, &project, Some(id)).await,
        _ => Err(unknown()),
    }
}

fn not_found(trouble: Trouble) -> ErrorData {
    refused(ErrorCode::RESOURCE_NOT_FOUND, &trouble)
}
