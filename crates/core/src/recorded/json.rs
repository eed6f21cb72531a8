//! JSON in recordings. Mends escapes of lone surrogates (halves of characters), which JavaScript
//! writes and a strict parser refuses.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum depth of contents in contents that are read one in the other.
pub(super) const DEEPEST: usize = 8;

/// Returns the error of a content that is nested too deeply.
pub(super) fn too_deep() -> serde_json::Error {
    serde::de::Error::custom("nested too deeply")
}

/// A block of content. Which members a block has depends on its kind.
#[derive(Deserialize)]
pub(super) struct ContentBlock<'a> {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) tool_use_id: Option<String>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) source: Option<MediaSource>,
}

/// The source of an image or document.
#[derive(Deserialize)]
pub(super) struct MediaSource {
    pub(super) media_type: Option<String>,
}

/// Returns the content of a message or result, which is a text or a list of blocks; the other of
/// the two is empty.
pub(super) fn content(
    raw: Option<&RawValue>,
) -> serde_json::Result<(String, Vec<ContentBlock<'_>>)> {
    let raw = raw.map_or("null", RawValue::get);
    Ok(match raw.as_bytes().first() {
        Some(b'"') => (serde_json::from_str(raw)?, Vec::new()),
        Some(b'n') => (String::new(), Vec::new()),
        Some(b'{') => (String::new(), vec![serde_json::from_str(raw)?]),
        _ => (String::new(), serde_json::from_str(raw)?),
    })
}

impl ContentBlock<'_> {
    /// Returns the text of the block, or a text such as `[image: image/png]` in place of an image
    /// or document. Returns `None` for other kinds of blocks.
    pub(super) fn as_text(&self) -> Option<Cow<'_, str>> {
        let kind = self.kind.trim_start_matches("input_");
        match (&self.text, kind) {
            (Some(text), "text" | "output_text") => Some(Cow::Borrowed(text)),
            (_, "image" | "document") => {
                let media = self.source.as_ref().and_then(|source| source.media_type.as_deref());
                Some(Cow::Owned(match media {
                    Some(media) => format!("[{kind}: {media}]"),
                    None => format!("[{kind}]"),
                }))
            }
            _ => None,
        }
    }
}

/// Returns the arguments of a call as JSON; a call without any has none.
pub(super) fn arguments(raw: Option<&RawValue>) -> String {
    raw.map_or("{}", RawValue::get).to_owned()
}

/// Returns JSON without the line breaks and indentation between its values.
pub(super) fn compact(json: String) -> String {
    if !json.contains('\n') {
        return json;
    }
    let (mut text, mut in_string, mut is_escaped) = (String::new(), false, false);
    for letter in json.chars() {
        if in_string || !letter.is_ascii_whitespace() {
            text.push(letter);
        }
        in_string ^= letter == '"' && !is_escaped;
        is_escaped = in_string && letter == '\\' && !is_escaped;
    }
    text
}

/// Closes a list or object that is cut off: returns it up to its last complete member or element,
/// with the closing brackets. Only members and elements of the first two levels count. Returns
/// `None` if none is complete.
pub(super) fn closed(text: &str) -> Option<String> {
    const LEVELS: usize = 2;
    let (mut open, mut whole) = (Vec::new(), None);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b'}' | b']' => {
                open.pop()?;
                if (1..=LEVELS).contains(&open.len()) {
                    whole = Some((at + 1, open.clone()));
                }
            }
            b',' if (1..=LEVELS).contains(&open.len()) => whole = Some((at, open.clone())),
            _ => {}
        }
    }
    let (end, closing) = whole.filter(|_| !open.is_empty())?;
    Some(text[..end].chars().chain(closing.into_iter().rev()).collect())
}

/// Appends a part to a text, with an empty line between the two. Ignores a blank part.
pub(super) fn join(text: &mut String, part: &str) {
    if part.trim().is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(part.trim_matches('\n'));
}

/// Replaces escapes of lone surrogates, which JavaScript writes when it cuts a text inside a
/// character. Returns `None` if there are none.
pub(super) fn without_lone_surrogates(text: &str) -> Option<String> {
    let has = |escape: &str| memchr::memmem::find(text.as_bytes(), escape.as_bytes()).is_some();
    if !has("\\ud") && !has("\\uD") {
        return None;
    }
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (mut mended, mut from, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        let here = at + found;
        at = match unit(here) {
            Some(0xD800..=0xDBFF) if matches!(unit(here + 6), Some(0xDC00..=0xDFFF)) => here + 12,
            Some(0xD800..=0xDFFF) => {
                mended.push_str(&text[from..here]);
                mended.push_str("\\ufffd");
                from = here + 6;
                from
            }
            // An escaped backslash begins no other escape.
            _ => (here + 2).min(text.len()),
        };
        if !text.is_char_boundary(at) {
            at = text.ceil_char_boundary(at);
        }
    }
    (from > 0).then(|| mended + &text[from..])
}
