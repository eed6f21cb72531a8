//! Renders items within a budget, without items whose text is part of another rendered item.

use super::Format;
use super::budget::{BudgetTooSmall, Fitted, Piece, fit};
use super::report::{ItemFate, ItemVerdict};
use crate::context::item::ItemId;
use crate::context::repeat::covered;
use crate::tokens::Counter;

/// Renders items as [`fit`] does, but leaves out what another item in the text contains. Keeps the
/// part if the other item does not fit as a whole.
///
/// # Errors
/// Those of [`fit`].
pub(crate) fn fit_once(
    pieces: &[Piece<'_>],
    format: Format,
    max_tokens: Option<u64>,
    counter: &dyn Counter,
) -> Result<Fitted, BudgetTooSmall> {
    let mut by = covered(&pieces.iter().map(|piece| piece.item).collect::<Vec<_>>());
    if by.iter().all(Option::is_none) {
        return fit(pieces, format, max_tokens, counter);
    }
    let mut fitted = fit(&rest(pieces, &by), format, max_tokens, counter)?;
    let is_whole = |id: ItemId| {
        fitted.report.iter().any(|verdict| verdict.id == id && verdict.fate == ItemFate::Kept)
    };
    let kept = by.clone();
    by.iter_mut().for_each(|by| *by = by.filter(|id| is_whole(*id)));
    if by != kept {
        fitted = fit(&rest(pieces, &by), format, max_tokens, counter)?;
    }
    Ok(reported(pieces, &by, fitted))
}

fn rest<'a>(pieces: &[Piece<'a>], by: &[Option<ItemId>]) -> Vec<Piece<'a>> {
    let pieces = pieces.iter().zip(by).filter(|(_, by)| by.is_none());
    pieces.map(|(piece, _)| Piece { ..*piece }).collect()
}

/// Adds the covered items to the report.
fn reported(pieces: &[Piece<'_>], by: &[Option<ItemId>], fitted: Fitted) -> Fitted {
    let mut verdicts = fitted.report.into_iter();
    let verdict = |(piece, by): (&Piece<'_>, &Option<ItemId>)| match by {
        None => verdicts.next(),
        Some(by) => Some(ItemVerdict {
            id: piece.item.id,
            tokens: 0,
            fate: ItemFate::Dropped,
            // Emacs tells covered items by the first word.
            reason: format!("covered by {by}, which contains it"),
        }),
    };
    let report = pieces.iter().zip(by).filter_map(verdict).collect();
    Fitted { report, ..fitted }
}
