//! Methods that change the items of a manager.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::secret::SecretPolicy;
use crate::agent::arriving::Arriving;
use crate::agent::items::{FileItem, ItemAnswer, new_item};
use crate::agent::refresh::now_ms;
use crate::context::change::ContextSettings;
use crate::context::item::{Kind, Metadata};
use crate::context::manager::{ItemPlace, MAX_CAPACITY};
use crate::engine::{Engine, NewItem, Reach, Selection};
use crate::ids::ItemId;
use crate::rpc::call::{MethodCall, Tools};
use crate::rpc::error::{internal_error, param_error};
use crate::rpc::params::{self, KnownMetadata, ManagerName, Name, given_list, ids, metadata};
use crate::rpc::{Finish, Step};
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct AddContext {
    /// The text; stored verbatim.
    content: String,
    manager: Option<ManagerName>,
    /// Type of the content; defaults to `:code`.
    r#type: Option<Kind>,
    #[schemars(with = "Option<KnownMetadata>")]
    metadata: Option<Value>,
    /// Exempt the item from eviction; defaults to `nil`.
    pinned: Option<bool>,
    /// Follow the file: bring the item up to date whenever it is shown or rendered. If some of the
    /// lines are already in another live item, the two items become one. Defaults to `nil`.
    live: Option<bool>,
    /// What to do if the text looks like a secret; defaults to `:add`. With `:ask` or `:omit`, the
    /// call fails.
    secrets: Option<SecretPolicy>,
    /// Leave the content out of the result.
    brief: Option<bool>,
}

pub(super) fn add_item(call: MethodCall, given: AddContext) -> Result<Step, WireError> {
    let metadata = metadata(given.metadata)?;
    let live = given.live.unwrap_or(false);
    if live {
        check_live(&metadata)?;
    }
    let kind = given.r#type.unwrap_or(Kind::Code);
    let item = NewItem {
        live,
        pinned: given.pinned.unwrap_or(false),
        ..new_item(&call.counter(), given.content, kind, metadata, now_ms())
    };
    let (secrets, manager, brief) = (given.secrets, given.manager, given.brief);
    if !SecretPolicy::is_asked(secrets) {
        return add_one(&call, "add-item", manager, item, brief);
    }
    Ok(Step::Await(Box::pin(async move {
        let look = move || {
            SecretPolicy::check(secrets, item.metadata.filename(), &item.content).map(|()| item)
        };
        let looked = tokio::task::spawn_blocking(look).await;
        let item = looked.map_err(|_| internal_error("the look for secrets"))??;
        add_one(&call, "add-item", manager, item, brief)
    })))
}

/// Checks that the metadata of a live item name a file by an absolute path, or the buffer without a
/// file that an editor follows for the server.
pub(super) fn check_live(metadata: &Metadata) -> Result<(), WireError> {
    let is_file = metadata.filename().is_some_and(|name| name.starts_with('/'));
    match is_file || metadata.copied_buffer().is_some() {
        true => Ok(()),
        false => Err(param_error(
            "live",
            "needs metadata.filename, the absolute name of the file that the item follows",
        )),
    }
}

/// Returns the step that adds one item and answers the call.
pub(super) fn add_one(
    call: &MethodCall,
    method: &'static str,
    manager: Option<ManagerName>,
    item: impl Into<FileItem>,
    brief: Option<bool>,
) -> Result<Step, WireError> {
    let (manager, brief) = (manager.unwrap_or_default().0, brief.unwrap_or(false));
    let (tools, item) = (Arc::clone(&call.tools), item.into());
    if !item.item.live {
        return adding(tools, method, manager, Arriving::copy(item), brief);
    }
    Ok(Step::Await(Box::pin(async move {
        let item = Arriving::new(&tools, &manager, item).await?;
        adding(tools, method, manager, item, brief)
    })))
}

fn adding(
    tools: Arc<Tools>,
    method: &'static str,
    manager: String,
    item: Arriving,
    brief: bool,
) -> Result<Step, WireError> {
    let may_overlap = item.may_overlap();
    Step::then_within(Reach::Manager(manager.clone()), move |engine| {
        let (added, again) = item.add(engine, method, &manager, &*tools.counter)?;
        let all = Selection { managers: vec![manager.clone()], ..Selection::default() };
        let views = if may_overlap { engine.select(&all)? } else { Vec::new() };
        let answer = ItemAnswer::added(engine, manager, &added, brief)?;
        Ok(finish(answer.again(again).among(&views)))
    })
}

