//! Addresses of servers, as users write them: with and without the version, with the whole
//! endpoint, with a query.

use super::family::{DEPLOYMENTS, Family};

/// Endings of the hosts of Azure, which take the key in a header of their own.
const AZURE: &[&str] =
    &[".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"];

/// The address of a server, in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerAddress {
    family: Family,
    /// Everything before the endpoint.
    base: String,
    /// The query with its question mark, or nothing.
    query: String,
    /// True if the version belongs to the base, or the server has none.
    is_whole: bool,
    /// True if the model is one of Azure's deployments, which the path names.
    is_deployed: bool,
}

impl ServerAddress {
    /// Takes an address apart. `version` is that of Azure's interface.
    pub(super) fn new(family: Family, url: &str, version: Option<&str>) -> Self {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let has_version = query.split('&').any(|part| part.starts_with("api-version="));
        let version = version.filter(|_| !has_version);
        let version = version.map(|version| format!("api-version={version}"));
        let parts = [Some(query.to_owned()).filter(|query| !query.is_empty()), version];
        let query = parts.into_iter().flatten().collect::<Vec<_>>().join("&");
        let query = if query.is_empty() { query } else { format!("?{query}") };
        let facts = family.facts();
        let path = (facts.base)(path.trim_end_matches('/')).trim_end_matches('/');
        let known = facts.endpoints.iter().find_map(|endpoint| path.strip_suffix(endpoint));
        let base = known.unwrap_or(path).trim_end_matches('/');
        let is_azure = facts.is_openais() && query.contains("api-version=");
        // Other paths of Azure have no deployments.
        let root = base.strip_suffix("/openai").filter(|_| is_azure);
        let is_root = base.split("://").nth(1).is_some_and(|rest| !rest.contains('/'));
        let is_deployed = is_azure && (root.is_some() || is_root || base.contains(DEPLOYMENTS));
        let base = root.unwrap_or(base);
        let is_whole = base.len() < path.len()
            || has_version_in(base)
            || (facts.is_openais() && !query.is_empty());
        Self { family, base: base.to_owned(), query, is_whole, is_deployed }
    }

    /// Returns whether the version may be missing.
    pub(super) fn may_lack_version(&self) -> bool {
        self.family.facts().is_openais() && !self.is_whole
    }

    /// Returns the address with the version that nearly all servers have.
    pub(super) fn with_version(&self) -> Self {
        Self { base: format!("{}/v1", self.base), is_whole: true, ..self.clone() }
    }

    /// Returns whether the server lists other models than can be asked: Azure lists what could be
    /// deployed.
    pub(super) fn is_deployed(&self) -> bool {
        self.is_deployed
    }

    /// Returns everything before the endpoint, with the version.
    pub(super) fn versioned(&self) -> String {
        let version = if self.is_whole { "" } else { self.family.facts().version };
        format!("{}{version}", self.base)
    }

    /// Returns the address of an endpoint.
    pub(super) fn endpoint(&self, path: &str) -> String {
        let query = match path.contains('?') {
            true => self.query.replacen('?', "&", 1),
            false => self.query.clone(),
        };
        format!("{}{path}{query}", self.versioned())
    }

    pub(super) fn chat(&self, model: &str) -> String {
        let facts = self.family.facts();
        let is_named = !self.is_deployed || self.base.contains(DEPLOYMENTS);
        let endpoint = facts.azure.filter(|_| !is_named).unwrap_or(facts.chat);
        self.endpoint(&endpoint(model))
    }

    pub(super) fn models(&self) -> String {
        if self.is_deployed {
            let root = self.base.split(DEPLOYMENTS).next().unwrap_or(&self.base);
            return format!("{root}/openai/models{}", self.query);
        }
        self.endpoint(self.family.facts().models)
    }
}

