//! Methods about templates.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Step;
use super::call::{Call, Tools};
use super::error::{agent_error, application, engine_error, internal_error, param_error};
use super::params::decode;
use super::present::{entry, figure, keyword};
use crate::engine::Engine;
use crate::files::templates::{FindError, Listed, TemplateFolders};
use crate::template::{Fields, Template, render};
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ListTemplates {
    project: Option<String>,
}

pub(super) fn list_templates(call: Call, params: Value) -> Result<Step, WireError> {
    let given: ListTemplates = decode(params)?;
    let folders = folders(&call.tools, given.project)?;
    let line = |Listed { name, source, is_trusted }: Listed| {
        let mut map = vec![
            entry("name", &*name),
            entry("source", keyword(source.kind())),
            entry("trusted", is_trusted),
        ];
        map.extend(source.path().map(|path| entry("path", path)));
        if !is_trusted {
            return Value::Map(map);
        }
        match folders.find(&name) {
            Ok(template) => {
                let description = template.front_matter.description.unwrap_or_default();
                map.push(entry("description", description));
            }
            // A broken one is shown as such, with what is wrong.
            Err(error) => map.push(entry("error", error.to_string())),
        }
        Value::Map(map)
    };
    Ok(Step::Done(Value::List(folders.list().into_iter().map(line).collect())))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ResolveTemplate {
    name: String,
    project: Option<String>,
    fields: Option<BTreeMap<String, String>>,
}

pub(super) fn resolve_template(call: Call, params: Value) -> Result<Step, WireError> {
    let given: ResolveTemplate = decode(params)?;
    let folders = folders(&call.tools, given.project)?;
    let template = folders.find(&given.name).map_err(|error| find_error(&error))?;
    let mut map = template_map(&template);
    if let Some(fields) = given.fields {
        // Placeholders are names as programs write them; clients say them with hyphens.
        let fields: Vec<(String, String)> =
            fields.into_iter().map(|(name, text)| (name.replace('-', "_"), text)).collect();
        let fields: Fields<'_> = fields.iter().map(|(name, text)| (&**name, &**text)).collect();
        let text = render(&template, &fields).map_err(|error| find_error(&error.into()))?;
        map.push(entry("tokens", figure(call.tools.counter.count(&text))));
        map.push(entry("text", text));
    }
    Ok(Step::Done(Value::Map(map)))
}

fn template_map(template: &Template) -> Vec<(Box<str>, Value)> {
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Nil, Value::from);
    let number = |number: Option<u64>| number.map_or(Value::Nil, figure);
    let said = &template.front_matter;
    let mut map = vec![
        entry("name", &*template.name),
        entry("source", keyword(template.source.kind())),
        entry("path", template.source.path().map_or(Value::Nil, Value::from)),
        entry("sha256", &*template.hash),
        entry("description", text(&said.description)),
        entry("recent-runs", number(said.recent_runs)),
        entry("passthrough-runs", number(said.passthrough_runs)),
        entry("token-threshold", number(said.token_threshold)),
        entry("model", text(&said.model)),
        entry("body", &*template.body),
    ];
    if let Some(contract) = &template.contract {
        map.push(entry("contract", &*contract.text));
        map.push(entry("contract-language", keyword(&contract.language)));
    }
    map
}

/// Goes on once the template of this name is found to be usable for a session, if one is named; a
/// session that there is not yet is of `project`.
pub(super) fn usable(
    call: &Call,
    template: Option<String>,
    session: Option<String>,
    project: Option<String>,
    then: impl FnOnce() -> Result<Step, WireError> + Send + 'static,
) -> Result<Step, WireError> {
    let Some(name) = template.filter(|name| !name.is_empty()) else { return then() };
    let call = call.clone();
    Ok(Step::Await(Box::pin(async move {
        let of_session = move |engine: &mut Engine| {
            Ok(engine.find_session(session.as_deref()).ok().and_then(|row| row.project))
        };
        let project = match project {
            Some(project) => Some(project),
            None => call.tools.engine.ask(of_session).await.map_err(engine_error)?,
        };
        let folders = folders(&call.tools, project)?;
        let found = tokio::task::spawn_blocking(move || folders.find(&name).map(drop)).await;
        match found {
            Ok(found) => found.map_err(|error| find_error(&error))?,
            Err(_) => {
                return Err(internal_error("a template"));
            }
        }
        then()
    })))
}

/// The folders for a call about a project.
pub(super) fn folders(
    tools: &Tools,
    project: Option<String>,
) -> Result<TemplateFolders, WireError> {
    tools.template_folders(project).map_err(agent_error)
}

/// The wire error of a template that cannot be found or used.
pub(super) fn find_error(error: &FindError) -> WireError {
    let text = error.to_string();
    match error {
        FindError::BadName(_) => param_error("name", &text),
        FindError::Unknown { known, .. } => {
            let known = known.iter().map(|name| Value::from(&**name)).collect();
            application("no-such-template", text, vec![("known", Value::List(known))])
        }
        FindError::Untrusted { project, .. } => {
            let project = project.to_string_lossy().into_owned();
            application("template-untrusted", text, vec![("project", Value::Str(project))])
        }
        FindError::Unreadable { .. } | FindError::TooLarge { .. } => {
            application("template-unreadable", text, vec![])
        }
        FindError::Malformed(error) => {
            let place =
                vec![("line", figure(error.line as u64)), ("column", figure(error.column as u64))];
            application("template-malformed", text, place)
        }
    }
}
