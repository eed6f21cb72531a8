//! The method that makes the map of a project.

use std::collections::BTreeMap;
use std::path::PathBuf;

use contexture_map::{FileState, MAX_TOKENS, MIN_TOKENS, Map, ShownDefinition, ShownFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::maps::{DEFAULT_MAP_TOKENS, MAX_QUERY_BYTES, WantedMap, unsaved};
use crate::engine::Selection;
use crate::files;
use crate::names::names;
use crate::rpc::call::MethodCall;
use crate::rpc::error::param_error;
use crate::rpc::params::{MAX_NAMED, Short, at_most, given_list, not_negative};
use crate::rpc::{Finish, Step};
use crate::tokens::Counter;
use crate::value::Keyword;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct RepoMap {
    /// Absolute path of the project's folder; may begin with `~/`.
    project: Short,
    #[schemars(description = format!("What the map is for: a question, a task, an error with its \
        trace. The first {MAX_QUERY_BYTES} bytes count. Without it, the map shows what the project \
        itself uses and changes most."))]
    query: Option<String>,
    #[schemars(description = format!("Maximum number of tokens of the text, from {MIN_TOKENS} to \
        {MAX_TOKENS}; defaults to {DEFAULT_MAP_TOKENS}."))]
    max_tokens: Option<i64>,
    /// Files at hand: absolute paths, or paths from the project's folder. The map shows what belongs
    /// to them, and not the files themselves.
    #[serde(default, deserialize_with = "given_list")]
    focus: Option<Vec<Short>>,
    /// Form of the map; defaults to `:text`.
    format: Option<MapFormat>,
    /// Buffers that are not saved. They count instead of their files. Live items of unsaved buffers
    /// count without being named here.
    #[serde(default, deserialize_with = "given_list")]
    buffers: Option<Vec<Buffer>>,
}

/// The text of a buffer that is not saved.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "MapBuffer")]
struct Buffer {
    /// Absolute path of the buffer's file.
    path: Short,
    /// Text of the buffer.
    content: String,
}

names! {
    /// The form of a map.
    MapFormat {
        /// A text for a model.
        Text => "text",
        /// The same files and definitions as data.
        Entries => "entries",
    }
}

names! {
    /// How much a map knows of a file.
    KnownPart {
        /// Everything.
        Whole => "whole",
        /// The rarest of its many definitions, names or words are left out.
        Partial => "partial",
        /// A program made the file, so it counts less.
        Generated => "generated",
        /// The parser gave up; the words count.
        Unparsed => "unparsed",
        /// Only the name, since the file is binary.
        Binary => "binary",
        /// Only the name, since the file is too large.
        TooLarge => "too-large",
        /// Only the name, since the file may hold secrets.
        Secret => "secret",
        /// Only the name, since the file cannot be read.
        Unreadable => "unreadable",
    }
}

/// The map of a project.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProjectMap")]
pub(super) struct MapResult {
    /// Path of the project's folder.
    project: String,
    /// The map as a text; `nil` with `:format :entries`.
    text: Option<String>,
    /// The map as data, the most important file first; `nil` with `:format :text`.
    entries: Option<Vec<MappedFile>>,
    /// Tokens of the text.
    tokens: u64,
    /// Name of the counter that counted the tokens.
    token_counter: Keyword<&'static str>,
    /// Number of files in the map.
    files: usize,
    /// Number of files in the project.
    total_files: usize,
    /// Number of files at hand, which are not in the map.
    at_hand: usize,
    /// Number of commits that counted; 0 if there is no history.
    commits: usize,
    /// Number of files of which the map does not know everything, for each reason.
    #[schemars(with = "BTreeMap<String, usize>")]
    incomplete: BTreeMap<KnownPart, usize>,
    /// Time at which the map was made, in milliseconds since 1970.
    taken_ms: i64,
}

/// A file in a map.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MappedFile")]
struct MappedFile {
    /// Path from the project's folder.
    path: String,
    /// How much the map knows of the file.
    known: KnownPart,
    /// Number of definitions in the file, also of those that are not shown.
    total_definitions: usize,
    /// The definitions that are shown. A file without any is only named.
    definitions: Vec<MappedDefinition>,
}

/// A definition in a map.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MappedDefinition")]
struct MappedDefinition {
    /// Name.
    name: String,
    /// First line.
    line: u32,
    /// Last line.
    end_line: u32,
    /// Beginning of the definition, on one line.
    signature: String,
}

impl From<ShownFile> for MappedFile {
    fn from(ShownFile { path, state, definitions, shown }: ShownFile) -> Self {
        let definition = |it: ShownDefinition| MappedDefinition {
            name: it.name,
            line: it.line,
            end_line: it.end,
            signature: it.signature,
        };
        Self {
            path,
            known: state.into(),
            total_definitions: definitions,
            definitions: shown.into_iter().map(definition).collect(),
        }
    }
}

impl From<FileState> for KnownPart {
    fn from(state: FileState) -> Self {
        match state {
            FileState::Whole => Self::Whole,
            FileState::Partial => Self::Partial,
            FileState::Generated => Self::Generated,
            FileState::Unparsed => Self::Unparsed,
            FileState::Binary => Self::Binary,
            FileState::TooLarge => Self::TooLarge,
            FileState::Secret => Self::Secret,
            FileState::Unreadable => Self::Unreadable,
        }
    }
}

pub(super) fn repo_map(call: MethodCall, given: RepoMap) -> Result<Step, WireError> {
    let max_tokens = not_negative("max-tokens", given.max_tokens)?.unwrap_or(DEFAULT_MAP_TOKENS);
    if !(MIN_TOKENS..=MAX_TOKENS).contains(&max_tokens) {
        let range = format!("must be from {MIN_TOKENS} to {MAX_TOKENS}, got {max_tokens}");
        return Err(param_error("max-tokens", &range));
    }
    let (focus, buffers) = (given.focus.unwrap_or_default(), given.buffers.unwrap_or_default());
    at_most("focus", MAX_NAMED, focus.len())?;
    at_most("buffers", MAX_NAMED, buffers.len())?;
    let root = files::absolute(&given.project.0)?;
    let absolute = |buffer: Buffer| Ok((files::absolute(&buffer.path.0)?, buffer.content));
    let mut wanted = WantedMap {
        query: given.query.unwrap_or_default(),
        focus: focus.into_iter().map(|path| PathBuf::from(path.0)).collect(),
        unsaved: buffers.into_iter().map(absolute).collect::<Result<_, WireError>>()?,
        max_tokens,
    };
    let format = given.format.unwrap_or(MapFormat::Text);
    Step::then(move |engine| {
        let held = engine.select_live(&Selection::default())?;
        wanted.unsaved.extend(held.iter().filter_map(unsaved));
        Ok(Finish::later(move || {
            let taken_ms = crate::agent::refresh::now_ms();
            let is_cancelled = || call.cancelled.is_cancelled();
            let options = call.tools.read_options();
            let counter = call.counter();
            let map = call.tools.maps.map(&root, &wanted, options, &counter, &is_cancelled)?;
            Ok(mapped(root, map, format, counter.name(), taken_ms))
        }))
    })
}

fn mapped(
    root: PathBuf,
    map: Map,
    format: MapFormat,
    counter: &'static str,
    taken_ms: i64,
) -> MapResult {
    let incomplete = map.states.iter().map(|(state, count)| ((*state).into(), *count)).collect();
    let files = map.files.len();
    let (text, entries) = match format {
        MapFormat::Text => (Some(map.text), None),
        MapFormat::Entries => (None, Some(map.files.into_iter().map(Into::into).collect())),
    };
    MapResult {
        project: root.to_string_lossy().into_owned(),
        text,
        entries,
        tokens: map.tokens,
        token_counter: Keyword(counter),
        files,
        total_files: map.total,
        at_hand: map.at_hand,
        commits: map.commits,
        incomplete,
        taken_ms,
    }
}
