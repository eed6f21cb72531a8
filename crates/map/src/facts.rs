//! The facts of a file: its definitions, the names that it uses, and its words. They are a function of
//! the file's path and bytes alone, so that an index can keep them.

use std::collections::{BTreeMap, HashMap};

use crate::language::Language;
use crate::words::{MAX_NAME_BYTES, Splitter, tokens};
use crate::{grammar, lines, lisp};

/// Maximum number of different words of a file that are kept.
const MAX_WORDS: usize = 4_096;
/// Maximum number of different names that a file uses which are kept.
const MAX_REFERENCES: usize = 4_096;
/// Maximum number of definitions of a file that are kept.
const MAX_DEFINITIONS: usize = 2_000;
/// Maximum length of a signature in characters.
const MAX_SIGNATURE: usize = 110;
/// Maximum length of a line in bytes. A file with a longer one was made by a program.
const MAX_LINE_BYTES: usize = 5_000;
/// Number of bytes at the beginning of a file that are searched for a note that a program made the
/// file.
const HEAD_BYTES: usize = 1_024;
/// Number of bytes at the beginning of a file that are searched for the sign of a binary file.
const NUL_WINDOW: usize = 8 * 1_024;

/// What a file is, and how much of it the map knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileState {
    /// The whole file is known.
    Whole,
    /// There were too many definitions, names or words, and the rarest were left out.
    Partial,
    /// A program made the file: it counts less, and its words only if it was minified.
    Generated,
    /// The parser gave up. The file counts by its words.
    Unparsed,
    /// The file is binary: only its name is known.
    Binary,
    /// The file is too large: only its name is known.
    TooLarge,
    /// The file may hold secrets: only its name is known.
    Secret,
    /// The file could not be read: only its name is known.
    Unreadable,
}

/// Each state with its number in a stored index.
const STATES: &[FileState] = &[
    FileState::Whole,
    FileState::Partial,
    FileState::Generated,
    FileState::Unparsed,
    FileState::Binary,
    FileState::TooLarge,
    FileState::Secret,
    FileState::Unreadable,
];

impl FileState {
    pub(crate) fn number(self) -> u8 {
        STATES.iter().position(|it| *it == self).unwrap_or(0) as u8
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        STATES.get(usize::from(number)).copied()
    }
}

/// A definition in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Defined {
    pub(crate) name: String,
    /// First line, from 1.
    pub(crate) line: u32,
    /// Last line.
    pub(crate) end: u32,
    /// Number of definitions around it.
    pub(crate) depth: u8,
    /// False for what only holds others, such as an `impl`.
    pub(crate) counts: bool,
    /// The form that defines it, if only the project can say whether that form defines anything.
    pub(crate) form: Option<String>,
    /// Beginning of the definition, without its body or value.
    pub(crate) signature: String,
}

/// Number of times that a word is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WordCount {
    /// In the whole text.
    pub(crate) text: u16,
    /// In the names of its definitions.
    pub(crate) names: u16,
}

/// The facts of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileFacts {
    pub(crate) language: Language,
    pub(crate) state: FileState,
    pub(crate) lines: u32,
    /// Number of words.
    pub(crate) length: u32,
    pub(crate) words: BTreeMap<String, WordCount>,
    /// Names that the file uses, and how often.
    pub(crate) references: BTreeMap<String, u32>,
    pub(crate) definitions: Vec<Defined>,
    /// Macros of the file that define what they are given.
    pub(crate) definers: Vec<String>,
}

/// What a parser finds in a text.
#[derive(Debug, Default)]
pub(crate) struct ParsedFacts<'a> {
    pub(crate) definitions: Vec<Defined>,
    pub(crate) references: HashMap<&'a str, u32>,
    pub(crate) definers: Vec<String>,
}

impl<'a> ParsedFacts<'a> {
    pub(crate) fn refer(&mut self, name: &'a str) {
        if name.len() <= MAX_NAME_BYTES {
            *self.references.entry(name).or_default() += 1;
        }
    }
}

impl FileFacts {
    /// Creates the facts of a file of which only the name is known.
    pub(crate) fn nameless(path: &str, state: FileState) -> Self {
        Self {
            language: Language::of(path),
            state,
            lines: 0,
            length: 0,
            words: BTreeMap::new(),
            references: BTreeMap::new(),
            definitions: Vec::new(),
            definers: Vec::new(),
        }
    }

