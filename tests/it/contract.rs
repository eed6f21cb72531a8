//! The contract: names, parameters and results that other programs rely on.
//! `tests/wire/contract.sexp` pins the results.

use contexture_program::internals::rpc::methods;

use crate::support::*;

/// Each call of the contract with its parameters.
const CONTRACT: [(&str, &str); 13] = [
    ("add-context", "brief content if-version live manager metadata pinned request-key type"),
    (
        "get-context",
        "brief cursor fields filenames ids limit manager managers max-bytes since types",
    ),
    ("clear-context", "if-version manager request-key"),
    ("context-to-string", "format ids limit manager managers max-tokens since types"),
    (
        "build-context",
        "brief cursor explain fields items managers max-bytes max-tokens model phase query \
         restore sections session since strategy",
    ),
    ("process-turn", "coherence content if-version model phase request-key session"),
    ("checkpoint", "if-version message request-key session"),
    ("rollback", "checkpoint if-version request-key session"),
    ("quality-score", "model session since"),
    ("prune-context", "brief if-needed if-version max-tokens messages model request-key session"),
    ("summarize-context", "if-version keep-turns max-items messages model request-key session"),
    ("context-stats", "messages model session since"),
    ("auto-manage-context", "brief if-version max-tokens messages model request-key session"),
];

#[test]
fn every_name_is_listed_and_belongs_to_one_method() {
    let mut client = Home::new().ephemeral(&[]);
    let document = crate::schema::document();
    let mut names = Vec::new();
    for method in methods() {
        let row = &document["methods"][method.name];
        let of_contract: Vec<&str> = method.contract_names().collect();
        assert_eq!(ids(&row["aliases"]), of_contract, "{}", method.name);
        names.push(method.name);
        names.extend(of_contract);
    }
    for name in &names {
        let error = client.fails(name, "(:no-such-parameter 1)");
        assert_eq!(error.code, -32602, "{name}: {error:?}");
    }
    for (name, _) in CONTRACT {
        assert_eq!(names.iter().filter(|known| **known == name).count(), 1, "{name}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

#[test]
fn a_name_of_another_kind_is_unknown() {
    let mut client = Home::new().ephemeral(&[]);
    let gone =
        ["update-context", "move-context", "switch-session", "list-views", "explain-context"];
    for name in gone {
        let error = client.fails(name, "nil");
        assert_eq!(error.code, -32601, "{name}: {error:?}");
    }
    for (method, param) in [("prune-session", "max-tokens"), ("summarize-session", "max-items")] {
        let error = client.fails(method, &format!("(:{param} 1)"));
        assert!(error.message.contains("is not a parameter here"), "{}", error.message);
    }
}

#[test]
fn every_call_takes_its_parameters() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    let of_history = ["messages", "model", "brief", "max-tokens", "max-items", "keep-turns"];
    for (name, params) in CONTRACT {
        for param in params.split_whitespace() {
            // Only with a history does each of these calls take its other parameters.
            let history = match param != "messages" && params.contains("messages") {
                true if of_history.contains(&param) => ":messages [] ",
                _ => "",
            };
            if let Err(error) = client.call(name, &format!("({history}:{param} 7)")) {
                let said = error.message;
                assert!(!said.contains("is not a parameter here"), "{name} {param}: {said}");
            }
        }
    }
}

#[test]
fn errors_have_the_names_of_the_contract() {
    let mut client = Home::new().ephemeral(&[]);
    let refused = [
        ("prune-context", "max-tokens"),
        ("auto-manage-context", "max-tokens"),
        ("summarize-context", "max-items"),
    ];
    for (name, param) in refused {
        for history in ["", ":messages [] "] {
            let error = client.fails(name, &format!("({history}:{param} -3)"));
            let expected = format!("{param} must be 0 or more, got -3");
            assert_eq!((error.param(), &*error.message), (param, &*expected), "{name}");
        }
    }
    let error = client.fails("auto-manage-context", "(:session \"a\" :messages ())");
    assert_eq!(error.message, "messages cannot be combined with the parameter session");
}

#[test]
fn a_call_can_be_repeated_under_either_name() {
    let mut client = Home::new().ephemeral(&[]);
    let add = "(:content \"x\" :request-key \"k\")";
    assert_eq!(client.ok("add-item", add), client.ok("add-context", add));
    assert_eq!(client.ok("list-items", "(:count-only t)")["count"], 1);
}

#[test]
fn a_call_does_what_its_method_does() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    for number in 0..9 {
        client.ok("add-message", &format!("(:content \"message {number}\")"));
    }
    let kept = client.ok("auto-manage-context", "nil");
    assert_eq!(kept["stats"]["items_removed"], 0, "it is not needed");
    let pruned = client.ok("prune-context", "(:max-tokens 40 :brief t)");
    assert_eq!(client.ok("session-report", "nil")["items"], pruned["stats"]["items_kept"]);
    let history: String = (0..40).map(|n| format!("(:content \"message {n}\")")).collect();
    let both = [
        ("prune-context", ":max-tokens 60", "prune-session", ":keep-tokens 60"),
        ("auto-manage-context", "", "prune-session", ":if-needed t"),
        ("summarize-context", ":max-items 3", "summarize-session", ":keep-messages 3"),
        ("context-stats", "", "session-report", ""),
    ];
    for (name, params, method, more) in both {
        let given = |params: &str| format!("(:messages ({history}) {params})");
        assert_eq!(client.ok(name, &given(params)), client.ok(method, &given(more)), "{name}");
    }
    assert_eq!(client.ok("list-sessions", "nil").as_array().unwrap().len(), 1);
}
