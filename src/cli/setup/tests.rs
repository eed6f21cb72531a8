//! Tests of editing files that users wrote, and of removing entries from files that others changed.

use super::value::same_hook;
use super::{json, toml};

const WANTED: &str = r#"{"servers": {"contexture": {"command": "/c/contexture", "args": ["mcp"]}}, "hooks": {
    "Start": [{"hooks": [{"type": "command", "command": "/b/contexture hook x Start"}]}]}}"#;

/// Checks that adding the entries turns `before` into `expected`, that nothing is missing then, and
/// that removing them restores `before`.
#[track_caller]
fn check(before: &str, expected: &str) {
    check_with(before, expected, before);
}

/// Like [`check`], for a removal that leaves `left`: if others wrote the file, a trailing comma or
/// the end of a line stays.
#[track_caller]
fn check_with(before: &str, expected: &str, left: &str) {
    let edit = json::add(before, WANTED).unwrap();
    let after = edit.apply(before).unwrap();
    assert_eq!(after, expected);
    assert!(json::add(&after, WANTED).unwrap().is_empty(), "it is complete");
    assert_eq!(edit.inverse(before).apply(&after).unwrap(), before);
    assert_eq!(removed(&after), left);
}

#[track_caller]
fn removed(text: &str) -> String {
    json::remove(text, WANTED).unwrap().apply(text).unwrap()
}

const SERVERS: &str = r#""servers": {
    "contexture": {
      "command": "/c/contexture",
      "args": [
        "mcp"
      ]
    }
  }"#;
const GROUP: &str = r#"{
        "hooks": [
          {
            "type": "command",
            "command": "/b/contexture hook x Start"
          }
        ]
      }"#;

fn hooks() -> String {
    format!("\"hooks\": {{\n    \"Start\": [\n      {GROUP}\n    ]\n  }}")
}

#[test]
fn entries_are_added_and_taken_out() {
    let both = format!("{SERVERS},\n  {}", hooks());
    check("{}", &format!("{{\n  {both}\n}}"));
    check("{}\n", &format!("{{\n  {both}\n}}\n"));
    check("{\n  \"a\": 1\n}\n", &format!("{{\n  \"a\": 1,\n  {both}\n}}\n"));
    check_with("{\"a\": 1}", &format!("{{\"a\": 1,\n  {both}\n}}"), "{\"a\": 1\n}");
    let empty = "{\n  \"servers\": {}\n}";
    check_with(empty, &format!("{{\n  {both}\n}}"), "{}");
}

#[test]
fn comments_order_and_line_ends_stay() {
    let both = format!("{SERVERS},\n  {}", hooks());
    check_with(
        "// k\n{\n  \"a\": 1, // one\n}\n",
        &format!("// k\n{{\n  \"a\": 1, // one\n  {both}\n}}\n"),
        "// k\n{\n  \"a\": 1 // one\n}\n",
    );
    check(
        "{\n  \"a\": 1 // one, two\n  /* end */\n}",
        &format!("{{\n  \"a\": 1, // one, two\n  /* end */\n  {both}\n}}"),
    );
    let tabs = |text: String| text.replace("  ", "\t").replace('\n', "\r\n");
    check("{\r\n\t\"a\": [1,2]\r\n}\r\n", &tabs(format!("{{\n  \"a\": [1,2],\n  {both}\n}}\n")));
    let group = "{ \"hooks\": [{ \"command\": \"other hook x Start\" }] }";
    let before = format!(
        "{{\n  {SERVERS},\n  \"hooks\": {{\n    \"Start\": [\n      {group}\n    ]\n  }}\n}}"
    );
    let expected = before.replace(group, &format!("{group},\n      {GROUP}"));
    let edit = json::add(&before, WANTED).unwrap();
    assert_eq!(edit.apply(&before).unwrap(), expected);
    assert_eq!(removed(&expected), before.replace(&format!("{SERVERS},\n  "), ""));
}

#[test]
fn what_differs_is_corrected_and_what_users_added_stays() {
    let before = r#"{"servers": {"contexture": {"command": "/old/contexture", "args": ["mcp"], "env": {"K": "v"}}},
        "hooks": {"Start": [{"matcher": "", "hooks": [{"command": "mine"},
            {"command": "'/old place/contexture' hook x Start", "timeout": 1}]}], "End": []}}"#;
    let edit = json::add(before, WANTED).unwrap();
    let after = edit.apply(before).unwrap();
    let expected = before.replace("\"/old/contexture\"", "\"/c/contexture\"");
    let expected = expected.replace("'/old place/contexture' hook", "/b/contexture hook");
    assert_eq!(after, expected);
    assert!(!edit.only_adds());
    let shown = edit.shown(before, |_| false);
    assert!(
        shown.contains("+\"/c/contexture\"") && !shown.contains("old") && !shown.contains('K'),
        "{shown}"
    );
    let left = r#"{
        "hooks": {"Start": [{"matcher": "", "hooks": [{"command": "mine"}]}], "End": []}}"#;
    assert_eq!(removed(&after), left);
    assert_eq!(removed(left), left);
}

