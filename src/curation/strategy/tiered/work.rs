//! The work at hand: the lines of a history, and the weights of the specifics in them.
//!
//! Specifics are paths, identifiers, options and numbers. Those that the agent wrote in its calls
//! and words, or the user in requests, tell what the work is about. A specific weighs more if it
//! was written more often or more recently.

use std::collections::HashMap;
use std::ops::Range;

use crate::curation::reading::{Numeric, Place, Quotable, Reading, Readings, length};
use crate::curation::unit::History;
use crate::retrieval::specifics;
use crate::session::message::{Message, Role};

/// Number of messages after which the weight of a mention has fallen to about 40 %.
const MEMORY: f64 = 60.0;
/// Minimum weight of a mention, however old it is, relative to one in the newest message.
const LEAST_WEIGHT: f64 = 0.05;
/// Weight of a mention in a tool's result or a notice, relative to one in the words of the agent or
/// the user.
const IN_RESULT: f64 = 0.15;
/// Additional weight of a specific in the query.
const IN_QUERY: f64 = 1.0;
/// Share of a specific's weight that remains once a message other than a tool's result has shown
/// it: the content that it names is in the results.
const TOLD: f64 = 0.1;
/// If at least this many lines differ only in their numbers, these numbers are ignored. Tools and
/// their hosts add such lines, with times and identifiers, to each result.
const REPEATED: usize = 4;
/// Maximum number of bytes to read, newest messages first. Lines of older ones are not found.
const READ: usize = 384 << 10;

/// A line of a message that is not shown whole.
pub(super) struct Line<'h> {
    /// Index of the message.
    pub(super) message: usize,
    role: Role,
    /// Place in the message's content, or in the arguments of its calls.
    pub(super) place: Place,
    /// The line, without the line break.
    pub(super) text: &'h str,
    /// Specifics of the line, as a range of [`Work::mentions`].
    mentions: Range<usize>,
    /// Hashes of the line, if its only specifics are numbers.
    numeric: Option<Numeric>,
}

impl Line<'_> {
    /// Returns whether the line has specifics.
    pub(super) fn names_any(&self) -> bool {
        !self.mentions.is_empty()
    }
}

/// The part of a message that is shown before lines are chosen from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// All of it.
    Shown,
    /// Less than all. Its lines may be chosen.
    Hidden,
    /// Less than all. Its lines may not be chosen, mostly because a later message shows the current
    /// state of the same thing.
    Outdated,
}

/// Lines that may be shown, and the weights of specifics.
#[derive(Default)]
pub(super) struct Work<'h> {
    /// Lines of the messages that are not shown whole, the newest message first.
    pub(super) lines: Vec<Line<'h>>,
    /// Interned ids of the specifics in [`Self::lines`].
    mentions: Vec<u32>,
    /// Weight of each specific.
    weights: Vec<f64>,
    /// For each specific, the share of its weight that has not been shown yet.
    worth: Vec<f64>,
}

impl<'h> Work<'h> {
    /// Reads a history up to message `now`, from the newest to the oldest. `sight` tells how much
    /// of a message is shown. The specifics of `query` weigh more.
    pub(super) fn of(
        history: &History<'h>,
        now: usize,
        sight: impl Fn(usize) -> Sight,
        query: Option<&str>,
    ) -> Self {
        let mut kept = history.words.and_then(|words| words.readings.lock().ok());
        let mut own = Readings::default();
        let readings = kept.as_deref_mut().unwrap_or(&mut own);
        let mut work = Self::default();
        let (mut left, mut oldest) = (READ, now + 1);
        for index in (0..=now).rev() {
            let message = history.messages[index];
            let length = length(message);
            if length > left {
                break;
            }
            left -= length;
            oldest = index;
            let recency = (-((now - index) as f64) / MEMORY).exp() + LEAST_WEIGHT;
            let is_output = message.role == Role::Tool || message.is_notice();
            let weight = if is_output { IN_RESULT * recency } else { recency };
            let (reading, count) = readings.of(message);
            work.weights.resize(count, 0.0);
            work.worth.resize(count, 1.0);
            work.add(message, index, reading, weight, sight(index));
        }
        work.forget_repeated();
        specifics::each(query.unwrap_or(""), |specific| {
            // What only earlier windows read has no weight.
            if let Some(weight) = readings.id(specific).and_then(|id| work.weights.get_mut(id)) {
                *weight += IN_QUERY;
            }
        });
        readings.forget_before(history.messages.get(oldest).map_or(0, |oldest| oldest.number));
        work
    }

    fn add(
        &mut self,
        message: &'h Message,
        index: usize,
        reading: &Reading,
        weight: f64,
        sight: Sight,
    ) {
        for &specific in &reading.specifics {
            self.weights[specific as usize] += weight;
            if sight == Sight::Shown {
                let worth = &mut self.worth[specific as usize];
                *worth = worth.min(left_by(message.role));
            }
        }
        if sight == Sight::Hidden {
            for Quotable { place, text, mentions, numeric } in reading.lines(message) {
                let start = self.mentions.len();
                self.mentions.extend(mentions);
                let (mentions, role) = (start..self.mentions.len(), message.role);
                self.lines.push(Line { message: index, role, place, text, mentions, numeric });
            }
        }
    }

    /// Ignores the numbers in [`REPEATED`] or more lines that differ only in their numbers.
    fn forget_repeated(&mut self) {
        // For each form of a line, the hashes of the different lines of this form.
        let mut forms: HashMap<u64, Vec<u64>> = HashMap::new();
        for Numeric { form, text } in self.lines.iter().filter_map(|line| line.numeric) {
            let texts = forms.entry(form).or_default();
            if texts.len() < REPEATED && !texts.contains(&text) {
                texts.push(text);
            }
        }
        for line in &mut self.lines {
            if line.numeric.is_some_and(|numeric| forms[&numeric.form].len() >= REPEATED) {
                line.mentions = 0..0;
            }
        }
    }

    /// Returns the weight that showing a line would add, by its specifics.
    pub(super) fn value(&self, line: usize) -> f64 {
        let Line { ref mentions, role, .. } = self.lines[line];
        let mentions = &self.mentions[mentions.clone()];
        let left = left_by(role);
        let value = |(at, mention): (usize, &u32)| {
            let (worth, weight) = (self.worth[*mention as usize], self.weights[*mention as usize]);
            if mentions[..at].contains(mention) { 0.0 } else { weight * (worth - left).max(0.0) }
        };
        mentions.iter().enumerate().map(value).sum()
    }

    /// Records that a line is shown.
    pub(super) fn show(&mut self, line: usize) {
        let Line { ref mentions, role, .. } = self.lines[line];
        for mention in &self.mentions[mentions.clone()] {
            let worth = &mut self.worth[*mention as usize];
            *worth = worth.min(left_by(role));
        }
    }
}

/// Returns the share of a specific's weight that remains once a message of this role has shown it.
fn left_by(role: Role) -> f64 {
    if role == Role::Tool { 0.0 } else { TOLD }
}
