//! Reads definitions and references of Emacs Lisp, Common Lisp, Scheme and Clojure.
//!
//! A form defines its first argument if its head says so (`defun`, `cl-defmethod`,
//! `define-minor-mode`, `ert-deftest`), or if it is a macro of the project that expands to such a
//! form. The second kind depends on other files. So the reader keeps the forms that may be
//! definitions, and the macros that define something. Never fails: a text that is not balanced
//! gives what can be read.

mod scan;

use self::scan::{Scanner, Token};
use crate::facts::{Defined, ParsedFacts};
use crate::language::Language;

/// Maximum depth of forms that are told apart. Deeper ones count as one.
const MAX_DEPTH: usize = 256;
/// Maximum number of forms of a file that may define something if the project says so.
const MAX_CANDIDATES: usize = 500;
/// Heads around definitions that leave these at the top of a file.
const WRAPPERS: &[&str] = &[
    "begin",
    "comment",
    "cond-expand",
    "cl-letf",
    "do",
    "eval-after-load",
    "eval-and-compile",
    "eval-when",
    "eval-when-compile",
    "if",
    "in-package",
    "let",
    "let*",
    "library",
    "define-library",
    "define-module",
    "locally",
    "module",
    "progn",
    "unless",
    "when",
    "with-eval-after-load",
    "with-no-warnings",
    "with-suppressed-warnings",
];
/// Heads that define a macro, which may in turn define what it is given.
const MACROS: &[&str] = &[
    "cl-defmacro",
    "define-macro",
    "define-syntax",
    "define-syntax-rule",
    "defmacro",
    "defmacro*",
    "defmacro!",
];
/// Heads of names that stand for a place: `(setf name)`.
const SETTERS: &[&str] = &["locf", "setf"];
/// Maximum number of lines of a signature after the first.
const MAX_SIGNATURE_LINES: u32 = 3;
/// Heads that begin like those of definitions, but define nothing.
const NO_DEFINERS: &[&str] =
    &["default", "defer", "defined", "define-key", "define-keys", "defined?"];

/// A form that is open.
#[derive(Debug, Default)]
struct OpenForm<'a> {
    start: usize,
    line: u32,
    head: &'a str,
    /// Number of elements that have begun, with the head.
    elements: usize,
    /// Index of its definition.
    defined: Option<usize>,
    /// The definition whose name stands in this form, as in `(define (name x) …)`.
    names: Option<usize>,
    /// The definition whose arguments this form has.
    arguments_of: Option<usize>,
    /// True if a quote stands before it.
    is_quoted: bool,
    /// True if the forms in it are at the top of the file as well.
    is_top: bool,
    /// True if it defines a macro.
    is_macro: bool,
    /// True if a string stands after its name.
    is_documented: bool,
}

/// Reads a text.
pub(crate) fn read(language: Language, text: &str) -> ParsedFacts<'_> {
    let mut reader =
        LispReader { language, text, forms: Vec::new(), found: ParsedFacts::default(), deeper: 0 };
    let mut scanner = Scanner::new(language, text);
    let mut is_quoted = false;
    while let Some(token) = scanner.next_token() {
        match token {
            Token::Quote => {
                is_quoted = true;
                continue;
            }
            Token::Open => reader.open(scanner.from, scanner.line, is_quoted),
            Token::Close => reader.close(scanner.at, scanner.line, true),
            Token::Symbol(name) => reader.symbol(name),
            Token::Text(name) => reader.element(Some(name), true),
            Token::Keyword(name) => reader.element(Some(name), true),
            Token::Other => reader.element(None, false),
        }
        is_quoted = false;
    }
    // Forms that are not closed end where the text ends.
    while !reader.forms.is_empty() {
        reader.close(text.len(), scanner.line, false);
    }
    reader.found.definitions.retain(|defined| !defined.name.is_empty());
    reader.found
}

struct LispReader<'a> {
    language: Language,
    text: &'a str,
    forms: Vec<OpenForm<'a>>,
    found: ParsedFacts<'a>,
    /// Number of open forms beyond those that are told apart.
    deeper: usize,
}

impl<'a> LispReader<'a> {
    fn open(&mut self, start: usize, line: u32, is_quoted: bool) {
        let at_margin = start == 0 || self.text.as_bytes()[start - 1] == b'\n';
        let looks_like_one =
            self.text[start..].starts_with("(def") || self.text[start..].starts_with("(cl-def");
        if at_margin && looks_like_one && !self.forms.is_empty() {
            // A form that defines begins at the margin: what is open before it lacks a parenthesis.
            self.deeper = 0;
            while !self.forms.is_empty() {
                self.close(start, line, false);
            }
        }
        if self.forms.len() >= MAX_DEPTH {
            self.deeper += 1;
            return;
        }
        let mut form = OpenForm { start, line, is_quoted, ..OpenForm::default() };
        if let Some(around) = self.forms.last_mut() {
            around.elements += 1;
            form.is_top = around.is_top && WRAPPERS.contains(&bare(around.head));
            let in_name = around.names.filter(|_| around.elements <= 2);
            match around.defined {
                Some(defined) if around.elements == 2 => form.names = Some(defined),
                Some(defined) if may_have_arguments(around) && !is_quoted => {
                    form.arguments_of = Some(defined);
                }
                _ => form.names = in_name,
            }
        } else {
            form.is_top = true;
        }
        self.forms.push(form);
    }

