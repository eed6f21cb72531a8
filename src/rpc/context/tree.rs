//! The method that adds a directory: its files, or one item that lists them.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::files::read_options;
use super::secret::{self, SecretPolicy};
use crate::agent::items::{file_metadata, new_item};
use crate::agent::refresh::now_ms;
use crate::context::item::{Kind, Metadata};
use crate::context::manager::{MAX_CAPACITY, ManagerError};
use crate::engine::{EngineError, NewItem};
use crate::files::{
    self, FileText, ListedFile, ReadOptions, SkipReason, Skipped, Stamp, TreeError, TreeOptions,
    Walk,
};
use crate::ids::ItemId;
use crate::rpc::call::MethodCall;
use crate::rpc::error::{application, cancelled, param_error};
use crate::rpc::error_data::ErrorData;
use crate::rpc::params::{ManagerName, Short, given_list, yes};
use crate::rpc::shapes::CallId;
use crate::rpc::{Finish, Step};
use crate::tokens::Counter;
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;
use crate::wording::counted;

#[derive(Deserialize, JsonSchema)]
pub(super) struct AddTree {
    /// Absolute path of the directory; may begin with `~/`.
    path: Option<Short>,
    /// Several files and directories instead of one directory. Those that are named themselves are
    /// added even if they are hidden or ignored.
    #[serde(default, deserialize_with = "given_list")]
    paths: Option<Vec<Short>>,
    manager: Option<ManagerName>,
    /// Form in which to add the files; defaults to `:files`.
    mode: Option<TreeMode>,
    /// Add the whole project that contains `:path`.
    project: Option<bool>,
    /// Include files whose name begins with a dot.
    hidden: Option<bool>,
    /// Maximum size of a file in bytes; defaults to the setting `max-file-bytes`.
    max_file_bytes: Option<i64>,
    /// Follow the files: bring the items up to date whenever they are shown or rendered. Files that
    /// already have a live item are not added again. Defaults to `t`; with `nil`, the items
    /// are copies. A listing is never live.
    // Not an `Option`: absent means live, nil means copies.
    #[serde(default = "yes")]
    live: bool,
    /// What to do with files that look like secrets; defaults to `:omit`.
    secrets: Option<SecretPolicy>,
}

/// Form in which a directory is added: an item per file, or one item that lists the files.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum TreeMode {
    Files,
    Listing,
}

/// An added directory.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AddedTree")]
pub(super) struct TreeAdded {
    /// Path of the directory.
    root: String,
    /// Form in which the directory was added.
    mode: TreeMode,
    /// Number of files that were read.
    files: u64,
    /// Size of the files that were read, in bytes.
    bytes: u64,
    /// Tokens of the added items.
    tokens: u64,
    /// Ids of the added items.
    ids: Vec<ItemId>,
    /// Ids of the items evicted to make room, oldest first.
    evicted: Vec<ItemId>,
    /// Ids of the live items that the manager already had for files of the directory; absent if
    /// there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repeated: Vec<ItemId>,
    /// Entries that were left out.
    skipped: LeftOutEntries,
}

/// The entries that a walk left out.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SkippedEntries")]
struct LeftOutEntries {
    /// Number of entries for each reason. An ignored folder counts once.
    #[schemars(with = "BTreeMap<String, u64>")]
    total: BTreeMap<SkipReason, u64>,
    /// The first entries that were left out, at most a hundred.
    named: Vec<LeftOutEntry>,
}

/// An entry that a walk left out.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SkippedEntry")]
struct LeftOutEntry {
    /// Path relative to the root. A folder's path ends with a slash.
    path: String,
    /// Reason why the entry was left out.
    reason: SkipReason,
}

impl From<Skipped> for LeftOutEntries {
    fn from(Skipped { total, named }: Skipped) -> Self {
        let entry = |(path, reason)| LeftOutEntry { path, reason };
        Self { total, named: named.into_iter().map(entry).collect() }
    }
}

/// The files that were read, as items or as lines of a listing, with totals over all files.
struct FoundFiles {
    mode: TreeMode,
    secrets: SecretPolicy,
    /// Names of the files that look like secrets and were not taken.
    secret: Vec<String>,
    /// Maximum size of the content of all files together, in bytes.
    room: u64,
    taken_ms: i64,
    items: Vec<NewItem>,
    listed: Vec<ListedFile>,
    files: u64,
    bytes: u64,
    tokens: u64,
}

