//! Codes and types of errors, as servers name them.

use crate::provider::error::ErrorKind;

/// Classifies a code or a type. Codes that say nothing, such as `invalid_request_error` beside a
/// status, are told apart by their words.
pub(super) fn kind_of_code(code: &str) -> Option<ErrorKind> {
    let code = &*code.replace(['_', '-'], "");
    let has = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
    Some(match code {
        // Zhipu's codes.
        "1261" => ErrorKind::ContextTooLong,
        "1302" | "1303" | "1305" => ErrorKind::RateLimited,
        "1000" | "1001" | "1002" | "1003" => ErrorKind::Authentication,
        "requesttoolarge" => ErrorKind::ContextTooLong,
        _ if has(&["contextlength", "contextsize", "contextwindow"]) => ErrorKind::ContextTooLong,
        _ if has(&["apikey", "authenticat", "permission", "unauthorized", "accessdenied"]) => {
            ErrorKind::Authentication
        }
        _ if has(&["ratelimit", "throttl", "resourceexhausted", "toomanyrequests"]) => {
            ErrorKind::RateLimited
        }
        _ if has(&[
            "overloaded",
            "unavailable",
            "servererror",
            "internal",
            "timeout",
            "apierror",
            "notready",
        ]) =>
        {
            ErrorKind::Unavailable
        }
        _ if has(&[
            "invalidrequest",
            "invalidargument",
            "notfound",
            "failedprecondition",
            "badrequest",
            "validation",
        ]) =>
        {
            ErrorKind::BadRequest
        }
        _ => return None,
    })
}

/// Names a number of `MiniMax`, which sends it with status 200.
pub(super) fn minimax(code: u64) -> &'static str {
    match code {
        1004 | 2049 => "authentication",
        1002 | 1041 => "rate_limit",
        1008 => "insufficient_balance",
        1039 => "context_length",
        2013 => "invalid_request",
        _ => "api_error",
    }
}
