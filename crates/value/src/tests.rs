//! Tests of converting data to Rust values and back. The data are given as s-expressions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::sexp::{MAX_DEPTH, print, read};
use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Code,
    ReplHistory,
    File,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Place {
    start_line: u64,
    end_line: Option<u32>,
}

#[derive(Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct GivenParams {
    manager: String,
    content: Option<String>,
    kind: Option<Kind>,
    types: Vec<Kind>,
    limit: u8,
    max_tokens: i64,
    ratio: f64,
    live: bool,
    place: Option<Place>,
    metadata: Option<Value>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    Point,
    Circle(f64),
    Line(i64, i64),
    OpenBox { line_width: u8 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct NestedValue {
    children: Vec<NestedValue>,
}

fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    read(text).unwrap().decode()
}

#[track_caller]
fn check<T: DeserializeOwned + PartialEq + std::fmt::Debug>(text: &str, expected: T) {
    assert_eq!(decode(text), Ok(expected), "{text}");
}

#[track_caller]
fn check_error<T: DeserializeOwned + std::fmt::Debug>(text: &str, expected: &str) {
    assert_eq!(decode::<T>(text).unwrap_err().to_string(), expected, "{text}");
}

#[track_caller]
fn check_encoded<T: Serialize>(value: T, expected: &str) {
    assert_eq!(print(&to_value(&value).unwrap()), expected);
}

#[test]
fn structs_come_from_plists_maps_and_nil() {
    let expected = || GivenParams {
        manager: "a".to_owned(),
        limit: 3,
        place: Some(Place { start_line: 1, end_line: None }),
        ..GivenParams::default()
    };
    check("(:manager \"a\" :limit 3 :place (:start-line 1))", expected());
    check("(:manager a :limit 3 :place (:start_line 1 :end_line nil))", expected());
    check("(:manager :a :limit 3 :place (:start-line 1) :limit 7)", expected());
    check("nil", GivenParams::default());
    let place = Value::Map(vec![("start_line".into(), Value::Int(1))]);
    let map = vec![
        ("manager".into(), Value::Str("a".to_owned())),
        ("limit".into(), Value::Int(3)),
        ("place".into(), place),
    ];
    assert_eq!(Value::Map(map).decode(), Ok(expected()));
    let symbols = vec![Value::Symbol(":limit".into()), Value::Int(3)];
    assert_eq!(Value::List(symbols).decode::<GivenParams>().map(|params| params.limit), Ok(3));
}

#[test]
fn names_are_found_in_each_spelling_that_structs_take() {
    for text in ["(:a 1 :start-line 2)", "(:a 1 :start_line 2 :start-line 3)", "(\\:start_line 2)"]
    {
        let mut plist = read(text).unwrap();
        assert_eq!(plist.get("start-line"), Some(&Value::Int(2)), "{text}");
        assert!(plist.names().any(|name| name == "start-line"), "{text}");
        assert_eq!(plist.take_named("start-line"), Some(Value::Int(2)), "{text}");
        assert_eq!(plist.get("start-line"), None, "{text}");
    }
    // A value is no name.
    assert_eq!(read("(:a :start-line :b 2)").unwrap().get("start-line"), None);
}

#[test]
fn a_field_that_is_a_value_arrives_exactly() {
    for text in [
        "x",
        ":x",
        "\"x\"",
        "(a . b)",
        "[1 [:k] 2.5]",
        "(:type :code :a_b (x . 1))",
        "(quote (f \"é\\377\"))",
        "123456789012345678901234567890",
        "t",
    ] {
        let value = read(text).unwrap();
        let params: GivenParams = decode(&format!("(:metadata {text} :limit 1)")).unwrap();
        assert_eq!(params.metadata.as_ref(), Some(&value), "{text}");
        let encoded = to_value(&params).unwrap();
        assert_eq!(encoded.get("metadata"), Some(&value), "{text}");
        assert_eq!(encoded.decode(), Ok(params), "{text}");
        assert_eq!(value.clone().decode(), Ok(value.clone()), "{text}");
        assert_eq!(to_value(&value), Ok(value), "{text}");
    }
    let pairs: Vec<(String, Value)> = decode("((\"a\" b) (\"c\" :d))").unwrap();
    assert_eq!(pairs[0].1, Value::Symbol("b".into()));
    assert_eq!(pairs[1].1, Value::Keyword("d".into()));
}

