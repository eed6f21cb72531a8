//! The sections of a window: the texts besides the conversation, and the formats of some of them.

use std::fmt::Write;
use std::sync::Arc;

use crate::names::names;
use crate::tokens::{Counter, Measure};
use crate::visible::visible;

names! {
    /// A section of a window. The declaration order is the order in a window: the most stable
    /// sections come first, since prompt caches depend on a common beginning.
    Section {
        /// The available tools. Counted here, but sent separately from the messages.
        ToolSchemas => "tool-schemas",
        /// Instructions for the model.
        SystemPrompt => "system-prompt",
        /// Description of what is to be built.
        DesignDocument => "design-document",
        /// Types that the code is written against.
        TypeDefinitions => "type-definitions",
        /// Unit of code in progress.
        CurrentUnit => "current-unit",
        /// Tests of the current unit of code, or the tests that fail.
        RelevantTests => "relevant-tests",
        /// Code that failing tests name.
        Implementation => "implementation",
        /// The rendered context items.
        ContextItems => "context-items",
        /// Summary of the older conversation.
        Summary => "summary",
        /// The conversation.
        Messages => "messages",
        /// Units of code that were implemented and approved earlier.
        PreviousUnits => "previous-units",
        /// Map of the project: files and definitions that matter for the question.
        RepoMap => "repo-map",
        /// Memories found for this turn.
        Grounding => "grounding",
    }
}

/// A text with its token count, so that an unchanged text is counted only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedText {
    /// The text.
    pub text: Arc<str>,
    /// Number of tokens as the [`Counter`] counts them, before they are scaled for the model.
    pub tokens: u64,
}

impl CountedText {
    /// Counts a text.
    pub fn new(text: impl Into<Arc<str>>, counter: &dyn Counter) -> Self {
        let text = text.into();
        Self { tokens: counter.count(&text), text }
    }
}

/// The texts that a window can have besides the conversation. An empty text counts as absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sections {
    /// The available tools, as they are sent.
    pub tool_schemas: Option<CountedText>,
    /// Instructions for the model.
    pub system_prompt: Option<CountedText>,
    /// Description of what is to be built.
    pub design_document: Option<CountedText>,
    /// Types that the code is written against.
    pub type_definitions: Option<CountedText>,
    /// Unit of code in progress.
    pub current_unit: Option<CountedText>,
    /// Tests of the current unit of code.
    pub relevant_tests: Option<CountedText>,
    /// Tests that fail. They replace the relevant tests, except in the phase of implementation.
    pub failures: Vec<Failure>,
    /// Units of code; the approved ones in the order of approval.
    pub units: Vec<CodeUnit>,
    /// The rendered context items.
    pub context_items: Option<CountedText>,
    /// Summary of the older conversation.
    pub summary: Option<CountedText>,
    /// Map of the project.
    pub repo_map: Option<CountedText>,
    /// Memories found for this turn.
    pub grounding: Option<CountedText>,
}

impl Sections {
    /// Returns the cost of the texts that are already counted, except the items, in tokens. The
    /// cost of failures and units is unknown until they are formatted.
    pub fn tokens(&self, measure: &Measure) -> u64 {
        let Self { tool_schemas, system_prompt, design_document, type_definitions, .. } = self;
        let Self { current_unit, relevant_tests, summary, repo_map, grounding, .. } = self;
        let counted = [
            tool_schemas,
            system_prompt,
            design_document,
            type_definitions,
            current_unit,
            relevant_tests,
            summary,
            repo_map,
            grounding,
        ];
        counted.into_iter().flatten().map(|part| measure.message(part.tokens)).sum()
    }
}

/// A failed test.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failure {
    /// Name of the test.
    pub name: String,
    /// Error message.
    pub error: String,
    /// Expected value.
    pub expected: String,
    /// Received value.
    pub received: String,
    /// Stack trace, if there is one.
    pub stack: Option<String>,
}

/// A unit of code: a function, a class or a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeUnit {
    /// Name of the unit.
    pub name: String,
    /// Path of the unit's file.
    pub path: String,
    /// Code of the unit; empty until the unit is implemented.
    pub code: String,
    /// True if the implementation was approved.
    pub approved: bool,
}

/// Formats failures for the model: for each a heading, the error, the expected and received values
/// and the stack, with an empty line between two failures.
pub(crate) fn format_failures(failures: &[Failure]) -> String {
    failures.iter().map(format_failure).collect::<Vec<_>>().join("\n\n")
}

