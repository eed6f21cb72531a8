//! The strategy `tiered`: first gives up the parts that are easiest to get back. It gives up parts
//! in batches, so that most windows begin with the same bytes as the window before.
//!
//! Old messages are dropped first. If the newest messages are too large, only the beginning and the
//! end of their large results stay; if that is not enough, a line replaces each result and names
//! the message with the original.
//!
//! The strategy gives up more than necessary. It then fills the freed room with those lines of the
//! given-up messages that the work at hand refers to, and with whole units if room is left. A note
//! contains the ledger of the dropped messages (the list of their facts), and then these lines.

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
use work::Work;

use super::selection::Selection;
use super::{Aim, Fate, Projection, Shown, Strategy, Verdict};
use crate::curation::unit::History;

/// Reason for showing a unit that a summary stands in for.
const AGAIN: &str = "summarized, but there is room for it";
/// Reason for leaving out a unit that a summary stands in for.
const SUMMARIZED: &str = "summarized, and no room for it";

/// The default strategy; see the module's documentation.
pub(super) struct Tiered;

impl Strategy for Tiered {
    fn name(&self) -> &'static str {
        "tiered"
    }

    fn doc(&self) -> &'static str {
        "Leaves out old messages, but keeps a ledger of their facts, and their lines about the \
         current work. Works in batches, so that prompt caches stay valid; with a query, the best \
         matches stay."
    }

    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection {
        let budget = if aim.query.is_some() { history.room(aim.budget) } else { aim.budget };
        let folds_for_summary = history.folded.is_some() && aim.query.is_none();
        if history.tokens() <= fold::trigger(budget) && !folds_for_summary {
            return Selection::new(history, aim.budget).all();
        }
        match aim.query {
            Some(query) => asked::project(history, &Aim { budget, ..*aim }, query),
            None => {
                let fold = Fold::over(history, aim.budget);
                let work = fold.work();
                let mut draft = Draft::new(history, aim.budget, fold.forms.clone());
                if let Some((work, now, target)) = work {
                    let newest_first = (0..history.units.len()).rev();
                    let order = newest_first.filter(|unit| !fold.is_outdated(*unit));
                    draft.fill(work, now, target, order);
                }
                draft.within()
            }
        }
    }
}

/// A projection whose shortened messages are written and counted.
struct Draft<'a, 'h> {
    history: &'a History<'h>,
    budget: u64,
    forms: Vec<Form>,
    /// Replacement of each shortened message, with its cost.
    written: Vec<Option<(String, u64)>>,
    /// Cost of all shown messages, without the note.
    tokens: u64,
    note: Option<Note>,
}

impl<'a, 'h> Draft<'a, 'h> {
    /// Writes the replacements. A message stays whole if its replacement would not cost less.
    fn new(history: &'a History<'h>, budget: u64, forms: Vec<Form>) -> Self {
        let written = vec![None; forms.len()];
        let mut draft = Self { history, budget, forms, written, tokens: 0, note: None };
        for (index, message) in history.messages.iter().enumerate() {
            let text = shorten::text(message, draft.forms[index]);
            let written = text.map(|text| (history.measure.note(&text), text));
            let whole = history.measure.message(message.tokens);
            match written.filter(|(cost, _)| *cost < whole) {
                Some((cost, text)) => draft.written[index] = Some((text, cost)),
                None if draft.forms[index] == Form::Dropped => {}
                None => draft.forms[index] = Form::Whole,
            }
            draft.tokens += draft.cost(index);
        }
        draft
    }

    /// Fills the window up to `target`, as if message `now` were the newest. Adds lines that the
    /// work at hand refers to, and then whole units in the given order.
    fn fill(
        &mut self,
        work: Work<'h>,
        now: usize,
        target: u64,
        order: impl Iterator<Item = usize>,
    ) {
        let later: u64 = (now + 1..self.forms.len()).map(|index| self.cost(index)).sum();
        let room = target.saturating_sub(self.tokens - later);
        let ledger = self.ledger(room);
        let mut pieces = Pieces::new(self.history, work);
        let bare = self.note(&ledger, None, room).map_or(0, |note| note.tokens);
        let free = room.saturating_sub(bare) as f64;
        pieces.take(free);
        pieces.take(free * pieces.overestimate());
        self.note = self.note(&ledger, Some(&mut pieces), room);
        let used = self.note.as_ref().map_or(0, |note| note.tokens);
        let is_old = |unit: &usize| self.history.units[*unit].members[0] <= now;
        if self.restore(order.filter(is_old), room.saturating_sub(used)) {
            self.note = self.note(&ledger, Some(&mut pieces), used);
        }
    }

