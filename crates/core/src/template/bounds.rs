//! Limits what a template may use of Jinja, and how deep its expressions and blocks are. The template
//! engine parses recursively: a template that is deep enough would overflow the stack and end the
//! program. Operators that make a text longer are left out. This module looks only at tokens, not at
//! their meaning to the engine.

use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::TemplateError;

/// Allowed statements. Most others would include other templates, or open blocks that are not
/// counted.
const STATEMENTS: [&str; 7] = ["if", "elif", "else", "endif", "for", "endfor", "set"];

/// Maximum number of tokens in one `{{ … }}` or `{% … %}`, and so the maximum depth of an
/// expression.
const MAX_TAG_TOKENS: usize = 200;
/// Maximum number of brackets of all kinds that are open at once.
const MAX_BRACKETS: usize = 20;
/// Maximum number of blocks that are open at once; each `elif` counts as one more in its block.
const MAX_BLOCKS: usize = 40;

/// Refuses a template that is too deep to be parsed on a small stack, or that uses something else
/// than the allowed subset. Must be called before the engine sees the text.
///
/// # Errors
/// [`TemplateError`] at the first token beyond a limit.
pub(super) fn check(name: &str, body: &str, body_line: usize) -> Result<(), TemplateError> {
    let mut reader = TokenContext::default();
    for token in tokenize(body, false, SyntaxConfig::default()) {
        // The engine stops here, too, and reports the error.
        let Ok((token, span)) = token else { return Ok(()) };
        if let Some(message) = reader.refused(&token) {
            let Span { start_line, start_col, .. } = span;
            let line = usize::from(start_line) + body_line - 1;
            let column = usize::from(start_col) + 1;
            return Err(TemplateError { name: name.to_owned(), line, column, message });
        }
    }
    Ok(())
}

/// The tag, the brackets and the blocks that are open at a token.
#[derive(Default)]
struct TokenContext {
    /// Number of tokens of the current tag so far.
    tokens: usize,
    /// Statement of the current tag; empty in `{{ … }}`.
    statement: String,
    /// True in `{% … %}`.
    is_statement: bool,
    /// Number of colons seen in each open bracket.
    brackets: Vec<usize>,
    /// Number of levels that each open block takes.
    blocks: Vec<usize>,
}

