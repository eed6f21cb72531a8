//! Pairs the lines of a text with those of a file that they are now.

use std::ops::Range;

use super::bare::is_telling;
use super::looked::Looked;

/// Maximum length of a run of changed lines whose lines are compared one by one.
const MAX_PAIRED: usize = 48;
/// Least likeness of two lines of which one is taken for the edited other.
pub(super) const LIKE: f64 = 0.75;
/// Number of lines from outside, together, that may have been moved into a text.
const STRANGE: usize = 3;
/// Number of lines that only the text had which show that a part of it is beyond other lines.
const OWN: usize = 2;

/// A line of the text that was found in the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair {
    /// Line of the file.
    pub(super) at: usize,
    /// Likeness of the lines; 1 if they are the same.
    pub(super) like: f64,
}

/// Pairs changed lines with those that they may have been changed to, in order, so that the sum of
/// their likeness is greatest.
pub(super) fn pair_likes(
    block: &[&str],
    lines: &[&str],
    old: Range<usize>,
    new: Range<usize>,
    pairs: &mut [Option<Pair>],
) {
    if old.len() > MAX_PAIRED || new.len() > MAX_PAIRED {
        return;
    }
    let (rows, columns) = (old.len(), new.len());
    let mut like = vec![vec![0.0; columns]; rows];
    for (row, likes) in like.iter_mut().enumerate() {
        for (column, like) in likes.iter_mut().enumerate() {
            let one = strsim::sorensen_dice(block[old.start + row], lines[new.start + column]);
            *like = if one >= LIKE { one } else { 0.0 };
        }
    }
    let mut best = vec![vec![0.0_f64; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let both = like[row][column] + best[row + 1][column + 1];
            best[row][column] = both.max(best[row + 1][column]).max(best[row][column + 1]);
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < rows && column < columns {
        if best[row][column] == best[row + 1][column] {
            row += 1;
        } else if best[row][column] == best[row][column + 1] {
            column += 1;
        } else {
            // Never as much as 1, which stands for the same line.
            let like = like[row][column].min(0.99);
            pairs[old.start + row] = Some(Pair { at: new.start + column, like });
            (row, column) = (row + 1, column + 1);
        }
    }
}

/// Leaves only the counterparts that are together: those beyond lines that were outside of the text
/// are others just like them, unless there are few of these lines, and something beyond is certainly
/// the text's.
pub(super) fn keep_together(looked: &Looked<'_>, pairs: &mut [Option<Pair>]) {
    let known = looked.known();
    let foreign = |from: usize, to: usize| (from..to).filter(|at| known.is_foreign(*at)).count();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut previous: Option<Pair> = None;
    for (line, pair) in pairs.iter().enumerate().filter_map(|(line, it)| Some((line, (*it)?))) {
        if previous.is_none_or(|previous| foreign(previous.at, pair.at) > 0) {
            groups.push(Vec::new());
        }
        groups.last_mut().into_iter().for_each(|group| group.push(line));
        previous = Some(pair);
    }
    let Some(main) = (0..groups.len()).max_by_key(|at| groups[*at].len()) else { return };
    let is_own = |line: &usize| {
        let text = &looked.item.lines[*line];
        pairs[*line].is_some_and(|pair| pair.like >= 1.0) && known.is_single(text)
    };
    let at = |line: usize| pairs[line].map_or(0, |pair| pair.at);
    // Whether the group on the far side of some lines from outside is the text's, too.
    let belongs = |group: &[usize], from: usize, to: usize| {
        let strange = foreign(at(from), at(to));
        let own = group.iter().filter(|line| is_own(line)).count();
        let telling = group.iter().filter(|line| is_telling(&looked.item.lines[**line])).count();
        let is_outermost = group.contains(&0) || group.contains(&(looked.item.len() - 1));
        strange <= STRANGE && (own >= OWN || (is_outermost && own > 0 && own == telling))
    };
    let (mut first, mut last) = (main, main);
    let end = |group: usize| groups[group][groups[group].len() - 1];
    while first > 0 && belongs(&groups[first - 1], end(first - 1), groups[first][0]) {
        first -= 1;
    }
    while last + 1 < groups.len() && belongs(&groups[last + 1], end(last), groups[last + 1][0]) {
        last += 1;
    }
    let (from, to) = (groups[first][0], groups[last][groups[last].len() - 1]);
    for (line, pair) in pairs.iter_mut().enumerate() {
        if line < from || line > to {
            *pair = None;
        }
    }
}
