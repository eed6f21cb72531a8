//! Lines that were in the file of a text, outside of it: they tell where it ends, and which of its
//! lines are found elsewhere although they are not its own.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::bare::{Bare, is_telling};

/// Number of lines on each side of a text of which the anchor keeps a print.
const NEAR: usize = 256;
/// Number of hexadecimal digits of a print. A new line is taken for one of 512 known ones once in
/// two thousand times.
const DIGITS: usize = 5;

/// Part of a text's lines which may be elsewhere, as a divisor.
pub(super) const STRAYS: usize = 4;

/// Print of a line, by which it is known again.
pub(super) type Print = u32;

/// Returns the prints of the telling lines outside of a text: those near it, and those that the
/// text has too.
pub(super) fn prints(file: &Bare, text: &Range<usize>) -> Vec<Print> {
    let own: HashSet<&String> = file.lines[text.clone()].iter().collect();
    let near = text.start.saturating_sub(NEAR)..text.end + NEAR;
    let is_kept =
        |at: &usize| !text.contains(at) && (near.contains(at) || own.contains(&file.lines[*at]));
    let lines = (0..file.len()).filter(is_kept).map(|at| &file.lines[at]);
    lines.filter(|line| is_telling(line)).map(|line| print(line)).collect()
}

fn print(line: &str) -> Print {
    let hash = blake3::hash(line.as_bytes());
    let [one, two, three, ..] = *hash.as_bytes();
    u32::from_be_bytes([0, one, two, three]) >> (24 - 4 * DIGITS)
}

/// Returns prints as a text.
pub(super) fn written(prints: &[Print]) -> String {
    prints.iter().map(|print| format!("{print:0DIGITS$x}")).collect()
}

/// Reads prints from a text; none if it is no such text.
pub(super) fn read(text: &str) -> Vec<Print> {
    let digits: Vec<char> = text.chars().collect();
    let print = |digits: &[char]| Print::from_str_radix(&digits.iter().collect::<String>(), 16);
    digits.chunks(DIGITS).map(print).collect::<Result<_, _>>().unwrap_or_default()
}

/// The lines of a file, compared with those that it had.
pub(super) struct Known<'a> {
    /// How often each line was in the file outside of the text.
    was: HashMap<Print, usize>,
    /// Places of each telling line of the text in the file as it is.
    places: HashMap<&'a str, Vec<usize>>,
    /// For each line of the file, whether it may have been in it outside of the text.
    maybe: Vec<bool>,
    /// For each line of the file, whether it certainly was in it outside of the text.
    foreign: Vec<bool>,
}

impl<'a> Known<'a> {
    pub(super) fn new(prints: &[Print], item: &'a Bare, file: &Bare) -> Self {
        let mut was: HashMap<Print, usize> = HashMap::new();
        for print in prints {
            *was.entry(*print).or_default() += 1;
        }
        let telling = item.lines.iter().filter(|line| is_telling(line));
        let mut places: HashMap<&str, Vec<usize>> =
            telling.map(|line| (&**line, Vec::new())).collect();
        let mut now: HashMap<Print, Vec<usize>> = HashMap::new();
        for (at, line) in file.lines.iter().enumerate().filter(|(_, line)| is_telling(line)) {
            match places.get_mut(&**line) {
                Some(places) => places.push(at),
                None => now.entry(print(line)).or_default().push(at),
            }
        }
        let (mut maybe, mut foreign) = (vec![false; file.len()], vec![false; file.len()]);
        for (print, places) in now {
            let Some(was) = was.get(&print) else { continue };
            for at in &places {
                // Of a line that is there more often than before, one is new.
                (maybe[*at], foreign[*at]) = (true, places.len() <= *was);
            }
        }
        Self { was, places, maybe, foreign }
    }

    /// Returns whether a line of the file certainly was in it outside of the text.
    pub(super) fn is_foreign(&self, at: usize) -> bool {
        self.foreign[at]
    }

    /// Returns whether the file has a line of the text more often than it had it outside of the
    /// text, so that one of them is the text's.
    pub(super) fn is_own(&self, line: &str) -> bool {
        self.beyond(line, |_| true)
    }

    /// Returns how many lines of a place may have been outside of the text.
    pub(super) fn strange(&self, place: &Range<usize>) -> usize {
        self.maybe[place.clone()].iter().filter(|it| **it).count()
    }

    /// Returns whether a line was only in the text.
    pub(super) fn is_sole(&self, line: &str) -> bool {
        is_telling(line) && !self.was.contains_key(&print(line))
    }

    /// Returns whether a line was only in the text, and is in the file once.
    pub(super) fn is_single(&self, line: &str) -> bool {
        self.is_sole(line) && self.places.get(line).is_some_and(|places| places.len() == 1)
    }

    /// Returns how many lines of the text are in a place more often than in the text.
    pub(super) fn repeated(&self, place: &Range<usize>, item: &Bare) -> usize {
        let is_repeated = |(line, places): &(&&str, &Vec<usize>)| {
            let own = item.lines.iter().filter(|own| own == *line).count();
            places.iter().filter(|at| place.contains(at)).count() > own
        };
        self.places.iter().filter(is_repeated).count()
    }

    /// Returns how many lines of the text are in the file outside of a place, and were not.
    pub(super) fn strays(&self, place: &Range<usize>) -> usize {
        self.places.keys().filter(|line| self.is_stray(line, place)).count()
    }

    /// Returns whether much of the text is in the file outside of a place, and was not.
    pub(super) fn is_spread(&self, place: &Range<usize>) -> bool {
        let strays = self.strays(place);
        strays > 1 && strays * STRAYS > self.telling()
    }

    /// Returns how often a telling line of the text is in a part of the file.
    pub(super) fn count_in(&self, line: &str, part: &Range<usize>) -> usize {
        let places = self.places.get(line);
        places.map_or(0, |places| places.iter().filter(|at| part.contains(at)).count())
    }

    /// Returns whether a line of the text is in the file outside of a place, and was not.
    pub(super) fn is_stray(&self, line: &str, place: &Range<usize>) -> bool {
        self.beyond(line, |at| !place.contains(&at))
    }

    /// Returns how many different telling lines the text has.
    pub(super) fn telling(&self) -> usize {
        self.places.len()
    }

    fn beyond(&self, line: &str, counts: impl Fn(usize) -> bool) -> bool {
        let Some(places) = self.places.get(line) else { return false };
        let now = places.iter().filter(|at| counts(**at)).count();
        now > 0 && now > self.was.get(&print(line)).copied().unwrap_or_default()
    }
}
