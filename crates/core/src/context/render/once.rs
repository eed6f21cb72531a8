//! Renders items within a budget, without items whose text is part of another rendered item.

use super::Format;
use super::budget::{Fitted, Piece, RenderBudgetTooSmall, fit};
use super::report::{ItemFate, ItemVerdict};
use crate::context::item::{Item, ItemId};
use crate::context::overlap::shortened;
use crate::context::repeat::covered;
use crate::tokens::Counter;

/// Renders items as [`fit`] does, but leaves out what another item in the text contains, and the lines
/// that a later item has, too. Keeps both if the other item does not fit as a whole.
///
/// # Errors
/// Those of [`fit`].
pub fn fit_once(
    pieces: &[Piece<'_>],
    format: Format,
    max_tokens: Option<u64>,
    counter: &dyn Counter,
) -> Result<Fitted, RenderBudgetTooSmall> {
    let mut by = covered(&pieces.iter().map(|piece| piece.item).collect::<Vec<_>>());
    let mut fitted = fit_apart(&rest(pieces, &by), format, max_tokens, counter)?;
    if by.iter().all(Option::is_none) {
        return Ok(fitted);
    }
    let is_whole = |id: ItemId| {
        fitted.report.iter().any(|verdict| verdict.id == id && verdict.fate == ItemFate::Kept)
    };
    let kept = by.clone();
    by.iter_mut().for_each(|by| *by = by.filter(|id| is_whole(*id)));
    if by != kept {
        fitted = fit_apart(&rest(pieces, &by), format, max_tokens, counter)?;
    }
    Ok(reported(pieces, &by, fitted))
}

/// Renders items without the lines that later items have, too. An item stays whole if one of these
/// does not fit as a whole.
fn fit_apart(
    pieces: &[Piece<'_>],
    format: Format,
    max_tokens: Option<u64>,
    counter: &dyn Counter,
) -> Result<Fitted, RenderBudgetTooSmall> {
    let items: Vec<&Item> = pieces.iter().map(|piece| piece.item).collect();
    let mut cut = shortened(&items, |text| counter.count(text));
    loop {
        let shown = pieces.iter().zip(&cut).map(|(piece, cut)| {
            let item = cut.as_ref().map_or(piece.item, |cut| &cut.item);
            Piece { item, ..*piece }
        });
        let fitted = fit(&shown.collect::<Vec<_>>(), format, max_tokens, counter)?;
        let is_whole =
            |id: &ItemId| fitted.report.iter().any(|it| it.id == *id && it.fate == ItemFate::Kept);
        let count = cut.iter().flatten().count();
        cut.iter_mut().for_each(|cut| {
            cut.take_if(|cut| !cut.others.iter().all(is_whole));
        });
        if cut.iter().flatten().count() == count {
            return Ok(fitted);
        }
    }
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
