//! The method that builds the window of a session.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::MethodCall;
use super::embedding::embedded;
use super::params::{
    InSession, ManagerName, ModelName, given_list, manager_names, not_negative, yes,
};
use super::present::{Decided, verdicts};
use super::report::WindowReport;
use super::{Finish, Step};
use crate::agent::Embedded;
use crate::agent::refresh::current;
use crate::agent::window::{Purpose, build, named_strategy};
use crate::curation::section::{CodeUnit, CountedText, Failure, Section, Sections};
use crate::curation::strategy;
use crate::curation::window::MessagePart;
use crate::engine::{Engine, SessionContext};
use crate::ids::MessageId;
use crate::session::message::{Phase, Role, ToolCall};
use crate::tokens::Counter;
use crate::value::Value;
use crate::wire::message::WireError;

/// Texts in a window besides the conversation, as a client sends them.
#[derive(Deserialize, JsonSchema, Default)]
#[schemars(rename = "Sections")]
pub(super) struct SectionTexts {
    /// Schemas of the tools that the model may call.
    tool_schemas: Option<String>,
    /// System prompt.
    system_prompt: Option<String>,
    /// Design document.
    design_document: Option<String>,
    /// Definitions of types.
    type_definitions: Option<String>,
    /// Unit of code in progress.
    current_unit: Option<String>,
    /// Tests of the unit of code in progress.
    relevant_tests: Option<String>,
    /// Tests that failed.
    failures: Option<Vec<FailureText>>,
    /// Units of code that were finished before.
    units: Option<Vec<UnitText>>,
    /// Map of the project, in the form in which `repo-map` returns it as `:text`.
    repo_map: Option<String>,
    /// Memories, in the form in which `process-turn` returns them as `:grounding`.
    grounding: Option<String>,
}

/// A test that failed.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "TestFailure")]
struct FailureText {
    /// Name of the test.
    name: String,
    /// Message of the failure.
    error: Option<String>,
    /// Value that the test expected.
    expected: Option<String>,
    /// Value that the test got instead.
    received: Option<String>,
    /// Stack trace.
    stack: Option<String>,
}

/// A unit of code.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "CodeUnit")]
struct UnitText {
    /// Name of the unit.
    name: String,
    /// File of the unit.
    path: Option<String>,
    /// Code of the unit.
    code: Option<String>,
    /// True if somebody approved the unit.
    approved: Option<bool>,
}

impl SectionTexts {
    pub(super) fn counted(self, counter: &dyn Counter) -> Sections {
        let counted = |text: Option<String>| text.map(|text| CountedText::new(text, counter));
        Sections {
            tool_schemas: counted(self.tool_schemas),
            system_prompt: counted(self.system_prompt),
            design_document: counted(self.design_document),
            type_definitions: counted(self.type_definitions),
            current_unit: counted(self.current_unit),
            relevant_tests: counted(self.relevant_tests),
            failures: self.failures.into_iter().flatten().map(failure).collect(),
            units: self.units.into_iter().flatten().map(code_unit).collect(),
            repo_map: counted(self.repo_map),
            grounding: counted(self.grounding),
            ..Sections::default()
        }
    }
}

/// Returns the numbers of the messages with these ids.
pub(super) fn numbers(ids: Option<Vec<MessageId>>) -> Vec<u64> {
    ids.into_iter().flatten().map(|MessageId(number)| number).collect()
}

fn failure(text: FailureText) -> Failure {
    Failure {
        name: text.name,
        error: text.error.unwrap_or_default(),
        expected: text.expected.unwrap_or_default(),
        received: text.received.unwrap_or_default(),
        stack: text.stack,
    }
}

