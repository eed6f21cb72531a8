//! Exact counts with `OpenAI`'s byte-pair vocabularies.
//!
//! This module alone names the tokenizer library. It counts large texts on two threads, with the
//! same result.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use tiktoken::CoreBpe;

use super::{Counter, TokenizerName};

/// Texts with more bytes than this are counted in two halves at the same time. For shorter texts,
/// starting a thread and warming its cache costs more time than it saves.
const HALVED_ABOVE: usize = 128 * 1024;

/// Maximum length of a part that is counted in one piece, in bytes: the time for a text without a
/// place to cut grows faster than its length.
const LONGEST_PART: usize = 16 << 10;
/// Maximum number of line ends or spaces to try as places to cut.
const TRIES: usize = 64;
/// Maximum number of lines whose counts are remembered. Each takes about 16 bytes.
const REMEMBERED: usize = 64 << 10;

/// Counts of lines in texts that [`Counter::count_again`] counted, by a hash of the line and its
/// vocabulary.
static LINES: LazyLock<(RandomState, Mutex<HashMap<u64, u64>>)> = LazyLock::new(Default::default);

/// An exact counter over one vocabulary. The vocabulary is loaded on the first count (about 65 ms)
/// and kept for as long as the program runs.
#[derive(Debug, Clone, Copy)]
pub struct Bpe {
    name: TokenizerName,
    encoding: &'static str,
}

impl Bpe {
    /// The encoding of newer models of OpenAI.
    pub const O200K: Self = Self { name: TokenizerName::O200k, encoding: "o200k_base" };
    pub(crate) const CL100K: Self = Self { name: TokenizerName::Cl100k, encoding: "cl100k_base" };

    fn vocabulary(self) -> &'static CoreBpe {
        tiktoken::get_encoding(self.encoding)
            .expect("Cargo.toml compiles in every vocabulary that Bpe has a constant for")
    }
}

impl Counter for Bpe {
    fn name(&self) -> &'static str {
        self.name.name()
    }

    fn count(&self, text: &str) -> u64 {
        self.count_while(text, &|| true).unwrap_or_default()
    }

    fn count_again(&self, text: &str, is_wanted: &(dyn Fn() -> bool + Sync)) -> Option<u64> {
        let (hashes, counts) = &*LINES;
        let counts = || counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |line| {
            let hash = hashes.hash_one((self.encoding, line));
            let known = counts().get(&hash).copied();
            known.or_else(|| {
                let counted = self.count_while(line, is_wanted)?;
                let mut counts = counts();
                if counts.len() >= REMEMBERED {
                    counts.clear();
                }
                counts.insert(hash, counted);
                Some(counted)
            })
        };
        lines(text).map(count).sum()
    }

    fn count_while(&self, text: &str, is_wanted: &(dyn Fn() -> bool + Sync)) -> Option<u64> {
        let vocabulary = self.vocabulary();
        let halves = (text.len() > HALVED_ABOVE).then(|| split(text)).flatten();
        match halves {
            Some((left, right)) => count_both(vocabulary, left, right, is_wanted),
            None => count_parts(vocabulary, text, is_wanted),
        }
    }
}

/// Returns the lines of a text, cut only where [`split`] may cut: their tokens add up to those of
/// the text.
fn lines(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let bytes = text.as_bytes();
        let mut starts = memchr::memchr_iter(b'\n', bytes).map(|line_end| line_end + 1);
        let end = starts.find(|at| splits(bytes, *at)).unwrap_or(bytes.len());
        let (line, rest) = text.split_at(end);
        text = rest;
        Some(line).filter(|line| !line.is_empty())
    })
}

/// Counts a text part by part. Returns `None` once the count is no longer wanted.
fn count_parts(
    vocabulary: &CoreBpe,
    mut text: &str,
    is_wanted: &(dyn Fn() -> bool + Sync),
) -> Option<u64> {
    let mut tokens = 0;
    while text.len() > LONGEST_PART {
        let (part, rest) = text.split_at(cut(text));
        tokens += vocabulary.count(part) as u64;
        text = rest;
        if !is_wanted() {
            return None;
        }
    }
    Some(tokens + vocabulary.count(text) as u64)
}

