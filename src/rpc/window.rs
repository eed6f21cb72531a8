//! Methods about windows: building them, and telling why they are as they are.

use std::sync::Arc;

use serde::Deserialize;

use super::call::{Call, Tools};
use super::error::{engine_error, param_error};
use super::params::{Name, decode, not_negative, yes};
use super::present::{self, entry, figure, keyword};
use super::query::current;
use super::{Finish, Step, report};
use crate::context::render::Format;
use crate::context::render::budget::{Piece, fit};
use crate::context::render::report::{Fate, Verdict};
use crate::curation::budget::Budget;
use crate::curation::section::{CodeUnit, Counted, Failure, Sections};
use crate::curation::strategy::{self, Strategy};
use crate::curation::unit::History;
use crate::curation::window::{Part, Request, Window, build};
use crate::engine::{EngineError, Material, View};
use crate::session::message::Phase;
use crate::tokens::{Counter, Measure};
use crate::value::Value;
use crate::wire::message::WireError;

/// The shares of a window that the items may have, in steps, so that the rendered items stay the same
/// while a conversation grows: the first always, a larger one when all the rest leaves that free. What
/// does not fit is told in the report.
const ITEMS_SHARES: [f64; 4] = [0.5, 0.625, 0.75, 0.875];

/// The texts of a window beside the conversation, as a client says them.
#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SectionTexts {
    tool_schemas: Option<String>,
    system_prompt: Option<String>,
    design_document: Option<String>,
    type_definitions: Option<String>,
    current_unit: Option<String>,
    relevant_tests: Option<String>,
    failures: Option<Vec<FailureText>>,
    units: Option<Vec<UnitText>>,
    grounding: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FailureText {
    name: String,
    error: Option<String>,
    expected: Option<String>,
    received: Option<String>,
    stack: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct UnitText {
    name: String,
    path: Option<String>,
    code: Option<String>,
    approved: Option<bool>,
}

impl SectionTexts {
    /// The sections with their tokens counted.
    pub(super) fn counted(self, counter: &dyn Counter) -> Sections {
        let counted = |text: Option<String>| text.map(|text| Counted::new(text, counter));
        Sections {
            tool_schemas: counted(self.tool_schemas),
            system_prompt: counted(self.system_prompt),
            design_document: counted(self.design_document),
            type_definitions: counted(self.type_definitions),
            current_unit: counted(self.current_unit),
            relevant_tests: counted(self.relevant_tests),
            failures: self.failures.into_iter().flatten().map(failure).collect(),
            units: self.units.into_iter().flatten().map(code_unit).collect(),
            grounding: counted(self.grounding),
            ..Sections::default()
        }
    }
}

fn failure(text: FailureText) -> Failure {
    Failure {
        name: text.name,
        error: text.error.unwrap_or_default(),
        expected: text.expected.unwrap_or_default(),
        received: text.received.unwrap_or_default(),
        stack: text.stack,
    }
}

fn code_unit(text: UnitText) -> CodeUnit {
    CodeUnit {
        name: text.name,
        path: text.path.unwrap_or_default(),
        code: text.code.unwrap_or_default(),
        approved: text.approved.unwrap_or(false),
    }
}

/// What decides on a window beside its material.
pub(super) struct Wish {
    pub(super) phase: Option<Phase>,
    pub(super) strategy: Option<&'static dyn Strategy>,
    pub(super) max_tokens: Option<u64>,
    /// What can never be left out may have all that the model takes, unless a session sets less.
    pub(super) may_grow: bool,
    pub(super) query: Option<String>,
    pub(super) sections: Sections,
}

/// A window, and what became of the items that were offered to it.
pub(super) struct Built {
    pub(super) window: Window,
    pub(super) items: Vec<Verdict>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct BuildContext {
    session: Option<Name>,
    phase: Option<Phase>,
    strategy: Option<String>,
    max_tokens: Option<i64>,
    query: Option<String>,
    model: Option<String>,
    sections: Option<SectionTexts>,
    #[serde(default = "yes")]
    items: bool,
    brief: Option<bool>,
    explain: Option<bool>,
}

pub(super) fn build_context(call: Call, params: Value) -> Result<Step, WireError> {
    let given: BuildContext = decode(params)?;
    let wish = Wish {
        phase: given.phase,
        strategy: given.strategy.as_deref().map(named_strategy).transpose()?,
        max_tokens: not_negative("max-tokens", given.max_tokens)?,
        may_grow: given.max_tokens.is_none(),
        query: given.query,
        sections: given.sections.unwrap_or_default().counted(&call.counter()),
    };
    let (brief, explain) = (given.brief.unwrap_or(false), given.explain.unwrap_or(false));
    Step::then(move |engine| {
        let mut material = engine.material(given.session.as_deref(), given.model.as_deref())?;
        if !given.items {
            material.items.clear();
        }
        Ok(Finish::Later(Box::new(move || {
            let id = material.row.id;
            let name = material.row.name.clone();
            let model = material.costs.model.clone();
            let built = build_of(&call.tools, material, wish)?;
            let window = Arc::new(built.window);
            let (noted, items) = (Arc::clone(&window), built.items.clone());
            let note = call.tools.engine.ask_blocking(move |e| e.note_window(id, &noted, items));
            note.map_err(engine_error)?;
            let mut map = vec![
                entry("session", name),
                entry("tokens", figure(window.tokens)),
                entry("max-tokens", figure(window.report.max_tokens)),
                entry("model", &*model.name),
                entry("model-known", model.known),
            ];
            if !brief {
                map.push(entry("parts", Value::List(window.parts.iter().map(part).collect())));
            }
            map.push(entry("report", report::window(&window.report, explain)));
            map.push(entry("items", verdicts(&built.items)));
            Ok(Value::Map(map))
        })))
    })
}

/// Builds a window. Reads the files of live items.
pub(super) fn build_of(tools: &Tools, material: Material, wish: Wish) -> Result<Built, WireError> {
    let Material { settings, costs, messages, summary, items, previous, .. } = material;
    let measure = &costs.measure;
    let budget = Budget::default().within(costs.model.limit).usable();
    let wished = wish.max_tokens.or(settings.max_tokens).unwrap_or(budget);
    // More than the model takes would be refused by it.
    let max_tokens = if costs.model.known { wished.min(costs.model.limit) } else { wished };
    let mut sections = wish.sections;
    sections.summary = summary.map(|(text, tokens)| Counted { text, tokens });
    let strategy = match (wish.strategy, settings.strategy.as_deref()) {
        (Some(strategy), _) => strategy,
        (None, Some(name)) => named_strategy(name)?,
        (None, None) => strategy::ALL[0],
    };
    let history = History::new(messages.iter().map(|message| &**message).collect(), measure);
    let share = items_share(max_tokens, history.tokens(), &sections, measure);
    let (text, verdicts) = items_text(tools, items, share, measure)?;
    sections.context_items = text;
    let request = Request {
        sections: &sections,
        history: &history,
        phase: wish.phase,
        strategy,
        query: wish.query.as_deref(),
        max_tokens,
        previous: previous.as_ref(),
    };
    let grows = wish.may_grow && settings.max_tokens.is_none() && costs.model.known;
    let window = match build(&request) {
        Err(error) if grows && error.needed <= costs.model.limit => {
            build(&Request { max_tokens: error.needed, ..request })
        }
        built => built,
    };
    let window = window.map_err(|error| engine_error(EngineError::from(error)))?;
    Ok(Built { window, items: verdicts })
}

/// How many tokens the items may have beside a history of `tokens` and the other sections.
fn items_share(max_tokens: u64, tokens: u64, sections: &Sections, measure: &Measure) -> u64 {
    let Sections { tool_schemas, system_prompt, design_document, type_definitions, .. } = sections;
    let Sections { current_unit, relevant_tests, summary, grounding, .. } = sections;
    let counted = [
        tool_schemas,
        system_prompt,
        design_document,
        type_definitions,
        current_unit,
        relevant_tests,
        summary,
        grounding,
    ];
    let counted = counted.into_iter().flatten().map(|part| measure.message(part.tokens));
    let taken = tokens + counted.sum::<u64>();
    let of_window = |share: f64| (max_tokens as f64 * share).floor() as u64;
    // What failures and units take is only known once they are written out.
    let known = sections.failures.is_empty() && sections.units.is_empty();
    let is_free = |share: &&f64| known && of_window(**share) + taken <= max_tokens;
    let share = ITEMS_SHARES.iter().rfind(is_free).unwrap_or(&ITEMS_SHARES[0]);
    of_window(*share)
}

/// The items rendered within so many tokens, and what became of each.
fn items_text(
    tools: &Tools,
    items: Vec<View>,
    max_tokens: u64,
    measure: &Measure,
) -> Result<(Option<Counted>, Vec<Verdict>), WireError> {
    if items.is_empty() {
        return Ok((None, Vec::new()));
    }
    let views = current(tools, items);
    let pieces: Vec<Piece<'_>> =
        views.iter().map(|view| Piece { item: &view.item, pinned: view.pinned }).collect();
    let share = (max_tokens as f64 / measure.factor()).floor() as u64;
    match fit(&pieces, Format::Markdown, Some(share), &*tools.counter) {
        Ok(fitted) => {
            let counted = Counted { text: fitted.text.into(), tokens: fitted.tokens };
            Ok((Some(counted), fitted.report))
        }
        // Not even the header fits; the rest of the window may.
        Err(_) => Ok((None, pieces.iter().map(no_room).collect())),
    }
}

fn no_room(piece: &Piece<'_>) -> Verdict {
    let reason = "no room for items in this window".to_owned();
    Verdict { id: piece.item.id, tokens: 0, fate: Fate::Dropped, reason }
}

/// What became of items, as a client is told it.
pub(super) fn verdicts(items: &[Verdict]) -> Value {
    Value::List(items.iter().map(super::query::verdict).collect())
}

/// The strategy of this name.
pub(super) fn named_strategy(name: &str) -> Result<&'static dyn Strategy, WireError> {
    strategy::find(name).ok_or_else(|| {
        let message = format!("must be one of {}, got {name:?}", strategy_names().join(", "));
        param_error("strategy", &message)
    })
}

/// The names of the strategies.
pub(super) fn strategy_names() -> Vec<&'static str> {
    strategy::ALL.iter().map(|strategy| strategy.name()).collect()
}

