//! Errors of providers, with advice for the user.

use std::borrow::Cow;
use std::time::Duration;

use super::overflow::Overflow;
use crate::names::names;

names! {
    /// The kind of failure of a request to a provider.
    #[cfg_attr(not(feature = "program"), non_exhaustive)]
    ErrorKind {
        /// The configuration is incomplete.
        Unconfigured => "unconfigured",
        /// The key is wrong or lacks a permission.
        Authentication => "authentication",
        /// Too many requests in a short time.
        RateLimited => "rate-limited",
        /// The account has no money or allowance left; waiting does not help.
        QuotaExhausted => "quota-exhausted",
        /// The request has more tokens than the model accepts.
        ContextTooLong => "context-too-long",
        /// The provider rejects the request, for example because of an unknown model.
        BadRequest => "bad-request",
        /// The provider cannot be reached, takes too long, or fails.
        Unavailable => "unavailable",
        /// The caller cancelled the request.
        Cancelled => "cancelled",
        /// The answer violates the provider's protocol, or is too long.
        Malformed => "malformed",
    }
}

/// The failure of a request, reported with the provider, the model and advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} with the model {model:?}: {what}; {}", self.next_step())]
pub struct ProviderError {
    /// Kind of the failure.
    pub kind: ErrorKind,
    /// Name of the provider to show to the user: its configured name or its address.
    pub provider: String,
    /// Name of the requested model.
    pub model: String,
    /// Description of the failure, without the key.
    pub what: String,
    /// Time that the provider asks clients to wait, if it gave one.
    pub retry_after: Option<Duration>,
    /// Token counts of a request that is too long, if the provider gave them.
    pub overflow: Option<Box<Overflow>>,
}

impl ProviderError {
    /// Creates the error of a request to a provider's model.
    pub fn new(
        kind: ErrorKind,
        provider: impl Into<String>,
        model: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        let (provider, model, what) = (provider.into(), model.into(), what.into());
        Self { kind, provider, model, what, retry_after: None, overflow: None }
    }

    fn next_step(&self) -> Cow<'static, str> {
        let step = match self.kind {
            ErrorKind::Unconfigured => "correct the provider's configuration, and try again",
            ErrorKind::Authentication => "check the key that is configured for this provider",
            ErrorKind::RateLimited => match self.retry_after {
                Some(wait) => return format!("try again in {} s", wait.as_secs().max(1)).into(),
                None => "try again later, or check the quota",
            },
            ErrorKind::QuotaExhausted => {
                "check the account's plan and balance, or choose another provider"
            }
            ErrorKind::ContextTooLong => "send less, or choose a model with a larger window",
            ErrorKind::BadRequest => {
                "change what the server names, or check the url and the name of the model"
            }
            ErrorKind::Unavailable => {
                "check that the provider's server is running and can be reached, and try again"
            }
            ErrorKind::Cancelled => "ask again",
            ErrorKind::Malformed => {
                "ask again; if this happens again, check that the url points to the right kind of \
                 server"
            }
        };
        step.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_provider_the_model_and_the_next_step() {
        for kind in ErrorKind::ALL {
            let error = ProviderError {
                kind: *kind,
                provider: "here.example".into(),
                model: "m-1".into(),
                what: "it failed".into(),
                retry_after: Some(Duration::from_secs(7)),
                overflow: None,
            };
            let said = error.to_string();
            let start = "here.example with the model \"m-1\": it failed; ";
            assert!(said.starts_with(start) && said.len() > start.len(), "{said}");
            assert_eq!(said.contains("in 7 s"), *kind == ErrorKind::RateLimited, "{said}");
            if *kind == ErrorKind::Malformed {
                assert!(said.contains("ask again"), "an answer may only have been too long");
            }
        }
    }
}
