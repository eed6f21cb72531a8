//! The methods of the session family about windows, pruning, summaries and turns.

use super::session::{PHASE, SESSION};
use super::{KEY, Method, Pace, Param, lacks, optional, required};
use crate::curation::strategy;
use crate::rpc::{curate, tools, turn, window};

const MODEL: Param = optional(
    "model",
    "string",
    "The model that it is for; the session's, else the server's, by default.",
);
const MESSAGES: Param = optional(
    "messages",
    "list of plists",
    "A history of the client's own in place of a session: `:role :content :tool-calls \
     :tool-call-id :pinned`.",
);
const SESSION_UNLESS_MESSAGES: Param = SESSION.or_current(|params| lacks(params, "messages"));
const EXPLAIN: Param =
    optional("explain", "boolean", "Report every part with its score, not runs of them.");

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    Method {
        name: "build-context",
        family: "session",
        doc: "Builds the window that a model is shown of a session: sections first, then as much \
              of the conversation as fits. It never has more than `:max-tokens`, and says why \
              each part is in or out.",
        params: &[
            SESSION,
            PHASE,
            optional("strategy", "name", "Who chooses from the messages; `:tiered` by default.")
                .of(strategy::names),
            optional(
                "max-tokens",
                "integer",
                "By default what the session's settings say, else 96,000 or what the model takes.",
            ),
            optional("query", "string", "What is being asked: messages that fit it are preferred."),
            MODEL,
            optional(
                "sections",
                "plist",
                "Texts beside the conversation: `:tool-schemas`, `:system-prompt`, `:design-document`, \
                 `:type-definitions`, `:current-unit`, `:relevant-tests`, `:grounding`; \
                 `:failures`, a list of `:name :error :expected :received :stack`; `:units`, a \
                 list of `:name :path :code :approved`.",
            ),
            optional("items", "boolean", "With the items of its manager; `t` by default."),
            optional("brief", "boolean", "Answer without the parts."),
            EXPLAIN,
        ],
        result: "`:tokens :max-tokens :model :model-known`; `:parts`, each `:section :role \
                 :content :tokens` and `:id :tool-calls :tool-call-id`; `:report`; and what became \
                 of the `:items`. The error `budget-too-small` names what cannot be left out.",
        pace: Pace::InOrder,
        run: window::build_context,
    },
    Method {
        name: "explain-context",
        family: "session",
        doc: "Tells of the windows last built of a session why each part was in or out.",
        params: &[
            SESSION,
            optional("limit", "integer", "Of so many of the last windows; 1 by default."),
            EXPLAIN,
        ],
        result: "A list of reports, newest first, with `:at` and what became of each of the \
                 `:items`; empty before the first window since the server began.",
        pace: Pace::Prompt,
        run: window::explain_context,
    },
    Method {
        name: "usage-log",
        family: "session",
        doc: "Lists what the last windows were made of, in tokens, and what models took that were \
              asked with them; and the sums of all windows by phase.",
        params: &[
            optional("session", "string", "Of this session only."),
            PHASE,
            optional("limit", "integer", "At most so many windows; 50 by default."),
        ],
        result: "`:windows`, newest last, and `:phases`, each a list of `:phase :system-prompt \
                 :design-doc :types :current-context :messages :total :budget`; a window also has \
                 `:session :at :strategy`, a phase the number of its `:windows`. A window with \
                 which `chat` asked a model has `:provider :model`, and `:input :output :cached` \
                 as the provider counted them, `:cached` being a part of `:input`, and `:cost` by \
                 the configured prices, in which cached input is like any other; each is `nil` when \
                 it is not known. A phase has their sums: `:input :output :cached` of the \
                 `:reported` windows, and `:cost` of the `:priced` ones, `nil` when there are none.",
        pace: Pace::Prompt,
        run: window::usage_log,
    },
    Method {
        name: "context-stats",
        family: "session",
        doc: "Tells how full a model is of a session's view, or of a history.",
        params: &[SESSION_UNLESS_MESSAGES, MESSAGES, MODEL],
        result: "`:items :tokens :limit :utilization-percent :needs-pruning :model :model-known \
                 :exact`; of a session also `:log :turns :pruned :summarized :summaries :pinned \
                 :revision`, and the `:summary` that is in view, or `nil`.",
        pace: Pace::InOrder,
        run: curate::context_stats,
    },
    Method {
        name: "prune-context",
        family: "session",
        doc: "Leaves out the least important messages until the rest fits. System prompts, pinned \
              messages, the first and the last of the user, the very last, and calls in flight \
              stay; a call stays with its results. Of a session, what leaves becomes memories of \
              it, and `restore-revision` brings it back.",
        params: &[
            SESSION_UNLESS_MESSAGES,
            MESSAGES,
            optional("max-tokens", "integer", "80 % of the model's limit by default."),
            MODEL,
            optional("brief", "boolean", "Answer with ids in place of messages."),
            KEY,
        ],
        result: "`:removed`, the messages that left; `:stats (:original :final :token-reduction \
                 :items-removed :items-kept)`; of a session `:archived`, of a history `:pruned`, \
                 what is left, and `:units` with their scores.",
        pace: Pace::InOrder,
        run: curate::prune_context,
    },
    Method {
        name: "auto-manage-context",
        family: "session",
        doc: "Prunes when more than 80 % of the model's limit is used; otherwise leaves all as it \
              is.",
        params: &[
            SESSION_UNLESS_MESSAGES,
            MESSAGES,
            MODEL,
            optional("brief", "boolean", "Answer with ids in place of messages."),
            KEY,
        ],
        result: "As `prune-context`.",
        pace: Pace::InOrder,
        run: curate::auto_manage_context,
    },
    Method {
        name: "summarize-context",
        family: "session",
        doc: "Puts a summary in the place of older messages: how many they were, and the ledger \
              of paths, commands, figures, errors, decisions, constraints and open tasks. A second \
              summary folds the first one in. `restore-revision` brings the messages back.",
        params: &[
            SESSION_UNLESS_MESSAGES,
            MESSAGES,
            optional("max-items", "integer", "Keep so many of the last messages; 10 by default."),
            optional("keep-turns", "integer", "Keep so many of the last turns instead."),
            MODEL,
            KEY,
        ],
        result: "`:summary`, its `:stats (:summarized-items :kept-items)`; of a session \
                 `:tokens-before :tokens-after :turns-summarized :memory`, of a history \
                 `:summarized`, the new history. The error `not-summarized` says why it would not \
                 help.",
        pace: Pace::InOrder,
        run: curate::summarize_context,
    },
    Method {
        name: "process-turn",
        family: "session",
        doc: "Takes in what the user says and keeps the context good: finds memories that fit, \
              summarizes when there is too much, takes a checkpoint when it is time, reckons the \
              quality, and rolls back when that is too low and the settings say so.",
        params: &[
            SESSION,
            required("content", "string", "What the user says."),
            PHASE,
            optional("coherence", "number", "How good the last answer was, from 0 to 1."),
            MODEL,
            KEY,
        ],
        result: "`:id :turn :grounding-used :relevance-scores :grounding \
                 :summarization-triggered :checkpoint-created :rollback-triggered :quality-score \
                 :quality :token-count`; with a summary `:tokens-before :tokens-after \
                 :turns-summarized :summary`, or `:not-summarized` with the reason; with a \
                 rollback `:commit-restored :turns-lost`; with embeddings configured \
                 `:embedding`, `:used` or why it failed.",
        pace: Pace::InOrder,
        run: turn::process_turn,
    },
    Method {
        name: "quality-score",
        family: "session",
        doc: "Tells how good a session's context is, from 0 to 1, and of what that is made.",
        params: &[SESSION, MODEL],
        result: "`:quality-score`, and `:quality`, its four parts: `:part :value :weight :reason`.",
        pace: Pace::Prompt,
        run: turn::quality_score,
    },
    Method {
        name: "configure-session",
        family: "session",
        doc: "Sets what is given of a session's settings, and tells all in effect. What is out of \
              its range is refused, and nothing is set.",
        params: &[
            SESSION,
            optional("model", "string", "The model that windows are for; `\"\"` for the server's."),
            optional("strategy", "name", "Who chooses from the messages.")
                .of(strategy::names),
            optional(
                "window-tokens",
                "integer",
                "How many tokens a window may have, from 256 to 10,000,000; 0 for the default.",
            ),
            optional("archive-pruned", "boolean", "What is pruned becomes memories; `t`."),
            optional("versioning", "boolean", "Checkpoints are taken; `t`."),
            optional("max-tokens", "integer", "How much a turn may leave in view; 8192."),
            optional("summarize-at-ratio", "number", "At which part of that to summarize; 0.8."),
            optional("quality-threshold", "number", "Below which quality to roll back; 0.6."),
            optional("checkpoint-interval", "integer", "Turns between checkpoints; 10."),
            optional("grounding-memories", "integer", "How many memories a turn gets; 5."),
            optional("recent-turns-to-keep", "integer", "Turns that are never summarized; 3."),
            optional("auto-summarize", "boolean", "Summarize in `process-turn`; `t`."),
            optional("auto-checkpoint", "boolean", "Take checkpoints in `process-turn`; `t`."),
            optional("auto-rollback", "boolean", "Roll back in `process-turn`; `nil`."),
            optional("manage", "boolean", "A template manages the history in `chat`; `nil`."),
            optional("template", "string", "By which template; `\"\"` for `freeform-chat`."),
            optional("recent-runs", "integer", "As in `manage-context`; -1: as the template says."),
            optional("passthrough-runs", "integer", "The same."),
            optional("token-threshold", "integer", "The same."),
            optional("tools", "boolean or list of names", "The tools that the model may call in \
                                                           `chat`: `t` all, `nil` none; `nil`.")
                .of(tools::names),
            optional("allowed-tools", "boolean or list of names", "Those of them that it may call \
                                                                   without being allowed to; `nil`.")
                .of(tools::names),
            KEY,
        ],
        result: "`:session :model :strategy :window-tokens :archive-pruned :versioning :manage \
                 :template :recent-runs :passthrough-runs :token-threshold :tools :allowed-tools`, and \
                 `:settings`, each `:name :value :default :least :most`.",
        pace: Pace::InOrder,
        run: turn::configure_session,
    },
    Method {
        name: "report-usage",
        family: "session",
        doc: "Learns from what a provider reported how far counts are off for its model. Less than \
              200 tokens say too little: `:reports` then stays as it was.",
        params: &[
            required("model", "string", "The model's name."),
            required("counted", "integer", "The tokens that were counted, by `build-context`."),
            required("reported", "integer", "The tokens of input that the provider reported."),
            KEY,
        ],
        result: "`:model :ratio :reports :factor`.",
        pace: Pace::Prompt,
        run: turn::report_usage,
    },
];