    /// Writes the note about messages that are not shown whole, in at most `room` tokens.
    fn note(&self, ledger: &str, pieces: Option<&mut Pieces<'_, '_>>, room: u64) -> Option<Note> {
        let head = note::head(self.history, &self.dropped());
        let gap = if ledger.is_empty() { "" } else { "\n\n" };
        let bare = format!("{head}{gap}{ledger}");
        let is_whole = |index: usize| self.forms[index] == Form::Whole;
        let quoted = pieces.and_then(|pieces| pieces.quoted(&bare, is_whole, room));
        let mut notes = [bare, head].into_iter().filter(|content| !content.is_empty());
        let counted = |content: String| Note::new(self.history, content);
        quoted.or_else(|| notes.by_ref().map(counted).find(|note| note.tokens <= room))
    }

    /// Returns the ledger of the dropped messages that no summary stands in for, in at most `room`
    /// tokens.
    fn ledger(&self, room: u64) -> String {
        let told = |index: &usize| self.history.is_folded(*index);
        let dropped: Vec<usize> = self.dropped().into_iter().filter(|it| !told(it)).collect();
        note::ledger(self.history, &dropped, room.min(fold::reserve(self.budget)))
    }

    fn dropped(&self) -> Vec<usize> {
        (0..self.forms.len()).filter(|index| self.forms[*index] == Form::Dropped).collect()
    }

    /// Shows each unit of `order` whole if the unit fits into what remains of `left` tokens.
    /// Returns whether any room was used.
    fn restore(&mut self, order: impl Iterator<Item = usize>, mut left: u64) -> bool {
        let before = left;
        for unit in order {
            let members = &self.history.units[unit].members;
            let whole =
                |index: usize| self.history.measure.message(self.history.messages[index].tokens);
            let more: u64 = members.iter().map(|index| whole(*index) - self.cost(*index)).sum();
            if more <= left {
                left -= more;
                self.tokens += more;
                for &index in members {
                    self.forms[index] = Form::Whole;
                    self.written[index] = None;
                }
            }
        }
        left < before
    }

    /// Drops more units, oldest first, if the guessed costs were too low. Returns the projection.
    fn within(mut self) -> Projection {
        let mut units = 0..self.history.units.len();
        while self.tokens > self.budget {
            let Some(at) = units.next() else { break };
            if self.history.units[at].kept.is_none() {
                self.drop_unit(at);
            }
        }
        let room = self.budget - self.tokens.min(self.budget);
        let note = self.note.take().filter(|note| note.tokens <= room);
        self.note = note.or_else(|| self.note(&self.ledger(room), None, room));
        self.show()
    }

    fn drop_unit(&mut self, at: usize) {
        for &member in &self.history.units[at].members {
            self.tokens -= self.cost(member);
            self.forms[member] = Form::Dropped;
            self.written[member] = None;
        }
    }

    /// Returns the cost of a message in its current form, in tokens.
    fn cost(&self, index: usize) -> u64 {
        match (&self.forms[index], &self.written[index]) {
            (Form::Dropped, _) => 0,
            (_, Some((_, tokens))) => *tokens,
            _ => self.history.measure.message(self.history.messages[index].tokens),
        }
    }

    /// Lists the messages in the order of the log, with the note in the place of the first message
    /// that is not shown whole.
    fn show(self) -> Projection {
        let verdicts = (0..self.history.units.len()).map(|at| self.verdict(at)).collect();
        let mut note = self.note.map(|Note { content, tokens }| Shown::Note { content, tokens });
        let mut shown = Vec::new();
        for (index, (form, written)) in self.forms.iter().zip(self.written).enumerate() {
            if *form != Form::Whole {
                shown.extend(note.take());
            }
            match (form, written) {
                (Form::Dropped, _) => {}
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
            Form::Spilled => (Fate::Shortened, "a large result, cut to its beginning and end"),
            Form::Masked => (Fate::Shortened, "an old result of a tool"),
            Form::Dropped => (Fate::Dropped, "no room for messages this old"),
        };
        let reason = match fate {
            Fate::Kept if self.history.is_folded(unit.members[0]) => AGAIN,
            Fate::Dropped if self.history.is_folded(unit.members[0]) => SUMMARIZED,
            _ => reason,
        };
        let reason = unit.kept.map_or(reason, |kept| kept.reason());
        Verdict { fate, reason, score: None }
    }
}

#[cfg(test)]
mod tests;
