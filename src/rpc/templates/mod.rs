//! The template family: templates, and the projects whose own templates are used.

mod table;
mod trust;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use self::table::METHODS;
use super::Step;
use super::call::MethodCall;
use super::error::{application, internal_error, param_error, refused};
use super::error_data::{ErrorData, PlainKind};
use super::shapes::TemplateSource;
use crate::engine::Engine;
use crate::files::templates::{FindError, ListedTemplate, TemplateFolders, bad_name};
use crate::template::{Fields, Template, render};
use crate::value::Keyword;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListTemplates {
    /// Folder of the project. Once the project is trusted, its `.contexture/templates/` takes
    /// precedence over the user's own templates.
    project: Option<String>,
    /// Read only the template with this name, with or without `.md`.
    name: Option<String>,
    /// Texts to fill in, by the names of the placeholders; only with `:name`. Other placeholders are
    /// then empty.
    values: Option<BTreeMap<String, String>>,
}

/// A template in a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TemplateLine")]
struct TemplateLine {
    /// Name of the template.
    name: String,
    /// Place in which the template was found.
    #[schemars(with = "TemplateSource")]
    source: Keyword<&'static str>,
    /// False for a template of an untrusted project, which is not read.
    trusted: bool,
    /// File of the template; absent for a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Description, which may be empty; absent if the template is not read or cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Reason why the template cannot be used; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) fn list_templates(call: MethodCall, given: ListTemplates) -> Result<Step, WireError> {
    let folders = call.tools.template_folders(given.project)?;
    if let Some(name) = given.name {
        return one_template(&call, &folders, &name, given.values);
    }
    let line = |ListedTemplate { name, source, is_trusted }: ListedTemplate| {
        let found = is_trusted.then(|| folders.find(&name));
        let (description, error) = match found {
            None => (None, None),
            Some(Ok(found)) => (Some(found.front_matter.description.unwrap_or_default()), None),
            // A broken template is listed with its error.
            Some(Err(error)) => (None, Some(error.to_string())),
        };
        let path = source.path().map(str::to_owned);
        let source = Keyword(source.kind());
        TemplateLine { name, source, trusted: is_trusted, path, description, error }
    };
    Step::done(&folders.list().into_iter().map(line).collect::<Vec<_>>())
}

/// Shows one template, with its placeholders filled in if there are `values`.
fn one_template(
    call: &MethodCall,
    folders: &TemplateFolders,
    name: &str,
    values: Option<BTreeMap<String, String>>,
) -> Result<Step, WireError> {
    let template = folders.find(name).map_err(find_error)?;
    let mut shown = TemplateShown::from(&template);
    if let Some(values) = values {
        // Placeholders are written with underscores; clients use hyphens.
        let values: Vec<(String, String)> =
            values.into_iter().map(|(name, text)| (name.replace('-', "_"), text)).collect();
        let fields: Fields<'_> = values.iter().map(|(name, text)| (&**name, &**text)).collect();
        let text = render(&template, &fields).map_err(|error| find_error(error.into()))?;
        shown.tokens = Some(call.tools.counter.count(&text));
        shown.text = Some(text);
    }
    Step::done(&shown)
}

/// A template, as clients get it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Template")]
struct TemplateShown<'a> {
    /// Name of the template.
    name: &'a str,
    /// Place in which the template was found.
    #[schemars(with = "TemplateSource")]
    source: Keyword<&'static str>,
    /// File of the template; `nil` for a built-in one.
    path: Option<&'a str>,
    /// SHA-256 of the template's text, in hexadecimal.
    sha256: &'a str,
    /// Description, if the template has one.
    description: Option<&'a str>,
    /// Number of recent runs to show, if the template says so.
    recent_runs: Option<u64>,
    /// Number of recent runs that follow the notes unchanged, if the template says so.
    passthrough_runs: Option<u64>,
    /// Tokens of history below which no notes are taken, if the template says so.
    token_threshold: Option<u64>,
    /// Model that writes the notes, if the template names one.
    model: Option<&'a str>,
    /// Text with its placeholders.
    body: &'a str,
    /// Format of the notes, as the text of a code block in the template; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<&'a str>,
    /// Language of the code block in `:contract`; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    contract_language: Option<Keyword<&'a str>>,
    /// Tokens of the filled text; only with `:values`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// Text with the placeholders filled; only with `:values`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl<'a> From<&'a Template> for TemplateShown<'a> {
    fn from(template: &'a Template) -> Self {
        let (said, contract) = (&template.front_matter, template.contract.as_ref());
        Self {
            name: &template.name,
            source: Keyword(template.source.kind()),
            path: template.source.path(),
            sha256: &template.hash,
            description: said.description.as_deref(),
            recent_runs: said.recent_runs,
            passthrough_runs: said.passthrough_runs,
            token_threshold: said.token_threshold,
            model: said.model.as_deref(),
            body: &template.body,
            contract: contract.map(|contract| &*contract.text),
            contract_language: contract.map(|contract| Keyword(&*contract.language)),
            tokens: None,
            text: None,
        }
    }
}

/// Calls `then` if `template` can be used in the project that `project` returns, or if no template
/// is named.
pub(super) fn usable(
    call: &MethodCall,
    template: Option<String>,
    project: impl FnOnce(&mut Engine) -> Option<String> + Send + 'static,
    then: impl FnOnce() -> Result<Step, WireError> + Send + 'static,
) -> Result<Step, WireError> {
    let Some(name) = template.filter(|name| !name.is_empty()) else { return then() };
    let call = call.clone();
    Ok(Step::Await(Box::pin(async move {
        let project = call.tools.engine.ask(|engine| Ok(project(engine))).await?;
        let folders = call.tools.template_folders(project)?;
        let found = tokio::task::spawn_blocking(move || folders.find(&name).map(drop)).await;
        found.map_err(|_| internal_error("the search for a template"))?.map_err(find_error)?;
        then()
    })))
}

fn find_error(error: FindError) -> WireError {
    let text = error.to_string();
    match error {
        FindError::BadName(name) => param_error("name", &bad_name(&name)),
        FindError::Unknown { known, .. } => {
            application(&ErrorData::NoSuchTemplate { known: &known }, text)
        }
        FindError::Untrusted { project, .. } => {
            let project = project.to_string_lossy().into_owned();
            application(&ErrorData::TemplateUntrusted { project }, text)
        }
        FindError::Unreadable { .. } | FindError::TooLarge { .. } => {
            refused(PlainKind::TemplateUnreadable, text)
        }
        FindError::Malformed(error) => {
            let (line, column) = (error.line, error.column);
            application(&ErrorData::TemplateMalformed { line, column }, text)
        }
    }
}
