//! The origin of a request, and the part of the state that the request touches.

/// Part of the state that a request touches. The loop uses it to tell whether the request is quick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A few items of one manager.
    Manager(String),
    /// A few messages of one session; `None` means the current one.
    Session(Option<String>),
    /// Anything; the request may take long.
    Anything,
}

/// Origin of a request. Requests of one connection run in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Caller {
    /// A connection, by a unique number.
    Connection(u64),
    /// A caller without a connection. It waits for each outcome before its next request.
    #[default]
    Nobody,
}
