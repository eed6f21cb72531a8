//! The templates that come with the program.

use super::{Source, Template, TemplateError};

/// A template that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// Every template that comes with the program: those that manage a context, then those of quick
/// actions.
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

/// The built-in template of this name.
///
/// # Errors
/// Never for one of [`BUILT_IN`], which a test checks.
pub fn built_in(name: &str) -> Option<Result<Template, TemplateError>> {
    let found = BUILT_IN.iter().find(|built_in| built_in.name == name)?;
    Some(Template::parse(found.name, Source::BuiltIn, found.text))
}
