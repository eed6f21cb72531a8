//! The methods of the memory family.

use super::{KEY, Method, Pace, Param, optional, required};
use crate::rpc::memories;

const OF_SESSION: Param = optional(
    "session",
    "string",
    "Only what this session may be grounded with: its own, its project's, and what is for \
     everywhere.",
);
const OF_PROJECT: Param =
    optional("project", "string", "Only what is for this project or for everywhere.");

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    Method {
        name: "remember",
        family: "memory",
        doc: "Remembers a text for later turns, of one session, of a project's, or of all.",
        params: &[
            required("content", "string", "The text, at most 64 KiB."),
            optional(
                "scope",
                "name",
                "`:session` with `:session`, `:project` with `:project`, else `:everywhere`.",
            )
            .of(memories::scope_names),
            optional("session", "string", "The session's name or id.")
                .or_current(memories::is_for_session),
            optional("project", "string", "The project's folder; the session's by default."),
            KEY,
        ],
        result: "The memory: `:id :content :kind :scope :created :accessed :accesses`; with \
                 embeddings configured also `:embedding`, `:used` or why it failed.",
        pace: Pace::InOrder,
        run: memories::remember,
    },
    Method {
        name: "ground-query",
        family: "memory",
        doc: "Finds the memories that fit a text best, by its words, their neighbours in the \
              conversation, how recent and how strong they are, and by its meaning when embeddings \
              are configured. Being found makes them stronger.",
        params: &[
            required("query", "string", "The text."),
            OF_SESSION,
            OF_PROJECT,
            optional("limit", "integer", "At most so many; 5 by default."),
        ],
        result: "`:memories`, each with its `:relevance` from 0 to 1; `:summary`, the text for a \
                 window; `:relevance-scores`, and their mean `:relevance`, 0 when nothing fits; \
                 `:embedding`, when one is configured, `:used` or why it failed, so that only \
                 words counted.",
        pace: Pace::Prompt,
        run: memories::ground_query,
    },
    Method {
        name: "forget",
        family: "memory",
        doc: "Forgets a memory: it is no longer found. With `:forgotten nil` it is brought back.",
        params: &[
            required("id", "string", "The memory's id, `mem-N`."),
            optional("forgotten", "boolean", "`t` by default."),
            KEY,
        ],
        result: "The memory, with the time at which it was `:forgotten`.",
        pace: Pace::Prompt,
        run: memories::forget,
    },
    Method {
        name: "list-memories",
        family: "memory",
        doc: "Lists memories, newest first.",
        params: &[
            OF_SESSION,
            OF_PROJECT,
            optional("forgotten", "boolean", "Forgotten ones too."),
            optional("limit", "integer", "At most so many; 100 by default."),
        ],
        result: "A list of memories.",
        pace: Pace::Prompt,
        run: memories::list_memories,
    },
];
