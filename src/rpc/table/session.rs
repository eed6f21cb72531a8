//! The methods of the session family about sessions, their messages, and going back.

use super::{KEY, Method, Pace, Param, optional, required};
use crate::rpc::{checkpoints, messages, sessions};
use crate::session::message::{Phase, Role};

pub(super) const SESSION: Param = optional(
    "session",
    "string",
    "The session's name or id, `ses-N`; by default the one last opened or switched to.",
)
.or_current(|_| true);
const THE_SESSION: Param = required("session", "string", "The session's name or id, `ses-N`.");
const CHECKPOINT: Param =
    optional("checkpoint", "string", "The checkpoint's id, `chk-N`; the last one by default.");
const FORK_FROM: Param = optional(
    "checkpoint",
    "string",
    "The checkpoint's id, `chk-N`; where the session is now by default.",
);
pub(super) const PHASE: Param = optional("phase", "name", "The phase of the work.").of(phase_names);
const ROLE: Param = optional("role", "name", "Who says it; `:user` by default.").of(role_names);
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
        doc: "Makes a session the current one; one that does not exist is created.",
        params: &[
            optional(
                "name",
                "string",
                "Its name, or the id of one that there is; a new `conversation-N` by default.",
            ),
            optional("manager", "string", "Whose items it shows; by default one of its own."),
            optional("project", "string", "The folder of the project that it is about."),
            optional("manage", "boolean", "Have a template manage its history, or not."),
            optional("template", "string", "By which template; implies `:manage t`."),
            optional(
                "current",
                "boolean",
                "Make it the current one; true by default. With `nil`, which session that is stays \
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
            optional("project", "string", "Only those of this project."),
            optional("deleted", "boolean", "Deleted ones too."),
            optional("limit", "integer", "At most so many; `nil` means all."),
        ],
        result: "A list of sessions.",
        pace: Pace::Prompt,
        run: sessions::list_sessions,
    },
    Method {
        name: "current-session",
        family: "session",
        doc: "Tells which session calls without `:session` are about.",
        params: &[],
        result: ROW,
        pace: Pace::Prompt,
        run: sessions::current_session,
    },
    Method {
        name: "switch-session",
        family: "session",
        doc: "Makes a session the one that calls without `:session` are about.",
        params: &[THE_SESSION],
        result: ROW,
        pace: Pace::Prompt,
        run: sessions::switch_session,
    },
    Method {
        name: "rename-session",
        family: "session",
        doc: "Gives a session another name.",
        params: &[THE_SESSION, required("name", "string", "The new name."), KEY],
        result: ROW,
        pace: Pace::Prompt,
        run: sessions::rename_session,
    },
    Method {
        name: "delete-session",
        family: "session",
        doc: "Deletes a session. Nothing of it is lost: `restore-session` brings it back.",
        params: &[THE_SESSION, KEY],
        result: "The session, with `:deleted`.",
        pace: Pace::Prompt,
        run: sessions::delete_session,
    },
    Method {
        name: "restore-session",
        family: "session",
        doc: "Brings a deleted session back: the one of this name that was deleted last.",
        params: &[THE_SESSION, KEY],
        result: ROW,
        pace: Pace::Prompt,
        run: sessions::restore_session,
    },
    Method {
        name: "search-sessions",
        family: "session",
        doc: "Finds words in the names and messages of all sessions. Identifiers are found by \
              their parts, words in all their forms.",
        params: &[
            required("query", "string", "The words."),
            optional("limit", "integer", "At most so many hits, 20 by default and 1000 at most."),
            optional("deleted", "boolean", "In deleted sessions too."),
        ],
        result: "A list of `:session :id :score :snippet`, with `:message :role` when a message \
                 fits rather than the name; best first.",
        pace: Pace::Prompt,
        run: sessions::search_sessions,
    },
    Method {
        name: "export-session",
        family: "session",
        doc: "Writes down everything that was ever said in a session, and what became of it.",
        params: &[
            SESSION,
            optional("format", "name", "A transcript for people, or JSON; `:markdown` by default.")
                .of(|| vec!["markdown", "json"]),
        ],
        result: "`:session :messages :text`.",
        pace: Pace::Prompt,
        run: sessions::export_session,
    },
    Method {
        name: "import-session",
        family: "session",
        doc: "Makes a session of what `export-session` gave as JSON. Nothing is replaced: a name \
              that is taken gets a number. It becomes the current one.",
        params: &[
            required("text", "string", "The JSON."),
            optional("name", "string", "The new session's name; the exported one's by default."),
            KEY,
        ],
        result: ROW,
        pace: Pace::InOrder,
        run: sessions::import_session,
    },
    Method {
        name: "add-message",
        family: "session",
        doc: "Appends a message, or several, to a session's log.",
        params: &[
            SESSION,
            ROLE,
            optional("content", "string", "The text."),
            PHASE,
            optional(
                "tool-calls",
                "list of plists",
                "The tools that an assistant's message calls: `:id :name :arguments`.",
            ),
            optional("tool-call-id", "string", "Which call a tool's message answers."),
            optional("pinned", "boolean", "Never leave it out of a window."),
            optional("timestamp", "integer", "Unix seconds, when it was not said just now."),
            optional("messages", "list of plists", "Several messages in place of one."),
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
        doc: "Gives messages of a session, oldest first.",
        params: &[
            SESSION,
            optional(
                "view",
                "name",
                "`:conversation`, the default: without what was rolled back; `:view`: only what \
                 is in view; `:log`: all ever said.",
            )
            .of(|| vec!["conversation", "view", "log"]),
            optional("ids", "list of strings", "Only these, `msg-N`."),
            optional("from", "string", "From this one on."),
            optional("to", "string", "Up to this one."),
            optional("roles", "list of names", "Only what these said.").of(role_names),
            optional("limit", "integer", "Only so many of the most recent."),
        ],
        result: "A list of `:id :role :content :timestamp :phase :tokens :token-counter :pinned \
                 :in-view`, with `:tool-calls` and `:tool-call-id` where there are any.",
        pace: Pace::Prompt,
        run: messages::get_messages,
    },
    Method {
        name: "pin-message",
        family: "session",
        doc: "Exempts messages from being left out, or lifts that.",
        params: &[
            SESSION,
            optional("id", "string", "The message's id, `msg-N`."),
            optional("ids", "list of strings", "The ids of several messages."),
            optional("pinned", "boolean", "`t` by default."),
            KEY,
        ],
        result: "`:session :ids :pinned`.",
        pace: Pace::Prompt,
        run: messages::pin_message,
    },
    Method {
        name: "checkpoint",
        family: "session",
        doc: "Takes a checkpoint: where the log is, what is in view, the pins, and the items of \
              the session's manager.",
        params: &[
            SESSION,
            optional("message", "string", "What it is taken for; `Checkpoint` by default."),
            KEY,
        ],
        result: "`:checkpoint :session :turn`; `nil` when the session keeps no versions.",
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
        doc: "Goes back to a checkpoint. What was said since leaves the conversation and stays in \
              the log, the checkpoint stays, and `undo-rollback` takes it back.",
        params: &[SESSION, CHECKPOINT, KEY],
        result: "`:session :commit-restored :turns-lost :messages-lost`.",
        pace: Pace::Prompt,
        run: checkpoints::rollback,
    },
    Method {
        name: "undo-rollback",
        family: "session",
        doc: "Takes the last rollback back. What was said since leaves the conversation and stays \
              in the log.",
        params: &[SESSION, KEY],
        result: "`:session :turns-restored :turns-lost`.",
        pace: Pace::Prompt,
        run: checkpoints::undo_rollback,
    },
    Method {
        name: "fork-session",
        family: "session",
        doc: "Begins a session that goes on from where another is, or was at a checkpoint, with \
              copies of its items, and makes it the current one.",
        params: &[
            SESSION,
            FORK_FROM,
            optional("name", "string", "Its name; a new `conversation-N` by default."),
            optional("manager", "string", "Whose items it shows; by default one of its own."),
            KEY,
        ],
        result: "The new session, with `:forked-from` and `:shared-messages`.",
        pace: Pace::Prompt,
        run: checkpoints::fork_session,
    },
    Method {
        name: "list-revisions",
        family: "session",
        doc: "Lists what changed a session's view, newest first: prunings, summaries, pins, \
              rollbacks.",
        params: &[SESSION, optional("limit", "integer", "At most so many; 50 by default.")],
        result: "A list of `:revision :method :position :created`.",
        pace: Pace::Prompt,
        run: checkpoints::list_revisions,
    },
    Method {
        name: "restore-revision",
        family: "session",
        doc: "Brings back what was in view in a revision: so a pruning or a summary is undone. \
              What came into view since stays.",
        params: &[SESSION, required("revision", "integer", "Its number; 0 is the beginning."), KEY],
        result: "`:session :restored :revision`.",
        pace: Pace::Prompt,
        run: checkpoints::restore_revision,
    },
];
