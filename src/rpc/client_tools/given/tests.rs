//! Tests of what clients may say about their tools.

use super::*;

fn given(more: &str) -> ClientTool {
    let text = format!(r#"{{"name":"look","description":"Looks.","effect":"reads"{more}}}"#);
    // Parsed as a value, in which later members replace earlier ones.
    let whole: Json = serde_json::from_str(&text).unwrap();
    serde_json::from_value(whole).unwrap()
}

fn refusal(more: &str) -> String {
    checked(vec![given(more)]).map(|_| ()).unwrap_err().message
}

#[test]
fn what_a_tool_is_called_and_takes_is_checked() {
    let name = "tools[0].name must have 1 to 64 ASCII letters, digits and underscores";
    for wrong in ["", "a b", "a-b", "é", "a\u{200b}", &"x".repeat(65)] {
        assert_eq!(
            refusal(&format!(r#","name":{wrong:?}"#).replace("\\u{200b}", "\u{200b}")),
            name
        );
    }
    assert_eq!(
        refusal(r#","name":"add_file""#),
        "tools[0].name must not be the name of one of the server's tools, got \"add_file\""
    );
    for wrong in ["[]", "7", r#"{"type":"array"}"#, r#"{"type":"object","properties":[]}"#] {
        let refused = refusal(&format!(r#","schema":{wrong:?}"#));
        assert_eq!(refused, "tools[0].schema must be a JSON Schema whose type is object");
    }
    let deep = "[".repeat(5000);
    assert!(refusal(&format!(r#","schema":{deep:?}"#)).contains("must be JSON: recursion limit"));
    assert!(refusal(r#","schema":"{""#).starts_with("tools[0].schema must be JSON"));
    for wrong in [" ", &"x".repeat(MAX_DESCRIPTION_BYTES + 1)] {
        let refused = refusal(&format!(r#","description":{wrong:?}"#));
        assert!(refused.starts_with("tools[0].description must say what"), "{refused}");
    }
    for wrong in [0, 3601] {
        let refused = refusal(&format!(r#","seconds":{wrong}"#));
        assert_eq!(refused, format!("tools[0].seconds must be from 1 to 3600, got {wrong}"));
    }
    let twice = checked(vec![given(""), given("")]).map(|_| ()).unwrap_err();
    assert_eq!(twice.message, "tools[1].name must be unique; \"look\" is used twice");
    let many = (0..129).map(|at| given(&format!(r#","name":"t{at}""#))).collect();
    let many = checked(many).map(|_| ()).unwrap_err();
    assert_eq!(many.message, "tools must have at most 128 entries, got 129");
    let places = vec!["x"; 65];
    let refused = refusal(&format!(r#","projects":{places:?}"#));
    assert_eq!(refused, "tools[0].projects must have at most 64 entries");
}
