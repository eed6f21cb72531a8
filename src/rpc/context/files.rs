//! The method that adds a file, or some lines of it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::add_one;
use super::secret::SecretPolicy;
use crate::agent::items::{FileItem, LineRange, MAX_PDF_BYTES, file_item, picture_item};
use crate::agent::refresh::now_ms;
use crate::context::item::Kind;
use crate::engine::NewItem;
use crate::files::{self, ReadOptions};
use crate::rpc::Step;
use crate::rpc::call::{MethodCall, Tools};
use crate::rpc::error::{internal_error, param_error};
use crate::rpc::params::{KnownMetadata, ManagerName, Short, metadata, not_negative, yes};
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct AddFile {
    /// Absolute path of the file; may begin with `~/`.
    path: Short,
    /// First line, counted from 1.
    start_line: Option<i64>,
    /// Last line; needs `:start-line`, and defaults to the end of the file.
    end_line: Option<i64>,
    manager: Option<ManagerName>,
    /// Type of the content; defaults to `:file`.
    r#type: Option<Kind>,
    #[schemars(with = "Option<KnownMetadata>")]
    metadata: Option<Value>,
    /// Maximum size of the file in bytes; defaults to the setting `max-file-bytes`.
    max_file_bytes: Option<i64>,
    /// Exempt the item from eviction; defaults to `nil`.
    pinned: Option<bool>,
    /// Follow the file: bring the item up to date whenever it is shown or rendered. If some of the
    /// lines are already in another live item, the two items become one. Defaults to `t`; with
    /// `nil`, the item is a copy.
    // Not an `Option`: absent means live, nil means a copy.
    #[serde(default = "yes")]
    live: bool,
    /// What to do if the file looks like a secret; defaults to `:add`. With `:ask` or `:omit`, the
    /// call fails.
    secrets: Option<SecretPolicy>,
    /// Leave the content out of the result.
    brief: Option<bool>,
}

/// First bytes of a PDF.
const PDF: &[u8] = b"%PDF-";

pub(super) fn add_file(call: MethodCall, given: AddFile) -> Result<Step, WireError> {
    let path = files::absolute(&given.path.0)?;
    let range = range(given.start_line, given.end_line)?;
    let options = read_options(&call.tools, given.max_file_bytes)?;
    let taken_ms = now_ms();
    if range.is_none()
        && let Some(content) = files::seen(&path, MAX_PDF_BYTES)?
    {
        if !content.starts_with(PDF) {
            return add_picture(&call, given, path, content, taken_ms);
        }
        // A program reads the text, for which the connection's later calls must not wait.
        call.is_beside.store(true, Ordering::Relaxed);
        return Ok(Step::Await(Box::pin(async move {
            let adding = move || add_picture(&call, given, path, content, taken_ms);
            let added = tokio::task::spawn_blocking(adding).await;
            added.unwrap_or_else(|_| Err(internal_error("the reading of a PDF")))
        })));
    }
    let text = files::read(&path, range, &options)?;
    SecretPolicy::check(given.secrets, path.to_str(), &text.content)?;
    let (metadata, kind) = (metadata(given.metadata)?, given.r#type.unwrap_or(Kind::File));
    let item = NewItem {
        live: given.live,
        pinned: given.pinned.unwrap_or(false),
        ..file_item(&call.counter(), text, kind, metadata, taken_ms)
    };
    add_one(&call, "add-file", given.manager, item, given.brief)
}

/// Adds a picture or PDF as an item, and keeps its content.
fn add_picture(
    call: &MethodCall,
    given: AddFile,
    path: PathBuf,
    content: Vec<u8>,
    taken_ms: i64,
) -> Result<Step, WireError> {
    let (metadata, kind) = (metadata(given.metadata)?, given.r#type.unwrap_or(Kind::File));
    let name = path.clone();
    let asked = call.tools.providers.find(None, None);
    let model = asked.as_ref().map_or("", |asked| asked.provider.model());
    let made = picture_item(&call.counter(), model, path, content, kind, metadata, taken_ms)?;
    SecretPolicy::check(given.secrets, name.to_str(), &made.item.content)?;
    let item = NewItem { pinned: given.pinned.unwrap_or(false), ..made.item };
    let item = FileItem { item, ..made };
    add_one(call, "add-file", given.manager, item, given.brief)
}

/// Reads the parameters that name lines of a file; `None` for the whole file.
pub(super) fn range(start: Option<i64>, end: Option<i64>) -> Result<Option<LineRange>, WireError> {
    let start = not_negative("start-line", start)?;
    let end = not_negative("end-line", end)?;
    match (start, end) {
        (None, Some(_)) => Err(param_error("start-line", "is required with end-line")),
        (start, end) => Ok(start.map(|start| (start, end))),
    }
}

pub(in crate::rpc) fn read_options(
    tools: &Tools,
    max_file_bytes: Option<i64>,
) -> Result<ReadOptions, WireError> {
    Ok(tools.limits.read_options(not_negative("max-file-bytes", max_file_bytes)?))
}