/// Returns the offset at which to cut a text of more than [`LONGEST_PART`] bytes: a place where
/// [`split`] may cut, or else before a space between lower-case letters, where a piece begins in
/// both vocabularies. If there is neither nearby, the text is cut anywhere, which may add a token.
fn cut(text: &str) -> usize {
    let bytes = &text.as_bytes()[..LONGEST_PART];
    let lines = memchr::memrchr_iter(b'\n', bytes).map(|line_end| line_end + 1);
    let mut spaces = memchr::memrchr_iter(b' ', &bytes[..LONGEST_PART - 1]);
    let is_between = |at: &usize| {
        *at > 0 && bytes[at - 1].is_ascii_lowercase() && bytes[at + 1].is_ascii_lowercase()
    };
    let line = lines.take(TRIES).find(|at| splits(text.as_bytes(), *at));
    let space = || spaces.by_ref().take(TRIES).find(is_between);
    line.or_else(space).unwrap_or_else(|| text.floor_char_boundary(LONGEST_PART))
}

/// Counts `left` on another thread and `right` on this one, or both on this one if no thread can be
/// started.
fn count_both(
    vocabulary: &CoreBpe,
    left: &str,
    right: &str,
    is_wanted: &(dyn Fn() -> bool + Sync),
) -> Option<u64> {
    let count = |text| count_parts(vocabulary, text, is_wanted);
    thread::scope(|scope| {
        let helper = thread::Builder::new().spawn_scoped(scope, || count(left)).ok();
        let right = count(right);
        let counted = helper.and_then(|helper| helper.join().ok());
        Some(counted.unwrap_or_else(|| count(left))? + right?)
    })
}

/// Cuts `text` near its middle, so that the tokens of both sides add up to those of the whole.
/// Returns `None` if there is no such place.
///
/// The place is right after a `\n` that is followed by a visible ASCII character other than `/`.
/// Both vocabularies first cut a text into pieces by a regular expression, matched from left to
/// right, each match beginning where the last one ended, and then encode each piece by itself. It
/// is therefore enough that the pieces of the whole are the pieces of the left side followed by
/// those of the right side:
///
/// 1. *No piece crosses the place.* The alternatives for words and numbers match no `\n` at all
///    (`[^\r\n\p{L}\p{N}]?`, letters, marks, `'s`, `\p{N}{1,3}`). Punctuation,
///    ` ?[^\s\p{L}\p{N}]+[\r\n]*` (`[\r\n/]*` in o200k), has its `\n` in the tail, which admits
///    nothing else but `\r` and, in o200k, `/`. The others, `\s*[\r\n]+`, `\s+(?!\S)` and `\s+`,
///    admit white space only.
/// 2. *The left side by itself gives the same pieces.* An alternative without lookahead depends
///    only on what it matches, and by 1 all of that is on the left. The one lookahead, in
///    `\s+(?!\S)`, is tried only where `\s*[\r\n]+` failed: on white space without a line end, up
///    to the next character that is not white space. That white space ends before the `\n`, and so
///    does the text that is looked at.
/// 3. *The right side by itself gives the same pieces*, since nothing looks behind and by 1 a piece
///    begins there.
fn split(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let middle = bytes.len() / 2;
    let after_line_end = |line_end: usize| Some(line_end + 1).filter(|at| splits(bytes, *at));
    let before = memchr::memrchr_iter(b'\n', &bytes[..middle]).find_map(after_line_end);
    let after = memchr::memchr_iter(b'\n', &bytes[middle..])
        .find_map(|line_end| after_line_end(middle + line_end));
    let nearest = before.into_iter().chain(after).min_by_key(|at| at.abs_diff(middle));
    nearest.map(|at| text.split_at(at))
}

/// Returns whether [`split`] may cut before the line that begins at `at`.
fn splits(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| byte.is_ascii_graphic() && *byte != b'/')
}

#[cfg(test)]
mod tests;
