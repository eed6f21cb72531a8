//! Finds items that would tell a model the same thing twice.

use std::collections::HashSet;

use super::item::{Item, Origin};
use contexture_value::Value;

/// The subject of an item: some lines of a file or the whole file, or else a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ItemSubject<'a> {
    filename: Option<&'a str>,
    lines: Option<(u64, u64)>,
    text: Option<&'a str>,
}

impl<'a> ItemSubject<'a> {
    fn of(item: &'a Item) -> Self {
        use Origin::{Buffer, Defun, File, Region, Symbol, Tree};
        let metadata = &item.metadata;
        let (origin, lines) = (metadata.origin(), metadata.lines());
        let is_from = |origins: &[Origin]| origin.is_some_and(|origin| origins.contains(&origin));
        // A diff or a diagnostic also names a file and lines, but does not contain the file's text.
        let of_file = origin.is_none() || is_from(&[Buffer, Defun, File, Region, Symbol, Tree]);
        let is_part = !matches!(metadata.get("partial"), None | Some(Value::Nil));
        let is_of_file = of_file && !is_part && (lines.is_some() || is_from(&[Buffer, File, Tree]));
        match metadata.filename().filter(|_| is_of_file) {
            Some(filename) => Self { filename: Some(filename), lines, text: None },
            None => Self { filename: metadata.filename(), lines, text: Some(&item.content) },
        }
    }
}

/// Returns the items that no later item repeats.
pub fn without_repeats<T>(items: Vec<T>, item_of: impl Fn(&T) -> &Item) -> Vec<T> {
    let mut seen = HashSet::new();
    let mut last = Vec::with_capacity(items.len());
    for entry in items.iter().rev() {
        last.push(seen.insert(ItemSubject::of(item_of(entry))));
    }
    let kept = items.into_iter().zip(last.into_iter().rev()).filter(|(_, is_last)| *is_last);
    kept.map(|(entry, _)| entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::testing::{With, code};

    #[track_caller]
    fn check(items: Vec<Item>, expected: &[u64]) {
        let left = without_repeats(items, |item| item);
        assert_eq!(left.iter().map(|item| item.id.0).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_last_of_the_same_lines_stays() {
        let lines = |id, text, last| code(id, text).in_file("/a").at_lines(1, last);
        check(vec![lines(1, "old", 2), lines(2, "x", 3), lines(3, "new", 2)], &[2, 3]);
    }

    #[test]
    fn whole_files_repeat_each_other_and_no_excerpt() {
        let of = |id, text, origin| code(id, text).in_file("/a").with("origin", origin);
        check(vec![of(1, "a", "file"), of(2, "b", "buffer")], &[2]);
        check(vec![of(1, "a", "symbol"), of(2, "b", "symbol"), of(3, "b", "symbol")], &[1, 3]);
        check(vec![code(1, "a").in_file("/a"), code(2, "b").in_file("/a")], &[1, 2]);
    }

    #[test]
    fn texts_about_lines_and_parts_of_lines_count_by_their_text() {
        let of = |id, text, name| code(id, text).in_file("/a").at_lines(1, 1).with(name, "diff");
        check(vec![of(1, "a", "origin"), of(2, "b", "origin"), of(3, "a", "origin")], &[2, 3]);
        check(vec![of(1, "a", "partial"), of(2, "b", "partial")], &[1, 2]);
    }

    #[test]
    fn the_same_text_without_a_file_is_a_repeat() {
        check(vec![code(1, "a"), code(2, "b"), code(3, "a")], &[2, 3]);
        check(vec![code(1, "a"), code(2, "a").in_file("/a")], &[1, 2]);
    }
}
