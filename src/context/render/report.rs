//! What became of each item in a text with a budget, and why. Data only.

use crate::context::item::ItemId;

/// What became of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The item.
    pub id: ItemId,
    /// The tokens of its section in the text, counted by itself; 0 when it is not in the text.
    pub tokens: u64,
    /// What became of it.
    pub fate: Fate,
    /// Why, as a phrase for people.
    pub reason: String,
}

/// How much of an item is in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// All of it, verbatim.
    Kept,
    /// Its beginning, and a line that says how much is missing.
    Cut {
        /// How many whole lines are there; 0 when even the first one had to be cut.
        lines_kept: u64,
        /// How many lines the item has.
        lines_total: u64,
    },
    /// Nothing of it.
    Dropped,
}

/// Why something became of an item.
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
}

impl Reason {
    /// The phrase for people; `budget` in tokens is named where it decided.
    pub(super) fn phrase(self, budget: Option<u64>) -> String {
        let within = budget.map_or_else(|| "any number of".to_owned(), |tokens| tokens.to_string());
        match self {
            Self::NoBudget => "there is no budget".to_owned(),
            Self::Fits => format!("fits {within} tokens"),
            Self::Pinned => format!("pinned, and fits {within} tokens"),
            Self::Older => format!("older than the items that fit {within} tokens"),
            Self::NoRoomBesidePinned => {
                format!("not pinned, and the pinned items leave no room for it in {within} tokens")
            }
            Self::OlderThanPinned => format!(
                "pinned, but the pinned items alone exceed {within} tokens and this one is older"
            ),
            Self::TooBig => format!("too big for {within} tokens even by itself"),
            Self::TooBigBesidePinned => {
                format!("too big for what the pinned items leave of {within} tokens")
            }
        }
    }
}
