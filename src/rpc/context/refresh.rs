//! The method that updates items from their files.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::read_options;
use crate::agent::refresh::{Outcome, Reread, reread};
use crate::context::item::{Item, ItemId};
use crate::engine::{Engine, EngineError, ItemChanges, Selection, View};
use crate::files::{FileReader, Found, ReadOptions};
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::params::{ManagerName, given_list};
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct RefreshContext {
    manager: Option<ManagerName>,
    /// Ids of the items to read again; defaults to all.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<Vec<ItemId>>,
}

/// The outcome of reading items from their files again.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Refreshed")]
pub(super) struct RefreshResult {
    /// Number of items that changed.
    updated: usize,
    /// Outcome for each item.
    items: Vec<RefreshedItem>,
}

/// The outcome for one item.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RefreshedItem")]
struct RefreshedItem {
    /// Id of the item.
    id: ItemId,
    /// Outcome for the item.
    outcome: Outcome,
    /// Reason why the item is stale, or why it stayed the same although its file was read; `nil` if
    /// there is no such reason.
    reason: Option<&'static str>,
    /// Way in which the lines of a live item were found in its changed file; absent if that was not
    /// needed or did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<Found>,
    /// Tokens of the item now.
    tokens: u64,
    #[serde(skip)]
    changed: bool,
}

pub(super) fn refresh_items(call: MethodCall, given: RefreshContext) -> Result<Step, WireError> {
    let manager = given.manager.unwrap_or_default().0;
    let asked = given.ids;
    let of = manager.clone();
    let select = move |engine: &mut Engine| match asked {
        Some(ids) => ids.into_iter().map(|id| engine.view(&of, id)).collect(),
        None => engine.select(&Selection { managers: vec![of], ..Selection::default() }),
    };
    let views = call.tools.engine.ask_blocking_for(call.caller, |engine| Ok(select(engine)))?;
    let options = read_options(&call.tools, None)?;
    let found = views.and_then(|views| reread_all(&call, views, &options));
    Step::state(move |engine| {
        let items = keep(engine, &manager, found?)?;
        Ok(RefreshResult { updated: items.iter().filter(|item| item.changed).count(), items })
    })
}

/// Reads the items from their files, except those whose texts editors hold.
fn reread_all(
    call: &MethodCall,
    views: Vec<View>,
    options: &ReadOptions,
) -> Result<Vec<(Arc<Item>, Reread)>, EngineError> {
    let mut reader = FileReader::default();
    let reread = |view: View| {
        if call.cancelled.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        let item = Arc::clone(&view.item);
        let read = if view.is_held() {
            Reread {
                item: Arc::clone(&item),
                outcome: Outcome::Unchanged,
                reason: None,
                found: None,
            }
        } else {
            reread(&*call.tools.counter, &item, options, &mut reader)
        };
        Ok((item, read))
    };
    views.into_iter().map(reread).collect()
}

/// Replaces the items with their new versions, except those that were changed while their files
/// were read.
fn keep(
    engine: &mut Engine,
    manager: &str,
    outcomes: Vec<(Arc<Item>, Reread)>,
) -> Result<Vec<RefreshedItem>, EngineError> {
    let mut revisions = Vec::new();
    let mut told = Vec::with_capacity(outcomes.len());
    for (old, Reread { item: new, outcome, reason, found }) in outcomes {
        let id = old.id;
        // If an item has been changed since it was read, that change takes precedence over the
        // file.
        let as_read = engine.view(manager, id).is_ok_and(|view| view.item == old);
        let changed = as_read && old != new;
        if changed {
            revisions.push((id, revision(&new)));
        }
        let (outcome, reason, tokens) = match as_read {
            true => (outcome, reason, new.tokens),
            false => {
                let why = "the item was changed while its file was read";
                (Outcome::Unchanged, Some(why), old.tokens)
            }
        };
        let found = found.filter(|_| as_read);
        told.push(RefreshedItem { id, outcome, reason, found, tokens, changed });
    }
    engine.update("refresh-items", manager, revisions)?;
    Ok(told)
}

fn revision(item: &Item) -> ItemChanges {
    ItemChanges {
        content: Some((Arc::clone(&item.content), item.tokens, item.counted_by, item.taken_ms)),
        metadata: Some(item.metadata.clone()),
        ..ItemChanges::default()
    }
}
