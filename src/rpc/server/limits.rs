//! The limits of the server in one list, which `initialize` returns and the
//! reference repeats.

use schemars::JsonSchema;
use serde::Serialize;

use crate::agent::items::{MAX_PDF_BYTES, MAX_PICTURE_BYTES, MAX_PIXELS};
use crate::agent::tools::MAX_RESULT_BYTES;
use crate::agent::{Limits, MAX_CALLS, MAX_ROUNDS, MOST_PICTURES, MOST_PROVIDERS};
use crate::context::manager::{DEFAULT_CAPACITY, MAX_CAPACITY};
use crate::engine::REPORTS_KEPT;
use crate::files::{
    DEFAULT_MAX_FILE_BYTES, DEFAULT_MAX_TREE_ENTRIES, LARGEST_RECORDING, MAX_NAMED_SKIPS,
    MOST_RECORDINGS,
};
use crate::provider::{
    MAX_ANSWER_BYTES, MAX_ANSWER_PIECES, MAX_LISTED_MODELS, MAX_MODEL_LIST_BYTES,
};
use crate::recorded::{LARGEST_MESSAGE, LONGEST_LINE};
use crate::rpc::agents::{self, MAX_DIGEST_BYTES, MAX_PUSHED_ITEMS, MAX_WAITING};
use crate::rpc::client_tools::{
    MAX_CLIENT_TOOLS, MAX_DESCRIPTION_BYTES, MAX_TOOL_NAME_BYTES, MAX_TOOL_PLACES, MAX_TOOL_SECONDS,
};
use crate::rpc::limits::{
    CALLS_ASIDE, CALLS_ELSEWHERE, EDITOR_PATIENCE_MS, LISTS_KEPT, MAX_BATCH, MAX_CANCEL_BYTES,
    MAX_HITS, PAGE_BYTES, WAITING_CALLS, WAITING_INPUTS, max_unread,
};
use crate::rpc::memories::{self, MAX_MEMORY_BYTES};
use crate::rpc::messages::MAX_ADDED;
use crate::rpc::notes::MAX_LISTED;
use crate::rpc::operations::MAX_OPERATIONS;
use crate::rpc::page::SMALLEST_PAGE;
use crate::rpc::params::{MAX_METADATA_BYTES, MAX_NAME_BYTES, MAX_NAMED, MAX_SHORT_BYTES};
use crate::rpc::sessions::MAX_SESSIONS;
use crate::store::{
    LONGEST_RUN, MOST_INDEXED, MOST_READ, MOST_WORDS, REMEMBERED_REQUESTS, UNDO_DEPTH,
};
use crate::sync::{LARGEST_BODY, MOST_BYTES, MOST_MACHINES, MOST_NAMED};
use crate::template;
use crate::value::MAX_DATA;
use crate::value::sexp::MAX_DEPTH;
use crate::wire::frame::{DEFAULT_MAX_MESSAGE, MAX_PAYLOAD};

