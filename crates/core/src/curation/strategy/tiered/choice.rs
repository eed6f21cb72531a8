//! Chooses whole units and lines from the messages up to a point.

use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

use super::ends::ends;
use super::refill::Refill;
use super::worth::{self, LineWorth};
use crate::curation::reading::{LinePlace, Readings, length};
use crate::curation::unit::{History, Unit};
use crate::retrieval::names;
use crate::session::message::{Message, Role};

/// Maximum number of bytes to read, newest messages first. Lines of older messages are not chosen.
const READ: usize = 2 << 20;
/// Number of lines on each side of a name's line that are shown with it.
const AROUND: usize = 3;
/// Minimum length of a line that can stand for its names, in bytes.
const LEAST_LINE: usize = 24;
/// Maximum length of a line to choose, in bytes. Longer ones are data.
const LONGEST_LINE: usize = 1200;
/// Maximum share of the room for a newest unit that nobody has answered.
const UNSEEN: f64 = 0.6;
/// Share of the room for what the user said, newest first, unless there is a query.
const SAID: f64 = 0.1;
/// Maximum size of a message for this share, in bytes. Longer ones are mostly logs or files.
const LONGEST_SAID: usize = 2000;
/// Guessed cost of a mark for missing lines, in tokens.
const MARK: f64 = 2.0;
/// Guessed cost of the id and role of a message before its lines, in tokens.
const ID: f64 = 7.0;
/// Room below which nothing more is sought, in tokens.
const LEAST_ROOM: f64 = 10.0;

/// A line of a message that was read.
pub(super) struct TieredLine<'h> {
    /// Index of the message.
    pub(super) message: usize,
    /// Place in the message's content, or in the arguments of its calls.
    pub(super) place: LinePlace,
    /// The line, without the line break.
    pub(super) text: &'h str,
    names: Range<usize>,
    hash: u64,
    /// Guessed cost, in tokens.
    pub(super) cost: f64,
}

#[derive(Clone, Copy, Default)]
struct Name {
    weight: f64,
    is_shown: bool,
}

/// A query, with the units in the order in which they fit it.
#[derive(Clone, Copy)]
pub(super) struct Focus<'a> {
    pub(super) query: &'a str,
    pub(super) order: &'a [usize],
    /// Share of the room for these units.
    pub(super) share: f64,
}

/// What is chosen so far.
pub(super) struct Choice<'a, 'h> {
    pub(super) history: &'a History<'h>,
    pub(super) refill: Refill,
    asked: Option<Focus<'a>>,
    pub(super) unit_of: Vec<usize>,
    /// True for units that are shown whole.
    pub(super) whole: Vec<bool>,
    /// Text and cost of results that are cut to their ends.
    pub(super) cut: HashMap<usize, (String, u64)>,
    /// Lines of the messages that were read, in order.
    pub(super) lines: Vec<TieredLine<'h>>,
    /// Lines of each message, as a range of `lines`.
    pub(super) lines_of: Vec<Range<usize>>,
    pub(super) is_kept: Vec<bool>,
    /// For each message, the number of its lines that are kept.
    kept_of: Vec<u32>,
    /// Lines that were chosen, first choices first.
    pub(super) order: Vec<usize>,
    /// Names of the lines, as indices of `names`.
    mentions: Vec<u32>,
    names: Vec<Name>,
    /// Newest line of each text.
    newest: HashMap<u64, usize>,
    /// Room that is left, in tokens. Negative if a guess was too low.
    left: f64,
}

