//! The method that changes items: what the user changes, and what an editor has in its buffers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::check_live;
use super::live::{self, ItemUpdate, UpdatedItems};
use crate::agent::items::ItemAnswer;
use crate::agent::refresh::now_ms;
use crate::context::item::{ANCHOR, AS_OF, Item, Kind, Metadata, STALE};
use crate::engine::{ItemChanges, Reach};
use crate::ids::ItemId;
use crate::rpc::call::MethodCall;
use crate::rpc::error::param_error;
use crate::rpc::params::{self, KnownMetadata, ManagerName, Switch, given_list, ids};
use crate::rpc::{Finish, Step};
use crate::tokens::Counter;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct UpdateItems {
    /// Id of the item.
    id: Option<ItemId>,
    /// Ids of several items, which all change in the same way. `:id`, `:ids` or `:items` is
    /// required.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<Vec<ItemId>>,
    manager: Option<ManagerName>,
    /// New text.
    content: Option<String>,
    /// New type.
    r#type: Option<Kind>,
    /// New metadata, which replaces all of the old metadata.
    #[schemars(with = "Option<KnownMetadata>")]
    metadata: Option<Value>,
    /// Follow the file: bring the items up to date whenever they are shown. With `nil`, make the
    /// items copies, with the date of their text.
    #[serde(default)]
    live: Switch,
    /// Pin the items, which exempts them from eviction. With `nil`, unpin them.
    #[serde(default)]
    pinned: Switch,
    /// Texts that an editor has in its buffers, for live items. Each has the `:id` of the item, its
    /// `:content` if that changed, and in `:metadata` the entries that changed; `nil` removes an
    /// entry. `:manager` is the item's manager, if that is not the manager of the call.
    #[serde(default, deserialize_with = "given_list")]
    items: Option<Vec<ItemUpdate>>,
    /// Leave the content out of the result.
    brief: Option<bool>,
}

pub(super) fn update_items(call: MethodCall, given: UpdateItems) -> Result<Step, WireError> {
    let manager = given.manager.unwrap_or_default().0;
    let metadata = given.metadata.map(|value| params::metadata(Some(value))).transpose()?;
    let counter = call.counter();
    let content = given.content.map(|content| {
        let tokens = counter.count(&content);
        (content.into(), tokens, counter.name(), now_ms())
    });
    let (live, pinned) = (given.live.0, given.pinned.0);
    let revision = ItemChanges { content, kind: given.r#type, metadata, live, pinned };
    if let Some(items) = given.items {
        let is_alone = given.id.is_none() && given.ids.is_none();
        return match is_alone && revision == ItemChanges::default() {
            true => live::take_texts(call, items, manager),
            false => Err(param_error("items", "can be combined only with the parameter manager")),
        };
    }
    let one = given.id;
    let ids = ids(one, given.ids)?;
    let brief = given.brief.unwrap_or(false);
    Step::then_within(Reach::Manager(manager.clone()), move |engine| {
        let mut revisions = BTreeMap::new();
        for id in ids {
            let item = engine.view(&manager, id)?.item;
            match revised(&item, revision.clone()) {
                Ok(revision) => revisions.insert(id, revision),
                Err(error) => return Ok(Finish::Refused(error)),
            };
        }
        let updated = revisions.len();
        engine.update(name_of(&revision), &manager, revisions.into_iter().collect())?;
        let item = one.map(|id| ItemAnswer::of(engine, &manager, id, brief)).transpose()?;
        let bytes = item.as_ref().map_or(0, ItemAnswer::bytes);
        let outcome = UpdatedItems { updated, skipped: Vec::new(), item };
        Ok(Finish::of_size(bytes, move || Value::of(&outcome)))
    })
}

/// Returns the name of a change, which `undo` tells.
fn name_of(revision: &ItemChanges) -> &'static str {
    match revision {
        revision if revision.is_only_pin() => "pin-items",
        revision if revision.live.is_some() && revision.is_only_live() => "freeze-items",
        _ => "update-items",
    }
}

/// Returns the change to one item. A copy gets the date of its text. New metadata for the same place
/// keep what the server has noted about the place. Fails if the item cannot follow a file.
fn revised(item: &Item, revision: ItemChanges) -> Result<ItemChanges, WireError> {
    if revision.metadata.is_none() && revision.live.is_none() {
        return Ok(revision);
    }
    let mut metadata = revision.metadata.clone().unwrap_or_else(|| item.metadata.clone());
    let place = |of: &Metadata| (of.filename().map(str::to_owned), of.lines());
    if let Some(anchor) = item.metadata.get(ANCHOR)
        && place(&metadata) == place(&item.metadata)
    {
        metadata.set(ANCHOR, anchor.clone());
    }
    if revision.live == Some(true) {
        check_live(&metadata)?;
    }
    let taken_ms = revision.content.as_ref().map_or(item.taken_ms, |(.., taken_ms)| *taken_ms);
    // What the user wrote has no source, so its date would say nothing.
    if let Some(live) = revision.live
        && (revision.content.is_none() || metadata.display_name().is_some())
    {
        date(&mut metadata, taken_ms, live);
    }
    Ok(ItemChanges { metadata: Some(metadata), ..revision })
}

/// Changes the metadata of an item that becomes a copy, or follows its file again.
fn date(metadata: &mut Metadata, taken_ms: i64, live: bool) {
    metadata.remove(STALE);
    // The text of a buffer without a file is dated even while an editor follows it.
    if !live || metadata.copied_buffer().is_some() {
        metadata.set(AS_OF, Value::Int(taken_ms.div_euclid(1000)));
    } else {
        metadata.remove(AS_OF);
    }
}
