//! The texts that an editor has in its buffers, for the items that follow them.

use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::read_options;
use crate::agent::items::{ItemAnswer, ItemShown};
use crate::agent::refresh::now_ms;
use crate::context::item::{ANCHOR, Item, Metadata, STALE, UNSAVED};
use crate::engine::{Caller, Engine, EngineError};
use crate::files::{self, FileReader};
use crate::ids::ItemId;
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::params::{self, KnownMetadata, ManagerName};
use crate::tokens::Counter;
use crate::value::Value;
use crate::wire::message::WireError;

/// New text or metadata for an item.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ItemUpdate {
    /// The item's id.
    id: ItemId,
    manager: Option<ManagerName>,
    /// New text.
    content: Option<String>,
    /// Entries of the metadata that changed; `nil` removes an entry.
    #[schemars(with = "Option<KnownMetadata>")]
    metadata: Option<Value>,
}

/// The outcome of updating items.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "UpdatedItems")]
pub(super) struct UpdatedItems {
    /// Number of items that were updated.
    pub(super) updated: usize,
    /// Ids of the items of an editor that stay as they are, since they are not live or no longer
    /// exist.
    pub(super) skipped: Vec<ItemId>,
    /// The item; only if the call has `:id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ItemShown<'static>>")]
    pub(super) item: Option<ItemAnswer>,
}

/// An update, with the tokens of its text counted.
struct CountedUpdate {
    id: ItemId,
    manager: String,
    content: Option<(Arc<str>, u64)>,
    metadata: Metadata,
}

/// Returns the step that gives live items the texts of an editor's buffers. `usual` is the manager
/// of the items that name none.
pub(super) fn take_texts(
    call: MethodCall,
    items: Vec<ItemUpdate>,
    usual: String,
) -> Result<Step, WireError> {
    let counter = call.counter();
    let counted = |update: ItemUpdate| {
        Ok(CountedUpdate {
            id: update.id,
            manager: update.manager.map_or_else(|| usual.clone(), |manager| manager.0),
            content: update.content.map(|text| {
                let tokens = counter.count(&text);
                (text.into(), tokens)
            }),
            metadata: params::changes_of_metadata(update.metadata)?,
        })
    };
    let updates = items.into_iter().map(counted).collect::<Result<Vec<_>, WireError>>()?;
    let (counted_by, taken_ms) = (counter.name(), now_ms());
    if !updates.iter().any(CountedUpdate::is_saved) {
        return updating(call.caller, updates, HashMap::new(), counted_by, taken_ms);
    }
    let options = read_options(&call.tools, None)?;
    Ok(Step::Await(Box::pin(async move {
        let saved: Vec<_> = updates.iter().filter(|it| it.is_saved()).collect();
        let names: Vec<_> = saved.iter().map(|it| (it.manager.clone(), it.id)).collect();
        let find = move |engine: &mut Engine| {
            Ok(names.iter().filter_map(|(of, id)| engine.view(of, *id).ok()).collect::<Vec<_>>())
        };
        let items: HashMap<ItemId, Arc<Item>> = call
            .tools
            .engine
            .ask(find)
            .await?
            .into_iter()
            .map(|it| (it.item.id, it.of(call.caller)))
            .collect();
        let saved = saved.into_iter().filter_map(|update| {
            Some(update.applied(items.get(&update.id)?, None, counted_by, taken_ms))
        });
        let saved: Vec<Item> = saved.collect();
        let look = move || {
            let mut reader = FileReader::default();
            let anchor = |item: Item| Some((item.id, (reader.anchor(&item, &options)?, item)));
            saved.into_iter().filter_map(anchor).collect::<HashMap<_, _>>()
        };
        // Without an answer, the items keep the anchors that they have.
        let anchors = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        updating(call.caller, updates, anchors, counted_by, taken_ms)
    })))
}

/// The anchors of items in the versions for which they were made.
type Anchors = HashMap<ItemId, (Value, Item)>;

/// Returns the step that makes the updates.
fn updating(
    caller: Caller,
    updates: Vec<CountedUpdate>,
    mut anchors: Anchors,
    counted_by: &'static str,
    taken_ms: i64,
) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let (mut versions, mut skipped) = (Vec::new(), Vec::new());
        for update in updates {
            match engine.view(&update.manager, update.id) {
                Ok(view) if view.item.live => {
                    let made = anchors.remove(&update.id);
                    let new = update.applied(&view.of(caller), made, counted_by, taken_ms);
                    engine.hold(&new);
                    // What was saved is newer than a buffer that was edited before.
                    let is_older = update.content.is_some() && new.stale().is_some();
                    if new != *view.item && (view.item.is_unsaved() || !is_older) {
                        versions.push((update.manager, view.item, Arc::new(new)));
                    }
                }
                Ok(_) | Err(EngineError::NoSuchItem { .. }) => skipped.push(update.id),
                Err(error) => return Err(error),
            }
        }
        let updated = versions.len();
        engine.follow(versions)?;
        Ok(UpdatedItems { updated, skipped, item: None })
    })
}

impl CountedUpdate {
    /// Returns whether the update says where in its file the text is. Updates of unsaved text do
    /// not.
    fn is_saved(&self) -> bool {
        let is_placed = self.content.is_some() || self.metadata.lines().is_some();
        is_placed && !self.metadata.is_set(UNSAVED)
    }

    /// Returns the new version of an item. `made` is an anchor for its new place in the file, with
    /// the version for which the anchor was made.
    fn applied(
        &self,
        old: &Item,
        made: Option<(Value, Item)>,
        counted_by: &'static str,
        taken_ms: i64,
    ) -> Item {
        let mut new = old.clone();
        if let Some((content, tokens)) = &self.content {
            new.taken_ms = taken_ms;
            if **content != *old.content {
                let (content, tokens) = (Arc::clone(content), *tokens);
                new = Item { content, tokens, counted_by, ..new };
            }
        }
        if self.content.is_some() {
            new.metadata.remove(STALE);
        }
        for (name, value) in &self.metadata.0 {
            match value {
                Value::Nil => new.metadata.remove(name),
                value => new.metadata.set(name, value.clone()),
            }
        }
        let is_there =
            |it: &Item| it.content == new.content && it.metadata.lines() == new.metadata.lines();
        match made.filter(|(_, made)| is_there(made)) {
            Some((anchor, _)) => new.metadata.set(ANCHOR, anchor),
            None if !is_there(old) => files::keep_marked(old, &mut new),
            None => {}
        }
        new
    }
}