fn format_failure(failure: &Failure) -> String {
    let Failure { name, error, expected, received, stack } = failure;
    let name = visible(name);
    let mut text = format!(
        "### Failed Test: {name}\n**Error**: {error}\n**Expected**: {expected}\n**Received**: {received}"
    );
    if let Some(stack) = stack.as_deref().filter(|stack| !stack.is_empty()) {
        let fence = fence(stack);
        let _ = write!(text, "\n**Stack**:\n{fence}\n{stack}\n{fence}");
    }
    text
}

/// Returns a Markdown fence that no line of the text can close: at least three backticks, and more
/// than the longest row of backticks in the text.
fn fence(text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    "`".repeat(runs.max().map_or(3, |longest| if longest < 3 { 3 } else { longest + 1 }))
}

/// Formats a previously implemented unit of code for the model, without surrounding white space.
pub(crate) fn format_previous_unit(unit: &CodeUnit) -> String {
    let CodeUnit { name, path, code, .. } = unit;
    let (name, path) = (visible(name), visible(path));
    format!("// Previously implemented: {name}\n// File: {path}\n{code}").trim().to_owned()
}

/// Formats the implementations of the units of code whose names occur in the names of failing
/// tests, in any letter case, with an empty line between two units. Empty when there are none.
pub(crate) fn format_implementation(units: &[CodeUnit], failures: &[Failure]) -> String {
    let failing: Vec<String> = failures.iter().map(|failure| failure.name.to_lowercase()).collect();
    let named = |unit: &&CodeUnit| {
        let name = unit.name.to_lowercase();
        !name.is_empty() && failing.iter().any(|failure| failure.contains(&name))
    };
    let shown = units.iter().filter(|unit| !unit.code.is_empty()).filter(named);
    let shown = shown.map(|unit| format!("// {}\n{}", visible(&unit.name), unit.code));
    shown.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(name: &str, stack: Option<&str>) -> Failure {
        Failure {
            name: name.into(),
            error: "not equal".into(),
            expected: "1".into(),
            received: "2".into(),
            stack: stack.map(Into::into),
        }
    }

    fn unit(name: &str, code: &str) -> CodeUnit {
        CodeUnit { name: name.into(), path: "src/a.ts".into(), code: code.into(), approved: true }
    }

    #[test]
    fn failures_are_formatted_for_a_model() {
        let text = format_failures(&[failure("adds", Some("at a.ts:3")), failure("subs", None)]);
        let expected = "### Failed Test: adds\n**Error**: not equal\n**Expected**: 1\n\
                        **Received**: 2\n**Stack**:\n```\nat a.ts:3\n```\n\n\
                        ### Failed Test: subs\n**Error**: not equal\n**Expected**: 1\n\
                        **Received**: 2";
        assert_eq!(text, expected);
        assert_eq!(format_failures(&[]), "");
    }

    #[test]
    fn a_stack_cannot_end_its_fence() {
        let text = format_failures(&[failure("adds", Some("see ```` here"))]);
        assert!(text.ends_with("**Stack**:\n`````\nsee ```` here\n`````"), "{text}");
    }

    #[test]
    fn previous_units_are_formatted_for_a_model() {
        let text = format_previous_unit(&unit("add", "\nfunction add() {}\n"));
        let expected = "// Previously implemented: add\n// File: src/a.ts\n\nfunction add() {}";
        assert_eq!(text, expected);
    }

    #[test]
    fn failing_tests_name_their_units_in_any_case() {
        let units = [unit("parseLine", "1"), unit("render", "2"), unit("", "3"), unit("lexer", "")];
        let failures =
            [failure("ParseLine keeps spaces", None), failure("Renderer and lexer work", None)];
        assert_eq!(format_implementation(&units, &failures), "// parseLine\n1\n\n// render\n2");
        assert_eq!(format_implementation(&units, &[]), "");
    }

    #[test]
    fn sections_come_in_the_order_of_a_window() {
        let names: Vec<&str> = Section::ALL.iter().map(|section| section.name()).collect();
        let expected = "tool-schemas system-prompt design-document type-definitions current-unit \
                        relevant-tests implementation context-items summary messages \
                        previous-units repo-map grounding";
        assert_eq!(names.join(" "), expected);
    }
}