impl<'a, 'h> Choice<'a, 'h> {
    /// Begins with the units that cannot be left out, and the messages after the point.
    pub(super) fn new(history: &'a History<'h>, refill: Refill, asked: Option<Focus<'a>>) -> Self {
        let by_user = |index: &usize| is_said(history.messages[*index]);
        let unit_of = history.unit_of_each_message();
        let last_user = (0..=refill.now).rev().find(by_user).map(|index| unit_of[index]);
        let is_fixed = |(at, unit): (usize, &Unit)| {
            let is_late = unit.members.last().is_some_and(|last| *last > refill.now);
            is_late || last_user == Some(at) || unit.kept.is_some()
        };
        let whole: Vec<bool> = history.units.iter().enumerate().map(is_fixed).collect();
        let mut choice = Self {
            history,
            refill,
            asked,
            unit_of,
            whole,
            cut: HashMap::new(),
            lines: Vec::new(),
            lines_of: vec![0..0; history.messages.len()],
            is_kept: Vec::new(),
            kept_of: vec![0; history.messages.len()],
            order: Vec::new(),
            mentions: Vec::new(),
            names: Vec::new(),
            newest: HashMap::new(),
            left: 0.0,
        };
        choice.read();
        let fixed = (0..=refill.now).filter(|index| choice.whole[choice.unit_of[*index]]);
        let fixed: u64 = fixed.map(|index| choice.cost(index)).sum();
        choice.left = refill.target as f64 - fixed as f64;
        for unit in (0..choice.whole.len()).filter(|unit| choice.whole[*unit]).collect::<Vec<_>>() {
            choice.show_lines(unit);
        }
        choice
    }

    /// Reads the messages up to the point, and weighs their names.
    fn read(&mut self) {
        let history = self.history;
        let mut kept = history.words.and_then(|words| words.readings.lock().ok());
        let mut own = Readings::default();
        let readings = kept.as_deref_mut().unwrap_or(&mut own);
        let (mut left, mut oldest) = (READ, self.refill.now + 1);
        while let Some(before) = oldest.checked_sub(1) {
            match left.checked_sub(length(history.messages[before])) {
                Some(rest) => (left, oldest) = (rest, before),
                None => break,
            }
        }
        for index in oldest..=self.refill.now {
            let message = history.messages[index];
            let (reading, count) = readings.of(message);
            self.names.resize_with(count.max(self.names.len()), Name::default);
            let weights = worth::of_names(message, self.refill.now - index);
            for (name, is_in_call) in &reading.names {
                self.names[*name as usize].weight += weights[usize::from(*is_in_call)];
            }
            let measure = history.measure;
            let tokens = measure.message(message.tokens) - measure.message(0);
            let per_byte = tokens as f64 / length(message).max(1) as f64;
            let first = self.lines.len();
            for line in reading.lines(message) {
                let start = self.mentions.len();
                self.mentions.extend(line.mentions);
                let at = self.lines.len();
                self.newest.insert(line.hash, at);
                self.lines.push(TieredLine {
                    message: index,
                    place: line.place,
                    text: line.text,
                    names: start..self.mentions.len(),
                    hash: line.hash,
                    cost: (line.text.len() + 1) as f64 * per_byte,
                });
            }
            self.lines_of[index] = first..self.lines.len();
        }
        // What is said ten times as often is needed more often, but not ten times as often.
        self.names.iter_mut().for_each(|name| name.weight = name.weight.sqrt());
        if let Some(asked) = self.asked {
            names::each(asked.query, |name| {
                if let Some(name) = readings.id(name).and_then(|id| self.names.get_mut(id)) {
                    name.weight += worth::IN_QUERY;
                }
            });
        }
        self.is_kept = vec![false; self.lines.len()];
        readings.forget_before(history.messages.get(oldest).map_or(0, |oldest| oldest.number));
    }

    /// Chooses until the room is used: a tail, what the user said or what a query asks for, the
    /// heaviest names, and then what is next.
    pub(super) fn fill(mut self, tail: f64) -> Self {
        let room = self.left.max(0.0);
        self.take_unseen(room * UNSEEN);
        self.take_newest(self.left - room * (1.0 - tail), true);
        match self.asked {
            Some(asked) => self.take_units(asked.order, room * asked.share),
            None => self.take_said(room * SAID),
        }
        for _ in 0..3 {
            self.take_names();
            if let Some(asked) = self.asked {
                self.take_units(asked.order, self.left);
            }
            self.take_newest(self.left, false);
            let spare = self.refill.target as f64 - self.counted() as f64;
            if spare.abs() < room * 0.02 {
                break;
            }
            self.left = spare;
            while self.left < 0.0
                && let Some(line) = self.order.pop()
            {
                self.give_up(line);
                self.left += self.lines[line].cost;
            }
        }
        self
    }

