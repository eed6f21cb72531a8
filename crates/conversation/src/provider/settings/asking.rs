//! The settings that say how a server is asked: headers, reasoning, times, and the way to it.

use std::collections::BTreeSet;

use reqwest::header::{HeaderName, HeaderValue};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{BadSetting, ProviderSettings, bad, check_address};
use crate::provider::Family;
use crate::provider::chat::Effort;
use crate::provider::origin::{NO_PROXY, Serving};
use crate::provider::secret::{KeySource, Secret};

/// Maximum time in seconds: a day.
const LONGEST_TIME: u64 = 24 * 60 * 60;
/// Maximum number of further headers.
const MOST_HEADERS: usize = 50;
/// Maximum length of the further members of a request, in bytes.
const LONGEST_EXTRA: usize = 64 << 10;
/// Headers that are never the user's: they belong to the connection or say what the body is.
const OWN_HEADERS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Members that are never the user's: they are what is asked, or they have settings of their own.
const OWN_MEMBERS: &[&str] = &[
    "contents",
    "input",
    "instructions",
    "messages",
    "model",
    "prompt",
    "store",
    "stream",
    "system",
    "systemInstruction",
    "system_instruction",
    "toolConfig",
    "tool_choice",
    "tools",
];

/// Further headers.
#[derive(Debug, Clone, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct Headers(Vec<Header>);

/// A further header, with one of the sources of its value.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Header {
    /// Name of the header.
    name: String,
    /// The value itself.
    value: Option<Secret>,
    /// Environment variable of Contexture that contains the value.
    env: Option<String>,
    /// Command that prints the value.
    command: Option<String>,
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error is not passed on, since it would repeat what may be a key.
        let what = "must be a list of headers, each with a name, and a value, an env or a command";
        Vec::deserialize(deserializer).map(Self).map_err(|_| D::Error::custom(what))
    }
}

impl Header {
    /// Creates a header with this value.
    pub fn given(name: String, value: Option<Secret>) -> Self {
        Self { name, value, env: None, command: None }
    }
}

impl Headers {
    /// Adds a header.
    pub fn push(&mut self, header: Header) {
        self.0.push(header);
    }

    /// Returns whether a value comes from the environment or a command.
    pub(super) fn has_outside_values(&self) -> bool {
        self.0.iter().any(|header| header.env.is_some() || header.command.is_some())
    }

    /// Returns the names, in lower case, and the sources of the values.
    fn checked(self) -> Result<Vec<(String, KeySource)>, BadSetting> {
        if self.0.len() > MOST_HEADERS {
            return Err(bad("headers", format!("must be at most {MOST_HEADERS}")));
        }
        let mut names = BTreeSet::new();
        let each = |header: Header| {
            let Header { name, value, env, command } = header;
            let wrong = |what: &str| Err(bad("headers", format!("{name:?}: {what}")));
            let Ok(known) = HeaderName::from_bytes(name.as_bytes()) else {
                // What is no name may be a key.
                return Err(bad("headers", "must have names of letters, digits and -"));
            };
            if OWN_HEADERS.contains(&known.as_str()) {
                return wrong("is set by Contexture itself");
            }
            if !names.insert(known.as_str().to_owned()) {
                return wrong("is given twice");
            }
            let is_blank =
                |text: &Option<String>| text.as_deref().is_some_and(|text| text.trim().is_empty());
            if is_blank(&env) || is_blank(&command) {
                return wrong("env and command must not be empty");
            }
            let source = match (value, env, command) {
                (Some(value), None, None) => {
                    if HeaderValue::from_str(value.reveal()).is_err() {
                        return wrong("the value has characters that a header cannot contain");
                    }
                    KeySource::Given(value)
                }
                (None, Some(env), None) => KeySource::Environment(env),
                (None, None, Some(command)) => KeySource::Command(command),
                _ => return wrong("needs one of value, env and command"),
            };
            Ok((known.as_str().to_owned(), source))
        };
        self.0.into_iter().map(each).collect()
    }
}

