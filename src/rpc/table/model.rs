//! The methods of the model family.

use crate::rpc::chat::ProgressParams;
use crate::rpc::error_data::InTurn;
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;
use crate::rpc::shapes::Either;
use crate::rpc::{agent_tools, chat, models, tool_methods};

/// Methods, in the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    method!("model", "chat", chat::chat => chat::ChatAnswer)
        .changes_by_itself()
        .in_steps()
        .doc(
            "Sends a message to a model: processes the turn like `process-turn`, builds the \
             window, streams the answer as `progress`, and stores it in the log. A message that \
             no window can hold is refused before it is stored. If the call fails after the \
             message was stored, the message stays in the log, with any part of the answer that \
             came. If no part came, the message leaves the conversation, and is not sent again. If \
             the last message in the conversation is the same and has no answer, it leaves the \
             conversation, too.",
        )
        .result(
            "The answer; for a dry run, the request that would be sent. The error is \
             `session-busy` during another turn of the session. Errors of providers are \
             `unconfigured`, `authentication`, `rate-limited`, `quota-exhausted`, \
             `context-too-long`, `bad-request`, `unavailable` and `malformed`.",
        )
        .in_errors::<InTurn>()
        .progress::<ProgressParams>()
        .pace(Pace::AsideAfter),
    method!("model", "approve", models::approve => models::Approved)
        .doc(
            "Allows or refuses the tool call for which a turn waits. If nobody decides within ten \
             minutes, the call is refused.",
        )
        .result(
            "The number of the question. The error is `no-such-approval` if no call waits for it.",
        )
        .changes_this_run()
        .pace(Pace::InOrder),
    method!("model", "list-approvals", models::list_approvals => Vec<models::OpenApproval>)
        .pages(&Paged::LIST)
        .doc(
            "Lists the tool calls of all chats that wait for `approve`, oldest first. The topic `approvals-changed` announces new and decided questions. A chat that ends, for \
             example because its client hangs up, withdraws its question.",
        )
        .result("A list of open questions."),
    method!("model", "register-tools", tool_methods::register_tools => tool_methods::Registered)
        .doc(
            "Registers tools that models may call. They belong to this connection, and end with it. \
             A model's call arrives as the notification `tool-called`, without a subscription; \
             answer it with `give-result`. Not for EPC, SLY and SLIME, and over TCP only for \
             clients that sent the secret (else `not-allowed`).",
        )
        .result("The number of tools."),
    method!("model", "call-tool", agent_tools::call_tool => agent_tools::CalledForAgent)
        .doc(
            "Calls a client's tool for an agent that is not the server's own; `contexture mcp` \
             calls this. Only tools whose owner offers them to agents in this project can be \
             called. If such a tool changes something, its owner asks its user first, and the call \
             may take up to ten minutes longer. Over TCP, only clients that sent the secret may \
             call this (else `not-allowed`).",
        )
        .result("The tool's result, or the reason why there is none.")
        .pace(Pace::Aside),
    method!("model", "list-tools", tool_methods::list_tools => Vec<tool_methods::ListedTool<'static>>)
        .pages(&Paged::LIST)
        .doc("Lists the tools that the connected clients bring.")
        .result("A list of tools, in the order in which they came."),
    method!("model", "give-result", tool_methods::give_result => tool_methods::ResultTaken)
        .doc(
            "Gives the result of a tool call that arrived as `tool-called`, or the reason why \
             there is none; or answers a question of the topic `text-wanted`. An editor that has \
             no text to give must answer, too, so that nobody waits for it. Only the connection \
             that was asked can answer, and only once.",
        )
        .result("True if the call or the question was still waiting for it."),
    method!("model", "list-providers", models::list_providers => Either<Vec<models::ProviderResult<'static>>, models::ModelsResult<'static>>)
        .pages(&Paged::LIST)
        .doc("Lists the configured providers. The first is the default. With `:models`, asks one of \
              them for its models.")
        .result(
            "A list of providers. Commands that print keys are not run for it. With `:models`, the \
             models, with their limits and abilities as far as they are known. Errors of providers \
             are as for `chat`.",
        )
        .pace(Pace::Aside),
    method!("model", "configure-provider", models::configure_provider => models::ProviderResult<'static>)
        .doc("Adds a provider, or replaces the one with this name, until the server ends. The \
              parameters are the settings of `[[providers]]` in the configuration file. \
              The key and the values of headers are kept only in memory. Over TCP, only clients that sent the secret may call \
              this (else `not-allowed`).")
        .result(
            "The provider, as in `list-providers`. The error is `too-many-providers` if there are \
             already 100.",
        )
        .changes_this_run()
        .pace(Pace::InOrder),
    method!("model", "remove-provider", models::remove_provider => models::RemovedProvider<'static>)
        .doc("Removes a provider until the server ends. Turns that use it go on. Over TCP, only \
              clients that sent the secret may call this (else `not-allowed`).")
        .result("The name of the provider, and that of the default provider now.")
        .changes_this_run()
        .pace(Pace::InOrder),
];