pub(super) fn add_tree(call: MethodCall, given: AddTree) -> Result<Step, WireError> {
    let chosen = ChosenEntries::of(given.path, given.paths, given.project.unwrap_or(false))?;
    let options = TreeOptions {
        max_file_bytes: read_options(&call.tools, given.max_file_bytes)?.max_bytes,
        hidden: given.hidden.unwrap_or(false),
        ..TreeOptions::default()
    };
    let mode = given.mode.unwrap_or(TreeMode::Files);
    let secrets = given.secrets.unwrap_or(SecretPolicy::Omit);
    let (root, found, skipped) = read_tree(&call, &chosen, &options, mode, secrets)?;
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
    let root = root.to_string_lossy().into_owned();
    let (files, bytes, skipped) = (found.files, found.bytes, LeftOutEntries::from(skipped));
    let is_live = given.live && mode == TreeMode::Files;
    let looks = Arc::clone(&call.tools.looks);
    let named = |item: &NewItem| item.metadata.filename().map(str::to_owned);
    let stamp = |item: &NewItem| Some((named(item)?, Stamp::of_new(&item.metadata)?));
    let mut stamps = items.iter().filter_map(stamp).collect::<HashMap<_, _>>();
    Step::then(move |engine| {
        let before = tokens_of(&items);
        let (items, repeated) =
            if is_live { engine.without_live(&manager, items)? } else { (items, Vec::new()) };
        let count = count - repeated.len() as u64;
        let tokens = tokens - (before - tokens_of(&items));
        let names = items.iter().map(named).collect::<Vec<_>>();
        Ok(match engine.add("add-tree", &manager, items) {
            Ok(added) => {
                if is_live {
                    let stamp = |(id, name): (&u64, Option<_>)| Some((*id, stamps.remove(&name?)?));
                    looks.arrived(added.ids.iter().zip(names).filter_map(stamp));
                }
                let (ids, evicted) = (ItemId::all(&added.ids), ItemId::all(&added.evicted));
                Finish::now(&TreeAdded {
                    root,
                    mode,
                    files,
                    bytes,
                    tokens,
                    ids,
                    evicted,
                    repeated,
                    skipped,
                })
            }
            Err(EngineError::Manager {
                source: ManagerError::CapacityFull { capacity, pinned, .. },
                ..
            }) => Finish::Refused(no_room(mode, &manager, count, tokens, capacity, pinned)),
            Err(error) => return Err(error),
        })
    })
}

/// Progress of a walk.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WalkProgress")]
pub(super) struct Walking {
    /// Id of the call.
    #[schemars(with = "CallId")]
    id: Value,
    /// Stage of the work. A single file is read without walking.
    #[schemars(extend("enum" = ["walking", "reading"]))]
    stage: Keyword<&'static str>,
    /// Number of files so far.
    files: u64,
    /// Size of the files so far, in bytes.
    bytes: u64,
}

/// The directory, or the files and directories, to add.
enum ChosenEntries {
    One(PathBuf),
    Each(Vec<PathBuf>),
}

impl ChosenEntries {
    fn of(
        path: Option<Short>,
        paths: Option<Vec<Short>>,
        whole_project: bool,
    ) -> Result<Self, WireError> {
        let absolute = |path: Short| files::absolute(&path.0);
        match (path, paths) {
            (Some(path), None) => {
                let path = absolute(path)?;
                let project = || files::project_root(&path);
                Ok(Self::One(whole_project.then(project).flatten().unwrap_or(path)))
            }
            (None, Some(paths)) if !paths.is_empty() && !whole_project => {
                Ok(Self::Each(paths.into_iter().map(absolute).collect::<Result<_, _>>()?))
            }
            _ => Err(param_error("path", "is required unless paths has some; give one of the two")),
        }
    }

    fn walk(
        &self,
        options: &TreeOptions,
        progress: &mut dyn FnMut(files::Progress) -> ControlFlow<()>,
    ) -> Result<Walk, TreeError> {
        match self {
            Self::One(root) => files::walk(root, options, progress),
            Self::Each(paths) => files::walk_each(paths, options, progress),
        }
    }
}

