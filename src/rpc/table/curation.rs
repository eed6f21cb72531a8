//! Methods of the session family for windows, pruning, summaries and turns.

use crate::curation::prune::HistoryStats;
use crate::engine::Beside;
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;
use crate::rpc::shapes::Either;
use crate::rpc::{configure, count, history, prune, session_report, summarize, turn, window};

/// Methods, in the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    method!("session", "build-window", window::build_window => window::WindowResult<'static>)
        .shows(Beside::Window)
        .pages(&Paged { lists: &["parts", "items", "report.parts"], ..Paged::LIST })
        .doc("Builds the window that a model sees of a session: sections first, then as much of \
              the conversation as fits. It never exceeds `:max-tokens`, and its report says why \
              each part is in or out.")
        .result(
            "The window, its report, and the outcome for each item. The error `budget-too-small` \
             names the parts that cannot be left out.",
        )
        .pace(Pace::InOrder),
    method!("session", "count-window", count::count_window => count::CountResult<'static>)
        .shows(Beside::Window)
        .doc(
            "Counts what a turn would send now: the texts, items and messages of its window, and \
              what is being typed. A dry run of `chat` gives the same count; clients should show \
              this figure. Without a configured model, the count is for the session's model.",
        )
        .result("`:tokens` of `:limit`, which is `nil` if the model's limit is unknown.")
        .pace(Pace::InOrder),
    method!("session", "session-report", session_report::session_report => Either<session_report::SessionReport<'static>, Either<session_report::QualityResult<'static>, HistoryStats>>)
        .or_history()
        .shows(Beside::Windows)
        .pages(&Paged { lists: &["windows", "reports"], newest_last: true, ..Paged::LIST })
        .doc("Reports how much of a model's limit a session's view fills, or a client's own history. \
              On request, also lists the session's latest windows, explains why each part of them was in \
              or out, or rates the quality of the session's context.")
        .result("The figures of the session's view, or of the history; with `:quality-only`, the quality.")
        .pace(Pace::InOrder),
    method!("session", "prune-session", prune::prune_session => Either<prune::PrunedSession<'static>, history::PrunedHistory<'static>>)
        .or_history()
        .changes()
        .doc("Removes the least important messages from view until the rest fits. System prompts, \
              pinned messages, the user's first and last messages, the very last message, and \
              pending calls stay; a call stays together with its results. Pruned messages become \
              memories of the session, and `undo` restores them.")
        .result(
            "The messages that were removed, and figures before and after; of a client's own \
             history also those that remain, and the reasons.",
        )
        .pace(Pace::InOrder),
    method!("session", "summarize-session", summarize::summarize_session => Either<summarize::SummarizedSession<'static>, history::SummarizedResult<'static>>)
        .or_history()
        .changes_after_work()
        .doc("Replaces older messages with a summary, which says how many they were and has the \
              user's words, each with its message. A later summary includes the earlier one. \
              Windows still show what the current work needs of the replaced messages, as far as \
              it fits. `undo` restores them.")
        .result(
            "The summary, and figures before and after; of a client's own history the new \
             history, too. The error `not-summarized` says why a \
             summary would not help.",
        )
        .pace(Pace::InOrder),
    method!("session", "process-turn", turn::process_turn => turn::ProcessedTurn<'static>)
        .changes_after_work()
        .doc(
            "Adds the user's message and keeps the context in good shape: finds matching \
             memories, summarizes if the view is too large, and takes a checkpoint if one is due. \
             Computes the quality, and rolls back if the quality is too low and the settings say \
             so.",
        )
        .result("The outcome of the turn.")
        .pace(Pace::InOrder),
    method!("session", "configure-session", configure::configure_session => configure::SettingsResult<'static>)
        .changes()
        .doc("Changes the given settings of a session, or its name, and returns all settings in effect. If a \
              value is out of range, nothing changes.")
        .result("All settings in effect.")
        .pace(Pace::InOrder),
    method!("session", "report-usage", turn::report_usage => turn::LearnedResult<'static>)
        .changes()
        .doc(
            "Calibrates the token counts for a model with a count that its provider reported. \
             Reports of fewer than 200 tokens are ignored; `:reports` then stays the same.",
        )
        .result("The calibration of the model."),
];
