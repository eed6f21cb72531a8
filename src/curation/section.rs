//! Sections: the texts of a window beside the conversation, and how some of them are written.

use std::fmt::Write;
use std::sync::Arc;

use crate::names::names;
use crate::tokens::Counter;
use crate::visible::visible;

names! {
    /// A section of a window. They are declared in the order in which a window has them: what
    /// stays the same between two windows first, since prompt caches live on a common beginning.
    Section {
        /// What tools there are. It is counted, but sent beside the messages, not as one.
        ToolSchemas => "tool-schemas",
        /// What the model is to be.
        SystemPrompt => "system-prompt",
        /// What is to be built.
        DesignDocument => "design-document",
        /// The types that code is written against.
        TypeDefinitions => "type-definitions",
        /// What is being worked on.
        CurrentUnit => "current-unit",
        /// The tests of the current unit, or those that fail.
        RelevantTests => "relevant-tests",
        /// The code that failing tests name.
        Implementation => "implementation",
        /// The rendered items of the context.
        ContextItems => "context-items",
        /// What was summarized of the conversation.
        Summary => "summary",
        /// The conversation.
        Messages => "messages",
        /// What was implemented and approved before.
        PreviousUnits => "previous-units",
        /// What was found in memory for this turn.
        Grounding => "grounding",
    }
}

/// A text with its count, so that texts which stay are counted once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The text.
    pub text: Arc<str>,
    /// How many tokens it has, unscaled, by the counter of the window's measure.
    pub tokens: u64,
}

impl Counted {
    /// Counts a text.
    pub fn new(text: impl Into<Arc<str>>, counter: &dyn Counter) -> Self {
        let text = text.into();
        Self { tokens: counter.count(&text), text }
    }
}

/// What a window can have beside the conversation. An empty text is as good as none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sections {
    /// What tools there are, as it is sent.
    pub tool_schemas: Option<Counted>,
    /// What the model is to be.
    pub system_prompt: Option<Counted>,
    /// What is to be built.
    pub design_document: Option<Counted>,
    /// The types that code is written against.
    pub type_definitions: Option<Counted>,
    /// What is being worked on.
    pub current_unit: Option<Counted>,
    /// The tests of the current unit.
    pub relevant_tests: Option<Counted>,
    /// Tests that fail; in the phase of testing they stand in place of the relevant ones.
    pub failures: Vec<Failure>,
    /// The units of the work, in the order in which they were approved.
    pub units: Vec<CodeUnit>,
    /// The rendered items of the context.
    pub context_items: Option<Counted>,
    /// What was summarized of the conversation.
    pub summary: Option<Counted>,
    /// What was found in memory for this turn.
    pub grounding: Option<Counted>,
}

/// A test that failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failure {
    /// The test's name.
    pub name: String,
    /// What it said.
    pub error: String,
    /// What it expected.
    pub expected: String,
    /// What it received.
    pub received: String,
    /// Where it failed.
    pub stack: Option<String>,
}

/// A unit of the work: a function, a class, a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeUnit {
    /// Its name.
    pub name: String,
    /// The file that has it.
    pub path: String,
    /// Its implementation; empty as long as there is none.
    pub code: String,
    /// Whether its implementation was approved.
    pub approved: bool,
}

/// Failures as the model reads them: for each a heading, what was expected and received, and where,
/// with an empty line between two of them.
pub fn format_failures(failures: &[Failure]) -> String {
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

/// A fence that nothing in the text can end: three backquotes, or one more than the text has in a row.
fn fence(text: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    "`".repeat(runs.max().map_or(3, |longest| if longest < 3 { 3 } else { longest + 1 }))
}

/// A unit that was implemented before, as the model reads it; without white space around it.
pub fn format_previous_unit(unit: &CodeUnit) -> String {
    let CodeUnit { name, path, code, .. } = unit;
    let (name, path) = (visible(name), visible(path));
    format!("// Previously implemented: {name}\n// File: {path}\n{code}").trim().to_owned()
}

/// The implementations of the units whose names occur in the names of failing tests, whatever the
/// case, with an empty line between two of them; empty when there are none.
pub fn format_implementation(units: &[CodeUnit], failures: &[Failure]) -> String {
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
    fn failures_are_written_as_the_design_says() {
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
    fn previous_units_are_written_as_the_design_says() {
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
                        previous-units grounding";
        assert_eq!(names.join(" "), expected);
    }
}