impl TokenContext {
    /// Reads a token. Returns a message if it is not allowed here.
    fn refused(&mut self, token: &Token<'_>) -> Option<String> {
        if let Some(what) = self.unusable(token) {
            return Some(format!("{what} cannot be used in a template"));
        }
        if let Token::TemplateData(_) | Token::VariableEnd | Token::BlockEnd = token {
            *self = Self { blocks: std::mem::take(&mut self.blocks), ..Self::default() };
            return None;
        }
        self.tokens += 1;
        match token {
            Token::BlockStart => self.is_statement = true,
            // Token 1 is the delimiter that opens the tag.
            Token::Ident(name) if self.tokens == 2 && self.is_statement => self.begin(name),
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => self.brackets.push(0),
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                self.brackets.pop();
            }
            Token::Colon => match self.brackets.last_mut() {
                // With a negative step, some slices make the engine panic.
                Some(1..) => return Some("a slice cannot have a step".to_owned()),
                Some(colons) => *colons += 1,
                None => {}
            },
            _ => {}
        }
        if self.tokens > MAX_TAG_TOKENS {
            return Some(format!("a tag cannot have more than {MAX_TAG_TOKENS} parts"));
        }
        if self.brackets.len() > MAX_BRACKETS {
            return Some(format!("brackets cannot be nested more than {MAX_BRACKETS} deep"));
        }
        let levels = self.blocks.iter().sum::<usize>();
        (levels > MAX_BLOCKS).then(|| {
            format!("blocks cannot be nested more than {MAX_BLOCKS} deep; each elif counts, too")
        })
    }

    /// Describes a token that no template may have here.
    fn unusable(&self, token: &Token<'_>) -> Option<String> {
        match token {
            Token::Ident(name)
                if self.tokens == 1 && self.is_statement && !STATEMENTS.contains(name) =>
            {
                Some(format!("{{% {name} %}}"))
            }
            // A recursive loop writes into a text without a limit.
            Token::Ident("recursive") if self.statement == "for" => {
                Some("a recursive loop".to_owned())
            }
            // Without a value, the tag begins a block.
            token
                if self.tokens == 3
                    && self.statement == "set"
                    && !matches!(token, Token::Assign) =>
            {
                Some("{% set %} in another form than {% set NAME = VALUE %}".to_owned())
            }
            Token::Plus | Token::Mul | Token::Pow | Token::Tilde => Some(token.to_string()),
            _ => None,
        }
    }

    /// Reads the first word of a statement.
    fn begin(&mut self, name: &str) {
        name.clone_into(&mut self.statement);
        match name {
            "elif" => match self.blocks.last_mut() {
                Some(levels) => *levels += 1,
                None => self.blocks.push(1),
            },
            "if" | "for" => self.blocks.push(1),
            "endif" | "endfor" => drop(self.blocks.pop()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fields, Template, TemplatePlace, render};

    /// A quarter of the smallest stack on which templates are parsed.
    const STACK: usize = 512 << 10;

    /// Text before, opening text (repeated), text in the middle, closing text (repeated), text
    /// after.
    type Shape = [&'static str; 5];

    const SHAPES: &[Shape] = &[
        ["{{ ", "-", "a", "", " }}"],
        ["{{ ", "- ", "1", "", " }}"],
        ["{{ ", "not ", "a", "", " }}"],
        ["{{ a", ".b", "", "", " }}"],
        ["{{ a", "[0]", "", "", " }}"],
        ["{{ a", "[1:]", "", "", " }}"],
        ["{{ (a|lines)", "[1:]", "", "", "|count }}"],
        ["{{ range(9)", "[1:]", "", "", " }}"],
        ["{{ a", "[a", "", "]", " }}"],
        ["{{ a", "[a:", "1", "]", " }}"],
        ["{{ a", "()", "", "", " }}"],
        ["{{ ", "range(", "9", ")", " }}"],
        ["{{ ", "a(b=", "9", ")", " }}"],
        ["{{ a", "|upper", "", "", " }}"],
        ["{{ ", "(", "a", "|upper)", " }}"],
        ["{{ a", "|default(a", "", ")", " }}"],
        ["{{ a", " is defined", "", "", " }}"],
        ["{{ a", " is not defined", "", "", " }}"],
        ["{{ a", " is in a", "", "", " }}"],
        ["{{ a", " is in -a", "", "", " }}"],
        ["{{ a", " and a", "", "", " }}"],
        ["{{ a", " or a", "", "", " }}"],
        ["{{ a", " or not a and a", "", "", " }}"],
        ["{{ a", " if a else a", "", "", " }}"],
        ["{{ a", " if a", "", "", " }}"],
        ["{{ a", " == a", "", "", " }}"],
        ["{{ a", " not in a", "", "", " }}"],
        ["{{ 1", " - 1", "", "", " }}"],
        ["{{ 1", " // 1", "", "", " }}"],
        ["{{ 1", " % 7 - -1", "", "", " }}"],
        ["{{ ", "'a' ", "", "", " }}"],
        ["{{ ", "(", "a", ")", " }}"],
        ["{{ ", "(", "", "", ""],
        ["{{ ", "((a)|upper or -", "a", ")", " }}"],
        ["{{ ", "[", "a", "]", " }}"],
        ["{{ ", "{'a': ", "a", "}", " }}"],
        ["{{ ", "[{'a': (", "a", ")}]", " }}"],
        ["", "{% if a %}", "x", "{% endif %}", ""],
        ["", "{% if a %}", "x", "", ""],
        ["", "{% if a %}{% elif a %}", "x", "{% endif %}", ""],
        ["{% if a %}", "{% elif a %}", "x", "", "{% endif %}"],
        ["{% if a %}", "{% else %}{% if a %}", "x", "{% endif %}", "{% endif %}"],
        ["", "{% for b in a %}", "x", "{% endfor %}", ""],
        ["", "{% if a %}{% for b in a|lines %}", "x", "{% endfor %}{% endif %}", ""],
        ["", "{% for b in a if b %}", "x", "{% else %}{% endfor %}", ""],
        ["{% for b in ", "-", "a", "", " %}{% endfor %}"],
        ["{% set a = ", "-", "a", "", " %}"],
        ["", "{% set a %}", "x", "{% endset %}", ""],
        ["", "{% macro m() %}", "x", "{% endmacro %}", ""],
        ["", "{% block b %}", "x", "{% endblock %}", ""],
        ["", "{% with a = 1 %}", "x", "{% endwith %}", ""],
        ["", "{% filter upper %}", "x", "{% endfilter %}", ""],
        ["", "{{", "a", "}}", ""],
        ["{{ ", "{{", "a", "}}", ""],
    ];

    fn text([before, open, middle, close, after]: Shape, times: usize) -> String {
        [before, &open.repeat(times), middle, &close.repeat(times), after].concat()
    }

    /// Parses and renders on a small stack. Returns whether the template is usable.
    fn is_usable(text: String) -> bool {
        let parse = move || {
            let fields = Fields::from([("a", "x")]);
            let template = Template::parse("t", TemplatePlace::BuiltIn, &text);
            template.and_then(|template| render(&template, &fields)).is_ok()
        };
        let thread = std::thread::Builder::new().stack_size(STACK).spawn(parse);
        thread.unwrap().join().unwrap()
    }

    #[test]
    fn no_depth_overflows_a_small_stack() {
        for shape in SHAPES {
            for times in (1..=70).chain([98, 99, 100, 195, 197, 199, 200]) {
                is_usable(text(*shape, times));
            }
            for times in [201, 10_000, 60_000] {
                assert!(!is_usable(text(*shape, times)), "{times} times {shape:?}");
            }
        }
    }

    #[test]
    fn what_people_write_is_not_too_deep() {
        for (shape, times) in [
            (["{{ ", "(", "a", ")", " }}"], 20),
            (["{{ a", " or a", "", "", " }}"], 90),
            (["", "{% if a %}", "x", "{% endif %}", ""], 40),
            (["{% if a %}", "{% elif a %}", "x", "", "{% endif %}"], 39),
            (["", "{% if a %}{{ a }}{% elif b %}{% endif %}\n", "", "", ""], 500),
            (["{# ", "(", "", "", " #}"], 10_000),
            (["{% raw %}", "{{ (", "", "", "{% endraw %}"], 10_000),
        ] {
            assert!(is_usable(text(shape, times)), "{times} times {shape:?}");
        }
    }

    #[test]
    fn what_is_too_much_is_said_with_its_place() {
        let error = |text: &str| Template::parse("t", TemplatePlace::BuiltIn, text).unwrap_err();
        let deep = format!("---\nmodel: m\n---\nx\n{{{{ {} }}}}", "(".repeat(21));
        let found = error(&deep);
        assert_eq!((found.line, found.column), (5, 24), "{found}");
        assert_eq!(found.message, "brackets cannot be nested more than 20 deep");
        assert_eq!(
            error(&"{% if a %}".repeat(41)).message,
            "blocks cannot be nested more than 40 deep; each elif counts, too"
        );
        let long = format!("{{{{ a{} }}}}", ".b".repeat(100));
        assert_eq!(error(&long).message, "a tag cannot have more than 200 parts");
        assert_eq!(error("{{ a[::-1] }}").message, "a slice cannot have a step");
    }
}
