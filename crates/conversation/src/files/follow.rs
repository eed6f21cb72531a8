//! Finds the text of an item again in a file that has changed. Never guesses: if no place is
//! likely, or if several are, the result is that the place is unknown. The functions are pure.
//!
//! Texts are compared line by line, without white space and blank lines. The search begins with the
//! whole text. Its place is found if the text occurs once between its old neighbours, or if these
//! neighbours tell its copies apart. Otherwise, the lines of the new file are matched with the
//! lines of the old file, of which the anchor keeps short hashes. This takes three steps: `matched`
//! pairs the lines of both files, `body` chooses the pairs that show the place of the text, and
//! `edges` decides which new lines at its beginning and end belong to the text. Then `doubts` looks
//! for reasons why the place may still be wrong, and `align` refuses the place if little of the
//! text is left there, or if much of the text is elsewhere. Where open brackets are counted, words
//! that open and close blocks, such as `do` and `end`, count as well (`blocks`).
//!
//! The *old file* is the file when the text was taken; the *new file* is the file now. The *old
//! neighbours* are the lines around the text in the old file. An *outside line* was in the old
//! file, but not in the text. A *telling line* says something about its place; a closing bracket
//! does not. A *lost line* was in the old file, but has not been found in the new one. A *pair* is
//! a line of the text and its match in the new file.

mod align;
mod anchor;
mod bare;
mod blocks;
mod body;
mod definition;
mod doubts;
mod edges;
mod known;
mod likeness;
mod line_hash;
mod looked;
mod matched;

use std::cell::OnceCell;
use std::ops::Range;

pub(super) use self::anchor::Anchor;
use self::bare::Bare;
use self::looked::Looked;
use super::lines;
use crate::names::names;

names! {
    /// The way in which a live item was found again in its file.
    #[cfg_attr(feature = "schema", schemars(rename = "ItemFound"))]
    Found {
        /// The same text on the same lines.
        Exact => "exact",
        /// The same text on other lines.
        Moved => "moved",
        /// The same text with other white space.
        Reformatted => "reformatted",
        /// An edited version of the text.
        Edited => "edited",
    }
}

/// A text to find again.
pub(super) struct WantedText<'a> {
    /// The text as it was taken.
    pub text: &'a str,
    /// First and last line of the text in the old file.
    pub range: (u64, u64),
    /// The lines around the text, if they are known.
    pub anchor: Option<&'a Anchor>,
    /// Name of the thing that the text defines, if any.
    pub symbol: Option<&'a str>,
}

/// The result of finding a text again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextMatch {
    /// The text is certainly on these lines.
    At {
        /// First line, counted from 1.
        start: u64,
        /// Last line, included.
        end: u64,
        /// Way in which the text was found.
        found: Found,
    },
    /// The place is uncertain. The reason is a readable phrase.
    Unsure(&'static str),
}

/// Minimum number of matching neighbouring lines that make the place of a text clear.
const CLEAR_SUPPORT: usize = 4;
/// Minimum lead of the best copy over the others, in matching neighbouring lines; also the minimum
/// number of such lines on each side of that copy.
const CLEAR_MARGIN: usize = 2;

/// Minimum number of telling lines at which a text counts as moved if neither of its old neighbours
/// is beside it.
const LONG: usize = 2;

/// Maximum number of lines, blank ones aside, of a text that is found again after edits. Each line is
/// compared with each line of the text's place. A longer text is found if it only moved.
const MOST_LINES: usize = 4_000;

const TOO_LONG: &str = "it has changed, and is too long to be compared line by line";
const SEVERAL: &str = "its text is in the file more than once";
const COPY: &str = "its text was in the file more than once, and the one left may be a copy";
const STRAY: &str =
    "a text like it is elsewhere in the file, without the lines that were beside it";
const GONE: &str = "its text is no longer in the file";
const RIVAL: &str = "its text is in the file, but an edited version is where the text was";
const EMPTY: &str = "its text is empty, so it cannot be found again";

/// The text of a file that is searched, prepared for any number of searches.
pub(super) struct Searched {
    /// The text, [unified](lines::unified).
    text: String,
    /// Language of the text, as a Markdown fence names it.
    language: String,
    bare: OnceCell<Bare>,
}

impl Searched {
    /// Prepares a text for searches. `language` is named as in a Markdown fence.
    pub(super) fn new(text: &str, language: &str) -> Self {
        let text = lines::unified(text).into_owned();
        Self { text, language: language.to_owned(), bare: OnceCell::new() }
    }

    /// Returns the text, [unified](lines::unified).
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the language of the text.
    pub(super) fn language(&self) -> &str {
        &self.language
    }

    fn bare(&self) -> &Bare {
        self.bare.get_or_init(|| Bare::of(&self.text, &self.language))
    }
}

/// Returns the anchor of the text on these lines of a file; `None` if the file has fewer lines.
pub(super) fn anchor(file: &Searched, (start, end): (u64, u64)) -> Option<Anchor> {
    let (item, bare) = (Bare::of(lines::slice(&file.text, start, Some(end))?, ""), file.bare());
    let first = bare.numbers.partition_point(|line| *line < start);
    let last = bare.numbers.partition_point(|line| *line <= end);
    let (before, after) = (&bare.lines[..first], &bare.lines[last..]);
    let known = known::hashes(bare, &(first..last));
    Some(Anchor::around(before, after, bare.copies(&item).len(), known))
}

