//! What differs between the families besides their requests and answers.

use serde_json::Value;

use crate::provider::chat::Effort;

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
    /// True if addresses of this interface may have a version, or lack it, and Azure has this
    /// interface.
    pub(in crate::provider) has_versions: bool,
    /// Version before the endpoints, for an address that names none.
    pub(in crate::provider) version: &'static str,
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
    /// True if the results of several calls are one message.
    pub(super) joins_results: bool,
    /// Asks for an effort, given the model and the body of the request.
    pub(super) effort: fn(&str, Effort, &mut Value),
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
