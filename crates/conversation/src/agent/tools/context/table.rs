//! The table of context tools.

use super::{Argument, ContextTool};

const fn required(name: &'static str, kind: &'static str, meaning: &'static str) -> Argument {
    Argument { name, kind, meaning, required: true }
}

const fn optional(name: &'static str, kind: &'static str, meaning: &'static str) -> Argument {
    Argument { name, kind, meaning, required: false }
}

/// All tools, in the order in which they are offered.
pub static ALL: &[ContextTool] = &[
    ContextTool {
        name: "list_context",
        description: "Lists the items of your context with their ids, types, sources and tokens.",
        arguments: &[],
        phrase: "list the context",
    },
    ContextTool {
        name: "read",
        description: "Returns an item of your context in full, or a message that your window shows \
                      in part or leaves out. Of a message, it can return a range of lines.",
        arguments: &[
            required("id", "string", "The id of the item or message, such as ctx-7 or msg-12."),
            optional("start_line", "integer", "The first line of a message, counted from 1."),
            optional("end_line", "integer", "The last line of a message."),
        ],
        phrase: "read",
    },
    ContextTool {
        name: "add_file",
        description: "Adds a file, or some of its lines, to your context.",
        arguments: &[
            required("path", "string", "The file, absolute or relative to the project."),
            optional("start_line", "integer", "The first line, counted from 1."),
            optional("end_line", "integer", "The last line."),
        ],
        phrase: "add the file",
    },
    ContextTool {
        name: "add_text",
        description: "Adds a text of your own to your context.",
        arguments: &[required("content", "string", "The text to add.")],
        phrase: "add a text",
    },
    ContextTool {
        name: "drop_context",
        description: "Removes items from your context; the user can restore them.",
        arguments: &[required("ids", "array", "The ids of the items.")],
        phrase: "drop the items",
    },
    ContextTool {
        name: "search_memory",
        description: "Finds memories of earlier work that match a text.",
        arguments: &[required("query", "string", "The text to match.")],
        phrase: "search the memories for",
    },
    ContextTool {
        name: "search_session",
        description: "Searches this conversation for words, including messages that you do not \
                      see.",
        arguments: &[required("query", "string", "The words to search for.")],
        phrase: "search the conversation for",
    },
    #[cfg(feature = "map")]
    ContextTool {
        name: "map_project",
        description: "Returns the project's files and definitions that matter for a task, beside \
                      those in your context.",
        arguments: &[
            required("query", "string", "The task or question, or an error with its trace."),
            optional("max_tokens", "integer", "The maximum number of tokens."),
        ],
        phrase: "map the project for",
    },
];
