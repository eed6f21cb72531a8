//! Tests of the meaning of lines, and of the text of answers.

use super::Dialect::{Epc, Json, Native, Slynk};
use super::*;
use crate::value::sexp::{print, read};
use crate::wire::message::Outgoing::{Notify, Reply};
use crate::wire::message::{LispForm, ReplTalk};

/// Formats a call as `ID METHOD PARAMS`, and anything invalid as `ID CODE MESSAGE DATA`.
fn show(incoming: &Incoming) -> String {
    match incoming {
        Incoming::Call(CallRequest { id, method, params }) => {
            format!("{} {method} {}", show_id(id.as_ref()), print(params))
        }
        Incoming::Invalid(id, WireError { code, message, data }) => {
            format!("{} {code} {message} {}", show_id(id.as_ref()), print(data))
        }
        Incoming::Methods(id) => format!("{} methods", show_id(id.as_ref())),
        Incoming::Talk(talk) => show_talk(talk),
        Incoming::Ignored => "ignored".to_owned(),
    }
}

fn show_talk(talk: &ReplTalk) -> String {
    match talk {
        ReplTalk::Evaluate { id, form: LispForm::Call { package, name, arguments }, thread } => {
            let arguments = print(&Value::List(arguments.clone()));
            format!("{id} {package} {name} {arguments} in {}", print(thread))
        }
        ReplTalk::Evaluate { id, form: LispForm::Datum(datum), thread } => {
            format!("{id} {} in {}", print(datum), print(thread))
        }
        ReplTalk::Channel { channel, message } => {
            format!("channel {channel} {}", print(&Value::List(message.clone())))
        }
        ReplTalk::Interrupt { thread } => format!("interrupt {}", print(thread)),
        ReplTalk::Answer { tag, value } => format!("answer {} {}", print(tag), print(value)),
    }
}

fn show_id(id: Option<&RequestId>) -> String {
    match id {
        None => "-".to_owned(),
        Some(RequestId::Int(number)) => number.to_string(),
        Some(RequestId::Str(text)) => format!("{text:?}"),
    }
}

#[track_caller]
fn check(dialect: Dialect, line: &str, expected: &str) {
    assert_eq!(show(&dialect.decode(line.as_bytes())), expected, "{line}");
}

#[track_caller]
fn check_written(dialect: Dialect, message: Outgoing, expected: &str) {
    let mut out = b"before".to_vec();
    let length = Encoder::new(dialect).encode(&message, &mut out);
    let text = String::from_utf8(out).unwrap();
    if dialect.is_framed() {
        assert_eq!(text, format!("before{length:06x}{expected}"));
        assert_eq!(length, expected.len());
    } else {
        assert_eq!(text, format!("before{expected}\n"));
        assert_eq!(length, expected.len() + 1);
    }
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
fn calls_of_common_lisp_are_in_upper_case() {
    check(Native, "(:ID 1 :METHOD :PING)", "1 ping nil");
    check(
        Native,
        "(:ID \"X\" :METHOD :ADD-ITEM :PARAMS (:CONTENT \"ONE T\" :TYPE :CODE :METADATA \
         (:LINES [A B] :PAIR (C . D) :mixedCase |e|) :BRIEF T :MANAGER NIL))",
        "\"X\" add-item (:content \"ONE T\" :type :code :metadata (:lines [a b] :pair (c . d) \
         :mixedCase |e|) :brief t :manager nil)",
    );
    // In a message of another Lisp, names are as they are.
    check(Native, "(:id 1 :method m :params (:A T :b NIL))", "1 m (:A T :b NIL)");
    check(Native, "(:ID 7 :METHOD :ADD-ITEM :PARAMS (:CONTENT \"one", {
        "7 -32700 column 48: the text ends inside the string that begins at column 44; a message \
         is one line: print newlines as \\n (print-escape-newlines in Emacs) (:column 48)"
    });
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
fn lines_without_a_message_are_ignored() {
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
            "1 -32700 column 18: the text ends inside the string that begins at column 16; \
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
        "1 -32700 column 19: something follows the first datum; a line holds one message \
         (:column 19)"
    });
    check(Native, "(:id #<buffer x>)", {
        "- -32700 column 6: an object that cannot be read back, #<buffer x>, cannot be sent; \
         send strings, numbers, symbols, lists and vectors instead (:column 6)"
    });
    check(Native, &"(".repeat(600), {
        "- -32700 column 513: lists nest deeper than 512 levels (:column 513)"
    });
    check(Json, r#"{"id":1,"method":"m"#, {
        "1 -32700 column 20: the text ends inside a string; a message is one line: write \
         newlines as \\n (:column 20)"
    });
    check(Native, r#"{"id":1,"method":"m"}"#, {
        "- -32700 column 2: something follows the first datum; this connection began with a \
         property list: connect anew for JSON (:column 2)"
    });
    check(Json, "(:id 1 :method m)", {
        "- -32700 column 1: expected value; this connection began with JSON: connect anew for \
         property lists (:column 1)"
    });
    check(Json, "{x", "- -32700 column 2: key must be a string (:column 2)");
    for dialect in [Native, Json] {
        let incoming = dialect.decode(b"(\"\xC3\xA9\xFF\")");
        assert_eq!(show(&incoming), "- -32700 column 4: the message is not UTF-8 (:column 4)");
    }
}

