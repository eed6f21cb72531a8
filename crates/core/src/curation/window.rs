//! Builds a window: the messages for a model, within a number of tokens, with a report that gives
//! the reasons.
//!
//! Sections are admitted first, and the messages get the rest. If not everything fits, parts are
//! left out in this order: older messages; then previous units of code, least recent first; then
//! memories, implementations, tests, types, context items and the summary, unless the phase
//! requires them; then the newest message; then the texts that the phase requires. Previous units
//! take at most half of the room that the other texts leave. Tools, system prompt, design
//! document, current unit and messages that cannot be left out always stay; if they do not fit,
//! there is no window.

mod report;
mod summary;

use std::sync::Arc;

use super::budget::{Irreducible, WindowBudgetTooSmall};
use super::guard;
use super::offer::{Offer, OfferedText};
use super::phase::Need;
use super::report::{Fingerprint, Print, Report, ReportPart};
use super::section::{Section, Sections};
use super::similarity::Similarity;
use super::strategy::{Aim, Fate, Projection, Shown, Strategy};
use super::summary::SummaryText;
use super::unit::{History, KeptReason, Unit};
use crate::session::message::{Phase, Role, ToolCall};

/// Reason for leaving out a message that the user wants back.
const NO_ROOM: &str = "wanted back, but there is no room for it";

/// The input for building a window.
#[derive(Clone, Copy)]
pub struct WindowInput<'a> {
    /// Texts that the window can have besides the messages.
    pub sections: &'a Sections,
    /// Messages to choose from, and the measure of costs.
    pub history: &'a History<'a>,
    /// Phase of the work, which decides which sections are offered. Without a phase, every section
    /// is offered.
    pub phase: Option<Phase>,
    /// Strategy that chooses from the messages.
    pub strategy: &'a dyn Strategy,
    /// Current question, if there is one.
    pub query: Option<&'a str>,
    /// Similarity of the messages to the question by meaning, if their embedding vectors are known.
    pub similarity: Option<&'a Similarity>,
    /// The summary whose text is in `sections`. If it is `None`, that text is never shortened.
    pub summary: Option<&'a SummaryText>,
    /// Maximum cost of the window, in tokens.
    pub max_tokens: u64,
    /// Record of the previous window, if there was one.
    pub previous: Option<&'a Fingerprint>,
    /// Numbers of messages that the user wants back in this window, the most wanted first. They
    /// come whole, with the messages that belong to them, as far as they fit.
    pub restored: &'a [u64],
    /// True if no later window continues this one; see [`Aim::once`].
    pub once: bool,
}

/// The messages that a model is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Parts in order.
    pub parts: Vec<MessagePart>,
    /// Cost of all parts, in tokens. Never more than the maximum of the request.
    pub tokens: u64,
    /// Report of the parts that were kept or left out, with the reasons.
    pub report: Report,
    /// Costs for the usage log.
    pub usage: WindowUsage,
}

/// A part of a window: one message to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePart {
    /// Section of the part.
    pub section: Section,
    /// Author. Texts of sections have the role of the system.
    pub role: Role,
    /// The text.
    pub content: Arc<str>,
    /// Number of the message that the part shows; `None` for other texts.
    pub message: Option<u64>,
    /// Tool calls of an assistant's message.
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that a tool's message answers.
    pub tool_call_id: Option<String>,
    /// Data that the model's server wants back with a message that is shown whole.
    pub opaque: Option<Arc<serde_json::Value>>,
    /// Cost in tokens.
    pub tokens: u64,
}

/// The costs of a window by purpose, in tokens, as the usage log stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowUsage {
    /// Phase of the work.
    pub phase: Option<Phase>,
    /// Cost of the system prompt.
    pub system: u64,
    /// Cost of the design document.
    pub design: u64,
    /// Cost of the type definitions.
    pub types: u64,
    /// Cost of the current unit of code, its tests, and implementations.
    pub current_context: u64,
    /// Cost of the messages.
    pub messages: u64,
    /// Cost of the whole window, including the parts that have no field of their own here.
    pub total: u64,
}

