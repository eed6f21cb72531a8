//! A window: what a model is shown, built within a number of tokens, with an account of why.
//!
//! Sections are admitted first, the messages get what is left. When not everything fits, what goes
//! is, in this order: previous units, the least recent first; grounding, implementations, tests,
//! types, context items and the summary, unless the phase requires them; then older messages; then
//! what the phase requires. Tools, system prompt, design document, current unit and messages that
//! are never lost always stay, or there is no window.

use std::sync::Arc;

use super::budget::{BudgetTooSmall, Irreducible};
use super::offer::Offer;
use super::report::{Fingerprint, Print, Report, What};
use super::section::{Section, Sections};
use super::strategy::{Aim, Projection, Shown, Strategy};
use super::unit::History;
use super::{account, guard};
use crate::session::message::{Phase, Role, ToolCall};

/// From what a window is built.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What it can have beside the messages.
    pub sections: &'a Sections,
    /// The messages in view, and what things cost.
    pub history: &'a History<'a>,
    /// The phase of the work, which decides on sections; without one, everything is offered.
    pub phase: Option<Phase>,
    /// Who chooses from the messages.
    pub strategy: &'a dyn Strategy,
    /// What is being asked, when something is.
    pub query: Option<&'a str>,
    /// How many tokens the window may cost.
    pub max_tokens: u64,
    /// The window before this one.
    pub previous: Option<&'a Fingerprint>,
}

/// What a model is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Its parts, in their order.
    pub parts: Vec<Part>,
    /// What all of them cost; never more than was asked for.
    pub tokens: u64,
    /// What was kept and left out, and why.
    pub report: Report,
    /// What it costs, for the log of usage.
    pub usage: Usage,
}

/// A part of a window: one message to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The section that it belongs to.
    pub section: Section,
    /// Who says it; the texts of sections are the system's.
    pub role: Role,
    /// The text.
    pub content: Arc<str>,
    /// The message of the session that it is, if it is one.
    pub message: Option<u64>,
    /// The calls of an assistant's message.
    pub tool_calls: Vec<ToolCall>,
    /// Which call it answers.
    pub tool_call_id: Option<String>,
    /// What it costs.
    pub tokens: u64,
}

/// What a window costs, by what it is spent on; an entry of the log of usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The phase.
    pub phase: Option<Phase>,
    /// The system prompt.
    pub system: u64,
    /// The design document.
    pub design: u64,
    /// The type definitions.
    pub types: u64,
    /// The current unit, its tests, and implementations.
    pub current_context: u64,
    /// The messages.
    pub messages: u64,
    /// Everything, also what has no figure of its own here.
    pub total: u64,
}

/// Builds a window. The same request gives the same bytes.
///
/// # Errors
///
/// [`BudgetTooSmall`] when what can never be left out costs more than [`Request::max_tokens`].
pub fn build(request: &Request<'_>) -> Result<Window, BudgetTooSmall> {
    let Request { history, max_tokens, .. } = *request;
    let mut offer = Offer::new(request.sections, request.phase, history.measure);
    let never_lost = check(request, &offer)?;
    admit(&mut offer, request, never_lost);
    let budget = max_tokens - offer.tokens();
    let aim = Aim { budget, query: request.query };
    let chosen = guard::mended(history, budget, request.strategy.project(history, &aim));
    let parts = parts(&offer, history, &chosen);
    let tokens = parts.iter().map(|part| part.tokens).sum();
    let usage = Usage::of(&parts, request.phase);
    let report = account::report(request, &offer, chosen, &parts);
    Ok(Window { parts, tokens, report, usage })
}

/// What the messages cost that are never lost, if they and the texts that are never trimmed fit.
fn check(request: &Request<'_>, offer: &Offer) -> Result<u64, BudgetTooSmall> {
    let Request { history, max_tokens, .. } = *request;
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
    Err(BudgetTooSmall { needed, max_tokens, parts })
}

