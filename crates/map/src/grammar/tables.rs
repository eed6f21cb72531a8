//! Says for each grammar which nodes define, and which refer.

use tree_sitter_language::LanguageFn;

use crate::language::Language;

/// Number of grammars.
pub(super) const COUNT: usize = 10;

/// How a node defines.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// By its field `name`.
    Name,
    /// By its field `name`, if it has a body: not a mere mention.
    NameWithBody,
    /// By its field `name`; its value is not shown.
    Value,
    /// The same, at the top of a file only.
    TopValue,
    /// Holds definitions, and is named by the field.
    Holder(&'static str),
    /// By the name inside its declarators (C).
    Declarator,
    /// The same, if it declares a function.
    Prototype,
    /// By its left side: a variable at the top, or a constant.
    Assigned,
    /// By the name to which it assigns a function (JavaScript).
    Function,
    /// Uses the file that it names.
    Import,
}

/// What a kind of node does.
#[derive(Debug)]
pub(super) struct NodeRule {
    pub(super) kind: &'static str,
    pub(super) how: How,
}

/// A grammar, and what its nodes do.
pub(super) struct Grammar {
    pub(super) number: usize,
    function: LanguageFn,
    pub(super) rules: &'static [NodeRule],
    pub(super) references: &'static [&'static str],
}

impl Grammar {
    pub(super) fn language(&self) -> tree_sitter::Language {
        self.function.into()
    }
}

/// Returns the grammar of a language.
pub(super) fn of(language: Language) -> Option<&'static Grammar> {
    Some(match language {
        Language::Bash => &BASH,
        Language::C => &C,
        Language::Cpp => &CPP,
        Language::Go => &GO,
        Language::Java => &JAVA,
        Language::Python => &PYTHON,
        Language::Ruby => &RUBY,
        Language::Rust => &RUST,
        Language::TypeScript => &TYPESCRIPT,
        Language::Tsx => &TSX,
        _ => return None,
    })
}

const fn rule(kind: &'static str, how: How) -> NodeRule {
    NodeRule { kind, how }
}

static BASH: Grammar = Grammar {
    number: 0,
    function: tree_sitter_bash::LANGUAGE,
    rules: &[rule("function_definition", How::Name)],
    references: &["command_name"],
};

static C: Grammar = Grammar {
    number: 1,
    function: tree_sitter_c::LANGUAGE,
    rules: &[
        rule("function_definition", How::Declarator),
        rule("declaration", How::Prototype),
        rule("struct_specifier", How::NameWithBody),
        rule("union_specifier", How::NameWithBody),
        rule("enum_specifier", How::NameWithBody),
        rule("type_definition", How::Declarator),
        rule("preproc_def", How::Value),
        rule("preproc_function_def", How::Value),
        rule("preproc_include", How::Import),
    ],
    references: &["identifier", "type_identifier", "field_identifier"],
};

static CPP: Grammar = Grammar {
    number: 2,
    function: tree_sitter_cpp::LANGUAGE,
    rules: &[
        rule("function_definition", How::Declarator),
        rule("declaration", How::Prototype),
        rule("field_declaration", How::Prototype),
        rule("struct_specifier", How::NameWithBody),
        rule("class_specifier", How::NameWithBody),
        rule("union_specifier", How::NameWithBody),
        rule("enum_specifier", How::NameWithBody),
        rule("type_definition", How::Declarator),
        rule("alias_declaration", How::Name),
        rule("concept_definition", How::Name),
        rule("namespace_definition", How::Holder("name")),
        rule("preproc_def", How::Value),
        rule("preproc_function_def", How::Value),
        rule("preproc_include", How::Import),
    ],
    references: &["identifier", "type_identifier", "field_identifier", "namespace_identifier"],
};

static GO: Grammar = Grammar {
    number: 3,
    function: tree_sitter_go::LANGUAGE,
    rules: &[
        rule("function_declaration", How::Name),
        rule("method_declaration", How::Name),
        rule("type_spec", How::Name),
        rule("type_alias", How::Name),
        rule("const_spec", How::TopValue),
        rule("var_spec", How::TopValue),
        rule("import_spec", How::Import),
    ],
    references: &["identifier", "type_identifier", "field_identifier", "package_identifier"],
};

static JAVA: Grammar = Grammar {
    number: 4,
    function: tree_sitter_java::LANGUAGE,
    rules: &[
        rule("class_declaration", How::Name),
        rule("interface_declaration", How::Name),
        rule("enum_declaration", How::Name),
        rule("record_declaration", How::Name),
        rule("annotation_type_declaration", How::Name),
        rule("method_declaration", How::Name),
        rule("constructor_declaration", How::Name),
    ],
    references: &["identifier", "type_identifier"],
};

static PYTHON: Grammar = Grammar {
    number: 5,
    function: tree_sitter_python::LANGUAGE,
    rules: &[
        rule("function_definition", How::Name),
        rule("class_definition", How::Name),
        rule("assignment", How::Assigned),
    ],
    references: &["identifier"],
};

static RUBY: Grammar = Grammar {
    number: 6,
    function: tree_sitter_ruby::LANGUAGE,
    rules: &[
        rule("class", How::Name),
        rule("module", How::Name),
        rule("method", How::Name),
        rule("singleton_method", How::Name),
        rule("assignment", How::Assigned),
        rule("call", How::Import),
    ],
    references: &["identifier", "constant"],
};

static RUST: Grammar = Grammar {
    number: 7,
    function: tree_sitter_rust::LANGUAGE,
    rules: &[
        rule("function_item", How::Name),
        rule("function_signature_item", How::Name),
        rule("struct_item", How::Name),
        rule("enum_item", How::Name),
        rule("union_item", How::Name),
        rule("trait_item", How::Name),
        rule("type_item", How::Name),
        rule("const_item", How::Value),
        rule("static_item", How::Value),
        rule("macro_definition", How::Name),
        rule("mod_item", How::Holder("name")),
        rule("impl_item", How::Holder("type")),
    ],
    references: &["identifier", "type_identifier", "field_identifier"],
};

const SCRIPT: &[NodeRule] = &[
    rule("function_declaration", How::Name),
    rule("generator_function_declaration", How::Name),
    rule("function_signature", How::Name),
    rule("class_declaration", How::Name),
    rule("abstract_class_declaration", How::Name),
    rule("interface_declaration", How::Name),
    rule("type_alias_declaration", How::Name),
    rule("enum_declaration", How::Name),
    rule("internal_module", How::Holder("name")),
    rule("module", How::Holder("name")),
    rule("method_definition", How::Name),
    rule("abstract_method_signature", How::Name),
    rule("variable_declarator", How::Function),
    rule("assignment_expression", How::Function),
    rule("public_field_definition", How::Function),
    rule("pair", How::Function),
    rule("import_statement", How::Import),
    rule("export_statement", How::Import),
    rule("call_expression", How::Import),
];
const SCRIPT_REFERENCES: &[&str] =
    &["identifier", "type_identifier", "property_identifier", "shorthand_property_identifier"];

static TYPESCRIPT: Grammar = Grammar {
    number: 8,
    function: tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
    rules: SCRIPT,
    references: SCRIPT_REFERENCES,
};

static TSX: Grammar = Grammar {
    number: 9,
    function: tree_sitter_typescript::LANGUAGE_TSX,
    rules: SCRIPT,
    references: SCRIPT_REFERENCES,
};
