//! Templates: Markdown prompts with front matter, placeholders, and an advisory contract.
//!
//! Pure: texts come in and go out. Where templates lie is [`files`](crate::files)' to know.

mod builtin;
mod front_matter;
mod manager;
mod placed;
mod render;
mod safe;

use sha2::{Digest, Sha256};

pub use self::builtin::{BUILT_IN, Builtin, built_in};
pub use self::front_matter::FrontMatter;
pub use self::manager::{Conversation, ManagerPrompt, TASK};
pub use self::render::{Fields, render};

/// How many characters a template's name has at most.
pub const LONGEST_NAME: usize = 128;
/// The largest template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 256 << 10;

/// A template as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Its name, without `.md`.
    pub name: String,
    /// Where it was found.
    pub source: Source,
    /// The SHA-256 of the whole text, in hexadecimal.
    pub hash: String,
    /// What it says of itself and of how it is to be used.
    pub front_matter: FrontMatter,
    /// What the model's output should look like. Advisory: nothing is held to it.
    pub contract: Option<Contract>,
    /// The prompt, with placeholders, without front matter and contract.
    pub body: String,
    /// On which line of the text the body begins, from 1.
    pub body_line: usize,
}

/// Where a template was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// In this file of the project.
    Project(String),
    /// In this file of the user's configuration.
    User(String),
    /// In the program.
    BuiltIn,
}

/// A fenced block that says what the output should look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// `json` or `yaml`.
    pub language: String,
    /// The block's content.
    pub text: String,
}

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template {name}: line {line}, column {column}: {message}")]
pub struct TemplateError {
    /// The template's name.
    pub name: String,
    /// The line of the text, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl Source {
    /// The kind of place, as it is told to clients.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Project(_) => "project",
            Self::User(_) => "user",
            Self::BuiltIn => "built-in",
        }
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Project(path) | Self::User(path) => Some(path),
            Self::BuiltIn => None,
        }
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TemplateError`] for front matter that cannot be read and for placeholders that are not
    /// well-formed.
    pub fn parse(name: &str, source: Source, text: &str) -> Result<Self, TemplateError> {
        let (front_matter, rest, first_line) = front_matter::split(name, text)?;
        let (contract, body) = take_contract(rest);
        render::check(name, &body, first_line)?;
        Ok(Self {
            name: name.to_owned(),
            source,
            hash: hash(text),
            front_matter,
            contract,
            body,
            body_line: first_line,
        })
    }
}

/// The name without the `.md` that may be given with it.
pub fn bare_name(name: &str) -> &str {
    name.strip_suffix(".md").unwrap_or(name)
}

/// Whether a name can be a template's: no path leads out of the folder by it.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    !name.is_empty()
        && name.chars().count() <= LONGEST_NAME
        && !name.starts_with('.')
        && name.chars().all(allowed)
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first block fenced as `json` or `yaml`, and the text with as many empty lines in its place,
/// so that the lines below keep their numbers.
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
