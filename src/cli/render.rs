//! `contexture render`: prints files as context, without a server.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use super::host::Setup;
use super::{Common, complain, say};
use crate::config::number;
use crate::context::filter::{TypeName, select};
use crate::context::item::{Item, ItemId, Kind, Metadata};
use crate::context::render::Format;
use crate::context::render::budget::{Piece, fit};
use crate::context::render::report::ItemFate;
use crate::files::{self, FileError, ReadOptions};
use crate::value::Value;

/// Render files as context, without a server.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contexture render src/main.rs src/lib.rs:10-40\n  contexture \
    render *.el --format xml --max-tokens 2000\n\nA file may be followed by :START or :START-END. \
    Files that are cut or left out are reported on standard error."
)]
pub(super) struct RenderCommand {
    /// Files, each with an optional :START or :START-END
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Include only items of these types or origins
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    types: Vec<String>,
    /// Include only the last N files
    #[arg(long, value_name = "N", value_parser = number::<usize>)]
    limit: Option<usize>,
    /// Output format: markdown, xml, org or json
    #[arg(long, default_value = "markdown", value_parser = parse_format)]
    format: Format,
    /// Maximum number of tokens; if there are more, files are left out, beginning with the first,
    /// and the last one is cut if it is too long by itself
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    max_tokens: Option<u64>,
}

impl RenderCommand {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<bool> {
        let setup = common.setup()?;
        let types: Vec<TypeName> =
            self.types.iter().map(|name| TypeName::from_name(name)).collect::<Result<_, _>>()?;
        let mut sound = true;
        let mut items = Vec::new();
        for name in &self.files {
            match read(&setup, name, items.len()) {
                Ok(item) => items.push(item),
                Err(error) => {
                    complain(&format!("contexture: {error:#}"));
                    sound = false;
                }
            }
        }
        if items.is_empty() {
            return Ok(false);
        }
        let chosen = select(items.iter(), &types, self.limit, |item| item);
        let pieces: Vec<Piece<'_>> =
            chosen.into_iter().map(|item| Piece { item, pinned: false, since: 0 }).collect();
        let counter = setup.config.tokenizer.counter();
        let fitted = fit(&pieces, self.format, self.max_tokens, &*counter)?;
        say(&fitted.text)?;
        for (verdict, piece) in fitted.report.iter().zip(&pieces) {
            if verdict.fate != ItemFate::Kept {
                let name = piece.item.metadata.display_name().unwrap_or_default();
                let is_cut = matches!(verdict.fate, ItemFate::Cut { .. });
                let fate = if is_cut { "cut" } else { "left out" };
                complain(&format!("contexture: {name}: {fate}: {}", verdict.reason));
            }
        }
        Ok(sound)
    }
}

fn parse_format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let valid: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("must be one of {}", valid.join(", "))
    })
}

fn read(setup: &Setup, name: &str, index: usize) -> anyhow::Result<Item> {
    let (path, range) = split_range(name);
    let path = std::path::absolute(path).with_context(|| format!("{path:?}"))?;
    let options = ReadOptions { max_bytes: setup.config.limits.max_file_bytes };
    let text = files::read(&path, range, &options).map_err(|error| refused(&path, &error))?;
    let mut metadata = Metadata::default();
    let mut note = |name: &str, value: Value| metadata.set(name, value);
    let shown = |path: &Path| Value::Str(path.to_string_lossy().into_owned());
    note("filename", shown(&text.path));
    note("origin", Value::Keyword("file".into()));
    let project = text.project.clone().or_else(|| std::env::current_dir().ok());
    project.iter().for_each(|root: &PathBuf| note("project", shown(root)));
    if let Some((start, end)) = text.lines {
        note("start-line", Value::Int(start as i64));
        note("end-line", Value::Int(end as i64));
    }
    Ok(Item {
        id: ItemId(index as u64 + 1),
        kind: Kind::File,
        content: text.content.into(),
        metadata,
        timestamp: 0,
        taken_ms: 0,
        tokens: 0,
        counted_by: "estimate",
        live: false,
    })
}

/// Describes the error of a file without the advice that only clients of a server can follow.
fn refused(path: &Path, error: &FileError) -> anyhow::Error {
    match error {
        FileError::TooLarge { bytes, limit, .. } => anyhow!(
            "{path:?} has {bytes} bytes, but the limit is {limit}; raise it with --max-file-bytes"
        ),
        FileError::Binary { sign, offset, .. } => anyhow!("{path:?} is {sign} at offset {offset}"),
        FileError::IsDirectory { .. } => anyhow!("{path:?} is a directory; name the files in it"),
        FileError::NotRegular { what, .. } => anyhow!("{path:?} is a {what}, not a regular file"),
        FileError::Unreadable { source, .. } => anyhow!("cannot read {path:?}: {source}"),
        other => anyhow!("{other}"),
    }
}

/// Splits `:START` or `:START-END` off a name, unless there is a file with the full name.
fn split_range(name: &str) -> (&str, Option<(u64, Option<u64>)>) {
    let range = |text: &str| match text.split_once('-') {
        None => Some((text.parse().ok()?, None)),
        Some((start, end)) => Some((start.parse().ok()?, Some(end.parse().ok()?))),
    };
    match name.rsplit_once(':').map(|(path, lines)| (path, range(lines))) {
        Some((path, Some(range))) if !Path::new(name).exists() => (path, Some(range)),
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_end_in_lines() {
        assert_eq!(split_range("a.rs"), ("a.rs", None));
        assert_eq!(split_range("a.rs:3"), ("a.rs", Some((3, None))));
        assert_eq!(split_range("a.rs:3-9"), ("a.rs", Some((3, Some(9)))));
        assert_eq!(split_range("a:b"), ("a:b", None));
        assert_eq!(split_range("a:3-x"), ("a:3-x", None));
    }
}