/// Builds a window. The same request gives the same bytes.
///
/// # Errors
///
/// [`WindowBudgetTooSmall`] when the parts that cannot be left out cost more than
/// [`WindowInput::max_tokens`].
pub fn build(request: &WindowInput<'_>) -> Result<Window, WindowBudgetTooSmall> {
    let WindowInput { history, max_tokens, .. } = *request;
    let mut offer = Offer::new(request.sections, request.phase, history.measure);
    summary::cut(&mut offer, request);
    let never_lost = check(request, &offer)?;
    offer.admit(max_tokens - offer.tokens() - never_lost, Need::Must);
    let free = max_tokens - offer.tokens() - never_lost;
    let restored = restored(request, free);
    let history = restored.as_ref().unwrap_or(history);
    let request = &WindowInput { history, ..*request };
    admit(&mut offer, request);
    let budget = max_tokens - offer.tokens();
    let WindowInput { query, similarity, once, .. } = *request;
    let aim = Aim { budget, query, similarity, once };
    let mut chosen = guard::repaired(history, budget, request.strategy.project(history, &aim));
    say_what_found_no_room(request, &mut chosen);
    summary::spare(&mut offer, request, &chosen);
    let parts = parts(&offer, history, &chosen);
    let tokens = parts.iter().map(|part| part.tokens).sum();
    let usage = WindowUsage::of(&parts, request.phase);
    let report = report::report(request, &offer, chosen, &parts);
    Ok(Window { parts, tokens, report, usage })
}

/// Returns the cost of the messages that cannot be left out. Fails if these messages and the texts
/// that are never trimmed do not fit.
fn check(request: &WindowInput<'_>, offer: &Offer) -> Result<u64, WindowBudgetTooSmall> {
    let WindowInput { history, max_tokens, .. } = *request;
    let kept = history.units.iter().filter(|unit| unit.kept.is_some());
    let never_lost: u64 = kept.map(|unit| unit.tokens).sum();
    let needed = offer.tokens().saturating_add(never_lost);
    if needed <= max_tokens {
        return Ok(never_lost);
    }
    let texts = offer.admitted().map(|offered| Irreducible {
        section: offered.section,
        what: offered.what.clone(),
        reason: offered.reason,
        tokens: offered.tokens,
    });
    let parts = texts.chain(irreducible(history)).collect();
    Err(WindowBudgetTooSmall { needed, max_tokens, parts })
}

/// Lists the units that cannot be left out, as [`WindowBudgetTooSmall`] names them.
pub(super) fn irreducible<'b>(history: &'b History<'_>) -> impl Iterator<Item = Irreducible> + 'b {
    history.units.iter().filter_map(|unit| {
        Some(Irreducible {
            section: Section::Messages,
            what: ReportPart::Messages(history.numbers(unit)),
            reason: unit.kept?.reason(),
            tokens: unit.tokens,
        })
    })
}

/// Returns the history in which the messages that the user wants back cannot be left out, as far as
/// they fit into `free` tokens; `None` if the user wants none.
fn restored<'a>(request: &WindowInput<'a>, mut free: u64) -> Option<History<'a>> {
    let mut history = Some(request.history).filter(|_| !request.restored.is_empty())?.clone();
    for number in request.restored {
        let numbered = |index: &usize| history.messages[*index].number == *number;
        let has = |unit: &Unit| unit.members.iter().any(numbered);
        let Some(at) = history.units.iter().position(has) else { continue };
        let unit = &mut history.units[at];
        if unit.kept.is_none() && unit.tokens <= free {
            free -= unit.tokens;
            unit.kept = Some(KeptReason::Restored);
        }
    }
    Some(history)
}

/// Gives the reason for messages that the user wants back and that are not shown whole.
fn say_what_found_no_room(request: &WindowInput<'_>, chosen: &mut Projection) {
    let history = request.history;
    for (unit, verdict) in history.units.iter().zip(&mut chosen.verdicts) {
        let is_wanted = || history.members(unit).any(|it| request.restored.contains(&it.number));
        if verdict.fate != Fate::Kept && is_wanted() {
            verdict.reason = NO_ROOM;
        }
    }
}

/// Admits the texts that fit into the window together with the messages that cannot be left out.
/// The newest message has priority over texts that the phase does not require: an agent that does
/// not see a tool's answer calls the tool again.
fn admit(offer: &mut Offer, request: &WindowInput<'_>) {
    let left = |offer: &Offer| request.max_tokens - offer.tokens();
    let kept = request.history.units.iter().filter(|unit| unit.kept.is_some());
    let never_lost: u64 = kept.map(|unit| unit.tokens).sum();
    let newest = newest_unit_cost(request.history);
    let free = left(offer) - never_lost;
    let held = never_lost + if newest <= free { newest } else { 0 };
    offer.admit(left(offer) - held, Need::May);
    offer.admit_previous_units(left(offer) / 2, left(offer) - held);
}

