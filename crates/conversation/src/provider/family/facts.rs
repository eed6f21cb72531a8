//! What differs between the families. Nothing else in the program compares them.

use serde_json::Value;

use super::Decoder;
use crate::provider::chat::{Effort, Request};

/// The path below which Azure has deployments.
pub(in crate::provider) const DEPLOYMENTS: &str = "/openai/deployments/";

/// The facts of a family. Each has them in its file.
pub(in crate::provider) struct FamilyFacts {
    /// Default address of the interface.
    pub(in crate::provider) usual_url: &'static str,
    /// Environment variable from which the vendor's own programs read the key; `None` if there is no
    /// key.
    pub(in crate::provider) usual_key: Option<&'static str>,
    /// Usual header for the key. In `authorization`, the word `Bearer` precedes it.
    pub(in crate::provider) key_header: &'static str,
    /// Further headers of each request.
    pub(in crate::provider) headers: &'static [(&'static str, &'static str)],
    /// Returns the endpoint of Azure that answers, for a model; `None` if Azure does not have the
    /// interface.
    pub(in crate::provider) azure: Option<fn(&str) -> String>,
    /// Version before the endpoints, for an address that names none.
    pub(in crate::provider) version: &'static str,
    /// Returns an address without what of it the interface names anyway.
    pub(in crate::provider) base: fn(&str) -> &str,
    /// Endpoints with which addresses may end.
    pub(in crate::provider) endpoints: &'static [&'static str],
    /// Returns the endpoint that answers, for a model.
    pub(in crate::provider) chat: fn(&str) -> String,
    /// Endpoint that lists the models.
    pub(in crate::provider) models: &'static str,
    /// Names of the list of models, and of the name in each entry.
    pub(in crate::provider) listed: [&'static str; 2],
    /// What tells the limit of a model.
    pub(in crate::provider) limits: LimitsIn,
    /// Whether the interface takes PDFs; `None` if that depends on the server.
    pub(in crate::provider) takes_pdf: Option<bool>,
    /// Highest temperature.
    pub(in crate::provider) hottest: f64,
    /// True if temperature, top-p and an effort exclude each other.
    pub(in crate::provider) samples_one_way: bool,
    /// True if the results of several calls are one message.
    pub(super) joins_results: bool,
    /// Asks for an effort, given the model and the body of the request.
    pub(super) effort: fn(&str, Effort, &mut Value),
    /// Builds the body of a request. It gets the base of the address, the model, the request, and
    /// the window size in tokens that the server should provide.
    pub(super) body: fn(&str, &str, &Request, Option<u64>) -> Value,
    /// Begins to read an answer.
    pub(super) decoder: fn() -> Box<dyn Decoder>,
}

impl FamilyFacts {
    /// Returns whether the interface is one of `OpenAI`'s, which others imitate with differences:
    /// addresses may have a version, or lack it.
    pub(in crate::provider) fn is_openais(&self) -> bool {
        self.azure.is_some()
    }
}

/// What tells the limit of a model.
#[derive(Debug, Clone, Copy)]
pub(in crate::provider) enum LimitsIn {
    /// The list of models, and what local servers have besides.
    List,
    /// The entry of the model.
    Entry,
    /// What Ollama says of a model that is loaded, or of one that is not.
    Loaded,
}
