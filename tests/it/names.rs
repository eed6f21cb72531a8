//! Earlier names of methods and parameters go on working, and are listed with those of today.

use contexture::internals::rpc::methods;

use crate::support::*;

#[test]
fn every_earlier_name_is_listed_and_belongs_to_one_method() {
    let mut client = Home::new().ephemeral(&[]);
    let listed = client.ok("methods", "nil");
    let mut names = Vec::new();
    for (row, method) in listed.as_array().unwrap().iter().zip(methods()) {
        let earlier: Vec<&str> = method.earlier_names().collect();
        assert_eq!(ids(&row["aliases"]), earlier, "{}", method.name);
        names.push(method.name);
        names.extend(earlier);
    }
    for name in &names {
        let error = client.fails(name, "(:no-such-parameter 1)");
        assert_eq!(error.code, -32602, "{name}: {error:?}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

#[test]
fn a_call_can_be_repeated_under_either_name() {
    let mut client = Home::new().ephemeral(&[]);
    let add = "(:content \"x\" :request-key \"k\")";
    assert_eq!(client.ok("add-item", add), client.ok("add-context", add));
    assert_eq!(client.ok("count-items", "nil")["count"], 1);
    client.ok("open-session", "(:name \"a\")");
    client.ok("open-session", "(:name \"b\")");
    let first = client.ok("switch-session", "(:session \"a\" :request-key \"k\")");
    assert_eq!(first["session"], "a");
    // Another method had this name, so the key is another.
    let other = client.ok("open-session", "(:name \"a\" :request-key \"k\")");
    assert_eq!((&other["session"], other["created_now"] == true), (&"a".into(), false));
}

#[test]
fn a_method_that_became_part_of_another_does_only_its_part() {
    let mut client = Home::new().ephemeral(&[]);
    let error = client.fails("switch-session", "(:session \"a\")");
    assert_eq!(error.kind(), "no-such-session");
    assert!(client.fails("switch-session", "nil").message.starts_with("name is required"));
    client.ok("open-session", "(:name \"a\")");
    for number in 0..9 {
        client.ok("add-message", &format!("(:content \"message {number}\")"));
    }
    let kept = client.ok("auto-manage-context", "nil");
    assert_eq!(kept["stats"]["items_removed"], 0, "it is not needed");
    let error = client.fails("auto-manage-context", "(:session \"a\" :messages ())");
    assert_eq!(error.message, "messages cannot be combined with the parameter session");
    let pruned = client.ok("prune-context", "(:max-tokens 40 :brief t)");
    assert_eq!(client.ok("session-stats", "nil")["items"], pruned["stats"]["items_kept"]);
}

#[test]
fn a_history_of_ones_own_has_methods_of_its_own() {
    let mut client = Home::new().ephemeral(&[]);
    let history: String = (0..40).map(|n| format!("(:content \"message {n}\")")).collect();
    let both = [
        ("prune-context", "prune-messages", ":max-tokens 60"),
        ("auto-manage-context", "prune-messages", ":if-needed t"),
        ("summarize-context", "summarize-messages", ":max-items 3"),
        ("context-stats", "message-stats", ""),
    ];
    for (earlier, now, more) in both {
        let given = format!("(:messages ({history}) {more})");
        let of_earlier = match earlier {
            "auto-manage-context" => client.ok(earlier, &format!("(:messages ({history}))")),
            _ => client.ok(earlier, &given),
        };
        assert_eq!(of_earlier, client.ok(now, &given), "{earlier}");
    }
    assert!(is_nil(&client.ok("list-sessions", "nil")));
}
