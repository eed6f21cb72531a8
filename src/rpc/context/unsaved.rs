//! Methods through which clients get the unsaved text of editors.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::editors::Heard;
use crate::rpc::params::Nothing;
use crate::wire::message::WireError;

/// The editors that were asked.
#[derive(Serialize, JsonSchema)]
pub(super) struct EditorsAsked {
    /// Number of editors that were asked.
    asked: usize,
    /// Number of the asked editors that did not answer in time; their unsaved text may be missing.
    late: usize,
}

pub(super) fn ask_editors(call: Call, _: Nothing) -> Result<Step, WireError> {
    Ok(Step::Await(Box::pin(async move {
        let heard = ask(&call, None).await?;
        Step::done(&EditorsAsked { asked: heard.asked, late: heard.late })
    })))
}

/// Asks all editors but the caller for their changes and, if `path` is given, for the unsaved text
/// of that file.
pub(in crate::rpc) async fn ask(call: &Call, path: Option<&Path>) -> Result<Heard, WireError> {
    Ok(call.tools.editors.ask(&call.tools.engine, &call.client, path).await?)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct GiveText {
    /// Number of the question.
    question: u64,
    /// Text of the file that the question names, if the file is in a buffer with unsaved changes.
    content: Option<String>,
}

/// The outcome of answering a question.
#[derive(Serialize, JsonSchema)]
pub(super) struct TextGiven {
    /// True if the question was still waiting for this editor.
    taken: bool,
}

pub(super) fn give_text(call: Call, given: GiveText) -> Result<Step, WireError> {
    let (tools, client) = (Arc::clone(&call.tools), Arc::clone(&call.client));
    // This runs in the engine, so that it comes after the editor's earlier `update-items`.
    Step::state(move |_| {
        let taken = tools.editors.answer(&client, given.question, given.content);
        Ok(TextGiven { taken })
    })
}
