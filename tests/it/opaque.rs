//! What a client keeps in its own words comes back as it was: metadata, and arguments of tools.

use crate::support::*;

/// Metadata whose names of the client's own differ only in `-` and `_`.
const METADATA: &str = r#"{"start_line":1,"x-y":1,"x_y":2,"n":1.50,"sub":{"a-b":[],"c_d":false}}"#;
const ARGUMENTS: &str = r#"{"a-b":1,"a_b":2,"n":1e+2}"#;

/// Sends a line to a server of its own over the stored state, and returns its answer.
fn ask(home: &Home, line: &str) -> String {
    let mut client = home.stdio(&[]);
    client.write(format!("{line}\n").as_bytes());
    let answer = client.line().unwrap();
    client.end();
    answer
}

fn call(method: &str, params: &str) -> String {
    format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#)
}

#[test]
fn metadata_comes_back_to_the_byte_of_its_json_after_a_restart_too() {
    let home = Home::new();
    let given = format!(r#""metadata":{METADATA}"#);
    let added = ask(&home, &call("add_context", &format!(r#"{{"content":"x",{given}}}"#)));
    assert!(added.contains(&given), "{added}");
    let kept = ask(&home, &call("get_context", "{}"));
    assert!(kept.contains(&given), "{kept}");
    let native = ask(&home, "(:id 1 :method get-context)");
    let expected = "(:start-line 1 :x-y 1 :x_y 2 :n 1.5 :sub (:a-b nil :c-d nil))";
    assert!(native.contains(&format!(":metadata {expected}")), "{native}");
}

#[test]
fn names_with_a_meaning_are_understood_in_either_spelling() {
    let home = Home::new();
    let params = r#"{"content":"x","metadata":{"start-line":3,"end-line":4}}"#;
    let added = ask(&home, &call("add_context", params));
    assert!(added.contains(r#""metadata":{"start_line":3,"end_line":4}"#), "{added}");
    let params = r#"{"content":"x","metadata":{"start-line":0}}"#;
    let refused = ask(&home, &call("add_context", params));
    assert!(refused.contains("metadata.start_line must be an integer of 1 or more"), "{refused}");
}

#[test]
fn arguments_of_a_tool_come_back_to_the_byte_of_their_json() {
    let home = Home::new();
    ask(&home, &call("open_session", r#"{"name":"a"}"#));
    let calls = format!(r#"[{{"id":"c1","name":"t","arguments":{ARGUMENTS}}}]"#);
    let message =
        format!(r#"{{"session":"a","role":"assistant","content":"","tool_calls":{calls}}}"#);
    ask(&home, &call("add_message", &message));
    let kept = ask(&home, &call("get_messages", r#"{"session":"a"}"#));
    let text = serde_json::to_string(ARGUMENTS).unwrap();
    assert!(kept.contains(&format!(r#""arguments":{text}"#)), "{kept}");
}
