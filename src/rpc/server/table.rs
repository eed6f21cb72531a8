//! The methods about the server itself.

use super::{Method, Pace, required};
use crate::rpc::call::Topic;
use crate::rpc::{backup, server};

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    Method {
        name: "ping",
        family: "server",
        doc: "Answers at once.",
        params: &[],
        result: "`:pong`.",
        pace: Pace::Prompt,
        run: server::ping,
    },
    Method {
        name: "server-info",
        family: "server",
        doc: "Describes this server: its version, dialects, limits and state folder.",
        params: &[],
        result: "`:name :version :dialects :pid :state :token-counter :limits :statistics \
                 :notices :read-only :backup`. Notices report findings of the start, such as damage. \
                 `:read-only` is nil, or why changes cannot be stored now; `:backup` is the newest \
                 automatic backup as `:path :bytes :at`, or nil.",
        pace: Pace::Prompt,
        run: server::server_info,
    },
    Method {
        name: "methods",
        family: "server",
        doc: "Lists the methods.",
        params: &[],
        result: "A list of `:name :doc :params :result`; a parameter has `:name :type :required \
                 :doc`, and `:values` if they are a closed list.",
        pace: Pace::Prompt,
        run: server::methods,
    },
    Method {
        name: "subscribe",
        family: "server",
        doc: "Subscribes this connection to these topics, replacing an earlier subscription.",
        params: &[
            required("topics", "list of names", "The topics; `nil` for none.").of(topic_names)
        ],
        result: "`(:topics TOPICS)`.",
        pace: Pace::Prompt,
        run: server::subscribe,
    },
    Method {
        name: "cancel",
        family: "server",
        doc: "Cancels a running call of this connection. The call then returns the error -32800.",
        params: &[required("id", "integer or string", "Id of the call.")],
        result: "`(:cancelled BOOLEAN)`: whether the call was running.",
        pace: Pace::Prompt,
        run: server::cancel,
    },
    Method {
        name: "backup",
        family: "server",
        doc: "Writes the whole state, including the logs, to one file in the state folder, and \
              reads it back. The next call replaces the file; `contexture backup FILE` moves it \
              away. Other calls continue meanwhile.",
        params: &[],
        result: "`:path :bytes :at`.",
        pace: Pace::Prompt,
        run: backup::backup,
    },
    Method {
        name: "shutdown",
        family: "server",
        doc: "Ends the server after the running calls are answered. The state is kept.",
        params: &[],
        result: "`t`.",
        pace: Pace::Prompt,
        run: server::shutdown,
    },
];

fn topic_names() -> Vec<&'static str> {
    Topic::ALL.iter().map(|topic| topic.name()).collect()
}
