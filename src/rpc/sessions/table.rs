//! Methods of the session family for sessions, their messages, and rollback.

use super::{KEY, Method, Pace, Param, optional, required};
use crate::rpc::{checkpoints, messages, sessions};
use crate::session::message::{Phase, Role};

pub(super) const SESSION: Param = optional(
    "session",
    "string",
    "Name or id of the session, `ses-N`; defaults to the one last opened or switched to.",
)
.or_current(|_| true);
const THE_SESSION: Param = required("session", "string", "Name or id of the session, `ses-N`.");
const CHECKPOINT: Param =
    optional("checkpoint", "string", "Id of the checkpoint, `chk-N`; defaults to the last one.");
const FORK_FROM: Param = optional(
    "checkpoint",
    "string",
    "Id of the checkpoint, `chk-N`; defaults to the session's present state.",
);
pub(super) const PHASE: Param = optional("phase", "name", "Phase of the work.").of(phase_names);
const ROLE: Param = optional("role", "name", "Speaker; defaults to `:user`.").of(role_names);
const ROW: &str = "The session: `:session` (its name), `:id`, `:manager`, `:project`, \
                   `:messages`, `:turns`, `:tokens`, `:created`, `:updated`, `:current`.";

pub(super) fn phase_names() -> Vec<&'static str> {
    Phase::ALL.iter().map(|phase| phase.name()).collect()
}

