//! Templates: Markdown prompts with front matter, placeholders and an advisory contract.
//!
//! Nothing here has side effects: texts go in and come out. The server handles the folders in
//! which templates are stored.

mod bounds;
mod builtin;
mod front_matter;
mod manager;
mod render;

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

pub use self::builtin::{BUILT_IN, built_in};
pub use self::front_matter::FrontMatter;
pub use self::manager::{ManagerPrompt, TASK, TemplateConversation};
pub use self::render::{MAX_RENDERED_BYTES, render};

/// Maximum length of a template's name, in characters.
pub const LONGEST_NAME: usize = 128;
/// Maximum size of a template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 256 << 10;

/// The fields that placeholders can name, with their texts.
pub type Fields<'a> = BTreeMap<&'a str, &'a str>;

/// A parsed template.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Name of the template, without `.md`.
    pub name: String,
    /// Place where the template was found.
    pub source: TemplatePlace,
    /// SHA-256 of the whole text, in hexadecimal.
    pub hash: String,
    /// Settings from the front matter.
    pub front_matter: FrontMatter,
    /// Expected form of the model's output. Advisory: nothing enforces it.
    pub contract: Option<Contract>,
    /// The prompt with its placeholders, without front matter and contract.
    pub body: String,
    /// Line of the text on which the body begins, counted from 1.
    pub body_line: usize,
}

/// The place where a template was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplatePlace {
    /// A file of the project, by its path.
    Project(String),
    /// A file in the user's configuration, by its path.
    User(String),
    /// The program itself.
    BuiltIn,
}

/// A fenced block that shows the expected form of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// `json`, `yaml` or `yml`.
    pub language: String,
    /// Content of the block.
    pub text: String,
}

/// The reason why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template {name}: line {line}, column {column}: {message}")]
pub struct TemplateError {
    /// Name of the template.
    pub name: String,
    /// Line of the text, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The problem at that place.
    pub message: String,
}

/// Kinds of places where templates are found, by their names in the client protocol.
pub const SOURCES: [&str; 3] = ["project", "user", "built-in"];

impl TemplatePlace {
    /// Returns the kind of place, by its name in the client protocol.
    pub fn kind(&self) -> &'static str {
        let [project, user, built_in] = SOURCES;
        match self {
            Self::Project(_) => project,
            Self::User(_) => user,
            Self::BuiltIn => built_in,
        }
    }

    /// Returns the path of the file, if the template is in one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Project(path) | Self::User(path) => Some(path),
            Self::BuiltIn => None,
        }
    }
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// [`TemplateError`] for front matter that cannot be read, and for placeholders and tags that
    /// are malformed, too long or deep, or not allowed.
    pub fn parse(name: &str, source: TemplatePlace, text: &str) -> Result<Self, TemplateError> {
        let (front_matter, rest, body_line) = front_matter::split(name, text)?;
        let (contract, body) = take_contract(rest);
        render::check(name, &body, body_line)?;
        Ok(Self {
            name: name.to_owned(),
            source,
            hash: Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect(),
            front_matter,
            contract,
            body,
            body_line,
        })
    }
}

/// Returns the name without a trailing `.md`.
pub fn bare_name(name: &str) -> &str {
    name.strip_suffix(".md").unwrap_or(name)
}

/// Returns whether a name is allowed for a template. An allowed name never leads to a file outside
/// the folder of the templates.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    !name.is_empty()
        && name.chars().count() <= LONGEST_NAME
        && !name.starts_with('.')
        && name.chars().all(allowed)
}

/// Takes out the first block fenced as `json`, `yaml` or `yml`. In the returned text, the lines of
/// the block are empty, so that the lines below keep their numbers.
fn take_contract(text: &str) -> (Option<Contract>, String) {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let language = |line: &str| {
        let language = line.trim_end().strip_prefix("```")?.trim().to_lowercase();
        ["json", "yaml", "yml"].contains(&&*language).then_some(language)
    };
    let Some((start, language)) =
        lines.iter().enumerate().find_map(|(at, line)| Some((at, language(line)?)))
    else {
        return (None, text.to_owned());
    };
    let closes = |line: &&str| line.trim_end() == "```";
    let Some(length) = lines[start + 1..].iter().position(closes) else {
        return (None, text.to_owned());
    };
    let end = start + 1 + length;
    let contract = Contract { language, text: lines[start + 1..end].concat() };
    let gap = "\n".repeat(end - start + 1);
    (Some(contract), format!("{}{gap}{}", lines[..start].concat(), lines[end + 1..].concat()))
}

#[cfg(test)]
mod tests;
