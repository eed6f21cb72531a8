//! The methods of the context family.

use super::{KEY, Method, Pace, Param, optional, required};
use crate::context::filter;
use crate::context::item::{Kind, Origin};
use crate::context::render::Format;
use crate::rpc::{context, files, query, refresh, sets};

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

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
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
];
