//! Each dialect says everything in its own words: errors, ids, names, and what is left out.

use std::os::unix::fs::PermissionsExt;

use crate::support::*;

fn json(home: &Home) -> Client {
    let mut client = home.ephemeral(&[]);
    client.dialect = Dialect::Json;
    client
}

/// Sends a line to a new server with a small limit, and returns its answer.
fn first(line: &str) -> String {
    let mut client = Home::new().ephemeral(&["--max-message-bytes", "5000"]);
    client.write(format!("{line}\n").as_bytes());
    client.line().unwrap()
}

#[test]
fn a_first_line_that_is_too_long_is_answered_in_its_dialect_with_its_id() {
    let long = "x".repeat(9000);
    let answer = first(&format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","x":"{long}"}}"#));
    assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"#), "{answer}");
    let answer = first(&format!(r#"{{"method": "ping", "params": {{"x": "{long}"}}, "id": "a"}}"#));
    assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":"a","error":"#), "{answer}");
    let answer = first(&format!(r#"{{"method":"ping","params":{{"x":"{long}","id":9}}}}"#));
    assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":"#), "{answer}");
    let answer = first(&format!("(:id 7 :method ping :params (:x {long:?}))"));
    assert!(answer.starts_with("(:id 7 :error (:code -32600 "), "{answer}");
    let answer = first(&format!("(:method ping :params (:x {long:?}) :id 7)"));
    assert!(answer.starts_with("(:id 7 :error (:code -32600 "), "{answer}");
}

#[test]
fn a_line_that_cannot_be_read_is_answered_under_its_id() {
    let answer = first(r#"{"id":7,"method":"pi"#);
    assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32700,"#), "{answer}");
    let answer = first("(:id \"a\" :method ping :params (:content \"one");
    assert!(answer.starts_with("(:id \"a\" :error (:code -32700 "), "{answer}");
}

#[test]
fn a_message_that_cannot_be_taken_is_refused_in_the_words_of_its_dialect() {
    let expect = |line: &str, error: &str| {
        let answer = first(line);
        assert!(answer.contains(error), "{answer}");
    };
    expect(r#"{"id":true,"method":"ping"}"#, "or a string, got true");
    expect(r#"{"id":1,"method":"ping","params":true}"#, "params must be an object, got true");
    expect("(:id t :method ping)", "or a string, got t");
    expect("(:id 1 :method ping :params t)", "params must be a property list or map, got t");
}

#[test]
fn names_in_errors_are_spelled_as_the_dialect_spells_them() {
    let home = Home::new();
    let (mut lisp, mut json) = (home.ephemeral(&[]), json(&home));
    let mut fail = |method: &str, params: &str, native: &str, other: &str| {
        assert_eq!(lisp.fails(method, params).message, native);
        assert_eq!(json.fails(method, params).message, other);
    };
    fail(
        "context-to-string",
        "(:max-tokens -1)",
        "max-tokens must be 0 or more, got -1",
        "max_tokens must be 0 or more, got -1",
    );
    fail(
        "add-message",
        "(:role :user)",
        "content is required unless tool-calls or messages is given",
        "content is required unless tool_calls or messages is given",
    );
    fail(
        "add-context",
        "(:content \"x\" :metadata (:start-line 0))",
        "metadata.start-line must be an integer of 1 or more",
        "metadata.start_line must be an integer of 1 or more",
    );
    fail(
        "add-context",
        "(:content \"x\" :pinned \"max-tokens\")",
        "pinned must be t or nil, got \"max-tokens\"",
        "pinned must be true or false, got \"max-tokens\"",
    );
    let error = json.fails("context-to-string", "(:max-tokens -1)");
    assert_eq!(error.data["param"], "max_tokens");
    let error = json.fails("contxt-to-string", "nil");
    assert_eq!(error.data["nearest"][0], "context_to_string");
    assert!(error.message.contains("the nearest are context_to_string, "), "{}", error.message);
    let error = json.fails("configure-session", "(:checkpoint-interval 0)");
    assert!(
        error.message.starts_with("checkpoint_interval must be a whole number"),
        "{}",
        error.message
    );
    assert_eq!(error.data["param"], "checkpoint_interval");
}

#[test]
fn null_leaves_a_parameter_out_in_json_whatever_it_is() {
    let home = Home::new();
    let mut client = json(&home);
    let ask = |client: &mut Client, method: &str, params: &str| {
        client.write(
            format!("{{\"id\":1,\"method\":\"{method}\",\"params\":{params}}}\n").as_bytes(),
        );
        outcome(client.message())
    };
    let mut ok = |method: &str, params: &str| ask(&mut client, method, params).unwrap();
    ok("open_session", r#"{"name":"a","manage":true,"current":null}"#);
    assert_eq!(ok("list_sessions", r#"{"current":true}"#)[0]["session"], "a");
    let settings = ok("configure_session", r#"{"manage":null,"tools":null,"versioning":null}"#);
    assert_eq!((&settings["manage"], &settings["versioning"]), (&true.into(), &true.into()));
    assert_eq!(ok("configure_session", r#"{"manage":false}"#)["manage"], false);
    ok("configure_session", r#"{"tools":true}"#);
    assert!(ok("configure_session", r#"{"tools":null}"#)["tools"].is_array());
    let add = r#"{"content":"x","live":true,"metadata":{"filename":"/a"},"type":null}"#;
    let item = ok("add_context", add);
    let id = item["id"].as_str().unwrap();
    for (pinned, expected) in
        [("true", Json::from(true)), ("null", true.into()), ("false", false.into())]
    {
        let update = format!(r#"{{"id":"{id}","live":null,"pinned":{pinned}}}"#);
        let item = &ok("update_items", &update)["item"];
        assert_eq!((&item["live"], &item["pinned"]), (&true.into(), &expected), "{pinned}");
    }
    let missing = ask(&mut client, "add_context", r#"{"content":null}"#).unwrap_err();
    assert_eq!(missing.message, "content is required");
    let lists = ask(&mut client, "prune_context", r#"{"messages":null}"#).unwrap_err();
    assert!(lists.message.contains("must not be null"), "{}", lists.message);
}

#[test]
fn the_kind_of_a_provider_is_a_keyword() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let script = home.write("script.toml", "[[answer]]\ntext = \"x\"\n");
    let params = format!("(:name \"p\" :kind scripted :model \"m\" :script {script:?})");
    client.ok("configure-provider", &params);
    client.write(b"(:id 99 :method list-providers)\n");
    let listed = client.line().unwrap();
    assert!(listed.contains(":kind :scripted "), "{listed}");
}

#[test]
fn a_secret_that_nobody_asked_for_is_ignored() {
    let home = Home::new();
    let secret = home.write("secret", "deadbeef-s3cret\n");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = home.listening(&["--ephemeral", "--secret-file", &secret]);
    let ping = "deadbeef-s3cret\n{\"id\":1,\"method\":\"ping\"}\n";
    let pong = r#"{"jsonrpc":"2.0","id":1,"result":"pong"}"#;
    for mut client in [server.unix(Dialect::Json), server.tcp(Dialect::Json)] {
        client.write(ping.as_bytes());
        assert_eq!(client.line().unwrap(), pong);
    }
    let mut stdio = home.ephemeral_program(&["--secret-file", &secret]);
    stdio.write(ping.as_bytes());
    assert_eq!(stdio.line().unwrap(), pong);
}
