//! Texts without white space and blank lines, in the form in which they are compared.

use std::cell::OnceCell;
use std::ops::Range;

use memchr::memmem;

use super::blocks;
use super::line_hash::{LineHash, hash_of};

/// Maximum number of copies of a text to look for.
const MAX_COPIES: usize = 64;
/// Length, in bytes, up to which a line, such as `});`, says nothing about its place.
const SHORT: usize = 3;

/// The lines of a text that are not blank, without white space.
pub(super) struct Bare {
    /// The lines.
    pub(super) lines: Vec<String>,
    /// Number of each line, counted from 1.
    pub(super) numbers: Vec<u64>,
    /// Indentation of each line, in characters; a tab counts as eight.
    pub(super) indents: Vec<usize>,
    /// For each line, how many more blocks its words open than close.
    blocks: Vec<i64>,
    /// Number of lines of the text, blank ones included.
    count: u64,
    /// Hash of each line, computed on first use.
    hashes: Vec<OnceCell<LineHash>>,
}

impl Bare {
    pub(super) fn of(text: &str, language: &str) -> Self {
        let (mut lines, mut numbers, mut indents, mut count) = (vec![], vec![], vec![], 0);
        let mut blocks = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            count = number;
            let bare: String = line.chars().filter(|c| !c.is_whitespace()).collect();
            if !bare.is_empty() {
                let width = |c: char| if c == '\t' { 8 } else { 1 };
                indents.push(line.chars().take_while(|c| c.is_whitespace()).map(width).sum());
                numbers.push(number);
                blocks.push(blocks::opened(line, language));
                lines.push(bare);
            }
        }
        let hashes = vec![OnceCell::new(); lines.len()];
        Self { lines, numbers, indents, blocks, count, hashes }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the hash of a line.
    pub(super) fn hash(&self, at: usize) -> LineHash {
        *self.hashes[at].get_or_init(|| hash_of(&self.lines[at]))
    }

    /// Returns the text in one line.
    pub(super) fn joined(&self) -> String {
        self.lines.concat()
    }

    /// Returns up to [`MAX_COPIES`] places where another text stands as whole lines.
    pub(super) fn copies(&self, other: &Self) -> Vec<Range<usize>> {
        let (text, starts) = self.framed("\n");
        let wanted = format!("\n{}\n", other.lines.join("\n"));
        let finder = memmem::Finder::new(&wanted);
        let (mut places, mut from) = (Vec::new(), 0);
        while places.len() < MAX_COPIES
            && let Some(at) = finder.find(&text.as_bytes()[from..])
        {
            let first = starts.partition_point(|start| *start < from + at + 1);
            places.push(first..first + other.len());
            from += at + 1;
        }
        places
    }

    /// Returns the place of another text, ignoring line breaks, if it occurs exactly once and there
    /// as whole lines.
    pub(super) fn rewrapped(&self, other: &Self) -> Option<Range<usize>> {
        let (text, starts) = self.framed("");
        let wanted = other.joined();
        let finder = memmem::Finder::new(&wanted);
        let at = finder.find(text.as_bytes())?;
        if finder.find(&text.as_bytes()[at + 1..]).is_some() {
            return None;
        }
        let first = starts.binary_search(&at).ok()?;
        let past = starts.binary_search(&(at + wanted.len())).ok()?;
        Some(first..past)
    }

    /// Returns, for each kind of bracket and for words, how many more these lines open than close.
    pub(super) fn balance(&self, at: Range<usize>) -> [i64; 4] {
        let mut open = [0, 0, 0, self.blocks[at.clone()].iter().sum()];
        for c in self.lines[at].iter().flat_map(|line| line.bytes()) {
            match c {
                b'(' => open[0] += 1,
                b')' => open[0] -= 1,
                b'[' => open[1] += 1,
                b']' => open[1] -= 1,
                b'{' => open[2] += 1,
                b'}' => open[2] -= 1,
                _ => {}
            }
        }
        open
    }

    /// Returns the lines with a separator around each, and the offsets of each line and of the end.
    fn framed(&self, separator: &str) -> (String, Vec<usize>) {
        let (mut text, mut starts) = (separator.to_owned(), Vec::with_capacity(self.len() + 1));
        for line in &self.lines {
            starts.push(text.len());
            text.push_str(line);
            text.push_str(separator);
        }
        starts.push(text.len());
        (text, starts)
    }

    /// Returns the first and last line of a place in `file`, extended at each end by up to as many
    /// blank lines as this text has there.
    pub(super) fn with_blanks(&self, file: &Self, at: Range<usize>) -> (u64, u64) {
        let (start, end) = (file.numbers[at.start], file.numbers[at.end - 1]);
        let above = at.start.checked_sub(1).map_or(0, |before| file.numbers[before]);
        let below = file.numbers.get(at.end).map_or(file.count, |after| after - 1);
        let leading = self.numbers.first().map_or(0, |first| first - 1);
        let trailing = self.numbers.last().map_or(0, |last| self.count - last);
        (start - leading.min(start - above - 1), end + trailing.min(below - end))
    }
}

/// Returns whether a line is telling: it is long enough, and has enough letters or digits, to say
/// something about its place.
pub(super) fn is_telling(line: &str) -> bool {
    line.len() > SHORT && line.chars().filter(|c| c.is_alphanumeric()).count() >= 2
}
