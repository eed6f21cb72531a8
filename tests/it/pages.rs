//! A client that asks for pages takes little, whatever is stored.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::support::*;

/// Size of a page, in bytes.
const PAGE: usize = 64 << 10;

/// A server with more of everything than a page holds: 1,500 messages, 2,000 memories, large items.
fn stored(home: &Home) -> Client {
    let mut client = home.stdio(&["--max-items", "400"]);
    client.ok("open-session", "(:name \"a\")");
    let text = "some words that are said again and again \\\" λ ".repeat(15);
    for hundred in 0..15 {
        let message = |n: u32| format!("(:content \"{}: {text}\")", hundred * 100 + n);
        let messages: Vec<String> = (0..100).map(message).collect();
        client.ok("add-message", &format!("(:messages ({}))", messages.join(" ")));
    }
    for hundred in 0..4 {
        let remember = |n: u32| {
            let content = format!("memory {} of {text:.100}", hundred * 500 + n);
            format!("(:method remember :params (:content {content:?}))")
        };
        let calls: Vec<String> = (0..500).map(remember).collect();
        client.ok("batch", &format!("(:calls ({}))", calls.join(" ")));
    }
    for number in 0..300 {
        let length = if number % 100 == 50 { 200_000 } else { 1000 };
        client.ok(
            "add-context",
            &format!(
                "(:content \"{number} {}\" :brief t)",
                "\\n\"x".replace('"', "\\\"").repeat(length / 3)
            ),
        );
    }
    for number in 0..600 {
        client.ok("open-session", &format!("(:name \"session-{number}\" :current nil)"));
    }
    client
}

/// Sends a call and returns the length of its answer with the answer.
fn measured(client: &mut Client, method: &str, params: &str) -> (usize, Json) {
    let id = client.send(method, params);
    let line = client.line().unwrap();
    let answer = parse(client.dialect, &line);
    assert_eq!(answer["id"], id, "{line:.200}");
    (line.len(), outcome(answer).unwrap_or_else(|error| panic!("{method}: {error:?}")))
}

/// Returns the parameters of a call that asks for a page.
fn in_pages(params: &str) -> String {
    let own = params.strip_prefix('(').and_then(|params| params.strip_suffix(')')).unwrap_or("");
    format!("({own} :max-bytes {PAGE})")
}

/// Follows the pages of a list to their end.
fn all(
    client: &mut Client,
    method: &str,
    params: &str,
    mut between: impl FnMut(&mut Client),
) -> Vec<Json> {
    let mut params = in_pages(params);
    let (mut pages, mut found) = (0, Vec::new());
    loop {
        let (bytes, page) = measured(client, method, &params);
        assert!(bytes <= PAGE, "{method} answered {bytes} bytes");
        let items = page["items"].as_array().cloned().unwrap_or_default();
        assert!(!items.is_empty(), "{method}: an empty page");
        found.extend(items);
        pages += 1;
        let Some(next) = page["next"].as_str() else {
            assert!(is_nil(&page["truncated"]) && page["left"] == 0, "{method}");
            assert!(pages > 1, "{method} has only one page");
            return found;
        };
        assert_eq!(page["truncated"], true);
        params = format!("(:cursor {next:?})");
        between(client);
    }
}

