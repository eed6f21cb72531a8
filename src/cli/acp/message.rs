//! The parts of Agent Client Protocol messages that the proxy reads, and the places where it adds
//! to a message. All other bytes of a line stay as they are. Nothing here has side effects.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

/// Name of Contexture's server in the list of servers of a session.
const NAME: &str = "contexture";
/// URI of the resource that the proxy adds to a prompt. Agents and clients may show it.
const ADDED: &str = "contexture://marked";

/// A request, notification or response. A response has no `method`.
#[derive(Deserialize)]
pub(super) struct AcpMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    pub(super) method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// All parameters that the proxy reads. Each method has only some of these parameters.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcpParams<'a> {
    pub(super) session_id: Option<String>,
    pub(super) cwd: Option<PathBuf>,
    /// `null` counts as a value, not as absent.
    #[serde(borrow, default, deserialize_with = "some")]
    mcp_servers: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(borrow)]
    update: Option<&'a RawValue>,
}

/// The update in a `session/update` notification. Only its kind is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcpUpdate {
    #[serde(default)]
    session_update: String,
}

/// All members of results that the proxy reads. Each result has only some of these members.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AcpResult {
    pub(super) session_id: Option<String>,
    pub(super) stop_reason: Option<String>,
    agent_capabilities: Json,
    agent_info: Json,
    pub(super) usage: Json,
}

impl<'a> AcpMessage<'a> {
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        let is_object = line.trim_ascii_start().starts_with(b"{");
        is_object.then(|| serde_json::from_slice(line).ok())?
    }

    /// Returns the id in a form that is the same for a request and its response; `None` if there is
    /// no valid id.
    pub(super) fn id(&self) -> Option<String> {
        let id: Json = serde_json::from_str(self.id?.get()).ok()?;
        (id.is_string() || id.is_number()).then(|| id.to_string())
    }

    pub(super) fn params(&self) -> Option<AcpParams<'a>> {
        let params = self.params?.get();
        params.starts_with('{').then(|| serde_json::from_str(params).ok())?
    }

    /// Returns the result of a response; `None` if the response is an error. A result that is
    /// missing or cannot be read counts as an empty result.
    pub(super) fn outcome(&self) -> Option<AcpResult> {
        match (self.error, self.result) {
            (Some(_), _) => None,
            (None, None) => Some(AcpResult::default()),
            (None, Some(result)) => Some(serde_json::from_str(result.get()).unwrap_or_default()),
        }
    }

    /// Returns `line` with Contexture's server added to its list of servers, which is created if
    /// there is none or `null`. `command` and `args` start the server. Returns `None` if the list
    /// already has a server with the same name, or cannot be extended.
    pub(super) fn with_server(
        &self,
        line: &[u8],
        params: &AcpParams<'_>,
        command: &str,
        args: &[String],
    ) -> Option<Vec<u8>> {
        let server = json!({ "name": NAME, "command": command, "args": args, "env": [] });
        let Some(servers) = params.mcp_servers else {
            let object = self.params?.get();
            let comma = if object[1..].trim_start() == "}" { "" } else { "," };
            let member = format!("\"mcpServers\":[{server}]{comma}");
            return Some(with(line, place(line, object) + 1, &member));
        };
        if servers.get() == "null" {
            let (at, list) = (place(line, servers.get()), format!("[{server}]"));
            return Some([&line[..at], list.as_bytes(), &line[at + "null".len()..]].concat());
        }
        let listed: Vec<Json> = serde_json::from_str(servers.get()).ok()?;
        let is_there = listed.iter().any(|server| server["name"] == NAME);
        if is_there { None } else { with_last(line, servers.get(), &server) }
    }
}

impl<'a> AcpParams<'a> {
    /// Returns `line` with `text` added after the blocks of the prompt: as a resource if
    /// `is_embedded`, or else as a text block. Returns `None` if the prompt is not a list of
    /// blocks.
    pub(super) fn with_text(&self, line: &[u8], text: &str, is_embedded: bool) -> Option<Vec<u8>> {
        let block = match is_embedded {
            true => json!({ "type": "resource", "resource": {
                "uri": ADDED, "mimeType": "text/markdown", "text": text,
            } }),
            false => json!({ "type": "text", "text": text }),
        };
        with_last(line, self.prompt?.get(), &block)
    }

