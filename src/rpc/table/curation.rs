//! Methods of the session family for windows, pruning, summaries and turns.

use super::{KEY, Method, Pace, Param, optional, required};
use crate::agent::tools::context;
use crate::curation::strategy;
use crate::rpc::method::{PHASE, Run, SESSION, lacks};
use crate::rpc::{configure, history, summarize, turn, window};

const MODEL: Param = optional(
    "model",
    "string",
    "Model to build for; defaults to the session's, else to the server's.",
);
const MESSAGES: Param = optional(
    "messages",
    "list of plists",
    "The client's own history instead of a session's. Each message has `:role :content \
     :tool-calls :tool-call-id :pinned`.",
);
const SESSION_UNLESS_MESSAGES: Param = SESSION.or_current(|params| lacks(params, "messages"));
const EXPLAIN: Param = optional(
    "explain",
    "boolean",
    "Report each part with its score instead of grouping similar ones.",
);

const fn method(name: &'static str, run: Run) -> Method {
    Method::new("session", name, run)
}

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    method("build-context", window::build_context)
        .doc("Builds the window that a model sees of a session: sections first, then as much of \
              the conversation as fits. It never exceeds `:max-tokens`, and its report says why \
              each part is in or out.")
        .params(&[
            SESSION,
            PHASE,
            optional(
                "strategy",
                "name",
                "How to choose among the messages; defaults to `:tiered`.",
            )
            .of(strategy::names),
            optional(
                "max-tokens",
                "integer",
                "Size limit of the window; defaults to the session's setting, else to 96,000 or the \
                 model's limit if that is lower.",
            ),
            optional(
                "query",
                "string",
                "The current question; messages that match it are preferred.",
            ),
            MODEL,
            optional(
                "sections",
                "plist",
                "Texts to include with the conversation: `:tool-schemas`, `:system-prompt`, `:design-document`, \
                 `:type-definitions`, `:current-unit`, `:relevant-tests`, `:grounding`; \
                 `:failures`, a list of `:name :error :expected :received :stack`; `:units`, a \
                 list of `:name :path :code :approved`.",
            ),
            optional(
                "items",
                "boolean",
                "Include the items of the session's manager; defaults to `t`.",
            ),
            optional("brief", "boolean", "Leave the parts out of the result."),
            EXPLAIN,
        ])
        .result("`:tokens :max-tokens :model :model-known`; `:parts`, each `:section :role \
                 :content :tokens` and `:id :tool-calls :tool-call-id`; `:report`; and the fate of \
                 the `:items`. The error `budget-too-small` names what cannot be left out.")
        .pace(Pace::InOrder),
    method("explain-context", window::explain_context)
        .doc("Explains why each part was in or out of the windows last built for a session.")
        .params(&[
            SESSION,
            optional(
                "limit",
                "integer",
                "Number of windows to explain, newest first; defaults to 1.",
            ),
            EXPLAIN,
        ])
        .result("A list of reports, newest first, each with `:at` and the fate of its `:items`; \
                 empty if the server has built no window of the session since it started."),
    method("usage-log", window::usage_log)
        .doc("Lists the composition of recent windows in tokens, the usage of models that were \
              asked with them, and totals over all windows by phase.")
        .params(&[
            optional("session", "string", "List only this session."),
            PHASE,
            optional("limit", "integer", "Maximum number of windows; defaults to 50."),
        ])
        .result("`:windows`, newest last, and `:phases`, each a list of `:phase :system-prompt \
                 :design-doc :types :current-context :messages :total :budget`; a window also has \
                 `:session :at :strategy`, a phase the number of its `:windows`. A window with \
                 which `chat` asked a model has `:provider :model`; `:input :output :cached` \
                 as counted by the provider, where `:cached` is part of `:input`; and `:cost` by \
                 the configured prices, which treat cached input like any other. Unknown values are \
                 `nil`. A phase has the totals: `:input :output :cached` over the `:reported` \
                 windows, and `:cost` over the `:priced` ones, `nil` if there are none."),
    method("context-stats", history::context_stats)
        .doc("Tells how much of a model's limit a session's view, or a history, takes.")
        .params(&[SESSION_UNLESS_MESSAGES, MESSAGES, MODEL])
        .result("`:items :tokens :limit :utilization-percent :needs-pruning :model :model-known \
                 :exact`; for a session also `:log :turns :pruned :summarized :summaries :pinned \
                 :revision`, and the `:summary` in view, or `nil`.")
        .pace(Pace::InOrder),
    method("prune-context", history::prune_context)
        .doc("Removes the least important messages from view until the rest fits. System prompts, \
              pinned messages, the user's first and last messages, the very last message, and \
              pending calls stay; a call stays together with its results. Messages pruned from a \
              session become memories of it, and `restore-revision` restores them.")
        .params(&[
            SESSION_UNLESS_MESSAGES,
            MESSAGES,
            optional(
                "max-tokens",
                "integer",
                "Target size; defaults to 80 % of the model's limit.",
            ),
            MODEL,
            optional("brief", "boolean", "Answer with ids in place of messages."),
            KEY,
        ])
        .result("`:removed`, the pruned messages; `:stats (:original :final :token-reduction \
                 :items-removed :items-kept)`; for a session `:archived`; for a history `:pruned`, \
                 the remaining messages, and `:units` with their scores.")
        .pace(Pace::InOrder),
    method("auto-manage-context", history::auto_manage_context)
        .doc("Prunes if more than 80 % of the model's limit is used; otherwise changes nothing.")
        .params(&[
            SESSION_UNLESS_MESSAGES,
            MESSAGES,
            MODEL,
            optional("brief", "boolean", "Answer with ids in place of messages."),
            KEY,
        ])
        .result("Same as `prune-context`.")
        .pace(Pace::InOrder),
    method("summarize-context", summarize::summarize_context)
        .doc("Replaces older messages with a summary: their number, and a ledger of paths, \
              commands, figures, errors, decisions, constraints and open tasks. A later summary \
              includes the earlier one. `restore-revision` restores the messages.")
        .params(&[
            SESSION_UNLESS_MESSAGES,
            MESSAGES,
            optional("max-items", "integer", "Number of recent messages to keep; defaults to 10."),
            optional("keep-turns", "integer", "Number of recent turns to keep instead."),
            MODEL,
            KEY,
        ])
        .result("`:summary`, its `:stats (:summarized-items :kept-items)`; for a session \
                 `:tokens-before :tokens-after :turns-summarized :memory`; for a history \
                 `:summarized`, the new history. The error `not-summarized` says why a summary would \
                 not help.")
        .pace(Pace::InOrder),
    method("process-turn", turn::process_turn)
        .doc("Adds the user's message and keeps the context in good shape: finds matching \
              memories, summarizes if the view is too large, takes a checkpoint if one is due, \
              computes the quality, and rolls back if it is too low and the settings say so.")
        .params(&[
            SESSION,
            required("content", "string", "The user's message."),
            PHASE,
            optional("coherence", "number", "Quality of the last answer, from 0 to 1."),
            MODEL,
            KEY,
        ])
        .result("`:id :turn :grounding-used :relevance-scores :grounding \
                 :summarization-triggered :checkpoint-created :rollback-triggered :quality-score \
                 :quality :token-count`; with a summary `:tokens-before :tokens-after \
                 :turns-summarized :summary`, or `:not-summarized` with the reason; with a \
                 rollback `:commit-restored :turns-lost`, or `:not-rolled-back` with the reason; if embeddings are configured \
                 `:embedding`: `:used`, or why it failed.")
        .pace(Pace::InOrder),
    method("quality-score", turn::quality_score)
        .doc("Rates the quality of a session's context from 0 to 1, with its parts.")
        .params(&[SESSION, MODEL])
        .result("`:quality-score`, and `:quality`, its four parts: `:part :value :weight :reason`."),
    method("configure-session", configure::configure_session)
        .doc("Changes the given settings of a session and returns all settings in effect. If a \
              value is out of range, nothing changes. The documentation of a setting ends with its \
              default.")
        .params(&[
            SESSION,
            optional(
                "model",
                "string",
                "Model that windows are built for; `\"\"` for the server's.",
            ),
            optional("strategy", "name", "How to choose among the messages.").of(strategy::names),
            optional(
                "window-tokens",
                "integer",
                "Maximum number of tokens in a window, from 256 to 10,000,000; 0 for the default.",
            ),
            optional("archive-pruned", "boolean", "Turn pruned messages into memories; `t`."),
            optional("versioning", "boolean", "Take checkpoints; `t`."),
            optional(
                "max-tokens",
                "integer",
                "Maximum number of tokens in view after a turn; 8192.",
            ),
            optional(
                "summarize-at-ratio",
                "number",
                "Share of `:max-tokens` at which to summarize; 0.8.",
            ),
            optional("quality-threshold", "number", "Quality below which to roll back; 0.6."),
            optional("checkpoint-interval", "integer", "Number of turns between checkpoints; 10."),
            optional("grounding-memories", "integer", "Maximum number of memories for a turn; 5."),
            optional(
                "recent-turns-to-keep",
                "integer",
                "Number of recent turns never to summarize; 3.",
            ),
            optional("auto-summarize", "boolean", "Summarize in `process-turn`; `t`."),
            optional("auto-checkpoint", "boolean", "Take checkpoints in `process-turn`; `t`."),
            optional("auto-rollback", "boolean", "Roll back in `process-turn`; `nil`."),
            optional("manage", "boolean", "Have a template manage the history in `chat`; `nil`."),
            optional("template", "string", "Template to use; `\"\"` for `freeform-chat`."),
            optional(
                "recent-runs",
                "integer",
                "Same as in `manage-context`; -1 leaves it to the template.",
            ),
            optional("passthrough-runs", "integer", "Same as in `manage-context`; -1 likewise."),
            optional("token-threshold", "integer", "Same as in `manage-context`; -1 likewise."),
            optional(
                "tools",
                "boolean or list of names",
                "Tools that the model may call in `chat`: \
                                                           `t` all, `nil` none; `nil`.",
            )
            .of(context::names),
            optional(
                "allowed-tools",
                "boolean or list of names",
                "Tools that the model may call without \
                                                                   asking; `nil`.",
            )
            .of(context::names),
            KEY,
        ])
        .result("`:session :model :strategy :window-tokens :archive-pruned :versioning :manage \
                 :template :recent-runs :passthrough-runs :token-threshold :tools :allowed-tools`, and \
                 `:settings`, each `:name :value :default :least :most`.")
        .pace(Pace::InOrder),
    method("report-usage", turn::report_usage)
        .doc("Corrects the token counts for a model by what its provider reported. Reports of less \
              than 200 tokens are ignored; `:reports` then stays the same.")
        .params(&[
            required("model", "string", "Name of the model."),
            required("counted", "integer", "Number of tokens that `build-context` counted."),
            required("reported", "integer", "Number of input tokens that the provider reported."),
            KEY,
        ])
        .result("`:model :ratio :reports :factor`."),
];
