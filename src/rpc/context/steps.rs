//! The method that says what undo and redo would do to a manager.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::item::{Item, Kind, Metadata};
use crate::engine::NextStep;
use crate::ids::ItemId;
use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::params::ManagerName;
use crate::store::Way;
use crate::wire::message::WireError;

/// Maximum number of items in the description of a change.
const ITEMS_TOLD: usize = 3;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ManagerCall {
    manager: Option<ManagerName>,
}

/// The changes that would be undone or redone next.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NextChanges")]
pub(super) struct NextChanges {
    /// The change that `undo` would undo; `nil` if there is none.
    next_undo: Option<NextChange>,
    /// The change that `redo` would redo; `nil` if there is none.
    next_redo: Option<NextChange>,
}

/// A change that would be undone or redone next.
#[derive(Serialize, JsonSchema)]
pub(super) struct NextChange {
    /// Method that made the change.
    method: String,
    /// Number of items that the change adds, removes or alters.
    count: usize,
    /// The first of the changed items, at most three.
    items: Vec<ChangedItem>,
    /// Name of the set that the change saved or dropped; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<String>,
}

/// An item in a change.
#[derive(Serialize, JsonSchema)]
struct ChangedItem {
    /// Id of the item.
    id: ItemId,
    /// Type of the content.
    r#type: Kind,
    /// Metadata of the item; `nil` if it has none.
    #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
    metadata: Metadata,
}

pub(super) fn next_changes(_: Call, given: ManagerCall) -> Result<Step, WireError> {
    let manager = given.manager.unwrap_or_default().0;
    Step::state(move |engine| {
        Ok(NextChanges {
            next_undo: engine.next_step(&manager, Way::Undo)?.map(NextChange::from),
            next_redo: engine.next_step(&manager, Way::Redo)?.map(NextChange::from),
        })
    })
}

impl From<NextStep> for NextChange {
    fn from(NextStep { method, items, set }: NextStep) -> Self {
        let count = items.len();
        let told = |item: &Arc<Item>| ChangedItem {
            id: item.id,
            r#type: item.kind,
            metadata: item.metadata.clone(),
        };
        Self { method, count, items: items.iter().take(ITEMS_TOLD).map(told).collect(), set }
    }
}
