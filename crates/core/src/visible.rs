//! Makes hidden characters in names visible: control characters, marks of writing direction and
//! invisible characters become escapes such as `\u{202e}`. Hidden characters that belong to
//! ordinary text, such as the joiner within an emoji, stay as they are. This module knows nothing
//! of the client protocol.
//!
//! Code that writes a name into a heading, a list, a message or a terminal calls these functions.
//! Stored data and contents never change, so code that writes them does not call these functions.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

#[cfg(feature = "engine")]
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
#[cfg(feature = "engine")]
use icu_properties::{CodePointMapData, CodePointSetData};

#[cfg(feature = "engine")]
mod place;
/// Without the tables of Unicode, no place is known to be proper.
#[cfg(not(feature = "engine"))]
mod place {
    pub(super) fn is_proper(_: char, _: &str, _: &str) -> bool {
        false
    }
}

/// Returns `name` on one line. Hidden characters that do not belong to ordinary text become Rust
/// escapes, such as `\n` or `\u{202e}`. Backslashes stay as they are, since no program reads the
/// text back.
pub fn visible(name: &str) -> Cow<'_, str> {
    escaped(name, |_| false, |c, out| out.extend(c.escape_default()))
}

/// Returns `text` with the same escapes as [`visible`], except that newlines and tabs stay as they
/// are.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t'), |c, out| out.extend(c.escape_default()))
}

/// Returns a path on one line, with the same escapes as [`visible`].
pub fn visible_path(path: &Path) -> String {
    visible(&path.to_string_lossy()).into_owned()
}

/// Returns `json` as [`visible`] does, but with JSON escapes, which programs read back as the
/// characters. Line ends and tabs stay as they are: JSON allows them only outside of strings.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let escape = |c: char, out: &mut String| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            push(out, format_args!("\\u{unit:04x}"));
        }
    };
    escaped(json, |c| matches!(c, '\n' | '\r' | '\t'), escape)
}

/// Returns `sexp` as [`visible`] does, but with escapes that Emacs reads back as the characters.
/// Line ends and tabs stay as they are.
pub fn visible_sexp(sexp: &str) -> Cow<'_, str> {
    let escape = |c: char, out: &mut String| match u32::from(c) {
        code @ ..=0xFFFF => push(out, format_args!("\\u{code:04x}")),
        code => push(out, format_args!("\\U{code:08x}")),
    };
    escaped(sexp, |c| matches!(c, '\n' | '\r' | '\t'), escape)
}

/// Returns a text of at most about `bytes` bytes, without its middle if it is longer. For what an
/// error quotes: a sender may have written megabytes.
pub fn shortened(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let end = &text[text.ceil_char_boundary(text.len() - bytes / 4)..];
    let beginning = &text[..text.floor_char_boundary(bytes / 4 * 3)];
    let left_out = text.len() - beginning.len() - end.len();
    Cow::Owned(format!("{beginning}… ({left_out} bytes) …{end}"))
}

fn escaped(
    text: &str,
    is_kept: fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ' || is_kept(byte.into());
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let (mut done, mut has_escapes) = (0, false);
    for (at, c) in text.char_indices() {
        if is_kept(c) || !is_hidden(c) {
            continue;
        }
        out.push_str(&text[done..at]);
        done = at;
        let end = at + c.len_utf8();
        if !place::is_proper(c, &out, &text[end..]) {
            escape(c, &mut out);
            (done, has_escapes) = (end, true);
        }
    }
    if !has_escapes {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Returns whether a character is hidden, wherever it stands: a control character, a line or
/// paragraph separator, an unassigned character, a mark of an interlinear annotation, or a
/// character that programs should ignore if they do not support it (format character, selector,
/// filler, tag). Spaces and characters for private use are not hidden.
#[cfg(feature = "engine")]
fn is_hidden(c: char) -> bool {
    use GeneralCategory::{Control, LineSeparator, ParagraphSeparator, Unassigned};
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    matches!(category, Control | LineSeparator | ParagraphSeparator | Unassigned)
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || matches!(c, '\u{fff9}'..='\u{fffb}')
}

/// The same by Rust's own table, for crates that do without those of Unicode.
#[cfg(not(feature = "engine"))]
fn is_hidden(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_control() } else { c.escape_debug().len() > 1 }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests;