    /// Closes the innermost form. `is_whole` is false if its parenthesis is missing.
    fn close(&mut self, end: usize, line: u32, is_whole: bool) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let Some(form) = self.forms.pop() else { return };
        let is_setter = SETTERS.contains(&bare(form.head));
        let argued = form.arguments_of.or(form.names.filter(|_| !is_setter));
        if let (Some(index), Some(around), true) = (argued, self.forms.last(), is_whole) {
            let signature = &mut self.found.definitions[index].signature;
            let is_near = line <= around.line + MAX_SIGNATURE_LINES;
            if around.defined == Some(index) && signature.is_empty() && is_near {
                *signature = self.text[around.start..end].to_owned();
            }
        }
        let Some(index) = form.defined else { return };
        let defined = &mut self.found.definitions[index];
        defined.end = line;
        if defined.signature.is_empty() {
            let (start, head) = (&self.text[form.start..], 1 + form.head.len());
            let name = start.get(head..).and_then(|rest| rest.find(&defined.name));
            let end = name.map_or(0, |at| head + at + defined.name.len());
            let quote = usize::from(start[end..].starts_with('"'));
            defined.signature = start[..end + quote].to_owned();
        }
    }

    fn symbol(&mut self, name: &'a str) {
        self.element(Some(name), false);
        if name.bytes().all(|byte| byte.is_ascii_digit() || b".+-".contains(&byte)) {
            return;
        }
        self.found.refer(name);
        let separator = match self.language {
            Language::CommonLisp => ':',
            Language::Clojure => '/',
            _ => return,
        };
        if let Some((package, own)) = name.rsplit_once(separator)
            && !own.is_empty()
        {
            self.found.refer(own);
            self.found.refer(package.trim_end_matches(separator));
        }
    }

    /// Takes an element of the innermost form. `name` is its text if it can be a name.
    fn element(&mut self, name: Option<&'a str>, is_text: bool) {
        if self.deeper > 0 {
            return;
        }
        let Some(form) = self.forms.last_mut() else { return };
        form.elements += 1;
        form.is_documented |= is_text && form.elements == 3;
        let (elements, Some(name)) = (form.elements, name) else { return };
        if elements == 1 {
            form.head = if is_text { "" } else { name };
            self.begin();
            self.give_name(name, 1);
        } else {
            self.give_name(name, elements);
        }
    }

    /// Looks at the head of the innermost form.
    fn begin(&mut self) {
        let Some((form, around)) = self.forms.split_last_mut() else { return };
        let head = bare(form.head);
        let defines = is_definer(head);
        form.is_macro = MACROS.contains(&head);
        if defines && !form.is_top {
            // A macro that writes a definition defines what it is given.
            let outer = around.iter().find(|form| form.is_macro).and_then(|form| form.defined);
            if let Some(index) = outer {
                let name = self.found.definitions[index].name.clone();
                if !name.is_empty() && !self.found.definers.contains(&name) {
                    self.found.definers.push(name);
                }
            }
        }
        let is_candidate = !defines
            && form.is_top
            && !form.is_quoted
            && !WRAPPERS.contains(&head)
            && !NO_DEFINERS.contains(&head)
            && form.head.len() > 3
            && self.found.definitions.iter().filter(|it| it.form.is_some()).count()
                < MAX_CANDIDATES;
        if !form.is_top || form.is_quoted || !(defines || is_candidate) {
            return;
        }
        form.defined = Some(self.found.definitions.len());
        self.found.definitions.push(Defined {
            name: String::new(),
            line: form.line,
            end: form.line,
            depth: 0,
            counts: true,
            form: is_candidate.then(|| head.to_owned()),
            signature: String::new(),
        });
    }

    /// Gives a definition its name if `name` is in its place.
    fn give_name(&mut self, name: &'a str, element: usize) {
        let Some(form) = self.forms.last() else { return };
        let setter = SETTERS.contains(&bare(form.head));
        let index = match (form.defined, form.names) {
            (Some(index), _) if element == 2 => index,
            (_, Some(index)) if element == 1 && !setter || element == 2 && setter => index,
            _ => return,
        };
        let defined = &mut self.found.definitions[index];
        if defined.name.is_empty() {
            defined.name = name.trim_start_matches([':', '#']).to_owned();
        }
    }
}

/// Returns true if the next element of a definition may be its arguments: after the name, or after
/// one qualifier or documentation.
fn may_have_arguments(form: &OpenForm<'_>) -> bool {
    let is_method = form.head.contains("method") || form.is_documented;
    let has_none =
        ["package", "system", "mode", "group"].iter().any(|kind| form.head.contains(kind));
    !has_none && form.head != "ns" && (form.elements == 3 || form.elements == 4 && is_method)
}

/// Returns a head without its package.
fn bare(head: &str) -> &str {
    match head.rsplit_once([':', '/']) {
        Some((_, own)) if !own.is_empty() => own,
        _ => head,
    }
}

/// Returns true if a form with the head defines its first argument: a part of the head begins with
/// `def`.
fn is_definer(head: &str) -> bool {
    if NO_DEFINERS.contains(&head) || head.starts_with("default-") {
        return false;
    }
    let lower = head.to_lowercase();
    let begins = |part: &str| {
        part.starts_with("def") && !part.starts_with("default") && !part.starts_with("defer")
    };
    lower == "ns" || lower == "provide" || lower.split(['-', '.']).any(begins)
}

#[cfg(test)]
mod tests;
