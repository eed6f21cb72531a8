//! The methods of the model family.

use super::{KEY, Method, Pace, optional, required};
use crate::agent::Decision;
use crate::agent::tools::context;
use crate::rpc::method::{PHASE, Run, SESSION};
use crate::rpc::{chat, models};

fn decisions() -> Vec<&'static str> {
    Decision::ALL.iter().map(|decision| decision.name()).collect()
}

const fn method(name: &'static str, run: Run) -> Method {
    Method::new("model", name, run)
}

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    method("chat", chat::chat)
        .doc("Sends a message to a model: processes the turn like `process-turn`, builds the \
              window, streams the answer as `progress`, and stores it in the log. If it fails after \
              the message was stored, the message stays, with any part of the answer.")
        .params(&[
            SESSION,
            required("content", "string", "The user's message."),
            PHASE,
            optional(
                "provider",
                "string",
                "Name of the provider; defaults to the first configured.",
            ),
            optional(
                "model",
                "string",
                "Model, or the name of a provider; defaults to the \
                                         session's, else to the provider's.",
            ),
            optional(
                "manage",
                "boolean",
                "Have a template manage the history in this turn; \
                                           defaults to the session's setting.",
            ),
            optional(
                "template",
                "string",
                "Template to use; implies `:manage t`. A first line \
                                            `@context-helper NAME` in the message does the same.",
            ),
            optional(
                "tools",
                "boolean or list of names",
                "Tools that the model may call in this \
                                                           turn: `t` all, `nil` none; defaults to \
                                                           the session's setting.",
            )
            .of(context::names),
            optional(
                "allow",
                "boolean or list of names",
                "Tools that the model may call without \
                                                           asking.",
            )
            .of(context::names),
            optional(
                "sections",
                "plist",
                "Texts to include with the conversation, as in `build-context`.",
            ),
            optional(
                "dry-run",
                "boolean",
                "Show what would be sent from the session as it is, without the memories that the \
                 turn would find and before any managing. Nothing is sent or changed.",
            ),
            KEY,
        ])
        .result("`:id`, the answer's message, `:question`, `:content :stop-reason :usage (:input \
                 :output :cached) :cost :provider :model :window-tokens :left-out :management \
                 :rounds :tool-calls :turn`. `:turn` is the result of `process-turn`; `:left-out` lists the \
                 items that are not complete in the window, each `:id :fate :tokens :reason`; `:management` is the \
                 result of `manage-context`, `nil` if managing is off. Progress has `:kind \
                 :text`: `:text`, `:reasoning`, `:status`, `:retry`, `:tool-call` (with \
                 `:arguments`), `:tool-result` (with `:tool :outcome`) or `:approval` (with \
                 `:approval :tool :arguments`, and `:outside` for a file outside of the project), \
                 which `approve` answers. A dry run returns `:session :provider \
                 :model :payload :tokens :limit :limit-from :parts :items :managed-by`, and with a template \
                 `:template-source :template-path` or `:template-error`. Errors are of the \
                 kinds `unconfigured`, `authentication`, `rate-limited`, `quota-exhausted`, \
                 `context-too-long`, \
                 `bad-request`, `unavailable`, `malformed` and `session-busy`.")
        .pace(Pace::Aside),
    method("approve", models::approve)
        .doc("Decides whether a model may make the tool call that its turn waits for. Without an \
              answer within ten minutes, the call is refused.")
        .params(&[
            required("approval", "integer", "Number from the progress of the turn."),
            required("decision", "name", "`:always` allows the tool for the rest of the session.")
                .of(decisions),
        ])
        .result("`:approval`; the error `no-such-approval` if no call waits for it."),
    method("list-providers", models::list_providers)
        .doc("Lists the configured providers. The first is the default.")
        .result("A list of `:name :kind :model :base-url :context` (or `:script`) `:key :key-from :limit \
                 :limit-from :default :max-tokens :price-input :price-output`. `:limit` is the model's \
                 token limit, once its server has reported it (`:limit-from :server`) or \
                 refused a longer request (`:refusal`), else nil. `:key` is `:set`, `:missing` or \
                 `:none-needed`; `:key-from` is `:environment`, `:command`, `:call` or nil. A \
                 command is not run for this."),
    method("configure-provider", models::configure_provider)
        .doc("Adds a provider, or replaces the one with this name, until the server ends. The \
              parameters correspond to the settings of `[[providers]]` in the configuration file. \
              The key is kept only in memory. Over TCP, only clients that sent the secret may call \
              this (else `not-allowed`).")
        .params(&[
            required("name", "string", "Your name for the provider."),
            required("kind", "string", "One of openai, anthropic, gemini, ollama, scripted."),
            required("model", "string", "Name of the model on the server."),
            optional("base-url", "string", "Address; defaults to the usual one of its kind."),
            optional("api-key", "string", "The key itself; never stored, logged or shown."),
            optional(
                "api-key-env",
                "string",
                "Environment variable of the server that holds the key. Not for clients over TCP.",
            ),
            optional(
                "api-key-command",
                "string",
                "Command that prints the key; the server runs it when it needs the key. Not for \
                 clients over TCP.",
            ),
            optional(
                "script",
                "string",
                "Script for a scripted model to play, at most 16 MiB. Not for clients over TCP.",
            ),
            optional(
                "context",
                "integer",
                "Window size in tokens to request from Ollama; defaults to Ollama's own.",
            ),
            optional("max-tokens", "integer", "Maximum number of tokens in an answer."),
            optional("price-input", "number", "Price of a million input tokens."),
            optional("price-output", "number", "Price of a million output tokens."),
            optional("default", "boolean", "Make it the default provider."),
        ])
        .result("Its entry in `list-providers`. There can be at most 100 providers \
                 (`too-many-providers`).")
        .pace(Pace::InOrder),
    method("list-models", models::list_models)
        .doc("Asks a provider for its models; waits for at most 20 seconds.")
        .params(&[optional(
            "provider",
            "string",
            "Name of the provider; defaults to the default provider.",
        )])
        .result("`:provider`, and `:models`, their names in the provider's order. Errors are of \
                 the same kinds as for `chat`.")
        .pace(Pace::Aside),
];
