//! Renders items as text for a model, in one of four formats. The same items give the same bytes.
//!
//! This module knows items and languages, but no managers, files or client protocols. A text is a
//! header, one section per item with separators in between, and a footer, so that code with a
//! budget can build a text from parts.

pub mod budget;
mod cut;
mod json;
mod markdown;
pub mod once;
mod org;
pub mod report;
mod xml;

use std::borrow::Cow;
use std::fmt::Write;

use super::item::{Item, Origin};
use super::language;
use crate::names::names;
use crate::visible::visible;
use crate::wording::span;

pub use self::markdown::fence;

/// Bytes to reserve for what a section adds to its content: heading, file name, fences.
const OVERHEAD: usize = 160;

names! {
    /// The format of the rendered text.
    #[cfg_attr(feature = "schema", schemars(rename = "RenderFormat"))]
    Format {
        /// Headings and fenced blocks, byte for byte as the protocol specifies.
        Markdown => "markdown",
        /// One `<item>` per item, with an escaped body.
        Xml => "xml",
        /// Headings and source blocks.
        Org => "org",
        /// One object with an array of items, for programs.
        Json => "json",
    }
}

impl Default for Format {
    /// Returns the first format.
    fn default() -> Self {
        Self::ALL[0]
    }
}

/// Renders the whole text: the header, the items' sections in the given order, and the footer.
pub fn render<'a>(items: impl IntoIterator<Item = &'a Item>, format: Format) -> String {
    let items: Vec<&Item> = items.into_iter().collect();
    let mut out = String::with_capacity(items.iter().map(|i| i.content.len() + OVERHEAD).sum());
    let ([header, separator, footer], _) = form(format);
    out.push_str(header);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        section(item, format, &mut out);
    }
    out.push_str(footer);
    out
}

/// The texts before, between and after the sections, and what appends a section.
type Form = ([&'static str; 3], fn(&RenderPart<'_>, &mut String));

fn form(format: Format) -> Form {
    match format {
        Format::Markdown => (markdown::FRAME, markdown::section),
        Format::Xml => (xml::FRAME, xml::section),
        Format::Org => (org::FRAME, org::section),
        Format::Json => (json::FRAME, json::section),
    }
}

/// Appends the section of one item.
pub fn section(item: &Item, format: Format, out: &mut String) {
    section_with(item, &item.content, format, out);
}

/// Appends the section of one item with `body` in place of its content.
fn section_with(item: &Item, body: &str, format: Format, out: &mut String) {
    let (_, section) = form(format);
    section(&RenderPart { item, language: language::of_item(item), body }, out);
}

/// One item with everything its section shows.
struct RenderPart<'a> {
    item: &'a Item,
    language: Cow<'static, str>,
    body: &'a str,
}

/// Appends ` (from FILE:START-END)`, or ` (from FILE:LINE)` for one line. Of a diff of a file, it
/// appends ` (changes of FILE:START-END)`. Appends nothing without a name, and no lines unless both
/// are known.
fn push_annotation(item: &Item, out: &mut String) {
    let Some(name) = item.metadata.display_name() else { return };
    let is_diff =
        item.metadata.origin() == Some(Origin::Diff) && item.metadata.filename().is_some();
    out.push_str(if is_diff { " (changes of " } else { " (from " });
    out.push_str(&visible(name));
    if let Some((first, last)) = item.metadata.lines() {
        push_display(out, format_args!(":{}", span(first, last)));
    }
    out.push(')');
}

/// Appends ` [as of DATE]` for a snapshot or a stale item, and for the latter also the reason.
fn push_age(item: &Item, out: &mut String) {
    let Some(date) = date_of(item) else { return };
    push_display(out, format_args!(" [as of {date}"));
    if let Some(reason) = item.stale() {
        push_display(out, format_args!("; stale: {}", visible(reason)));
    }
    out.push(']');
}

/// Formats the time of a snapshot or of a stale item's text. Returns `None` for other items.
fn date_of(item: &Item) -> Option<String> {
    let time = jiff::Timestamp::from_second(item.as_of()?).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// Ends the last line of a body if it is still open. An empty body leaves no open line, since the
/// line before it has ended.
fn end_line(out: &mut String) {
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

fn push_display(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests;
