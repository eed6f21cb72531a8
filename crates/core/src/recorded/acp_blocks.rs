//! Content of the Agent Client Protocol as text: blocks of prompts and answers, results of tools.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value as Json;

use super::json::join;

/// A block. Which members a block has depends on its kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcpBlock {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    uri: Option<String>,
    mime_type: Option<String>,
    resource: Option<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    uri: String,
    text: Option<String>,
}

/// A part of a tool's result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcpToolContent {
    #[serde(rename = "type", default)]
    kind: String,
    content: Option<AcpBlock>,
    path: Option<String>,
    old_text: Option<String>,
    new_text: Option<String>,
}

impl AcpBlock {
    /// Returns the text of the block, or a placeholder for a block without text.
    pub(super) fn shown(&self) -> Cow<'_, str> {
        match (&self.text, &self.resource) {
            (Some(text), _) => Cow::Borrowed(text),
            (None, Some(Resource { uri, text: Some(text) })) => format!("[{uri}]\n{text}").into(),
            (None, Some(Resource { uri, text: None })) => format!("[{uri}]").into(),
            (None, None) => {
                let named = self.uri.as_ref().or(self.mime_type.as_ref());
                let named = named.map_or(String::new(), |named| format!(": {named}"));
                format!("[{}{named}]", self.kind).into()
            }
        }
    }
}

/// Returns the blocks of a prompt as one text.
pub(super) fn prompt_text(blocks: &[AcpBlock]) -> String {
    let mut text = String::new();
    blocks.iter().for_each(|block| join(&mut text, &block.shown()));
    text
}

/// Returns the result of a tool as a text: that of `items`, or else of `raw`. Returns `None` if the
/// update has neither.
pub(super) fn result_text(items: Option<&[AcpToolContent]>, raw: Option<&Json>) -> Option<String> {
    let mut text = String::new();
    for item in items.unwrap_or_default() {
        join(&mut text, &item.shown());
    }
    match raw {
        Some(raw) if text.is_empty() => Some(match (raw, &raw["output"]) {
            (Json::String(text), _) | (_, Json::String(text)) => text.clone(),
            _ => raw.to_string(),
        }),
        _ => items.map(|_| text),
    }
}

impl AcpToolContent {
    fn shown(&self) -> Cow<'_, str> {
        match (&self.content, &self.path) {
            (Some(block), _) => block.shown(),
            (None, Some(path)) => {
                let old = self.old_text.as_deref().unwrap_or_default();
                difference(path, old, self.new_text.as_deref().unwrap_or_default()).into()
            }
            (None, None) => format!("[{}]", self.kind).into(),
        }
    }
}

/// Returns a line that names the file, and then the lines in which the two texts differ, from the
/// first to the last difference.
fn difference(path: &str, old: &str, new: &str) -> String {
    let (mut old, mut new) = (Vec::from_iter(old.lines()), Vec::from_iter(new.lines()));
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    old.drain(..same);
    new.drain(..same);
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    old.truncate(old.len() - same);
    new.truncate(new.len() - same);
    let removed = old.iter().map(|line| format!("\n-{line}"));
    let added = new.iter().map(|line| format!("\n+{line}"));
    std::iter::once(format!("[changed {path}]")).chain(removed).chain(added).collect()
}
