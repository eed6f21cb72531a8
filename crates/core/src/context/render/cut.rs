//! Cuts one item down until it fits beside the items that are kept whole. Keeps whole lines from
//! the item's beginning or, if not even the first line fits, characters of that line. A line in the
//! body says how much is missing.

use super::{Format, section_with};
use crate::context::item::Item;
use crate::tokens::Counter;

/// A text with an item that was cut.
pub(super) struct Cut {
    /// The whole text, with header and footer.
    pub(super) text: String,
    /// Tokens of `text`.
    pub(super) tokens: u64,
    /// Section of the item in `text`.
    pub(super) section: String,
    /// Number of whole lines kept.
    pub(super) lines_kept: u64,
    /// Number of lines of the item.
    pub(super) lines_total: u64,
}

/// The text around the section that is cut.
pub(super) struct Around {
    /// The header, and the sections before the cut one.
    pub(super) before: String,
    /// The sections after the cut one, and the footer.
    pub(super) after: String,
}

/// Finds the longest beginning of `item` with which the text fits `max_tokens`, by bisection. The
/// whole item must be too big.
///
/// # Errors
/// The number of tokens of the text without any of the content, if even that does not fit.
pub(super) fn to_fit(
    item: &Item,
    around: &Around,
    format: Format,
    max_tokens: u64,
    counter: &dyn Counter,
) -> Result<Cut, u64> {
    let total = Size::of(&item.content);
    let knife = Knife { item, around, format, max_tokens, counter, total };
    let nothing = knife.cut(0, CutUnit::Lines);
    if nothing.tokens > max_tokens {
        return Err(nothing.tokens);
    }
    Ok(knife
        .longest(CutUnit::Lines)
        .or_else(|| knife.longest(CutUnit::Characters))
        .unwrap_or(nothing))
}

/// The places where an item may be cut.
#[derive(Debug, Clone, Copy)]
enum CutUnit {
    /// After a `\n`.
    Lines,
    /// Between two characters of the first line.
    Characters,
}

/// The numbers of lines and characters of a text. The last line needs no `\n`.
struct Size {
    lines: u64,
    characters: u64,
}

impl Size {
    fn of(text: &str) -> Self {
        let open = u64::from(!text.is_empty() && !text.ends_with('\n'));
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        Self { lines: ends + open, characters: text.chars().count() as u64 }
    }
}

struct Knife<'a> {
    item: &'a Item,
    around: &'a Around,
    format: Format,
    max_tokens: u64,
    counter: &'a dyn Counter,
    total: Size,
}

impl Knife<'_> {
    /// Finds the longest beginning that fits; `None` if not even one line or character fits.
    ///
    /// The first guesses are a few bytes per token of the budget, so that the cost depends on the
    /// budget and not on the item.
    fn longest(&self, unit: CutUnit) -> Option<Cut> {
        let reach = usize::try_from(self.max_tokens).unwrap_or(usize::MAX).saturating_mul(4);
        let (mut fits, mut exceeds) = (0, self.end(unit));
        let mut best = None;
        loop {
            let guess = usize::midpoint(fits, exceeds).min(reach.max(fits.saturating_mul(2)));
            let Some(at) = self.place(unit, fits, guess, exceeds) else { return best };
            let cut = self.cut(at, unit);
            if cut.tokens <= self.max_tokens {
                (fits, best) = (at, Some(cut));
            } else {
                exceeds = at;
            }
        }
    }

    /// Returns the end, in bytes, of the part of the content in which `unit` allows cuts.
    fn end(&self, unit: CutUnit) -> usize {
        let content = &self.item.content;
        match unit {
            CutUnit::Lines => content.len(),
            CutUnit::Characters => content.find('\n').unwrap_or(content.len()),
        }
    }

    /// Returns a place to cut near `guess`, strictly between `low` and `high`, if there is one.
    fn place(&self, unit: CutUnit, low: usize, guess: usize, high: usize) -> Option<usize> {
        let content = &*self.item.content;
        let bytes = content.as_bytes();
        let (before, after) = match unit {
            CutUnit::Lines => {
                let before = memchr::memrchr(b'\n', &bytes[low..guess]).map(|at| low + at + 1);
                let after = || memchr::memchr(b'\n', &bytes[guess..high]).map(|at| guess + at + 1);
                (before, before.is_none().then(after).flatten())
            }
            CutUnit::Characters => {
                let guess = guess.max(low);
                (
                    Some(content.floor_char_boundary(guess)),
                    Some(content.ceil_char_boundary(guess + 1)),
                )
            }
        };
        [before, after].into_iter().flatten().find(|at| low < *at && *at < high)
    }

    /// Returns the text with the first `at` bytes of the content.
    fn cut(&self, at: usize, unit: CutUnit) -> Cut {
        let kept = &self.item.content[..at];
        let size = Size::of(kept);
        let (lines, characters) = (self.total.lines, self.total.characters);
        let (missing, lines_kept, unit, end) = match unit {
            CutUnit::Lines => (lines - size.lines, size.lines, format!("{lines} lines"), ""),
            CutUnit::Characters => {
                (characters - size.characters, 0, format!("{characters} characters"), "\n")
            }
        };
        let body = format!("{kept}{end}[… {missing} of {unit} left out to fit the token budget]\n");
        let mut section = String::with_capacity(body.len());
        section_with(self.item, &body, self.format, &mut section);
        let text = [&*self.around.before, &section, &self.around.after].concat();
        Cut { tokens: self.counter.count(&text), text, section, lines_kept, lines_total: lines }
    }
}
