//! Content as Google's models have it, in which Gemini CLI and Qwen Code record it: a text, a part,
//! or a list of both.

use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::gathered::Gathered;
use super::json::{DEEPEST, arguments, join, too_deep};
use super::report::{REASONING, UNKNOWN};
use crate::session::message::ToolCall;

/// A part of a content. Which members a part has depends on its kind.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ContentPart<'a> {
    text: Option<String>,
    thought: Option<Json>,
    #[serde(borrow)]
    function_call: Option<CallPart<'a>>,
    #[serde(borrow)]
    function_response: Option<ResponsePart<'a>>,
    inline_data: Option<InlineData>,
    file_data: Option<InlineData>,
}

#[derive(Deserialize)]
struct CallPart<'a> {
    id: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ResponsePart<'a> {
    id: Option<String>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InlineData {
    mime_type: Option<String>,
}

/// What a content says.
#[derive(Default)]
pub(super) struct PartsContent {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    /// Ids of calls, each with the text of its result.
    pub(super) results: Vec<(Option<String>, String)>,
}

impl PartsContent {
    /// Reads a content. Counts what is left out of it.
    pub(super) fn of(raw: Option<&RawValue>, into: &mut Gathered) -> serde_json::Result<Self> {
        let mut content = Self::default();
        for part in parts(raw)? {
            content.add(part, into);
        }
        Ok(content)
    }

    fn add(&mut self, part: ContentPart<'_>, into: &mut Gathered) {
        if part.thought.is_some_and(|thought| thought != Json::Bool(false)) {
            into.leave_out("thinking", REASONING);
        } else if let Some(text) = part.text {
            join(&mut self.text, &text);
        } else if let Some(CallPart { id, name, args }) = part.function_call {
            self.calls.push(into.call(&id.unwrap_or_default(), &name, arguments(args)));
        } else if let Some(ResponsePart { id, response }) = part.function_response {
            self.results.push((id, response.map(result_text).unwrap_or_default()));
        } else if let Some(InlineData { mime_type }) = part.inline_data.or(part.file_data) {
            into.leave_out("file", "replaced by a text such as [file: image/png]");
            let kind = mime_type.map_or(String::new(), |kind| format!(": {kind}"));
            join(&mut self.text, &format!("[file{kind}]"));
        } else {
            into.leave_out("part", UNKNOWN);
        }
    }
}

/// Returns the parts of a content: a text, a part, or lists of these.
fn parts(raw: Option<&RawValue>) -> serde_json::Result<Vec<ContentPart<'_>>> {
    let (mut all, mut next) = (Vec::new(), Vec::from_iter(raw.map(|raw| (0, raw))));
    while let Some((depth, raw)) = next.pop() {
        match raw.get().as_bytes().first() {
            Some(b'"') => {
                let text = serde_json::from_str(raw.get())?;
                all.push(ContentPart { text, ..ContentPart::default() });
            }
            Some(b'{') => all.push(serde_json::from_str(raw.get())?),
            Some(b'[') if depth == DEEPEST => return Err(too_deep()),
            Some(b'[') => {
                let inner: Vec<&RawValue> = serde_json::from_str(raw.get())?;
                next.extend(inner.into_iter().rev().map(|raw| (depth + 1, raw)));
            }
            _ => {}
        }
    }
    Ok(all)
}

/// Returns the text of a result: the one text in it that is meant for the model, or else its JSON.
pub(super) fn result_text(raw: &RawValue) -> String {
    match serde_json::from_str(raw.get()) {
        Ok(Json::String(text)) => text,
        Ok(Json::Object(members)) => {
            let mut texts =
                ["output", "error", "result", "content"].iter().filter_map(|key| members.get(*key));
            match texts.find_map(Json::as_str) {
                Some(text) => text.to_owned(),
                None => raw.get().to_owned(),
            }
        }
        _ => raw.get().to_owned(),
    }
}