    /// Takes the newest unit, if nobody has answered it: results, which are cut to their ends if they
    /// take too much of the room, or the answer that the user's next words are about.
    fn take_unseen(&mut self, room: f64) {
        let (now, messages) = (self.refill.now, &self.history.messages);
        let Some(newest) = (0..=now).rev().find(|at| !is_said(messages[*at])) else { return };
        let (unit, message) = (self.unit_of[newest], messages[newest]);
        let is_answer = message.role == Role::Assistant && message.tool_calls.is_empty();
        if is_answer && self.asked.is_none() {
            self.take_end(unit, self.left - room);
        }
        if self.whole[unit] || message.role != Role::Tool || newest < now {
            return;
        }
        if self.history.units[unit].tokens as f64 > room {
            for &member in &self.history.units[unit].members {
                let cut = ends(self.history, member);
                if let Some(cut) = cut.filter(|(_, cost)| *cost < self.cost(member)) {
                    self.cut.insert(member, cut);
                }
            }
        }
        self.take_unit(unit, self.left);
    }

    /// Takes the newest units up to `room`, and lines of the others; of only one if `is_tail`.
    fn take_newest(&mut self, room: f64, is_tail: bool) {
        let spared = self.left - room;
        for unit in (0..self.history.units.len()).rev() {
            if self.left - spared < LEAST_ROOM || !self.take_end(unit, spared) && is_tail {
                break;
            }
        }
    }

    /// Takes a unit, or lines from its end, but leaves `spared`. Returns whether it is shown whole.
    fn take_end(&mut self, unit: usize, spared: f64) -> bool {
        if self.whole[unit] || self.take_unit(unit, self.left - spared) {
            return true;
        }
        let members = self.history.units[unit].members.iter().rev();
        let lines = members.flat_map(|member| self.lines_of[*member].clone().rev());
        for line in lines.collect::<Vec<_>>() {
            let text = &self.lines[line];
            let is_again = can_stand(text.text) && self.newest.get(&text.hash) != Some(&line);
            if !is_again && self.left - spared >= LEAST_ROOM {
                self.take_lines(line..line + 1, self.left - spared);
            }
        }
        false
    }

    /// Takes all lines of the user's newest messages up to `room`.
    fn take_said(&mut self, room: f64) {
        let spared = self.left - room;
        for index in (0..=self.refill.now).rev() {
            let (message, lines) = (self.history.messages[index], self.lines_of[index].clone());
            if is_said(message) && message.content.len() <= LONGEST_SAID && !lines.is_empty() {
                self.take_lines(lines, self.left - spared);
            }
        }
    }

    fn take_units(&mut self, order: &[usize], room: f64) {
        let spared = (self.left - room).max(0.0);
        for unit in order {
            self.take_unit(*unit, self.left - spared);
        }
    }

    /// Takes lines with their neighbours, first the lines whose names weigh most for their cost. A
    /// name that a chosen line has no longer counts.
    fn take_names(&mut self) {
        let all = (0..self.lines.len()).map(|line| self.worth(line));
        let mut best: BinaryHeap<LineWorth> = all.filter(|line| line.worth > 0.0).collect();
        while self.left >= LEAST_ROOM
            && let Some(LineWorth { line, .. }) = best.pop()
        {
            // What was taken since may have its names.
            let now = self.worth(line);
            match best.peek() {
                _ if now.worth <= 0.0 => {}
                Some(next) if now < *next => best.push(now),
                _ => self.take_lines(self.around(line), self.left),
            }
        }
    }

