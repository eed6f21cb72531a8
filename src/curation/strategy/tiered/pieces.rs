//! Chooses the lines of messages that are not shown whole.
//!
//! A line is worth the weight of those specifics in it (paths, identifiers, options and numbers)
//! that nothing else shows yet, so each chosen line adds something. If lines are equal, only the
//! newest one is shown. Lines with the highest worth for their cost are chosen first, and the very
//! best with their neighbours. A single line between two chosen lines is shown too.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::excerpt;
use super::note::Note;
use super::work::{Line, Work};
use crate::curation::reading::length;
use crate::curation::unit::History;
use crate::session::message::Role;

/// Maximum length of a line, in bytes. Data in one long line says little for its cost.
const LONGEST: usize = 400;
/// Maximum length of a line that is shown because it is next to a chosen one, in bytes.
const LONGEST_NEIGHBOUR: usize = 160;
/// Share of the room for the neighbours of the best lines. A larger share would take the place of
/// lines that are needed.
const NEIGHBOURS: f64 = 0.05;
/// Guessed size of a line break and a mark for missing lines, in bytes.
const MARK: usize = 3;
/// Guessed size of the line number before a line of a tool's result, in bytes.
const NUMBER: usize = 4;
/// Guessed size of the words that name the message of a line, in bytes. Most messages have few
/// chosen lines, which need only the message's number.
const HEAD: usize = 12;
/// Number of lines that are counted exactly, to guess the cost of the others better.
const SAMPLE: usize = 200;
/// Room below which no more lines are sought, in tokens.
const LEAST_ROOM: f64 = 4.0;

/// Lines of messages that are not shown whole.
pub(super) struct Pieces<'a, 'h> {
    history: &'a History<'h>,
    work: Work<'h>,
    /// Lines that may be taken, the best for their cost on top.
    heap: BinaryHeap<(u64, Reverse<usize>)>,
    /// Index of each message's unit.
    unit_of: Vec<usize>,
    taken: Vec<bool>,
    /// Lines that were taken, best first, with their guessed costs.
    order: Vec<(usize, f64)>,
    /// True for messages with a taken line; their further lines need not name the message again.
    named: Vec<bool>,
    left: f64,
    /// Part of the room that is left for neighbours.
    for_neighbours: f64,
}

impl<'a, 'h> Pieces<'a, 'h> {
    pub(super) fn new(history: &'a History<'h>, work: Work<'h>) -> Self {
        let mut pieces = Self {
            history,
            heap: BinaryHeap::new(),
            unit_of: history.unit_of_each_message(),
            taken: vec![false; work.lines.len()],
            order: Vec::new(),
            named: vec![false; history.messages.len()],
            left: 0.0,
            for_neighbours: 0.0,
            work,
        };
        pieces.heap = (0..pieces.work.lines.len())
            .filter(|at| (1..=LONGEST).contains(&pieces.work.lines[*at].text.len()))
            .filter_map(|at| Some((pieces.worth(at)?, Reverse(at))))
            .collect();
        pieces
    }

    /// Takes lines that cost at most `room` together, besides those that were taken already. Values
    /// only fall while lines are taken, so a line whose value fell goes back into the heap.
    pub(super) fn take(&mut self, room: f64) {
        self.left = room;
        self.for_neighbours += room * NEIGHBOURS;
        while self.left >= LEAST_ROOM
            && let Some((worth, Reverse(at))) = self.heap.pop()
        {
            if self.taken[at] {
                continue;
            }
            match self.worth(at) {
                Some(now) if now < worth => self.heap.push((now, Reverse(at))),
                Some(_) if self.take_line(at) => self.take_neighbours(at),
                _ => {}
            }
        }
    }

    /// Returns the share by which the guessed costs are too high, from a sample of the lines.
    pub(super) fn overestimate(&self) -> f64 {
        let sample = &self.order[..self.order.len().min(SAMPLE)];
        let guessed: f64 = sample.iter().map(|(_, cost)| cost).sum();
        let text = self.text(sample.iter().map(|(at, _)| &self.work.lines[*at]).collect());
        let cost = self.history.measure.note(&text) - self.history.measure.message(0);
        if cost > 0 { (guessed / cost as f64 - 1.0).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Quotes lines of the messages that are not shown whole, after `text`. Text and quotes have at
    /// most `room` tokens together. The best lines have priority; lines that do not fit are given
    /// up. `None` if there is no line to quote.
    pub(super) fn quoted(
        &mut self,
        text: &str,
        is_whole: impl Fn(usize) -> bool,
        room: u64,
    ) -> Option<Note> {
        loop {
            let lines = self.order.iter().map(|(at, _)| &self.work.lines[*at]);
            let lines: Vec<&Line<'h>> = lines.filter(|line| !is_whole(line.message)).collect();
            if lines.is_empty() {
                return None;
            }
            let gap = if text.is_empty() { "" } else { "\n\n" };
            let content = format!("{text}{gap}{}", self.text(lines));
            let note = Note::new(self.history, content);
            if note.tokens <= room {
                return Some(note);
            }
            let share = room as f64 / note.tokens as f64;
            self.order.truncate((self.order.len() as f64 * share * 0.98) as usize);
        }
    }

    fn text(&self, mut lines: Vec<&Line<'h>>) -> String {
        lines.sort_unstable_by_key(|line| (line.message, line.place));
        excerpt::of_messages(self.history, &self.unit_of, &lines)
    }

    /// Returns how much a line is worth for its cost, as the bits of a positive number, which are
    /// ordered like the numbers; `None` if the line is worth nothing.
    fn worth(&self, at: usize) -> Option<u64> {
        let value = self.work.value(at);
        (value > 0.0).then(|| (value / self.cost_of(at)).to_bits())
    }

    /// Guesses the cost of a line from the cost of its message.
    fn cost_of(&self, at: usize) -> f64 {
        let line = &self.work.lines[at];
        let message = self.history.messages[line.message];
        let measure = self.history.measure;
        let tokens = measure.message(message.tokens) - measure.message(0);
        let number = if message.role == Role::Tool { NUMBER } else { 0 };
        let head = if self.named[line.message] { 0 } else { HEAD };
        let bytes = line.text.len() + MARK + number + head;
        tokens as f64 * bytes as f64 / length(message).max(1) as f64
    }

    /// Takes a line if it fits. Returns whether it is taken.
    fn take_line(&mut self, at: usize) -> bool {
        let cost = self.cost_of(at);
        if cost > self.left {
            return false;
        }
        self.left -= cost;
        self.taken[at] = true;
        self.named[self.work.lines[at].message] = true;
        self.order.push((at, cost));
        self.work.show(at);
        true
    }

    /// Takes each neighbour of the taken line `at` if the room for neighbours suffices, or if the
    /// neighbour alone separates two taken lines.
    fn take_neighbours(&mut self, at: usize) {
        for (near, beyond) in [(at.wrapping_sub(1), at.wrapping_sub(2)), (at + 1, at + 2)] {
            let lines = &self.work.lines;
            let same = |at: usize, other: usize| {
                lines.get(other).is_some_and(|it| it.message == lines[at].message)
            };
            if !same(at, near) || self.taken[near] {
                continue;
            }
            let is_gap = same(at, beyond) && self.taken[beyond];
            let text = lines[near].text;
            let fits = text.len() <= LONGEST_NEIGHBOUR && (is_gap || !text.trim().is_empty());
            let cost = self.cost_of(near);
            let is_due = fits && (is_gap || cost <= self.for_neighbours);
            let taken = is_due && self.take_line(near);
            if taken && !is_gap {
                self.for_neighbours -= cost;
            }
        }
    }
}
