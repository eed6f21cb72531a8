//! Tests of what a line says and how an answer is written.

use super::Dialect::{Json, Native};
use super::*;
use crate::wire::message::Outgoing::{Notify, Reply};
use crate::wire::sexp::{print, read};

/// `ID METHOD PARAMS` of a call, `ID CODE MESSAGE DATA` of anything invalid.
fn show(incoming: &Incoming) -> String {
    match incoming {
        Incoming::Call(Request { id, method, params }) => {
            format!("{} {method} {}", show_id(id.as_ref()), print(params))
        }
        Incoming::Invalid(id, WireError { code, message, data }) => {
            format!("{} {code} {message} {}", show_id(id.as_ref()), print(data))
        }
        Incoming::Ignored => "ignored".to_owned(),
    }
}

fn show_id(id: Option<&Id>) -> String {
    match id {
        None => "-".to_owned(),
        Some(Id::Int(number)) => number.to_string(),
        Some(Id::Str(text)) => format!("{text:?}"),
    }
}

#[track_caller]
fn check(dialect: Dialect, line: &str, expected: &str) {
    assert_eq!(show(&dialect.decode(line.as_bytes())), expected, "{line}");
}

#[track_caller]
fn check_written(dialect: Dialect, message: Outgoing, expected: &str) {
    let mut out = b"before".to_vec();
    dialect.encode(&message, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("before{expected}\n"));
}

#[test]
fn the_first_byte_tells_the_dialect() {
    for (line, dialect) in [
        ("(:id 1)", Some(Native)),
        ("  ; x", Some(Native)),
        ("{\"id\":1}", Some(Json)),
        ("\t{", Some(Json)),
        ("[", None),
        ("00000a(", None),
        ("", None),
        (" ", None),
    ] {
        assert_eq!(Dialect::of_line(line.as_bytes()), dialect, "{line}");
    }
}

#[test]
fn calls_in_plists() {
    check(Native, "(:id 1 :method ping)", "1 ping nil");
    check(Native, "(:jsonrpc \"2.0\" :id \"x\" :method \"ping\" :params nil)", "\"x\" ping nil");
    check(Native, "(:id nil :method :add_context :params (:a 1))", "- add-context (:a 1)");
    check(Native, "(:method m :params (:a (x . y)) :id 7 :id 8)", "7 m (:a (x . y))");
    check(Native, "(:id #(\"x\" 0 1 (a b)) :method #(\"m\" 0 1 (a b)) :params [])", "\"x\" m nil");
    check(Native, " (:id -1 :method m :more stuff) ; comment", "-1 m nil");
}

