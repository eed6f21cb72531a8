//! Addresses of servers, as users write them: with and without the version, with the whole
//! endpoint, with a query.

use super::family::Family;

/// The address of a server, in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    family: Family,
    /// Everything before the endpoint.
    base: String,
    /// The query with its question mark, or nothing.
    query: String,
    /// True if the version belongs to the base, or the server has none.
    is_whole: bool,
}

impl Address {
    pub(super) fn new(family: Family, url: &str) -> Self {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        let path = path.trim_end_matches('/');
        let endpoints: &[&str] = match family {
            Family::Openai => &["/chat/completions", "/models", "/responses"],
            Family::Anthropic => &["/messages", "/models"],
            Family::Gemini => &[],
            Family::Ollama => &["/api/chat", "/api/generate", "/api/tags", "/v1", "/api"],
        };
        let known = endpoints.iter().find_map(|endpoint| path.strip_suffix(endpoint));
        let base = match family {
            // The stable version lacks what requests need.
            Family::Gemini => match path.split_once("/models/") {
                Some((base, _)) => base,
                None => path.strip_suffix("/v1").unwrap_or(path),
            },
            _ => known.unwrap_or(path),
        };
        let is_whole = (base != path && family != Family::Gemini)
            || has_version(base)
            || (family == Family::Openai && !query.is_empty());
        Self { family, base: base.trim_end_matches('/').to_owned(), query, is_whole }
    }

    /// Returns whether the version may be missing.
    pub(super) fn may_lack_version(&self) -> bool {
        self.family == Family::Openai && !self.is_whole
    }

    /// Returns the address with the version that nearly all servers have.
    pub(super) fn with_version(&self) -> Self {
        Self { base: format!("{}/v1", self.base), is_whole: true, ..self.clone() }
    }

    /// Returns everything before the endpoint, with the version.
    pub(super) fn versioned(&self) -> String {
        let version = match self.family {
            _ if self.is_whole => "",
            Family::Anthropic => "/v1",
            Family::Gemini => "/v1beta",
            Family::Openai | Family::Ollama => "",
        };
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
        match self.family {
            Family::Openai => self.endpoint("/chat/completions"),
            Family::Anthropic => self.endpoint("/messages"),
            Family::Gemini => {
                let model = model.strip_prefix("models/").unwrap_or(model);
                self.endpoint(&format!("/models/{model}:streamGenerateContent?alt=sse"))
            }
            Family::Ollama => self.endpoint("/api/chat"),
        }
    }

    pub(super) fn models(&self) -> String {
        match self.family {
            Family::Openai => self.endpoint("/models"),
            Family::Anthropic => self.endpoint("/models?limit=1000"),
            Family::Gemini => self.endpoint("/models?pageSize=1000"),
            Family::Ollama => self.endpoint("/api/tags"),
        }
    }
}

/// Returns whether an address ends with a version, such as `/v1`, `/v1beta` or `/v4`.
fn has_version(base: &str) -> bool {
    let last = base.rsplit('/').next().unwrap_or_default();
    last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(family: Family, urls: &[&str], chat: &str) {
        for url in urls {
            assert_eq!(Address::new(family, url).chat("m"), chat, "{url}");
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
        let version = |url: &str| Address::new(Family::Openai, url).may_lack_version();
        assert!(version("http://h") && version("http://h/proxy"));
        assert!(!version("http://h/v4") && !version("http://h/chat/completions"));
    }
}
