//! Front matter: the lines between two `---` at the beginning of a template, with one setting
//! `name: value` on each.
//!
//! This subset of YAML is enough for numbers and short texts, and every error can name its place.

use super::TemplateError;

/// The settings in a template; `None` for each missing setting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontMatter {
    /// Purpose of the template.
    pub description: Option<String>,
    /// Number of latest runs (the messages of one turn each) that the note-taker sees; 0 turns
    /// note-taking off.
    pub recent_runs: Option<u64>,
    /// Number of latest runs (the messages of one turn each) that follow the notes unchanged; 0 for
    /// the notes alone.
    pub passthrough_runs: Option<u64>,
    /// Minimum size of the history for taking notes, in tokens; 0 takes notes in every turn.
    pub token_threshold: Option<u64>,
    /// Model of the note-taker.
    pub model: Option<String>,
}

/// The known settings, in the order in which errors list them.
const KNOWN: [&str; 5] =
    ["description", "recent-runs", "passthrough-runs", "token-threshold", "model"];

/// Returns the front matter, the text after it, and the number of the line where that text begins.
pub(super) fn split<'a>(
    name: &str,
    text: &'a str,
) -> Result<(FrontMatter, &'a str, usize), TemplateError> {
    let Some(inside) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return Ok((FrontMatter::default(), text, 1));
    };
    let mut found = FrontMatter::default();
    let mut rest = inside;
    for number in 2.. {
        let Some((line, after)) = rest.split_once('\n') else {
            return Err(error(name, 1, 1, "the front matter has no end; close it with ---"));
        };
        let line = line.trim_end_matches('\r');
        rest = after;
        if line == "---" {
            return Ok((found, rest, number + 1));
        }
        found.put(name, number, line)?;
    }
    unreachable!("the text ends")
}

impl FrontMatter {
    fn put(&mut self, template: &str, line: usize, text: &str) -> Result<(), TemplateError> {
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            return Ok(());
        }
        let Some((name, value)) = text.split_once(':') else {
            return Err(error(template, line, 1, "expected a setting, such as recent-runs: 3"));
        };
        let column = name.chars().count() + 2;
        let value = unquoted(value.trim());
        let number = || -> Result<Option<u64>, TemplateError> {
            if value.is_empty() {
                return Ok(Some(0));
            }
            value.parse().map(Some).map_err(|_| {
                let message = format!("{} must be a whole number, got {value:?}", name.trim());
                error(template, line, column, &message)
            })
        };
        match &*name.trim().replace('_', "-") {
            "description" => self.description = Some(value.to_owned()),
            "model" => self.model = (!value.is_empty()).then(|| value.to_owned()),
            "recent-runs" => self.recent_runs = number()?,
            "passthrough-runs" => self.passthrough_runs = number()?,
            "token-threshold" => self.token_threshold = number()?,
            unknown => {
                let known = KNOWN.join(", ");
                let message = format!("there is no setting {unknown}; the settings are {known}");
                return Err(error(template, line, 1, &message));
            }
        }
        Ok(())
    }
}

fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(value)
}

fn error(name: &str, line: usize, column: usize, message: &str) -> TemplateError {
    TemplateError { name: name.to_owned(), line, column, message: message.to_owned() }
}