/// Declares the limits, each with its value. `limits` stands for those that are configured.
macro_rules! limits {
    ($limits:ident => $($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        /// All limits that a client may meet.
        #[derive(Serialize, JsonSchema)]
        #[schemars(rename = "Limits")]
        pub(in crate::rpc) struct LimitsShown {
            $($(#[$doc])* $name: $type,)*
        }

        impl From<Limits> for LimitsShown {
            fn from($limits: Limits) -> Self {
                Self { $($name: $value,)* }
            }
        }
    };
}

impl LimitsShown {
    /// Returns the limits of a server with the default settings.
    pub(in crate::rpc) fn by_default() -> Self {
        Self::from(Limits {
            max_message_bytes: DEFAULT_MAX_MESSAGE,
            max_file_bytes: DEFAULT_MAX_FILE_BYTES,
            max_items: DEFAULT_CAPACITY,
        })
    }
}

limits! {
    limits =>
    /// Maximum size of a message in either direction, in bytes; the setting `max-message-bytes`. The
    /// files of a tree may be as large together, and unread answers twice as large; then the server
    /// hangs up.
    max_message_bytes: usize = limits.max_message_bytes;
    /// Maximum size of the unread answers of all clients together, in bytes. Then the server hangs up
    /// on those that have read nothing for the longest time.
    max_unread_bytes: usize = max_unread(limits.max_message_bytes);
    /// Maximum size of a message that has its length before it, in bytes.
    max_framed_bytes: usize = MAX_PAYLOAD.min(limits.max_message_bytes);
    /// Maximum depth of nesting in a message.
    max_depth: usize = MAX_DEPTH;
    /// Maximum number of values in a message; each atom and each list counts as one.
    max_data: usize = MAX_DATA;
    /// Maximum size of a `cancel`, in bytes.
    max_cancel_bytes: usize = MAX_CANCEL_BYTES.min(limits.max_message_bytes);
    /// Size of a page, in bytes, unless a call names another size.
    page_bytes: usize = PAGE_BYTES.min(limits.max_message_bytes);
    /// Minimum size of a page that a call may name, in bytes.
    min_page_bytes: usize = SMALLEST_PAGE;
    /// Maximum number of partly read lists that are kept for one connection; then the oldest is
    /// forgotten.
    lists_kept: usize = LISTS_KEPT;
    /// Maximum number of calls in a batch.
    max_batch_calls: usize = MAX_BATCH;
    /// Maximum size of a file that is read, in bytes, unless a call names another size; the setting
    /// `max-file-bytes`.
    max_file_bytes: u64 = limits.max_file_bytes.min(limits.max_message_bytes as u64);
    /// Maximum number of items in a manager that was not configured; the setting `max-items`. The manager of a project,
    /// folder, file, buffer or session holds up to `:max-capacity` items.
    max_items: usize = limits.max_items;
    /// Maximum number of items that a manager can be configured to hold.
    max_capacity: usize = MAX_CAPACITY;
    /// Maximum size of the name of a manager, set or session, and of a request key, in bytes.
    max_name_bytes: usize = MAX_NAME_BYTES;
    /// Maximum number of managers that a call or a session shows, or of items that a call changes.
    max_named: usize = MAX_NAMED;
    /// Maximum size of the metadata of an item, in bytes, with 16 more for each datum.
    max_metadata_bytes: usize = MAX_METADATA_BYTES;
    /// Maximum size of each short text, in bytes: a project, the name of a model, the id of a tool
    /// call, the name of a tool.
    max_short_bytes: usize = MAX_SHORT_BYTES;
    /// Maximum number of messages in one `add-message`.
    max_added_messages: usize = MAX_ADDED;
    /// Maximum size of a memory, in bytes.
    max_memory_bytes: usize = MAX_MEMORY_BYTES;
    /// Maximum number of hits that `list-sessions` returns for a query.
    max_search_hits: i64 = MAX_HITS;
    /// Maximum number of entries that `list-notes` returns.
    max_listed_notes: u64 = MAX_LISTED;
    /// Maximum number of entries that `list-sessions` returns, across all pages.
    max_listed_sessions: i64 = MAX_SESSIONS;
    /// Maximum number of entries that `list-operations` returns, across all pages.
    max_listed_operations: i64 = MAX_OPERATIONS;
    /// Maximum number of entries that `list-memories` returns, across all pages.
    max_listed_memories: i64 = memories::MAX_LISTED;
    /// Maximum number of windows that `session-report` explains, across all pages.
    max_explained_windows: usize = REPORTS_KEPT;
    /// Maximum number of items in `record-push`.
    max_pushed_items: usize = MAX_PUSHED_ITEMS;
    /// Maximum size of the id and of the digest of an item in `record-push`, in bytes.
    max_digest_bytes: usize = MAX_DIGEST_BYTES;
    /// Maximum number of items that wait for the next prompts of agents.
    max_waiting_pushes: usize = MAX_WAITING;
    /// Maximum number of sessions that `list-agents` returns, across all pages.
    max_listed_agent_sessions: u64 = agents::MAX_LISTED;
    /// Maximum number of providers.
    max_providers: usize = MOST_PROVIDERS;
    /// Minimum number of changes to a manager that can be undone.
    undo_steps: u64 = UNDO_DEPTH;
    /// Minimum number of request keys that are remembered.
    keys_remembered: i64 = REMEMBERED_REQUESTS;
    /// Maximum size of the part of a query that is read, from its beginning and its end, in bytes.
    /// Ranking messages reads a quarter of that.
    max_query_bytes: usize = MOST_READ;
    /// Maximum number of different words of a query. If any of them may match, only the 24 rarest
    /// count.
    max_query_words: usize = MOST_WORDS;
    /// Maximum size of a word that is read in one piece, in bytes; longer ones are read in pieces.
    max_word_bytes: usize = LONGEST_RUN;
    /// Maximum size of the part of a message that is indexed for search, in bytes.
    max_indexed_bytes: usize = MOST_INDEXED;
    /// Maximum number of entries of a directory tree.
    max_tree_entries: u64 = DEFAULT_MAX_TREE_ENTRIES;
    /// Maximum number of entries that `:skipped` of `add-tree` names.
    max_named_skips: usize = MAX_NAMED_SKIPS;
    /// Maximum size of a recording that `import-sessions` reads, in bytes.
    max_recording_bytes: u64 = LARGEST_RECORDING;
    /// Maximum number of recordings that `import-sessions` reads from a folder.
    max_recordings: usize = MOST_RECORDINGS;
    /// Maximum size of the changes that one exchange with another machine brings, in bytes; the next
    /// exchange goes on.
    max_exchanged_bytes: usize = MOST_BYTES;
    /// Maximum number of machines that one exchange brings; the next exchange goes on.
    max_exchanged_machines: usize = MOST_NAMED;
    /// Maximum number of machines whose changes are kept.
    max_machines: usize = MOST_MACHINES;
    /// Maximum size of one change of a machine, in bytes.
    max_change_bytes: usize = LARGEST_BODY;
    /// Maximum size of a line of a recording, in bytes; longer ones are counted and left out.
    max_recorded_line_bytes: usize = LONGEST_LINE;
    /// Maximum size of the text of a recorded message, in bytes; the rest is cut off.
    max_recorded_text_bytes: usize = LARGEST_MESSAGE;
    /// Maximum size of the text, reasoning and calls of a model's answer, in bytes; four times as
    /// much as they come.
    max_answer_bytes: usize = MAX_ANSWER_BYTES;
    /// Maximum number of pieces in which such an answer comes.
    max_answer_pieces: usize = MAX_ANSWER_PIECES;
    /// Maximum size of a provider's list of models, in bytes.
    max_model_list_bytes: usize = MAX_MODEL_LIST_BYTES;
    /// Maximum number of models in such a list.
    max_listed_models: usize = MAX_LISTED_MODELS;
    /// Maximum number of calls of tools that one answer of a model may make; further ones are
    /// refused.
    max_answer_calls: usize = MAX_CALLS;
    /// Maximum number of pictures and PDFs in a request; the newest go along.
    max_pictures: usize = MOST_PICTURES;
    /// Maximum size of a picture, in bytes.
    max_picture_bytes: u64 = MAX_PICTURE_BYTES;
    /// Maximum size of a PDF, in bytes.
    max_pdf_bytes: u64 = MAX_PDF_BYTES;
    /// Maximum width and height of a picture.
    max_picture_pixels: u64 = MAX_PIXELS;
    /// Maximum number of requests with tools in one turn. Tool calls in the answer to the last one
    /// are refused.
    max_rounds: u64 = MAX_ROUNDS;
    /// Maximum size of a tool's result that a model sees, in bytes; the rest is cut.
    max_tool_result_bytes: usize = MAX_RESULT_BYTES;
    /// Maximum number of tools that a connection may bring.
    max_client_tools: usize = MAX_CLIENT_TOOLS;
    /// Maximum size of the name of a client's tool, in bytes.
    max_tool_name_bytes: usize = MAX_TOOL_NAME_BYTES;
    /// Maximum size of the description and the schema of a client's tool together, in bytes.
    max_tool_description_bytes: usize = MAX_DESCRIPTION_BYTES;
    /// Maximum number of sessions, and of projects, in which a client's tool is offered.
    max_tool_places: usize = MAX_TOOL_PLACES;
    /// Maximum time that a call of a client's tool may take, in seconds; 60 unless the client says
    /// otherwise.
    max_tool_seconds: u64 = MAX_TOOL_SECONDS;
    /// Maximum size of a template, in bytes.
    max_template_bytes: usize = template::MAX_TEMPLATE_BYTES;
    /// Maximum size of the text of a filled template, in bytes.
    max_rendered_template_bytes: usize = template::MAX_RENDERED_BYTES;
    /// Maximum number of calls that wait on a connection; then the server stops reading from it.
    max_waiting_calls: usize = WAITING_CALLS;
    /// Maximum number of calls of a connection that do slow work at the same time, such as reading
    /// directories.
    max_calls_aside: usize = CALLS_ASIDE;
    /// Maximum number of calls of a connection that wait at the same time for outside work, such as
    /// answers of models.
    max_calls_elsewhere: usize = CALLS_ELSEWHERE;
    /// Maximum number of inputs of a REPL that wait.
    max_waiting_inputs: usize = WAITING_INPUTS;
    /// Maximum time to wait for editors that were asked for unsaved text, in milliseconds.
    editor_patience_ms: u64 = EDITOR_PATIENCE_MS;
}
