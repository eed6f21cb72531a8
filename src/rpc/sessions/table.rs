//! Methods of the session family for sessions, their messages, and rollback.

use super::{checkpoints, messages};
use crate::rpc::method::{
    KEY, Method, PHASE, Pace, Param, Run, SESSION, optional, required, typed,
};
use crate::session::message::Role;

const THE_SESSION: Param = required("session", "string", "Name or id of the session, `ses-N`.");
const CHECKPOINT: Param =
    optional("checkpoint", "string", "Id of the checkpoint, `chk-N`; defaults to the last one.");
const FORK_FROM: Param = optional(
    "checkpoint",
    "string",
    "Id of the checkpoint, `chk-N`; defaults to the session's present state.",
);
const ROLE: Param = optional("role", "name", "Speaker; defaults to `:user`.").of(role_names);
const ROW: &str = "The session: `:session` (its name), `:id`, `:manager`, `:project`, \
                   `:messages`, `:turns`, `:tokens`, `:created`, `:updated`, `:current`.";

fn role_names() -> Vec<&'static str> {
    Role::ALL.iter().map(|role| role.name()).collect()
}

const fn method(name: &'static str, run: Run) -> Method {
    Method::new("session", name, run)
}

/// In the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method("open-session", typed!(super::open_session))
        .doc("Makes a session the current one, creating it if needed.")
        .params(&[
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
        ])
        .result("The session, with `:created-now`."),
    method("list-sessions", typed!(super::list_sessions))
        .doc("Lists the sessions, last changed first.")
        .params(&[
            optional("project", "string", "List only those of this project."),
            optional("deleted", "boolean", "Include deleted ones."),
            optional("limit", "integer", "Maximum number; `nil` means all."),
        ])
        .result("A list of sessions."),
    method("current-session", typed!(super::current_session))
        .doc("Returns the session that calls without `:session` use.")
        .result(ROW),
    method("switch-session", typed!(super::switch_session))
        .doc("Makes a session the one that calls without `:session` use.")
        .params(&[THE_SESSION])
        .result(ROW),
    method("rename-session", typed!(super::rename_session))
        .doc("Renames a session.")
        .params(&[THE_SESSION, required("name", "string", "New name."), KEY])
        .result(ROW),
    method("delete-session", typed!(super::delete_session))
        .doc("Deletes a session. Its content is kept; `restore-session` restores it.")
        .params(&[THE_SESSION, KEY])
        .result("The session, with `:deleted`."),
    method("restore-session", typed!(super::restore_session))
        .doc("Restores a deleted session: the one with this name that was deleted last.")
        .params(&[THE_SESSION, KEY])
        .result(ROW),
    method("search-sessions", typed!(super::search_sessions))
        .doc("Searches the names and messages of all sessions. Finds identifiers by their parts \
              and words in all their forms.")
        .params(&[
            required("query", "string", "Words to find."),
            optional("limit", "integer", "Maximum number of hits, up to 1000; defaults to 20."),
            optional("deleted", "boolean", "Search deleted sessions too."),
        ])
        .result("A list of `:session :id :score :snippet`, with `:message :role` if a message \
                 matches rather than the name; best first."),
    method("export-session", typed!(super::export_session))
        .doc("Exports a session's complete log, and the state of each message.")
        .params(&[
            SESSION,
            optional("format", "name", "Markdown for people, or JSON; defaults to `:markdown`.")
                .of(|| vec!["markdown", "json"]),
        ])
        .result("`:session :messages :text`."),
    method("import-session", typed!(super::import_session))
        .doc("Creates a session from the JSON of `export-session` and makes it current. Nothing is \
              replaced: if the name is taken, a number is added.")
        .params(&[
            required("text", "string", "The JSON."),
            optional(
                "name",
                "string",
                "Name of the new session; defaults to that of the exported one.",
            ),
            KEY,
        ])
        .result(ROW)
        .pace(Pace::InOrder),
    method("add-message", typed!(messages::add_message))
        .doc("Appends one or more messages to a session's log.")
        .params(&[
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
        ])
        .result("`:id`, `:ids`, the session's `:messages` and `:tokens`, and `:without-call` with \
                 the ids of results whose call is not in the log.")
        .pace(Pace::InOrder),
    method("get-messages", typed!(messages::get_messages))
        .doc("Returns messages of a session, oldest first.")
        .params(&[
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
        ])
        .result("A list of `:id :role :content :timestamp :phase :tokens :token-counter :pinned \
                 :in-view`, with `:tool-calls` and `:tool-call-id` if there are any."),
    method("pin-message", typed!(messages::pin_message))
        .doc("Pins messages, so that they are never left out, or unpins them.")
        .params(&[
            SESSION,
            optional("id", "string", "Id of the message, `msg-N`."),
            optional("ids", "list of strings", "Ids of several messages."),
            optional("pinned", "boolean", "Defaults to `t`."),
            KEY,
        ])
        .result("`:session :ids :pinned`."),
    method("checkpoint", typed!(checkpoints::checkpoint))
        .doc("Takes a checkpoint: a snapshot of the session's position in its log, its view, its \
              pins, and its manager's items.")
        .params(&[
            SESSION,
            optional("message", "string", "Purpose of the checkpoint; defaults to `Checkpoint`."),
            KEY,
        ])
        .result("`:checkpoint :session :turn`; `nil` if the session keeps no versions."),
    method("list-checkpoints", typed!(checkpoints::list_checkpoints))
        .doc("Lists a session's checkpoints, oldest first.")
        .params(&[SESSION])
        .result("A list of `:checkpoint :message :turn :position :automatic :created`."),
    method("rollback", typed!(checkpoints::rollback))
        .doc("Goes back to a checkpoint. Later messages leave the conversation but stay in the \
              log. The checkpoint is kept, and `undo-rollback` undoes the rollback.")
        .params(&[SESSION, CHECKPOINT, KEY])
        .result("`:session :commit-restored :turns-lost :messages-lost`."),
    method("undo-rollback", typed!(checkpoints::undo_rollback))
        .doc("Undoes the last rollback. Messages since then leave the conversation but stay in the \
              log.")
        .params(&[SESSION, KEY])
        .result("`:session :turns-restored :turns-lost`."),
    method("fork-session", typed!(checkpoints::fork_session))
        .doc("Creates a session that continues from another, or from one of its checkpoints, with \
              copies of its items, and makes it current.")
        .params(&[
            SESSION,
            FORK_FROM,
            optional("name", "string", "Name; defaults to a new `conversation-N`."),
            optional("manager", "string", "Manager of its items; defaults to one of its own."),
            KEY,
        ])
        .result("The new session, with `:forked-from` and `:shared-messages`."),
    method("list-revisions", typed!(checkpoints::list_revisions))
        .doc("Lists the changes of a session's view, newest first: prunings, summaries, pins and \
              rollbacks.")
        .params(&[SESSION, optional("limit", "integer", "Maximum number; defaults to 50.")])
        .result("A list of `:revision :method :position :created`."),
    method("restore-revision", typed!(checkpoints::restore_revision))
        .doc("Restores the view of a revision, which undoes later prunings and summaries. Messages \
              that came into view since then stay.")
        .params(&[
            SESSION,
            required("revision", "integer", "Number of the revision; 0 is the beginning."),
            KEY,
        ])
        .result("`:session :restored :revision`."),
];
