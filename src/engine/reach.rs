//! The part of the state that a request touches.

/// Part of the state that a request touches. It tells the loop whether the request is quick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A few items of one manager.
    Manager(String),
    /// A few messages of one session; `None` means the current one.
    Session(Option<String>),
    /// Anything; the request may take long.
    Anything,
}
