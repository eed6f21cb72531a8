//! The changes of requests that servers teach.

use serde_json::{Value, json};

use crate::provider::chat::ChatMessage;
use crate::provider::family::fill_in_reasoning;

/// The text that Gemini accepts in place of the signature of a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// A change of requests that a model's server needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequestChange {
    WithoutTools,
    CallsAsText,
    WithoutToolChoice,
    WithoutStream,
    WithoutStreamOptions,
    OtherLimit,
    WithoutLimit,
    WithoutTemperature,
    WithoutTopP,
    OtherEffort,
    WithoutSummary,
    WithoutEffort,
    WithoutSystem,
    PlainSchemas,
    TextForNull,
    WithoutReasoning,
    WithReasoning,
    WithoutInclude,
    WithSignatures,
    WithoutMarks,
    PdfAsText,
}

impl RequestChange {
    /// Returns what changes, as a phrase for the user.
    pub(super) fn phrase(self) -> &'static str {
        match self {
            Self::WithoutTools => "the model takes no tools; asking again without them",
            Self::CallsAsText => {
                "it takes no earlier calls where no tool is offered; asking again with texts for them"
            }
            Self::WithoutToolChoice => "it takes no choice of tools; asking again without it",
            Self::WithoutStream => "it sends no streams; asking for the answer as a whole",
            Self::WithoutStreamOptions => {
                "it does not report usage in streams; asking again without it"
            }
            Self::OtherLimit => {
                "it wants the other name for the length of answers; asking again with that"
            }
            Self::WithoutLimit => {
                "it takes no limit for the length of answers; asking again without one"
            }
            Self::WithoutTemperature => "it takes no temperature; asking again without one",
            Self::WithoutTopP => "it takes no top-p; asking again without it",
            Self::OtherEffort => "the model takes the effort in another form; asking again in that",
            Self::WithoutEffort => "the model has no effort to set; asking again without one",
            Self::WithoutSummary => {
                "it gives no summary of its reasoning; asking again without one"
            }
            Self::WithoutSystem => {
                "the model takes no system message; asking again with it in the user's"
            }
            Self::PlainSchemas => {
                "it refuses the schemas of the tools; asking again with simpler ones"
            }
            Self::TextForNull => "it wants a text in each message; asking again with one",
            Self::WithoutReasoning => "it does not take reasoning back; asking again without it",
            Self::WithoutInclude => "it gives no reasoning to send back; asking again without it",
            Self::WithReasoning | Self::WithSignatures => {
                "it wants reasoning back for each answer; asking again with it"
            }
            Self::WithoutMarks => "it takes no marks for its cache; asking again without them",
            Self::PdfAsText => "it takes no such PDF; asking again with the text of the PDF",
        }
    }

    /// Changes a message of a body.
    pub(super) fn change_message(self, said: &mut Value) {
        let is_answer = said["role"] == "assistant" || said["role"] == "model";
        match self {
            Self::TextForNull if said["content"].is_null() => said["content"] = "".into(),
            Self::WithReasoning => fill_in_reasoning(said),
            // Of calls that were made together, only the first has a signature.
            Self::WithSignatures if is_answer => {
                let parts = said["parts"].as_array_mut().into_iter().flatten();
                if let Some(part) = parts.into_iter().find(|part| !part["functionCall"].is_null())
                    && !part["thoughtSignature"].is_string()
                {
                    part["thoughtSignature"] = NO_SIGNATURE.into();
                }
                if let Some(call) = said["tool_calls"].get_mut(0)
                    && !call["extra_content"]["google"]["thought_signature"].is_string()
                {
                    call["extra_content"] = json!({"google": {"thought_signature": NO_SIGNATURE}});
                }
            }
            _ => {}
        }
    }
}

/// Puts the text of a message's PDFs in their place.
pub(super) fn as_text(said: &mut ChatMessage) {
    said.pictures.retain(|shown| match &shown.text {
        Some(text) if shown.is_pdf() => {
            said.content = format!("{}\n\n{}:\n{text}", said.content, shown.name).into();
            false
        }
        _ => true,
    });
}
