//! The subset of Jinja that a template may use: placeholders, conditions and loops, but nothing
//! that can make a text grow without bound. A template may come with somebody else's project, and
//! running out of memory would end the whole program.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::machinery::Token;
use minijinja::value::{StringInput, ValueKind};
use minijinja::{
    Environment, Error, ErrorKind, State, UndefinedBehavior, Value, filters, functions, tests,
};

use super::work::ItemsRead;
use super::{TemplateError, bounds};

/// Allowed statements. Most others would keep texts in memory without limit, or include other
/// templates.
const STATEMENTS: [&str; 7] = ["if", "elif", "else", "endif", "for", "endfor", "set"];

/// Maximum number of bytes that all filters of a template may produce together. All these bytes may
/// stay in memory, in variables and loops.
const MAX_MADE_BYTES: usize = 64 << 20;
/// Maximum number of pieces that a text may be split into.
const MAX_PIECES: usize = 100_000;
/// Number of bytes of memory that one piece takes besides its text.
const BYTES_PER_PIECE: usize = 48;
/// Maximum number of bytes in the argument of `trim`.
const MAX_TRIMMED_BYTES: usize = 16;
/// Maximum depth of nested loops. Each loop keeps the values that it iterates over.
const MAX_LOOPS: usize = 8;

/// Creates an environment in which nothing makes a text more than a few times longer.
pub(super) fn environment(fuel: u64) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_fuel(Some(fuel));
    let made = Arc::new(FilteredBytes::default());
    add_filters(&mut environment, &made);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("in", tests::is_in);
    environment.add_test("none", tests::is_none);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("undefined", tests::is_undefined);
    let work = Arc::new(ItemsRead::default());
    let own = Arc::clone(&work);
    environment.add_function(
        "range",
        move |lower: isize, upper: Option<isize>, step: Option<isize>| {
            functions::range(lower, upper, step).map(|list| own.counting(list))
        },
    );
    add_splitting(&mut environment, made, work);
    environment
}

