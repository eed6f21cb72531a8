//! Methods that add what they read from the disk: a file, a directory.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::call::{Call, Tools};
use super::context::{add_one, read_item};
use super::error::{application, cancelled, file_error, param_error, tree_error};
use super::params::{ManagerName, RequestKey, Short, decode, metadata, not_negative};
use super::present::{self, entry, figure, keyword};
use super::{Finish, Step};
use crate::agent::refresh::now_ms;
use crate::context::item::{Kind, Metadata};
use crate::context::manager::{MAX_CAPACITY, ManagerError};
use crate::engine::{EngineError, NewItem};
use crate::files::{
    self, FileError, FileText, LEADS_OUT, ListedFile, Named, ReadOptions, Skipped, TreeOptions,
    WITHIN, Walk,
};
use crate::tokens::Counter;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AddFile {
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

pub(super) fn add_file(call: Call, params: Value) -> Result<Step, WireError> {
    let given: AddFile = decode(params)?;
    let path = files::absolute(&given.path.0).map_err(|error| file_error(&error))?;
    add(&call, given, |range, options| files::read(&path, range, options))
}

/// `add-file` of a file that was resolved before; its name is not looked up again.
pub(super) fn add_named(call: &Call, params: Value, named: &Named) -> Result<Step, WireError> {
    let file = named.file.as_ref().map_err(file_error)?;
    let mut given: AddFile = decode(params)?;
    given.metadata =
        file.within().map(|folder| Value::Map(vec![entry(WITHIN, path_value(folder))]));
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

pub(super) fn read_options(
    tools: &Tools,
    max_file_bytes: Option<i64>,
) -> Result<ReadOptions, WireError> {
    let given = not_negative("max-file-bytes", max_file_bytes)?;
    let wanted: u64 = given.unwrap_or(tools.limits.max_file_bytes);
    // What is larger than a message could never be told to anybody.
    Ok(ReadOptions { max_bytes: wanted.min(tools.limits.max_message_bytes as u64) })
}

/// Says where a text was read; what the client said otherwise stays.
fn file_metadata(mut metadata: Metadata, text: &FileText, origin: &str) -> Metadata {
    metadata.set("filename", path_value(&text.path));
    if let Some(root) = &text.project {
        metadata.set("project", path_value(root));
    }
    if let Some((start, end)) = text.lines {
        metadata.set("start-line", figure(start));
        metadata.set("end-line", figure(end));
    }
    if metadata.origin().is_none() {
        metadata.set("origin", keyword(origin));
    }
    metadata
}

fn path_value(path: &Path) -> Value {
    Value::Str(path.to_string_lossy().into_owned())
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AddTree {
    manager: Option<ManagerName>,
    path: Short,
    mode: Option<TreeMode>,
    project: Option<bool>,
    hidden: Option<bool>,
    max_file_bytes: Option<i64>,
    request_key: Option<RequestKey>,
}

/// What a directory becomes.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum TreeMode {
    Files,
    Listing,
}

impl TreeMode {
    fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Listing => "listing",
        }
    }
}

/// What a walk found and read.
struct Tree {
    root: PathBuf,
    found: Found,
    skipped: Skipped,
}

/// The files that were read, as far as they are kept, and the sums over all of them.
struct Found {
    mode: TreeMode,
    /// Maximum size of the content that is kept, in bytes.
    room: u64,
    taken_ms: i64,
    items: Vec<NewItem>,
    listed: Vec<ListedFile>,
    files: u64,
    bytes: u64,
    tokens: u64,
}

pub(super) fn add_tree(call: Call, params: Value) -> Result<Step, WireError> {
    let given: AddTree = decode(params)?;
    let path = files::absolute(&given.path.0).map_err(|error| file_error(&error))?;
    let root = match given.project.unwrap_or(false) {
        true => files::project_root(&path).unwrap_or(path),
        false => path,
    };
    let options = TreeOptions {
        max_file_bytes: read_options(&call.tools, given.max_file_bytes)?.max_bytes,
        hidden: given.hidden.unwrap_or(false),
        ..TreeOptions::default()
    };
    let mode = given.mode.unwrap_or(TreeMode::Files);
    let Tree { root, found, skipped } = read_tree(&call, &root, &options, mode)?;
    let manager = given.manager.unwrap_or_default().0;
    let (items, tokens) = match mode {
        TreeMode::Files => (found.items, found.tokens),
        TreeMode::Listing => {
            let item = listing_item(&call, &root, &found.listed, found.taken_ms);
            let tokens = item.tokens;
            (vec![item], tokens)
        }
    };
    let count = if mode == TreeMode::Files { found.files } else { 1 };
    let mut answer = vec![
        entry("root", path_value(&root)),
        entry("mode", keyword(mode.name())),
        entry("files", figure(found.files)),
        entry("bytes", figure(found.bytes)),
        entry("tokens", figure(tokens)),
    ];
    let skipped = tell_skipped(&skipped);
    let key = given.request_key;
    Step::then(move |engine| {
        let added = engine.once("add-tree", key.as_deref(), |e| e.add("add-tree", &manager, items));
        Ok(match added {
            Ok(added) => {
                answer.push(entry("ids", present::ids(&added.ids)));
                answer.push(entry("evicted", present::ids(&added.evicted)));
                answer.push(entry("skipped", skipped));
                Finish::Now(Value::Map(answer))
            }
            Err(EngineError::Manager {
                source: ManagerError::CapacityFull { capacity, pinned, .. },
                ..
            }) => Finish::Refused(too_many_files(&manager, count, tokens, capacity, pinned)),
            Err(error) => return Err(error),
        })
    })
}