/// The units that are never lost, as the error names them.
pub(super) fn irreducible<'b>(history: &'b History<'_>) -> impl Iterator<Item = Irreducible> + 'b {
    history.units.iter().filter_map(|unit| {
        Some(Irreducible {
            section: Section::Messages,
            what: What::Messages(history.members(unit).map(|message| message.number).collect()),
            reason: unit.kept?.reason(),
            tokens: unit.tokens,
        })
    })
}

/// Admits what fits beside the messages that are never lost. The newest message goes before what
/// the phase does not require: an agent that does not see what its tool answered calls it again.
fn admit(offer: &mut Offer, request: &Request<'_>, never_lost: u64) {
    let left = |offer: &Offer| request.max_tokens - offer.tokens();
    offer.admit_required(left(offer) - never_lost);
    let newest = newest_unit_cost(request.history);
    let free = left(offer) - never_lost;
    let held = never_lost + if newest <= free { newest } else { 0 };
    offer.admit_optional(left(offer) - held);
    offer.admit_previous_units(left(offer) / 2, left(offer) - held);
}

/// What the unit of the last message costs, beyond what is never lost.
fn newest_unit_cost(history: &History<'_>) -> u64 {
    let last = history.messages.len().checked_sub(1);
    let newest = history.units.iter().rev().find(|unit| unit.members.last().copied() == last);
    newest.filter(|unit| unit.kept.is_none()).map_or(0, |unit| unit.tokens)
}

fn parts(offer: &Offer, history: &History<'_>, chosen: &Projection) -> Vec<Part> {
    let mut parts = Vec::with_capacity(offer.texts.len() + chosen.shown.len());
    let (prompts, messages) = chosen.shown.split_at(prompts(history, chosen));
    for section in Section::ALL {
        let of_messages: &[Shown] = match section {
            // Before the items and the summary, which change while a conversation goes on.
            Section::ContextItems => prompts,
            Section::Messages => messages,
            _ => &[],
        };
        parts.extend(of_messages.iter().map(|shown| part_of(history, shown)));
        let texts = offer.admitted().filter(|offered| offered.section == *section);
        parts.extend(
            texts.map(|offered| {
                Part::of_system(*section, Arc::clone(&offered.text), offered.tokens)
            }),
        );
    }
    parts
}

/// With how many system prompts the messages begin.
fn prompts(history: &History<'_>, chosen: &Projection) -> usize {
    let is_prompt = |shown: &&Shown| match shown {
        Shown::Whole(index) => history.messages[*index].role == Role::System,
        Shown::Shortened { .. } | Shown::Note { .. } => false,
    };
    chosen.shown.iter().take_while(is_prompt).count()
}

fn part_of(history: &History<'_>, shown: &Shown) -> Part {
    let tokens = guard::tokens(history, shown);
    let (index, content) = match shown {
        Shown::Whole(index) => (index, Arc::clone(&history.messages[*index].content)),
        Shown::Shortened { index, content, .. } => (index, Arc::from(content.as_str())),
        Shown::Note { content, .. } => {
            return Part::of_system(Section::Messages, Arc::from(content.as_str()), tokens);
        }
    };
    let message = history.messages[*index];
    Part {
        section: Section::Messages,
        role: message.role,
        content,
        message: Some(message.number),
        tool_calls: message.tool_calls.clone(),
        tool_call_id: message.tool_call_id.clone(),
        tokens,
    }
}

impl Part {
    fn of_system(section: Section, content: Arc<str>, tokens: u64) -> Self {
        Self {
            section,
            role: Role::System,
            content,
            message: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tokens,
        }
    }
}

impl Window {
    /// What the next window is to be compared with.
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint(&self.parts)
    }
}

pub(super) fn fingerprint(parts: &[Part]) -> Fingerprint {
    let print = |part: &Part| Print {
        section: part.section,
        role: part.role,
        message: part.message,
        content: Arc::clone(&part.content),
        tokens: part.tokens,
    };
    Fingerprint { prints: parts.iter().map(print).collect() }
}

impl Usage {
    fn of(parts: &[Part], phase: Option<Phase>) -> Self {
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
mod tests;
