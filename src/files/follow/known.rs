//! Hashes of the lines of the old file outside of a text.

use std::collections::HashSet;
use std::ops::Range;

use super::bare::{Bare, is_telling};
use super::line_hash::{LineHash, hash_of};

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

/// Returns the number of hashed lines that stood before a text, found by the lines right before and
/// after the text; `None` if these lines do not tell. Older anchors do not record this number, and
/// hash only telling lines.
pub(super) fn between(
    hashes: &[LineHash],
    before: Option<&String>,
    after: Option<&String>,
) -> Option<usize> {
    let (Some(before), Some(after)) = (before, after) else {
        // The text began or ended its file.
        return Some(if before.is_none() { 0 } else { hashes.len() });
    };
    let hash = |line: &String| is_telling(line).then(|| hash_of(line));
    let (before, after) = (hash(before), hash(after));
    if before.is_none() && after.is_none() {
        return None;
    }
    (0..=hashes.len()).find(|at| {
        let is_before = before.is_none_or(|hash| *at > 0 && hashes[at - 1] == hash);
        is_before && after.is_none_or(|hash| hashes.get(*at) == Some(&hash))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_text_is_known_by_what_stood_around_it() {
        let line = |text: &str| text.to_owned();
        let lines = [line("let first = one();"), line("let second = two();")];
        let hashes: Vec<LineHash> = lines.iter().map(|line| hash_of(line)).collect();
        let bracket = line("}");
        let place = |before, after| between(&hashes, before, after);
        assert_eq!(place(Some(&lines[0]), Some(&lines[1])), Some(1));
        assert_eq!(place(Some(&bracket), Some(&lines[1])), Some(1));
        assert_eq!(place(Some(&lines[1]), Some(&bracket)), Some(2));
        assert_eq!(place(None, Some(&bracket)), Some(0));
        assert_eq!(place(Some(&bracket), None), Some(2));
        assert_eq!(place(Some(&bracket), Some(&bracket)), None);
    }
}