/// Finds a text again in a file. The text must be [unified](lines::unified) and consist of whole
/// lines.
pub(super) fn locate(wanted: &WantedText<'_>, file: &Searched) -> TextMatch {
    let (start, end) = wanted.range;
    if is_untouched(wanted, file) {
        return TextMatch::At { start, end, found: Found::Exact };
    }
    let item = Bare::of(wanted.text, &file.language);
    if item.is_empty() {
        return TextMatch::Unsure(EMPTY);
    }
    let around = wanted.anchor.cloned().unwrap_or_default();
    let (symbol, matched) = (wanted.symbol, OnceCell::new());
    let looked = Looked { item: &item, file: file.bare(), around: &around, symbol, matched };
    let found = match item.len() > MOST_LINES {
        true => only_moved(&looked),
        false => whole(&looked).unwrap_or_else(|| align::edited(&looked)),
    };
    match found {
        Ok(at) => looked.place(at, wanted, &file.text),
        Err(reason) => TextMatch::Unsure(reason),
    }
}

/// Returns whether the text is on its old lines, and the known lines around it are unchanged.
fn is_untouched(wanted: &WantedText<'_>, file: &Searched) -> bool {
    let (start, end) = wanted.range;
    let now = lines::slice(&file.text, start, Some(end));
    now.is_some_and(|now| lines::same(now, wanted.text))
        && wanted.anchor.is_none_or(|old| {
            anchor(file, wanted.range).is_some_and(|now| {
                let Anchor { lines, text, .. } = old.clone();
                *old == Anchor { lines, text, ..now }
            })
        })
}

/// Finds the whole text, and returns its place among the lines of the file that are not blank, or
/// the reason why the place is uncertain. Returns `None` if the text does not occur.
fn whole(looked: &Looked<'_>) -> Option<Result<Range<usize>, &'static str>> {
    let places = looked.file.copies(looked.item);
    let place = match &places[..] {
        [] => looked.file.rewrapped(looked.item)?,
        [place] => place.clone(),
        several => {
            let place = clearest(looked, several).or_else(|| framed(looked, several)).map(Ok);
            let aligned = || align::aligned(looked).ok().filter(|at| has_both(looked, at));
            return Some(place.unwrap_or_else(|| aligned().ok_or(SEVERAL)));
        }
    };
    let [before, after] = [true, false].map(|is_start| looked.support(&place, is_start));
    let is_clear = before > 0 && after > 0 && before + after >= CLEAR_SUPPORT;
    if is_clear || !looked.around.is_known() {
        return Some(Ok(place));
    }
    Some(match align::aligned(looked) {
        Ok(_) if align::is_stray(looked, &place) => Err(STRAY),
        Ok(at) if looked.around.copies > 1 && !has_both(looked, &at) => Err(COPY),
        Ok(at) if at.start < place.end && place.start < at.end => Ok(place),
        Ok(at) => Ok(at),
        Err(_) if framed(looked, std::slice::from_ref(&place)).is_some() => Ok(place),
        // With the other copies gone, the remaining one may not be the text.
        Err(_) if looked.around.copies > 1 => Err(COPY),
        Err(_) if align::is_copy(looked, &place) => Err(RIVAL),
        Err(_) if align::is_stray(looked, &place) => Err(STRAY),
        Err(_) => Ok(place),
    })
}

/// Finds a long text that was not edited, and occurred only once.
fn only_moved(looked: &Looked<'_>) -> Result<Range<usize>, &'static str> {
    match &looked.file.copies(looked.item)[..] {
        [] => Err(TOO_LONG),
        [place] if looked.around.copies <= 1 => Ok(place.clone()),
        [_] => Err(COPY),
        _ => Err(SEVERAL),
    }
}

/// Returns the only copy that has the whole rest of the file, as it was, on one side, if the old
/// neighbour is on the other side.
fn framed(looked: &Looked<'_>, places: &[Range<usize>]) -> Option<Range<usize>> {
    let mut framed = places.iter().filter(|place| looked.is_framed(place));
    let (place, None) = (framed.next()?, framed.next()) else { return None };
    has_both(looked, place).then(|| place.clone())
}

/// Returns whether a place is between the old neighbours of the text.
fn has_both(looked: &Looked<'_>, place: &Range<usize>) -> bool {
    [true, false].into_iter().all(|is_start| looked.support(place, is_start) > 0)
}

/// Returns the copy whose neighbours are clearly the old neighbours of the text.
fn clearest(looked: &Looked<'_>, places: &[Range<usize>]) -> Option<Range<usize>> {
    let mut supported: Vec<(usize, &Range<usize>)> = places
        .iter()
        .map(|place| {
            let [before, after] = [true, false].map(|is_start| looked.support(place, is_start));
            // A single line may be a closing bracket, which occurs in many places.
            let is_between = before.min(after) >= CLEAR_MARGIN;
            (if is_between { before + after } else { before.max(after) / 2 }, place)
        })
        .collect();
    supported.sort_by_key(|(support, _)| std::cmp::Reverse(*support));
    let (best, place) = *supported.first()?;
    let second = supported.get(1).map_or(0, |(support, _)| *support);
    (best >= CLEAR_SUPPORT && best >= second + CLEAR_MARGIN).then(|| place.clone())
}

impl Looked<'_> {
    /// Returns the place with line numbers, extended at each end by up to as many blank lines as
    /// the text has there.
    fn place(&self, at: Range<usize>, wanted: &WantedText<'_>, file: &str) -> TextMatch {
        let (start, end) = self.item.with_blanks(self.file, at);
        let now = lines::slice(file, start, Some(end)).unwrap_or_default();
        let found = if lines::same(now, wanted.text) {
            if (start, end) == wanted.range { Found::Exact } else { Found::Moved }
        } else if Bare::of(now, "").joined() == self.item.joined() {
            Found::Reformatted
        } else {
            Found::Edited
        };
        TextMatch::At { start, end, found }
    }
}

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
