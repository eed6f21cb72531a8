//! The methods of the context family.

use super::{edit, files, query, refresh, sets, tree};
use crate::context::filter;
use crate::context::item::{Kind, Origin};
use crate::context::render::Format;
use crate::rpc::method::{KEY, Method, Pace, Param, Run, optional, required, typed};

const MANAGER: Param = optional(
    "manager",
    "string",
    "Name of the manager; defaults to the shared manager `*shared*`.",
);
const MANAGERS: Param = optional(
    "managers",
    "list of strings",
    "Several managers instead of one; their items are merged by time.",
);
const TYPES: Param = optional(
    "types",
    "list of names",
    "Include only items of these types or origins; `nil` means all. `file` matches both.",
)
.of(filter::valid_names);
const LIMIT: Param = optional(
    "limit",
    "integer",
    "Maximum number of items, the most recent ones; `nil` means all, 0 none.",
);
const TYPE: Param =
    optional("type", "name", "Type of the content; defaults to `:code`.").of(kind_names);
const METADATA: Param = optional(
    "metadata",
    "plist",
    "Metadata, stored completely. Known names are `:filename`, `:project`, `:start-line`, `:end-line`, \
     `:language`, `:symbol`, `:package` and `:origin`; the values of `:origin` are listed here.",
)
.of(origin_names);
const PINNED: Param =
    optional("pinned", "boolean", "Exempt the item from eviction; defaults to `nil`.");
const LIVE: Param = optional(
    "live",
    "boolean",
    "Read the file again whenever the item is shown or rendered; defaults to `nil`.",
);
const BRIEF: Param = optional("brief", "boolean", "Leave the content out of the result.");
const ID: Param = optional("id", "string", "Id of the item.");
const IDS: Param = optional("ids", "list of strings", "Ids of several items.");
const MAX_FILE_BYTES: Param =
    optional("max-file-bytes", "integer", "Maximum size of a file in bytes; defaults to 1 MiB.");
const FORMAT: Param =
    optional("format", "name", "Output format; defaults to `:markdown`.").of(format_names);