fn ids(items: &[Json], member: &str) -> HashSet<String> {
    items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_list_is_answered_in_pages_with_everything_once() {
    let home = Home::new();
    let mut client = stored(&home);
    let lists = [
        ("get-messages", "nil", "id", 1500),
        ("get-context", "nil", "id", 300),
        ("list-memories", "nil", "id", 2000),
        ("list-sessions", "nil", "id", 601),
    ];
    for dialect in [Dialect::Native, Dialect::Json] {
        if dialect == Dialect::Json {
            client.end();
            client = home.stdio(&["--max-items", "400"]);
            client.dialect = dialect;
            client.ok("open-session", "(:create nil :name \"a\")");
        }
        for (method, params, member, expected) in lists {
            let mut number = 0;
            let found = all(&mut client, method, params, |client| {
                number += 1;
                let _ = client.call("add-context", &format!("(:content \"new {number}\")"));
                let _ = client.call("remove-items", &format!("(:id \"ctx-{}\")", number * 3));
                let _ = client.call("add-message", "(:session \"a\" :content \"new\")");
                let _ = client.call("remember", "(:content \"new\")");
                let _ = client.call(
                    "configure-session",
                    &format!(
                        "(:session \"ses-{}\" :name \"r{dialect:?}{method}{number}\")",
                        150 + number
                    ),
                );
            });
            assert!(found.len() >= expected, "{method}: {}", found.len());
            assert_eq!(ids(&found, member).len(), found.len(), "{method} gave some twice");
        }
    }
}

#[test]
fn other_readings_are_never_longer_than_a_page_either() {
    let home = Home::new();
    let mut client = stored(&home);
    for (method, params) in [
        ("build-context", "(:max-tokens 60000)"),
        ("build-context", "(:max-tokens 60000 :explain t)"),
        ("session-report", "(:explain t :reports 2)"),
        ("session-report", "(:windows 50)"),
        ("list-sessions", "(:query \"words\" :limit 1000)"),
        ("list-operations", "(:session \"a\")"),
        ("list-managers", "nil"),
        ("list-sets", "nil"),
        ("list-notes", "nil"),
    ] {
        let (bytes, page) = measured(&mut client, method, &in_pages(params));
        assert!(bytes <= PAGE, "{method} {params} answered {bytes} bytes");
        assert!(page.get("truncated").is_some(), "{method}: {page:.300}");
    }
    let explained = in_pages("(:max-tokens 60000 :explain t)");
    let (_, page) = measured(&mut client, "build-context", &explained);
    let whole = parts_of(&mut client, page);
    assert!(whole.0 > 100 && whole.1 > 1000, "{whole:?}");
}

/// Follows the pages of a window, and returns the numbers of its parts and of those in its report.
fn parts_of(client: &mut Client, mut page: Json) -> (usize, usize) {
    let count = |list: &Json| list.as_array().map_or(0, Vec::len);
    let mut counts = (0, 0);
    loop {
        counts.0 += count(&page["parts"]);
        counts.1 += count(&page["report"]["parts"]);
        let Some(next) = page["next"].as_str() else { return counts };
        let (bytes, following) = measured(client, "build-context", &format!("(:cursor {next:?})"));
        assert!(bytes <= PAGE);
        page = following;
    }
}

#[test]
fn a_limit_is_the_length_of_a_page_and_the_newest_come_first() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    for number in 1..=5 {
        client.ok("add-message", &format!("(:content \"{number}\")"));
    }
    let texts = |page: &Json| -> Vec<String> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["content"].as_str().unwrap().to_owned())
            .collect()
    };
    let page = client.ok("get-messages", &in_pages("(:limit 2)"));
    assert_eq!((texts(&page), &page["left"]), (vec!["4".into(), "5".into()], &3.into()));
    let next = page["next"].as_str().unwrap().to_owned();
    let page = client.ok("get-messages", &format!("(:cursor {next:?})"));
    assert_eq!(texts(&page), ["2", "3"]);
    let again = client.fails("get-messages", &format!("(:cursor {next:?})"));
    assert_eq!(again.kind(), "no-such-cursor");
    let next = page["next"].as_str().unwrap().to_owned();
    let elsewhere = client.fails("get-context", &format!("(:cursor {next:?})"));
    assert_eq!(elsewhere.kind(), "no-such-cursor");
}

#[test]
fn fields_and_brief_leave_members_out_for_every_client() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("add-message", "(:content \"hello\")");
    client.ok("remember", "(:content \"a memory\")");
    let messages = client.ok("get-messages", "(:fields (:id :token_counter))");
    assert_eq!(messages, serde_json::json!([{"id": "msg-1", "token_counter": "estimate"}]));
    let brief = client.ok("get-messages", "(:brief t)");
    assert!(brief[0].get("content").is_none() && brief[0]["tokens"].is_number(), "{brief}");
    assert!(client.ok("list-memories", "(:brief t)")[0].get("content").is_none());
    let unknown = client.fails("get-messages", "(:fields (:contents))");
    assert!(unknown.message.contains("must name members of the entries, got \"contents\""));
    assert!(unknown.message.contains("id, role, content"), "{}", unknown.message);
}

#[test]
fn a_list_is_whole_unless_a_page_is_asked_for_whatever_was_said_before() {
    let home = Home::new();
    let mut client = home.ephemeral(&["--max-items", "300"]);
    for number in 0..300 {
        client.add("*shared*", &format!("{number} {}", "x".repeat(1000)));
    }
    client.ok("initialize", "(:name \"probe\")");
    let (bytes, whole) = measured(&mut client, "get-context", "nil");
    assert!(bytes > PAGE && whole.as_array().unwrap().len() == 300);
    let (bytes, page) = measured(&mut client, "get-context", "(:max-bytes 5000)");
    assert!(bytes <= 5000 && page["truncated"] == true, "{bytes}");
    assert_eq!(page["items"].as_array().unwrap().last().unwrap()["id"], "ctx-300");
    for wrong in ["10", "-1", "999999999999"] {
        let error = client.fails("get-context", &format!("(:max-bytes {wrong})"));
        assert_eq!(error.param(), "max-bytes");
    }
}

#[test]
fn only_the_last_lists_are_kept() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.add("*shared*", "one");
    client.add("*shared*", "two");
    let first =
        client.ok("get-context", &in_pages("(:limit 1)"))["next"].as_str().unwrap().to_owned();
    for _ in 0..8 {
        client.ok("get-context", &in_pages("(:limit 1)"));
    }
    let gone = client.fails("get-context", &format!("(:cursor {first:?})"));
    assert_eq!(gone.kind(), "no-such-cursor");
}

#[test]
fn a_page_of_nothing_is_the_last() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("add-item", "(:content \"x\")");
    let page = client.ok("list-items", &in_pages("(:limit 0)"));
    assert!(is_nil(&page["items"]) && is_nil(&page["next"]), "{page}");
    assert_eq!((page["truncated"] == true, &page["left"]), (true, &1.into()), "{page}");
}
