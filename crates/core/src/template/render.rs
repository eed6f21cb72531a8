//! Fills placeholders, with a subset of Jinja in which missing fields are empty.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use minijinja::{Environment, Error, ErrorKind, Value};

use super::placed::{Noting, Placed};
use super::safe::{self, Bounded};
use super::{Fields, Template, TemplateError, bounds};

/// Maximum number of steps of a template: a thousand times as many as the built-in templates need.
/// These steps take less than a tenth of a second.
const FUEL: u64 = 200_000;
/// Maximum product of the number of steps and the number of bytes in the template and its fields,
/// since each step may process all these bytes. This much work takes some seconds.
const MAX_WORK: u64 = 8 << 30;
/// Maximum length of a rendered template, in bytes.
pub const MAX_RENDERED_BYTES: usize = 4 << 20;

/// Renders the template's body with the fields.
///
/// # Errors
/// [`TemplateError`], for instance for a loop that takes too long.
pub fn render(template: &Template, fields: &Fields<'_>) -> Result<String, TemplateError> {
    rendered(template, &template.body, fields, safe::environment(fuel(template, fields)))
}

/// Like [`render`], and also returns which fields the text shows.
pub(super) fn render_noting(
    template: &Template,
    fields: &Fields<'_>,
) -> Result<(String, Placed), TemplateError> {
    let noting = Noting::new(&template.body);
    let mut environment = safe::environment(fuel(template, fields));
    let placed = noting.note_in(&mut environment, fields);
    Ok((rendered(template, &noting.body, fields, environment)?, placed))
}

fn fuel(template: &Template, fields: &Fields<'_>) -> u64 {
    let texts = fields.values().copied().chain([&*template.body]);
    let bytes = texts.map(|text| text.len() as u64).sum::<u64>();
    FUEL.min(MAX_WORK / bytes.max(1))
}

fn rendered(
    template: &Template,
    body: &str,
    fields: &Fields<'_>,
    environment: Environment<'_>,
) -> Result<String, TemplateError> {
    let fields: BTreeMap<String, Value> =
        fields.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text))).collect();
    let mut rendered = Bounded { written: Vec::new(), most: MAX_RENDERED_BYTES };
    surviving(&template.name, template.body_line, || {
        environment
            .template_from_str(body)
            .and_then(|compiled| compiled.render_captured_to(Value::from(fields), &mut rendered))
            .map_err(|error| located(&template.name, &error, template.body_line))
    })?;
    Ok(String::from_utf8_lossy(&rendered.written).into_owned())
}

/// Checks that the placeholders are well-formed and use only allowed features.
pub(super) fn check(name: &str, body: &str, body_line: usize) -> Result<(), TemplateError> {
    surviving(name, body_line, || {
        bounds::check(name, body, body_line)?;
        safe::check(name, body, body_line)?;
        let environment = safe::environment(FUEL);
        let compiled = environment.template_from_str(body);
        compiled.map(drop).map_err(|error| located(name, &error, body_line))
    })
}

/// Runs the engine, and turns a panic into an error of the template.
fn surviving<T>(
    name: &str,
    line: usize,
    work: impl FnOnce() -> Result<T, TemplateError>,
) -> Result<T, TemplateError> {
    // Anything that the work changed is dropped with it.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = "the template engine crashes on this template".to_owned();
        Err(TemplateError { name: name.to_owned(), line, column: 1, message })
    })
}

/// Converts an error, giving its place in the whole text.
fn located(name: &str, error: &Error, body_line: usize) -> TemplateError {
    let message = match error.kind() {
        ErrorKind::OutOfFuel => "it takes too many steps; does it loop?".to_owned(),
        ErrorKind::WriteFailure => format!("it produces more than {MAX_RENDERED_BYTES} bytes"),
        kind => error.detail().map_or_else(|| kind.to_string(), str::to_owned),
    };
    TemplateError {
        name: name.to_owned(),
        line: error.line().unwrap_or(1) + body_line - 1,
        column: 1,
        message,
    }
}
