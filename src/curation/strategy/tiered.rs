//! `tiered`: gives up what is cheapest to get back first, and in batches, so that one turn's
//! window begins with the same bytes as the last one's.
//!
//! The tiers, oldest messages first: the result of a read is replaced by a line when the same file
//! was read again later; a large result by its beginning and its end; any other result by a
//! line; at last whole units go, and a note keeps the ledger of them. Everything that is left out
//! says by which message it can be had again.

mod asked;
mod fold;
mod note;
mod reads;
mod shorten;

use fold::{Fold, Form};
use note::Note;

use super::{Aim, Fate, Projection, Shown, Strategy, Verdict, show};
use crate::curation::unit::History;

/// The default strategy; see the module.
pub(super) struct Tiered;

impl Strategy for Tiered {
    fn name(&self) -> &'static str {
        "tiered"
    }

    fn doc(&self) -> &'static str {
        "Shortens old results of tools and then leaves out old messages, in batches so that prompt \
         caches stay good, and keeps a ledger of them; with a query, what fits it best stays."
    }

    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection {
        if history.tokens() <= fold::trigger(aim.budget) {
            return show::everything(history, "everything fits");
        }
        match aim.query {
            Some(query) => asked::project(history, aim.budget, query),
            None => {
                let forms = Fold::over(history, aim.budget).forms;
                Draft::new(history, forms).within(aim.budget)
            }
        }
    }
}

/// A projection whose notes and shortened messages are written and counted.
struct Draft<'a, 'h> {
    history: &'a History<'h>,
    forms: Vec<Form>,
    /// What takes the place of a shortened message, and what it costs.
    written: Vec<Option<(String, u64)>>,
    tokens: u64,
}

impl<'a, 'h> Draft<'a, 'h> {
    /// Writes what the forms say. A message stays whole when its replacement would cost no less.
    fn new(history: &'a History<'h>, mut forms: Vec<Form>) -> Self {
        let mut written = vec![None; forms.len()];
        let mut tokens = 0;
        for (index, form) in forms.iter_mut().enumerate() {
            let message = history.messages[index];
            let whole = history.measure.message(message.tokens);
            let text = shorten::text(message, *form);
            let cost = text.as_ref().map(|text| history.measure.note(text));
            match (text, cost) {
                (Some(text), Some(cost)) if cost < whole => {
                    tokens += cost;
                    written[index] = Some((text, cost));
                }
                _ if *form == Form::Dropped => {}
                _ => {
                    *form = Form::Whole;
                    tokens += whole;
                }
            }
        }
        Self { history, forms, written, tokens }
    }

    /// Leaves out more where the fold's guesses were too low, and adds the note.
    fn within(mut self, budget: u64) -> Projection {
        let mut units = 0..self.history.units.len();
        while self.tokens > budget {
            let Some(at) = units.next() else { break };
            if self.history.units[at].kept.is_none() {
                self.drop_unit(at);
            }
        }
        let note = self.note(budget);
        self.show(note)
    }

    fn drop_unit(&mut self, at: usize) {
        for &member in &self.history.units[at].members {
            self.tokens -= self.cost(member);
            self.forms[member] = Form::Dropped;
            self.written[member] = None;
        }
    }

    /// What a message now costs.
    fn cost(&self, index: usize) -> u64 {
        match (&self.forms[index], &self.written[index]) {
            (Form::Dropped, _) => 0,
            (_, Some((_, tokens))) => *tokens,
            _ => self.history.measure.message(self.history.messages[index].tokens),
        }
    }

    fn note(&self, budget: u64) -> Option<Note> {
        let dropped = (0..self.forms.len()).filter(|index| self.forms[*index] == Form::Dropped);
        let room = budget.saturating_sub(self.tokens).min(fold::reserve(budget));
        Note::of(self.history, &dropped.collect::<Vec<_>>(), room)
    }

    /// The messages in the order of the log; the note is where the first one is missing.
    fn show(self, mut note: Option<Note>) -> Projection {
        let verdicts = (0..self.history.units.len()).map(|at| self.verdict(at)).collect();
        let mut shown = Vec::new();
        for (index, (form, written)) in self.forms.iter().zip(self.written).enumerate() {
            match (form, written) {
                (Form::Dropped, _) => {
                    let note = note.take();
                    shown.extend(
                        note.map(|Note { content, tokens }| Shown::Note { content, tokens }),
                    );
                }
                (_, Some((content, tokens))) => {
                    shown.push(Shown::Shortened { index, content, tokens });
                }
                (_, None) => shown.push(Shown::Whole(index)),
            }
        }
        Projection { shown, verdicts }
    }

    fn verdict(&self, at: usize) -> Verdict {
        let unit = &self.history.units[at];
        let strongest = unit.members.iter().map(|member| self.forms[*member]).max();
        let (fate, reason) = match strongest.unwrap_or(Form::Whole) {
            Form::Whole => (Fate::Kept, "new enough to stay whole"),
            Form::Spilled => (Fate::Shortened, "a large result, only its ends are shown"),
            Form::Repeated(_) => (Fate::Shortened, "the same file was read again later"),
            Form::Masked => (Fate::Shortened, "an old result of a tool"),
            Form::Dropped => (Fate::Dropped, "older than what there is room for"),
        };
        let reason = unit.kept.map_or(reason, |kept| kept.reason());
        Verdict { fate, reason, score: None }
    }
}

#[cfg(test)]
mod tests;
