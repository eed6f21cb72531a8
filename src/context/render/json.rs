//! JSON: one object, for programs. Names and contents are verbatim; of the metadata only what the
//! other formats show is there, since `get-context` gives it whole.

use serde::Serialize;

use super::Part;

pub(super) const HEADER: &str = "{\"items\":[";
pub(super) const SEPARATOR: &str = ",";
pub(super) const FOOTER: &str = "]}";

pub(super) fn section(part: &Part<'_>, out: &mut String) {
    let shown = Shown {
        id: part.item.id.to_string(),
        kind: part.item.kind.name(),
        content: part.body,
        file: part.item.metadata.display_name(),
        lines: part.item.metadata.lines(),
        language: &part.language,
    };
    out.push_str(&serde_json::to_string(&shown).expect("strings and integers have a JSON form"));
}

#[derive(Serialize)]
struct Shown<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<(u64, u64)>,
    language: &'a str,
}
