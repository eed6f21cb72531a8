//! Methods that show the items of managers.

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::search::{DEFAULT_HITS, HitInItem, best};
use crate::agent::items::{ItemShown, with_states};
use crate::agent::refresh;
use crate::context::item::{Item, Kind, State};
use crate::context::overlap::shortened;
use crate::context::picture::Picture;
use crate::context::place;
use crate::context::render::budget::Fitted;
use crate::context::render::once::fit_once;
use crate::context::render::{Format, render};
use crate::context::repeat::covered;
use crate::engine::{Engine, EngineError, ListedContext, Reach, Selection, View, name_views};
use crate::ids::ItemId;
use crate::rpc::call::MethodCall;
use crate::rpc::error::param_error;
use crate::rpc::params::{
    ItemType, ManagerName, Nothing, Short, given_list, not_negative, selection,
};
use crate::rpc::present::Decided;
use crate::rpc::{Finish, Step};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;
use crate::wording::counted;

#[derive(Deserialize, JsonSchema)]
pub(super) struct GetContext {
    manager: Option<ManagerName>,
    /// Several managers instead of one, from general to specific. The result has their items in
    /// this order, without those that a later item repeats.
    #[serde(default, deserialize_with = "given_list")]
    managers: Option<Vec<ManagerName>>,
    /// Include only items of these types or origins; `nil` means all. `file` is both a type and
    /// an origin.
    types: Option<Vec<ItemType>>,
    #[schemars(description = format!(
        "Maximum number of items; the result has the most recent ones. `nil` means all, 0 none. \
         With `:query`, maximum number of hits; defaults to {DEFAULT_HITS}."
    ))]
    limit: Option<i64>,
    /// Return only the items with these ids.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<HashSet<ItemId>>,
    /// Include only live items of these files. If the call names no manager, looks in all managers.
    #[serde(default, deserialize_with = "given_list")]
    filenames: Option<HashSet<String>>,
    /// Words to find in the texts and file names of the items. Finds identifiers by their parts,
    /// and words in all their forms. The best hits come first, each with its score.
    query: Option<Short>,
    /// Return only the number of the items, their types and their tokens.
    count_only: Option<bool>,
    /// Leave the content out of the result; defaults to `t` with `:query`.
    brief: Option<bool>,
}

pub(super) fn list_items(call: MethodCall, given: GetContext) -> Result<Step, WireError> {
    let is_everywhere =
        given.filenames.is_some() && given.manager.is_none() && given.managers.is_none();
    let is_search = given.query.is_some();
    let limit = not_negative("limit", given.limit)?;
    let most = given.limit.filter(|_| !is_search);
    let chosen = selection(given.manager, given.managers, given.types, most)?;
    let chosen = Selection { ids: given.ids, filenames: given.filenames, ..chosen };
    let is_named = is_search || is_everywhere || chosen.managers.len() > 1;
    let reach = if is_everywhere { Reach::Anything } else { reach(&chosen) };
    let select = move |engine: &mut Engine| {
        let views =
            if is_everywhere { engine.select_live(&chosen)? } else { engine.select(&chosen)? };
        Ok::<_, EngineError>((views, chosen.managers))
    };
    if given.count_only.unwrap_or(false) {
        return match is_search {
            true => Err(param_error("count-only", "cannot be combined with the parameter query")),
            false => Step::state_within(reach, move |engine| {
                Ok(summarized(&select(engine)?.0, call.tools.counter.name()))
            }),
        };
    }
    let brief = given.brief.unwrap_or(is_search);
    Step::then_within(reach, move |engine| {
        let (views, managers) = select(engine)?;
        let list = move |mut shown: Vec<(View, State)>| {
            name_views(&managers, shown.iter_mut().map(|(view, _)| view));
            match given.query {
                Some(query) => {
                    let hits = best(shown, &query, limit.unwrap_or(DEFAULT_HITS));
                    listed(hits, is_named, brief)
                }
                None => listed(shown.into_iter().map(|it| (it, None)).collect(), is_named, brief),
            }
        };
        if is_search || views.iter().any(|view| has_file(&view.item)) {
            let finish = move || Ok(list(with_states(&call.tools, call.caller, views)));
            return Ok(Finish::Later(Box::new(finish)));
        }
        let bytes = views.iter().map(|view| view.item.content.len()).sum();
        let fresh = move || list(views.into_iter().map(|view| (view, State::Fresh)).collect());
        Ok(Finish::of_size(if brief { 0 } else { bytes }, fresh))
    })
}

