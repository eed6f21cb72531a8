//! Prints of the lines of the old file outside of a text.

use std::collections::HashSet;
use std::ops::Range;

use super::bare::{Bare, is_telling};

/// Number of lines on each side of a text whose prints the anchor keeps.
pub(super) const NEAR: usize = 256;
/// Number of hexadecimal digits of a print. With 512 known lines, a new line is mistaken for one of
/// them once in two thousand times.
const DIGITS: usize = 5;

/// A print: a short hash of a line, to recognize the line.
pub(super) type Print = u32;

/// Returns the prints of lines before and after a text. These are the lines near the text, and
/// telling lines farther away that also occur in the text.
pub(super) fn prints(file: &Bare, text: &Range<usize>) -> (Vec<Print>, Vec<Print>) {
    let own: HashSet<&String> = file.lines[text.clone()].iter().collect();
    let near = text.start.saturating_sub(NEAR)..text.end + NEAR;
    let is_kept = |at: &usize| {
        let line = &file.lines[*at];
        near.contains(at) || (is_telling(line) && own.contains(line))
    };
    let prints =
        |lines: Range<usize>| lines.filter(is_kept).map(|at| file.print(at)).collect::<Vec<_>>();
    (prints(0..text.start), prints(text.end..file.len()))
}

/// Returns the index of a text among the prints of other lines, found by its neighbours. Used for
/// anchors that have only prints of telling lines.
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
    let digit = |print: &Print, at: usize| char::from_digit(print >> (4 * at) & 0xf, 16);
    prints.iter().flat_map(|print| (0..DIGITS).rev().filter_map(|at| digit(print, at))).collect()
}

/// Reads prints from a text. Returns no prints if the text has another form.
pub(super) fn read(text: &str) -> Vec<Print> {
    let print = |digits: &[u8]| Print::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
    text.as_bytes().chunks(DIGITS).map(print).collect::<Option<_>>().unwrap_or_default()
}
