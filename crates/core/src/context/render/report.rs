//! The report on each item of a text that was rendered within a budget.

use crate::context::item::ItemId;
use crate::wording::counted;

/// The outcome for one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemVerdict {
    /// Id of the item.
    pub id: ItemId,
    /// Tokens of the item's section, counted by itself; 0 if the item is not in the text.
    pub tokens: u64,
    /// Outcome for the item.
    pub fate: ItemFate,
    /// Reason for the outcome, as a readable phrase.
    pub reason: String,
}

/// The part of an item that is in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFate {
    /// The whole item, verbatim.
    Kept,
    /// The beginning of the item, and a line that says how much is missing.
    Cut {
        /// Number of whole lines; 0 if even the first line had to be cut.
        lines_kept: u64,
        /// Number of lines of the item.
        lines_total: u64,
    },
    /// No part of the item.
    Dropped,
}

/// The reason for the outcome of an item.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reason {
    NoBudget,
    Fits,
    Pinned,
    Older,
    NoRoomBesidePinned,
    OlderThanPinned,
    TooBig,
    TooBigBesidePinned,
    TooBigBesideOthers,
}

impl Reason {
    /// Returns the reason as a phrase, which names `budget`, in tokens, where the budget decided.
    pub(super) fn phrase(self, budget: Option<u64>) -> String {
        let any = || "any number of tokens".to_owned();
        let within = budget.map_or_else(any, |tokens| counted(tokens, "token"));
        match self {
            Self::NoBudget => "there is no budget".to_owned(),
            Self::Fits => format!("fits in {within}"),
            Self::Pinned => format!("pinned, and fits in {within}"),
            Self::Older => format!("older than the items that fit in {within}"),
            Self::NoRoomBesidePinned => {
                format!("not pinned, and the pinned items leave no room for it in {within}")
            }
            Self::OlderThanPinned => {
                format!("pinned, but older than the pinned items that fit in {within}")
            }
            Self::TooBig => format!("too large for {within} even by itself"),
            Self::TooBigBesidePinned => {
                format!("too large for what the pinned items leave of {within}")
            }
            Self::TooBigBesideOthers => {
                format!("too large for what the other items leave of {within}")
            }
        }
    }
}
