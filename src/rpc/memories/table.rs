//! The methods of the memory family.

use crate::rpc::method::{KEY, Method, Pace, Param, Run, optional, required, typed};

const OF_SESSION: Param = optional(
    "session",
    "string",
    "Include only memories for this session: its own, its project's, and those for everywhere.",
);
const OF_PROJECT: Param =
    optional("project", "string", "Include only memories for this project or for everywhere.");

const fn method(name: &'static str, run: Run) -> Method {
    Method::new("memory", name, run)
}

/// In the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method("remember", typed!(super::remember))
        .doc("Stores a text as a memory for later turns of a session, of a project, or everywhere.")
        .params(&[
            required("content", "string", "The text; at most 64 KiB."),
            optional(
                "scope",
                "name",
                "`:session` with `:session`, `:project` with `:project`, else `:everywhere`.",
            )
            .of(super::scope_names),
            optional("session", "string", "Name or id of the session.")
                .or_current(super::is_for_session),
            optional("project", "string", "Folder of the project; defaults to the session's."),
            KEY,
        ])
        .result(
            "The memory: `:id :content :kind :scope :created :accessed :accesses`; if \
                 embeddings are configured also `:embedding`: `:used`, or why it failed.",
        )
        .pace(Pace::InOrder),
    method("ground-query", typed!(super::ground_query))
        .doc(
            "Finds the memories that match a text best: by words, by neighbours in the \
              conversation, by age and strength, and, if embeddings are configured, by meaning. \
              Being found makes a memory stronger.",
        )
        .params(&[
            required("query", "string", "The text."),
            OF_SESSION,
            OF_PROJECT,
            optional("limit", "integer", "Maximum number of memories; defaults to 5."),
        ])
        .result(
            "`:memories`, each with its `:relevance` from 0 to 1; `:summary`, the text for a \
                 window; `:relevance-scores`, and their mean `:relevance`, 0 if nothing matches; \
                 `:embedding`, if embeddings are configured: `:used`, or why it failed and only \
                 words counted.",
        ),
    method("forget", typed!(super::forget))
        .doc("Forgets a memory, so that it is no longer found. `:forgotten nil` restores it.")
        .params(&[
            required("id", "string", "Id of the memory, `mem-N`."),
            optional("forgotten", "boolean", "Defaults to `t`."),
            KEY,
        ])
        .result("The memory, with the time when it was `:forgotten`."),
    method("list-memories", typed!(super::list_memories))
        .doc("Lists memories, newest first.")
        .params(&[
            OF_SESSION,
            OF_PROJECT,
            optional("forgotten", "boolean", "Include forgotten ones."),
            optional("limit", "integer", "Maximum number of memories; defaults to 100."),
        ])
        .result("A list of memories."),
];
