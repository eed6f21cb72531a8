//! Lines and messages: what is read, what is refused, and that the next one is understood.

use crate::support::*;

fn server() -> Client {
    Home::new().ephemeral(&["--max-message-bytes", "100000"])
}

fn json_server() -> Client {
    let mut client = server();
    client.dialect = Dialect::Json;
    client
}

/// Sends raw bytes and gives the error that answers them; then a good call must work.
#[track_caller]
fn refused(client: &mut Client, bytes: &[u8]) -> Failure {
    client.write(bytes);
    client.write(b"\n");
    let message = client.message();
    let error = outcome(message).unwrap_err();
    assert_eq!(client.ok("ping", "nil"), "pong");
    error
}

#[test]
fn comments_and_empty_lines_are_ignored() {
    let mut client = server();
    client.write(b"; hello\n\n  \n\t; again (:id 9 :method ping)\n");
    client.write(b"(:id 1 :method ping)\n; (:id 2\n");
    assert_eq!(client.line().unwrap(), "(:id 1 :result :pong)");
    client.close();
    assert_eq!(client.line(), None);
}

#[test]
fn lines_may_end_in_a_carriage_return() {
    let mut client = server();
    client.write(b"\r\n(:id 1 :method ping)\r\n; x\r\n(:id 2 :method ping)\r\n");
    assert_eq!(client.line().unwrap(), "(:id 1 :result :pong)");
    assert_eq!(client.line().unwrap(), "(:id 2 :result :pong)");
    let mut client = json_server();
    client.write(b"{\"id\":1,\"method\":\"ping\"}\r\n");
    assert_eq!(client.line().unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":"pong"}"#);
}

#[test]
fn methods_may_be_symbols_keywords_or_strings() {
    let mut client = server();
    for method in ["ping", ":ping", "\"ping\""] {
        client.write(format!("(:jsonrpc \"2.0\" :id 1 :method {method} :params nil)\n").as_bytes());
        assert_eq!(client.line().unwrap(), "(:id 1 :result :pong)");
    }
    client.write(b"(:method :initialize :id 2 :extra 7)\n");
    assert_eq!(client.message()["id"], 2);
}

#[test]
fn ids_are_integers_or_strings_and_echoed() {
    let mut client = server();
    for id in ["0", "-7", "9223372036854775807", "\"a b\"", "\"\"", "\"λ\\n\\\"\""] {
        client.write(format!("(:id {id} :method ping)\n").as_bytes());
        assert_eq!(client.line().unwrap(), format!("(:id {id} :result :pong)"));
    }
    for id in ["1.5", "(1)", "[1]", ":x", "99999999999999999999"] {
        client.write(format!("(:id {id} :method ping)\n").as_bytes());
        let error = outcome(client.message()).unwrap_err();
        assert_eq!(error.code, -32600, "{id}");
    }
}

#[test]
fn notifications_get_no_reply_and_take_effect() {
    let mut client = server();
    client.write(b"(:method add-context :params (:content \"quiet\"))\n");
    client.write(b"(:method no-such-method)\n(:method add-context :params (:content 3))\n");
    client.write(b"(:method cancel :params (:id 77))\n");
    client.write(b"(:id 1 :method ping)\n");
    assert_eq!(client.line().unwrap(), "(:id 1 :result :pong)");
    assert_eq!(client.contents("*shared*"), ["quiet"]);
}

#[test]
fn replies_that_nobody_asked_for_are_ignored() {
    let mut client = server();
    client.write(
        b"(:id 5 :result t)\n(:id 6 :error (:code 1 :message \"x\"))\n(:id 7 :method ping)\n",
    );
    assert_eq!(client.line().unwrap(), "(:id 7 :result :pong)");
}

#[test]
fn a_line_that_ends_inside_a_string_or_a_list_is_told_to_escape_newlines() {
    let mut client = server();
    for line in ["(:id 1 :method ping :params (:content \"one", "(:id 1 :method (ping"] {
        let error = refused(&mut client, line.as_bytes());
        assert_eq!(error.code, -32700, "{error:?}");
        assert!(error.message.contains("print-escape-newlines"), "{error:?}");
        assert!(error.message.contains("\\n"), "{error:?}");
        assert!(error.data["column"].as_u64().unwrap() > 1);
    }
    let error = refused(&mut json_server(), b"{\"id\":1,\"method\":\"pi");
    assert_eq!(error.code, -32700);
    assert!(error.message.contains("\\n"), "{error:?}");
}

#[test]
fn syntax_errors_name_the_column() {
    for (line, column) in [("(:id 1 :method ping)) x", 21), ("(:id 1 . . 2)", 10)] {
        let error = refused(&mut server(), line.as_bytes());
        assert_eq!(error.code, -32700, "{error:?}");
        assert_eq!(error.data["column"], column, "{error:?}");
    }
    let error = refused(&mut json_server(), b"{\"id\":1,,}");
    assert_eq!((error.code, &error.data["column"]), (-32700, &9.into()), "{error:?}");
}

#[test]
fn bad_utf_8_is_an_error_and_the_next_message_is_read() {
    let error = refused(&mut server(), b"(:id 1 :method ping :params \"\xff\")");
    assert_eq!((error.code, &error.data["column"]), (-32700, &30.into()));
    let error = refused(&mut server(), b"(:id 1 :method ping :params \"\xed\xa0\x80\")");
    assert_eq!(error.code, -32700);
    let error = refused(&mut json_server(), b"{\"id\":1,\"method\":\"\xc3\"}");
    assert_eq!(error.code, -32700);
}

#[test]
fn nesting_512_deep_is_read_and_513_is_an_error() {
    for (dialect, open, close) in [(Dialect::Native, "(", ")"), (Dialect::Json, "[", "]")] {
        let mut client = server();
        client.dialect = dialect;
        // The message, its parameters and the metadata are three levels.
        let message = |levels: usize| {
            let deep = format!("{}1{}", open.repeat(levels - 3), close.repeat(levels - 3));
            match dialect {
                Dialect::Native => format!(
                    "(:id 1 :method add-context :params (:content \"x\" :metadata (:deep {deep})))\n"
                ),
                _ => format!(
                    "{{\"id\":1,\"method\":\"add-context\",\"params\":{{\"content\":\"x\",\"metadata\":{{\"deep\":{deep}}}}}}}\n"
                ),
            }
        };
        client.write(message(512).as_bytes());
        outcome(client.message()).unwrap();
        let error = refused(&mut client, message(513).trim_end().as_bytes());
        assert_eq!(error.code, -32700);
        assert!(error.message.contains("512"), "{error:?}");
        let error = refused(&mut client, message(40_000).trim_end().as_bytes());
        assert!(error.message.contains("512"), "{error:?}");
        assert_eq!(client.ok("list-items", "(:count-only t)")["count"], 1);
    }
}

#[test]
fn deep_metadata_survives_a_restart() {
    let home = Home::new();
    let deep = format!("{}1{}", "(".repeat(509), ")".repeat(509));
    let mut client = home.stdio(&[]);
    client.ok("add-context", &format!("(:content \"x\" :metadata (:deep {deep}))"));
    client.end();
    let mut client = home.stdio(&[]);
    client.send("get-context", "nil");
    let line = client.line().unwrap();
    assert!(line.contains(&deep), "{}", &line[..200]);
}

#[test]
fn messages_too_large_are_refused_and_the_next_is_read() {
    let mut client = server();
    let large =
        format!("(:id 1 :method add-context :params (:content \"{}\"))", "x".repeat(100_000));
    let error = refused(&mut client, large.as_bytes());
    assert_eq!(error.code, -32600);
    assert!(error.message.contains("100000") && error.message.contains(&large.len().to_string()));
    assert!(error.message.contains("max-message-bytes"), "{error:?}");
    let huge = "y".repeat(5_000_000);
    assert_eq!(refused(&mut client, format!("({huge})").as_bytes()).code, -32600);
    let fitting = "z".repeat(99_000);
    let id = client.add("*shared*", &fitting);
    assert_eq!(id, "ctx-1");
    assert_eq!(client.contents("*shared*"), [fitting]);
}

#[test]
fn the_limit_is_the_longest_message_that_is_read() {
    for end in ["\n", "\r\n"] {
        let mut client = server();
        let message = |bytes: usize| {
            let call = "(:id 1 :method add-context :params (:content \"\" :brief t))";
            let content = format!("\"{}\"", "x".repeat(bytes - call.len()));
            call.replace("\"\"", &content)
        };
        client.write(format!("{}{end}", message(100_000)).as_bytes());
        outcome(client.message()).unwrap();
        client.write(format!("{}{end}", message(100_001)).as_bytes());
        assert_eq!(outcome(client.message()).unwrap_err().code, -32600);
    }
}

#[test]
fn answers_too_large_are_errors_that_say_how_to_ask_for_less() {
    let mut client = server();
    for _ in 0..3 {
        client.add("*shared*", &"x".repeat(50_000));
    }
    let error = client.fails("get-context", "nil");
    assert_eq!(error.code, -32600);
    assert!(error.message.contains("ask for less"), "{error:?}");
    assert_eq!(client.ok("get-context", "(:limit 1)").as_array().unwrap().len(), 1);
}

#[test]
fn what_is_no_request_is_an_invalid_request() {
    for line in
        ["(1 2 3)", "(:id 1)", "(:id 1 :method 7)", "(:id 1 :method ping :params 7)", "(:id)"]
    {
        let error = refused(&mut server(), line.as_bytes());
        assert!([-32600, -32602].contains(&error.code), "{line} {error:?}");
    }
    for line in [
        "{}",
        "{\"id\":1}",
        "{\"id\":1,\"method\":7}",
        "{\"id\":1,\"method\":\"ping\",\"params\":[1]}",
    ] {
        let error = refused(&mut json_server(), line.as_bytes());
        assert!([-32600, -32602].contains(&error.code), "{line} {error:?}");
    }
}

#[test]
fn the_first_byte_decides_the_dialect() {
    let mut client = server();
    client.write(b"hello\n");
    let error = outcome(client.message()).unwrap_err();
    assert_eq!(error.code, -32700);
    client.write(b"\n{\"id\":1,\"method\":\"ping\"}\n");
    assert_eq!(client.line().unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":"pong"}"#);
    client.write(b"(:id 2 :method ping)\n");
    client.dialect = Dialect::Json;
    assert_eq!(outcome(client.message()).unwrap_err().code, -32700);
}

#[test]
fn names_are_one_name_in_both_dialects() {
    let mut client = json_server();
    client.write(
        br#"{"id":1,"method":"add_context","params":{"content":"x","request_key":"k","metadata":{"start_line":1,"myKey":2}}}"#,
    );
    client.write(b"\n");
    let added = client.message();
    assert_eq!(added["result"]["metadata"], serde_json::json!({"start_line": 1, "myKey": 2}));
    client.write(b"{\"id\":2,\"method\":\"get-context\",\"params\":{\"types\":[\"repl_history\",\"code\"]}}\n");
    assert_eq!(client.message()["result"][0]["id"], "ctx-1");
}

#[test]
fn the_last_line_needs_no_newline() {
    let mut client = server();
    client.write(b"(:id 1 :method ping)");
    client.close();
    assert_eq!(client.line().unwrap(), "(:id 1 :result :pong)");
    assert_eq!(client.line(), None);
}

#[test]
fn answers_have_one_line_each_whatever_is_in_them() {
    let mut client = server();
    client.add("*shared*", "a\nb\r\n\u{2028}\0");
    assert_eq!(client.contents("*shared*"), ["a\nb\r\n\u{2028}\0"]);
    let raw = "(:id 9 :method add-context :params (:content \"raw \\377\"))\n";
    client.write(raw.as_bytes());
    let message = client.message();
    assert_eq!(message["id"], 9);
}

#[test]
fn emacs_data_that_is_no_string_is_refused_by_name() {
    let mut client = server();
    for content in
        ["#s(hash-table data (a 1))", "#&5\"\\37\"", "1.0e+INF", "(a . b)", "#<buffer x>"]
    {
        client.write(
            format!("(:id 3 :method add-context :params (:content {content}))\n").as_bytes(),
        );
        let error = outcome(client.message()).unwrap_err();
        assert!([-32602, -32700].contains(&error.code), "{content}: {error:?}");
    }
    client.write(b"(:id 4 :method add-context :params (:content #(\"prop\" 0 1 (face bold))))\n");
    let message = client.message();
    assert_eq!(message["id"], 4);
    if let Ok(item) = outcome(message) {
        assert_eq!(item["content"], "prop");
    }
}

#[test]
fn cancelling_what_does_not_run_is_no_error() {
    let mut client = server();
    assert!(is_nil(&client.ok("cancel", "(:id 12345)")["cancelled"]));
    assert_eq!(client.fails("cancel", "(:id (1))").param(), "id");
}

#[test]
fn pipelined_calls_are_each_answered_once() {
    let mut client = server();
    let calls: Vec<i64> = (0..500)
        .map(|n| client.send("add-context", &format!("(:content \"{n}\" :brief t)")))
        .collect();
    let mut numbers = Vec::new();
    for id in calls {
        let item = client.reply(id).unwrap();
        numbers.push(item["id"].as_str().unwrap()[4..].parse::<u32>().unwrap());
    }
    assert_eq!(numbers, (1..=500).collect::<Vec<_>>());
}

#[test]
fn a_byte_order_mark_before_a_message_is_skipped() {
    let home = Home::new();
    for (dialect, line) in [
        (Dialect::Native, "\u{feff}(:id 1 :method ping)\n"),
        (Dialect::Json, "\u{feff}{\"id\":1,\"method\":\"ping\"}\n"),
    ] {
        let mut client = home.ephemeral(&[]);
        client.dialect = dialect;
        for _ in 0..2 {
            client.write(line.as_bytes());
            assert_eq!(outcome(client.message()).unwrap(), "pong", "{dialect:?}");
        }
    }
}
