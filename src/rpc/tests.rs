//! Tests of the method table against the code behind it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::engine::Handle;
use crate::tokens::Estimate;
use crate::value::sexp;

struct Nobody;

impl Peer for Nobody {
    fn progress(&self, _: Value) -> bool {
        false
    }
}

fn call() -> MethodCall {
    let limits = Limits { max_message_bytes: 1 << 20, max_file_bytes: 1 << 20, max_items: 50 };
    let tools = Tools::new(Handle::channel().0, Arc::new(Estimate), limits);
    let cancelled = Arc::new(CancellationToken::new());
    MethodCall {
        tools: Arc::new(tools),
        peer: Arc::new(Nobody),
        caller: crate::engine::Caller::Nobody,
        access: Access::Local,
        dialect: crate::wire::dialect::Dialect::Native,
        client: Arc::default(),
        page_bytes: limits::PAGE_BYTES,
        is_session_named: true,
        id: None,
        cancelled,
        hung_up: CancellationToken::new(),
        in_steps: Default::default(),
        is_beside: Arc::default(),
        effective: CancellationToken::new(),
    }
}

/// Returns a method, also by its name in the contract.
fn named(method: &str) -> &'static Method {
    find(method, &mut Value::Nil).unwrap().method
}

fn refusal(method: &Method, params: &str) -> WireError {
    match method.run(call(), sexp::read(params).unwrap()) {
        Ok(_) => panic!("{} took {params}", method.name),
        Err(error) => error,
    }
}

#[test]
fn the_table_documents_exactly_the_parameters_that_methods_take() {
    for method in methods() {
        let error = refusal(method, "(:no-such-parameter 1)");
        assert_eq!(error.code, WireError::INVALID_PARAMS, "{}", method.name);
        let (_, known) = error.message.split_once("; the ").unwrap_or_default();
        let lists = ["parameters are ", "only parameter is "];
        let known = lists.iter().find_map(|list| known.strip_prefix(list)).unwrap_or_default();
        let mut known: Vec<&str> = known.split(", ").filter(|name| !name.is_empty()).collect();
        let mut documented: Vec<&str> = method.params().iter().map(|param| param.name).collect();
        known.sort_unstable();
        documented.sort_unstable();
        assert_eq!(known, documented, "{}: {}", method.name, error.message);
    }
}

#[test]
fn required_parameters_are_required() {
    for method in methods().filter(|method| method.params().iter().any(|param| param.required)) {
        let error = refusal(method, "nil");
        assert!(error.message.ends_with("is required"), "{}: {}", method.name, error.message);
    }
}

#[test]
fn names_and_docs_are_fit_for_people() {
    for (index, method) in methods().enumerate() {
        assert!(method.doc.ends_with('.') && method.result.ends_with('.'), "{}", method.name);
        assert!(!methods().take(index).any(|other| other.name == method.name));
        for param in method.params() {
            assert!(param.doc.ends_with('.'), "{} {}", method.name, param.name);
        }
    }
}

#[track_caller]
fn check(method: &str, params: &str, expected: &str) {
    let error = refusal(named(method), params);
    assert_eq!(error.message, expected);
    assert_eq!(error.code, WireError::INVALID_PARAMS);
}

#[test]
fn bad_parameters_are_refused_by_name() {
    check("get-context", "(:limit -3)", "limit must be 0 or more, got -3");
    check(
        "get-context",
        "(:manager \"a\" :managers (\"b\"))",
        "managers cannot be combined with the parameter manager; give one of them",
    );
    check(
        "add-context",
        "(:content \"x\" :metadata (:start-line 0))",
        "metadata.start-line must be an integer of 1 or more",
    );
    check(
        "add-context",
        "(:content \"x\" :metadata (:start-line 9 :end-line 3))",
        "metadata.end-line must not be before start-line 9, got 3",
    );
    check(
        "add-context",
        "(:content \"x\" :metadata (:filename 3))",
        "metadata.filename must be a string",
    );
    check(
        "add-context",
        "(:content \"x\" :metadata (:package (3)))",
        "metadata.package must be a string",
    );
    check(
        "add-context",
        "(:content \"x\" :metadata (:a))",
        "metadata must be a property list, with names such as :start-line",
    );
    check(
        "add-context",
        "(:content \"x\" :live t)",
        "live needs metadata.filename, the absolute name of the file that the item follows",
    );
    check("remove-items", "nil", "id is required, or ids for more than one");
    check(
        "remove-items",
        "(:id \"ctx-1\" :ids (\"ctx-2\"))",
        "ids cannot be combined with the parameter id; give one of them",
    );
    check("remove-items", "(:id \"7\")", "id must be an item's id such as ctx-12, got \"7\"");
    check("configure-manager", "(:max-items 0)", "max-items must be from 1 to 1000, got 0");
    check("configure-manager", "(:max-items 1001)", "max-items must be from 1 to 1000, got 1001");
    check("clear-context", "(:manager \"\")", "manager must not be empty");
    check(
        "configure-provider",
        "(:name \"p\" :kind :ollama :model \"m\" :answer-tokens 0)",
        "answer-tokens must be 1 or more, got 0",
    );
    check(
        "move-items",
        "(:id \"ctx-1\")",
        "to is required unless into, before or after is given; give exactly one of the four",
    );
}

#[test]
fn unknown_types_origins_and_topics_list_the_valid_ones() {
    let lists = |method: &str, params: &str, some: &[&str]| {
        let message = refusal(named(method), params).message;
        assert!(some.iter().all(|name| message.contains(name)), "{message}");
    };
    lists("get-context", "(:types (:codex))", &["types[0]", "\"codex\"", "repl-history", "defun"]);
    lists("add-context", "(:content \"x\" :type :codex)", &["type", "codex", "repl-history"]);
    let origin = "(:content \"x\" :metadata (:origin :nowhere))";
    lists("add-context", origin, &["metadata.origin", "region", "diff"]);
    lists("subscribe", "(:topics (:x))", &["topics[0]", "context-changed", "stats"]);
    lists("context-to-string", "(:format :pdf)", &["format", "markdown", "org"]);
}

#[test]
fn unknown_methods_name_the_nearest() {
    let error = find("add-contxt", &mut Value::Nil).err().unwrap();
    assert_eq!(error.code, WireError::METHOD_NOT_FOUND);
    assert!(error.message.contains("the nearest are add-context"), "{}", error.message);
}

#[test]
fn the_table_says_which_calls_are_about_the_current_session() {
    let check = |method: &str, params: &str, expected: bool| {
        let is_about = named(method).is_about_current_session(&sexp::read(params).unwrap());
        assert_eq!(is_about, expected, "{method} {params}");
    };
    check("checkpoint", "nil", true);
    check("checkpoint", "(:session nil)", true);
    check("checkpoint", "(:session \"a\")", false);
    check("add-message", "(:messages ((:role :user)))", true);
    check("session-report", "nil", true);
    check("session-report", "(:messages ((:role :user)))", false);
    check("remember", "(:content \"q\")", false);
    check("remember", "(:content \"q\" :scope :session)", true);
    check("remember", "(:content \"q\" :scope \"session\")", true);
    check("remember", "(:content \"q\" :scope :project)", false);
    check("remember", "(:content \"q\" :scope :session :session \"a\")", false);
    check("list-memories", "nil", false);
}
