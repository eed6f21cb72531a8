//! Reads the commands that an agent is configured to start.

use std::path::Path;

use anyhow::{Context, anyhow};
use jsonc_parser::ast::{ObjectProp, Value};

use super::agent::{ConfigFile, KnownAgent, Program, SetupPlace, WantedSetup};
use super::edit::without_mark;
use super::file::FoundConfig;
use super::json::find;
use super::toml;
use super::value::{ENTRY, commands, same_hook, server_words};
use crate::visible::visible_path;

/// The commands of this program in the configuration of an agent.
#[derive(Default)]
pub(super) struct OwnEntries {
    /// Words of the command that starts the server; empty if there is no server.
    pub(super) server: Vec<String>,
    /// Variables that the agent sets for the server.
    pub(super) env: Vec<(String, String)>,
    /// True if the agent is told not to start the server.
    pub(super) is_off: bool,
    /// Events that have hooks, each with the command of its hook.
    pub(super) hooks: Vec<(&'static str, String)>,
}

impl OwnEntries {
    pub(super) fn read(
        agent: KnownAgent,
        place: &SetupPlace,
        home: &Path,
        program: &Program,
    ) -> anyhow::Result<Self> {
        let mut entries = Self::default();
        for ConfigFile { path, within, wanted } in agent.files(place, home, program) {
            let found = FoundConfig::read(&path, &within).with_context(|| visible_path(&path))?;
            let text =
                found.text.as_deref().map(without_mark).filter(|text| !text.trim().is_empty());
            let Some(text) = text else { continue };
            let read = match wanted {
                WantedSetup::Toml(_) => toml::server(text).map(|server| {
                    (entries.server, entries.env, entries.is_off) = server;
                }),
                WantedSetup::Json(_) => entries.read_json(agent, program, text),
            };
            read.map_err(|wrong| anyhow!("{}: {wrong}", visible_path(&path)))?;
        }
        Ok(entries)
    }

    fn read_json(
        &mut self,
        agent: KnownAgent,
        program: &Program,
        text: &str,
    ) -> Result<(), String> {
        for name in ["mcpServers", "mcp"] {
            let entry = find(text, &[name, ENTRY])?;
            self.server.extend(entry.iter().flat_map(server_words));
            if let Some(Value::Object(entry)) = &entry {
                let value = |name: &str| entry.get(name).map(|it| &it.value);
                let is = |name: &str, wanted: bool| matches!(value(name), Some(Value::BooleanLit(it)) if it.value == wanted);
                self.is_off = is("enabled", false) || is("disabled", true);
                let all = [value("env"), value("environment")];
                for one in all.into_iter().flatten().filter_map(Value::as_object) {
                    let text = |it: &ObjectProp<'_>| match &it.value {
                        Value::StringLit(text) => {
                            Some((it.name.as_str().to_owned(), text.value.to_string()))
                        }
                        _ => None,
                    };
                    self.env.extend(one.properties.iter().filter_map(text));
                }
            }
        }
        for &event in agent.events() {
            let groups = find(text, &["hooks", event])?;
            let groups = groups.as_ref().and_then(Value::as_array);
            let mut all = groups.into_iter().flat_map(|all| &all.elements).flat_map(commands);
            let ours = program.hook(agent, event);
            let found = all.find(|(command, _)| same_hook(command, &ours));
            self.hooks.extend(found.map(|(command, _)| (event, command.to_owned())));
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.server.is_empty() && self.hooks.is_empty()
    }

    /// Returns whether all commands are those that a set-up of `program` would write, without variables
    /// of their own, except that their path may lead to `program` through a link.
    pub(super) fn are_of(&self, agent: KnownAgent, program: &Program) -> bool {
        let program = &program.through(self.server.first().map_or("", String::as_str));
        let mut hooks = self.hooks.iter();
        self.env.is_empty()
            && (self.server.is_empty() || self.server == program.with(&["mcp"]))
            && hooks.all(|(event, command)| *command == program.hook(agent, event))
    }

    /// Returns the name of the first missing entry, for a message; `None` if no entry is missing.
    pub(super) fn missing(&self, agent: KnownAgent) -> Option<String> {
        if self.server.is_empty() {
            return Some("the server".to_owned());
        }
        let has = |event: &str| self.hooks.iter().any(|(have, _)| *have == event);
        let missing = agent.events().iter().find(|event| !has(event));
        missing.map(|event| format!("the hook {event}"))
    }
}