    /// Returns what a line is worth: the weight of its names that no chosen line has, for its cost
    /// with its neighbours.
    fn worth(&self, line: usize) -> LineWorth {
        let TieredLine { text, names, .. } = &self.lines[line];
        let mentions = if can_stand(text) { &self.mentions[names.clone()] } else { &[] };
        let mut weight = 0.0;
        for (at, name) in mentions.iter().enumerate() {
            let Name { weight: of_name, is_shown } = self.names[*name as usize];
            if !is_shown && !mentions[..at].contains(name) {
                weight += of_name;
            }
        }
        let cost = if weight > 0.0 { self.cost_of(self.around(line)) } else { 1.0 };
        LineWorth { worth: weight / cost, line }
    }

    /// Returns a line and its neighbours in the message.
    fn around(&self, line: usize) -> Range<usize> {
        let of_message = &self.lines_of[self.lines[line].message];
        line.saturating_sub(AROUND).max(of_message.start)..(line + AROUND + 1).min(of_message.end)
    }

    /// Returns whether a line can still be added.
    fn is_new(&self, line: usize) -> bool {
        !self.is_kept[line] && self.lines[line].text.len() <= LONGEST_LINE
    }

    /// Returns the cost of those lines of one message that can still be added, and of a mark.
    fn cost_of(&self, lines: Range<usize>) -> f64 {
        let is_named = self.kept_of[self.lines[lines.start].message] > 0;
        let head = if is_named { MARK } else { MARK + ID };
        let new = lines.filter(|line| self.is_new(*line));
        new.map(|line| self.lines[line].cost).sum::<f64>() + head
    }

    /// Takes lines of one message if they fit into `room` together.
    fn take_lines(&mut self, lines: Range<usize>, room: f64) {
        let cost = self.cost_of(lines.clone());
        if cost > room {
            return;
        }
        let new: Vec<usize> = lines.filter(|line| self.is_new(*line)).collect();
        self.left -= if new.is_empty() { 0.0 } else { cost };
        for line in new {
            self.keep(line);
            self.order.push(line);
        }
    }

    /// Takes a whole unit if it fits into `room`. Returns whether it is shown whole.
    fn take_unit(&mut self, unit: usize, room: f64) -> bool {
        let members = &self.history.units[unit].members;
        let is_open = members.last().is_some_and(|last| *last > self.refill.now);
        if self.whole[unit] || is_open {
            return self.whole[unit];
        }
        let lines = || members.iter().flat_map(|member| self.lines_of[*member].clone());
        let kept = lines().filter(|line| self.is_kept[*line]);
        let shown: f64 = kept.map(|line| self.lines[line].cost).sum();
        let cost = members.iter().map(|member| self.cost(*member)).sum::<u64>() as f64 - shown;
        if cost > room {
            return false;
        }
        self.left -= cost;
        self.whole[unit] = true;
        self.show_lines(unit);
        true
    }

    pub(super) fn give_up(&mut self, line: usize) {
        self.is_kept[line] = false;
        self.kept_of[self.lines[line].message] -= 1;
    }

    fn show_lines(&mut self, unit: usize) {
        let history = self.history;
        for member in &history.units[unit].members {
            self.lines_of[*member].clone().for_each(|line| self.keep(line));
        }
    }

    fn keep(&mut self, line: usize) {
        self.kept_of[self.lines[line].message] += u32::from(!self.is_kept[line]);
        self.is_kept[line] = true;
        if can_stand(self.lines[line].text) {
            for name in &self.mentions[self.lines[line].names.clone()] {
                self.names[*name as usize].is_shown = true;
            }
        }
    }
}

fn is_said(message: &Message) -> bool {
    message.role == Role::User && !message.is_notice()
}

fn can_stand(line: &str) -> bool {
    (LEAST_LINE..=LONGEST_LINE).contains(&line.len())
}