#[test]
fn readable_lines_without_a_request_get_an_explanation() {
    let example = "a message must be a property list such as (:id 1 :method ping), got";
    check(Native, "(ping)", &format!("- -32600 {example} a list nil"));
    check(Native, "nil", &format!("- -32600 {example} nil nil"));
    check(Native, "[1]", &format!("- -32600 {example} a vector nil"));
    check(Native, "(:id 1 :method)", {
        "1 -32600 the message is not a property list: :method has no value nil"
    });
    check(Native, "(:id 1 method ping)", {
        "1 -32600 the message is not a property list: the symbol method in place of a keyword nil"
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
        ("(1 2)", "another kind of list"),
        ("(:a)", "another kind of list"),
        ("[1]", "a vector"),
        ("5", "5"),
        ("(:a . 1)", "a dotted pair"),
    ] {
        let line = format!("(:id 1 :method m :params {params})");
        let error = format!("1 -32600 params must be a property list or map, got {got} nil");
        check(Native, &line, &error);
    }
    check(Json, "[{\"id\":1}]", {
        "- -32600 batches are not accepted: send one message per line nil"
    });
    check(Json, "5", "- -32600 a message must be a JSON object, got 5 nil");
}

#[test]
fn answers_in_plists() {
    let result = Value::Map(vec![("start-line".into(), Value::Int(1)), ("x".into(), Value::Nil)]);
    check_written(Native, Reply(Some(RequestId::Int(1)), Ok(result)), {
        "(:id 1 :result (:start-line 1 :x nil))"
    });
    check_written(Native, Reply(Some(RequestId::Str("a\"\n".to_owned())), Ok(Value::Nil)), {
        r#"(:id "a\"\n" :result nil)"#
    });
    check_written(Native, Reply(None, Err(WireError::new(-32700, "no\nway"))), {
        r#"(:id nil :error (:code -32700 :message "no\nway"))"#
    });
    let data = Value::Map(vec![("param".into(), Value::Keyword("limit".into()))]);
    let error = WireError { data, ..WireError::new(-32602, "bad") };
    check_written(Native, Reply(Some(RequestId::Int(-2)), Err(error)), {
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
    check_written(Json, Reply(Some(RequestId::Int(1)), Ok(result)), {
        r#"{"jsonrpc":"2.0","id":1,"result":{"start_line":1,"x":null}}"#
    });
    let data = Value::Map(vec![("param".into(), Value::Keyword("limit".into()))]);
    let error = WireError { data, ..WireError::new(-32602, "bad\n") };
    check_written(Json, Reply(Some(RequestId::Str("a\"".to_owned())), Err(error)), {
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

#[test]
fn the_first_payload_tells_the_dialect() {
    for (payload, dialect) in [
        ("(call 1 ping nil)", Some(Epc)),
        (" ( methods 4)\n", Some(Epc)),
        ("(return-error 1 2)", Some(Epc)),
        ("(:emacs-rex (slynk:connection-info) nil t 1)\n", Some(Slynk)),
        ("(:emacs-interrupt t)", Some(Slynk)),
        ("(:id 1 :method ping)", None),
        ("{\"id\":1}", None),
        ("s3cret", None),
        ("(", None),
        ("", None),
    ] {
        assert_eq!(Dialect::of_payload(payload.as_bytes()), dialect, "{payload}");
    }
}

#[test]
fn calls_in_epc() {
    check(Epc, "(call 7 ping nil)\n", "7 ping nil");
    check(Epc, "(call 7 ping)", "7 ping nil");
    check(Epc, "(call 7 ping ())", "7 ping nil");
    check(Epc, "(call 7 \"add_context\" (:content \"λ\"))", "7 add-context (:content \"λ\")");
    check(Epc, "(call 7 get-context ((:limit 3)))", "7 get-context (:limit 3)");
    check(Epc, "(call 7 get-context (nil))", "7 get-context nil");
    check(Epc, "(methods 4)\n", "4 methods");
    for ignored in ["(return 1 2)", "(return-error 1 2)", "(epc-error 1 \"x\")", "\n", "; x"] {
        check(Epc, ignored, "ignored");
    }
    let params = "params must be a property list or map, got";
    check(Epc, "(call 7 ping (3))", &format!("7 -32600 {params} 3 nil"));
    check(Epc, "(call 7 ping (1 2))", &format!("7 -32600 {params} another kind of list nil"));
    let shape = "a message must be a list such as (call 1 ping nil) or (methods 2)";
    for (payload, got) in [
        ("(call 7)", "(call UID …) with 0 parts"),
        ("(dance 7)", "(dance UID …) with 0 parts"),
        ("(dance 7 x)", "(dance UID …) with 1 part"),
    ] {
        let error = format!("7 -32600 not a message: {got} after the UID; {shape} nil");
        check(Epc, payload, &error);
    }
    check(Epc, "(call 7 nil nil)", "7 -32600 the message has no method nil");
    check(
        Epc,
        "(:emacs-rex (x) nil t 1)",
        "- -32600 id must be a 64-bit integer or a string, got a list nil",
    );
    check(Epc, "(call 12 f (#<buffer x>))", {
        "12 -32700 column 13: an object that cannot be read back, #<buffer x>, cannot be sent; \
         send strings, numbers, symbols, lists and vectors instead (:column 13)"
    });
    check(Epc, "5", &format!("- -32600 {shape}, got 5 nil"));
}

#[test]
fn answers_in_epc() {
    check_written(Epc, Reply(Some(RequestId::Int(7)), Ok(read("(:id \"é\")").unwrap())), {
        "(return 7 (:id \"é\"))"
    });
    let error = |code| Err(WireError::new(code, "no\nway"));
    check_written(
        Epc,
        Reply(Some(RequestId::Int(7)), error(-32602)),
        r#"(return-error 7 "no\nway")"#,
    );
    check_written(Epc, Reply(Some(RequestId::Int(7)), error(-32601)), r#"(epc-error 7 "no\nway")"#);
    check_written(Epc, Reply(None, error(-32700)), r#"(epc-error nil "no\nway")"#);
    check_written(Epc, Notify("stats", read("(:count 1)").unwrap()), "(call 1 stats ((:count 1)))");
}

#[test]
fn forms_that_call_methods() {
    let check = |form: &str, expected: &str| {
        check(Slynk, &format!("(:emacs-rex {form} \"COMMON-LISP-USER\" t 9)\n"), expected);
    };
    check("(contexture:ping)", "9 ping nil");
    check("(contexture::get_context :limit 3)", "9 get-context (:limit 3)");
    check("(CONTEXTURE:PING nil)", "9 ping nil");
    check(
        "(contexture:add-context :content \"a\nb\" :metadata (quote (:start-line 3 :quote 'x)))",
        "9 add-context (:content \"a\\nb\" :metadata (:start-line 3 :quote (quote x)))",
    );
    check("(contexture:get-context '(:types (:code) :limit -1.5))", {
        "9 get-context (:types (:code) :limit -1.5)"
    });
    let odd = "the arguments of (contexture:ping …) must be keywords and values in turn";
    check("(contexture:ping 3)", &format!("9 -32600 {odd} nil"));
    check("(contexture:ping :a)", &format!("9 -32600 {odd} nil"));
    check("(contexture:ping (:a))", &format!("9 -32600 {odd} nil"));
}

#[test]
fn messages_of_editors() {
    check(Slynk, "(:emacs-rex (slynk-mrepl:create-mrepl 1) nil t 4)\n", {
        "4 slynk-mrepl create-mrepl (1) in t"
    });
    check(Slynk, "(:emacs-rex (swank-repl:listener-eval \"it's (un\n\") \"X\" :repl-thread 5)", {
        "5 swank-repl listener-eval (\"it's (un\\n\") in :repl-thread"
    });
    check(Slynk, "(:emacs-rex \"PONG\" nil t 5)", "5 \"PONG\" in t");
    check(Slynk, "(:emacs-rex (slynk::autodoc '(\"a\" slynk::%cursor-marker%) :w 3) nil 3 8)", {
        "8 slynk autodoc ((\"a\" slynk::%cursor-marker%) :w 3) in 3"
    });
    check(Slynk, "(:emacs-channel-send 1 (:process \"x\"))", "channel 1 (:process \"x\")");
    check(Slynk, "(:emacs-interrupt :repl-thread)", "interrupt :repl-thread");
    check(Slynk, "(:emacs-return 1 2 t)", "answer 2 t");
    check(Slynk, "(:emacs-pong 1 2)", "answer 2 t");
    // Every caller gets an answer.
    check(Slynk, "(:emacs-rex (f #<buffer x>) nil t 12)\n", {
        "12 -32700 column 16: an object that cannot be read back, #<buffer x>, cannot be sent; \
         send strings, numbers, symbols, lists and vectors instead (:column 16)"
    });
    check(Slynk, "(:emacs-rex (f #<x>) \"λλλλλλλλλλλλλλλλ\" t 13)", {
        "13 -32700 column 16: an object that cannot be read back, #<x>, cannot be sent; send \
         strings, numbers, symbols, lists and vectors instead (:column 16)"
    });
    check(Slynk, "(:emacs-dance)", "- -32600 unknown message (:emacs-dance …) nil");
    check(Slynk, "(call 1 ping nil)", {
        "- -32600 a message must be a list such as (:emacs-rex (swank:connection-info) nil t 1), \
         got the symbol call nil"
    });
    check(
        Slynk,
        "(:emacs-rex (f) nil t x)",
        "- -32600 id must be an integer, got the symbol x nil",
    );
}

#[test]
fn the_id_is_at_one_end_of_a_payload() {
    let check = |dialect: Dialect, payload: &str, expected: Option<i64>| {
        let ends = MessageEnds::of(payload.as_bytes());
        assert_eq!(dialect.id_of_ends(&ends), expected.map(RequestId::Int), "{payload}");
    };
    let long = "λ \" (".repeat(50);
    check(Epc, &format!("(call 7 f (\"{long}\"))"), Some(7));
    check(Epc, &format!("\n(call -12 f (\"{long}\"))\n"), Some(-12));
    check(Epc, &format!("(return 7 \"{long}\")"), None);
    check(Epc, &format!("(call {long} 7)"), None);
    check(Slynk, &format!("(:emacs-rex (f \"{long}\") \"P\" :repl-thread 123)\n"), Some(123));
    check(Slynk, &format!("(:emacs-rex (f \"{long}\") \"P\" t x)"), None);
    check(Slynk, &format!("(:emacs-rex (f \"{long}\") \"P\" t 5"), None);
    check(Slynk, &format!("(:emacs-channel-send 1 (:process \"{long} 5))"), None);
    check(Slynk, "", None);
    check(Native, &format!("(:id 7 :method f :params (:x \"{long}\"))"), Some(7));
    check(Native, &format!("(:jsonrpc \"2.0\" :method f :params (:x \"{long}\") :id 7)"), Some(7));
    check(Native, &format!("(:method f :params (:x \"{long}\" :id 7))"), None);
    check(Native, "(:id 1", None);
    check(Json, &format!("{{\"jsonrpc\": \"2.0\", \"id\": 7, \"params\": \"{long}\"}}"), Some(7));
    check(Json, &format!("{{\"params\":{{\"a\":1}},\"x\":\"{long}\",\"id\":7}}\r"), Some(7));
    check(Json, &format!("{{\"x\":\"{long}\",\"params\":{{\"id\":7}}}}"), None);
    check(Json, &format!("{{\"x\":\"{long},\\\"id\\\":7}}"), None);
    check(Json, "{\"id\":1", None);
}

#[test]
fn ids_that_are_texts_are_read_whole_or_not_at_all() {
    let id = |dialect: Dialect, line: &str| dialect.id_of_ends(&MessageEnds::of(line.as_bytes()));
    let text = |text: &str| Some(RequestId::Str(text.to_owned()));
    assert_eq!(id(Json, r#"{"id":"a \"b","method":"#), text("a \"b"));
    assert_eq!(id(Native, r#"(:id "a \"b" :method"#), text("a \"b"));
    let long = "x".repeat(300);
    assert_eq!(id(Json, &format!(r#"{{"id":"{long}","method":""#)), None);
    assert_eq!(id(Native, &format!(r#"(:id "{long}" :method""#)), None);
}

#[test]
fn answers_to_editors() {
    let ok = read("(:id \"é\" :x nil :y t)").unwrap();
    check_written(Slynk, Reply(Some(RequestId::Int(9)), Ok(ok)), {
        "(:return (:ok (:id \"é\" :x nil :y t)) 9)"
    });
    let error = || Err(WireError::new(-32602, "no\nway"));
    check_written(
        Slynk,
        Reply(Some(RequestId::Int(9)), error()),
        r#"(:return (:abort "no\nway") 9)"#,
    );
    check_written(Slynk, Reply(None, error()), r#"(:background-message "no\nway")"#);
    let event = Outgoing::Event(read("(:channel-send 1 (:prompt \"a\" \"b\" 0 0))").unwrap());
    check_written(Slynk, event, r#"(:channel-send 1 (:prompt "a" "b" 0 0))"#);
}

/// In every dialect of Lisp, strings lose their properties, and objects are refused with their place.
#[test]
fn properties_and_objects_come_in_through_no_dialect() {
    let forms = [
        (Native, "(:id 7 :method add-context :params (:metadata (:a DATUM)))"),
        (Slynk, "(:emacs-rex (contexture:add-context :metadata (quote (:a DATUM))) nil t 7)"),
        (Slynk, "(:emacs-channel-send 1 (:process (:a DATUM)))"),
        (Slynk, "(:emacs-return 1 2 DATUM)"),
        (Epc, "(call 7 add_context ((:metadata (:a DATUM))))"),
    ];
    let evaluated = "#(\"x\" 0 1 (display (when (delete-file \"/y\") . \"z\")))";
    let objects =
        ["#s(r 1)", "#[0 \"\" [] 1]", "#1=(a . #1#)", "#&3\"a\"", "#<buffer x>", "#^[x]", "#:g"];
    for (dialect, form) in forms {
        let shown = show(&dialect.decode(form.replace("DATUM", evaluated).as_bytes()));
        assert!(shown.contains("\"x\"") && !shown.contains("display"), "{shown}");
        for object in objects {
            let within = format!("#(\"x\" 0 1 (display {object}))");
            for datum in [object.to_owned(), format!("(a . [{object}])"), within] {
                let shown = show(&dialect.decode(form.replace("DATUM", &datum).as_bytes()));
                let is_refused = shown.contains("-32700 column ") && shown.contains(" instead");
                assert!(is_refused, "{datum}: {shown}");
            }
        }
    }
}
