//! Tests of reading and writing JSON. The data are given as s-expressions.

use proptest::prelude::*;

use super::super::sexp::{print, read};
use super::*;

#[track_caller]
fn check_read(json: &str, expected: &str) {
    assert_eq!(from_json(json.as_bytes()).map(|value| print(&value)).as_deref(), Ok(expected));
}

#[track_caller]
fn check_error(json: &[u8], column: usize, part: &str) {
    let error = from_json(json).unwrap_err();
    assert_eq!(error.column, column, "{error}");
    assert!(error.message.contains(part), "{error}");
}

fn written(value: &Value) -> String {
    let mut out = Vec::new();
    to_json(value, &mut out);
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn check_written(sexp: &str, expected: &str) {
    assert_eq!(written(&read(sexp).unwrap()), expected, "{sexp}");
}

#[test]
fn json_is_read_as_data() {
    check_read(r#"{"start_line":1,"a":[true,false,null,"x"],"b":{}}"#, {
        "(:start-line 1 :a (t nil nil \"x\") :b nil)"
    });
    assert_eq!(from_json(b"false"), Ok(Value::Bool(false)));
    assert_eq!(from_json(b"[]"), Ok(Value::List(vec![])));
    assert_eq!(from_json(b"{}"), Ok(Value::Map(vec![])));
    check_read(r#" "\u00e9\ud83d\ude00\n\u0000" "#, "\"é😀\\n\\000\"");
}

#[track_caller]
fn check_comes_back(json: &str) {
    assert_eq!(written(&from_json(json.as_bytes()).unwrap()), json);
}

#[test]
fn what_a_client_wrote_comes_back_as_it_was() {
    for json in [
        r#"{"a-b":1,"a_b":2,"a":{"x-y":null,"z_w":[false,[],{}]}}"#,
        r#"{"a_b-c":"-_","-":1,"_":2,"":3,"aB":4,"--":5,"__":6}"#,
        r#"[1e+2,1.50,1e+400,0.10,123456789012345678901234567890,-0.0,1.0]"#,
    ] {
        check_comes_back(json);
    }
    let many: Vec<String> =
        (0..50).flat_map(|n| [format!("\"k-{n}\":0"), format!("\"k_{n}\":1")]).collect();
    check_comes_back(&format!("{{{}}}", many.join(",")));
}

#[test]
fn numbers_keep_their_digits() {
    for (json, sexp) in [
        ("0", "0"),
        ("-0", "0"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("-123456789012345678901234567890", "-123456789012345678901234567890"),
        ("1.0", "1.0"),
        ("-0.0", "-0.0"),
        ("1e2", "100.0"),
        ("1E400", "1.0e+INF"),
        ("0.1", "0.1"),
    ] {
        check_read(json, sexp);
    }
}

#[test]
fn the_last_of_equal_keys_counts() {
    check_read(r#"{"a":1,"b":2,"a":3}"#, "(:a 3 :b 2)");
    check_read(r#"{"a_b":1,"a-b":2}"#, "(:a_b 1 :a-b 2)");
    let many: Vec<String> = (0..100).map(|n| format!("\"k{}\":{n}", n % 50)).collect();
    let Ok(Value::Map(entries)) = from_json(format!("{{{}}}", many.join(",")).as_bytes()) else {
        panic!("no map");
    };
    assert_eq!(entries.len(), 50);
    assert_eq!(entries[49], ("k49".into(), Value::Int(99)));
}

#[test]
fn the_private_key_of_serde_json_is_no_back_door() {
    let key = "$serde_json::private::Number";
    check_read(&format!("{{\"{key}\":\"12\"}}"), "(:$serde-json::private::Number \"12\")");
    check_read(&format!("{{\"{key}\":[1]}}"), "(:$serde-json::private::Number (1))");
    check_read(&format!("{{\"a\":1,\"{key}\":2,\"b\":3}}"), {
        "(:a 1 :$serde-json::private::Number 2 :b 3)"
    });
}

#[test]
fn errors_have_their_place_in_characters() {
    check_error(b"", 1, "the text is empty");
    check_error(b" \n", 3, "the text is empty");
    check_error("{\"é\":x}".as_bytes(), 6, "expected value");
    check_error("[\"é".as_bytes(), 4, "ends inside a string");
    check_error(b"[1,", 4, "ends inside a JSON value");
    check_error(b"[1] 2", 5, "trailing characters");
    check_error(b"\"a\nb\"", 3, "control character");
    check_error(b"[1,\n x]", 6, "expected value");
    check_error(b"[\"\xC3\xA9\", \"\xFF\"]", 8, "UTF-8");
    check_error(br#"["\ud800"]"#, 3, "one of a pair");
    check_error(br#"["\udc00x"]"#, 3, "one of a pair");
    check_error(br#"{"\ud800\ud800":1}"#, 3, "one of a pair");
    assert!(from_json(b"[1,").unwrap_err().is_incomplete());
    assert!(!from_json(b"[1,,").unwrap_err().is_incomplete());
}

#[test]
fn nesting_stops_at_our_limit() {
    let nest = |open: &str, close: &str, depth| {
        format!("{}1{}", str::repeat(open, depth), str::repeat(close, depth))
    };
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"]\\\"\":", "}]")] {
        let levels = if open.starts_with("[{") { 2 } else { 1 };
        let fits = nest(open, close, MAX_DEPTH / levels);
        let value = from_json(fits.as_bytes()).unwrap();
        assert_eq!(from_json(written(&value).as_bytes()), Ok(value));
        let deep = nest(open, close, 1_000_000);
        let error = from_json(deep.as_bytes()).unwrap_err();
        assert!(error.message.contains("512"), "{error}");
    }
    check_error(nest("[", "]", MAX_DEPTH + 1).as_bytes(), MAX_DEPTH + 1, "deeper than 512");
}

#[test]
fn data_are_written_as_json() {
    check_written("(:start-line 1 :a [t nil \"x\"] :b (1 2))", {
        r#"{"start_line":1,"a":[true,null,"x"],"b":[1,2]}"#
    });
    check_written("(:a 1 :b 2 :a 3)", r#"{"a":1,"b":2}"#);
    check_written("(sym :key 1.5 123456789012345678901)", {
        r#"["sym","key",1.5,123456789012345678901]"#
    });
    check_written("(:a 1 b 2)", r#"["a",1,"b",2]"#);
    check_written("(:code :text)", r#"["code","text"]"#);
    check_written("(:a (:b 1))", r#"{"a":{"b":1}}"#);
    check_written(
        "(0.0e+NaN 1.0e+INF -1.0e+INF 1e300)",
        r#"["NaN","Infinity","-Infinity",1e+300]"#,
    );
    check_written("\"é\\377\"", "\"é\u{FFFD}\"");
    check_written("#(\"x\" 0 1 (face bold))", r#""x""#);
    check_written("(a . b)", r#""(a . b)""#);
    check_written("\"a\\n\\t\\r\\\"\\\\\\0\\33\\177é\u{2028}\"", {
        "\"a\\n\\t\\r\\\"\\\\\\u0000\\u001b\\u007fé\u{2028}\""
    });
    assert_eq!(written(&Value::Map(vec![])), "{}");
    assert_eq!(written(&Value::List(vec![])), "[]");
    assert_eq!(written(&Value::Bool(false)), "false");
}

fn json_text() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,25})([.][0-9]{1,5})?(e[-+]?[0-9]{1,2})?";
    let leaf = prop_oneof![
        number,
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<String>().prop_map(|text| serde_json::Value::String(text).to_string()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let entry = (any::<String>(), inner.clone())
            .prop_map(|(key, value)| format!("{}:{value}", serde_json::Value::String(key)));
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(entry, 0..6).prop_map(|pairs| format!("{{{}}}", pairs.join(","))),
        ]
    })
}

proptest! {
    #[test]
    fn written_json_reads_back_the_same(json in json_text()) {
        let value = from_json(json.as_bytes()).unwrap();
        let text = written(&value);
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(from_json(text.as_bytes()), Ok(value));
    }

    #[test]
    fn texts_are_read_or_refused_as_serde_json_does(
        json in json_text(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
    ) {
        let mut text = json.clone().into_bytes();
        let marks = b"[]{},:\"\\-+.eE019 \ntfu";
        for (at, mark) in cuts {
            let at = at.index(text.len());
            text[at] = marks[mark.index(marks.len())];
        }
        let Ok(text) = String::from_utf8(text) else { return Ok(()) };
        let other = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(from_json(text.as_bytes()).is_ok(), other, "{}", text);
    }

    #[test]
    fn strings_are_written_as_serde_json_reads_them(text: String) {
        let json = written(&Value::Str(text.clone()));
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
