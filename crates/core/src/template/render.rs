//! Fills placeholders, with a subset of Jinja in which missing fields are empty.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use minijinja::{
    Environment, Error, ErrorKind, UndefinedBehavior, Value, filters, functions, tests,
};

use super::{Fields, Template, TemplateError, bounds};

/// Maximum number of steps of a template: a thousand times as many as the built-in templates need.
/// These steps take less than a tenth of a second.
const FUEL: u64 = 200_000;
/// Maximum product of the number of steps and the number of bytes in the template and its fields,
/// since each step may process all these bytes. This much work takes about a second.
const MAX_WORK: u64 = 1 << 30;
/// Number of steps that is allowed for any number of bytes: more than the built-in templates need.
const LEAST_FUEL: u64 = 300;
/// Maximum length of a rendered template, in bytes.
pub const MAX_RENDERED_BYTES: usize = 4 << 20;

/// Renders the template's body with the fields.
///
/// # Errors
/// [`TemplateError`], for instance for a loop that takes too long.
pub fn render(template: &Template, fields: &Fields<'_>) -> Result<String, TemplateError> {
    let texts = fields.values().copied().chain([&*template.body]);
    let bytes = texts.map(|text| text.len() as u64).sum::<u64>();
    let environment = environment((MAX_WORK / bytes.max(1)).clamp(LEAST_FUEL, FUEL));
    let fields: BTreeMap<String, Value> =
        fields.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text))).collect();
    let mut rendered = Bounded(Vec::new());
    surviving(&template.name, template.body_line, || {
        environment
            .template_from_str(&template.body)
            .and_then(|compiled| compiled.render_captured_to(Value::from(fields), &mut rendered))
            .map_err(|error| located(&template.name, &error, template.body_line))
    })?;
    Ok(String::from_utf8_lossy(&rendered.0).into_owned())
}

/// Checks that the placeholders are well-formed and use only allowed features.
pub(super) fn check(name: &str, body: &str, body_line: usize) -> Result<(), TemplateError> {
    surviving(name, body_line, || {
        bounds::check(name, body, body_line)?;
        let environment = environment(FUEL);
        let compiled = environment.template_from_str(body);
        compiled.map(drop).map_err(|error| located(name, &error, body_line))
    })
}

/// Creates an environment with the filters, tests and functions that templates can use. None of them
/// makes a text much longer.
fn environment(fuel: u64) -> Environment<'static> {
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
    environment.add_function("range", functions::range);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("in", tests::is_in);
    environment.add_test("none", tests::is_none);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("undefined", tests::is_undefined);
    environment
}

/// A writer that fails beyond [`MAX_RENDERED_BYTES`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_RENDERED_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