    /// Reads the facts of a file.
    pub(crate) fn of(path: &str, bytes: &[u8], splitter: &mut Splitter) -> Self {
        let head = &bytes[..bytes.len().min(NUL_WINDOW)];
        if memchr::memchr(0, head).is_some() {
            return Self::nameless(path, FileState::Binary);
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        let mut facts = Self::nameless(path, FileState::Whole);
        facts.lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
        if facts.language == Language::Data {
            facts.state = FileState::Generated;
            return facts;
        }
        facts.language = by_first_line(facts.language, &text);
        let is_minified = longest_line(text.as_bytes()) > MAX_LINE_BYTES;
        if is_minified || says_generated(&text) {
            facts.state = FileState::Generated;
        }
        facts.take_words(&text, splitter);
        if !is_minified && facts.language.has_definitions() {
            facts.take_found(&text, splitter);
        }
        facts
    }

    fn take_words(&mut self, text: &str, splitter: &mut Splitter) {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        tokens(text).for_each(|token| *counts.entry(token).or_default() += 1);
        let mut words: HashMap<Box<str>, u32> = HashMap::new();
        for (token, count) in counts {
            for stem in splitter.stems(token) {
                match words.get_mut(stem) {
                    Some(so_far) => *so_far += count,
                    None => {
                        words.insert(stem.clone(), count);
                    }
                }
                self.length = self.length.saturating_add(count);
            }
        }
        let kept = most(words.into_iter().collect(), MAX_WORDS, &mut self.state);
        self.words = kept
            .into_iter()
            .map(|(word, count)| (word.into(), WordCount { text: narrow(count), names: 0 }))
            .collect();
    }

    fn take_found(&mut self, text: &str, splitter: &mut Splitter) {
        let found = match self.language {
            lisp if lisp.is_lisp() => Some(lisp::read(lisp, text)),
            other => lines::read(other, text).or_else(|| grammar::read(other, text)),
        };
        let Some(mut found) = found else {
            self.state = FileState::Unparsed;
            return;
        };
        if found.definitions.len() > MAX_DEFINITIONS {
            found.definitions.truncate(MAX_DEFINITIONS);
            self.state = FileState::Partial;
        }
        for defined in &mut found.definitions {
            defined.signature = signature(&defined.signature);
            for stem in splitter.stems(&defined.name) {
                if let Some(times) = self.words.get_mut(&**stem) {
                    times.names = times.names.saturating_add(1);
                }
            }
        }
        let references: Vec<(&str, u32)> = found.references.into_iter().collect();
        let kept = most(references, MAX_REFERENCES, &mut self.state);
        self.references = kept.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        self.definitions = found.definitions;
        self.definers = found.definers;
    }
}

/// Keeps the entries with the highest counts, of equal ones the first by name.
fn most<K: Ord>(mut all: Vec<(K, u32)>, limit: usize, state: &mut FileState) -> Vec<(K, u32)> {
    if all.len() > limit {
        all.sort_unstable_by(|(name, count), (other, more)| more.cmp(count).then(name.cmp(other)));
        all.truncate(limit);
        if *state == FileState::Whole {
            *state = FileState::Partial;
        }
    }
    all
}

fn narrow(count: u32) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Writes the beginning of a definition on one line, without what begins its body.
fn signature(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_SIGNATURE * 4 {
            break;
        }
    }
    if let Some((at, _)) = line.char_indices().nth(MAX_SIGNATURE) {
        line.truncate(at);
        line.push('…');
    }
    let kept = line.trim_end_matches(['{', '=', ':', ';', ' ']).len();
    line.truncate(kept);
    line
}

fn longest_line(bytes: &[u8]) -> usize {
    let (mut longest, mut from) = (0, 0);
    for end in memchr::memchr_iter(b'\n', bytes) {
        longest = longest.max(end - from);
        from = end + 1;
    }
    longest.max(bytes.len() - from)
}

fn says_generated(text: &str) -> bool {
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= HEAD_BYTES);
    let head = text[..end.unwrap_or(text.len())].to_lowercase();
    ["@generated", "do not edit", "code generated by", "autogenerated", "auto-generated"]
        .iter()
        .any(|sign| head.contains(sign))
}

/// Tells the language of a script without an ending by its first line.
fn by_first_line(language: Language, text: &str) -> Language {
    let first = text.lines().next().unwrap_or_default();
    if language != Language::Other || !first.starts_with("#!") {
        return language;
    }
    let is = |name: &str| first.contains(name);
    match () {
        () if is("python") => Language::Python,
        () if is("bash") || is("/sh") || is(" sh") || is("zsh") => Language::Bash,
        () if is("ruby") => Language::Ruby,
        () if is("node") || is("deno") || is("bun") => Language::Tsx,
        () if is("guile") || is("racket") => Language::Scheme,
        () if is("emacs") => Language::EmacsLisp,
        () if is("sbcl") => Language::CommonLisp,
        () => language,
    }
}