#[test]
fn calls_in_json() {
    check(Json, r#"{"jsonrpc":"2.0","id":1,"method":"add_context","params":{"start_line":2}}"#, {
        "1 add-context (:start-line 2)"
    });
    check(Json, r#"{"id":null,"method":"m","params":[]}"#, "- m nil");
    check(Json, r#"{"id":"1","method":"m","params":null}"#, "\"1\" m nil");
}

#[test]
fn lines_that_say_nothing_are_ignored() {
    for line in ["", "  ", "; hello", " ;; (:id 1", "\r"] {
        check(Native, line, "ignored");
        check(Json, line, "ignored");
    }
    check(Native, "(:id 1 :result 5)", "ignored");
    check(Native, "(:id 1 :error (:code 1))", "ignored");
    check(Json, r#"{"id":1,"result":null}"#, "ignored");
}

#[test]
fn unreadable_lines_tell_the_column_and_what_to_do() {
    let one_line = "a message is one line: print newlines as \\n (print-escape-newlines in Emacs)";
    check(
        Native,
        "(:id 1 :method \"λ",
        &format!(
            "- -32700 column 18: the text ends inside the string that begins at column 16; \
         {one_line} (:column 18)"
        ),
    );
    check(
        Native,
        "(:id 1",
        &format!(
            "- -32700 column 7: the text ends inside the list that begins at column 1; \
         {one_line} (:column 7)"
        ),
    );
    check(Native, "(:id 1 :method m) (:id 2)", {
        "- -32700 column 19: something follows the first datum; a line holds one message \
         (:column 19)"
    });
    check(Native, "(:id #<buffer x>)", {
        "- -32700 column 6: an object that has no printed form, #<buffer x>, cannot be sent \
         (:column 6)"
    });
    check(Native, &"(".repeat(600), {
        "- -32700 column 513: lists nest deeper than 512 levels (:column 513)"
    });
    check(Json, r#"{"id":1,"method":"m"#, {
        "- -32700 column 20: the text ends inside a string; a message is one line: write \
         newlines as \\n (:column 20)"
    });
    check(Json, "{x", "- -32700 column 2: key must be a string (:column 2)");
    for dialect in [Native, Json] {
        let incoming = dialect.decode(b"(\"\xC3\xA9\xFF\")");
        assert_eq!(show(&incoming), "- -32700 column 4: the message is not UTF-8 (:column 4)");
    }
}

#[test]
fn readable_lines_that_are_no_requests_are_told_what_is_wrong() {
    let example = "a message is a property list such as (:id 1 :method ping), got";
    check(Native, "(ping)", &format!("- -32600 {example} a list nil"));
    check(Native, "nil", &format!("- -32600 {example} nil nil"));
    check(Native, "[1]", &format!("- -32600 {example} a vector nil"));
    check(Native, "(:id 1 :method)", {
        "1 -32600 the message is no property list: :method has no value nil"
    });
    check(Native, "(:id 1 method ping)", {
        "1 -32600 the message is no property list: the symbol method where a keyword belongs nil"
    });
    check(Native, "(:id 1 :params nil)", "1 -32600 the message has no method nil");
    check(Native, "(:id 1 :method 5)", "1 -32600 method must be a name, got 5 nil");
    check(Native, "(:id 1 :method \"\")", "1 -32600 method must be a name, got \"\" nil");
    check(Native, "(:id (1) :method m)", {
        "- -32600 id must be a 64-bit integer or a string, got a list nil"
    });
    check(Native, "(:id 1.5 :method m)", {
        "- -32600 id must be a 64-bit integer or a string, got 1.5 nil"
    });
    check(Native, "(:id 99999999999999999999 :method m)", {
        "- -32600 id must be a 64-bit integer or a string, got 99999999999999999999 nil"
    });
    for (params, got) in [
        ("(1 2)", "a list of another form"),
        ("(:a)", "a list of another form"),
        ("[1]", "a vector"),
        ("5", "5"),
        ("(:a . 1)", "a dotted pair"),
    ] {
        let line = format!("(:id 1 :method m :params {params})");
        let error = format!("1 -32600 params must be a property list or map, got {got} nil");
        check(Native, &line, &error);
    }
    check(Json, "[{\"id\":1}]", {
        "- -32600 batches are not taken: send one message per line nil"
    });
    check(Json, "5", "- -32600 a message is a JSON object, got 5 nil");
}

#[test]
fn answers_in_plists() {
    let result = Value::Map(vec![("start-line".into(), Value::Int(1)), ("x".into(), Value::Nil)]);
    check_written(Native, Reply(Some(Id::Int(1)), Ok(result)), {
        "(:id 1 :result (:start-line 1 :x nil))"
    });
    check_written(Native, Reply(Some(Id::Str("a\"\n".to_owned())), Ok(Value::Nil)), {
        r#"(:id "a\"\n" :result nil)"#
    });
    check_written(Native, Reply(None, Err(WireError::new(-32700, "no\nway"))), {
        r#"(:id nil :error (:code -32700 :message "no\nway"))"#
    });
    let data = Value::Map(vec![("param".into(), Value::Keyword("limit".into()))]);
    let error = WireError { data, ..WireError::new(-32602, "bad") };
    check_written(Native, Reply(Some(Id::Int(-2)), Err(error)), {
        r#"(:id -2 :error (:code -32602 :message "bad" :data (:param :limit)))"#
    });
    let params = read("(:manager \"a\" :count 1)").unwrap();
    check_written(Native, Notify("context-changed", params), {
        r#"(:method "context-changed" :params (:manager "a" :count 1))"#
    });
}

#[test]
fn answers_in_json() {
    let result = Value::Map(vec![("start-line".into(), Value::Int(1)), ("x".into(), Value::Nil)]);
    check_written(Json, Reply(Some(Id::Int(1)), Ok(result)), {
        r#"{"jsonrpc":"2.0","id":1,"result":{"start_line":1,"x":null}}"#
    });
    let data = Value::Map(vec![("param".into(), Value::Keyword("limit".into()))]);
    let error = WireError { data, ..WireError::new(-32602, "bad\n") };
    check_written(Json, Reply(Some(Id::Str("a\"".to_owned())), Err(error)), {
        r#"{"jsonrpc":"2.0","id":"a\"","error":{"code":-32602,"message":"bad\n","data":{"param":"limit"}}}"#
    });
    check_written(Json, Reply(None, Err(WireError::new(-32700, "no"))), {
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#
    });
    check_written(Json, Notify("stats", Value::Nil), r#"{"jsonrpc":"2.0","method":"stats"}"#);
    check_written(Json, Notify("stats", Value::Map(vec![("a-b".into(), Value::Bool(true))])), {
        r#"{"jsonrpc":"2.0","method":"stats","params":{"a_b":true}}"#
    });
}
