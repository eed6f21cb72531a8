//! Methods of the session family for sessions, their messages, and rollback.

use super::{SessionShown, checkpoints, messages};
use crate::agent::found::Hit;
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;
use crate::rpc::present::MessageShown;
use crate::rpc::version::About;

/// Maximum number of sessions, and of revisions, in the pages of a list.
const MAX_SESSIONS: i64 = 100_000;
const MAX_REVISIONS: i64 = 10_000;

const ROW: &str = "The session: `:session` (its name), `:id`, `:manager`, `:project`, \
                   `:messages`, `:turns`, `:tokens`, `:created`, `:updated`, `:current`.";

/// In the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("session", "open-session", super::open_session => SessionShown)
        .changes()
        .about_session(About::Opened)
        .doc("Makes a session the current one, creating it if needed.")
        .result("The session, with `:created-now`."),
    method!("session", "list-sessions", super::list_sessions => Vec<SessionShown>)
        .pages(&Paged { most: Some(MAX_SESSIONS), ..Paged::LIST })
        .doc("Lists the sessions, last changed first.")
        .result("A list of sessions."),
    method!("session", "current-session", super::current_session => SessionShown)
        .about_session(About::CurrentSession)
        .doc("Returns the current session, which calls without `:session` use.")
        .result(ROW),
    method!("session", "rename-session", super::rename_session => SessionShown)
        .changes()
        .doc("Renames a session.")
        .result(ROW),
    method!("session", "delete-session", super::delete_session => SessionShown)
        .changes()
        .doc("Deletes a session. Its content is kept; `restore-session` restores it.")
        .result("The session, with `:deleted`."),
    method!("session", "restore-session", super::restore_session => SessionShown)
        .changes()
        .about_session(About::Deleted)
        .doc(
            "Restores a deleted session: the one with this name that was deleted last. Does nothing \
              to a session that is not deleted.",
        )
        .result("The session, with `:restored`."),
    method!("session", "search-sessions", super::search_sessions => Vec<Hit>)
        .pages(&Paged {
            page: Some(super::DEFAULT_HITS as usize),
            most: Some(super::MAX_HITS),
            ..Paged::LIST
        })
        .doc(
            "Searches the names and messages of all sessions. Finds identifiers by their parts \
              and words in all their forms.",
        )
        .result(
            "A list of `:session :id :score :snippet`, with `:message :role` if a message \
                 matches rather than the name; best first.",
        ),
    method!("session", "export-session", super::export_session => super::Exported)
        .doc("Exports a session's complete log, and the state of each message.")
        .result("`:session :messages :text`."),
    method!("session", "import-session", super::import_session => SessionShown)
        .about_session(About::New)
        .changes_after_work()
        .doc(
            "Creates a session from the JSON of `export-session` and makes it current. Nothing is \
              replaced: if the name is taken, a number is added.",
        )
        .result(ROW)
        .pace(Pace::InOrder),
    method!("session", "add-message", messages::add_message => messages::Appended)
        .changes()
        .doc("Appends one or more messages to a session's log.")
        .result(
            "`:id`, `:ids`, the session's `:messages` and `:tokens`, and `:without-call` with \
                 the ids of results whose call is not in the log.",
        )
        .pace(Pace::InOrder),
    method!("session", "get-messages", messages::get_messages => Vec<MessageShown<'static>>)
        .pages(&Paged { newest_last: true, brief: &["content", "tool-calls"], ..Paged::LIST })
        .doc("Returns messages of a session, oldest first.")
        .result(
            "A list of `:id :role :content :timestamp :phase :tokens :token-counter :pinned \
                 :in-view`, with `:tool-calls` and `:tool-call-id` if there are any.",
        ),
    method!("session", "pin-message", messages::pin_message => messages::Pinned)
        .changes()
        .doc("Pins messages, so that they are never left out, or unpins them.")
        .result("`:session :ids :pinned`."),
    method!("session", "checkpoint", checkpoints::checkpoint => Option<checkpoints::Taken>)
        .changes()
        .doc(
            "Takes a checkpoint: a snapshot of the session's position in its log, its view, its \
              pins, and its manager's items.",
        )
        .result("`:checkpoint :session :turn`; `nil` if the session keeps no versions."),
    method!("session", "list-checkpoints", checkpoints::list_checkpoints => Vec<checkpoints::CheckpointLine>)
        .pages(&Paged { newest_last: true, ..Paged::LIST })
        .doc("Lists a session's checkpoints, oldest first.")
        .result("A list of `:checkpoint :message :turn :position :automatic :created`."),
    method!("session", "rollback", checkpoints::rollback => checkpoints::RolledBack)
        .changes()
        .doc(
            "Goes back to a checkpoint. Later messages leave the conversation but stay in the \
              log. The checkpoint is kept, and `undo-rollback` undoes the rollback.",
        )
        .result("`:session :commit-restored :turns-lost :messages-lost`."),
    method!("session", "undo-rollback", checkpoints::undo_rollback => checkpoints::RollbackUndone)
        .changes()
        .doc(
            "Undoes the last rollback. Messages since then leave the conversation but stay in the \
              log.",
        )
        .result("`:session :turns-restored :turns-lost`."),
    method!("session", "fork-session", checkpoints::fork_session => SessionShown)
        .changes()
        .doc(
            "Creates a session that continues from another, or from one of its checkpoints, with \
              copies of its items, and makes it current.",
        )
        .result("The new session, with `:forked-from` and `:shared-messages`."),
    method!("session", "list-revisions", checkpoints::list_revisions => Vec<checkpoints::RevisionLine>)
        .pages(&Paged {
            page: Some(checkpoints::DEFAULT_REVISIONS as usize),
            most: Some(MAX_REVISIONS),
            ..Paged::LIST
        })
        .doc(
            "Lists the changes of a session's view, newest first: prunings, summaries, pins and \
              rollbacks.",
        )
        .result("A list of `:revision :method :position :created`."),
    method!("session", "restore-revision", checkpoints::restore_revision => checkpoints::Restored)
        .changes()
        .doc(
            "Restores the view of a revision, which undoes later prunings and summaries. Messages \
              that came into view since then stay.",
        )
        .result("`:session :restored :revision`."),
];
