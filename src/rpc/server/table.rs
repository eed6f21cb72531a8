//! The methods about the server itself.

use super::backup;
use crate::rpc::call::Topic;
use crate::rpc::method::{Method, Run, required, typed};

const fn method(name: &'static str, run: Run) -> Method {
    Method::new("server", name, run)
}

/// In the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method("ping", typed!(super::ping))
        .doc("Answers at once.")
        .result("`:pong`."),
    method("server-info", typed!(super::server_info))
        .doc("Describes this server: its version, dialects, limits and state folder.")
        .result("`:name :version :dialects :pid :state :token-counter :limits :statistics \
                 :notices :read-only :backup`. Notices report findings of the start, such as damage. \
                 `:read-only` is nil, or why changes cannot be stored now; `:backup` is the newest \
                 automatic backup as `:path :bytes :at`, or nil."),
    method("subscribe", typed!(super::subscribe))
        .doc("Subscribes this connection to these topics, replacing an earlier subscription.")
        .params(&[
            required("topics", "list of names", "The topics; `nil` for none.").of(topic_names)
        ])
        .result("`(:topics TOPICS)`."),
    method("cancel", typed!(super::cancel))
        .doc("Cancels a running call of this connection. The call then returns the error -32800.")
        .params(&[required("id", "integer or string", "Id of the call.")])
        .result("`(:cancelled BOOLEAN)`: whether the call was running."),
    method("backup", typed!(backup::backup))
        .doc("Writes the whole state, including the logs, to one file in the state folder, and \
              reads it back. The next call replaces the file; `contexture backup FILE` moves it \
              away. Other calls continue meanwhile.")
        .result("`:path :bytes :at`."),
    method("shutdown", typed!(super::shutdown))
        .doc("Ends the server after the running calls are answered. The state is kept.")
        .result("`t`."),
];

fn topic_names() -> Vec<&'static str> {
    Topic::ALL.iter().map(|topic| topic.name()).collect()
}
