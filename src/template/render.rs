//! Placeholders: Jinja, with nothing but the fields, in which what is missing is empty.

use std::collections::{BTreeMap, HashSet};

use minijinja::{Environment, Error, UndefinedBehavior, Value};

use super::{Template, TemplateError};

/// How many steps a template may take: a thousand times what the built-in ones do, and less than a
/// tenth of a second.
const FUEL: u64 = 200_000;
/// The longest text that a template may become, in bytes.
const MAX_RENDERED_BYTES: usize = 4 << 20;

/// The fields that placeholders name.
pub type Fields<'a> = BTreeMap<&'a str, &'a str>;

/// The template's body with the fields in it.
///
/// # Errors
/// [`TemplateError`], for instance when it loops for too long.
pub fn render(template: &Template, fields: &Fields<'_>) -> Result<String, TemplateError> {
    let fields: BTreeMap<String, Value> =
        fields.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text))).collect();
    let environment = environment();
    let rendered = environment
        .template_from_str(&template.body)
        .and_then(|compiled| compiled.render(Value::from(fields)))
        .map_err(|error| located(&template.name, &error, template.body_line))?;
    match rendered.len() <= MAX_RENDERED_BYTES {
        true => Ok(rendered),
        false => Err(TemplateError {
            name: template.name.clone(),
            line: template.body_line,
            column: 1,
            message: format!("it becomes longer than {MAX_RENDERED_BYTES} bytes"),
        }),
    }
}

/// The names that the template's placeholders and conditions ask for.
///
/// # Errors
/// [`TemplateError`] for placeholders that are not well-formed.
pub fn placeholders(template: &Template) -> Result<HashSet<String>, TemplateError> {
    let environment = environment();
    let compiled = environment.template_from_str(&template.body);
    let named = compiled.map(|compiled| compiled.undeclared_variables(false));
    named.map_err(|error| located(&template.name, &error, template.body_line))
}

/// Whether the placeholders are well-formed.
pub(super) fn check(name: &str, body: &str, body_line: usize) -> Result<(), TemplateError> {
    let environment = environment();
    let compiled = environment.template_from_str(body);
    compiled.map(drop).map_err(|error| located(name, &error, body_line))
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_fuel(Some(FUEL));
    environment
}

/// The error with its place in the whole text.
fn located(name: &str, error: &Error, body_line: usize) -> TemplateError {
    let message = match error.kind() {
        minijinja::ErrorKind::OutOfFuel => "it takes too many steps; does it loop?".to_owned(),
        kind => error.detail().map_or_else(|| kind.to_string(), str::to_owned),
    };
    TemplateError {
        name: name.to_owned(),
        line: error.line().unwrap_or(1) + body_line - 1,
        column: 1,
        message,
    }
}
