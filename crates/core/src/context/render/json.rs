//! JSON: one object, for programs. Contents are verbatim. Hidden characters in names are written as
//! JSON escapes, so parsing restores the names. The object has only the metadata that the other
//! formats show; `list-items` returns all metadata.

use serde::Serialize;

use super::{RenderPart, date_of};
use crate::visible::visible_json;

pub(super) const FRAME: [&str; 3] = ["{\"items\":[", ",", "]}"];

pub(super) fn section(part: &RenderPart<'_>, out: &mut String) {
    let id = part.item.id.to_string();
    let what = JsonSubject { id, kind: part.item.kind.name(), content: part.body };
    let about = JsonAbout {
        file: part.item.metadata.filename().and_then(|_| part.item.metadata.display_name()),
        buffer: part.item.metadata.copied_buffer(),
        lines: part.item.metadata.lines(),
        language: &part.language,
        as_of: date_of(part.item),
        stale: part.item.stale(),
    };
    let what = json(&what);
    out.push_str(&what[..what.len() - "}".len()]);
    out.push(',');
    out.push_str(&visible_json(&json(&about)[1..]));
}

fn json(part: &impl Serialize) -> String {
    serde_json::to_string(part).expect("strings and integers have a JSON form")
}

#[derive(Serialize)]
struct JsonSubject<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct JsonAbout<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<(u64, u64)>,
    language: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<&'a str>,
}