/// Returns the header in which a server wants the key.
pub(super) fn key_header(family: Family, url: &str, version: Option<&str>) -> &'static str {
    let host = url.split("://").nth(1).unwrap_or(url).split(['/', ':', '?']).next();
    let is_azure = AZURE.iter().any(|end| host.is_some_and(|host| host.ends_with(end)));
    let facts = family.facts();
    match facts.is_openais() && (is_azure || version.is_some() || url.contains(DEPLOYMENTS)) {
        true => "api-key",
        false => facts.key_header,
    }
}

/// Returns whether an address ends with a version, such as `/v1`, `/v1beta` or `/v4`.
fn has_version_in(base: &str) -> bool {
    let last = base.rsplit('/').next().unwrap_or_default();
    last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(family: Family, urls: &[&str], chat: &str) {
        for url in urls {
            assert_eq!(ServerAddress::new(family, url, None).chat("m"), chat, "{url}");
        }
    }

    #[test]
    fn addresses_are_taken_as_people_write_them() {
        let urls =
            ["http://h/v1", "http://h/v1/", "http://h/v1/chat/completions", "http://h/v1/models"];
        check(Family::Openai, &urls, "http://h/v1/chat/completions");
        check(Family::Openai, &["http://h", "http://h/"], "http://h/chat/completions");
        let azure = "https://h/openai/deployments/d/chat/completions?api-version=1";
        check(Family::Openai, &["https://h/openai/deployments/d?api-version=1", azure], azure);
        let urls = ["https://h", "https://h/v1", "https://h/v1/messages", "https://h/"];
        check(Family::Anthropic, &urls, "https://h/v1/messages");
        let urls = ["http://h", "http://h/v1", "http://h/api", "http://h/api/chat"];
        check(Family::Ollama, &urls, "http://h/api/chat");
        let chat = "https://h/v1beta/models/m:streamGenerateContent?alt=sse";
        let urls = ["https://h", "https://h/v1beta", "https://h/v1beta/models/x:generateContent"];
        check(Family::Gemini, &urls, chat);
        check(Family::Gemini, &["https://h/v1beta?a=b"], &format!("{chat}&a=b"));
        let version = |url: &str| ServerAddress::new(Family::Openai, url, None).may_lack_version();
        assert!(version("http://h") && version("http://h/proxy"));
        assert!(!version("http://h/v4") && !version("http://h/chat/completions"));
    }
    #[test]
    fn azure_has_the_model_in_the_path_and_the_version_in_the_query() {
        let at = |family, url: &str| ServerAddress::new(family, url, Some("2024-10-21"));
        let whole = "https://r.openai.azure.com/openai/deployments/m/chat/completions\
                     ?api-version=2024-10-21";
        let root = "https://r.openai.azure.com";
        for url in ["", "/", "/openai", "/openai/deployments/m", "/openai/deployments/m/"] {
            let address = at(Family::Openai, &format!("{root}{url}"));
            assert_eq!(address.chat("m"), whole, "{url}");
            assert_eq!(address.models(), format!("{root}/openai/models?api-version=2024-10-21"));
            assert!(!address.may_lack_version() && address.is_deployed());
        }
        let responses = "https://r.openai.azure.com/openai/responses?api-version=2024-10-21";
        assert_eq!(at(Family::Responses, root).chat("m"), responses);
        let v1 = ServerAddress::new(Family::Responses, &format!("{root}/openai/v1"), None);
        assert_eq!(v1.chat("m"), format!("{root}/openai/v1/responses"));
        assert!(!v1.is_deployed());
        let others = "https://r.services.ai.azure.com/models/chat/completions";
        let whole = format!("{others}?api-version=2024-10-21");
        assert_eq!(at(Family::Openai, others).chat("m"), whole);
        for (url, version, header) in [
            (root, None, "api-key"),
            ("https://h/openai/deployments/d", None, "api-key"),
            ("http://h", Some("1"), "api-key"),
            ("http://openai.azure.com.example", None, "authorization"),
        ] {
            assert_eq!(key_header(Family::Openai, url, version), header, "{url}");
        }
    }
}