fn code_unit(text: UnitText) -> CodeUnit {
    CodeUnit {
        name: text.name,
        path: text.path.unwrap_or_default(),
        code: text.code.unwrap_or_default(),
        approved: text.approved.unwrap_or(false),
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct BuildContext {
    session: Option<InSession>,
    /// Phase of the work.
    phase: Option<Phase>,
    /// Strategy for choosing messages; defaults to the session's setting, else to `:tiered`.
    #[schemars(extend("enum" = strategy::names()))]
    strategy: Option<String>,
    /// Size limit of the window. Defaults to the session's setting. Without one, it depends on the
    /// model's limit: at most 96,000, or more if the parts that cannot be left out need more.
    max_tokens: Option<i64>,
    /// The current question; messages that match it are preferred.
    query: Option<String>,
    model: Option<ModelName>,
    /// Texts to include with the conversation: `:tool-schemas`, `:system-prompt`,
    /// `:design-document`, `:type-definitions`, `:current-unit`, `:relevant-tests`, `:repo-map`,
    /// `:grounding`; `:failures`, a list of `:name :error :expected :received :stack`; `:units`, a
    /// list of `:name :path :code :approved`.
    sections: Option<SectionTexts>,
    /// Include the items of the session's managers; defaults to `t`.
    #[serde(default = "yes")]
    items: bool,
    /// Managers whose items to include, in place of the session's managers, from general to
    /// specific.
    #[serde(default, deserialize_with = "given_list")]
    managers: Option<Vec<ManagerName>>,
    /// Ids of messages to bring back into this window, whole and with the messages that belong to
    /// them, as far as they fit. The first ids come first. Ids that are not in view are ignored.
    #[serde(default, deserialize_with = "given_list")]
    restore: Option<Vec<MessageId>>,
    /// Leave the parts out of the result.
    brief: Option<bool>,
    /// Report each part with its score, and do not group similar parts.
    explain: Option<bool>,
    /// Only show the window, without a line in the usage log, a report to explain, or a notification.
    dry_run: Option<bool>,
}

pub(super) fn build_window(call: MethodCall, given: BuildContext) -> Result<Step, WireError> {
    let question = given.query.clone().unwrap_or_default();
    embedded(&call.clone(), question, move |embedded| build_with(call, given, embedded))
}

fn build_with(
    call: MethodCall,
    given: BuildContext,
    embedded: Embedded,
) -> Result<Step, WireError> {
    let outcome = embedded.outcome();
    let (embedder, vector) = embedded.vector.unzip();
    let purpose = Purpose {
        phase: given.phase,
        strategy: given.strategy.as_deref().map(named_strategy).transpose()?,
        max_tokens: not_negative("max-tokens", given.max_tokens)?,
        may_grow: given.max_tokens.is_none(),
        query: given.query,
        vector,
        restored: numbers(given.restore),
        sections: given.sections.unwrap_or_default().counted(&call.counter()),
        ..Purpose::default()
    };
    let (brief, explain) = (given.brief.unwrap_or(false), given.explain.unwrap_or(false));
    let dry_run = given.dry_run.unwrap_or(false);
    let managers = given.managers.map(manager_names).transpose()?;
    Step::then(move |engine| {
        let (session, model) = (given.session.as_deref(), given.model.as_deref());
        let row = engine.find_session(session)?;
        let mut context = call.tools.providers.context_of(engine, row, model)?;
        let asked = call.tools.providers.chosen(None, model, &context.settings);
        let takes_pdf = asked.is_ok_and(|asked| asked.provider.takes_pdf());
        let purpose = Purpose { takes_pdf, ..purpose };
        context.managers = managers.unwrap_or(context.managers);
        if !given.items {
            context.managers.clear();
        }
        let mut material = engine.material(context)?;
        if let Some(model) = embedder {
            engine.add_vectors(&mut material, &model)?;
            call.tools.embedding.iter().for_each(|it| it.want(material.context.row.id));
        }
        Ok(Finish::Later(Box::new(move || {
            let SessionContext { row, costs, .. } = &material.context;
            let (id, name, model) = (row.id, row.name.clone(), costs.model.clone());
            let counter = &*call.tools.counter;
            material.items = current(&call.tools, counter, call.caller, material.items);
            let built = build(counter, material, purpose)?;
            let window = Arc::new(built.window);
            let (noted, items) = (Arc::clone(&window), built.items.clone());
            if !dry_run {
                let note = move |engine: &mut Engine| engine.note_window(id, &noted, items);
                call.tools.engine.ask_blocking_for(call.caller, note)?;
            }
            Ok(Value::of(&WindowResult {
                session: &name,
                tokens: window.tokens,
                max_tokens: window.report.max_tokens,
                model: &model.name,
                model_known: model.known,
                parts: (!brief).then(|| window.parts.iter().map(part).collect()),
                report: WindowReport::of(&window.report, explain),
                items: verdicts(&built.items),
                embedding: outcome,
            }))
        })))
    })
}

/// A window of a session, with its outcome for each item and each part.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Window")]
pub(super) struct WindowResult<'a> {
    /// Name of the session.
    session: &'a str,
    /// Tokens of the window.
    tokens: u64,
    /// Maximum number of tokens.
    max_tokens: u64,
    /// Model that the window is for.
    model: &'a str,
    /// True if the limits of the model are known, so that no default was used.
    model_known: bool,
    /// Parts of the window, in order; absent if the call is `:brief`.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<PartResult<'a>>>,
    /// Report on the parts in the window and those that were left out.
    report: WindowReport<'a>,
    /// Outcome for each item of the managers that were included.
    items: Vec<Decided>,
    /// `:used` if the query was also compared by meaning, or the reason why it was compared by its
    /// words alone. Absent without a query, and if no embedding model is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "keyword or text"))]
    embedding: Option<Value>,
}

/// A part of a window, as clients get it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WindowPart")]
pub(super) struct PartResult<'a> {
    /// Section of the window.
    section: Section,
    /// Author of the part.
    role: Role,
    /// The text; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    /// Tokens of the part.
    tokens: u64,
    /// Id of the message, if the part is a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<MessageId>,
    /// Tool calls of an assistant's message; absent if there are none, and in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a [ToolCall]>,
    /// Id of the call that a tool's message answers; absent in others, and in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> PartResult<'a> {
    /// Returns what a dry run shows of a part: no text, no tool calls, and no id of an answered call.
    pub(super) fn brief(part: &MessagePart) -> Self {
        let id = part.message.map(MessageId);
        let (section, role, tokens) = (part.section, part.role, part.tokens);
        Self { section, role, content: None, tokens, id, tool_calls: None, tool_call_id: None }
    }
}

fn part(part: &MessagePart) -> PartResult<'_> {
    let calls = Some(&part.tool_calls).filter(|calls| !calls.is_empty());
    PartResult {
        content: Some(&part.content),
        tool_calls: calls.map(Vec::as_slice),
        tool_call_id: part.tool_call_id.as_deref(),
        ..PartResult::brief(part)
    }
}