/// A filter that changes the letter case of a text.
type Recasing = fn(StringInput<'_>) -> Value;

fn add_filters(environment: &mut Environment<'static>, made: &Arc<FilteredBytes>) {
    environment.add_filter("count", filters::length);
    environment.add_filter("d", filters::default);
    environment.add_filter("default", filters::default);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("length", filters::length);
    let recased: [(_, Recasing); 3] =
        [("capitalize", filters::capitalize), ("lower", filters::lower), ("upper", filters::upper)];
    for (name, filter) in recased {
        let own = Arc::clone(made);
        environment.add_filter(name, move |state: &State, text: Value| {
            own.text(&text)?;
            Ok::<_, Error>(filter(StringInput::new(state, &text)?))
        });
    }
    let own = Arc::clone(made);
    environment.add_filter("title", move |state: &State, text: Value| {
        own.text(&text)?;
        Ok::<_, Error>(filters::title(StringInput::new(state, &text)?.as_str().into()))
    });
    let own = Arc::clone(made);
    environment.add_filter("trim", move |state: &State, text: Value, ends: Option<String>| {
        own.text(&text)?;
        check_ends(ends.as_deref())?;
        Ok::<_, Error>(filters::trim(StringInput::new(state, &text)?, ends.map(Into::into)))
    });
}

fn add_splitting(
    environment: &mut Environment<'static>,
    made: Arc<FilteredBytes>,
    work: Arc<ItemsRead>,
) {
    let (own, counted) = (Arc::clone(&made), Arc::clone(&work));
    environment.add_filter("lines", move |text: Value| {
        own.pieces(&text, |text| text.lines().take(MAX_PIECES + 1).count())?;
        filters::lines(&text).map(|list| counted.counting(list))
    });
    environment.add_filter("split", move |text: Value, by: Option<Arc<str>>, most: Option<i64>| {
        made.pieces(&text, |text| match &by {
            Some(by) => text.split(&**by).take(MAX_PIECES + 1).count(),
            None => text.split_whitespace().take(MAX_PIECES + 1).count(),
        })?;
        filters::split(&text, by, most).map(|list| work.counting(list))
    });
}

/// Refuses too many characters to trim: each is compared with every character of the text.
fn check_ends(ends: Option<&str>) -> Result<(), Error> {
    if ends.is_some_and(|ends| ends.len() > MAX_TRIMMED_BYTES) {
        let problem =
            format!("the argument of trim cannot have more than {MAX_TRIMMED_BYTES} bytes");
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    }
    Ok(())
}

/// Number of bytes that the filters of one rendering have produced.
#[derive(Default)]
struct FilteredBytes(AtomicUsize);

impl FilteredBytes {
    /// Counts the text that a filter is about to make from `of`. Refuses lists, and texts beyond
    /// [`MAX_MADE_BYTES`].
    fn text(&self, of: &Value) -> Result<(), Error> {
        // The engine would turn a list into a text that was not counted.
        if matches!(of.kind(), ValueKind::Seq | ValueKind::Iterable) {
            let problem = "this filter takes a text, not a list";
            return Err(Error::new(ErrorKind::InvalidOperation, problem));
        }
        self.note(of.as_str().unwrap_or_default().len())
    }

    /// Counts the pieces that a filter is about to split the text `of` into; refuses too many.
    fn pieces(&self, of: &Value, count: impl FnOnce(&str) -> usize) -> Result<(), Error> {
        let text = of.as_str().unwrap_or_default();
        let pieces = count(text);
        if pieces > MAX_PIECES {
            let problem = format!("a text cannot be split into more than {MAX_PIECES} pieces");
            return Err(Error::new(ErrorKind::InvalidOperation, problem));
        }
        self.note(text.len() + pieces * BYTES_PER_PIECE)
    }

    fn note(&self, bytes: usize) -> Result<(), Error> {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > MAX_MADE_BYTES {
            let problem = format!("its filters produce more than {MAX_MADE_BYTES} bytes");
            return Err(Error::new(ErrorKind::InvalidOperation, problem));
        }
        Ok(())
    }
}

/// Checks that a template uses only the allowed subset. Malformed templates pass: the parser
/// reports them.
pub(super) fn check(name: &str, body: &str, body_line: usize) -> Result<(), TemplateError> {
    let mut reader = TokenContext::default();
    bounds::check_tokens(name, body, body_line, |token| {
        Some(format!("{} cannot be used in a template", reader.refused(token)?))
    })
}

/// The context of a token: what came before it.
#[derive(Default)]
struct TokenContext {
    /// Number of tokens of the current tag so far.
    tokens: usize,
    /// Statement of the current tag; `None` in `{{ … }}`.
    statement: Option<String>,
    /// True directly after a value, where `[` begins an index and `(` a call.
    behind_value: bool,
    /// True for each open parenthesis that belongs to a call.
    calls: Vec<bool>,
    /// Number of open loops.
    loops: usize,
}

impl TokenContext {
    /// Describes the token if it is not allowed here.
    fn refused(&mut self, token: &Token<'_>) -> Option<String> {
        let what = match token {
            Token::VariableStart | Token::BlockStart => {
                *self = Self { loops: self.loops, ..Self::default() };
                self.statement = matches!(token, Token::BlockStart).then(String::new);
                return None;
            }
            Token::Ident(name) if self.tokens == 0 && self.statement.is_some() => {
                self.statement = Some((*name).to_owned());
                self.loops = match *name {
                    "for" => self.loops + 1,
                    "endfor" => self.loops.saturating_sub(1),
                    _ => self.loops,
                };
                match self.loops > MAX_LOOPS {
                    true => Some(format!("a loop within {MAX_LOOPS} others")),
                    false => (!STATEMENTS.contains(name)).then(|| format!("{{% {name} %}}")),
                }
            }
            // A recursive loop writes into a text without a limit.
            Token::Ident("recursive") if self.is("for") => Some("a recursive loop".to_owned()),
            // No filter would count the slice, but the slice would be kept.
            Token::Colon if self.is("set") => Some("a slice in {% set %}".to_owned()),
            // Without a value, the tag begins a block, which keeps everything written in it.
            token if self.tokens == 2 && self.is("set") && !matches!(token, Token::Assign) => {
                Some("{% set %} in another form than {% set NAME = VALUE %}".to_owned())
            }
            Token::Plus | Token::Mul | Token::Pow | Token::Tilde => Some(token.to_string()),
            Token::BraceOpen => Some("a dictionary".to_owned()),
            Token::BracketOpen if !self.behind_value => Some("a list".to_owned()),
            Token::Comma if self.calls.last() != Some(&true) => {
                Some("a comma outside a call".to_owned())
            }
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

    fn is(&self, statement: &str) -> bool {
        self.statement.as_deref() == Some(statement)
    }
}

/// Returns whether a name is a keyword of the language, and therefore does not end a value.
fn is_word(token: &Token<'_>) -> bool {
    const WORDS: [&str; 9] = ["and", "or", "not", "in", "is", "if", "elif", "else", "for"];
    matches!(token, Token::Ident(name) if WORDS.contains(name))
}

/// A writer that fails after a given number of bytes.
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
