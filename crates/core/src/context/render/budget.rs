//! Fits a text into a token budget, and reports the parts left out.
//!
//! This module chooses and cuts. The formats decide what a section looks like, and the counter
//! decides what a token is. The counts of parts are only a guess at the count of the whole (a token
//! may span two sections), so every promise is about the count of the whole text.

use std::cmp::Reverse;

use super::cut::{self, Around};
use super::report::{ItemFate, ItemVerdict, Reason};
use super::{Format, form, section};
use crate::context::item::Item;
use crate::tokens::Counter;
use crate::wording::counted;

/// One item to render.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The item.
    pub item: &'a Item,
    /// True if the item is dropped only after all unpinned items.
    pub pinned: bool,
    /// Time that decides the age of the item: of two items, the one with the earlier time is
    /// dropped first. If the times are equal, the piece that comes first is dropped first.
    pub since: i64,
}

/// A text within its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitted {
    /// The whole text.
    pub text: String,
    /// Exact number of tokens of `text`, by the given counter.
    pub tokens: u64,
    /// Outcome for each piece, in the order of the pieces.
    pub report: Vec<ItemVerdict>,
}

/// The error for a budget that is too small even for the smallest part of the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a budget of {} is too small: these items need at least {needed}",
    counted(*.max_tokens, "token")
)]
pub struct RenderBudgetTooSmall {
    /// A budget with which the same call succeeds, in tokens.
    pub needed: u64,
    /// Budget that was given, in tokens.
    pub max_tokens: u64,
}

/// Renders `pieces`, in their order, in at most `max_tokens` tokens. `None` means no limit.
///
/// Whole items are dropped until the rest fits: first the unpinned ones, then the pinned ones. In
/// each group, items that are larger than the budget go first, since no budget is left beside them,
/// and then the oldest. If everything fits, everything is kept.
///
/// The next item to drop is cut instead in three cases: no whole item would be left; only pinned
/// items are kept whole; or all items that are not larger than the budget are kept. The first lines
/// of a cut item stay, or the first characters if the first line is too long. A line in its body
/// says how much is missing.
///
/// # Errors
///
/// [`RenderBudgetTooSmall`] if the frame of the text does not fit together with the heading of the item
/// that would be dropped last and the line about its missing part; without items, if the frame
/// alone does not fit.
pub fn fit(
    pieces: &[Piece<'_>],
    format: Format,
    max_tokens: Option<u64>,
    counter: &dyn Counter,
) -> Result<Fitted, RenderBudgetTooSmall> {
    let mut draft = Draft::new(pieces, format, max_tokens, counter);
    let fitting = match max_tokens {
        None => draft.text_of(pieces.len()),
        Some(max_tokens) => draft.most_within(max_tokens),
    };
    let Some(max_tokens) = max_tokens else { return Ok(draft.with_whole(fitting, None)) };
    if pieces.is_empty() && fitting.tokens > max_tokens {
        return Err(RenderBudgetTooSmall { needed: fitting.tokens, max_tokens });
    }
    match draft.with_cut(fitting.kept, max_tokens) {
        Some(Err(needed)) if fitting.kept == 0 => {
            // Other items may be cut at that budget, with marks and fences of another length.
            let more = fit(pieces, format, Some(needed), counter).err();
            let needed = more.map_or(needed, |error| error.needed);
            Err(RenderBudgetTooSmall { needed, max_tokens })
        }
        Some(Ok(cut)) => Ok(cut),
        _ => Ok(draft.with_whole(fitting, Some(max_tokens))),
    }
}

/// Tolerance in tokens for each part: the sum of separate counts may exceed the count of the whole
/// text by this much per part. An estimate rounds each part up, and in JSON, one token can contain
/// the brackets of two sections. This affects only how much is kept, and never whether the text
/// fits.
const JOINT: u64 = 4;

/// A text that is being built from pieces.
struct Draft<'a> {
    pieces: &'a [Piece<'a>],
    format: Format,
    counter: &'a dyn Counter,
    /// Indices of the pieces, in order of importance: the last one is dropped first.
    keeping: Vec<usize>,
    /// Sections rendered so far, by index of the piece.
    sections: Vec<Option<BudgetSection>>,
    /// For each piece, true if it is larger than the budget by itself.
    is_large: Vec<bool>,
}

#[derive(Clone)]
struct BudgetSection {
    text: String,
    tokens: u64,
}

/// A text of the first `kept` pieces of [`Draft::keeping`].
struct DraftText {
    kept: usize,
    text: String,
    tokens: u64,
}

