//! Items as clients see them.

use serde::Serialize;

use crate::context::item::{Item, Kind, Metadata, State};
use crate::engine::View;
use crate::ids::ItemId;
use crate::value::Keyword;

/// An item with its standing.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ItemShown<'a> {
    id: ItemId,
    r#type: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    metadata: &'a Metadata,
    timestamp: i64,
    tokens: u64,
    token_counter: Keyword<&'static str>,
    bytes: usize,
    pinned: bool,
    live: bool,
    state: State,
}

impl<'a> ItemShown<'a> {
    /// Shows an item, without its content if `brief`.
    pub(super) fn new(view: &'a View, state: State, brief: bool) -> Self {
        let Item { id, kind, content, metadata, timestamp, tokens, counted_by, live, .. } =
            &*view.item;
        Self {
            id: *id,
            r#type: *kind,
            content: (!brief).then_some(&**content),
            metadata,
            timestamp: *timestamp,
            tokens: *tokens,
            token_counter: Keyword(counted_by),
            bytes: content.len(),
            pinned: view.pinned,
            live: *live,
            state,
        }
    }
}
