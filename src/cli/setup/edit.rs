//! Edits of texts. An edit lists ranges of a text, each with its replacement. An edit can be shown
//! without the rest of the text, which may contain API keys. Nothing here has side effects.

use std::fmt::Write;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A replacement in a text: `text` takes the place of the bytes `range`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Splice {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// Replacements that do not overlap, in order. Their ranges are those of the text before the edit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Edit(Vec<Splice>);

impl Edit {
    pub(super) fn new(mut splices: Vec<Splice>) -> Self {
        splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
        Self(splices)
    }

    /// Returns the edit that turns `before` into `after` by a single replacement; empty if the two
    /// are equal.
    pub(super) fn between(before: &str, after: &str) -> Self {
        let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
            pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
        };
        let start = same(&mut before.chars().zip(after.chars()));
        let (old, new) = (&before[start..], &after[start..]);
        let end = same(&mut old.chars().rev().zip(new.chars().rev()));
        let text = new[..new.len() - end].to_owned();
        let range = start..before.len() - end;
        match range.is_empty() && text.is_empty() {
            true => Self::default(),
            false => Self(vec![Splice { range, text }]),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the edit removes nothing.
    pub(super) fn only_adds(&self) -> bool {
        self.0.iter().all(|splice| splice.range.is_empty())
    }

    /// Returns the edited text, or `None` if the edit does not fit the text.
    pub(super) fn apply(&self, text: &str) -> Option<String> {
        let mut done = String::with_capacity(text.len());
        let mut at = 0;
        for Splice { range, text: new } in &self.0 {
            done += text.get(at..range.start)?;
            text.get(range.clone())?;
            done += new;
            at = range.end;
        }
        Some(done + text.get(at..)?)
    }

    /// Returns the edit that undoes this one. `text` is the text before this edit.
    pub(super) fn inverse(&self, text: &str) -> Self {
        let mut moved = 0_isize;
        let back = |splice: &Splice| {
            let start = splice.range.start.wrapping_add_signed(moved);
            let (new, old) = (splice.text.len(), splice.range.len());
            moved += new.cast_signed() - old.cast_signed();
            Splice { range: start..start + new, text: text[splice.range.clone()].to_owned() }
        };
        Self(self.0.iter().map(back).collect())
    }

    /// Formats this edit of `text` as a diff without context. Hides each removed line for which
    /// `is_known` returns false. `is_known` gets the line without the white space around it.
    pub(super) fn shown(&self, text: &str, is_known: impl Fn(&str) -> bool) -> String {
        let mut diff = String::new();
        for Splice { range, text: new } in &self.0 {
            let lines = |part: &str| -> Vec<String> {
                let is_more = |line: &&str| !matches!(line.trim(), "" | ",");
                part.lines().filter(is_more).map(str::to_owned).collect()
            };
            let (gone, come) = (lines(&text[range.clone()]), lines(new));
            if gone.is_empty() && come.is_empty() {
                continue;
            }
            let line = text[..range.start].matches('\n').count() + 1;
            let _ = writeln!(diff, "@@ line {line} @@");
            for line in gone {
                let line = if is_known(line.trim()) { line.as_str() } else { "  (not shown)" };
                let _ = writeln!(diff, "-{line}");
            }
            for line in come {
                let _ = writeln!(diff, "+{line}");
            }
        }
        diff
    }
}

/// Beginning of a text that says that it is UTF-8.
const MARK: char = '\u{feff}';

/// Returns an edit of `text` that `make` makes of the text without a byte-order mark and with plain
/// line ends. The mark and the line ends of the text stay, and new lines end as its first line does.
///
/// # Errors
/// The error of `make`.
pub(super) fn on_plain(
    text: &str,
    make: impl FnOnce(&str) -> Result<Edit, String>,
) -> Result<Edit, String> {
    // The place in `text` of each byte of the plain text, and of its end.
    let (mut plain, mut places) = (String::with_capacity(text.len()), Vec::new());
    for (at, character) in text.char_indices() {
        let is_dropped = at == 0 && character == MARK || text[at..].starts_with("\r\n");
        if !is_dropped {
            let is_after = character == '\n' && text[..at].ends_with('\r');
            let start = if is_after { at - 1 } else { at };
            places.extend((0..character.len_utf8()).map(|byte| start + byte));
            plain.push(character);
        }
    }
    places.push(text.len());
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    let end = if first.ends_with("\r\n") { "\r\n" } else { "\n" };
    let place = |at: usize| places.get(at).copied().unwrap_or(text.len());
    let moved = make(&plain)?.0.into_iter().map(|Splice { range, text }| Splice {
        range: place(range.start)..place(range.end),
        text: text.replace('\n', end),
    });
    Ok(Edit::new(moved.collect()))
}

/// Returns a text without its byte-order mark.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_taken_back() {
        let text = "one\ntwo\nthree\n";
        let splice = |range, text: &str| Splice { range, text: text.to_owned() };
        let edit = Edit::new(vec![splice(8..8, "2½\n"), splice(0..3, "1"), splice(14..14, "4\n")]);
        let after = edit.apply(text).unwrap();
        assert_eq!(after, "1\ntwo\n2½\nthree\n4\n");
        assert_eq!(edit.inverse(text).apply(&after).unwrap(), text);
        assert_eq!(Edit::between(text, &after).apply(text).unwrap(), after);
        assert!(Edit::between(text, text).is_empty());
        assert_eq!(edit.apply("x"), None);
    }

    #[test]
    fn marks_and_line_ends_stay() {
        let check = |text: &str, expected: &str| {
            let edit = on_plain(text, |plain| {
                assert_eq!(plain, "one\ntwo\nthree\n");
                let splice = |range, text: &str| Splice { range, text: text.to_owned() };
                Ok(Edit::new(vec![splice(4..7, "2\n½"), splice(14..14, "four\n")]))
            });
            let edit = edit.unwrap();
            let after = edit.apply(text).unwrap();
            assert_eq!(after, expected);
            assert_eq!(edit.inverse(text).apply(&after).unwrap(), text);
        };
        check("one\ntwo\nthree\n", "one\n2\n½\nthree\nfour\n");
        check("\u{feff}one\ntwo\nthree\n", "\u{feff}one\n2\n½\nthree\nfour\n");
        check("one\r\ntwo\r\nthree\r\n", "one\r\n2\r\n½\r\nthree\r\nfour\r\n");
        check("\u{feff}one\r\ntwo\nthree\r\n", "\u{feff}one\r\n2\r\n½\nthree\r\nfour\r\n");
    }

    #[test]
    fn an_edit_shows_only_lines_that_are_known() {
        let text = "a\nkey: secret\nb\n";
        let edit = Edit::new(vec![Splice { range: 0..14, text: "c\n,\n".to_owned() }]);
        let shown = edit.shown(text, |line| line == "a");
        assert_eq!(shown, "@@ line 1 @@\n-a\n-  (not shown)\n+c\n");
    }
}
