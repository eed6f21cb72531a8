//! Finds the fields that a template really shows. Fields that occur only in a condition, or in a
//! branch that is not taken, do not count.
//!
//! Each `{{ value }}` becomes a call of a function that gets the value. The template's text tells
//! which fields the value is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, Value};

use super::Fields;

/// Name of the function that gets the shown values. Templates do not call this function themselves.
const SHOWN: &str = "contexture_notes_what_is_shown";

/// The fields that a value is made from.
#[derive(Debug, Clone, Default)]
struct FieldOrigin {
    names: BTreeSet<String>,
    /// True if a condition decides which of the fields is used.
    is_choice: bool,
}

/// A template's body, changed so that it records which values it shows.
pub(super) struct Noting {
    pub(super) body: String,
    /// Origin of each shown value.
    values: Vec<FieldOrigin>,
}

/// The names of the shown fields.
#[derive(Clone, Default)]
pub(super) struct Placed(Arc<Mutex<BTreeSet<String>>>);

impl Noting {
    pub(super) fn new(body: &str) -> Self {
        let mut noting = Self { body: String::new(), values: Vec::new() };
        let (mut reader, mut copied) = (TagReader::default(), 0);
        for token in tokenize(body, false, SyntaxConfig::default()) {
            // The parser reports malformed templates.
            let Ok((token, span)) = token else { break };
            match token {
                Token::VariableStart => {
                    let end = span.end_offset as usize;
                    let call = format!(" {SHOWN}({}, ", noting.values.len());
                    noting.copy(body, copied..end, &call);
                    copied = end;
                    reader.begin();
                }
                Token::VariableEnd => {
                    let start = span.start_offset as usize;
                    noting.copy(body, copied..start, ") ");
                    copied = start;
                    noting.values.push(reader.origin(&reader.words));
                }
                Token::BlockStart => reader.begin(),
                Token::BlockEnd => reader.end_statement(),
                token => reader.read(&token),
            }
        }
        noting.copy(body, copied..body.len(), "");
        noting
    }

    fn copy(&mut self, body: &str, part: Range<usize>, then: &str) {
        self.body.push_str(body.get(part).unwrap_or_default());
        self.body.push_str(then);
    }

    /// Adds a function to the environment that records, during a rendering, which fields the
    /// template shows. The returned record is complete after the rendering.
    pub(super) fn note_in(&self, environment: &mut Environment<'_>, fields: &Fields<'_>) -> Placed {
        let placed = Placed::default();
        let (noted, values) = (placed.clone(), self.values.clone());
        let fields: BTreeMap<String, String> =
            fields.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        environment.add_function(SHOWN, move |number: usize, value: Value| {
            if let Some(origin) = values.get(number).filter(|_| shows_something(&value)) {
                let mut noted = noted.0.lock().unwrap_or_else(PoisonError::into_inner);
                for name in &origin.names {
                    let Some(field) = fields.get(name) else { continue };
                    if !noted.contains(name) && (!origin.is_choice || is_part(&value, field)) {
                        noted.insert(name.clone());
                    }
                }
            }
            value
        });
        placed
    }
}

impl Placed {
    /// Returns whether any part of this field was shown.
    pub(super) fn has(&self, field: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(field)
    }
}

/// Returns whether a value is a text that is not blank, or a list. A length or the result of a test
/// does not show the fields from which it was made.
fn shows_something(value: &Value) -> bool {
    match value.as_str() {
        Some(text) => !text.trim().is_empty(),
        None => matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable),
    }
}

fn is_part(value: &Value, field: &str) -> bool {
    value.as_str().is_none_or(|text| field.contains(text.trim()))
}

/// Reads the words of tags, and tracks the names that a template defines.
#[derive(Default)]
struct TagReader {
    /// The words of the tag, without names of filters and attributes.
    words: Vec<String>,
    is_part_or_filter: bool,
    /// Origins of the names that the template defines.
    own: BTreeMap<String, FieldOrigin>,
}

impl TagReader {
    fn begin(&mut self) {
        self.words.clear();
        self.is_part_or_filter = false;
    }

    fn read(&mut self, token: &Token<'_>) {
        if let Token::Ident(word) = token
            && !self.is_part_or_filter
        {
            self.words.push((*word).to_owned());
        }
        self.is_part_or_filter = matches!(token, Token::Dot | Token::Pipe);
    }

    fn end_statement(&mut self) {
        let rest = match &self.words[..] {
            [set, _, rest @ ..] if set == "set" => rest,
            [each, _, within, rest @ ..] if each == "for" && within == "in" => rest,
            _ => return,
        };
        let (made_of, own) = (self.origin(rest), self.words[1].clone());
        match self.own.get_mut(&own) {
            Some(known) => {
                known.names.extend(made_of.names);
                known.is_choice = true;
            }
            None => drop(self.own.insert(own, made_of)),
        }
    }

    /// Returns the fields that an expression is made from. Conditions contribute none.
    fn origin(&self, words: &[String]) -> FieldOrigin {
        let (mut origin, mut asks) = (FieldOrigin::default(), false);
        for word in words {
            match &**word {
                "if" => (origin.is_choice, asks) = (true, true),
                "else" => asks = false,
                "and" | "or" => origin.is_choice = true,
                _ if asks => {}
                name => match self.own.get(name) {
                    Some(own) => {
                        origin.names.extend(own.names.iter().cloned());
                        origin.is_choice |= own.is_choice;
                    }
                    None => drop(origin.names.insert(name.to_owned())),
                },
            }
        }
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::super::render::render_noting;
    use super::super::{Template, TemplatePlace, render};
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let template = Template::parse("t", TemplatePlace::BuiltIn, text).unwrap();
        let fields = Fields::from([("a", "Äpfel\nof a"), ("b", "Birnen\nof b"), ("empty", "")]);
        let (rendered, placed) = render_noting(&template, &fields).unwrap();
        assert_eq!(rendered, render(&template, &fields).unwrap(), "{text}");
        let found: Vec<&str> = fields.into_keys().filter(|name| placed.has(name)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn shown_fields_are_recorded_in_every_form() {
        check("λ {{ a }} and  {{- b -}}  .", &["a", "b"]);
        check("{{ a|upper }}{{ b[-3:] }}", &["a", "b"]);
        check("{{ (a|lines)[1:] }}{{ a|lines }}{{ (b|lines)[0] }}", &["a", "b"]);
        check("{% for line in a|lines %}> {{ line }}\n{% endfor %}", &["a"]);
        check("{% set x = a|trim %}{% set y = x %}{{ y }}", &["a"]);
        check("{% if a %}{{ a }}{% endif %}{{ b if b else 'none' }}", &["a", "b"]);
        check("{{ a or b }}", &["a"]);
        check("{{ empty or b }}", &["b"]);
    }

    #[test]
    fn conditions_and_branches_not_taken_show_nothing() {
        check("{% if a %}yes{% endif %}", &[]);
        check("{% if empty %}{{ a }}{% else %}{{ b }}{% endif %}", &["b"]);
        check("{{ 'yes' if a else 'no' }} {{ a|length }} {{ a is defined }} {{ 'x' in a }}", &[]);
        check("{{ a and 'known' }}", &[]);
        check("{% for n in range(2) if a %}{{ n }}{% endfor %}", &[]);
        check("{% set x = a or b %}{{ x }}", &["a"]);
        check("{% if empty %}{% set x = a %}{% else %}{% set x = b %}{% endif %}{{ x }}", &["b"]);
        check("{% raw %}{{ a }}{% endraw %}{# {{ b }} #}{{ empty }}{{ none_such.a }}", &[]);
    }
}
