//! What an item keeps to find its text again: the text as it was marked, and the lines around it.
//!
//! An anchor is made once, when the text was certainly on its lines. Every later search starts from
//! it, whatever was found meanwhile. So what is found depends on the file as it is now, and not on
//! how often somebody looked.

use super::line_hash::{self, LineHash};
use crate::context::item::{ANCHOR, Metadata};
use crate::value::Value;

/// Maximum number of lines kept on each side. Blank lines do not count.
pub(super) const LINES: usize = 8;
/// Maximum number of characters kept of each line.
const CHARS: usize = 120;

/// The nonblank lines around a text, without white space, and hashes of more lines. In metadata it
/// is a map: `before` and `after`, some lines on each side; `copies`, the number of times that the
/// text occurs; `known`, hashes of other lines of the file; `above`, the number of these hashes that
/// are of lines before the text; `start-line` and `end-line`; and `text`, the whole lines, unless
/// they are the item's content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Lines before the text, up to eight; fewer if the file begins there.
    pub before: Vec<String>,
    /// Lines after the text, up to eight; fewer if the file ends there.
    pub after: Vec<String>,
    /// Number of times that the text occurred in its file; 0 if unknown.
    pub copies: usize,
    /// Hashes of other lines of the text's file.
    pub known: Vec<LineHash>,
    /// Number of hashes in `known` that are of lines before the text.
    pub above: usize,
    /// True if the file is known to have begun right before `before`.
    pub begins_file: bool,
    /// True if the file is known to have ended right after `after`.
    pub ends_file: bool,
    /// First and last line of the text; `None` if these are the item's lines.
    pub lines: Option<(u64, u64)>,
    /// The whole lines of the text; `None` if these are the item's content.
    pub text: Option<String>,
}

impl Anchor {
    /// Reads the anchor of an item, ignoring white space. Returns `None` if the item has no anchor,
    /// or if the anchor lacks hashes of other lines: a wrong place could then look certain.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let given = metadata.get(ANCHOR)?;
        let side = |name: &str| match given.get(name) {
            Some(Value::Str(text)) => bare_lines(text),
            _ => Vec::new(),
        };
        let number = |name: &str| match given.get(name) {
            Some(Value::Int(number)) => u64::try_from(*number).ok(),
            _ => None,
        };
        let count = |name: &str| number(name).and_then(|number| usize::try_from(number).ok());
        let (copies, above) = (count("copies").unwrap_or_default(), count("above")?);
        let cut = |line: String| line.chars().take(CHARS).collect();
        let (mut before, mut after) = (side("before"), side("after"));
        before.drain(..before.len().saturating_sub(LINES));
        after.truncate(LINES);
        let cut_all = |lines: Vec<String>| lines.into_iter().map(cut).collect::<Vec<_>>();
        let Some(Value::Str(hashes)) = given.get("known") else { return None };
        let (before, after, known) = (cut_all(before), cut_all(after), line_hash::read(hashes));
        let (begins_file, ends_file) = (before.len() < LINES, after.len() < LINES);
        let text = match given.get("text") {
            Some(Value::Str(text)) => Some(text.clone()),
            _ => None,
        };
        let lines = number("start-line").zip(number("end-line"));
        Some(Self { before, after, copies, known, above, begins_file, ends_file, lines, text })
    }

    /// Returns the anchor as a metadata value.
    pub fn value(&self) -> Value {
        let entry = |name: &str, value| (name.into(), value);
        let mut entries = vec![
            entry("before", Value::Str(self.before.join("\n"))),
            entry("after", Value::Str(self.after.join("\n"))),
            entry("copies", Value::from(self.copies as u64)),
            entry("above", Value::from(self.above as u64)),
            entry("known", Value::Str(line_hash::written(&self.known))),
        ];
        if let Some((start, end)) = self.lines {
            entries.push(entry("start-line", Value::from(start)));
            entries.push(entry("end-line", Value::from(end)));
        }
        entries.extend(self.text.as_ref().map(|text| entry("text", Value::Str(text.clone()))));
        Value::Map(entries)
    }

    /// Returns whether the lines around the text are known.
    pub(super) fn is_known(&self) -> bool {
        *self != Self::default()
    }

    /// Creates an anchor with the lines before and after a text, without white space.
    pub(super) fn around(
        before: &[String],
        after: &[String],
        copies: usize,
        (above, below): (Vec<LineHash>, Vec<LineHash>),
    ) -> Self {
        let cut = |line: &String| line.chars().take(CHARS).collect();
        Self {
            before: before[before.len().saturating_sub(LINES)..].iter().map(cut).collect(),
            after: after[..LINES.min(after.len())].iter().map(cut).collect(),
            copies,
            above: above.len(),
            known: [above, below].concat(),
            begins_file: before.len() < LINES,
            ends_file: after.len() < LINES,
            lines: None,
            text: None,
        }
    }

    /// Returns whether a line equals the line `kept` of an anchor. An anchor keeps only the
    /// beginning of a long line.
    pub(super) fn is_line(kept: &str, line: &str) -> bool {
        kept == line || (kept.chars().count() == CHARS && line.starts_with(kept))
    }
}

/// Returns the lines that are not blank, without white space.
fn bare_lines(text: &str) -> Vec<String> {
    let bare = |line: &str| line.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    text.lines().map(bare).filter(|line| !line.is_empty()).collect()
}
