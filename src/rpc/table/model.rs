//! The methods of the model family.

use super::session::{PHASE, SESSION};
use super::{KEY, Method, Pace, optional, required};
use crate::agent::Decision;
use crate::rpc::{chat, models, tools};

fn decisions() -> Vec<&'static str> {
    Decision::ALL.iter().map(|decision| decision.name()).collect()
}

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    Method {
        name: "chat",
        family: "model",
        doc: "Talks to a model: processes the turn as `process-turn` does, builds the window, \
              streams the answer as `progress`, and puts it into the log. What fails once the \
              message is in the log leaves it there, with as much of the answer as came.",
        params: &[
            SESSION,
            required("content", "string", "What the user says."),
            PHASE,
            optional("provider", "string", "The provider's name; the first configured by default."),
            optional(
                "model",
                "string",
                "The model, or the name of a provider; by default the \
                                         session's, then the provider's.",
            ),
            optional(
                "manage",
                "boolean",
                "Whether the history is managed in this turn; by default \
                                           what is set for the session.",
            ),
            optional(
                "template",
                "string",
                "The template that manages it, which implies `:manage \
                                            t`; a first line `@context-helper NAME` does the same.",
            ),
            optional(
                "tools",
                "boolean or list of names",
                "The tools that the model may call in \
                                                           this turn: `t` all, `nil` none; by \
                                                           default what is set for the session.",
            )
            .of(tools::names),
            optional(
                "allow",
                "boolean or list of names",
                "Those of them that it may call without \
                                                           being allowed to each time.",
            )
            .of(tools::names),
            optional("sections", "plist", "Texts beside the conversation, as in `build-context`."),
            optional(
                "dry-run",
                "boolean",
                "Show what would be sent of the session as it is, without memories that the turn \
                 would find and before any managing; nothing is sent or changed.",
            ),
            KEY,
        ],
        result: "`:id`, the answer's message, `:question`, `:content :stop-reason :usage (:input \
                 :output :cached) :cost :provider :model :window-tokens :left-out :management \
                 :rounds :tool-calls :turn`; `:turn` is what `process-turn` tells; `:left-out` has the \
                 items that are not whole in the window, each `:id :fate :tokens :reason`; `:management` is what `manage-context` \
                 tells of it, `nil` for a turn that was not to be managed. Progress has `:kind \
                 :text`: `:text`, `:reasoning`, `:status`, `:retry`, `:tool-call` (with \
                 `:arguments`), `:tool-result` (with `:tool :outcome`) or `:approval` (with \
                 `:approval :tool :arguments`, and `:outside` for a file that is not the project's), \
                 which `approve` answers. A dry run gives `:session :provider \
                 :model :payload :tokens :limit :limit-from :parts :items :managed-by`, and of a template \
                 `:template-source :template-path`, or `:template-error`. Errors are of the \
                 kinds `unconfigured`, `authentication`, `rate-limited`, `quota-exhausted`, \
                 `context-too-long`, \
                 `bad-request`, `unavailable`, `malformed` and `session-busy`.",
        pace: Pace::Aside,
        run: chat::chat,
    },
    Method {
        name: "approve",
        family: "model",
        doc: "Says whether a model may call a tool for which its turn waits. What nobody answers \
              within ten minutes is refused.",
        params: &[
            required("approval", "integer", "The number that the progress of the turn told."),
            required("decision", "name", "`:always` allows the tool for the session from now on.")
                .of(decisions),
        ],
        result: "`:approval`; the error `no-such-approval` when nothing waits for it.",
        pace: Pace::Prompt,
        run: models::approve,
    },
    Method {
        name: "list-providers",
        family: "model",
        doc: "Lists the models that can be talked to; the first is used when none is named.",
        params: &[],
        result: "A list of `:name :kind :model :base-url :context` (or `:script`) `:key :key-from :limit \
                 :limit-from :default :max-tokens :price-input :price-output`. `:limit` is how many \
                 tokens the model takes, once its server has told it (`:limit-from :server`) or \
                 refused more (`:refusal`); else nil. `:key` is `:set`, `:missing` or \
                 `:none-needed`, `:key-from` is `:environment`, `:command`, `:call` or nil; a \
                 command is not run for this.",
        pace: Pace::Prompt,
        run: models::list_providers,
    },
    Method {
        name: "configure-provider",
        family: "model",
        doc: "Adds a model that can be talked to, or replaces the one of this name, until the \
              server ends. The parameters mean what the settings of `[[providers]]` in the \
              configuration file mean. The key is kept in memory alone. Over TCP only for clients \
              that showed the secret (`not-allowed`).",
        params: &[
            required("name", "string", "How you call it."),
            required("kind", "string", "openai, anthropic, gemini, ollama or scripted."),
            required("model", "string", "The model's name there."),
            optional("base-url", "string", "The address; the usual one of its kind by default."),
            optional("api-key", "string", "The key itself. It is never stored, logged or shown."),
            optional(
                "api-key-env",
                "string",
                "The environment variable of the server that has the key. Not for clients over \
                 TCP.",
            ),
            optional(
                "api-key-command",
                "string",
                "The command that prints the key; the server runs it when it needs the key. Not \
                 for clients over TCP.",
            ),
            optional(
                "script",
                "string",
                "The file that a scripted model plays, of at most 16 MiB. Not for clients over \
                 TCP.",
            ),
            optional(
                "context",
                "integer",
                "How many tokens Ollama is to make room for, instead of its own default.",
            ),
            optional("max-tokens", "integer", "How many tokens an answer may have."),
            optional("price-input", "number", "What a million tokens of input cost."),
            optional("price-output", "number", "What a million tokens of output cost."),
            optional("default", "boolean", "Make it the one that is used when none is named."),
        ],
        result: "What `list-providers` says of it. At most 100 can be there \
                 (`too-many-providers`).",
        pace: Pace::InOrder,
        run: models::configure_provider,
    },
    Method {
        name: "list-models",
        family: "model",
        doc: "Asks a provider which models it has, for at most 20 seconds.",
        params: &[optional("provider", "string", "The provider's name; the default by default.")],
        result: "`:provider`, and `:models`, their names in the provider's order. Errors are of \
                 the kinds that `chat` has.",
        pace: Pace::Aside,
        run: models::list_models,
    },
];
