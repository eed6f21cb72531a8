//! Methods of the session family for sessions, their messages, and rollback.

use super::{SessionShown, checkpoints, messages, recordings};
use crate::agent::found::Hit;
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;
use crate::rpc::present::MessageShown;
use crate::rpc::shapes::Either;
use crate::rpc::version::VersionOwner;

/// Maximum number of sessions in a list, across all its pages.
pub(in crate::rpc) const MAX_SESSIONS: i64 = 100_000;

/// Methods, in the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("session", "open-session", super::open_session => SessionShown)
        .changes()
        .about_session(VersionOwner::Opened)
        .doc(
            "Makes a session the current one, creating it if needed. With `:fork-of`, creates a \
              session that continues another one; with `:text`, one that was exported.",
        )
        .result("The session.")
        .pace(Pace::InOrder),
    method!("session", "list-sessions", super::listed::list_sessions => Either<Vec<SessionShown>, Vec<Hit>>)
        .pages(&Paged { most: Some(MAX_SESSIONS), ..Paged::LIST })
        .pace(Pace::InOrder)
        .doc(
            "Lists the sessions, the one with the latest message first, and the sessions of \
              subagents below those whose agents began them. With `:query`, searches the names and \
              messages of sessions.",
        )
        .result("A list of sessions; with `:query`, of hits, best first."),
    method!("session", "delete-session", super::delete_session => SessionShown)
        .changes()
        .about_session(VersionOwner::Deleted)
        .doc(
            "Deletes a session. Its content is kept. With `:deleted nil`, restores the deleted \
             session with this id, or the one with this name that was deleted last. A session that \
             is not deleted stays as it is.",
        )
        .result("The session."),
    method!("session", "export-session", super::export::export_session => super::export::Exported)
        .doc("Exports a session's complete log, and the state of each message.")
        .result("The session as text.")
        .pace(Pace::InOrder),
    method!("session", "import-sessions", recordings::import_sessions => recordings::ImportedAll)
        .changes_after_work()
        .doc(
            "Imports the sessions that other agents recorded: those of aider, Claude Code, Cline, \
              Codex, Copilot CLI, Cursor, Gemini CLI, OpenClaw, OpenCode, pi, Qwen Code, Roo Code \
              and SpecStory, and what `contexture acp` records. Each becomes a session, and keeps \
              its times. Importing a file again adds only what is new. Streams `progress`; what was imported \
              before `cancel` stays.",
        )
        .result("The files, each with its outcome, and the numbers of new sessions and messages.")
        .progress::<recordings::Importing>()
        .pace(Pace::Aside),
    method!("session", "add-message", messages::add_message => messages::Appended)
        .changes()
        .doc("Appends one or more messages to a session's log.")
        .result("The ids of the new messages, and the size of the session.")
        .pace(Pace::InOrder),
    method!("session", "get-messages", messages::get_messages => Vec<MessageShown<'static>>)
        .pages(&Paged { newest_last: true, brief: &["content", "tool-calls"], ..Paged::LIST })
        .doc("Returns messages of a session, oldest first.")
        .result("A list of messages."),
    method!("session", "pin-message", messages::pin_message => messages::Pinned)
        .changes()
        .doc("Pins messages, so that they are never left out, or unpins them.")
        .result("The ids of the messages."),
    method!("session", "checkpoint", checkpoints::checkpoint => Option<checkpoints::CheckpointTaken>)
        .changes()
        .doc(
            "Takes a checkpoint: a snapshot of the session's position in its log, its view, its \
              pins, and its manager's items.",
        )
        .result("The checkpoint; `nil` if the session keeps no versions."),
    method!("session", "rollback", checkpoints::rollback => checkpoints::SessionRollback)
        .changes()
        .doc(
            "Goes back to a checkpoint. Later messages leave the conversation but stay in the \
              log. The checkpoint is kept, and `undo` takes the rollback back.",
        )
        .result("The checkpoint, and the number of turns that left the conversation."),
];
