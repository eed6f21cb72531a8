//! Finds the language that a text declares: in the mode line of Emacs or Vim, or in a shebang.

use super::of_mode;
use super::table::TABLE;

/// Number of bytes to examine at each end of the text. Editors examine whole lines instead, so a
/// mode line among very long lines is missed here.
const WINDOW: usize = 1024;

/// Number of lines from each end where Vim looks for a mode line (its option `modelines`).
const VIM_LINES: usize = 5;

/// Returns the language that `text` declares, if any. As in Emacs, a mode line outranks the
/// shebang, since scripts in other languages often begin with a line for the shell.
pub(super) fn language(text: &str) -> Option<&'static str> {
    let text = text.trim_start_matches('\u{feff}');
    let head = &text[..text.floor_char_boundary(WINDOW)];
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(WINDOW))..];
    let first = head.lines().next()?;
    head.lines()
        .take(2)
        .find_map(emacs_mode)
        .or_else(|| head.lines().take(VIM_LINES).find_map(vim_filetype))
        .or_else(|| tail.lines().rev().take(VIM_LINES).find_map(vim_filetype))
        .or_else(|| shebang(first))
}

/// Parses `-*- lisp -*-` or `-*- mode: lisp; … -*-`.
fn emacs_mode(line: &str) -> Option<&'static str> {
    let (inside, _) = line.split_once("-*-")?.1.split_once("-*-")?;
    if !inside.contains(':') {
        return of_mode(inside);
    }
    let mut settings = inside.split(';').filter_map(|setting| setting.split_once(':'));
    settings
        .find_map(|(name, value)| name.trim().eq_ignore_ascii_case("mode").then_some(value))
        .and_then(of_mode)
}

/// Parses `vim: set ft=lisp:` and its variants with `vi:`, `ex:`, `filetype=`, `syn=` and
/// `syntax=`.
fn vim_filetype(line: &str) -> Option<&'static str> {
    let at = ["vim:", "vi:", "ex:"].iter().find_map(|marker| {
        let at = line.find(marker)?;
        let begins_word = line[..at].chars().next_back().is_none_or(char::is_whitespace);
        begins_word.then_some(at + marker.len())
    })?;
    let mut settings = line[at..].split([' ', '\t', ':']).filter_map(|word| word.split_once('='));
    let names = ["ft", "filetype", "syn", "syntax"];
    settings.find(|(name, _)| names.contains(name)).and_then(|(_, value)| of_mode(value))
}

/// Parses `#!/bin/sh` and `#!/usr/bin/env -S NAME=value python3.11 -u`.
fn shebang(line: &str) -> Option<&'static str> {
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let program = base(words.next()?);
    if program == "env" { interpreter(base(env_program(words)?)) } else { interpreter(program) }
}

/// Returns the program that `env` runs: the first argument that is not an option, an option's value
/// or a variable.
fn env_program<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    while let Some(word) = words.next() {
        let joined = word.strip_prefix("--split-string=").or_else(|| word.strip_prefix("-S"));
        match (joined, word) {
            (Some(rest), _) if !rest.is_empty() => return Some(rest),
            (_, "-u" | "--unset" | "-C" | "--chdir") => _ = words.next(),
            _ if word.starts_with('-') || word.contains('=') => {}
            _ => return Some(word),
        }
    }
    None
}

/// Returns the language that a program runs, if the program is known. Its name may end in a
/// version: `python3.11`, `guile-3.0`.
fn interpreter(program: &str) -> Option<&'static str> {
    let bare = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    TABLE.interpreters.of(program).or_else(|| TABLE.interpreters.of(bare))
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
