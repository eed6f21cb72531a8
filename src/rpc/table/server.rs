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
        doc: "Says what this server is: its version, dialects, limits and state folder.",
        params: &[],
        result: "`:name :version :dialects :pid :state :token-counter :limits :statistics \
                 :notices :read-only :backup`. Notices say what the start found, such as damage. \
                 `:read-only` is nil, or why changes cannot be kept now; `:backup` is the newest \
                 automatic one as `:path :bytes :at`, or nil.",
        pace: Pace::Prompt,
        run: server::server_info,
    },
    Method {
        name: "methods",
        family: "server",
        doc: "Lists the methods.",
        params: &[],
        result: "A list of `:name :doc :params :result`; a parameter has `:name :type :required \
                 :doc`, and `:values` where they are a closed list.",
        pace: Pace::Prompt,
        run: server::methods,
    },
    Method {
        name: "subscribe",
        family: "server",
        doc: "From now on notifies this connection of these topics and no others.",
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
        doc: "Cancels a call of this connection that is running; the call then answers with the \
              error -32800.",
        params: &[required("id", "integer or string", "The id of the call.")],
        result: "`(:cancelled BOOLEAN)`: whether the call was running.",
        pace: Pace::Prompt,
        run: server::cancel,
    },
    Method {
        name: "backup",
        family: "server",
        doc: "Writes all of the state, what is still in the logs included, into one file in the \
              state folder, and reads it back. The next such call replaces the file; `contexture \
              backup FILE` moves it away. Others go on meanwhile.",
        params: &[],
        result: "`:path :bytes :at`.",
        pace: Pace::Prompt,
        run: backup::backup,
    },
    Method {
        name: "shutdown",
        family: "server",
        doc: "Ends the server once what runs is answered. The state stays.",
        params: &[],
        result: "`t`.",
        pace: Pace::Prompt,
        run: server::shutdown,
    },
];

fn topic_names() -> Vec<&'static str> {
    Topic::ALL.iter().map(|topic| topic.name()).collect()
}
