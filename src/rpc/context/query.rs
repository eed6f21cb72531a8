//! Methods that show what is kept.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;

use super::call::{Call, Tools};
use super::error::budget_error;
use super::params::{ManagerName, decode, not_negative, selection};
use super::present::{self, entry, figure, keyword};
use super::{Finish, Step};
use crate::agent::refresh;
use crate::context::item::{Item, ItemId, Kind, State};
use crate::context::render::budget::{Fitted, Piece, fit};
use crate::context::render::report::{ItemFate, ItemVerdict};
use crate::context::render::{Format, render};
use crate::engine::{Reach, Selection, View};
use crate::files;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct GetContext {
    manager: Option<ManagerName>,
    managers: Option<Vec<ManagerName>>,
    types: Option<Vec<String>>,
    limit: Option<i64>,
    ids: Option<HashSet<ItemId>>,
    brief: Option<bool>,
}

pub(super) fn get_context(call: Call, params: Value) -> Result<Step, WireError> {
    let given: GetContext = decode(params)?;
    let chosen = selection(given.manager, given.managers, given.types, given.limit)?;
    let ids = given.ids;
    let brief = given.brief.unwrap_or(false);
    let list = move |shown: Vec<(View, State)>| {
        let item = |(view, state): &(View, State)| Value::Map(present::item(view, *state, brief));
        Value::List(shown.iter().map(item).collect())
    };
    Step::then_within(reach(&chosen), move |engine| {
        let mut views = engine.select(&chosen)?;
        if let Some(ids) = ids {
            views.retain(|view| ids.contains(&view.item.id));
        }
        if views.iter().any(|view| has_file(&view.item)) {
            let finish = move || Ok(list(standing(&call.tools, views)));
            return Ok(Finish::Later(Box::new(finish)));
        }
        let bytes = views.iter().map(|view| view.item.content.len()).sum();
        let fresh = move || list(views.into_iter().map(|view| (view, State::Fresh)).collect());
        Ok(Finish::of_size(if brief { 0 } else { bytes }, fresh))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Render {
    manager: Option<ManagerName>,
    managers: Option<Vec<ManagerName>>,
    types: Option<Vec<String>>,
    limit: Option<i64>,
    format: Option<Format>,
    max_tokens: Option<i64>,
}

pub(super) fn context_to_string(call: Call, params: Value) -> Result<Step, WireError> {
    let (chosen, format, budget) = rendering(params)?;
    Step::then_within(reach(&chosen), move |engine| {
        let views = engine.select(&chosen)?;
        let work = move || match budget {
            None => {
                let views = current(&call.tools, views);
                Ok(Value::Str(render(views.iter().map(|view| &*view.item), format)))
            }
            Some(_) => rendered(&call.tools, views, format, budget).map(|fit| Value::Str(fit.text)),
        };
        Ok(Finish::Later(Box::new(work)))
    })
}

pub(super) fn render_context(call: Call, params: Value) -> Result<Step, WireError> {
    let (chosen, format, budget) = rendering(params)?;
    Step::then_within(reach(&chosen), move |engine| {
        let views = engine.select(&chosen)?;
        let work = move || {
            let fitted = rendered(&call.tools, views, format, budget)?;
            Ok(Value::Map(vec![
                entry("text", fitted.text),
                entry("tokens", figure(fitted.tokens)),
                entry("token-counter", keyword(call.tools.counter.name())),
                entry("report", Value::List(fitted.report.iter().map(verdict).collect())),
            ]))
        };
        Ok(Finish::Later(Box::new(work)))
    })
}

/// What a selection reaches: it is quick with one manager.
fn reach(chosen: &Selection) -> Reach {
    match &chosen.managers[..] {
        [manager] => Reach::Manager(manager.clone()),
        _ => Reach::Anything,
    }
}

fn rendering(params: Value) -> Result<(Selection, Format, Option<u64>), WireError> {
    let given: Render = decode(params)?;
    let chosen = selection(given.manager, given.managers, given.types, given.limit)?;
    let budget = not_negative("max-tokens", given.max_tokens)?;
    Ok((chosen, given.format.unwrap_or_default(), budget))
}

fn rendered(
    tools: &Tools,
    views: Vec<View>,
    format: Format,
    budget: Option<u64>,
) -> Result<Fitted, WireError> {
    let views = current(tools, views);
    let pieces: Vec<Piece<'_>> =
        views.iter().map(|view| Piece { item: &view.item, pinned: view.pinned }).collect();
    fit(&pieces, format, budget, &*tools.counter).map_err(|error| budget_error(&error))
}

pub(super) fn verdict(verdict: &ItemVerdict) -> Value {
    let mut map = vec![entry("id", verdict.id.to_string())];
    match verdict.fate {
        ItemFate::Kept => map.push(entry("fate", keyword("kept"))),
        ItemFate::Dropped => map.push(entry("fate", keyword("dropped"))),
        ItemFate::Cut { lines_kept, lines_total } => map.extend([
            entry("fate", keyword("cut")),
            entry("lines-kept", figure(lines_kept)),
            entry("lines-total", figure(lines_total)),
        ]),
    }
    map.push(entry("tokens", figure(verdict.tokens)));
    map.push(entry("reason", &*verdict.reason));
    Value::Map(map)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Summary {
    manager: Option<ManagerName>,
    managers: Option<Vec<ManagerName>>,
}

pub(super) fn context_summary(call: Call, params: Value) -> Result<Step, WireError> {
    let given: Summary = decode(params)?;
    let chosen = selection(given.manager, given.managers, None, None)?;
    Step::state_within(reach(&chosen), move |engine| {
        let views = engine.select(&chosen)?;
        let mut kinds: Vec<Kind> = Vec::new();
        for view in &views {
            if !kinds.contains(&view.item.kind) {
                kinds.push(view.item.kind);
            }
        }
        let tokens = views.iter().map(|view| view.item.tokens).sum();
        Ok(Value::Map(vec![
            entry("count", figure(views.len() as u64)),
            entry("types", Value::List(kinds.iter().map(|kind| keyword(kind.name())).collect())),
            entry("preview", preview(views.len(), &kinds)),
            entry("tokens", figure(tokens)),
            entry("token-counter", keyword(call.tools.counter.name())),
        ]))
    })
}

/// `3 items: Code, Error`.
fn preview(count: usize, kinds: &[Kind]) -> String {
    let titles: Vec<_> = kinds.iter().map(|kind| kind.title()).collect();
    match count {
        0 => "0 items".to_owned(),
        1 => format!("1 item: {}", titles.join(", ")),
        _ => format!("{count} items: {}", titles.join(", ")),
    }
}

pub(super) fn list_managers(_: Call, params: Value) -> Result<Step, WireError> {
    decode::<Nothing>(params)?;
    Step::state(|engine| {
        let managers = engine.list_managers()?;
        Ok(Value::List(managers.iter().map(present::manager).collect()))
    })
}

/// The parameters of a method that has none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Each item and how it stands to its file, live ones as their files are now. Reads the disk.
fn standing(tools: &Tools, views: Vec<View>) -> Vec<(View, State)> {
    let views = current(tools, views);
    let items: Vec<&Item> = views.iter().map(|view| &*view.item).collect();
    let states = files::states(&items);
    views.into_iter().zip(states).collect()
}

/// The items with the live ones read again. Reads the disk.
fn current(tools: &Tools, views: Vec<View>) -> Vec<View> {
    refresh::current(&*tools.counter, &tools.read_options(), views)
}

/// Whether the item came from a file that can be looked at.
pub(super) fn has_file(item: &Arc<Item>) -> bool {
    item.metadata.filename().is_some_and(|name| name.starts_with('/'))
}