#[test]
fn other_formats_see_a_value_in_plain_form() {
    let value = read("(:a-b (1 x \"y\" nil t) :c [2.5])").unwrap();
    let json = serde_json::to_string(&value).unwrap();
    assert_eq!(json, r#"["a-b",[1,"x","y",null,true],"c",[2.5]]"#);
    let toml: Value = toml::from_str("a-b = [1, 'x']\n[c]\nd = 2.5").unwrap();
    assert_eq!(print(&toml), "(:a-b (1 \"x\") :c (:d 2.5))");
}

#[test]
fn numbers_are_exact_or_refused() {
    check("255", 255_u8);
    check("-128", -128_i8);
    check("18446744073709551615", u64::MAX);
    check("-170141183460469231731687303715884105728", i128::MIN);
    check("3", 3.0_f64);
    check("0.5", 0.5_f32);
    check("10000000000000000000000", 1e22_f64);
    check_error::<u64>("-3", "must be an integer of 0 or more, got -3");
    check_error::<u64>("1.0", "must be an integer of 0 or more, got 1.0");
    check_error::<u64>("x", "must be an integer of 0 or more, got the symbol x");
    check_error::<u64>("-99999999999999999999", {
        "must be an integer of 0 or more, got -99999999999999999999"
    });
    check_error::<u64>("18446744073709551616", {
        "must be an integer of at most 18446744073709551615, got 18446744073709551616"
    });
    check_error::<u8>("256", "must be an integer of at most 255, got 256");
    check_error::<i8>("-129", "must be an integer of at least -128, got -129");
    check_error::<i64>("\"1\"", "must be an integer, got \"1\"");
    check_error::<f64>("nil", "must be a number, got nil");
    check_error::<std::num::NonZeroU8>("0", "must be a nonzero u8, got integer `0`");
}

#[test]
fn texts_come_from_strings_and_names() {
    check("\"x\"", "x".to_owned());
    check("x", "x".to_owned());
    check(":x", "x".to_owned());
    check("#(\"x\" 0 1 (face bold))", "x".to_owned());
    check("#(\"repl_history\" 0 4 (face bold))", Kind::ReplHistory);
    check("#(\"λ\" 0 1 (face bold))", 'λ');
    check("\"λ\"", 'λ');
    check("?λ", 'λ');
    check_error::<String>("12", "must be a string, got 12");
    check_error::<String>("nil", "must be a string, got nil");
    check_error::<String>("(a)", "must be a string, got a list");
    check_error::<String>("\"é\\377\"", "must be text, but character 2 is the raw byte 0xFF");
    check_error::<String>(
        "\"\\ud800\"",
        "must be text, but character 1 has the code 0xD800, which is not Unicode",
    );
    check_error::<char>("\"ab\"", "must be one character, got \"ab\"");
}

#[test]
fn a_text_is_moved_and_not_copied() {
    let text = "x".repeat(1000);
    let address = text.as_ptr();
    let list = Value::List(vec![Value::Keyword("content".into()), Value::Str(text)]);
    let content = list.decode::<GivenParams>().unwrap().content.unwrap();
    assert_eq!(content.as_ptr(), address);
}

#[test]
fn truth_options_and_sequences() {
    check("t", true);
    check("nil", false);
    assert_eq!(Value::Bool(false).decode(), Ok(false));
    check_error::<bool>("1", "must be t or nil, got 1");
    check("nil", None::<u8>);
    check("1", Some(1_u8));
    check("(1 2)", vec![1, 2]);
    check("[1 2]", vec![1, 2]);
    check("nil", Vec::<u8>::new());
    check("(1 \"a\")", (1, "a".to_owned()));
    check("nil", ());
    check_error::<Vec<u8>>("x", "must be a list, got the symbol x");
    check_error::<(u8, u8)>("(1 2 3)", "must be a list of length 2, got one of length 3");
    check_error::<(u8, u8)>("(1)", "must be a tuple of size 2, got 1 elements");
    check_error::<()>("1", "must be nil, got 1");
}

#[test]
fn maps_take_any_keys() {
    let map = |pairs: &[(&str, i64)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect::<BTreeMap<_, _>>()
    };
    check("(:a 1 :b 2 :a 3)", map(&[("a", 1), ("b", 2)]));
    check("nil", map(&[]));
    let many: Vec<String> = (0..100).map(|n| format!(":k{} {n}", n % 50)).collect();
    let big: BTreeMap<String, i64> = decode(&format!("({})", many.join(" "))).unwrap();
    assert_eq!((big.len(), big["k49"]), (50, 49));
    check_error::<BTreeMap<String, u8>>("(:a 1 2 3)", {
        "must be a property list, got 2 in place of a keyword"
    });
    check_error::<BTreeMap<String, u8>>("(:a 1 :b)", "b has no value");
    check_error::<BTreeMap<String, u8>>("[1]", "must be a property list or map, got a vector");
}

#[test]
fn enums_come_from_names_and_single_entries() {
    for text in ["repl-history", ":repl-history", "\"repl-history\"", ":repl_history"] {
        check(text, Kind::ReplHistory);
    }
    check_error::<Kind>(":codes", "must be one of code, repl-history, file, got codes");
    check_error::<Kind>("12", "must be one of code, repl-history, file, got 12");
    check_error::<Kind>("nil", "must be one of code, repl-history, file, got nil");
    check("point", Shape::Point);
    check("(:circle 2)", Shape::Circle(2.0));
    check("(:line (1 2))", Shape::Line(1, 2));
    check("(:open-box (:line-width 3))", Shape::OpenBox { line_width: 3 });
    check_error::<Shape>("(:circle 1 :line 2)", {
        "must be one of point, circle, line, open-box, got a list"
    });
}

#[test]
fn errors_say_where() {
    check_error::<GivenParams>("(:limit -3)", "limit must be an integer of 0 or more, got -3");
    check_error::<GivenParams>("(:place (:start-line x))", {
        "place.start-line must be an integer of 0 or more, got the symbol x"
    });
    check_error::<GivenParams>("(:types (code file foo))", {
        "types[2] must be one of code, repl-history, file, got foo"
    });
    check_error::<GivenParams>("(:place (:end-line 1))", "place.start-line is required");
    check_error::<GivenParams>("(:place (:start-line 1 :foo_bar 1))", {
        "place.foo-bar is not a parameter here; the parameters are start-line, end-line"
    });
    check_error::<Vec<Vec<u8>>>("((1) (2 x))", {
        "[1][1] must be an integer of 0 or more, got the symbol x"
    });
    check_error::<Vec<Place>>("((:start-line 1) (:start-line x))", {
        "[1].start-line must be an integer of 0 or more, got the symbol x"
    });
    let error = decode::<GivenParams>("(:bogus 1)").unwrap_err();
    assert_eq!(error.path, "bogus");
    assert!(
        error.message.starts_with("is not a parameter here; the parameters are manager, content")
    );
    let long = format!("(:limit \"{}\\n\")", "x".repeat(50));
    check_error::<GivenParams>(&long, {
        "limit must be an integer of 0 or more, got \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…\""
    });
}

#[test]
fn rust_values_become_data() {
    check_encoded(GivenParams { manager: "a".to_owned(), limit: 2, ..GivenParams::default() }, {
        "(:manager \"a\" :content nil :kind nil :types nil :limit 2 :max-tokens 0 :ratio 0.0 \
         :live nil :place nil :metadata nil)"
    });
    check_encoded([Kind::Code, Kind::ReplHistory], "(:code :repl-history)");
    check_encoded(vec![Shape::Point, Shape::Circle(1.0), Shape::Line(1, 2)], {
        "(:point (:circle 1.0) (:line (1 2)))"
    });
    check_encoded(Shape::OpenBox { line_width: 3 }, "(:open-box (:line-width 3))");
    check_encoded((1_u8, -2_i16, u64::MAX, i128::MIN, 1.5_f32, 'x', "y", ()), {
        "(1 -2 18446744073709551615 -170141183460469231731687303715884105728 1.5 \"x\" \"y\" nil)"
    });
    check_encoded(BTreeMap::from([(1, true), (2, false)]), "(:1 t :2 nil)");
    check_encoded(BTreeMap::from([("a_b", 1)]), "(:a_b 1)");
    check_encoded(Some(Some(1)), "1");
    let bad = to_value(&BTreeMap::from([((1, 2), 3)])).unwrap_err();
    assert_eq!(bad.to_string(), "must be a name as the key of a map, got a list");
}

#[test]
fn a_result_is_one_struct_with_all_that_data_have() {
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    struct ShownPlace<'a> {
        file_name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_line: Option<u64>,
    }
    // Flattening makes a map of the surrounding struct, and the keys of this map stay unchanged.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    struct Shown<'a> {
        token_counter: Keyword<&'a str>,
        phase: Option<Keyword<String>>,
        kind: Kind,
        #[serde(flatten)]
        place: ShownPlace<'a>,
        metadata: &'a Value,
        removed: Vec<Keyword<&'a str>>,
    }
    let metadata = read("(:a (b . \"c\") :d [:e [f]])").unwrap();
    let shown = |last_line, phase| Shown {
        token_counter: Keyword("o200k_base"),
        phase,
        kind: Kind::ReplHistory,
        place: ShownPlace { file_name: "a", last_line },
        metadata: &metadata,
        removed: vec![Keyword("x"), Keyword("y")],
    };
    check_encoded(
        shown(None, None),
        "(:token-counter :o200k_base :phase nil :kind :repl-history :file-name \"a\" \
         :metadata (:a (b . \"c\") :d [:e [f]]) :removed (:x :y))",
    );
    let value = Value::of(&shown(Some(3), Some(Keyword("testing".to_owned()))));
    assert_eq!(value.get("last-line"), Some(&Value::Int(3)));
    assert_eq!(value.get("phase"), Some(&Value::Keyword("testing".into())));
    assert_eq!(value.get("metadata"), Some(&metadata));
}

