//! The method that adds a file, or some lines of it.

use std::path::Path;

use serde::Deserialize;

use super::edit::{add_one, read_item};
use crate::agent::refresh::now_ms;
use crate::context::item::{Kind, Metadata};
use crate::engine::NewItem;
use crate::files::{self, FileError, FileText, LEADS_OUT, Named, ReadOptions, WITHIN};
use crate::rpc::Step;
use crate::rpc::call::{Call, Tools};
use crate::rpc::error::{file_error, param_error};
use crate::rpc::params::{ManagerName, RequestKey, Short, decode, metadata, not_negative};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct AddFile {
    manager: Option<ManagerName>,
    path: Short,
    start_line: Option<i64>,
    end_line: Option<i64>,
    r#type: Option<Kind>,
    metadata: Option<Value>,
    max_file_bytes: Option<i64>,
    pinned: Option<bool>,
    live: Option<bool>,
    brief: Option<bool>,
    request_key: Option<RequestKey>,
}

pub(super) fn add_file(call: Call, given: AddFile) -> Result<Step, WireError> {
    let path = files::absolute(&given.path.0).map_err(|error| file_error(&error))?;
    add(&call, given, |range, options| files::read(&path, range, options))
}

/// `add-file` of a file that was resolved before; its name is not looked up again.
pub(in crate::rpc) fn add_named(
    call: &Call,
    params: Value,
    named: &Named,
) -> Result<Step, WireError> {
    let file = named.file.as_ref().map_err(file_error)?;
    let mut given: AddFile = decode(params)?;
    given.metadata =
        file.within().map(|folder| Value::Map(vec![(WITHIN.into(), path_value(folder))]));
    add(call, given, |range, options| file.read(range, options))
}

fn add(
    call: &Call,
    given: AddFile,
    read: impl FnOnce(Option<(u64, Option<u64>)>, &ReadOptions) -> Result<FileText, FileError>,
) -> Result<Step, WireError> {
    let start = not_negative("start-line", given.start_line)?;
    let end = not_negative("end-line", given.end_line)?;
    let range = match (start, end) {
        (None, Some(_)) => return Err(param_error("start-line", "is required beside end-line")),
        (start, end) => start.map(|start: u64| (start, end)),
    };
    let options = read_options(&call.tools, given.max_file_bytes)?;
    let taken_ms = now_ms();
    let text = read(range, &options).map_err(|error| file_error(&error))?;
    let mut metadata = file_metadata(metadata(given.metadata)?, &text, "file");
    if text.project.as_ref().is_some_and(|project| files::leads_out(project, &text.path)) {
        metadata.set(LEADS_OUT, Value::Bool(true));
    }
    let kind = given.r#type.unwrap_or(Kind::File);
    let item = NewItem {
        live: given.live.unwrap_or(false),
        pinned: given.pinned.unwrap_or(false),
        ..read_item(&call.counter(), text.content, kind, metadata, taken_ms)
    };
    add_one("add-file", given.manager, item, given.brief, given.request_key)
}

pub(in crate::rpc) fn read_options(
    tools: &Tools,
    max_file_bytes: Option<i64>,
) -> Result<ReadOptions, WireError> {
    let given = not_negative("max-file-bytes", max_file_bytes)?;
    let wanted: u64 = given.unwrap_or(tools.limits.max_file_bytes);
    // What is larger than a message could never be told to anybody.
    Ok(ReadOptions { max_bytes: wanted.min(tools.limits.max_message_bytes as u64) })
}

/// Says where a text was read; what the client said otherwise stays.
pub(super) fn file_metadata(mut metadata: Metadata, text: &FileText, origin: &str) -> Metadata {
    metadata.set("filename", path_value(&text.path));
    if let Some(root) = &text.project {
        metadata.set("project", path_value(root));
    }
    if let Some((start, end)) = text.lines {
        metadata.set("start-line", Value::from(start));
        metadata.set("end-line", Value::from(end));
    }
    if metadata.origin().is_none() {
        metadata.set("origin", Value::of(&Keyword(origin)));
    }
    metadata
}

pub(super) fn path_value(path: &Path) -> Value {
    Value::Str(path.to_string_lossy().into_owned())
}
