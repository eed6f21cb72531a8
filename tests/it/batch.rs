//! Several calls in one message.

use crate::support::*;

fn call(method: &str, params: &str) -> String {
    format!("(:method {method} :params {params})")
}

fn batch(more: &str, calls: &[String]) -> String {
    format!("({more} :calls ({}))", calls.join(" "))
}

#[test]
fn each_call_is_carried_out_for_itself_and_answered_in_order() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let calls = [
        call("add-context", "(:content \"one\")"),
        call("remove-items", "(:id \"ctx-99\")"),
        call("no-such-method", "nil"),
        call("add-context", "(:content 3)"),
        call("add_context", "(:content \"two\" :brief t)"),
        call("get-context", "nil"),
        call("context-to-string", "(:max-tokens 1)"),
        call("ping", "nil"),
    ];
    let answer = client.ok("batch", &batch("", &calls));
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), calls.len());
    assert_eq!(results[0]["result"]["content"], "one");
    assert_eq!(results[1]["error"]["data"]["kind"], "no-such-item");
    assert_eq!(results[2]["error"]["code"], -32601);
    assert_eq!(results[3]["error"]["message"], "content must be a string, got 3");
    assert_eq!(results[4]["result"]["count"], 2);
    assert_eq!(results[5]["result"].as_array().unwrap().len(), 2);
    assert_eq!(results[6]["error"]["data"]["kind"], "budget-too-small");
    let alone = results[7]["error"]["message"].as_str().unwrap();
    assert!(alone.contains("in a batch, because it ") && alone.contains("alone"), "{alone}");
    assert_eq!(client.contents("*shared*"), ["one", "two"]);
}

#[test]
fn an_atomic_batch_is_kept_whole_or_not_at_all() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.add("m", "before");
    let calls = [
        call("add-context", "(:content \"one\" :manager \"m\")"),
        call("add-message", "(:content \"hello\")"),
        call("remove-items", "(:id \"ctx-99\" :manager \"m\")"),
        call("add-context", "(:content \"two\" :manager \"m\")"),
    ];
    let error = client.fails("batch", &batch(":atomic t", &calls));
    assert!(error.message.starts_with("call 3 of the batch, remove-items: no item ctx-99"));
    assert!(error.message.ends_with("no call of the batch had any effect"), "{}", error.message);
    let (index, kind) = (&error.data["index"], &error.data["kind"]);
    assert_eq!((index, kind), (&2.into(), &"no-such-item".into()));
    assert_eq!(client.contents("m"), ["before"]);
    assert!(is_nil(&client.ok("get-messages", "nil")));
    let calls: Vec<String> = [0, 1, 3].map(|at| calls[at].clone()).to_vec();
    client.ok("batch", &batch(":atomic t", &calls));
    client.end();
    let mut client = home.stdio(&[]);
    assert_eq!(client.contents("m"), ["before", "one", "two"]);
    assert_eq!(client.ok("get-messages", "nil").as_array().unwrap().len(), 1);
    client.ok("undo", "(:manager \"m\")");
    assert_eq!(client.contents("m"), ["before"], "a batch is one step");
}

#[test]
fn a_batch_that_fails_before_the_engine_changes_nothing_either() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let calls = [call("add-context", "(:content \"x\")"), call("chat", "(:content \"x\")")];
    let error = client.fails("batch", &batch(":atomic t", &calls));
    assert!(error.message.contains("call 2 of the batch, chat: calls[1].method"), "{error:?}");
    assert!(client.contents("*shared*").is_empty());
    for calls in ["(:calls nil)", "nil"] {
        assert_eq!(client.fails("batch", calls).param(), "calls");
    }
}

#[test]
fn a_repeated_batch_is_answered_by_its_key_and_changes_nothing() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    for more in [":request-key \"k\"", ":atomic t :request-key \"l\""] {
        let calls = [
            call("add-context", &format!("(:content {more:?} :manager \"m\" :brief t)")),
            call("get-context", "(:manager \"m\")"),
        ];
        let first = client.ok("batch", &batch(more, &calls));
        assert_eq!(client.ok("batch", &batch(more, &calls)), first);
        let other = client.fails("batch", &batch(more, &calls[..1]));
        assert_eq!(other.kind(), "key-reused");
    }
    assert_eq!(client.contents("m").len(), 2);
}

#[test]
fn a_batch_makes_one_notification_for_each_manager() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("subscribe", "(:topics (:context-changed))");
    let add =
        |manager: &str| call("add-context", &format!("(:content \"x\" :manager {manager:?})"));
    let calls = [add("a"), add("b"), call("undo", "(:manager \"zzz\")"), add("a")];
    client.ok("batch", &batch("", &calls));
    let told = [(); 2].map(|()| {
        let told = client.notification("context-changed");
        (told["manager"].clone(), told["count"].clone())
    });
    client.ok("add-context", "(:content \"x\" :manager \"last\")");
    assert_eq!(client.notification("context-changed")["manager"], "last");
    assert!(told.contains(&("a".into(), 2.into())) && told.contains(&("b".into(), 1.into())));
}

#[test]
fn errors_in_a_batch_are_in_the_words_of_the_dialect() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.dialect = Dialect::Json;
    let calls = [call("context-to-string", "(:max-tokens -1)")];
    let answer = client.ok("batch", &batch("", &calls));
    let error = &answer["results"][0]["error"];
    assert_eq!(error["message"], "max_tokens must be 0 or more, got -1");
    assert_eq!(error["data"]["param"], "max_tokens");
}

#[test]
fn a_batch_with_a_key_reads_live_items_as_their_files_are() {
    let home = Home::new();
    let path = home.write("p/a.rs", "fn old() {}\n");
    let mut client = home.ephemeral(&[]);
    let metadata =
        format!("(:filename {} :start-line 1 :end-line 1 :origin :defun)", quoted(&path));
    let content = quoted("fn old() {}\n");
    let item = format!("(:content {content} :metadata {metadata} :live t)");
    client.ok("add-item", &item);
    client.ok("list-items", "nil");
    home.write("p/a.rs", "// A line above.\nfn old() {}\n");
    let calls = "((:method \"list-items\") (:method \"add-item\" :params (:content \"x\")))";
    let done = client.ok("batch", &format!("(:calls {calls} :request-key \"k\")"));
    let item = &done["results"][0]["result"][0];
    assert_eq!((&item["metadata"]["start_line"], &item["state"]), (&2.into(), &"fresh".into()));
    assert_eq!(client.ok("list-items", "(:count-only t)")["count"], 2);
}