#[test]
fn a_keyword_is_text_in_other_formats() {
    assert_eq!(serde_json::to_string(&[Keyword("a-b")]).unwrap(), r#"["a-b"]"#);
    assert_eq!(to_value(&Keyword("a_b")), Ok(Value::Keyword("a_b".into())));
}

#[test]
fn encoded_values_decode_the_same() {
    for shape in [Shape::Point, Shape::Circle(0.5), Shape::Line(-1, 1)] {
        assert_eq!(to_value(&shape).unwrap().decode(), Ok(shape));
    }
    let place = Some(Place { start_line: u64::MAX, end_line: Some(7) });
    let params =
        GivenParams { place, types: vec![Kind::File], live: true, ..GivenParams::default() };
    assert_eq!(to_value(&params).unwrap().decode(), Ok(params));
}

#[test]
fn the_deepest_message_fits_the_stack() {
    let depth = MAX_DEPTH / 2;
    let text = format!("{}{}", "(:children (".repeat(depth), "))".repeat(depth));
    let text = text.replace("(:children ())", "(:children nil)");
    let mut tree: &NestedValue = &decode(&text).unwrap();
    let mut found = 1;
    while let Some(child) = tree.children.first() {
        (tree, found) = (child, found + 1);
    }
    assert_eq!(found, depth);
}

#[test]
fn names_are_found_in_maps_and_plists() {
    let list = read("(:a 1 :b (2) :a 3)").unwrap();
    assert_eq!(list.get("a"), Some(&Value::Int(1)));
    assert_eq!(list.get("c"), None);
    let map = Value::Map(vec![("a".into(), Value::Int(1))]);
    assert_eq!(map.get("a"), Some(&Value::Int(1)));
    assert_eq!(Value::Int(1).get("a"), None);
    assert!(list.is_plist());
    for no_plist in ["nil", "(:a)", "(:a 1 b 2)", "(a 1)", "[:a 1]"] {
        assert!(!read(no_plist).unwrap().is_plist(), "{no_plist}");
    }
}
