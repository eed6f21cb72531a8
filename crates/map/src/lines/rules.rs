//! How lines of each language define.

use crate::language::Language;

/// How lines of a language define.
pub(super) struct Rules {
    /// Words before the name of a definition.
    pub(super) definers: &'static [&'static str],
    /// Words before the name of what only holds definitions.
    pub(super) holders: &'static [&'static str],
    /// Words before the name of a value, which is a definition at the top or after a modifier.
    pub(super) values: &'static [&'static str],
    /// What such a value must begin with, if that matters. Other values are aliases.
    pub(super) kinds: &'static [&'static str],
    /// What begins a comment at the beginning of a line.
    pub(super) comments: &'static [&'static str],
    /// What begins and ends comments and texts over several lines.
    pub(super) blocks: &'static [(&'static str, &'static str)],
    /// Signs between the parts of a name.
    pub(super) joints: &'static [char],
    /// Whether `@` and brackets begin annotations.
    pub(super) has_annotations: bool,
    /// Whether a modifier, a type and a name are a method: `public int Read(`.
    pub(super) has_methods: bool,
    /// Whether `name :: Type` at the beginning of a line is a definition.
    pub(super) has_signatures: bool,
    /// Whether `name = function` is a definition.
    pub(super) has_assigned: bool,
}

/// Words that may stand before those that define.
pub(super) const MODIFIERS: &[&str] = &[
    "abstract",
    "actual",
    "async",
    "case",
    "companion",
    "const",
    "convenience",
    "crossinline",
    "data",
    "default",
    "dynamic",
    "expect",
    "export",
    "extern",
    "external",
    "file",
    "fileprivate",
    "final",
    "implicit",
    "indirect",
    "infix",
    "inline",
    "inner",
    "internal",
    "lateinit",
    "lazy",
    "local",
    "mutating",
    "new",
    "nonisolated",
    "open",
    "opaque",
    "operator",
    "override",
    "partial",
    "private",
    "protected",
    "pub",
    "public",
    "readonly",
    "required",
    "sealed",
    "static",
    "suspend",
    "tailrec",
    "threadlocal",
    "transparent",
    "unsafe",
    "value",
    "virtual",
    "weak",
];

const C_BLOCKS: &[(&str, &str)] = &[("/*", "*/"), ("\"\"\"", "\"\"\"")];

const NONE: Rules = Rules {
    definers: &[],
    holders: &[],
    values: &[],
    kinds: &[],
    comments: &["//", "*"],
    blocks: C_BLOCKS,
    joints: &['.'],
    has_annotations: true,
    has_methods: false,
    has_signatures: false,
    has_assigned: false,
};

const CSHARP: Rules = Rules {
    definers: &["class", "struct", "interface", "enum", "record"],
    has_methods: true,
    ..NONE
};

const ELIXIR: Rules = Rules {
    definers: &[
        "callback",
        "def",
        "defdelegate",
        "defexception",
        "defguard",
        "defmacro",
        "defmacrop",
        "defmodule",
        "defp",
        "defprotocol",
        "macrocallback",
        "type",
    ],
    holders: &["defimpl"],
    comments: &["#"],
    blocks: &[("\"\"\"", "\"\"\"")],
    has_annotations: false,
    ..NONE
};

const HASKELL: Rules = Rules {
    definers: &["class", "data", "newtype", "type"],
    holders: &["instance"],
    comments: &["--"],
    blocks: &[("{-", "-}")],
    has_annotations: false,
    has_signatures: true,
    ..NONE
};

const KOTLIN: Rules = Rules {
    definers: &["class", "enum", "fun", "interface", "object", "typealias"],
    values: &["val", "var"],
    ..NONE
};

const LUA: Rules = Rules {
    definers: &["function"],
    comments: &["--"],
    blocks: &[("--[[", "]]")],
    joints: &['.', ':'],
    has_assigned: true,
    ..NONE
};

const PHP: Rules = Rules {
    definers: &["class", "enum", "function", "interface", "trait"],
    values: &["const"],
    blocks: &[("/*", "*/")],
    ..NONE
};

const SCALA: Rules = Rules {
    definers: &["class", "def", "enum", "given", "object", "trait", "type"],
    holders: &["extension"],
    values: &["val", "var"],
    ..NONE
};

const SWIFT: Rules = Rules {
    definers: &["actor", "class", "enum", "func", "protocol", "struct", "typealias"],
    holders: &["extension"],
    values: &["let", "var"],
    ..NONE
};

const ZIG: Rules = Rules {
    definers: &["fn"],
    values: &["const"],
    kinds: &["enum", "error", "extern ", "opaque", "packed ", "struct", "union"],
    blocks: &[],
    ..NONE
};

/// Returns the rules of a language that is read by lines.
pub(super) fn of(language: Language) -> Option<&'static Rules> {
    Some(match language {
        Language::CSharp => &CSHARP,
        Language::Elixir => &ELIXIR,
        Language::Haskell => &HASKELL,
        Language::Kotlin => &KOTLIN,
        Language::Lua => &LUA,
        Language::Php => &PHP,
        Language::Scala => &SCALA,
        Language::Swift => &SWIFT,
        Language::Zig => &ZIG,
        _ => return None,
    })
}
