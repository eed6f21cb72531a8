//! The templates that come with the program.

use super::{Template, TemplateError, TemplatePlace};

/// A template that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Name of the template.
    pub name: &'static str,
    /// Whole text, including front matter.
    pub text: &'static str,
}

/// The built-in templates: those that write notes, then those of quick actions.
pub const BUILT_IN: &[Builtin] = &[
    Builtin { name: "freeform-chat", text: include_str!("builtin/freeform-chat.md") },
    Builtin { name: "goal-oriented", text: include_str!("builtin/goal-oriented.md") },
    Builtin { name: "code-review", text: include_str!("builtin/code-review.md") },
    Builtin { name: "debug-error", text: include_str!("builtin/debug-error.md") },
    Builtin { name: "document", text: include_str!("builtin/document.md") },
    Builtin { name: "explain", text: include_str!("builtin/explain.md") },
    Builtin { name: "fix-error", text: include_str!("builtin/fix-error.md") },
    Builtin { name: "review", text: include_str!("builtin/review.md") },
    Builtin { name: "write-tests", text: include_str!("builtin/write-tests.md") },
];

/// Returns the built-in template with this name, if there is one.
///
/// # Errors
/// Never fails in practice: a test parses every template of [`BUILT_IN`].
pub fn built_in(name: &str) -> Option<Result<Template, TemplateError>> {
    let found = BUILT_IN.iter().find(|built_in| built_in.name == name)?;
    Some(Template::parse(found.name, TemplatePlace::BuiltIn, found.text))
}