fn listed(shown: Vec<((View, State), Option<HitInItem>)>, is_named: bool, brief: bool) -> Value {
    let items: Vec<&Item> = shown.iter().map(|((view, _), _)| &*view.item).collect();
    let by = covered(&items);
    let item = |(((view, state), hit), covered_by): (&((View, State), _), Option<ItemId>)| {
        let item = ItemShown::new(view, *state, brief);
        let manager = is_named.then_some(&*view.manager);
        let hit: &Option<HitInItem> = hit;
        let score = hit.as_ref().map(|hit| hit.score);
        let excerpt = hit.as_ref().map(|hit| &*hit.excerpt);
        Value::of(&ItemListed { item, manager, covered_by, score, excerpt })
    };
    Value::List(shown.iter().zip(by).map(item).collect())
}

/// An item in a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ListedItem")]
pub(super) struct ItemListed<'a> {
    #[serde(flatten)]
    item: ItemShown<'a>,
    /// Manager that holds the item; only if the call has `:query`, or named several managers, or
    /// files but no manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    manager: Option<&'a str>,
    /// Id of an item in this list that contains this one, so that this one is not rendered itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    covered_by: Option<ItemId>,
    /// Score of the hit; higher is better. Only if the call has `:query`.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// Text around the first word that matches; the beginning of the text if only the file name
    /// matches. Only if the call has `:query`.
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<&'a str>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Render {
    manager: Option<ManagerName>,
    /// Several managers instead of one, from general to specific. The result has their items in
    /// this order, without those that a later item repeats.
    #[serde(default, deserialize_with = "given_list")]
    managers: Option<Vec<ManagerName>>,
    /// Include only items of these types or origins; `nil` means all. `file` is both a type and
    /// an origin.
    types: Option<Vec<ItemType>>,
    /// Maximum number of items; the result has the most recent ones. `nil` means all, 0 none.
    limit: Option<i64>,
    /// Render only the items with these ids.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<HashSet<ItemId>>,
    /// Output format; defaults to `:markdown`.
    format: Option<Format>,
    /// Maximum number of tokens in the rendering; the oldest unpinned items are left out first.
    max_tokens: Option<i64>,
    /// Return only the text, as a string.
    text_only: Option<bool>,
}

/// Items rendered as one text.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RenderedContext")]
pub(super) struct Rendered {
    /// The text.
    text: String,
    /// Tokens of the text.
    tokens: u64,
    /// Name of the counter that counted the tokens.
    token_counter: Keyword<&'static str>,
    /// Outcome for each item, in the order of the items.
    report: Vec<Decided>,
}

pub(super) fn render_items(call: MethodCall, given: Render) -> Result<Step, WireError> {
    let text_only = given.text_only.unwrap_or(false);
    let rendering = Rendering::of(given)?;
    Step::then_within(reach(&rendering.chosen), move |engine| {
        let views = engine.select(&rendering.chosen)?;
        Ok(Finish::Later(Box::new(move || {
            if text_only && rendering.budget.is_none() {
                return Ok(Value::Str(rendering.all(&call, views)));
            }
            let fitted = rendering.rendered(&call, views)?;
            if text_only {
                return Ok(Value::Str(fitted.text));
            }
            Ok(Value::of(&Rendered {
                text: fitted.text,
                tokens: fitted.tokens,
                token_counter: Keyword(call.tools.counter.name()),
                report: fitted.report.into_iter().map(Decided::from).collect(),
            }))
        })))
    })
}

/// Returns the part of the state that a selection may touch: its manager if it has exactly one,
/// else the whole state.
fn reach(chosen: &Selection) -> Reach {
    match &chosen.managers[..] {
        [manager] => Reach::Manager(manager.clone()),
        _ => Reach::Anything,
    }
}

/// A call to render items, with its parameters checked.
struct Rendering {
    chosen: Selection,
    format: Format,
    budget: Option<u64>,
}

impl Rendering {
    fn of(given: Render) -> Result<Self, WireError> {
        let chosen = selection(given.manager, given.managers, given.types, given.limit)?;
        let budget = not_negative("max-tokens", given.max_tokens)?;
        let chosen = Selection { ids: given.ids, ..chosen };
        Ok(Self { chosen, format: given.format.unwrap_or_default(), budget })
    }

