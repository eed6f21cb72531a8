//! Reads definitions and references by the grammars of tree-sitter.

mod tables;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, TreeCursor};

use self::tables::{Grammar, How, NodeRule};
use crate::facts::{Defined, ParsedFacts};
use crate::language::Language;

/// Steps of the parser, in units of its own checks, that a text of a size may take. A text that needs
/// more is garbage to the grammar. Not a time, so that equal texts give equal facts.
const STEPS_PER_BYTE: u64 = 2;
const LEAST_STEPS: u64 = 20_000;
/// Maximum number of here-documents in a text. For each line of one, the grammar of Bash looks at those that
/// are open, and it cannot be stopped meanwhile.
const MOST_HEREDOCS: usize = 1_000;
/// Maximum depth of definitions that is told.
const MAX_DEPTH: u8 = 8;

/// What a kind of node means: looked up by the number of the kind.
struct Actions {
    rules: Vec<Option<&'static NodeRule>>,
    references: Vec<bool>,
}

/// Reads a text. Returns `None` for a language without grammar, or if the parser gave up.
pub(crate) fn read(language: Language, text: &str) -> Option<ParsedFacts<'_>> {
    let grammar = tables::of(language)?;
    if language == Language::Bash && text.matches("<<").nth(MOST_HEREDOCS).is_some() {
        return None;
    }
    let actions = actions(grammar);
    let mut parser = Parser::new();
    parser.set_language(&grammar.language()).ok()?;
    let mut steps = 0;
    let limit = LEAST_STEPS + STEPS_PER_BYTE * text.len() as u64;
    let mut watch = |_: &ParseState| {
        steps += 1;
        if steps > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut watch);
    let bytes = text.as_bytes();
    let mut give = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut give, None, Some(options))?;
    let mut walk =
        GrammarWalk { text, actions, found: ParsedFacts::default(), names: HashSet::new() };
    walk.all(&mut tree.walk());
    Some(walk.found)
}

fn actions(grammar: &'static Grammar) -> &'static Actions {
    static KNOWN: [OnceLock<Actions>; tables::COUNT] = [const { OnceLock::new() }; tables::COUNT];
    KNOWN[grammar.number].get_or_init(|| {
        let language = grammar.language();
        let kinds = language.node_kind_count();
        let mut actions = Actions { rules: vec![None; kinds], references: vec![false; kinds] };
        for id in 0..kinds {
            let kind = u16::try_from(id).ok().and_then(|id| {
                language.node_kind_for_id(id).filter(|_| language.node_kind_is_named(id))
            });
            if let Some(kind) = kind {
                actions.rules[id] = grammar.rules.iter().find(|rule| rule.kind == kind);
                actions.references[id] = grammar.references.contains(&kind);
            }
        }
        actions
    })
}

struct GrammarWalk<'a> {
    text: &'a str,
    actions: &'static Actions,
    found: ParsedFacts<'a>,
    /// Where names of definitions begin: those are no references.
    names: HashSet<usize>,
}

