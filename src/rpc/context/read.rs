//! The method that reads a file within a folder. If an editor has the file with unsaved changes,
//! returns the editor's text.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::{range, read_options};
use super::unsaved::ask;
use crate::engine::{Selection, View};
use crate::files::{self, Beneath, FileError, FileText, OpenedFile, ReadOptions};
use crate::rpc::call::MethodCall;
use crate::rpc::editors::Heard;
use crate::rpc::params::Short;
use crate::rpc::{Finish, Step};
use crate::tokens::Counter;
use crate::value::Keyword;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadFile {
    /// Path of the file: absolute, or relative to `:root`.
    path: Short,
    /// Absolute path of the folder that the file must be in. A link that leads out of the folder
    /// counts as outside. A file that may hold secrets, such as `.env`, is not read.
    root: Short,
    /// First line, counted from 1.
    start_line: Option<i64>,
    /// Last line; needs `:start-line`, and defaults to the end of the file.
    end_line: Option<i64>,
    /// Maximum size of the file in bytes; defaults to the setting `max-file-bytes`.
    max_file_bytes: Option<i64>,
    /// Ask the editors first, as in `open-layers`, whether one has the file in a buffer that is
    /// not saved.
    #[serde(default)]
    ask_editors: bool,
}

/// The text of a file.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FileRead")]
pub(super) struct FileRead {
    /// Path of the file.
    path: String,
    /// The text.
    content: String,
    /// First line of the text; `nil` if it is the whole file.
    start_line: Option<u64>,
    /// Last line of the text; `nil` if it is the whole file.
    end_line: Option<u64>,
    /// Number of lines in the whole file.
    total_lines: u64,
    /// Tokens of the text.
    tokens: u64,
    /// Name of the counter that counted the tokens.
    token_counter: Keyword<&'static str>,
    /// True if this is the unsaved text of a buffer; false if it is the text on disk.
    unsaved: bool,
    /// Number of other unsaved texts of the file, if several editors have different ones.
    other_texts: usize,
    /// Number of editors that were asked and did not answer in time. One of them may have newer
    /// text.
    late_editors: usize,
}

pub(super) fn read_file(call: MethodCall, given: ReadFile) -> Result<Step, WireError> {
    let range = range(given.start_line, given.end_line)?;
    let options = read_options(&call.tools, given.max_file_bytes)?;
    let folder = Beneath::new(&files::absolute(&given.root.0)?)?;
    let opened = folder.open(Path::new(&given.path.0))?;
    if files::holds_secrets(opened.path()) {
        return Err(FileError::Secret { path: opened.path().to_owned() }.into());
    }
    opened.check(options.max_bytes)?;
    if !given.ask_editors {
        return read(call, opened, range, options, Heard::default());
    }
    Ok(Step::Await(Box::pin(async move {
        let path = files::true_name(opened.path());
        let heard = ask(&call, Some(&path)).await?;
        read(call, opened, range, options, heard)
    })))
}

/// Returns the step that takes the text from an editor that has unsaved changes to the file, or
/// else reads the file.
fn read(
    call: MethodCall,
    opened: OpenedFile,
    range: Option<(u64, Option<u64>)>,
    options: ReadOptions,
    heard: Heard,
) -> Result<Step, WireError> {
    let path = opened.path().to_owned();
    Step::then(move |engine| {
        let mut held = engine.select_live(&Selection::default())?;
        held.retain(|view| view.is_held() && view.item.metadata.lines().is_none());
        Ok(Finish::later(move || {
            let given = heard.text.or_else(|| unsaved(&held, &path));
            let is_unsaved = given.is_some();
            let text = match given {
                Some(text) => files::lines_of(&path, text, range, &options)?,
                None => OpenedFile::read(&opened, range, &options)?,
            };
            Ok(shown(&call.counter(), text, is_unsaved, heard.others, heard.late))
        }))
    })
}

/// Returns the unsaved text of the file from one of the `held` items, whose texts editors have in
/// unsaved buffers; `None` if none of them is of this file.
fn unsaved(held: &[View], path: &Path) -> Option<String> {
    let path = files::true_name(path);
    let is_it = |view: &&View| {
        let name = view.item.metadata.filename().and_then(files::true_outside);
        name.is_some_and(|name| name == path)
    };
    held.iter().find(is_it).map(|view| view.item.content.to_string())
}

fn shown(
    counter: &dyn Counter,
    text: FileText,
    unsaved: bool,
    other_texts: usize,
    late_editors: usize,
) -> FileRead {
    let (start_line, end_line) = text.lines.unzip();
    FileRead {
        path: text.path.to_string_lossy().into_owned(),
        start_line,
        end_line,
        total_lines: text.total_lines,
        tokens: counter.count(&text.content),
        token_counter: Keyword(counter.name()),
        content: text.content,
        unsaved,
        other_texts,
        late_editors,
    }
}
