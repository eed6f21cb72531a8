//! Why a provider gave no answer, and what to do about it.

use std::time::Duration;

use super::overflow::Overflow;
use crate::names::names;

names! {
    /// The ways in which asking a provider fails.
    ErrorKind {
        /// Something is missing in the configuration.
        Unconfigured => "unconfigured",
        /// The key is wrong or may not do this.
        Authentication => "authentication",
        /// Too many requests at a time.
        RateLimited => "rate-limited",
        /// The account has no money or no allowance left, which waiting does not bring back.
        QuotaExhausted => "quota-exhausted",
        /// The request has more tokens than the model takes.
        ContextTooLong => "context-too-long",
        /// The provider does not accept the request: there is no such model, for one.
        BadRequest => "bad-request",
        /// The provider cannot be reached, takes too long, or has failed itself.
        Unavailable => "unavailable",
        /// Whoever asked no longer wants the answer.
        Cancelled => "cancelled",
        /// The answer is not what the provider's interface says.
        Malformed => "malformed",
    }
}

/// A failure, told with the provider, the model and the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} with the model {model:?}: {what}; {}", self.next_step())]
pub struct ProviderError {
    /// How it failed.
    pub kind: ErrorKind,
    /// The provider, as people know it: a name or an address.
    pub provider: String,
    /// The model that was asked for.
    pub model: String,
    /// What happened. It holds no key.
    pub what: String,
    /// How long the provider wants to be left alone, if it said so.
    pub retry_after: Option<Duration>,
    /// The figures of a request that is too long, if the provider said them.
    pub overflow: Option<Box<Overflow>>,
}

impl ProviderError {
    fn next_step(&self) -> String {
        match self.kind {
            ErrorKind::Unconfigured => {
                "complete the configuration and start the server again, or call configure-provider"
                    .into()
            }
            ErrorKind::Authentication => "check the key that is configured for it".into(),
            ErrorKind::RateLimited => match self.retry_after {
                Some(wait) => format!("try again in {} s", wait.as_secs().max(1)),
                None => "try again later, or look at the quota".into(),
            },
            ErrorKind::QuotaExhausted => {
                "look at the plan and the balance of the account, or choose another provider".into()
            }
            ErrorKind::ContextTooLong => "send less, or choose a model with a larger window".into(),
            ErrorKind::BadRequest => "check the url and the name of the model".into(),
            ErrorKind::Unavailable => "check that it runs and can be reached, and try again".into(),
            ErrorKind::Cancelled => "ask again".into(),
            ErrorKind::Malformed => "check that the url is that of such an interface".into(),
        }
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
        }
    }
}