    fn rendered(&self, call: &MethodCall, views: Vec<View>) -> Result<Fitted, WireError> {
        let views = self.current(call, views);
        let pieces: Vec<_> = views.iter().map(View::piece).collect();
        Ok(fit_once(&pieces, self.format, self.budget, &*call.tools.counter)?)
    }

    /// Renders all items except those whose text is part of another item. Does not count the tokens
    /// of the rendering.
    fn all(&self, call: &MethodCall, views: Vec<View>) -> String {
        let views = self.current(call, views);
        let items: Vec<&Item> = views.iter().map(|view| &*view.item).collect();
        let rest = items.iter().zip(covered(&items)).filter(|(_, by)| by.is_none());
        let rest: Vec<&Item> = rest.map(|(item, _)| *item).collect();
        let cut = shortened(&rest, |_| 0);
        let shown =
            rest.iter().zip(&cut).map(|(item, cut)| cut.as_ref().map_or(*item, |it| &it.item));
        render(shown, self.format)
    }

    /// Brings the items up to date, and names them for the managers of this call.
    fn current(&self, call: &MethodCall, views: Vec<View>) -> Vec<View> {
        let mut views = current(call, views);
        name_views(&self.chosen.managers, &mut views);
        views
    }
}

/// A summary of the items of one or several managers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ContextSummary")]
pub(super) struct ItemsSummary {
    /// Number of items.
    count: usize,
    /// Types of the items, each once.
    types: Vec<Kind>,
    /// Readable summary, such as `3 items: Code, Error`.
    preview: String,
    /// Tokens of the items.
    tokens: u64,
    /// Name of the counter that counted the tokens.
    token_counter: Keyword<&'static str>,
}

fn summarized(views: &[View], counter: &'static str) -> ItemsSummary {
    let mut types: Vec<Kind> = Vec::new();
    for view in views {
        if !types.contains(&view.item.kind) {
            types.push(view.item.kind);
        }
    }
    ItemsSummary {
        count: views.len(),
        preview: preview(views.len(), &types),
        types,
        tokens: views.iter().map(|view| Picture::shown_tokens(&view.item)).sum(),
        token_counter: Keyword(counter),
    }
}

/// Formats a preview such as `3 items: Code, Error`.
fn preview(count: usize, kinds: &[Kind]) -> String {
    let titles: Vec<_> = kinds.iter().map(|kind| kind.title()).collect();
    let items = counted(count as u64, "item");
    if titles.is_empty() { items } else { format!("{items}: {}", titles.join(", ")) }
}

/// A line in the list of managers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Manager")]
pub(super) struct ManagerLine {
    /// Name of the manager.
    manager: String,
    /// Label to show, such as `project app`, if it differs from the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// Number of items.
    count: u64,
    /// Number of pinned items.
    pinned: u64,
    /// Tokens of the items.
    tokens: u64,
    /// Size of the items' content in bytes.
    bytes: u64,
    /// Maximum number of items.
    max_items: usize,
    /// Time of the newest item in Unix seconds; `nil` if there is none.
    newest: Option<i64>,
    /// Version of the manager.
    version: u64,
}

pub(super) fn list_managers(_: MethodCall, _: Nothing) -> Result<Step, WireError> {
    let line = |ListedContext { summary, max_items }| ManagerLine {
        label: Some(place::label(&summary.name, None)).filter(|label| *label != summary.name),
        manager: summary.name,
        count: summary.count,
        pinned: summary.pinned,
        tokens: summary.tokens,
        bytes: summary.bytes,
        max_items,
        newest: summary.newest,
        version: summary.version,
    };
    Step::state(move |engine| Ok(engine.list_managers()?.into_iter().map(line).collect::<Vec<_>>()))
}

/// Returns the items, with the live ones brought up to date. Reads the disk.
fn current(call: &MethodCall, views: Vec<View>) -> Vec<View> {
    refresh::current(&call.tools, &*call.tools.counter, call.caller, views)
}

/// Returns whether the item names its file by an absolute path, so that the file can be read.
fn has_file(item: &Arc<Item>) -> bool {
    item.metadata.filename().is_some_and(|name| name.starts_with('/'))
}