/// Returns the cost of the last message's unit, or 0 if that unit cannot be left out anyway.
fn newest_unit_cost(history: &History<'_>) -> u64 {
    let last = history.messages.len().checked_sub(1);
    let newest = history.units.iter().rev().find(|unit| unit.members.last().copied() == last);
    newest.filter(|unit| unit.kept.is_none()).map_or(0, |unit| unit.tokens)
}

fn parts(offer: &Offer, history: &History<'_>, chosen: &Projection) -> Vec<MessagePart> {
    let mut parts = Vec::with_capacity(offer.texts.len() + chosen.shown.len());
    let (prompts, messages) = chosen.shown.split_at(prompts(history, chosen));
    for section in Section::ALL {
        let of_messages: &[Shown] = match section {
            // Prompts go before the items and the summary, which change during a conversation.
            Section::ContextItems => prompts,
            Section::Messages => messages,
            _ => &[],
        };
        parts.extend(of_messages.iter().map(|shown| part_of(history, shown)));
        let texts = offer.admitted().filter(|offered| offered.section == *section);
        let part = |text: &OfferedText| {
            MessagePart::of_system(*section, Arc::clone(&text.text), text.tokens)
        };
        parts.extend(texts.map(part));
    }
    parts
}

/// Counts the system prompts with which the chosen messages begin.
fn prompts(history: &History<'_>, chosen: &Projection) -> usize {
    let is_prompt = |shown: &&Shown| match shown {
        Shown::Whole(index) => history.messages[*index].role == Role::System,
        Shown::Shortened { .. } | Shown::Note { .. } => false,
    };
    chosen.shown.iter().take_while(is_prompt).count()
}

fn part_of(history: &History<'_>, shown: &Shown) -> MessagePart {
    let tokens = shown.tokens(history);
    let (index, content) = match shown {
        Shown::Whole(index) => (index, Arc::clone(&history.messages[*index].content)),
        Shown::Shortened { index, content, .. } => (index, Arc::from(content.as_str())),
        Shown::Note { content, .. } => {
            return MessagePart::of_system(Section::Messages, Arc::from(content.as_str()), tokens);
        }
    };
    let message = history.messages[*index];
    MessagePart {
        section: Section::Messages,
        role: message.role,
        content,
        message: Some(message.number),
        tool_calls: message.tool_calls.clone(),
        tool_call_id: message.tool_call_id.clone(),
        opaque: message.opaque.clone().filter(|_| matches!(shown, Shown::Whole(_))),
        tokens,
    }
}

impl MessagePart {
    fn of_system(section: Section, content: Arc<str>, tokens: u64) -> Self {
        Self {
            section,
            role: Role::System,
            content,
            message: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            opaque: None,
            tokens,
        }
    }
}

impl Window {
    /// Returns the record that the next window is compared with.
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint(&self.parts)
    }
}

pub(super) fn fingerprint(parts: &[MessagePart]) -> Fingerprint {
    let print = |part: &MessagePart| Print {
        section: part.section,
        role: part.role,
        message: part.message,
        content: Arc::clone(&part.content),
        tokens: part.tokens,
    };
    Fingerprint { prints: parts.iter().map(print).collect() }
}

impl WindowUsage {
    fn of(parts: &[MessagePart], phase: Option<Phase>) -> Self {
        let of = |sections: &[Section]| {
            let spent = parts.iter().filter(|part| sections.contains(&part.section));
            spent.map(|part| part.tokens).sum()
        };
        Self {
            phase,
            system: of(&[Section::SystemPrompt]),
            design: of(&[Section::DesignDocument]),
            types: of(&[Section::TypeDefinitions]),
            current_context: of(&[
                Section::CurrentUnit,
                Section::RelevantTests,
                Section::Implementation,
            ]),
            messages: of(&[Section::Messages]),
            total: parts.iter().map(|part| part.tokens).sum(),
        }
    }
}

#[cfg(test)]
mod exact_tests;
#[cfg(test)]
mod tests;
