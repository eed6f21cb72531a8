//! Methods of the session family for windows, pruning, summaries and turns.

use crate::curation::prune::HistoryStats;
use crate::engine::Beside;
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;
use crate::rpc::{configure, history, prune, summarize, turn, window};
use crate::store::session::USAGE_KEPT;

/// Maximum number of explained windows in the pages of a list; the engine keeps no more.
const MAX_EXPLAINED: i64 = 64;

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    method!("session", "build-window", window::build_window => window::WindowResult<'static>)
        .shows(Beside::Window)
        .pages(&Paged { lists: &["parts", "items", "report.parts"], ..Paged::LIST })
        .doc("Builds the window that a model sees of a session: sections first, then as much of \
              the conversation as fits. It never exceeds `:max-tokens`, and its report says why \
              each part is in or out.")
        .result("`:tokens :max-tokens :model :model-known`; `:parts`, each `:section :role \
                 :content :tokens` and `:id :tool-calls :tool-call-id`; `:report`; and the fate of \
                 the `:items`. The error `budget-too-small` names what cannot be left out.")
        .pace(Pace::InOrder),
    method!("session", "explain-window", window::explain_window => Vec<window::ExplainedWindow<'static>>)
        .shows(Beside::Windows)
        .pages(&Paged { page: Some(1), most: Some(MAX_EXPLAINED), ..Paged::LIST })
        .doc("Explains why each part was in the latest windows of a session, or was left out.")
        .result("A list of reports, newest first, each with `:at` and the fate of its `:items`; \
                 empty if the server has built no window of the session since it started."),
    method!("session", "usage-log", window::usage_log => window::UsageLogResult<'static>)
        .shows(Beside::Windows)
        .pages(&Paged {
            lists: &["windows"],
            page: Some(window::DEFAULT_LOGGED as usize),
            most: Some(USAGE_KEPT as i64),
            newest_last: true,
            ..Paged::LIST
        })
        .doc("Lists the composition of recent windows in tokens, the usage of models that were \
              asked with them, and totals over all windows by phase.")
        .result("`:windows`, newest last, and `:phases`, each a list of `:phase :system-prompt \
                 :design-doc :types :current-context :messages :total :budget`; a window also has \
                 `:session :at :strategy`, a phase the number of its `:windows`. A window with \
                 which `chat` asked a model has `:provider :model`; `:input :output :cached` \
                 as counted by the provider, where `:cached` is part of `:input`; and `:cost` by \
                 the configured prices, which treat cached input like any other. Unknown values are \
                 `nil`. A phase has the totals: `:input :output :cached` over the `:reported` \
                 windows, and `:cost` over the `:priced` ones, `nil` if there are none."),
    method!("session", "session-stats", prune::session_stats => prune::SessionStats<'static>)
        .shows(Beside::Models)
        .doc("Reports how much of a model's limit a session's view fills.")
        .result("As for `message-stats`; also `:session :log :turns :pruned :summarized :summaries \
                 :pinned :revision`, and the `:summary` in view, or `nil`.")
        .pace(Pace::InOrder),
    method!("session", "message-stats", history::message_stats => HistoryStats)
        .doc("Reports how much of a model's limit a client's own history fills.")
        .result("`:items :tokens :limit :utilization-percent :needs-pruning :model :model-known \
                 :exact`.")
        .pace(Pace::InOrder),
    method!("session", "prune-session", prune::prune_session => prune::PrunedSession<'static>)
        .changes()
        .doc("Removes the least important messages from view until the rest fits. System prompts, \
              pinned messages, the user's first and last messages, the very last message, and \
              pending calls stay; a call stays together with its results. Pruned messages become \
              memories of the session, and `restore-revision` restores them.")
        .result("`:removed`, the pruned messages; `:stats (:original :final :token-reduction \
                 :items-removed :items-kept)`; `:archived`, the number of new memories.")
        .pace(Pace::InOrder),
    method!("session", "prune-messages", history::prune_messages => history::PrunedHistory<'static>)
        .doc("Prunes a client's own history by the rules of `prune-session`. Nothing is stored.")
        .result("`:pruned`, the remaining messages; `:removed` and `:stats` as for \
                 `prune-session`; `:units` with their scores.")
        .pace(Pace::InOrder),
    method!("session", "summarize-session", summarize::summarize_session => summarize::SummarizedSession<'static>)
        .changes_after_work()
        .doc("Replaces older messages with a summary, which has their number and a ledger of \
              paths, commands, figures, errors, decisions, constraints and open tasks. A later \
              summary includes the earlier one. `restore-revision` restores the messages.")
        .result("`:summary`, its `:stats (:summarized-items :kept-items)`, `:tokens-before \
                 :tokens-after :turns-summarized :memory`. The error `not-summarized` says why a \
                 summary would not help.")
        .pace(Pace::InOrder),
    method!("session", "summarize-messages", history::summarize_messages => history::SummarizedResult<'static>)
        .doc("Summarizes a client's own history by the rules of `summarize-session`. Nothing is \
              stored.")
        .result("`:summarized`, the new history; `:summary`, its message with the summary; \
                 `:stats` and errors as for `summarize-session`.")
        .pace(Pace::InOrder),
    method!("session", "process-turn", turn::process_turn => turn::ProcessedTurn<'static>)
        .changes_after_work()
        .doc("Adds the user's message and keeps the context in good shape: finds matching \
              memories, summarizes if the view is too large, takes a checkpoint if one is due, \
              computes the quality, and rolls back if it is too low and the settings say so.")
        .result("`:id :turn :grounding-used :relevance-scores :grounding \
                 :summarization-triggered :checkpoint-created :rollback-triggered :quality-score \
                 :quality :token-count`; with a summary `:tokens-before :tokens-after \
                 :turns-summarized :summary`, or `:not-summarized` with the reason; with a \
                 rollback `:commit-restored :turns-lost`, or `:not-rolled-back` with the reason; if embeddings are configured \
                 `:embedding`: `:used`, or why it failed.")
        .pace(Pace::InOrder),
    method!("session", "quality-score", turn::quality_score => turn::QualityResult<'static>)
        .shows(Beside::Models)
        .doc("Rates the quality of a session's context from 0 to 1, with its parts.")
        .result("`:quality-score`, and `:quality`, its four parts: `:part :value :weight :reason`."),
    method!("session", "configure-session", configure::configure_session => configure::SettingsResult<'static>)
        .changes()
        .doc("Changes the given settings of a session and returns all settings in effect. If a \
              value is out of range, nothing changes.")
        .result("`:session :model :strategy :window-tokens :archive-pruned :versioning :manage \
                 :template :recent-runs :passthrough-runs :token-threshold :tools :allowed-tools`, and \
                 `:settings`, each `:name :value :default :least :most`.")
        .pace(Pace::InOrder),
    method!("session", "report-usage", turn::report_usage => turn::LearnedResult<'static>)
        .changes()
        .doc("Calibrates the token counts for a model with a count that its provider reported. \
              Reports of less \
              than 200 tokens are ignored; `:reports` then stays the same.")
        .result("`:model :ratio :reports :factor`."),
];
