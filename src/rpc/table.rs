//! The method table: what the server can do, in the words of its documentation.

use super::call::{Call, Topic};
use super::{Step, context, files, query, refresh, server, sets};
use crate::context::filter;
use crate::context::item::{Kind, Origin};
use crate::context::render::Format;
use crate::value::Value;
use crate::wire::message::WireError;

/// A method: how it is called, what it answers, and how it is run.
pub struct Method {
    /// Its name on the wire.
    pub name: &'static str,
    /// The family it belongs to.
    pub family: &'static str,
    /// What it does, in a sentence or two.
    pub doc: &'static str,
    /// Its parameters in the order in which the documentation lists them.
    pub params: &'static [Param],
    /// What it answers.
    pub result: &'static str,
    /// Where its first part runs.
    pub pace: Pace,
    run: fn(Call, Value) -> Result<Step, WireError>,
}

/// A parameter of a method.
pub struct Param {
    /// Its name, kebab-case.
    pub name: &'static str,
    /// The type of its value.
    pub kind: &'static str,
    /// Whether a call without it is refused.
    pub required: bool,
    /// What it means, and what its absence means.
    pub doc: &'static str,
    /// The values it can have, where they are a closed list.
    pub values: fn() -> Vec<&'static str>,
}

/// Where the part of a method that comes before the engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once: it neither waits nor works long.
    Prompt,
    /// On a thread that may block; later calls of the connection wait for it.
    InOrder,
    /// On a thread that may block, beside the connection's later calls.
    Aside,
}

impl Method {
    /// Runs the part before the engine.
    ///
    /// # Errors
    /// Whatever is wrong with the parameters or with what they name.
    pub fn run(&self, call: Call, params: Value) -> Result<Step, WireError> {
        (self.run)(call, params)
    }
}

/// The method with this name.
///
/// # Errors
/// −32601 with the nearest names.
pub fn find(name: &str) -> Result<&'static Method, WireError> {
    TABLE.iter().find(|method| method.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> WireError {
    let mut near: Vec<_> =
        TABLE.iter().map(|method| (strsim::jaro_winkler(name, method.name), method.name)).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<_> = near.into_iter().take(3).map(|(_, name)| name).collect();
    let nearest = near.iter().map(|name| Value::Str((*name).to_owned())).collect();
    WireError {
        code: WireError::METHOD_NOT_FOUND,
        message: format!(
            "no method {name:?}; the nearest are {}; `methods` lists all",
            near.join(", ")
        ),
        data: Value::Map(vec![("nearest".into(), Value::List(nearest))]),
    }
}

const fn required(name: &'static str, kind: &'static str, doc: &'static str) -> Param {
    Param { name, kind, required: true, doc, values: Vec::new }
}

const fn optional(name: &'static str, kind: &'static str, doc: &'static str) -> Param {
    Param { name, kind, required: false, doc, values: Vec::new }
}

impl Param {
    const fn of(mut self, values: fn() -> Vec<&'static str>) -> Self {
        self.values = values;
        self
    }
}

const MANAGER: Param =
    optional("manager", "string", "The manager's name; the shared manager `*shared*` by default.");
const MANAGERS: Param =
    optional("managers", "list of strings", "Several managers in place of one, merged by time.");
const TYPES: Param = optional(
    "types",
    "list of names",
    "Only items of these types or origins; `nil` means all. `file` matches both.",
)
.of(filter::valid_names);
const LIMIT: Param =
    optional("limit", "integer", "Only so many of the most recent; `nil` means all, 0 none.");
const TYPE: Param =
    optional("type", "name", "What the content is; `:code` by default.").of(kind_names);
const METADATA: Param = optional(
    "metadata",
    "plist",
    "Kept whole. Known names are `:filename`, `:project`, `:start-line`, `:end-line`, \
     `:language`, `:symbol`, `:package` and `:origin`, whose values are listed here.",
)
.of(origin_names);
const PINNED: Param = optional("pinned", "boolean", "Exempt from eviction; `nil` by default.");
const LIVE: Param = optional(
    "live",
    "boolean",
    "Read the file again whenever the item is shown or rendered; `nil` by default.",
);
const BRIEF: Param = optional("brief", "boolean", "Answer without the content.");
const KEY: Param = optional(
    "request-key",
    "string",
    "A name for this call: a call with the same key is answered again and not applied again.",
);
const ID: Param = optional("id", "string", "The item's id.");
const IDS: Param = optional("ids", "list of strings", "The ids of several items.");
const MAX_FILE_BYTES: Param =
    optional("max-file-bytes", "integer", "The largest file to read; 1 MiB by default.");
const FORMAT: Param =
    optional("format", "name", "The format; `:markdown` by default.").of(format_names);
const MAX_TOKENS: Param = optional(
    "max-tokens",
    "integer",
    "The rendering never has more tokens: the oldest unpinned items are left out first.",
);

fn kind_names() -> Vec<&'static str> {
    Kind::ALL.iter().map(|kind| kind.name()).collect()
}

