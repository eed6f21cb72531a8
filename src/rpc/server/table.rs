//! The methods about the server itself.

use super::{backup, exchange, initialize};
use crate::rpc::method::{Method, Pace, method};
use crate::sync::GivenChanges;

/// Methods, in the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("server", "initialize", initialize::initialize => initialize::Initialized)
        .doc(
            "Introduces client and server to each other. Optional, and changes nothing: a client \
             may call it again to learn how the server is. A program that serves an agent, such as \
             `contexture mcp`, names the agent.",
        )
        .result("The server: its version, dialects, limits, state folder and statistics."),
    method!("server", "ping", super::ping => super::Ping)
        .doc("Answers at once.")
        .result("`:pong`."),
    method!("server", "subscribe", super::subscribe => super::Subscribed<'static>)
        .doc("Subscribes this connection to these topics, replacing an earlier subscription.")
        .result("The topics to which the connection is now subscribed."),
    method!("server", "cancel", super::cancel => super::CallCancelled)
        .doc(
            "Cancels a call of this connection that is waiting or running. The call then returns \
             the error -32800.",
        )
        .result("True if the call was waiting or running."),
    method!("server", "backup", backup::backup => backup::BackupShown)
        .doc(
            "Writes the state, including the list of trusted projects, to one file in \
             the state folder, and reads the file back. The next call replaces the file; `contexture backup FILE` moves \
             it to FILE. Other calls continue meanwhile.",
        )
        .result("The file of the backup.")
        .changes_after_work()
        .pace(Pace::Aside),
    method!("server", "exchange", exchange::exchange => GivenChanges)
        .doc(
            "Exchanges changes with another machine, as `contexture sync` does: notes what changed \
             here, takes the changes that are given, and returns those that the other machine \
             lacks. All of it is kept, or nothing. With `:hub`, shares projects there.",
        )
        .result("How far this machine knows all changes, and those that the other one lacks.")
        .pace(Pace::Aside),
    method!("server", "shutdown", super::shutdown => bool)
        .doc("Ends the server after the running calls are answered. The state is kept.")
        .result("`t`."),
];
