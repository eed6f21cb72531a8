//! A text that fits a number of tokens, with a report of what was left out.
//!
//! It knows how to choose and to cut; what a section looks like it leaves to the formats, and what
//! a token is to the counter. Counts of parts are only a guess at the count of the whole (a token
//! may span two sections), so every promise is made on the count of the whole text.

use super::cut::{self, Around};
use super::report::{Fate, Reason, Verdict};
use super::{Format, footer, header, section, separator};
use crate::context::item::Item;
use crate::tokens::Counter;

/// One item to be rendered.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The item.
    pub item: &'a Item,
    /// Whether it stays as long as anything that is not pinned could go instead.
    pub pinned: bool,
}

/// A text within its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitted {
    /// The whole text.
    pub text: String,
    /// Exactly the tokens of `text`, by the counter that was given.
    pub tokens: u64,
    /// What became of each piece, in the order of the pieces.
    pub report: Vec<Verdict>,
}

/// Not even the least that can be shown of the items fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a budget of {max_tokens} tokens is too small, these items need at least {needed}")]
pub struct BudgetTooSmall {
    /// A budget with which the same call gives a text.
    pub needed: u64,
    /// The budget that was given.
    pub max_tokens: u64,
}

/// Renders `pieces`, oldest first, in at most `max_tokens` tokens; `None` is no limit.
///
/// Whole items go until the rest fits: the unpinned, oldest first, then the pinned, oldest first.
/// The item that would be the last to go, and the newest beside pinned ones, is cut instead: its
/// first lines stay (or, of a first line that is too long, its first characters), and a line in
/// its body says how much is missing. Everything is kept when everything fits.
///
/// # Errors
///
/// [`BudgetTooSmall`] when the frame of the text, the last item's heading and the line that says
/// what is missing are too much together.
pub fn fit(
    pieces: &[Piece<'_>],
    format: Format,
    max_tokens: Option<u64>,
    counter: &dyn Counter,
) -> Result<Fitted, BudgetTooSmall> {
    let mut draft = Draft::new(pieces, format, counter);
    let fitting = match max_tokens {
        None => draft.text_of(pieces.len()),
        Some(max_tokens) => draft.most_within(max_tokens),
    };
    let Some(max_tokens) = max_tokens else { return Ok(draft.with_whole(fitting, None)) };
    if pieces.is_empty() && fitting.tokens > max_tokens {
        return Err(BudgetTooSmall { needed: fitting.tokens, max_tokens });
    }
    match draft.with_cut(fitting.kept, max_tokens) {
        Some(Err(needed)) if fitting.kept == 0 => Err(BudgetTooSmall { needed, max_tokens }),
        Some(Ok(cut)) => Ok(cut),
        _ => Ok(draft.with_whole(fitting, Some(max_tokens))),
    }
}

/// By how many tokens, for each of them, parts counted by themselves may exceed their text: an
/// estimate rounds each part up, and byte pairs of JSON can join the brackets of two sections. Only
/// how much is kept depends on it, never whether the text fits.
const JOINT: u64 = 4;

/// The pieces on their way into a text.
struct Draft<'a> {
    pieces: &'a [Piece<'a>],
    format: Format,
    counter: &'a dyn Counter,
    /// Indices of the pieces; whoever is first here is the last to go.
    keeping: Vec<usize>,
    /// What has been rendered so far, by index of the piece.
    sections: Vec<Option<Section>>,
}

#[derive(Clone)]
struct Section {
    text: String,
    tokens: u64,
}

/// A text of the first `kept` pieces of [`Draft::keeping`].
struct Whole {
    kept: usize,
    text: String,
    tokens: u64,
}