impl<'a> GrammarWalk<'a> {
    /// Visits each node once, without recursion: the depth of a tree has no limit.
    fn all(&mut self, cursor: &mut TreeCursor<'_>) {
        // The ends of the definitions around the node.
        let mut around: Vec<usize> = Vec::new();
        loop {
            let node = cursor.node();
            while around.last().is_some_and(|end| *end <= node.start_byte()) {
                around.pop();
            }
            let id = usize::from(node.kind_id());
            if let Some(rule) = self.actions.rules.get(id).copied().flatten() {
                let depth = u8::try_from(around.len()).unwrap_or(MAX_DEPTH).min(MAX_DEPTH);
                if self.visit(node, rule, depth) {
                    around.push(node.end_byte());
                }
            }
            if self.actions.references.get(id) == Some(&true)
                && !self.names.contains(&node.start_byte())
                && let Some(name) = self.text.get(node.byte_range())
            {
                self.found.refer(name);
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    /// Returns true if the node is a definition.
    fn visit(&mut self, node: Node<'_>, rule: &NodeRule, depth: u8) -> bool {
        let Some((name, start, end)) = self.place(node, rule, depth) else { return false };
        let Some(text) = self.text.get(name.byte_range()) else { return false };
        let last = text.rsplit(['.', ':', '/', '"', '\'']).find(|part| !part.is_empty());
        let Some(text) = last.filter(|text| text.len() < 200) else { return false };
        if matches!(rule.how, How::Import) {
            // `./parts/reader.js` uses what `reader` is the name of.
            let stem = self.text.get(name.byte_range()).unwrap_or_default();
            let stem = stem.trim_matches(['"', '\'', '<', '>', '`']);
            let stem = stem.rsplit('/').next().unwrap_or(stem);
            self.found.refer(stem.split('.').next().unwrap_or(stem));
            return false;
        }
        let counts = !matches!(rule.how, How::Holder(_));
        if counts {
            self.names.insert(name.start_byte());
        }
        let line = |row: usize| u32::try_from(row + 1).unwrap_or(u32::MAX);
        let signature = self.text.get(start..end.max(start)).unwrap_or_default().to_owned();
        self.found.definitions.push(Defined {
            name: text.to_owned(),
            line: line(node.start_position().row),
            end: line(node.end_position().row),
            depth,
            counts,
            form: None,
            signature,
        });
        true
    }

    /// Returns the name of a definition, and where its signature begins and ends.
    fn place<'t>(
        &self,
        node: Node<'t>,
        rule: &NodeRule,
        depth: u8,
    ) -> Option<(Node<'t>, usize, usize)> {
        let field = |name: &str| node.child_by_field_name(name);
        let start = node.start_byte();
        let body = field("body").map_or_else(|| first_line(self.text, node), |it| it.start_byte());
        let plain = |name: Node<'t>| Some((name, start, body));
        match rule.how {
            How::Name => plain(field("name")?),
            How::NameWithBody => {
                field("body")?;
                plain(field("name")?)
            }
            How::Value => {
                let name = field("name")?;
                let value = field("value").map_or(body, |value| value.start_byte());
                Some((name, start, value))
            }
            How::TopValue if depth == 0 && is_top(node) => {
                let name = field("name")?;
                let value = field("value").map_or(body, |value| value.start_byte());
                Some((name, start, value))
            }
            How::TopValue => None,
            How::Holder(name) => plain(field(name)?),
            How::Declarator => {
                let name = declared(field("declarator")?)?;
                plain(name)
            }
            How::Prototype => {
                let declarator = field("declarator")?;
                let name = declared(declarator)?;
                let mut inner = declarator;
                while inner.kind() != "function_declarator" {
                    inner = inner.child_by_field_name("declarator")?;
                }
                plain(name)
            }
            How::Assigned => {
                let left = field("left")?;
                let constant = self.text.get(left.byte_range())?.starts_with(char::is_uppercase);
                let may = left.kind() == "identifier" && depth == 0 && is_top(node)
                    || left.kind() == "constant" && constant;
                let right = field("right").map_or(body, |right| right.start_byte());
                may.then_some((left, start, right))
            }
            How::Function => self.function(node, depth),
            How::Import => self.import(node),
        }
    }

    /// Names a function of JavaScript that is assigned: to a variable, a member, a field, a key.
    fn function<'t>(&self, node: Node<'t>, depth: u8) -> Option<(Node<'t>, usize, usize)> {
        let field = |name: &str| node.child_by_field_name(name);
        let name = field("name").or_else(|| field("left")).or_else(|| field("key"));
        let name = name.or_else(|| field("property"))?;
        let value = field("value").or_else(|| field("right"));
        let mut start = node.start_byte();
        let is_variable = node.kind() == "variable_declarator";
        if is_variable
            && let Some(parent) = node.parent()
            && parent.start_position() != node.start_position()
        {
            start = parent.start_byte();
        }
        let function = value.and_then(function_in);
        let Some(function) = function else {
            let is_constant = is_variable && depth == 0 && name.kind() == "identifier";
            let top = is_constant && node.parent().is_some_and(is_top);
            let end = value.map_or(node.end_byte(), |value| value.start_byte());
            return top.then_some((name, start, end));
        };
        let name = name.child_by_field_name("property").unwrap_or(name);
        if !matches!(
            name.kind(),
            "identifier" | "property_identifier" | "private_property_identifier"
        ) {
            return None;
        }
        let body = function.child_by_field_name("body");
        Some((name, start, body.map_or(function.end_byte(), |body| body.start_byte())))
    }

    fn import<'t>(&self, node: Node<'t>) -> Option<(Node<'t>, usize, usize)> {
        let source =
            node.child_by_field_name("source").or_else(|| node.child_by_field_name("path"));
        let source = source.or_else(|| {
            let method = node
                .child_by_field_name("method")
                .or_else(|| node.child_by_field_name("function"))?;
            let is_require = self.text.get(method.byte_range())?.starts_with("require");
            let arguments = node.child_by_field_name("arguments").filter(|_| is_require)?;
            arguments.named_child(0).filter(|it| it.kind() == "string")
        });
        Some((source?, node.start_byte(), node.start_byte()))
    }
}

/// Returns true if a node stands at the top of its file.
fn is_top(mut node: Node<'_>) -> bool {
    while let Some(parent) = node.parent() {
        let holds_top = matches!(
            parent.kind(),
            "export_statement"
                | "expression_statement"
                | "const_declaration"
                | "var_declaration"
                | "var_spec_list"
        );
        if parent.parent().is_none() || !holds_top {
            return parent.parent().is_none();
        }
        node = parent;
    }
    true
}

/// Returns the function that a value is, or is made of: `memo(() => …)`.
fn function_in(mut value: Node<'_>) -> Option<Node<'_>> {
    while value.kind() == "call_expression" {
        value = value.child_by_field_name("arguments")?.named_child(0)?;
    }
    let kinds = ["arrow_function", "function_expression", "generator_function", "class"];
    kinds.contains(&value.kind()).then_some(value)
}

/// Follows the declarators of C to the name.
fn declared(mut node: Node<'_>) -> Option<Node<'_>> {
    loop {
        match node.kind() {
            "identifier" | "field_identifier" | "type_identifier" | "destructor_name"
            | "operator_name" => return Some(node),
            "qualified_identifier" | "template_function" => {
                node = node.child_by_field_name("name")?;
            }
            "reference_declarator" | "parenthesized_declarator" | "attributed_declarator" => {
                node = node.named_child(0)?;
            }
            _ => node = node.child_by_field_name("declarator")?,
        }
    }
}

/// Returns the end of the first line of a node.
fn first_line(text: &str, node: Node<'_>) -> usize {
    let whole = text.get(node.byte_range()).unwrap_or_default();
    node.start_byte() + whole.find('\n').unwrap_or(whole.len())
}

#[cfg(test)]
mod tests;