const MAX_TOKENS: Param = optional(
    "max-tokens",
    "integer",
    "Maximum number of tokens in the rendering; the oldest unpinned items are left out first.",
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

const fn method(name: &'static str, run: Run) -> Method {
    Method::new("context", name, run)
}

/// In the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method("add-context", typed!(edit::add_context))
        .doc(
            "Adds a text as the newest item of a manager. When the manager is full, its oldest \
              unpinned item is evicted; the result names it.",
        )
        .params(&[
            required("content", "string", "The text; stored verbatim."),
            MANAGER,
            TYPE,
            METADATA,
            PINNED,
            LIVE,
            BRIEF,
            KEY,
        ])
        .result("The item, with `:manager`, its `:count` and `:total-tokens`, and `:evicted`."),
    method("add-file", typed!(files::add_file))
        .doc(
            "Reads a file, or some of its lines, and adds it as an item. Ignore rules do not \
              apply to a file that is named.",
        )
        .params(&[
            required("path", "string", "Absolute path of the file; may begin with `~/`."),
            optional("start-line", "integer", "First line, counted from 1."),
            optional("end-line", "integer", "Last line; defaults to the end of the file."),
            MANAGER,
            optional("type", "name", "Type of the content; defaults to `:file`.").of(kind_names),
            METADATA,
            MAX_FILE_BYTES,
            PINNED,
            LIVE,
            BRIEF,
            KEY,
        ])
        .result("Same as `add-context`.")
        .pace(Pace::InOrder),
    method("add-tree", typed!(tree::add_tree))
        .doc(
            "Walks a directory, following its ignore rules, and adds its files as items, or a \
              single item that lists them with their sizes and tokens. Streams `progress`. If the \
              files do not all fit the manager, none is added.",
        )
        .params(&[
            required("path", "string", "Absolute path of the directory; may begin with `~/`."),
            MANAGER,
            optional("mode", "name", "Defaults to `:files`.").of(|| vec!["files", "listing"]),
            optional("project", "boolean", "Add the whole project that contains `path`."),
            optional("hidden", "boolean", "Include files whose name begins with a dot."),
            MAX_FILE_BYTES,
            KEY,
        ])
        .result(
            "`:root :mode :files :bytes :tokens :ids :evicted`, and `:skipped` with the \
                 `:total` for each reason and the first hundred files as `:named`.",
        )
        .pace(Pace::Aside),
    method("update-context", typed!(edit::update_context))
        .doc(
            "Changes an item's content, type, metadata or liveness. Its id, time, position and \
              pin stay the same.",
        )
        .params(&[
            required("id", "string", "The item's id."),
            MANAGER,
            optional("content", "string", "New text."),
            optional("type", "name", "New type.").of(kind_names),
            optional("metadata", "plist", "New metadata, replacing all of the old.")
                .of(origin_names),
            optional("live", "boolean", "Read the file again whenever the item is shown."),
            BRIEF,
            KEY,
        ])
        .result("The item."),
    method("remove-context", typed!(edit::remove_context))
        .doc("Removes items. If one of them does not exist, none is removed.")
        .params(&[ID, IDS, MANAGER, KEY])
        .result("`(:removed N)`."),
    method("move-context", typed!(edit::move_context))
        .doc("Moves an item to another position. Rendering and eviction follow the order.")
        .params(&[
            required("id", "string", "The item's id."),
            optional("to", "integer", "New position, counted from 0."),
            optional("before", "string", "Id of the item to put it before."),
            optional("after", "string", "Id of the item to put it after."),
            MANAGER,
            KEY,
        ])
        .result("`(:ids IDS)`, the new order, oldest first."),
    method("pin-context", typed!(edit::pin_context))
        .doc("Pins items, which exempts them from eviction, or unpins them.")
        .params(&[
            ID,
            IDS,
            optional("pinned", "boolean", "Defaults to `t`; `nil` unpins."),
            MANAGER,
            KEY,
        ])
        .result("`(:ids IDS :pinned BOOLEAN)`."),
    method("clear-context", typed!(edit::clear_context))
        .doc("Removes every item of a manager, even pinned ones. `undo` restores them.")
        .params(&[MANAGER, KEY])
        .result("`(:removed N)`."),
    method("undo", typed!(edit::undo))
        .doc(
            "Undoes the last change of a manager. Further calls go further back. At least the \
              last hundred changes are kept, across restarts.",
        )
        .params(&[MANAGER, KEY])
        .result(
            "`(:undone METHOD)` with the `:count` and `:total-tokens` of the manager; the \
                 error `nothing-to-undo` when there is none.",
        ),
    method("get-context", typed!(query::get_context))
        .doc(
            "Returns items, oldest first. The `:state` of each tells whether its file has changed.",
        )
        .params(&[
            MANAGER,
            MANAGERS,
            TYPES,
            LIMIT,
            optional("ids", "list of strings", "Return only the items with these ids."),
            BRIEF,
        ])
        .result("A list of items."),
    method("context-to-string", typed!(query::context_to_string))
        .doc("Renders items for a model.")
        .params(&[MANAGER, MANAGERS, TYPES, LIMIT, FORMAT, MAX_TOKENS])
        .result(
            "A string; the error `budget-too-small` when not even one item can be cut to \
                 fit.",
        ),
    method("render-context", typed!(query::render_context))
        .doc("Renders items for a model and reports what happened to each.")
        .params(&[MANAGER, MANAGERS, TYPES, LIMIT, FORMAT, MAX_TOKENS])
        .result(
            "`:text :tokens :token-counter`, and `:report`: for each item its `:id`, its \
                 `:fate` (`:kept :cut :dropped`), its `:tokens` and the `:reason`.",
        ),
    method("context-summary", typed!(query::context_summary))
        .doc("Summarizes the content of a manager.")
        .params(&[MANAGER, MANAGERS])
        .result("`:count :types :preview :tokens`; a preview looks like `3 items: Code, Error`."),
    method("refresh-context", typed!(refresh::refresh_context))
        .doc(
            "Reads items from their files again. A region that has moved is found by its text. If \
              the text does not occur exactly once, the item stays unchanged and is stale.",
        )
        .params(&[MANAGER, IDS, KEY])
        .result(
            "`:updated N` and `:items`: for each its `:id`, its `:outcome` (`:unchanged \
                 :updated :moved :stale :missing`), and the `:reason` when stale.",
        )
        .pace(Pace::Aside),
    method("list-managers", typed!(query::list_managers))
        .doc("Lists the managers that hold items or were configured, sorted by name.")
        .result("A list of `:manager :count :pinned :tokens :bytes :max-items :newest`."),
    method("configure-manager", typed!(edit::configure_manager))
        .doc("Sets a manager's capacity. If it shrinks, the oldest unpinned items are evicted.")
        .params(&[
            MANAGER,
            optional(
                "max-items",
                "integer",
                "Capacity from 1 to 1000; if absent, nothing changes.",
            ),
            KEY,
        ])
        .result("`:manager :max-items :evicted`."),
    method("drop-manager", typed!(edit::drop_manager))
        .doc("Removes every item of a manager and its configuration. `undo` restores them.")
        .params(&[MANAGER, KEY])
        .result("`(:removed N)`."),
    method("save-set", typed!(sets::save_set))
        .doc("Saves a manager's items as a named set, replacing a set with that name.")
        .params(&[required("name", "string", "The set's name."), MANAGER, KEY])
        .result("`:name :count :replaced`."),
    method("load-set", typed!(sets::load_set))
        .doc("Replaces a manager's items with copies of a set's items, or appends the copies.")
        .params(&[
            required("name", "string", "The set's name."),
            optional("mode", "name", "Defaults to `:replace`.").of(|| vec!["replace", "append"]),
            MANAGER,
            KEY,
        ])
        .result("`:name`, the new `:ids`, and in `:left` the ids of the items that left."),
    method("drop-set", typed!(sets::drop_set))
        .doc("Deletes a set. `undo` in the same manager restores it.")
        .params(&[required("name", "string", "The set's name."), MANAGER, KEY])
        .result("`:name :dropped`."),
    method("list-sets", typed!(sets::list_sets))
        .doc("Lists the sets, sorted by name.")
        .result("A list of `:name :count :tokens :created`."),
];