fn finish(answer: ItemAnswer) -> Finish {
    Finish::of_size(answer.bytes(), move || Value::of(&answer))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveContext {
    /// Id of the item.
    id: Option<ItemId>,
    /// Ids of several items; `:id`, `:ids` or `:all` is required.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<Vec<ItemId>>,
    /// Remove every item of the manager, even pinned ones.
    all: Option<bool>,
    /// With `:all`, set the capacity of the manager back to the default, too.
    reset: Option<bool>,
    manager: Option<ManagerName>,
}

pub(super) fn remove_items(_: MethodCall, given: RemoveContext) -> Result<Step, WireError> {
    let (all, reset) = (given.all.unwrap_or(false), given.reset.unwrap_or(false));
    let manager = given.manager.unwrap_or_default().0;
    match (all, given.id.is_some() || given.ids.is_some()) {
        (true, true) => {
            Err(param_error("all", "cannot be combined with the parameters id and ids"))
        }
        (true, false) => Step::state(move |engine| match reset {
            true => engine.drop_manager(&manager),
            false => engine.clear(&manager),
        }),
        (false, _) if reset => Err(param_error("reset", "is allowed only with all")),
        (false, _) => {
            let ids = ids(given.id, given.ids)?;
            Step::state_within(Reach::Manager(manager.clone()), move |engine| {
                engine.remove(&manager, &ids)
            })
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct MoveContext {
    /// Id of the item.
    id: Option<ItemId>,
    /// Ids of several items; `:id` or `:ids` is required. Several items can only move to another
    /// manager.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<Vec<ItemId>>,
    manager: Option<ManagerName>,
    /// Manager to move the items to, where they become the newest. Without `:into`, one of `:to`,
    /// `:before` and `:after` is required.
    into: Option<Name>,
    /// New position, counted from 0.
    to: Option<i64>,
    /// Put the item before the item with this id.
    before: Option<ItemId>,
    /// Put the item after the item with this id.
    after: Option<ItemId>,
}

/// The manager that has the moved items now.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MovedItems")]
pub(super) struct MovedItems {
    /// Name of the manager.
    manager: String,
    /// Ids of all its items in their new order.
    ids: Vec<ItemId>,
    /// Number of its items.
    count: usize,
    /// Total tokens of its items.
    total_tokens: u64,
    /// Ids of the items evicted to make room, oldest first.
    evicted: Vec<ItemId>,
}

pub(super) fn move_items(_: MethodCall, given: MoveContext) -> Result<Step, WireError> {
    let ids = ids(given.id, given.ids)?;
    let place = place(given.into.is_some(), given.to, given.before, given.after)?;
    let from = given.manager.unwrap_or_default().0;
    let moved = move |engine: &mut Engine, manager: String, evicted: &[u64]| {
        let (count, total_tokens) = engine.size(&manager)?;
        let (ids, evicted) = (ItemId::all(&engine.order(&manager)?), ItemId::all(evicted));
        Ok(MovedItems { manager, ids, count, total_tokens, evicted })
    };
    match (given.into, place, &ids[..]) {
        (Some(Name(into)), ..) if from == into => {
            Err(param_error("into", "must not be the manager that the items are in"))
        }
        (Some(Name(into)), ..) => Step::state(move |engine| {
            let added = engine.transfer("transfer-items", &from, &ids, &into)?;
            moved(engine, into, &added.evicted)
        }),
        (None, Some(place), &[id]) => {
            Step::state_within(Reach::Manager(from.clone()), move |engine| {
                engine.move_item(&from, id, place)?;
                moved(engine, from, &[])
            })
        }
        _ => Err(param_error("ids", "must be one item if it stays in its manager")),
    }
}

/// Returns the place to which an item moves within its manager; `None` if it moves to another.
fn place(
    is_elsewhere: bool,
    to: Option<i64>,
    before: Option<ItemId>,
    after: Option<ItemId>,
) -> Result<Option<ItemPlace>, WireError> {
    match (is_elsewhere, params::not_negative("to", to)?, before, after) {
        (true, None, None, None) => Ok(None),
        (false, Some(index), None, None) => Ok(Some(ItemPlace::Index(index))),
        (false, None, Some(neighbour), None) => Ok(Some(ItemPlace::Before(neighbour))),
        (false, None, None, Some(neighbour)) => Ok(Some(ItemPlace::After(neighbour))),
        _ => Err(param_error(
            "to",
            "is required unless into, before or after is given; give exactly one of the four",
        )),
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ConfigureManager {
    manager: Option<ManagerName>,
    #[schemars(description = format!("Capacity from 1 to {MAX_CAPACITY}; if absent, nothing changes."))]
    max_items: Option<i64>,
}

/// The settings of a manager.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConfiguredManager")]
pub(super) struct ConfiguredContext {
    /// Name of the manager.
    manager: String,
    /// Maximum number of items.
    max_items: usize,
    /// Ids of the items evicted by this call, oldest first.
    evicted: Vec<ItemId>,
}

pub(super) fn configure_manager(_: MethodCall, given: ConfigureManager) -> Result<Step, WireError> {
    let max_items = given.max_items.map(capacity).transpose()?;
    let manager = given.manager.unwrap_or_default().0;
    Step::state_within(Reach::Manager(manager.clone()), move |engine| {
        let evicted = match max_items {
            Some(max_items) => engine.configure(&manager, ContextSettings { max_items })?,
            None => Vec::new(),
        };
        let max_items = engine.settings(&manager)?.max_items;
        Ok(ConfiguredContext { manager, max_items, evicted: ItemId::all(&evicted) })
    })
}

fn capacity(number: i64) -> Result<usize, WireError> {
    usize::try_from(number).ok().filter(|n| (1..=MAX_CAPACITY).contains(n)).ok_or_else(|| {
        param_error("max-items", &format!("must be from 1 to {MAX_CAPACITY}, got {number}"))
    })
}
