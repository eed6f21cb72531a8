//! XML: one element per item. No content can end its element.

use super::{RenderPart, date_of, end_line, push_display};
use crate::visible::visible;
use crate::wording::span;

pub(super) const FRAME: [&str; 3] = ["<context>\n", "", "</context>\n"];

/// Replacement for characters that XML 1.0 cannot express, not even by number.
const REPLACEMENT: &str = "\u{fffd}";

pub(super) fn section(part: &RenderPart<'_>, out: &mut String) {
    let (id, kind) = (part.item.id, part.item.kind.name());
    push_display(out, format_args!("<item id=\"{id}\" type=\"{kind}\""));
    if let Some(name) = part.item.metadata.display_name() {
        let is_file = part.item.metadata.filename().is_some();
        push_attribute(if is_file { "file" } else { "buffer" }, &visible(name), out);
    }
    if let Some((first, last)) = part.item.metadata.lines() {
        push_attribute("lines", &span(first, last), out);
    }
    if let Some(date) = date_of(part.item) {
        push_attribute("as-of", &date, out);
    }
    if let Some(reason) = part.item.stale() {
        push_attribute("stale", &visible(reason), out);
    }
    push_attribute("language", &part.language, out);
    out.push_str(">\n");
    push_escaped(part.body, out);
    end_line(out);
    out.push_str("</item>\n");
}

fn push_attribute(name: &str, value: &str, out: &mut String) {
    push_display(out, format_args!(" {name}=\""));
    for (index, piece) in value.split('"').enumerate() {
        if index > 0 {
            out.push_str("&quot;");
        }
        push_escaped(piece, out);
    }
    out.push('"');
}

/// Appends `text` as character data. Every `>` is escaped, so that `]]>` cannot occur either.
/// Characters outside production 2 (`Char`) of XML 1.0 are replaced.
fn push_escaped(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| SUSPECT[usize::from(byte)]) {
        let (verbatim, suspect) = rest.split_at(at);
        let end = suspect.ceil_char_boundary(1);
        out.push_str(verbatim);
        out.push_str(match &suspect[..end] {
            "&" => "&amp;",
            "<" => "&lt;",
            ">" => "&gt;",
            "\u{fffe}" | "\u{ffff}" => REPLACEMENT,
            control if control.len() == 1 => REPLACEMENT,
            harmless => harmless,
        });
        rest = &suspect[end..];
    }
    out.push_str(rest);
}

/// Bytes that begin a character which may need escaping. 0xEF begins U+FFFE and U+FFFF. Looking
/// bytes up in a table keeps long bodies cheap.
static SUSPECT: [bool; 256] = {
    let mut suspect = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        suspect[control] = !matches!(control as u8, b'\t' | b'\n' | b'\r');
        control += 1;
    }
    suspect[b'&' as usize] = true;
    suspect[b'<' as usize] = true;
    suspect[b'>' as usize] = true;
    suspect[0xEF] = true;
    suspect
};

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut out = String::new();
        push_escaped(text, &mut out);
        assert_eq!(out, expected, "{text:?}");
    }

    #[test]
    fn character_data_has_no_markup_and_no_forbidden_characters() {
        check("", "");
        check("a\tb\r\nc \"d\" 'e'", "a\tb\r\nc \"d\" 'e'");
        check("</item><x a=\"1\">", "&lt;/item&gt;&lt;x a=\"1\"&gt;");
        check("]]> &amp;", "]]&gt; &amp;amp;");
        check("\0\u{1b}[0m\u{b}\u{7f}", "\u{fffd}\u{fffd}[0m\u{fffd}\u{7f}");
        check(
            "\u{fffe}x\u{ffff}\u{fffd}\u{ff21}\u{f000}",
            "\u{fffd}x\u{fffd}\u{fffd}\u{ff21}\u{f000}",
        );
    }

    #[test]
    fn attributes_cannot_be_closed() {
        let mut out = String::new();
        push_attribute("file", "a\" b=\"<&", &mut out);
        assert_eq!(out, " file=\"a&quot; b=&quot;&lt;&amp;\"");
    }
}
