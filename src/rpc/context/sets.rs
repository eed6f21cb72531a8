//! Methods about named sets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::ItemId;
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::params::{ManagerName, Name, Nothing};
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct SetCall {
    /// Name of the set.
    name: Name,
    manager: Option<ManagerName>,
    /// Delete the set.
    drop: Option<bool>,
}

/// A saved set.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SavedSet")]
pub(super) struct SavedSetResult {
    /// Name of the set.
    name: String,
    /// Number of items in the set.
    count: u64,
    /// True if a set with this name was replaced; `undo` restores that set.
    replaced: bool,
}

/// A deleted set.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DroppedSet")]
pub(super) struct Dropped {
    /// Name of the set.
    name: String,
    /// Always true.
    dropped: bool,
}

pub(super) fn save_set(_: MethodCall, given: SetCall) -> Result<Step, WireError> {
    let manager = given.manager.unwrap_or_default().0;
    Step::state(move |engine| {
        let name = given.name.0;
        if given.drop.unwrap_or(false) {
            engine.drop_set(&manager, &name)?;
            return Ok(Value::of(&Dropped { name, dropped: true }));
        }
        let saved = engine.save_set(&manager, &name)?;
        Ok(Value::of(&SavedSetResult { name, count: saved.count, replaced: saved.replaced }))
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct LoadSet {
    /// Name of the set.
    name: Name,
    /// What to do with the manager's current items; defaults to `:replace`.
    mode: Option<LoadMode>,
    manager: Option<ManagerName>,
}

/// What to do with the manager's current items.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum LoadMode {
    Replace,
    Append,
}

/// A loaded set.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LoadedSet")]
pub(super) struct LoadedSetResult {
    /// Name of the set.
    name: String,
    /// Ids of the new items, in the set's order.
    ids: Vec<ItemId>,
    /// Ids of the items that left the manager, oldest first.
    left: Vec<ItemId>,
}

pub(super) fn load_set(_: MethodCall, given: LoadSet) -> Result<Step, WireError> {
    let manager = given.manager.unwrap_or_default().0;
    let mode = given.mode.unwrap_or(LoadMode::Replace);
    Step::state(move |engine| {
        let name = given.name.0;
        let loaded = match mode {
            LoadMode::Replace => engine.load_set(&manager, &name),
            LoadMode::Append => engine.append_set(&manager, &name),
        }?;
        Ok(LoadedSetResult { name, ids: ItemId::all(&loaded.ids), left: ItemId::all(&loaded.left) })
    })
}

pub(super) fn list_sets(_: MethodCall, _: Nothing) -> Result<Step, WireError> {
    Step::state(|engine| Ok(engine.read().sets()?))
}
