//! Builds the windows that models see, in the same way for every caller.

use std::sync::Arc;

use super::pictures::{SeenPictures, seen};
use super::refresh::current;
use super::{AgentError, Job};
use crate::context::render::Format;
use crate::context::render::budget::Piece;
use crate::context::render::once::fit_once;
use crate::context::render::report::{ItemFate, ItemVerdict};
use crate::curation::section::{CountedText, Sections};
use crate::curation::similarity::Similarity;
use crate::curation::strategy::{self, Strategy};
use crate::curation::unit::{Folded, History};
use crate::curation::window::{self, Window, WindowInput};
use crate::engine::{EngineError, Material, SessionContext, Summarizing, View, name_views};
use crate::ids::ItemId;
use crate::provider::chat::ShownAttachment;
use crate::session::message::{Message, Phase};
use crate::tokens::{Counter, Measure};

/// Shares of a window that the items may take. The first share is always available; a larger one is
/// available if everything else leaves that much room. There are only a few steps, so that the
/// rendered items stay the same while a conversation grows. The report names items that do not fit.
const ITEMS_SHARES: [f64; 4] = [0.5, 0.625, 0.75, 0.875];

/// The purpose and the limits of a window.
#[derive(Clone, Default)]
pub struct Purpose {
    /// Phase of the work, which decides which sections are offered.
    pub phase: Option<Phase>,
    /// Strategy that chooses from the messages; the session's by default.
    pub strategy: Option<&'static dyn Strategy>,
    /// Maximum cost in tokens; by default, that of the conversation.
    pub max_tokens: Option<u64>,
    /// True if the parts that cannot be left out may use the model's whole limit, unless the
    /// session sets a maximum.
    pub may_grow: bool,
    /// Current question, for strategies that use it.
    pub query: Option<String>,
    /// Vector of the question, computed by the same model as the vectors of the messages.
    pub vector: Option<Vec<f32>>,
    /// Numbers of messages that the user wants back in this window.
    pub restored: Vec<u64>,
    /// Texts besides the conversation.
    pub sections: Sections,
    /// True if the model's server takes PDFs as they are.
    pub takes_pdf: bool,
    /// True if the history is a program's own, so that no reader can ask for its messages by ids.
    pub is_apart: bool,
}

/// A window, with the outcome of each offered item.
pub struct Built {
    /// The window.
    pub window: Window,
    /// Outcome of each item.
    pub items: Vec<ItemVerdict>,
    /// Pictures and PDFs that the model sees with the user's last message.
    pub pictures: Vec<ShownAttachment>,
}

/// Returns the strategy with this name.
///
/// # Errors
/// [`AgentError::NoSuchStrategy`].
pub fn named_strategy(name: &str) -> Result<&'static dyn Strategy, AgentError> {
    strategy::find(name).ok_or_else(|| AgentError::NoSuchStrategy { name: name.to_owned() })
}

/// Builds a window. The items in `material` must be up to date. Takes long, so call it on a thread
/// that may block.
///
/// # Errors
/// [`EngineError::BudgetTooSmall`], and [`AgentError::NoSuchStrategy`] if the session names a
/// strategy that does not exist.
pub fn build(
    counter: &dyn Counter,
    material: Material,
    purpose: Purpose,
) -> Result<Built, AgentError> {
    let Material { context, messages, said, summary, mut items, previous, vectors, words } =
        material;
    let of_conversation = context.max_tokens();
    let SessionContext { settings, costs, .. } = context;
    let measure = &costs.measure;
    let max_tokens = match purpose.max_tokens {
        // The model would refuse a window above its limit.
        Some(given) if costs.model.known => given.min(costs.model.limit),
        Some(given) => given,
        None => of_conversation,
    };
    let mut sections = purpose.sections;
    let strategy = match (purpose.strategy, settings.strategy.as_deref()) {
        (Some(strategy), _) => strategy,
        (None, Some(name)) => named_strategy(name)?,
        (None, None) => strategy::ALL[0],
    };
    let mut history = History::new(messages.iter().map(|message| &**message).collect(), measure);
    history.words = words.as_deref();
    history.can_read = !purpose.is_apart;
    history.folded = summary.as_ref().and_then(|summary| folded(&history, summary, max_tokens));
    let counted = |it: &Summarizing| CountedText { text: Arc::clone(&it.text), tokens: it.tokens };
    sections.summary = summary.as_ref().map(counted);
    let summary = summary.and_then(|summary| summary.source);
    let of_message = |message: &&Message| vectors.get(&message.number).map(|vector| &**vector);
    let similarity = purpose.vector.filter(|_| !vectors.is_empty());
    let similarity =
        similarity.map(|query| Similarity::of(&query, history.messages.iter().map(of_message)));
    let share = items_share(max_tokens, history.others(), &sections, measure);
    let SeenPictures { mut pictures, dropped } =
        seen(&mut items, &costs.model, purpose.takes_pdf, share, counter)?;
    let of_pictures =
        |shown: &[(ItemId, u64, ShownAttachment)]| shown.iter().map(|it| it.1).sum::<u64>();
    let share = share - of_pictures(&pictures);
    let (mut text, mut verdicts) = items_text(counter, &items, share, measure);
    // A picture goes with the text that names it.
    let is_there = |it: &ItemVerdict, id| it.id == id && it.fate != ItemFate::Dropped;
    pictures.retain(|(id, ..)| verdicts.iter().any(|it| is_there(it, *id)));
    if let Some(text) = &mut text {
        text.tokens += (of_pictures(&pictures) as f64 / measure.factor()).ceil() as u64;
    }
    verdicts.extend(dropped);
    sections.context_items = text;
    let grows = purpose.may_grow && settings.turn.max_tokens.is_none() && costs.model.known;
    let fitted = |history: &History<'_>| {
        let request = WindowInput {
            sections: &sections,
            history,
            phase: purpose.phase,
            strategy,
            query: purpose.query.as_deref(),
            similarity: similarity.as_ref(),
            summary: summary.as_ref(),
            max_tokens,
            previous: previous.as_ref(),
            restored: &purpose.restored,
            once: false,
        };
        match window::build(&request) {
            Err(error) if grows && error.needed <= costs.model.limit => {
                window::build(&WindowInput { max_tokens: error.needed, ..request })
            }
            built => built,
        }
    };
    let mut window = fitted(&history);
    if window.is_err() && history.let_go_of_first() {
        window = fitted(&history);
    }
    let mut window = window.map_err(EngineError::from)?;
    window.report.messages.of = said.max(window.report.messages.of);
    let pictures = pictures.into_iter().map(|(.., shown)| shown).collect();
    Ok(Built { window, items: verdicts, pictures })
}

