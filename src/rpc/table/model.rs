//! The methods of the model family.

use crate::rpc::chat::ProgressParams;
use crate::rpc::error_data::InTurn;
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;
use crate::rpc::{chat, models};

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    method!("model", "chat", chat::chat => chat::ChatAnswer)
        .changes_by_itself()
        .in_steps()
        .doc("Sends a message to a model: processes the turn like `process-turn`, builds the \
              window, streams the answer as `progress`, and stores it in the log. If it fails after \
              the message was stored, the message stays, with any part of the answer.")
        .result("`:id`, the answer's message, `:question`, `:content :stop-reason :usage (:input \
                 :output :cached) :cost :provider :model :window-tokens :left-out :management \
                 :rounds :tool-calls :turn`. `:turn` is the result of `process-turn`; `:left-out` lists the \
                 items that are not complete in the window, each `:id :fate :tokens :reason`; `:management` is the \
                 result of `take-notes`, `nil` if note-taking is off. Progress has `:kind \
                 :text`: `:text`, `:reasoning`, `:status`, `:retry`, `:tool-call` (with \
                 `:arguments`), `:tool-result` (with `:tool :outcome`) or `:approval` (with \
                 `:approval :tool :arguments`, and `:outside` for a file outside of the project), \
                 which `approve` answers. A dry run returns `:session :provider \
                 :model :payload :tokens :limit :limit-from :parts :items :managed-by`, and with a template \
                 `:template-source :template-path` or `:template-error`. Errors are of the \
                 kinds `unconfigured`, `authentication`, `rate-limited`, `quota-exhausted`, \
                 `context-too-long`, \
                 `bad-request`, `unavailable`, `malformed` and `session-busy`.")
        .in_errors::<InTurn>()
        .progress::<ProgressParams>()
        .pace(Pace::AsideAfter),
    method!("model", "approve", models::approve => models::Approved)
        .doc("Decides whether a model may make the tool call that its turn waits for. Without an \
              answer within ten minutes, the call is refused.")
        .result("`:approval`; the error `no-such-approval` if no call waits for it.")
        .changes_this_run()
        .pace(Pace::InOrder),
    method!("model", "list-approvals", models::list_approvals => Vec<models::OpenApproval>)
        .pages(&Paged::LIST)
        .doc("Lists the tool calls of all chats that wait for `approve`, oldest first. The topic \
              `approvals-changed` tells when there are others. A chat that ends, also since its \
              client hangs up, withdraws its question.")
        .result("A list of open questions."),
    method!("model", "list-providers", models::list_providers => Vec<models::ProviderResult<'static>>)
        .pages(&Paged::LIST)
        .doc("Lists the configured providers. The first is the default.")
        .result("A list of `:name :kind :model :base-url :context` (or `:script`) `:key :key-from :limit \
                 :limit-from :default :max-tokens :price-input :price-output`. `:limit` is the model's \
                 token limit, once its server has reported it (`:limit-from :server`) or \
                 refused a longer request (`:refusal`), else nil. `:key` is `:set`, `:missing` or \
                 `:none-needed`; `:key-from` is `:environment`, `:command`, `:call` or nil. A \
                 command is not run for this."),
    method!("model", "configure-provider", models::configure_provider => models::ProviderResult<'static>)
        .doc("Adds a provider, or replaces the one with this name, until the server ends. The \
              parameters correspond to the settings of `[[providers]]` in the configuration file. \
              The key is kept only in memory. Over TCP, only clients that sent the secret may call \
              this (else `not-allowed`).")
        .result("Its entry in `list-providers`. There can be at most 100 providers \
                 (`too-many-providers`).")
        .changes_this_run()
        .pace(Pace::InOrder),
    method!("model", "remove-provider", models::remove_provider => models::Removed<'static>)
        .doc("Removes a provider until the server ends. Turns that use it go on. Over TCP, only \
              clients that sent the secret may call this (else `not-allowed`).")
        .result("`:name`, and `:default`, the provider that is the default now, or nil.")
        .changes_this_run()
        .pace(Pace::InOrder),
    method!("model", "list-models", models::list_models => models::ModelsResult<'static>)
        .pages(&Paged { lists: &["models"], ..Paged::LIST })
        .doc("Asks a provider for its models; waits for at most 20 seconds.")
        .result("`:provider`, and `:models`, their names in the provider's order. Errors are of \
                 the same kinds as for `chat`.")
        .pace(Pace::Aside),
];