    /// Returns the blocks of the prompt as JSON, unchanged; `None` if the message has no list of
    /// blocks.
    pub(super) fn blocks(&self) -> Option<&'a str> {
        self.prompt.map(RawValue::get).filter(|prompt| prompt.starts_with('['))
    }

    /// Returns the update in a message, both parsed and as JSON; `None` if there is no valid
    /// update.
    pub(super) fn update(&self) -> Option<(AcpUpdate, &'a str)> {
        let text = self.update?.get();
        text.starts_with('{')
            .then(|| serde_json::from_str(text).ok().map(|update| (update, text)))?
    }
}

impl AcpUpdate {
    /// Returns whether the update shows that the agent is working on a prompt.
    pub(super) fn is_work(&self) -> bool {
        let kinds = ["agent_message_chunk", "agent_thought_chunk", "tool_call", "plan"];
        kinds.contains(&&*self.session_update)
    }

    /// Returns whether recordings contain updates of this kind.
    pub(super) fn is_recorded(&self) -> bool {
        let kinds = ["agent_message_chunk", "tool_call", "tool_call_update", "usage_update"];
        kinds.contains(&&*self.session_update)
    }
}

impl AcpResult {
    /// Returns whether the agent accepts resources in prompts.
    pub(super) fn embeds(&self) -> bool {
        self.agent_capabilities["promptCapabilities"]["embeddedContext"] == true
    }

    pub(super) fn agent(&self) -> Option<&str> {
        self.agent_info["name"].as_str()
    }
}

fn some<'de: 'a, 'a, D: Deserializer<'de>>(value: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// Returns the offset at which `part`, a slice of `line`, begins.
fn place(line: &[u8], part: &str) -> usize {
    part.as_ptr().addr() - line.as_ptr().addr()
}

fn with(line: &[u8], at: usize, text: &str) -> Vec<u8> {
    [&line[..at], text.as_bytes(), &line[at..]].concat()
}

/// Returns `line` with `element` added to the end of `array`, a slice of `line`; `None` if `array`
/// is not a JSON array.
fn with_last(line: &[u8], array: &str, element: &Json) -> Option<Vec<u8>> {
    let before = array.strip_suffix(']')?;
    let is_empty = before.strip_prefix('[')?.trim().is_empty();
    let comma = if is_empty { "" } else { "," };
    Some(with(line, place(line, array) + before.len(), &format!("{comma}{element}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        let message = AcpMessage::of(line.as_bytes()).unwrap();
        let params = message.params().unwrap();
        let added = match message.method.as_deref() {
            Some("session/prompt") => params.with_text(line.as_bytes(), "x", false),
            _ => message.with_server(line.as_bytes(), &params, "c", &[]),
        };
        assert_eq!(added.map(|line| String::from_utf8(line).unwrap()).as_deref(), expected);
    }

    #[test]
    fn all_else_of_a_line_stays_as_it_is() {
        let server = r#"{"args":[],"command":"c","env":[],"name":"contexture"}"#;
        let check_new = |before: &str, comma: &str, after: &str| {
            check(&format!("{before}{after}"), Some(&format!("{before}{comma}{server}{after}")));
        };
        check_new("{\"params\": {\"z\":1.50, \"mcpServers\" :[ ", "", "] ,\"a\":1e400}}\r\n");
        check_new("{\"params\":{\"mcpServers\":[{\"name\":\"\\u0061\"}", ",", "]}}");
        check(r#"{"params":{"mcpServers":[{"name":"contexture"}]}}"#, None);
        check(r#"{"params":{"mcpServers":{}}}"#, None);
        let listed = format!("\"mcpServers\":[{server}]");
        check(
            r#"{"params":{"mcpServers": null ,"a":1}}"#,
            Some(&format!("{{\"params\":{{\"mcpServers\": [{server}] ,\"a\":1}}}}")),
        );
        check(r#"{"params":{ }}"#, Some(&format!("{{\"params\":{{{listed} }}}}")));
        check(r#"{"params":{"a":1}}"#, Some(&format!("{{\"params\":{{{listed},\"a\":1}}}}")));
        check(
            r#"{"method":"session\/prompt","params":{"prompt":[ {"text":"]"} ],"_meta":{}}}"#,
            Some(
                r#"{"method":"session\/prompt","params":{"prompt":[ {"text":"]"} ,{"text":"x","type":"text"}],"_meta":{}}}"#,
            ),
        );
        check(r#"{"method":"session/prompt","params":{"prompt":"x"}}"#, None);
    }
}