impl ProviderSettings {
    /// Returns the first setting that only servers have.
    pub(super) fn of_a_server(&self) -> Option<&'static str> {
        let given = [
            ("base-url", self.base_url.is_some()),
            ("api-key", self.api_key.is_some()),
            ("api-key-env", self.api_key_env.is_some()),
            ("api-key-command", self.api_key_command.is_some()),
            ("key-header", self.key_header.is_some()),
            ("headers", self.headers.is_some()),
            ("api-version", self.api_version.is_some()),
            ("effort", self.effort.is_some()),
            ("temperature", self.temperature.is_some()),
            ("top-p", self.top_p.is_some()),
            ("extra", self.extra.is_some()),
            ("ca-file", self.ca_file.is_some()),
            ("proxy", self.proxy.is_some()),
            ("first-byte", self.first_byte.is_some()),
            ("silence", self.silence.is_some()),
            ("thinks", self.thinks.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Checks the settings for a server of this family.
    pub(super) fn serving(&self, family: Family) -> Result<Serving, BadSetting> {
        self.check_times()?;
        self.check_sampling(family)?;
        if self.ca_file.as_ref().is_some_and(|file| !file.is_absolute()) {
            return Err(bad("ca-file", "must be an absolute file name"));
        }
        if let Some(proxy) = self.proxy.as_deref().filter(|proxy| *proxy != NO_PROXY) {
            check_address("proxy", proxy, "http://proxy.example:8080")?;
        }
        if let Some(version) = &self.api_version {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
            if version.is_empty() || !version.chars().all(fits) {
                return Err(bad("api-version", "must be a version such as \"2024-10-21\""));
            }
            if !family.facts().is_openais() {
                let have_it = Family::ALL.iter().filter(|it| it.facts().is_openais());
                let kinds: Vec<&str> = have_it.map(|it| it.name()).collect();
                let what = format!("is only for the kinds {}", kinds.join(" and "));
                return Err(bad("api-version", what));
            }
        }
        let headers = self.headers.clone().unwrap_or_default().checked()?;
        Ok(Serving {
            context: self.context,
            key_header: self.key_header.as_deref().map(key_header).transpose()?,
            api_version: self.api_version.clone(),
            headers,
            extra: self.extra.as_deref().map(extra).transpose()?.unwrap_or_default(),
            effort: self.effort,
            temperature: self.temperature,
            top_p: self.top_p,
            ca_file: self.ca_file.clone(),
            proxy: self.proxy.clone(),
            first_byte: self.first_byte,
            silence: self.silence,
            thinks: self.thinks.unwrap_or(false),
            ..Serving::default()
        })
    }

    fn check_times(&self) -> Result<(), BadSetting> {
        for (setting, time) in [("first-byte", self.first_byte), ("silence", self.silence)] {
            if time.is_some_and(|time| !(1..=LONGEST_TIME).contains(&time)) {
                return Err(bad(setting, format!("must be from 1 to {LONGEST_TIME} seconds")));
            }
        }
        Ok(())
    }

    fn check_sampling(&self, family: Family) -> Result<(), BadSetting> {
        let facts = family.facts();
        let most = facts.hottest;
        if let Some(value) = self.temperature.filter(|value| !(0.0..=most).contains(value)) {
            return Err(bad("temperature", format!("must be from 0 to {most}, got {value}")));
        }
        if let Some(value) = self.top_p.filter(|value| !(*value > 0.0 && *value <= 1.0)) {
            return Err(bad("top-p", format!("must be above 0 and at most 1, got {value}")));
        }
        let (is_warm, is_cut) = (self.temperature.is_some(), self.top_p.is_some());
        let thinks = !matches!(self.effort, None | Some(Effort::Off));
        let (setting, other) = match () {
            () if !facts.samples_one_way => return Ok(()),
            () if is_warm && is_cut => ("top-p", "temperature"),
            () if thinks && is_warm => ("temperature", "effort"),
            () if thinks && is_cut => ("top-p", "effort"),
            () => return Ok(()),
        };
        Err(bad(setting, format!("cannot be combined with {other} for the kind {family}")))
    }
}

fn key_header(name: &str) -> Result<String, BadSetting> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(name) if !OWN_HEADERS.contains(&name.as_str()) => Ok(name.as_str().to_owned()),
        _ => Err(bad("key-header", "must be the name of a header, such as \"authorization\"")),
    }
}

fn extra(text: &str) -> Result<Map<String, Value>, BadSetting> {
    if text.len() > LONGEST_EXTRA {
        return Err(bad("extra", format!("must have at most {LONGEST_EXTRA} bytes")));
    }
    let Ok(members) = serde_json::from_str::<Map<String, Value>>(text) else {
        return Err(bad("extra", "must be the JSON text of an object, such as {\"top_k\": 40}"));
    };
    match OWN_MEMBERS.iter().find(|name| members.contains_key(**name)) {
        Some(name) => Err(bad("extra", format!("must not have {name}, which Contexture sets"))),
        None => Ok(members),
    }
}
