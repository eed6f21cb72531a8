//! Chooses the lines of messages that are not shown whole.
//!
//! A line is worth the weight of its specifics that nothing else shows yet, so that each line adds
//! something, and of equal lines the newest is shown. The best lines for their cost come first, the
//! very best with their neighbours. A single line between two chosen ones is shown too.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::excerpt;
use super::form::Form;
use super::work::{Line, Work, length};
use crate::curation::unit::History;

/// Maximum length of a line, in bytes. Data in one long line says little for its cost.
const LONGEST: usize = 400;
/// Maximum length of a line that is shown because it is next to a chosen one, in bytes.
const LONGEST_NEIGHBOUR: usize = 160;
/// Share of the room for the neighbours of the best lines. More of them would take the place of
/// lines that are needed.
const NEIGHBOURS: f64 = 0.15;
/// Guessed cost of a line's number, its end, and a mark for missing lines.
const MARK: u64 = 3;
/// Guessed cost of naming the message that lines come from.
const HEAD: u64 = 12;
/// Room below which no more lines are sought.
const LEAST_ROOM: u64 = 8;

/// Lines of messages that are not shown whole.
#[derive(Default)]
pub(super) struct Pieces<'h> {
    /// Chosen lines, best first.
    pub(super) lines: Vec<Line<'h>>,
    /// Guessed cost of all of them.
    pub(super) cost: u64,
    /// Guessed cost of the lines of each message.
    costs: HashMap<usize, u64>,
}

impl<'h> Pieces<'h> {
    /// Chooses lines that cost at most `room` together. `is_named` tells which messages are named
    /// at no further cost, because they are shown.
    pub(super) fn choose(
        history: &History<'h>,
        mut work: Work<'h>,
        room: u64,
        is_named: impl Fn(usize) -> bool,
    ) -> Self {
        let mut choice = Choice {
            taken: vec![false; work.lines.len()],
            order: Vec::new(),
            named: (0..history.messages.len()).map(is_named).collect(),
            costs: HashMap::new(),
            left: room,
            for_neighbours: (room as f64 * NEIGHBOURS) as u64,
            history,
        };
        choice.run(&mut work);
        let cost = room - choice.left;
        let mut lines: Vec<Option<Line<'h>>> = work.lines.into_iter().map(Some).collect();
        let lines = choice.order.into_iter().filter_map(|at| lines[at].take()).collect();
        Self { lines, cost, costs: choice.costs }
    }

    /// Returns the guessed cost of the lines of a message.
    pub(super) fn cost_of(&self, index: usize) -> u64 {
        self.costs.get(&index).copied().unwrap_or(0)
    }

    /// Returns the lines of the results that are shown shortened, and marks these results in
    /// `forms`.
    pub(super) fn results(&self, forms: &mut [Form]) -> BTreeMap<usize, Vec<&Line<'h>>> {
        let mut results: BTreeMap<usize, Vec<&Line<'h>>> = BTreeMap::new();
        for line in &self.lines {
            if matches!(forms[line.message], Form::Spilled | Form::Masked | Form::Cut) {
                forms[line.message] = Form::Cut;
                results.entry(line.message).or_default().push(line);
            }
        }
        results.values_mut().for_each(|lines| lines.sort_unstable_by_key(|line| line.place));
        results
    }

    /// Quotes the lines of the left-out messages in at most `room` tokens; the best lines have
    /// priority.
    pub(super) fn quoted(
        &self,
        history: &History<'_>,
        is_dropped: impl Fn(usize) -> bool,
        room: u64,
    ) -> Option<String> {
        let mut lines: Vec<&Line<'h>> =
            self.lines.iter().filter(|line| is_dropped(line.message)).collect();
        let unit_of = history.unit_of_each_message();
        while !lines.is_empty() {
            let mut ordered = lines.clone();
            ordered.sort_unstable_by_key(|line| (line.message, line.place));
            let text = excerpt::of_messages(history, &unit_of, &ordered);
            let tokens = history.measure.note(&text);
            if tokens <= room {
                return Some(text);
            }
            let share = room as f64 / tokens as f64;
            lines.truncate((lines.len() as f64 * share * 0.95) as usize);
        }
        None
    }
}

struct Choice<'a, 'h> {
    history: &'a History<'h>,
    taken: Vec<bool>,
    order: Vec<usize>,
    named: Vec<bool>,
    costs: HashMap<usize, u64>,
    left: u64,
    /// Part of the room that is left for neighbours.
    for_neighbours: u64,
}

impl Choice<'_, '_> {
    /// Takes lines, best first, as long as they fit. Values only fall while lines are taken, so a
    /// line whose value fell goes back into the heap.
    fn run(&mut self, work: &mut Work<'_>) {
        let mut heap: BinaryHeap<(u64, Reverse<usize>)> = (0..work.lines.len())
            .filter(|at| (1..=LONGEST).contains(&work.lines[*at].text.len()))
            .filter_map(|at| Some((self.worth(work, at)?, Reverse(at))))
            .collect();
        while let Some((worth, Reverse(at))) = heap.pop()
            && self.left >= LEAST_ROOM
        {
            if self.taken[at] {
                continue;
            }
            match self.worth(work, at) {
                Some(now) if now < worth => heap.push((now, Reverse(at))),
                Some(_) if self.take(work, at) => self.take_neighbours(work, at),
                _ => {}
            }
        }
    }

    /// Returns the value of a line for its cost. The bits of positive numbers are ordered like the
    /// numbers.
    fn worth(&self, work: &Work<'_>, at: usize) -> Option<u64> {
        let value = work.value(at);
        (value > 0.0).then(|| (value / self.cost(&work.lines[at]) as f64).to_bits())
    }

    fn cost(&self, line: &Line<'_>) -> u64 {
        let message = self.history.messages[line.message];
        let tokens = self.history.measure.message(message.tokens) as f64;
        let share = (line.text.len() + 1) as f64 / (length(message) + 1) as f64;
        let head = if self.named[line.message] { 0 } else { HEAD };
        (tokens * share).ceil() as u64 + MARK + head
    }

    /// Takes a line if it fits. Returns whether it is taken.
    fn take(&mut self, work: &mut Work<'_>, at: usize) -> bool {
        let cost = self.cost(&work.lines[at]);
        if cost > self.left {
            return false;
        }
        self.left -= cost;
        self.taken[at] = true;
        *self.costs.entry(work.lines[at].message).or_default() += cost;
        self.named[work.lines[at].message] = true;
        self.order.push(at);
        work.show(at);
        true
    }

    /// Takes the neighbours of a line that was taken, and those of its neighbours that would be a
    /// gap of one line.
    fn take_neighbours(&mut self, work: &mut Work<'_>, at: usize) {
        for (near, beyond) in [(at.wrapping_sub(1), at.wrapping_sub(2)), (at + 1, at + 2)] {
            let same = |at: usize, other: usize| {
                work.lines.get(other).is_some_and(|it| it.message == work.lines[at].message)
            };
            if !same(at, near) || self.taken[near] {
                continue;
            }
            let is_gap = same(at, beyond) && self.taken[beyond];
            let text = work.lines[near].text;
            let fits = text.len() <= LONGEST_NEIGHBOUR && (is_gap || !text.trim().is_empty());
            let cost = self.cost(&work.lines[near]);
            let is_due = fits && (is_gap || cost <= self.for_neighbours);
            let taken = is_due && self.take(work, near);
            if taken && !is_gap {
                self.for_neighbours -= cost;
            }
        }
    }
}