/// Brings the live items up to date and builds a window, on a thread that may block.
///
/// # Errors
/// The errors of [`build`], and [`AgentError::Defect`] with `what` if building panics.
pub async fn build_aside(
    job: &Job,
    what: &'static str,
    material: Material,
    purpose: Purpose,
) -> Result<Built, AgentError> {
    let built = job.aside(what, move |job| {
        let counter = &*job.services.counter;
        let mut items = current(&job.services, counter, job.caller, material.items);
        name_views(&holders(&items), &mut items);
        build(counter, Material { items, ..material }, purpose)
    });
    built.await?
}

/// Finds the messages that a summary stands in for; `None` if the history has none of them.
fn folded(history: &History<'_>, summary: &Summarizing, room: u64) -> Option<Folded> {
    let covers = |message: &&Message| !message.pinned && summary.covers.contains(message.number);
    let is_folded: Vec<bool> = history.messages.iter().map(covers).collect();
    let count = is_folded.iter().filter(|is_folded| **is_folded).count() as u64;
    let newest = history.messages.iter().rposition(|it| it.number <= summary.position)?;
    let has_others = count < summary.covers.len();
    (count > 0).then_some(Folded { is_folded, newest, room, has_others })
}

/// Returns the managers that hold the items, in the order of the items.
fn holders(views: &[View]) -> Vec<String> {
    let mut names: Vec<String> = views.iter().map(|view| view.manager.to_string()).collect();
    names.dedup();
    names
}

/// Returns the maximum number of tokens for the items, given the cost of the history, `tokens`, and
/// the other sections.
fn items_share(max_tokens: u64, tokens: u64, sections: &Sections, measure: &Measure) -> u64 {
    let taken = tokens + sections.tokens(measure);
    let of_window = |share: f64| (max_tokens as f64 * share).floor() as u64;
    let known = sections.failures.is_empty() && sections.units.is_empty();
    let is_free = |share: &&f64| known && of_window(**share) + taken <= max_tokens;
    let share = ITEMS_SHARES.iter().rfind(is_free).unwrap_or(&ITEMS_SHARES[0]);
    of_window(*share)
}

/// Renders the items within a number of tokens, and reports the outcome of each.
fn items_text(
    counter: &dyn Counter,
    views: &[View],
    max_tokens: u64,
    measure: &Measure,
) -> (Option<CountedText>, Vec<ItemVerdict>) {
    if views.is_empty() {
        return (None, Vec::new());
    }
    let pieces: Vec<Piece<'_>> = views.iter().map(View::piece).collect();
    let share = (max_tokens as f64 / measure.factor()).floor() as u64;
    match fit_once(&pieces, Format::Markdown, Some(share), counter) {
        Ok(fitted) => {
            let counted = CountedText { text: fitted.text.into(), tokens: fitted.tokens };
            (Some(counted), fitted.report)
        }
        // Not even the header fits, but the rest of the window may.
        Err(_) => (None, pieces.iter().map(no_room).collect()),
    }
}

fn no_room(piece: &Piece<'_>) -> ItemVerdict {
    let reason = "no room for items in this window".to_owned();
    ItemVerdict { id: piece.item.id, tokens: 0, fate: ItemFate::Dropped, reason }
}