/// Walks a directory and reads its files. Returns its path, the files, and the entries left out.
fn read_tree(
    call: &MethodCall,
    chosen: &ChosenEntries,
    options: &TreeOptions,
    mode: TreeMode,
    secrets: SecretPolicy,
) -> Result<(PathBuf, FoundFiles, Skipped), WireError> {
    let mut found = FoundFiles {
        mode,
        secrets,
        secret: Vec::new(),
        room: call.tools.limits.max_message_bytes as u64,
        taken_ms: now_ms(),
        items: Vec::new(),
        listed: Vec::new(),
        files: 0,
        bytes: 0,
        tokens: 0,
    };
    let progress = |stage: &'static str, files: u64, bytes: u64| {
        if call.cancelled.is_cancelled() {
            return ControlFlow::Break(());
        }
        if let Some(id) = &call.id {
            let id = Value::from(id.clone());
            call.peer.progress(Value::of(&Walking { id, stage: Keyword(stage), files, bytes }));
        }
        ControlFlow::Continue(())
    };
    let reading = ReadOptions { max_bytes: options.max_file_bytes };
    let walk = chosen.walk(options, &mut |p| progress("walking", p.files, p.bytes))?;
    let mut read = |p: files::Progress| progress("reading", p.files, p.bytes);
    let skipped = files::read_each(&walk, &reading, &mut read, &mut |file, text| {
        // The tokens of a cancelled walk need no counting.
        if !call.cancelled.is_cancelled() {
            found.take(call, &file.relative, text);
        }
    })?;
    if call.cancelled.is_cancelled() {
        return Err(cancelled());
    }
    let Walk { root, skipped: mut all_skipped, .. } = walk;
    all_skipped.merge(skipped);
    let secret = std::mem::take(&mut found.secret);
    if secrets == SecretPolicy::Ask && !secret.is_empty() {
        return Err(secret::refused(secret));
    }
    secret.into_iter().for_each(|name| all_skipped.add(name, SkipReason::Secret));
    found.check_room()?;
    Ok((root, found, all_skipped))
}

impl FoundFiles {
    fn take(&mut self, call: &MethodCall, relative: &str, text: FileText) {
        if self.secrets != SecretPolicy::Add && files::is_secret(Some(&text.path), &text.content) {
            self.secret.push(relative.to_owned());
            return;
        }
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
        let mut item = new_item(&call.counter(), content, Kind::File, metadata, self.taken_ms);
        self.tokens += item.tokens;
        if self.bytes > self.room || self.files > MAX_CAPACITY as u64 {
            // The files will be refused, so only their number and size still matter.
            item.content = "".into();
            self.items.iter_mut().for_each(|item| item.content = "".into());
        }
        if self.items.len() <= MAX_CAPACITY {
            self.items.push(item);
        }
    }

    /// Refuses files that would fit a manager by their number but are too large together.
    fn check_room(&self) -> Result<(), WireError> {
        let Self { files, bytes, room, .. } = self;
        let elsewhere = self.mode == TreeMode::Listing || *files > MAX_CAPACITY as u64;
        if elsewhere || bytes <= room {
            return Ok(());
        }
        let message = format!(
            "the content of {} has {bytes} bytes, but one call adds at most {room}; name a smaller \
             folder, or add one item with :mode :listing",
            counted(*files, "file")
        );
        Err(application(&ErrorData::TreeTooLarge { bytes: Some(*bytes) }, message))
    }
}

fn listing_item(call: &MethodCall, root: &Path, listed: &[ListedFile], taken_ms: i64) -> NewItem {
    let mut metadata = Metadata::default();
    metadata.set("filename", files::path_value(root));
    metadata.set("origin", Value::of(&Keyword("listing")));
    metadata.set("language", Value::Str("text".to_owned()));
    let content = files::listing(root, listed);
    new_item(&call.counter(), content, Kind::File, metadata, taken_ms)
}

fn tokens_of(items: &[NewItem]) -> u64 {
    items.iter().map(|item| item.tokens).sum()
}

/// Creates the error for a directory that does not fit into its manager. `count` and `tokens`
/// describe the items to add.
fn no_room(
    mode: TreeMode,
    manager: &str,
    count: u64,
    tokens: u64,
    capacity: usize,
    pinned: usize,
) -> WireError {
    let room = counted((capacity - pinned) as u64, "unpinned item");
    let what = match mode {
        TreeMode::Listing => "the listing".to_owned(),
        TreeMode::Files => format!("{} ({})", counted(count, "file"), counted(tokens, "token")),
    };
    let does = if count == 1 { "does" } else { "do" };
    let needed = count + pinned as u64;
    let raise = format!("raise :max-items to {needed} with configure-manager");
    let way_out = match (mode, needed <= MAX_CAPACITY as u64) {
        (TreeMode::Files, true) => format!("{raise}, or add one item with :mode :listing"),
        (TreeMode::Files, false) => format!(
            "no manager can hold more than {MAX_CAPACITY} items; name a smaller folder, or add \
             one item with :mode :listing"
        ),
        (TreeMode::Listing, true) => format!("{raise}, or unpin an item"),
        (TreeMode::Listing, false) => "unpin an item".to_owned(),
    };
    let message = format!(
        "{what} {does} not fit into {manager:?}, which has room for {room} (:max-items {capacity}, \
         {pinned} pinned): {way_out}"
    );
    let (adding, count, tokens) = (count, Some(count), Some(tokens));
    let data = ErrorData::CapacityFull { manager, adding, capacity, pinned, count, tokens };
    application(&data, message)
}