impl<'a> Draft<'a> {
    fn new(
        pieces: &'a [Piece<'a>],
        format: Format,
        max_tokens: Option<u64>,
        counter: &'a dyn Counter,
    ) -> Self {
        let mut draft = Self {
            pieces,
            format,
            counter,
            keeping: (0..pieces.len()).collect(),
            sections: vec![None; pieces.len()],
            is_large: vec![false; pieces.len()],
        };
        if let Some(max_tokens) = max_tokens {
            for (index, piece) in pieces.iter().enumerate() {
                // A token has at least one byte, so a short text need not be counted.
                draft.is_large[index] = piece.item.content.len() as u64 > max_tokens
                    && draft.section(index).tokens > max_tokens;
            }
        }
        let is_large = &draft.is_large;
        draft.keeping.sort_by_key(|index| {
            let piece = pieces[*index];
            Reverse((piece.pinned, !is_large[*index], piece.since, *index))
        });
        draft
    }

    /// Builds the text with the largest number of pieces that fit, which may be 0.
    fn most_within(&mut self, max_tokens: u64) -> DraftText {
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

    /// Returns the number of tokens of a text that keeps the first piece, of one that keeps the
    /// first two, and so on, as long as the text may fit. Each number is a sum of separate counts
    /// of the text's parts.
    fn sums(&mut self, max_tokens: u64) -> Vec<u64> {
        let mut sums = Vec::with_capacity(self.pieces.len());
        let ([header, _, footer], _) = form(self.format);
        let mut sum = self.counter.count(header) + self.counter.count(footer);
        for (parts, index) in (3..).zip(self.keeping.clone()) {
            sum += self.section(index).tokens;
            if sum > max_tokens.saturating_add(JOINT * parts) {
                break;
            }
            sums.push(sum);
        }
        sums
    }

    fn text_of(&mut self, kept: usize) -> DraftText {
        let mut chosen = self.keeping[..kept].to_vec();
        chosen.sort_unstable();
        let ([header, separator, footer], _) = form(self.format);
        let mut text = String::from(header);
        for (position, index) in chosen.into_iter().enumerate() {
            if position > 0 {
                text.push_str(separator);
            }
            text.push_str(&self.section(index).text);
        }
        text.push_str(footer);
        DraftText { kept, tokens: self.counter.count(&text), text }
    }

    /// Returns the section of the piece at `index`, rendered and counted once.
    fn section(&mut self, index: usize) -> &BudgetSection {
        let (format, counter) = (self.format, self.counter);
        self.sections[index].get_or_insert_with(|| {
            let mut text = String::new();
            section(self.pieces[index].item, format, &mut text);
            BudgetSection { tokens: counter.count(&text), text }
        })
    }

    fn with_whole(&mut self, whole: DraftText, budget: Option<u64>) -> Fitted {
        let report = self.report(whole.kept, whole.kept, budget);
        Fitted { text: whole.text, tokens: whole.tokens, report }
    }

    /// Builds a text of the first `kept` whole pieces and the beginning of the next piece. Returns
    /// `None` if the next piece must be dropped as a whole. As an error, returns the number of
    /// tokens that would be enough.
    fn with_cut(&mut self, kept: usize, max_tokens: u64) -> Option<Result<Fitted, u64>> {
        let index = *self.keeping.get(kept)?;
        let pinned = |index: &usize| self.pieces[*index].pinned;
        let newest_beside_pinned = !pinned(&index) && self.keeping[..kept].iter().all(pinned);
        if kept > 0 && !newest_beside_pinned && !self.is_large[index] {
            return None;
        }
        let item = self.pieces[index].item;
        let around = self.around(index, kept);
        let cut = match cut::to_fit(item, &around, self.format, max_tokens, self.counter) {
            Ok(cut) => cut,
            Err(least) => return Some(Err(least.min(self.text_of(kept + 1).tokens))),
        };
        let mut report = self.report(kept, kept + 1, Some(max_tokens));
        let reason = match kept {
            0 => Reason::TooBig,
            _ if newest_beside_pinned => Reason::TooBigBesidePinned,
            _ => Reason::TooBigBesideOthers,
        };
        report[index] = ItemVerdict {
            id: item.id,
            tokens: self.counter.count(&cut.section),
            fate: ItemFate::Cut { lines_kept: cut.lines_kept, lines_total: cut.lines_total },
            reason: reason.phrase(Some(max_tokens)),
        };
        Some(Ok(Fitted { text: cut.text, tokens: cut.tokens, report }))
    }

    /// Returns the text of the first `kept` pieces, split where the piece at `index` belongs.
    fn around(&mut self, index: usize, kept: usize) -> Around {
        let mut chosen = self.keeping[..kept].to_vec();
        chosen.sort_unstable();
        let ([header, separator, footer], _) = form(self.format);
        let mut before = String::from(header);
        let mut after = String::new();
        for other in chosen {
            let text = &self.section(other).text.clone();
            if other < index {
                before.push_str(text);
                before.push_str(separator);
            } else {
                after.push_str(separator);
                after.push_str(text);
            }
        }
        after.push_str(footer);
        Around { before, after }
    }

    /// Reports the outcome for each piece. The first `kept` pieces of [`Draft::keeping`] are whole
    /// in the text, and the first `shown` pieces are there at least in part.
    fn report(&mut self, kept: usize, shown: usize, budget: Option<u64>) -> Vec<ItemVerdict> {
        let mut is_kept = vec![false; self.pieces.len()];
        for index in &self.keeping[..kept] {
            is_kept[*index] = true;
        }
        let unpinned_kept = self.keeping[..shown].iter().any(|index| !self.pieces[*index].pinned);
        let mut report = Vec::with_capacity(self.pieces.len());
        for (index, kept) in is_kept.into_iter().enumerate() {
            let Piece { item, pinned, .. } = self.pieces[index];
            let (tokens, fate) = if kept {
                (self.section(index).tokens, ItemFate::Kept)
            } else {
                (0, ItemFate::Dropped)
            };
            let reason = match (kept, pinned) {
                (true, _) if budget.is_none() => Reason::NoBudget,
                (true, true) => Reason::Pinned,
                (true, false) => Reason::Fits,
                (false, false) if self.is_large[index] && unpinned_kept => {
                    Reason::TooBigBesideOthers
                }
                (false, true) => Reason::OlderThanPinned,
                (false, false) if unpinned_kept => Reason::Older,
                (false, false) => Reason::NoRoomBesidePinned,
            };
            report.push(ItemVerdict { id: item.id, tokens, fate, reason: reason.phrase(budget) });
        }
        report
    }
}

#[cfg(test)]
mod tests;
