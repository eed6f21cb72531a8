//! Reads definitions of languages without a grammar, by the words that begin their lines: `class`, `fun`,
//! `defmodule`. Each name in the code counts as a reference. Never fails: what is not understood is left
//! out.

mod rules;

use self::rules::{MODIFIERS, Rules};
use crate::facts::{Defined, ParsedFacts};
use crate::language::Language;
use crate::words::tokens;

/// Maximum depth of definitions that is told.
const MAX_DEPTH: usize = 8;
/// What may stand alone on the last line of a definition, or before its body.
const CLOSERS: &[&str] = &["}", ")", "]", "end"];

/// Reads a text. Returns `None` for a language that another module reads.
pub(crate) fn read(language: Language, text: &str) -> Option<ParsedFacts<'_>> {
    let rules = rules::of(language)?;
    let mut reader = LineReader { rules, found: ParsedFacts::default(), open: Vec::new(), last: 0 };
    let mut skipped: Option<&str> = None;
    for (at, line) in text.lines().enumerate() {
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        let code = line.trim();
        if let Some(end) = skipped {
            skipped = (!code.contains(end)).then_some(end);
            continue;
        }
        // A comment begins its line: within one, its sign may stand in a text.
        let is_comment = rules.comments.iter().any(|sign| code.starts_with(sign));
        let begins = |(begin, end): &(&'static str, &'static str)| {
            let is_open = match code.strip_prefix(begin) {
                _ if begin == end => !is_comment && code.matches(begin).count() % 2 == 1,
                Some(rest) => !rest.contains(end),
                None => false,
            };
            is_open.then_some(*end)
        };
        skipped = rules.blocks.iter().find_map(begins);
        if code.is_empty() || is_comment {
            continue;
        }
        reader.line(line, code, number);
    }
    reader.close(0, "");
    Some(reader.found)
}

/// A definition that has not ended, by its place among those found.
struct OpenDefinition {
    place: usize,
    indent: usize,
}

struct LineReader<'a> {
    rules: &'static Rules,
    found: ParsedFacts<'a>,
    open: Vec<OpenDefinition>,
    /// Number of the last line with code.
    last: u32,
}

impl<'a> LineReader<'a> {
    fn line(&mut self, line: &'a str, code: &'a str, number: u32) {
        let indent = line.len() - line.trim_start().len();
        if code.starts_with('{') {
            self.last = number;
            return;
        }
        self.close(indent, code);
        self.last = number;
        let name = self.rules.define(code, indent == 0);
        let own = name.as_ref().map(|it| it.name.as_ptr());
        for token in tokens(code).filter(|token| Some(token.as_ptr()) != own) {
            self.found.refer(token);
        }
        let Some(DefinedName { name, counts }) = name else { return };
        // Clauses of one function, and declarations of one that follows, are one definition.
        if self.found.definitions.last().is_some_and(|it| it.name == name && counts && it.counts) {
            return;
        }
        self.open.push(OpenDefinition { place: self.found.definitions.len(), indent });
        self.found.definitions.push(Defined {
            name: name.to_owned(),
            line: number,
            end: number,
            depth: (self.open.len() - 1).min(MAX_DEPTH) as u8,
            counts,
            form: None,
            signature: self.rules.signature(code).to_owned(),
        });
    }

    /// Ends the definitions that a line with this indentation ends.
    fn close(&mut self, indent: usize, code: &str) {
        let is_closer = CLOSERS.iter().any(|closer| code.starts_with(closer));
        while let Some(top) = self.open.last().filter(|top| top.indent >= indent) {
            let own_line = is_closer && top.indent == indent;
            let end = if own_line { self.last + 1 } else { self.last };
            let definition = &mut self.found.definitions[top.place];
            definition.end = end.max(definition.line);
            self.open.pop();
        }
    }
}

/// The name that a line defines.
struct DefinedName<'a> {
    name: &'a str,
    /// False for what only holds others, such as an extension.
    counts: bool,
}