#[test]
fn hooks_of_other_programs_are_not_ours() {
    for (one, other, expected) in [
        ("/a/contexture hook x E", "/b/contexture hook x E", true),
        ("'/a b/contexture' --state '/s s' hook x E", "/b/contexture hook x E", true),
        ("/a/contexture hook x E", "/b/contexture hook x F", false),
        ("/a/borg hook x E", "/b/contexture hook x E", false),
        ("/contexture/borg hook x E", "/b/contexture hook x E", false),
        ("/a/ctx hook x E", "/b/ctx hook x E", true),
    ] {
        assert_eq!(same_hook(one, other), expected, "{one} {other}");
    }
}

#[test]
fn an_entry_of_another_program_stays_and_gets_nothing_of_ours() {
    let words = ["/b/contexture", "mcp"].map(str::to_owned);
    for entry in [
        r#"{"command": "uvx", "args": ["other", "mcp"], "env": {"K": "v"}}"#,
        r#"{"command": "/b/contexture", "args": ["serve"]}"#,
        r#"{"type": "http", "url": "http://localhost/mcp", "headers": {"Authorization": "v"}}"#,
        "{}",
    ] {
        let text = format!("{{\"servers\":\n{{\"contexture\": {entry}}}}}");
        let wrong = json::add(&text, WANTED).unwrap_err();
        assert!(wrong.contains("line 2: the entry contexture starts another program"), "{wrong}");
        assert_eq!(removed(&text), text);
    }
    for entry in ["command = \"uvx\"\nargs = [\"mcp\"]", "url = \"http://localhost/mcp\"", ""] {
        let text = format!("[mcp_servers.contexture]\n{entry}\nenv = {{ K = \"v\" }}\n");
        let wrong = toml::add(&text, &words).unwrap_err();
        assert!(wrong.contains("starts another program"), "{wrong}");
        assert!(toml::remove(&text, &words).unwrap().is_empty());
    }
}

#[test]
fn what_is_no_json_or_has_another_kind_of_value_is_refused() {
    for text in
        ["{", "{\"a\": }", "{a: 1}", "{\"a\": 'x'}", "{\"a\": 1 \"b\": 2}", "[]", "7", "{} {}"]
    {
        assert!(json::add(text, WANTED).is_err(), "{text}");
    }
    for text in ["{\n\"servers\": []}", "{\n\"hooks\": 7}", "{\n\"hooks\": {\"Start\": {}}}"] {
        let wrong = json::add(text, WANTED).unwrap_err();
        assert!(wrong.contains("line 2"), "{wrong}");
    }
}

#[test]
fn tables_are_added_and_taken_out() {
    let words = ["/b/contexture", "mcp"].map(str::to_owned);
    let block = "[mcp_servers.contexture]\ncommand = \"/b/contexture\"\nargs = [\"mcp\"]\n";
    for before in [
        "",
        "# mine\nmodel = \"x\" # why\n\n",
        "a = 1",
        "[mcp_servers.other]\ncommand = \"y\"\nenv = { K = \"v\" }\n# end\n",
        "[mcp_servers]\n",
        "mcp_servers.a.command = \"x\"\n",
    ] {
        let edit = toml::add(before, &words).unwrap();
        let after = edit.apply(before).unwrap();
        assert!(after.starts_with(before) && after.ends_with(block), "{after}");
        assert!(edit.only_adds());
        assert!(toml::add(&after, &words).unwrap().is_empty());
        let left = toml::remove(&after, &words).unwrap().apply(&after).unwrap();
        assert_eq!(left.trim_end(), before.trim_end());
        assert_eq!(toml::server(&after).unwrap().0, words);
    }
    assert_eq!(toml::server("a = 1").unwrap(), toml::ServerEntry::default());
}

#[test]
fn a_table_is_corrected_and_keeps_what_users_added() {
    let words = ["/b/contexture", "mcp"].map(str::to_owned);
    let before = "[mcp_servers.contexture]\ncommand = \"/old/contexture\" # here\nargs = [\"mcp\"]\nenv = { K = \"v\" }\n\
        [mcp_servers.contexture.tools.read]\napproval_mode = \"approve\"\n[z]\nk = 1\n";
    let after = toml::add(before, &words).unwrap().apply(before).unwrap();
    assert!(after.contains("/b/contexture") && after.contains("env = { K = \"v\" }"), "{after}");
    assert_eq!(toml::remove(&after, &words).unwrap().apply(&after).unwrap(), "[z]\nk = 1\n");
    for text in ["a = ", "mcp_servers = { a = {} }\n", "mcp_servers = 7\n"] {
        assert!(toml::add(text, &words).is_err(), "{text}");
    }
    let wrong = toml::add("a = 1\nkey = secret\n", &words).unwrap_err();
    assert!(wrong.contains("line 2") && !wrong.contains("secret"), "{wrong}");
}

#[test]
fn of_several_values_with_one_name_the_one_that_counts_is_edited() {
    let before = r#"{"servers": {"a": {"command":"1"}}, "x":1, "servers": {"b": {"command":"2"}}}"#;
    let after = json::add(before, WANTED).unwrap().apply(before).unwrap();
    let read: serde_json::Value = serde_json::from_str(&after).unwrap();
    assert!(read["servers"]["contexture"].is_object(), "{after}");
    assert_eq!(read["servers"]["b"]["command"], "2");
    assert!(json::add(&after, WANTED).unwrap().is_empty(), "it is complete");
}