fn part(part: &Part) -> Value {
    let mut map = vec![
        entry("section", keyword(part.section.name())),
        entry("role", keyword(part.role.name())),
        entry("content", &*part.content),
        entry("tokens", figure(part.tokens)),
    ];
    map.extend(part.message.map(|number| entry("id", format!("msg-{number}"))));
    if !part.tool_calls.is_empty() {
        map.push(entry("tool-calls", present::tool_calls(&part.tool_calls)));
    }
    map.extend(part.tool_call_id.as_ref().map(|id| entry("tool-call-id", &**id)));
    Value::Map(map)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Explain {
    session: Option<Name>,
    limit: Option<i64>,
    explain: Option<bool>,
}

/// How many windows are explained unless more are asked for.
const DEFAULT_EXPLAINED: usize = 1;

pub(super) fn explain_context(_: Call, params: Value) -> Result<Step, WireError> {
    let given: Explain = decode(params)?;
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_EXPLAINED);
    let whole = given.explain.unwrap_or(false);
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let windows = engine.windows(row.id);
        let told = windows.iter().take(limit).map(|noted| {
            let mut map = vec![entry("session", &*row.name), entry("at", Value::Int(noted.at))];
            if let Value::Map(more) = report::window(&noted.report, whole) {
                map.extend(more);
            }
            map.push(entry("items", verdicts(&noted.items)));
            Value::Map(map)
        });
        Ok(Value::List(told.collect()))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct UsageLog {
    session: Option<Name>,
    phase: Option<Phase>,
    limit: Option<i64>,
}

/// How many windows the usage log gives unless more are asked for.
const DEFAULT_LOGGED: u64 = 50;

pub(super) fn usage_log(_: Call, params: Value) -> Result<Step, WireError> {
    let given: UsageLog = decode(params)?;
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_LOGGED);
    Step::state(move |engine| {
        let session = match &given.session {
            Some(name) => Some(engine.find_session(Some(name))?.id),
            None => None,
        };
        let rows = engine.usage_log(session, given.phase, limit)?;
        let sums = engine.usage_by_phase(session)?;
        Ok(Value::Map(vec![
            entry("windows", Value::List(rows.iter().map(report::usage).collect())),
            entry("phases", Value::List(sums.iter().map(report::phase_usage).collect())),
        ]))
    })
}