fn read_tree(
    call: &Call,
    root: &Path,
    options: &TreeOptions,
    mode: TreeMode,
) -> Result<Tree, WireError> {
    let mut found = Found {
        mode,
        room: call.tools.limits.max_message_bytes as u64,
        taken_ms: now_ms(),
        items: Vec::new(),
        listed: Vec::new(),
        files: 0,
        bytes: 0,
        tokens: 0,
    };
    let progress = |stage: &str, files: u64, bytes: u64| {
        if call.cancelled.is_cancelled() {
            return ControlFlow::Break(());
        }
        if let Some(id) = &call.id {
            call.peer.progress(Value::Map(vec![
                entry("id", id.clone()),
                entry("stage", keyword(stage)),
                entry("files", figure(files)),
                entry("bytes", figure(bytes)),
            ]));
        }
        ControlFlow::Continue(())
    };
    let reading = ReadOptions { max_bytes: options.max_file_bytes };
    let walk = files::walk(root, options, &mut |p| progress("walking", p.files, p.bytes))
        .map_err(|error| tree_error(&error))?;
    let mut read = |p: files::Progress| progress("reading", p.files, p.bytes);
    let skipped = files::read_each(&walk, &reading, &mut read, &mut |file, text| {
        // What is left after a cancellation is not worth its tokens.
        if !call.cancelled.is_cancelled() {
            found.take(call, &file.relative, text);
        }
    });
    let skipped = skipped.map_err(|error| tree_error(&error))?;
    if call.cancelled.is_cancelled() {
        return Err(cancelled());
    }
    found.check_room()?;
    let Walk { root, skipped: mut all_skipped, .. } = walk;
    all_skipped.merge(skipped);
    Ok(Tree { root, found, skipped: all_skipped })
}

impl Found {
    fn take(&mut self, call: &Call, relative: &str, text: FileText) {
        self.files += 1;
        let bytes = text.content.len() as u64;
        self.bytes += bytes;
        if self.mode == TreeMode::Listing {
            let tokens = call.counter().count(&text.content);
            self.listed.push(ListedFile { relative: relative.to_owned(), bytes, tokens });
            return;
        }
        let metadata = file_metadata(Metadata::default(), &text, "tree");
        let content = text.content;
        let mut item = read_item(&call.counter(), content, Kind::File, metadata, self.taken_ms);
        self.tokens += item.tokens;
        if self.bytes > self.room || self.files > MAX_CAPACITY as u64 {
            // No manager takes them all, so only their number matters now.
            item.content = "".into();
            self.items.iter_mut().for_each(|item| item.content = "".into());
        }
        if self.items.len() <= MAX_CAPACITY {
            self.items.push(item);
        }
    }

    /// Refuses files that a manager could hold by their number, and that are too large together.
    fn check_room(&self) -> Result<(), WireError> {
        let Self { files, bytes, room, .. } = self;
        let elsewhere = self.mode == TreeMode::Listing || *files > MAX_CAPACITY as u64;
        if elsewhere || bytes <= room {
            return Ok(());
        }
        let message = format!(
            "the {files} files have {bytes} bytes together, and at most {room} are added at once; \
             name a smaller folder, or add one item with :mode :listing"
        );
        Err(application("tree-too-large", message, vec![("bytes", figure(*bytes))]))
    }
}

fn listing_item(call: &Call, root: &Path, listed: &[ListedFile], taken_ms: i64) -> NewItem {
    let mut metadata = Metadata::default();
    metadata.set("filename", path_value(root));
    metadata.set("origin", keyword("listing"));
    metadata.set("language", Value::Str("text".to_owned()));
    let content = files::listing(root, listed);
    read_item(&call.counter(), content, Kind::File, metadata, taken_ms)
}

fn tell_skipped(skipped: &Skipped) -> Value {
    let totals = skipped.total.iter().map(|(why, count)| entry(why.name(), figure(*count)));
    let named = skipped.named.iter().map(|(path, why)| {
        Value::Map(vec![entry("path", &**path), entry("reason", keyword(why.name()))])
    });
    Value::Map(vec![
        entry("total", Value::Map(totals.collect())),
        entry("named", Value::List(named.collect())),
    ])
}

fn too_many_files(
    manager: &str,
    count: u64,
    tokens: u64,
    capacity: usize,
    pinned: usize,
) -> WireError {
    let room = capacity - pinned;
    let way_out = match count + pinned as u64 {
        needed if needed <= MAX_CAPACITY as u64 => {
            format!("raise it with configure-manager :max-items {needed}")
        }
        _ => format!("{MAX_CAPACITY} is the most it can hold, so name a smaller folder"),
    };
    let message = format!(
        "{count} files ({tokens} tokens) do not fit {manager:?}, which has room for {room} \
         (:max-items {capacity}, {pinned} pinned): {way_out}, or add one item with :mode :listing"
    );
    let data = vec![
        ("count", figure(count)),
        ("tokens", figure(tokens)),
        ("capacity", figure(capacity as u64)),
        ("pinned", figure(pinned as u64)),
    ];
    application("capacity-full", message, data)
}