impl<'a> Draft<'a> {
    fn new(pieces: &'a [Piece<'a>], format: Format, counter: &'a dyn Counter) -> Self {
        let newest_first = |pinned: bool| {
            (0..pieces.len()).rev().filter(move |index| pieces[*index].pinned == pinned)
        };
        let keeping = newest_first(true).chain(newest_first(false)).collect();
        Self { pieces, format, counter, keeping, sections: vec![None; pieces.len()] }
    }

    /// The text that keeps the most and still fits; it keeps 0 pieces when not even one fits.
    fn most_within(&mut self, max_tokens: u64) -> Whole {
        let mut sums = self.sums(max_tokens);
        let beyond = sums.split_off(sums.partition_point(|sum| *sum <= max_tokens));
        let mut best = self.text_of(sums.len());
        while best.tokens > max_tokens && best.kept > 0 {
            best = self.text_of(best.kept - 1);
        }
        if best.kept < sums.len() {
            return best;
        }
        for _ in beyond {
            let more = self.text_of(best.kept + 1);
            if more.tokens > max_tokens {
                break;
            }
            best = more;
        }
        best
    }

    /// The tokens of the first one, two, three … pieces to keep, parts counted by themselves, as
    /// far as their text may fit.
    fn sums(&mut self, max_tokens: u64) -> Vec<u64> {
        let mut sums = Vec::with_capacity(self.pieces.len());
        let frame = [header(self.format), footer(self.format)];
        let mut sum: u64 = frame.iter().map(|part| self.counter.count(part)).sum();
        for (parts, index) in (3..).zip(self.keeping.clone()) {
            sum += self.section(index).tokens;
            if sum > max_tokens.saturating_add(JOINT * parts) {
                break;
            }
            sums.push(sum);
        }
        sums
    }

    fn text_of(&mut self, kept: usize) -> Whole {
        let mut chosen = self.keeping[..kept].to_vec();
        chosen.sort_unstable();
        let mut text = String::from(header(self.format));
        for (position, index) in chosen.into_iter().enumerate() {
            if position > 0 {
                text.push_str(separator(self.format));
            }
            text.push_str(&self.section(index).text);
        }
        text.push_str(footer(self.format));
        Whole { kept, tokens: self.counter.count(&text), text }
    }

    /// The section of the piece at `index`, rendered and counted once.
    fn section(&mut self, index: usize) -> &Section {
        let (format, counter) = (self.format, self.counter);
        self.sections[index].get_or_insert_with(|| {
            let mut text = String::new();
            section(self.pieces[index].item, format, &mut text);
            Section { tokens: counter.count(&text), text }
        })
    }

    fn with_whole(&mut self, whole: Whole, budget: Option<u64>) -> Fitted {
        let report = self.report(whole.kept, whole.kept, budget);
        Fitted { text: whole.text, tokens: whole.tokens, report }
    }

    /// The first `kept` pieces whole and the next one cut, when that is to be cut rather than to
    /// go; an error is the number of tokens that would do.
    fn with_cut(&mut self, kept: usize, max_tokens: u64) -> Option<Result<Fitted, u64>> {
        let index = *self.keeping.get(kept)?;
        let pinned = |index: &usize| self.pieces[*index].pinned;
        let newest_beside_pinned = !pinned(&index) && self.keeping[..kept].iter().all(pinned);
        if kept > 0 && !newest_beside_pinned {
            return None;
        }
        let item = self.pieces[index].item;
        let around = self.around(index, kept);
        let cut = match cut::to_fit(item, &around, self.format, max_tokens, self.counter) {
            Ok(cut) => cut,
            Err(least) => return Some(Err(least.min(self.text_of(kept + 1).tokens))),
        };
        let mut report = self.report(kept, kept + 1, Some(max_tokens));
        let reason = if kept == 0 { Reason::TooBig } else { Reason::TooBigBesidePinned };
        report[index] = Verdict {
            id: item.id,
            tokens: self.counter.count(&cut.section),
            fate: Fate::Cut { lines_kept: cut.lines_kept, lines_total: cut.lines_total },
            reason: reason.phrase(Some(max_tokens)),
        };
        Some(Ok(Fitted { text: cut.text, tokens: cut.tokens, report }))
    }

    /// The text of the first `kept` pieces, open at the place of the piece at `index`.
    fn around(&mut self, index: usize, kept: usize) -> Around {
        let mut chosen = self.keeping[..kept].to_vec();
        chosen.sort_unstable();
        let mut before = String::from(header(self.format));
        let mut after = String::new();
        for other in chosen {
            let text = &self.section(other).text.clone();
            if other < index {
                before.push_str(text);
                before.push_str(separator(self.format));
            } else {
                after.push_str(separator(self.format));
                after.push_str(text);
            }
        }
        after.push_str(footer(self.format));
        Around { before, after }
    }

    /// What becomes of each piece when the first `kept` ones of [`Draft::keeping`] are there whole,
    /// and the first `shown` at least in part.
    fn report(&mut self, kept: usize, shown: usize, budget: Option<u64>) -> Vec<Verdict> {
        let mut is_kept = vec![false; self.pieces.len()];
        for index in &self.keeping[..kept] {
            is_kept[*index] = true;
        }
        let unpinned_kept = self.keeping[..shown].iter().any(|index| !self.pieces[*index].pinned);
        let mut report = Vec::with_capacity(self.pieces.len());
        for (index, kept) in is_kept.into_iter().enumerate() {
            let Piece { item, pinned } = self.pieces[index];
            let (tokens, fate) =
                if kept { (self.section(index).tokens, Fate::Kept) } else { (0, Fate::Dropped) };
            let reason = match (kept, pinned) {
                (true, _) if budget.is_none() => Reason::NoBudget,
                (true, true) => Reason::Pinned,
                (true, false) => Reason::Fits,
                (false, true) => Reason::OlderThanPinned,
                (false, false) if unpinned_kept => Reason::Older,
                (false, false) => Reason::NoRoomBesidePinned,
            };
            report.push(Verdict { id: item.id, tokens, fate, reason: reason.phrase(budget) });
        }
        report
    }
}

#[cfg(test)]
mod tests;
