//! Hashes of the lines of the old file outside of a text.

use std::collections::HashSet;
use std::ops::Range;

use super::bare::{Bare, is_telling};
use super::line_hash::LineHash;

/// Number of lines on each side of a text whose hashes the anchor keeps.
pub(super) const NEAR: usize = 256;

/// Returns the hashes of lines before and after a text. These are the lines near the text, and
/// telling lines farther away that also occur in the text.
pub(super) fn hashes(file: &Bare, text: &Range<usize>) -> (Vec<LineHash>, Vec<LineHash>) {
    let own: HashSet<&String> = file.lines[text.clone()].iter().collect();
    let near = text.start.saturating_sub(NEAR)..text.end + NEAR;
    let is_kept = |at: &usize| {
        let line = &file.lines[*at];
        near.contains(at) || (is_telling(line) && own.contains(line))
    };
    let hashes =
        |lines: Range<usize>| lines.filter(is_kept).map(|at| file.hash(at)).collect::<Vec<_>>();
    (hashes(0..text.start), hashes(text.end..file.len()))
}