fn role_names() -> Vec<&'static str> {
    Role::ALL.iter().map(|role| role.name()).collect()
}

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    Method {
        name: "open-session",
        family: "session",
        doc: "Makes a session the current one, creating it if needed.",
        params: &[
            optional(
                "name",
                "string",
                "Name, or the id of an existing session; defaults to a new `conversation-N`.",
            ),
            optional("manager", "string", "Manager of its items; defaults to one of its own."),
            optional("project", "string", "Folder of the project that it is about."),
            optional("manage", "boolean", "Have a template manage its history."),
            optional("template", "string", "Template to use; implies `:manage t`."),
            optional(
                "current",
                "boolean",
                "Make it the current session; defaults to `t`. With `nil`, the current session stays \
                 the same.",
            ),
            KEY,
        ],
        result: "The session, with `:created-now`.",
        pace: Pace::Prompt,
        run: sessions::open_session,
    },
    Method {
        name: "list-sessions",
        family: "session",
        doc: "Lists the sessions, last changed first.",
        params: &[
            optional("project", "string", "List only those of this project."),
            optional("deleted", "boolean", "Include deleted ones."),
            optional("limit", "integer", "Maximum number; `nil` means all."),
        ],
        result: "A list of sessions.",
        pace: Pace::Prompt,
        run: sessions::list_sessions,
    },
    Method {
        name: "current-session",
        family: "session",
        doc: "Returns the session that calls without `:session` use.",
        params: &[],
        result: ROW,
        pace: Pace::Prompt,
        run: sessions::current_session,
    },
    Method {
        name: "switch-session",
        family: "session",
        doc: "Makes a session the one that calls without `:session` use.",
        params: &[THE_SESSION],
        result: ROW,
        pace: Pace::Prompt,
        run: sessions::switch_session,
    },
    Method {
        name: "rename-session",
        family: "session",
        doc: "Renames a session.",
        params: &[THE_SESSION, required("name", "string", "New name."), KEY],
        result: ROW,
        pace: Pace::Prompt,
        run: sessions::rename_session,
    },
    Method {
        name: "delete-session",
        family: "session",
        doc: "Deletes a session. Its content is kept; `restore-session` restores it.",
        params: &[THE_SESSION, KEY],
        result: "The session, with `:deleted`.",
        pace: Pace::Prompt,
        run: sessions::delete_session,
    },
    Method {
        name: "restore-session",
        family: "session",
        doc: "Restores a deleted session: the one with this name that was deleted last.",
        params: &[THE_SESSION, KEY],
        result: ROW,
        pace: Pace::Prompt,
        run: sessions::restore_session,
    },
    Method {
        name: "search-sessions",
        family: "session",
        doc: "Searches the names and messages of all sessions. Finds identifiers by their parts \
              and words in all their forms.",
        params: &[
            required("query", "string", "Words to find."),
            optional("limit", "integer", "Maximum number of hits, up to 1000; defaults to 20."),
            optional("deleted", "boolean", "Search deleted sessions too."),
        ],
        result: "A list of `:session :id :score :snippet`, with `:message :role` if a message \
                 matches rather than the name; best first.",
        pace: Pace::Prompt,
        run: sessions::search_sessions,
    },
    Method {
        name: "export-session",
        family: "session",
        doc: "Exports a session's complete log, and the state of each message.",
        params: &[
            SESSION,
            optional("format", "name", "Markdown for people, or JSON; defaults to `:markdown`.")
                .of(|| vec!["markdown", "json"]),
        ],
        result: "`:session :messages :text`.",
        pace: Pace::Prompt,
        run: sessions::export_session,
    },
    Method {
        name: "import-session",
        family: "session",
        doc: "Creates a session from the JSON of `export-session` and makes it current. Nothing is \
              replaced: if the name is taken, a number is added.",
        params: &[
            required("text", "string", "The JSON."),
            optional(
                "name",
                "string",
                "Name of the new session; defaults to that of the exported one.",
            ),
            KEY,
        ],
        result: ROW,
        pace: Pace::InOrder,
        run: sessions::import_session,
    },
    Method {
        name: "add-message",
        family: "session",
        doc: "Appends one or more messages to a session's log.",
        params: &[
            SESSION,
            ROLE,
            optional("content", "string", "The text."),
            PHASE,
            optional(
                "tool-calls",
                "list of plists",
                "Tool calls in an assistant's message: `:id :name :arguments`.",
            ),
            optional("tool-call-id", "string", "Id of the call that a tool's message answers."),
            optional("pinned", "boolean", "Never leave the message out of a window."),
            optional("timestamp", "integer", "Time in Unix seconds; defaults to now."),
            optional("messages", "list of plists", "Several messages instead of one."),
            KEY,
        ],
        result: "`:id`, `:ids`, the session's `:messages` and `:tokens`, and `:without-call` with \
                 the ids of results whose call is not in the log.",
        pace: Pace::InOrder,
        run: messages::add_message,
    },
    Method {
        name: "get-messages",
        family: "session",
        doc: "Returns messages of a session, oldest first.",
        params: &[
            SESSION,
            optional(
                "view",
                "name",
                "`:conversation` (the default): without messages that were rolled back; `:view`: \
                 only messages in view; `:log`: all messages.",
            )
            .of(|| vec!["conversation", "view", "log"]),
            optional("ids", "list of strings", "Return only these, `msg-N`."),
            optional("from", "string", "First message, `msg-N`."),
            optional("to", "string", "Last message, `msg-N`."),
            optional("roles", "list of names", "Return only messages by these speakers.")
                .of(role_names),
            optional("limit", "integer", "Maximum number, the most recent ones."),
        ],
        result: "A list of `:id :role :content :timestamp :phase :tokens :token-counter :pinned \
                 :in-view`, with `:tool-calls` and `:tool-call-id` if there are any.",
        pace: Pace::Prompt,
        run: messages::get_messages,
    },
    Method {
        name: "pin-message",
        family: "session",
        doc: "Pins messages, so that they are never left out, or unpins them.",
        params: &[
            SESSION,
            optional("id", "string", "Id of the message, `msg-N`."),
            optional("ids", "list of strings", "Ids of several messages."),
            optional("pinned", "boolean", "Defaults to `t`."),
            KEY,
        ],
        result: "`:session :ids :pinned`.",
        pace: Pace::Prompt,
        run: messages::pin_message,
    },
    Method {
        name: "checkpoint",
        family: "session",
        doc: "Takes a checkpoint: a snapshot of the session's position in its log, its view, its \
              pins, and its manager's items.",
        params: &[
            SESSION,
            optional("message", "string", "Purpose of the checkpoint; defaults to `Checkpoint`."),
            KEY,
        ],
        result: "`:checkpoint :session :turn`; `nil` if the session keeps no versions.",
        pace: Pace::Prompt,
        run: checkpoints::checkpoint,
    },
    Method {
        name: "list-checkpoints",
        family: "session",
        doc: "Lists a session's checkpoints, oldest first.",
        params: &[SESSION],
        result: "A list of `:checkpoint :message :turn :position :automatic :created`.",
        pace: Pace::Prompt,
        run: checkpoints::list_checkpoints,
    },
    Method {
        name: "rollback",
        family: "session",
        doc: "Goes back to a checkpoint. Later messages leave the conversation but stay in the \
              log. The checkpoint is kept, and `undo-rollback` undoes the rollback.",
        params: &[SESSION, CHECKPOINT, KEY],
        result: "`:session :commit-restored :turns-lost :messages-lost`.",
        pace: Pace::Prompt,
        run: checkpoints::rollback,
    },
    Method {
        name: "undo-rollback",
        family: "session",
        doc: "Undoes the last rollback. Messages since then leave the conversation but stay in the \
              log.",
        params: &[SESSION, KEY],
        result: "`:session :turns-restored :turns-lost`.",
        pace: Pace::Prompt,
        run: checkpoints::undo_rollback,
    },
    Method {
        name: "fork-session",
        family: "session",
        doc: "Creates a session that continues from another, or from one of its checkpoints, with \
              copies of its items, and makes it current.",
        params: &[
            SESSION,
            FORK_FROM,
            optional("name", "string", "Name; defaults to a new `conversation-N`."),
            optional("manager", "string", "Manager of its items; defaults to one of its own."),
            KEY,
        ],
        result: "The new session, with `:forked-from` and `:shared-messages`.",
        pace: Pace::Prompt,
        run: checkpoints::fork_session,
    },
    Method {
        name: "list-revisions",
        family: "session",
        doc: "Lists the changes of a session's view, newest first: prunings, summaries, pins and \
              rollbacks.",
        params: &[SESSION, optional("limit", "integer", "Maximum number; defaults to 50.")],
        result: "A list of `:revision :method :position :created`.",
        pace: Pace::Prompt,
        run: checkpoints::list_revisions,
    },
    Method {
        name: "restore-revision",
        family: "session",
        doc: "Restores the view of a revision, which undoes later prunings and summaries. Messages \
              that came into view since then stay.",
        params: &[
            SESSION,
            required("revision", "integer", "Number of the revision; 0 is the beginning."),
            KEY,
        ],
        result: "`:session :restored :revision`.",
        pace: Pace::Prompt,
        run: checkpoints::restore_revision,
    },
];
