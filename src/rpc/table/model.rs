//! The methods of the model family.

use super::session::{PHASE, SESSION};
use super::{KEY, Method, Pace, optional, required};
use crate::rpc::{chat, providers};

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
            optional("sections", "plist", "Texts beside the conversation, as in `build-context`."),
            optional("dry-run", "boolean", "Show what would be sent; nothing is sent or changed."),
            KEY,
        ],
        result: "`:id`, the answer's message, `:question`, `:content :stop-reason :usage (:input \
                 :output :cached) :cost :provider :model :window-tokens :turn`. Progress has `:kind \
                 :text`: `:text`, `:reasoning`, `:tool-call`, `:status` or `:retry`. A dry run \
                 gives `:payload :tokens :parts`. Errors are of the kinds `unconfigured`, \
                 `authentication`, `rate-limited`, `context-too-long`, `bad-request`, \
                 `unavailable`, `malformed` and `session-busy`.",
        pace: Pace::Aside,
        run: chat::chat,
    },
    Method {
        name: "list-providers",
        family: "model",
        doc: "Lists the models that can be talked to; the first is used when none is named.",
        params: &[],
        result: "A list of `:name :model :address :default :max-tokens :price-input \
                 :price-output`.",
        pace: Pace::Prompt,
        run: providers::list_providers,
    },
];