impl Rules {
    /// Returns the name that a line defines.
    fn define<'a>(&self, code: &'a str, is_top: bool) -> Option<DefinedName<'a>> {
        let mut rest = self.without_annotations(code);
        let mut is_modified = false;
        loop {
            let (word, after) = word(rest);
            if word.is_empty() {
                return None;
            }
            let after_word = after.trim_start();
            let is_definer = self.definers.contains(&word);
            let is_holder = self.holders.contains(&word);
            if is_definer || is_holder {
                // `enum class`, `class func`, `case object`.
                let (next, _) = self::word(after_word);
                if self.definers.contains(&next) {
                    rest = after_word;
                    continue;
                }
                return self.name(after_word).map(|name| DefinedName { name, counts: is_definer });
            }
            if self.values.contains(&word) && (is_top || is_modified) && self.is_kind(code) {
                return self.name(after_word).map(|name| DefinedName { name, counts: true });
            }
            if !MODIFIERS.contains(&word) {
                break;
            }
            is_modified = true;
            rest = match after.strip_prefix('(') {
                Some(inner) => inner.split_once(')').map_or(after, |(_, after)| after).trim_start(),
                None => after_word,
            };
        }
        let name = if self.has_methods && is_modified {
            method(rest)
        } else if self.has_signatures && is_top {
            rest.split_once(" ::").map(|(name, _)| name).filter(|name| is_name(name))
        } else if self.has_assigned {
            let (left, _) = rest.split_once("= function")?;
            let left = left.trim_end();
            left.rsplit(['.', ' ', '\t']).next().filter(|name| is_name(name))
        } else {
            None
        };
        name.map(|name| DefinedName { name, counts: true })
    }

    /// Returns true if the value of a line is not only another name for something.
    fn is_kind(&self, code: &str) -> bool {
        let value = code.split_once("= ").map_or("", |(_, value)| value);
        self.kinds.is_empty() || self.kinds.iter().any(|kind| value.starts_with(kind))
    }

    /// Skips `@Annotation(…)`, `[Attribute]` and `#[Attribute]` before what they belong to.
    fn without_annotations<'a>(&self, code: &'a str) -> &'a str {
        let mut rest = code;
        if !self.has_annotations {
            return rest.trim_start_matches('@');
        }
        loop {
            let end = if rest.starts_with(['[', '#']) {
                rest.find(']').map(|at| at + 1)
            } else if let Some(after) = rest.strip_prefix('@') {
                let name =
                    after.len() - after.trim_start_matches(|c: char| is_part(c) || c == '.').len();
                let after = &after[name..];
                let arguments = after.starts_with('(').then(|| after.find(')')).flatten();
                Some(1 + name + arguments.map_or(0, |at| at + 1))
            } else {
                None
            };
            match end {
                Some(end) => rest = rest[end..].trim_start(),
                None => return rest,
            }
        }
    }

    /// Reads the name after the word that defines: `<T> List<T>.name(`, `(Eq a) => Name a`, `M:name`.
    fn name<'a>(&self, text: &'a str) -> Option<&'a str> {
        let mut rest = text.trim_start_matches(['&', '`', ' ']);
        if self.has_signatures
            && let Some((_, after)) = rest.split_once("=> ")
        {
            rest = after.trim_start();
        }
        rest = without_generics(rest).trim_start_matches(['`', ' ']);
        loop {
            let (word, after) = word(rest);
            let after = without_generics(after).trim_start_matches('?');
            let next = after.strip_prefix(self.joints).filter(|next| next.starts_with(is_part));
            match next {
                Some(next) => rest = next,
                None => return Some(word).filter(|name| is_name(name)),
            }
        }
    }

    /// Returns the beginning of a definition, without its body or value.
    fn signature<'a>(&self, code: &'a str) -> &'a str {
        let mut depth = 0_usize;
        for (at, c) in code.char_indices() {
            let rest = &code[at..];
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                '{' if depth == 0 => return &code[..at],
                '=' if depth == 0
                    && (rest.starts_with("= ") || rest == "=" || self.has_methods) =>
                {
                    return &code[..at];
                }
                _ => {}
            }
        }
        code.strip_suffix(" do").unwrap_or(code)
    }
}

/// Returns the name of a method or property of C# after its modifiers: `Task<int> Read(…)`.
fn method(rest: &str) -> Option<&str> {
    let end = rest.find(['(', '{', '=', ';', '"']).unwrap_or(rest.len());
    let is_one = match rest.as_bytes().get(end) {
        Some(b'(' | b'{') | None => true,
        Some(b'=') => rest[end..].starts_with("=>"),
        _ => false,
    };
    let mut before = rest[..end].trim_end();
    if before.ends_with('>') {
        before = &before[..before.rfind('<')?];
    }
    let start = before.rfind(|c| !is_part(c))? + 1;
    (is_one && start > 0).then_some(&before[start..]).filter(|name| is_name(name))
}

/// Splits the first word from what follows.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '\'')
}

fn is_name(text: &str) -> bool {
    text.len() >= 2
        && text.len() < 200
        && text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(is_part)
}

/// Skips parameters of a type: `<T, List<U>>`.
fn without_generics(text: &str) -> &str {
    if !text.starts_with('<') {
        return text;
    }
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text[at + 1..].trim_start();
        }
    }
    ""
}

#[cfg(test)]
mod tests;