fn origin_names() -> Vec<&'static str> {
    Origin::ALL.iter().map(|origin| origin.name()).collect()
}

fn format_names() -> Vec<&'static str> {
    Format::ALL.iter().map(|format| format.name()).collect()
}

fn topic_names() -> Vec<&'static str> {
    Topic::ALL.iter().map(|topic| topic.name()).collect()
}

/// Every method, in the order of the documentation.
pub static TABLE: &[Method] = &[
    Method {
        name: "add-context",
        family: "context",
        doc: "Adds a text as the newest item of a manager. When the manager is full, its oldest \
              unpinned item is evicted, and the answer says which.",
        params: &[
            required("content", "string", "The text, kept verbatim."),
            MANAGER,
            TYPE,
            METADATA,
            PINNED,
            LIVE,
            BRIEF,
            KEY,
        ],
        result: "The item, with `:manager`, its `:count` and `:total-tokens`, and `:evicted`.",
        pace: Pace::Prompt,
        run: context::add_context,
    },
    Method {
        name: "add-file",
        family: "context",
        doc: "Reads a file, or some of its lines, and adds it as an item. An explicit file is \
              added even when ignore rules name it.",
        params: &[
            required("path", "string", "The file's absolute name; `~/` is understood."),
            optional("start-line", "integer", "The first line, from 1."),
            optional("end-line", "integer", "The last line; the file's last by default."),
            MANAGER,
            optional("type", "name", "What the content is; `:file` by default.").of(kind_names),
            METADATA,
            MAX_FILE_BYTES,
            PINNED,
            LIVE,
            BRIEF,
            KEY,
        ],
        result: "As `add-context`.",
        pace: Pace::InOrder,
        run: files::add_file,
    },
    Method {
        name: "add-tree",
        family: "context",
        doc: "Walks a directory by its ignore rules and adds its files as items, or one item that \
              lists them with their sizes and tokens. Streams `progress`. Files that do not fit \
              the manager are refused as a whole, before any is added.",
        params: &[
            required("path", "string", "The directory's absolute name; `~/` is understood."),
            MANAGER,
            optional("mode", "name", "`:files` by default.").of(|| vec!["files", "listing"]),
            optional("project", "boolean", "Take the whole project that contains `path`."),
            optional("hidden", "boolean", "Take files whose name begins with a dot, too."),
            MAX_FILE_BYTES,
            KEY,
        ],
        result: "`:root :mode :files :bytes :tokens :ids :evicted`, and `:skipped` with the \
                 `:total` of each reason and the first hundred `:named`.",
        pace: Pace::Aside,
        run: files::add_tree,
    },
    Method {
        name: "update-context",
        family: "context",
        doc: "Gives an item another content, type, metadata or liveness; its id, time, place and \
              pin stay.",
        params: &[
            required("id", "string", "The item's id."),
            MANAGER,
            optional("content", "string", "The new text."),
            optional("type", "name", "The new type.").of(kind_names),
            optional("metadata", "plist", "The new metadata, in place of all the old.")
                .of(origin_names),
            optional("live", "boolean", "Whether the file is read again whenever it is shown."),
            BRIEF,
            KEY,
        ],
        result: "The item.",
        pace: Pace::Prompt,
        run: context::update_context,
    },
    Method {
        name: "remove-context",
        family: "context",
        doc: "Removes items; if one of them does not exist, none is removed.",
        params: &[ID, IDS, MANAGER, KEY],
        result: "`(:removed N)`.",
        pace: Pace::Prompt,
        run: context::remove_context,
    },
    Method {
        name: "move-context",
        family: "context",
        doc: "Puts an item in another place. Rendering and eviction follow the order.",
        params: &[
            required("id", "string", "The item's id."),
            optional("to", "integer", "How many items stand before it: 0 makes it the first."),
            optional("before", "string", "The id of the item that it goes before."),
            optional("after", "string", "The id of the item that it goes after."),
            MANAGER,
            KEY,
        ],
        result: "`(:ids IDS)`, the new order, oldest first.",
        pace: Pace::Prompt,
        run: context::move_context,
    },
    Method {
        name: "pin-context",
        family: "context",
        doc: "Exempts items from eviction, or with `:pinned nil` no longer.",
        params: &[
            ID,
            IDS,
            optional("pinned", "boolean", "`t` by default; `nil` unpins."),
            MANAGER,
            KEY,
        ],
        result: "`(:ids IDS :pinned BOOLEAN)`.",
        pace: Pace::Prompt,
        run: context::pin_context,
    },
    Method {
        name: "clear-context",
        family: "context",
        doc: "Removes every item of a manager, pinned ones too. `undo` brings them back.",
        params: &[MANAGER, KEY],
        result: "`(:removed N)`.",
        pace: Pace::Prompt,
        run: context::clear_context,
    },
    Method {
        name: "undo",
        family: "context",
        doc: "Takes the last change of a manager back, whatever it was; again goes further back, \
              at least the last hundred changes, across restarts.",
        params: &[MANAGER, KEY],
        result: "`(:undone METHOD)` with the `:count` and `:total-tokens` of the manager; the \
                 error `nothing-to-undo` when there is none.",
        pace: Pace::Prompt,
        run: context::undo,
    },
    Method {
        name: "get-context",
        family: "context",
        doc: "Gives items, oldest first, each with its `:state`: whether its file is as it was.",
        params: &[
            MANAGER,
            MANAGERS,
            TYPES,
            LIMIT,
            optional("ids", "list of strings", "Of those, only the items with these ids."),
            BRIEF,
        ],
        result: "A list of items.",
        pace: Pace::Prompt,
        run: query::get_context,
    },
    Method {
        name: "context-to-string",
        family: "context",
        doc: "Renders items for a model.",
        params: &[MANAGER, MANAGERS, TYPES, LIMIT, FORMAT, MAX_TOKENS],
        result: "A string; the error `budget-too-small` when not even one item could be cut to \
                 fit.",
        pace: Pace::Prompt,
        run: query::context_to_string,
    },
    Method {
        name: "render-context",
        family: "context",
        doc: "Renders items for a model and says what became of each.",
        params: &[MANAGER, MANAGERS, TYPES, LIMIT, FORMAT, MAX_TOKENS],
        result: "`:text :tokens :token-counter`, and `:report`: for each item its `:id`, its \
                 `:fate` (`:kept :cut :dropped`), its `:tokens` and the `:reason`.",
        pace: Pace::Prompt,
        run: query::render_context,
    },
    Method {
        name: "context-summary",
        family: "context",
        doc: "Says in few words what a manager holds.",
        params: &[MANAGER, MANAGERS],
        result: "`:count :types :preview :tokens`, the preview such as `3 items: Code, Error`.",
        pace: Pace::Prompt,
        run: query::context_summary,
    },
    Method {
        name: "refresh-context",
        family: "context",
        doc: "Reads items from their files again. A region is found again by its text when it \
              moved; when that is not in exactly one place, the item stays as it is, stale.",
        params: &[MANAGER, IDS, KEY],
        result: "`:updated N` and `:items`: for each its `:id`, its `:outcome` (`:unchanged \
                 :updated :moved :stale :missing`), and the `:reason` when stale.",
        pace: Pace::Aside,
        run: refresh::refresh_context,
    },
    Method {
        name: "list-managers",
        family: "context",
        doc: "Lists the managers that hold items or were configured, by name.",
        params: &[],
        result: "A list of `:manager :count :pinned :tokens :bytes :max-items :newest`.",
        pace: Pace::Prompt,
        run: query::list_managers,
    },
    Method {
        name: "configure-manager",
        family: "context",
        doc: "Sets a manager's capacity. When it shrinks, the oldest unpinned items are evicted.",
        params: &[
            MANAGER,
            optional("max-items", "integer", "From 1 to 1000; absent, nothing is changed."),
            KEY,
        ],
        result: "`:manager :max-items :evicted`.",
        pace: Pace::Prompt,
        run: context::configure_manager,
    },
    Method {
        name: "drop-manager",
        family: "context",
        doc: "Removes every item of a manager and its configuration. `undo` brings them back.",
        params: &[MANAGER, KEY],
        result: "`(:removed N)`.",
        pace: Pace::Prompt,
        run: context::drop_manager,
    },
    Method {
        name: "save-set",
        family: "context",
        doc: "Saves a copy of a manager's items under a name, in place of a set of that name.",
        params: &[required("name", "string", "The set's name."), MANAGER, KEY],
        result: "`:name :count :replaced`.",
        pace: Pace::Prompt,
        run: sets::save_set,
    },
    Method {
        name: "load-set",
        family: "context",
        doc: "Puts copies of a set's items in the place of a manager's items, or behind them.",
        params: &[
            required("name", "string", "The set's name."),
            optional("mode", "name", "`:replace` by default.").of(|| vec!["replace", "append"]),
            MANAGER,
            KEY,
        ],
        result: "`:name`, the new `:ids`, and the ids that `:left`.",
        pace: Pace::Prompt,
        run: sets::load_set,
    },
    Method {
        name: "drop-set",
        family: "context",
        doc: "Forgets a set. `undo` in the same manager brings it back.",
        params: &[required("name", "string", "The set's name."), MANAGER, KEY],
        result: "`:name :dropped`.",
        pace: Pace::Prompt,
        run: sets::drop_set,
    },
    Method {
        name: "list-sets",
        family: "context",
        doc: "Lists the sets, by name.",
        params: &[],
        result: "A list of `:name :count :tokens :created`.",
        pace: Pace::Prompt,
        run: sets::list_sets,
    },
    Method {
        name: "ping",
        family: "server",
        doc: "Answers at once.",
        params: &[],
        result: "`:pong`.",
        pace: Pace::Prompt,
        run: server::ping,
    },
    Method {
        name: "server-info",
        family: "server",
        doc: "Says what this server is: its version, dialects, limits and state folder.",
        params: &[],
        result: "`:name :version :dialects :pid :state :token-counter :limits :statistics \
                 :notices`.",
        pace: Pace::Prompt,
        run: server::server_info,
    },
    Method {
        name: "methods",
        family: "server",
        doc: "Lists the methods.",
        params: &[],
        result: "A list of `:name :doc :params :result`; a parameter has `:name :type :required \
                 :doc`, and `:values` where they are a closed list.",
        pace: Pace::Prompt,
        run: server::methods,
    },
    Method {
        name: "subscribe",
        family: "server",
        doc: "From now on notifies this connection of these topics and no others.",
        params: &[
            required("topics", "list of names", "The topics; `nil` for none.").of(topic_names)
        ],
        result: "`(:topics TOPICS)`.",
        pace: Pace::Prompt,
        run: server::subscribe,
    },
    Method {
        name: "cancel",
        family: "server",
        doc: "Cancels a call of this connection that is running; the call then answers with the \
              error -32800.",
        params: &[required("id", "integer or string", "The id of the call.")],
        result: "`(:cancelled BOOLEAN)`: whether the call was running.",
        pace: Pace::Prompt,
        run: server::cancel,
    },
    Method {
        name: "shutdown",
        family: "server",
        doc: "Ends the server once what runs is answered. The state stays.",
        params: &[],
        result: "`t`.",
        pace: Pace::Prompt,
        run: server::shutdown,
    },
];
