//! The part of the state that a call is about, as far as its parameters tell.

use super::method::Method;
use super::params::{lacks, named};
use super::version::VersionOwner;
use crate::engine::SHARED_MANAGER;
use crate::ids::SessionId;
use crate::value::Value;

/// Method that takes the texts in a client's buffers as its `:items`. These do not depend on earlier
/// calls, so the call need not wait for any.
const OF_BUFFERS: &str = "update-items";

/// The part of the state that a call is about, and whether the call may change that part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touched {
    pub subject: TouchedPart,
    /// True if the call may change the subject.
    pub changes: bool,
}

/// A part of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TouchedPart {
    /// Nothing that other calls change.
    Nothing,
    /// The manager with this name.
    Manager(String),
    /// The session with this name or id; `None` for any session.
    Session(Option<String>),
    /// The whole state.
    Everything,
}

impl TouchedPart {
    /// Returns whether calls about `self` and calls about `other` must keep their order.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => false,
            (Self::Everything, _) | (_, Self::Everything) => true,
            (Self::Manager(one), Self::Manager(other)) => one == other,
            (Self::Session(Some(one)), Self::Session(Some(other))) => {
                let is_id = |name: &str| name.parse::<SessionId>().is_ok();
                one == other || is_id(one) || is_id(other)
            }
            (Self::Session(_), Self::Session(_)) => true,
            (Self::Manager(_), Self::Session(_)) | (Self::Session(_), Self::Manager(_)) => false,
        }
    }
}

impl Method {
    /// Returns the part of the state that a call with these parameters is about.
    pub(crate) fn touched(&self, params: &Value) -> Touched {
        Touched { subject: self.subject(params), changes: self.is_change() }
    }

    fn subject(&self, params: &Value) -> TouchedPart {
        let takes = |name: &str| self.params().iter().any(|param| param.name == name);
        let given = |name: &str| named(params, name);
        if takes("calls") || takes("into") && !lacks(params, "into") {
            // The calls of a batch may be about anything, and items may move between managers.
            return TouchedPart::Everything;
        }
        if self.name == OF_BUFFERS && !lacks(params, "items") {
            return TouchedPart::Nothing;
        }
        if self.about() == Some(VersionOwner::Either) && !lacks(params, "session") {
            return TouchedPart::Session(given("session"));
        }
        // Sets belong to no manager, and some methods read several managers.
        if takes("manager") && !takes("name") && lacks(params, "managers") {
            let shared = || SHARED_MANAGER.to_owned();
            return TouchedPart::Manager(given("manager").unwrap_or_else(shared));
        }
        match self.family {
            _ if takes("session") => TouchedPart::Session(given("session")),
            "context" => TouchedPart::Everything,
            "session" => TouchedPart::Session(None),
            _ => TouchedPart::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::find;
    use crate::value::sexp;

    #[track_caller]
    fn check(method: &str, params: &str, expected: TouchedPart) {
        let mut params = sexp::read(params).unwrap();
        let method = find(method, &mut params).unwrap();
        assert_eq!(method.touched(&params).subject, expected, "{}", method.name);
    }

    #[test]
    fn only_the_texts_of_buffers_wait_for_nothing() {
        check(OF_BUFFERS, "(:manager m :items [])", TouchedPart::Nothing);
        check(OF_BUFFERS, "(:manager m :id i)", TouchedPart::Manager("m".to_owned()));
        let session = |name: &str| TouchedPart::Session(Some(name.to_owned()));
        check("build-window", "(:session s :items nil)", session("s"));
        check("build-window", "(:session s)", session("s"));
    }

    #[test]
    fn a_name_may_have_text_properties() {
        let manager = TouchedPart::Manager("m".to_owned());
        check("clear-context", "(:manager #(\"m\" 0 1 (face bold)))", manager);
        let session = TouchedPart::Session(Some("s".to_owned()));
        check("add-message", "(:session #(\"s\" 0 1 (face bold)))", session);
    }
}
