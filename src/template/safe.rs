//! What of Jinja a template may use: placeholders, conditions and loops, but nothing by which a text
//! grows from itself. A template comes with a project that somebody else wrote, and of memory that
//! cannot be had the whole program would die.

use std::io::{self, Write};

use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, filters, functions, tests};

use super::TemplateError;

/// The statements. Others keep texts, or bring in other templates.
const STATEMENTS: [&str; 7] = ["if", "elif", "else", "endif", "for", "endfor", "set"];

/// An environment in which no filter, test or function makes more of a text than a few times itself.
pub(super) fn environment(fuel: u64) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_fuel(Some(fuel));
    environment.add_filter("capitalize", filters::capitalize);
    environment.add_filter("count", filters::length);
    environment.add_filter("d", filters::default);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("length", filters::length);
    environment.add_filter("lines", filters::lines);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("split", filters::split);
    environment.add_filter("title", filters::title);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("in", tests::is_in);
    environment.add_test("none", tests::is_none);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_function("range", functions::range);
    environment
}

/// Whether a template uses nothing else. What is not well-formed is for others to find.
pub(super) fn check(name: &str, body: &str, body_line: usize) -> Result<(), TemplateError> {
    let mut reader = Reader::default();
    for token in tokenize(body, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { return Ok(()) };
        if let Some(what) = reader.refused(&token) {
            let message = format!("{what} cannot be used in a template");
            let Span { start_line, start_col, .. } = span;
            let line = usize::from(start_line) + body_line - 1;
            let column = usize::from(start_col) + 1;
            return Err(TemplateError { name: name.to_owned(), line, column, message });
        }
    }
    Ok(())
}

/// What must be known of the tokens before one.
#[derive(Default)]
struct Reader {
    /// How many tokens of the block there were, and its statement.
    tokens: usize,
    statement: Option<String>,
    /// Whether a bracket would be behind a value: an index or a call.
    behind_value: bool,
    /// Of each open parenthesis, whether it is a call's.
    calls: Vec<bool>,
}

impl Reader {
    /// What the token would be, if a template may not have it there.
    fn refused(&mut self, token: &Token<'_>) -> Option<String> {
        let what = match token {
            Token::VariableStart | Token::BlockStart => {
                *self = Self::default();
                self.statement = matches!(token, Token::BlockStart).then(String::new);
                return None;
            }
            Token::Ident(name) if self.tokens == 0 && self.statement.is_some() => {
                self.statement = Some((*name).to_owned());
                (!STATEMENTS.contains(name)).then(|| format!("{{% {name} %}}"))
            }
            // Without its value it is a block, which keeps all that is written in it.
            token if self.tokens == 2 && self.is_set() && !matches!(token, Token::Assign) => {
                Some("{% set %} of anything but a name and its value".to_owned())
            }
            Token::Plus | Token::Mul | Token::Pow | Token::Tilde => Some(token.to_string()),
            Token::BraceOpen => Some("a dictionary".to_owned()),
            Token::BracketOpen if !self.behind_value => Some("a list".to_owned()),
            Token::Comma if self.calls.last() != Some(&true) => Some("a list".to_owned()),
            _ => None,
        };
        match token {
            Token::ParenOpen => self.calls.push(self.behind_value),
            Token::ParenClose => drop(self.calls.pop()),
            _ => {}
        }
        let ends_value = matches!(
            token,
            Token::Ident(_) | Token::ParenClose | Token::BracketClose | Token::Str(_)
        );
        self.behind_value = ends_value && !is_word(token);
        self.tokens += 1;
        what
    }

    fn is_set(&self) -> bool {
        self.statement.as_deref() == Some("set")
    }
}

/// Whether a name is one of the language's own, behind which no value ends.
fn is_word(token: &Token<'_>) -> bool {
    const WORDS: [&str; 9] = ["and", "or", "not", "in", "is", "if", "elif", "else", "for"];
    matches!(token, Token::Ident(name) if WORDS.contains(name))
}

/// Takes so many bytes and then fails.
pub(super) struct Bounded {
    pub(super) written: Vec<u8>,
    pub(super) most: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.written.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
