//! The strategy `tiered`: first gives up the parts that are easiest to get back. Works in batches,
//! so that most windows begin with the same bytes as the window before.
//!
//! Each tier starts with the oldest messages. First, a line replaces the result of a read if the
//! same file was read again later. Then only the beginning and the end of large results stay. Then
//! a line replaces any other result. At last, whole units are dropped, and a note keeps their
//! ledger, the list of their facts. Each replacement names the message with the original.
//!
//! More is given up than has to be. The room is then filled with the lines that the work at hand
//! names: old results are cut to them, and the note quotes them from dropped messages.

mod asked;
mod excerpt;
mod fold;
mod form;
mod note;
mod pieces;
mod reads;
mod shorten;
mod work;

use fold::Fold;
use form::Form;
use note::Note;
use pieces::Pieces;

use super::selection::Selection;
use super::{Aim, Fate, Projection, Shown, Strategy, Verdict};
use crate::curation::unit::History;

/// The default strategy; see the module's documentation.
pub(super) struct Tiered;

impl Strategy for Tiered {
    fn name(&self) -> &'static str {
        "tiered"
    }

    fn doc(&self) -> &'static str {
        "Shortens old tool results, then leaves out old messages and keeps a ledger of them. \
         Works in batches, so that prompt caches stay valid; with a query, the best matches stay."
    }

    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection {
        if history.tokens() <= fold::trigger(aim.budget) {
            return Selection::new(history, aim.budget).all();
        }
        match aim.query {
            Some(query) => asked::project(history, aim.budget, query),
            None => {
                let mut fold = Fold::over(history, aim.budget);
                let pieces = fold.fill();
                Draft::new(history, fold.forms, pieces).within(aim.budget)
            }
        }
    }
}

/// A projection whose notes and shortened messages are written and counted.
struct Draft<'a, 'h> {
    history: &'a History<'h>,
    forms: Vec<Form>,
    /// Lines of messages that are not shown whole.
    pieces: Pieces<'h>,
    /// Replacement of each shortened message, with its cost.
    written: Vec<Option<(String, u64)>>,
    tokens: u64,
}

impl<'a, 'h> Draft<'a, 'h> {
    /// Writes the replacements. A message stays whole if its replacement would cost as much or
    /// more.
    fn new(history: &'a History<'h>, mut forms: Vec<Form>, pieces: Pieces<'h>) -> Self {
        let mut written = vec![None; forms.len()];
        let mut tokens = 0;
        let mut cut = pieces.results(&mut forms);
        for (index, form) in forms.iter_mut().enumerate() {
            let message = history.messages[index];
            let whole = history.measure.message(message.tokens);
            let text = match cut.remove(&index) {
                Some(lines) => Some(excerpt::of_result(message.number, &lines)),
                None => shorten::text(message, *form),
            };
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
        Self { history, forms, pieces, written, tokens }
    }

    /// Drops more units if the guessed costs were too low, and adds the note.
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

    /// Returns the current cost of a message.
    fn cost(&self, index: usize) -> u64 {
        match (&self.forms[index], &self.written[index]) {
            (Form::Dropped, _) => 0,
            (_, Some((_, tokens))) => *tokens,
            _ => self.history.measure.message(self.history.messages[index].tokens),
        }
    }

    fn note(&self, budget: u64) -> Option<Note> {
        let is_dropped = |index: usize| self.forms[index] == Form::Dropped;
        let dropped: Vec<usize> = (0..self.forms.len()).filter(|at| is_dropped(*at)).collect();
        let room = budget.saturating_sub(self.tokens);
        let reserve = room.min(fold::reserve(budget));
        let note = Note::of(self.history, &dropped, reserve)?;
        let quoted = self.pieces.quoted(self.history, is_dropped, room - note.tokens);
        Some(match quoted {
            Some(text) => note.with(self.history, &text, room),
            None => note,
        })
    }

    /// Lists the messages in the order of the log, with the note in the place of the first left-out
    /// message.
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
            Form::Spilled => (Fate::Shortened, "a large result, shown by its beginning and end"),
            Form::Cut => (Fate::Shortened, "an old result, cut to the lines that the work names"),
            Form::Repeated(_) => (Fate::Shortened, "the same file was read again later"),
            Form::Masked => (Fate::Shortened, "an old result of a tool"),
            Form::Dropped => (Fate::Dropped, "no room for units this old"),
        };
        let reason = unit.kept.map_or(reason, |kept| kept.reason());
        Verdict { fate, reason, score: None }
    }
}

#[cfg(test)]
mod tests;
