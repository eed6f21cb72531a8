//! Prints of the lines that were in the file of a text, outside of it.

use std::collections::HashSet;
use std::ops::Range;

use super::bare::{Bare, is_telling};

/// Number of lines on each side of a text of which the anchor keeps a print.
pub(super) const NEAR: usize = 256;
/// Number of hexadecimal digits of a print. A new line is taken for one of 512 known ones once in
/// two thousand times.
const DIGITS: usize = 5;

/// Print of a line, by which it is known again.
pub(super) type Print = u32;

/// Returns the prints of the lines before and of those after a text: those near it, and those that
/// the text has too, if they tell their place.
pub(super) fn prints(file: &Bare, text: &Range<usize>) -> (Vec<Print>, Vec<Print>) {
    let own: HashSet<&String> = file.lines[text.clone()].iter().collect();
    let near = text.start.saturating_sub(NEAR)..text.end + NEAR;
    let is_kept = |at: &usize| {
        let line = &file.lines[*at];
        near.contains(at) || (is_telling(line) && own.contains(line))
    };
    let prints = |lines: Range<usize>| {
        lines.filter(is_kept).map(|at| print(&file.lines[at])).collect::<Vec<_>>()
    };
    (prints(0..text.start), prints(text.end..file.len()))
}

/// Returns where a text was among the prints of other lines, between its neighbours. Only telling
/// lines have prints.
pub(super) fn between(
    prints: &[Print],
    before: Option<&String>,
    after: Option<&String>,
) -> Option<usize> {
    let print_of = |line: Option<&String>| line.filter(|line| is_telling(line)).map(|it| print(it));
    let (before, after) = (print_of(before), print_of(after));
    (0..=prints.len()).find(|at| {
        let is_before = before.is_none_or(|print| *at > 0 && prints[at - 1] == print);
        is_before && after.is_none_or(|print| prints.get(*at) == Some(&print))
    })
}

/// Returns the print of a line.
pub(super) fn print(line: &str) -> Print {
    let hash = blake3::hash(line.as_bytes());
    let [one, two, three, ..] = *hash.as_bytes();
    u32::from_be_bytes([0, one, two, three]) >> (24 - 4 * DIGITS)
}

/// Returns prints as a text.
pub(super) fn written(prints: &[Print]) -> String {
    prints.iter().map(|print| format!("{print:0DIGITS$x}")).collect()
}

/// Reads prints from a text; none if it is no such text.
pub(super) fn read(text: &str) -> Vec<Print> {
    let digits: Vec<char> = text.chars().collect();
    let print = |digits: &[char]| Print::from_str_radix(&digits.iter().collect::<String>(), 16);
    digits.chunks(DIGITS).map(print).collect::<Result<_, _>>().unwrap_or_default()
}
