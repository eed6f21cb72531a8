//! Splits a text of any Lisp into parentheses and symbols.

use crate::language::Language;

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    /// What quotes the next form: `'` or `` ` ``, but not `#'`.
    Quote,
    Symbol(&'a str),
    /// A keyword, without its colon.
    Keyword(&'a str),
    /// What is inside a string.
    Text(&'a str),
    /// A character, a number or the like.
    Other,
}

/// Reads tokens from a text.
pub(super) struct Scanner<'a> {
    language: Language,
    text: &'a str,
    /// Where the last token begins and ends.
    pub(super) from: usize,
    pub(super) at: usize,
    /// The line of the last token.
    pub(super) line: u32,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(language: Language, text: &'a str) -> Self {
        Self { language, text, from: 0, at: 0, line: 1 }
    }

    pub(super) fn next_token(&mut self) -> Option<Token<'a>> {
        loop {
            let byte = self.peek(0)?;
            self.from = self.at;
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0c => self.at += 1,
                b',' if self.is(Language::Clojure) => self.at += 1,
                b',' => self.at += if self.peek(1) == Some(b'@') { 2 } else { 1 },
                b'~' | b'@' if self.is(Language::Clojure) => self.at += 1,
                b';' => self.skip_line(),
                b'"' => return Some(self.string()),
                b'(' | b'[' | b'{' => return Some(self.one(Token::Open)),
                b')' | b']' | b'}' => return Some(self.one(Token::Close)),
                b'\'' | b'`' => return Some(self.one(Token::Quote)),
                b'^' if self.is(Language::Clojure) => self.metadata(),
                b'\\' if self.is(Language::Clojure) => return Some(self.character(1)),
                b'?' if self.is(Language::EmacsLisp) && self.peek(1).is_some_and(|b| b > b' ') => {
                    return Some(self.question_mark());
                }
                b'|' if !self.is(Language::EmacsLisp) && !self.is(Language::Clojure) => {
                    return Some(self.bars());
                }
                b'#' => {
                    if let Some(token) = self.hash() {
                        return Some(token);
                    }
                }
                _ => return Some(self.symbol()),
            }
        }
    }

    fn is(&self, language: Language) -> bool {
        self.language == language
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn is_symbol_at(&self, ahead: usize) -> bool {
        self.peek(ahead).is_some_and(|byte| !is_end(byte, self.language))
    }

    fn one(&mut self, token: Token<'a>) -> Token<'a> {
        self.at += 1;
        token
    }

    fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    /// Goes on to `to`, counting lines.
    fn go(&mut self, to: usize) {
        let to = to.min(self.text.len());
        let passed = &self.text.as_bytes()[self.at..to];
        let lines = memchr::memchr_iter(b'\n', passed).count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.at = to;
    }

    fn string(&mut self) -> Token<'a> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut end = start;
        while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(end..).unwrap_or_default()) {
            end += found;
            if bytes[end] == b'"' {
                self.go(end + 1);
                return Token::Text(&self.text[start..end]);
            }
            end += 2;
        }
        self.go(bytes.len());
        Token::Other
    }

    fn bars(&mut self) -> Token<'a> {
        let start = self.at + 1;
        let rest = &self.text.as_bytes()[start..];
        let end = start + memchr::memchr2(b'|', b'\n', rest).unwrap_or(rest.len());
        self.go(end + 1);
        Token::Symbol(&self.text[start..end])
    }

    /// Skips `^:private` and `^{…}`; what follows `^` is read as its own.
    fn metadata(&mut self) {
        self.at += 1;
        match self.peek(0) {
            Some(b'{') => self.skip_balanced(),
            Some(_) => {
                self.symbol();
            }
            None => {}
        }
    }

    /// Skips a form in parentheses of any kind.
    fn skip_balanced(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b'\n' => self.line += 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
    }

    /// Reads a character whose sign is `skip` bytes long, such as `\newline` or `#\(`.
    fn character(&mut self, skip: usize) -> Token<'a> {
        self.at += skip;
        let width = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        self.go(self.at + width);
        while self.is_symbol_at(0) {
            self.at += 1;
        }
        Token::Other
    }

    /// Reads `?a`, `?\(` or `?\C-x` of Emacs Lisp.
    fn question_mark(&mut self) -> Token<'a> {
        self.at += 1;
        while self.peek(0) == Some(b'\\') {
            self.at += 1;
            let control = matches!(self.peek(0), Some(b'C' | b'M' | b'S' | b'H' | b's' | b'A'));
            if control && self.peek(1) == Some(b'-') {
                self.at += 2;
                if self.peek(0) != Some(b'\\') {
                    break;
                }
            } else {
                break;
            }
        }
        self.character(0)
    }

    /// Reads what begins with `#`. Returns `None` for what is skipped.
    fn hash(&mut self) -> Option<Token<'a>> {
        match self.peek(1) {
            Some(b'|') if !self.is(Language::Clojure) => {
                self.skip_block();
                None
            }
            Some(b';') if self.is(Language::Scheme) => {
                self.at += 2;
                None
            }
            Some(b'!') => {
                self.skip_line();
                None
            }
            Some(b'_') if self.is(Language::Clojure) => {
                self.at += 2;
                None
            }
            Some(b'"') => {
                self.at += 1;
                self.string();
                Some(Token::Other)
            }
            Some(b'\\') => Some(self.character(2)),
            Some(b':') => {
                self.at += 2;
                Some(match self.symbol() {
                    Token::Symbol(name) => Token::Keyword(name),
                    other => other,
                })
            }
            // A function, a vector, a set, or a form that is read on some systems only.
            Some(b'\'' | b'(' | b'{' | b'[' | b'`' | b',' | b'?' | b'@' | b'^') => {
                self.at += if matches!(self.peek(1), Some(b'(' | b'{' | b'[')) { 1 } else { 2 };
                None
            }
            Some(b'+' | b'-') if self.is(Language::CommonLisp) => {
                self.at += 2;
                if self.peek(0) == Some(b'(') {
                    self.skip_balanced();
                } else {
                    self.symbol();
                }
                None
            }
            Some(b'.' | b'=' | b'p' | b'P') if self.is(Language::CommonLisp) => {
                self.at += 2;
                None
            }
            _ => {
                self.symbol();
                Some(Token::Other)
            }
        }
    }

    fn skip_block(&mut self) {
        let bytes = self.text.as_bytes();
        let (mut end, mut depth) = (self.at + 2, 1_usize);
        while depth > 0 {
            match bytes.get(end..).and_then(|rest| memchr::memchr2(b'|', b'#', rest)) {
                None => end = bytes.len(),
                Some(found) => {
                    end += found;
                    match (bytes[end], bytes.get(end + 1)) {
                        (b'|', Some(b'#')) => (depth, end) = (depth - 1, end + 2),
                        (b'#', Some(b'|')) => (depth, end) = (depth + 1, end + 2),
                        _ => end += 1,
                    }
                    continue;
                }
            }
            break;
        }
        self.go(end);
    }

    fn symbol(&mut self) -> Token<'a> {
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            if byte == b'\\' && !self.is(Language::Clojure) {
                self.at += 1;
                let width = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
                self.go(self.at + width);
            } else if is_end(byte, self.language) {
                break;
            } else {
                self.at += 1;
            }
        }
        if self.at == start {
            // A byte that begins nothing must not stop the reading.
            let width = self.text[start..].chars().next().map_or(1, char::len_utf8);
            self.go(start + width);
            return Token::Other;
        }
        let name = &self.text[start..self.at];
        match name.strip_prefix(':') {
            Some(keyword) => Token::Keyword(keyword.trim_start_matches(':')),
            None if name == "." => Token::Other,
            None => Token::Symbol(name),
        }
    }
}

fn is_end(byte: u8, language: Language) -> bool {
    match byte {
        b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'"' | b';' => true,
        b'\'' => language != Language::Clojure && language != Language::Scheme,
        b'`' | b',' => true,
        _ => byte <= b' ',
    }
}
