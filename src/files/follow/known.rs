//! Prints of the lines of the old file outside of a text.

use std::collections::HashSet;
use std::ops::Range;

use super::bare::{Bare, is_telling};
use super::print::{Print, print};

/// Number of lines on each side of a text whose prints the anchor keeps.
pub(super) const NEAR: usize = 256;
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
