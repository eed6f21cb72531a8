//! Tests of how tool calls are parsed and described.

use super::*;

#[track_caller]
fn check(name: &str, arguments: &str, expected: Result<&str, &str>) {
    let asked = find(name).unwrap().called(arguments);
    let found = asked.map(|call| call.phrase());
    assert_eq!(found.as_deref().map_err(String::as_str), expected);
}

#[test]
fn calls_are_told_in_a_line() {
    check("list_context", "", Ok("list the context"));
    check("add_file", r#"{"path": "a.rs", "start_line": 3}"#, Ok("add the file a.rs from line 3"));
    let lines = r#"{"path": "a.rs", "start_line": 3, "end_line": 7}"#;
    check("add_file", lines, Ok("add the file a.rs, lines 3 to 7"));
    check("add_text", r#"{"content": "one\ntwo"}"#, Ok("add a text one…"));
    check("drop_context", r#"{"ids": ["ctx-1"]}"#, Ok("drop the items ctx-1"));
}

#[test]
fn what_cannot_be_understood_is_said() {
    check("read", "{}", Err("read needs the argument id"));
    check("read", r#"{"id": null}"#, Err("read needs the argument id"));
    check(
        "add_text",
        r#"{"content": "x", "manager": "y"}"#,
        Err("add_text has no argument manager"),
    );
    check("add_text", "[]", Err("the arguments must be a JSON object"));
}

#[test]
fn every_tool_has_a_sound_schema() {
    for tool in ALL {
        let schema = tool.offered().schema;
        assert_eq!(schema["properties"].as_object().unwrap().len(), tool.arguments.len());
        let required = schema["required"].as_array().unwrap();
        assert!(
            required.iter().all(|name| schema["properties"].get(name.as_str().unwrap()).is_some())
        );
    }
}

#[test]
fn no_tool_trusts_a_project_or_reads_a_template() {
    for tool in ALL {
        let words = format!("{} {}", tool.name, tool.phrase);
        assert!(!words.contains("trust") && !words.contains("template"), "{words}");
    }
}

#[test]
fn every_tool_has_a_request() {
    for tool in ALL {
        let value = |argument: &Argument| match argument.kind {
            "array" => json!(["ctx-1"]),
            "integer" => json!(1),
            _ => json!("ctx-1"),
        };
        let given = tool.arguments.iter().map(|it| (it.name.to_owned(), value(it)));
        let given: serde_json::Map<String, serde_json::Value> = given.collect();
        assert_eq!(tool.called(&json!(given).to_string()).map(drop), Ok(()), "{}", tool.name);
    }
}
