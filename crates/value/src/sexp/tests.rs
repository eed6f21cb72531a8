//! Tables of texts that are read and printed. Tests with random values, and with Emacs itself, are
//! in `tests/it`.

use super::ReadErrorKind as Kind;
use super::*;
use crate::Value;

fn symbol(name: &str) -> Value {
    Value::Symbol(name.into())
}

fn string(text: &str) -> Value {
    Value::Str(text.to_owned())
}

fn int(number: i64) -> Value {
    Value::Int(number)
}

/// Checks that the text reads as `expected`, and that the printed form of `expected` reads as the
/// same again.
#[track_caller]
fn check_read(text: &str, expected: Value) {
    let read_back = |text: &str| read(text).map(|value| (format!("{value:?}"), print(&value)));
    let expected = (format!("{expected:?}"), print(&expected));
    assert_eq!(read_back(text).as_ref(), Ok(&expected), "{text}");
    assert_eq!(read_back(&expected.1).as_ref(), Ok(&expected), "{text} by way of {}", expected.1);
}

#[track_caller]
fn check_print(value: Value, expected: &str) {
    assert_eq!(print(&value), expected);
    assert_eq!(read(expected).as_ref(), Ok(&value), "{expected}");
}

#[track_caller]
fn check_error(text: &str, kind: Kind, column: usize, part: &str) {
    match read(text) {
        Ok(value) => panic!("{text:?} reads as {value:?}"),
        Err(error) => {
            assert_eq!((error.kind, error.column), (kind, column), "{text:?}: {error}");
            assert!(error.message.contains(part), "{text:?}: {error}");
        }
    }
}

#[test]
fn integers() {
    for (text, number) in [
        ("0", 0),
        ("-0", 0),
        ("+5", 5),
        ("5.", 5),
        ("-5.", -5),
        ("007", 7),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("#x1F", 31),
        ("#X1f", 31),
        ("#x-1f", -31),
        ("#x+1f", 31),
        ("#o17", 15),
        ("#b101", 5),
        ("#24rNN", 575),
        ("#36rzZ", 1295),
    ] {
        check_read(text, int(number));
    }
    for (text, digits) in [
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("+00018446744073709551616", "18446744073709551616"),
        ("18446744073709551616.", "18446744073709551616"),
        ("#xFFFFFFFFFFFFFFFFF", "295147905179352825855"),
    ] {
        check_read(text, Value::BigInt(digits.into()));
    }
    for text in ["#24rZZ", "#b12", "#x", "#x-", "#37r1", "#1r0", "#0r0", "#xé"] {
        check_error(text, Kind::Syntax, 1, "radix");
    }
    check_error(&format!("#x{}", "F".repeat(1025)), Kind::Syntax, 1, "huge");
}

#[test]
fn floats() {
    for (text, number) in [
        ("1e+300", 1e300),
        ("1e5", 1e5),
        ("1.e5", 1e5),
        ("5e-324", 5e-324),
        ("1e-05", 1e-5),
        ("1E5", 1e5),
        (".5", 0.5),
        ("-.5", -0.5),
        ("+.5", 0.5),
        ("-0.0", -0.0),
        ("0.1", 0.1),
        ("123456789012.5", 123_456_789_012.5),
        ("1e400", f64::INFINITY),
        ("1.0e+INF", f64::INFINITY),
        ("-1.0e+INF", f64::NEG_INFINITY),
    ] {
        check_read(text, Value::Float(number));
    }
    for (text, bits) in [
        ("0.0e+NaN", 0x7FF8_0000_0000_0000),
        ("-0.0e+NaN", 0xFFF8_0000_0000_0000),
        ("3.0e+NaN", 0x7FF8_0000_0000_0003_u64),
    ] {
        check_read(text, Value::Float(f64::from_bits(bits)));
        let Ok(Value::Float(number)) = read(text) else { panic!("{text} is no float") };
        assert_eq!(number.to_bits(), bits, "{text}");
        assert_eq!(print(&Value::Float(number)), text);
    }
}

#[test]
fn symbols() {
    for (text, name) in [
        ("a", "a"),
        ("1+", "1+"),
        ("1-", "1-"),
        ("3d-thing", "3d-thing"),
        (r"a\ b", "a b"),
        (r"\,", ","),
        (r"\`", "`"),
        (r"\,@", ",@"),
        ("λ", "λ"),
        ("😀", "😀"),
        ("{x}", "{x}"),
        ("##", ""),
        ("-", "-"),
        ("+", "+"),
        ("+1x", "+1x"),
        ("1e5x", "1e5x"),
        ("1e", "1e"),
        ("1.0e-INF", "1.0e-INF"),
        ("-.e5", "-.e5"),
        ("1.5.", "1.5."),
        ("...", "..."),
        (r"\123", "123"),
        (r"\-1", "-1"),
        (r"\1e5", "1e5"),
        (r"1\e5", "1e5"),
        (r"\.5", ".5"),
        (r"\.", "."),
        (r"\?a", "?a"),
        (r"a\?", "a?"),
        ("a?b", "a?b"),
        (".foo", ".foo"),
        (r"\.foo", ".foo"),
        (r"a\.b", "a.b"),
        (r"a\#b", "a#b"),
        (r"a\;b", "a;b"),
        (r#"a\"b"#, "a\"b"),
        (r"a\[b\]", "a[b]"),
        (r"a\\b", "a\\b"),
        ("a\\\u{a0}b", "a\u{a0}b"),
        ("a\\\tb", "a\tb"),
        ("\\\0", "\0"),
        ("\u{7f}", "\u{7f}"),
        ("“a", "“a"),
        ("#_foo", "foo"),
        ("slynk::%cursor-marker%", "slynk::%cursor-marker%"),
        ("a|b", "a|b"),
        ("&rest", "&rest"),
        ("é", "é"),
        ("Âx", "Âx"),
    ] {
        check_read(text, symbol(name));
    }
    check_read(r"\nil", Value::Nil);
    check_read(r"\t", Value::Bool(true));
    check_read("()", Value::Nil);
    for (text, name) in [
        (":a", "a"),
        (":", ""),
        (r":a\ b", "a b"),
        (r"\:a", "a"),
        (r":\ a", " a"),
        (r":\?", "?"),
        (":λ", "λ"),
        (":1", "1"),
    ] {
        check_read(text, Value::Keyword(name.into()));
    }
}

#[test]
fn names_are_escaped_as_needed_and_not_more() {
    for (name, expected) in [
        ("1+", "1+"),
        ("1", r"\1"),
        ("1.", r"\1."),
        ("-1", r"\-1"),
        ("1e5", r"\1e5"),
        ("1.0e+INF", r"\1.0e+INF"),
        ("-.5", r"\-.5"),
        (".5", r"\.5"),
        (".foo", ".foo"),
        (".", r"\."),
        (".?", r"\.?"),
        ("a.b?", "a.b?"),
        ("?a", r"\?a"),
        ("a b", r"a\ b"),
        ("a) (b", r"a\)\ \(b"),
        ("“", "\\“"),
        ("", "##"),
    ] {
        check_print(symbol(name), expected);
    }
    check_print(Value::Keyword("a b".into()), r":a\ b");
    assert_eq!(print(&symbol("a\nb\r")), "a\u{240A}b\u{240D}");
    assert_eq!(print(&Value::Map(vec![(") evil".into(), Value::Nil)])), r"(:\)\ evil nil)");
}

#[test]
fn characters() {
    for (text, code) in [
        ("?a", 97),
        ("?é", 233),
        (r"?\n", 10),
        (r"?\C-a", 1),
        (r"?\^a", 1),
        (r"?\^?", 127),
        (r"?\C-?", 127),
        (r"?\^@", 0),
        (r"?\M-x", 0x800_0078),
        (r"?\C-\M-a", 0x800_0001),
        (r"?\^\M-a", 0x800_0001),
        (r"?\(", 40),
        (r"?\x41", 65),
        (r"?\x80", 128),
        (r"?\200", 128),
        (r"?\u03bb", 0x3BB),
        (r"?\U000003bb", 0x3BB),
        (r"?\N{U+3bb}", 0x3BB),
        (r"?\s-a", 0x80_0061),
        (r"?\s", 32),
        (r"?\A-a", 0x40_0061),
        (r"?\xfffffff", 0xFC0_00FF),
        ("? ", 32),
        ("?\t", 9),
        (r"?\ ", 32),
        (r"?\C-é", 0x89),
        (r"?\C-1", 0x400_0031),
    ] {
        check_read(text, int(code));
    }
    check_read("(?a ?b)", Value::List(vec![int(97), int(98)]));
    check_error("?ab", Kind::Syntax, 3, "more than one");
    check_error("?", Kind::IncompleteAtom, 2, "ends");
    check_error("?\\", Kind::IncompleteAtom, 3, "ends");
    check_error(r"?\u41 ", Kind::Syntax, 4, "4 digits");
    check_error(&format!("?{}a", r"\C-".repeat(9)), Kind::Syntax, 29, "too many");
    check_error(r"?\N{LATIN SMALL LETTER A}", Kind::Unsupported, 4, r"\N{U+XXXX}");
    check_error(r"?\xfffffffff", Kind::Syntax, 12, "range");
}

#[test]
fn strings() {
    for (text, expected) in [
        (r#""""#, ""),
        (r#""a\"b\\c""#, "a\"b\\c"),
        (r#""\a\b\d\e\f\n\r\t\v\s\q""#, "\x07\x08\x7f\x1b\x0c\n\r\t\x0b q"),
        ("\"a\nb\"", "a\nb"),
        ("\"a\\\nb\\ c\"", "abc"),
        (r#""\x41\ b""#, "Ab"),
        (r#""\x""#, "\0"),
        (r#""\x0e9""#, "é"),
        (r#""\1777\00123""#, "\x7f7\u{1}23"),
        (r#""\777""#, "ǿ"),
        (r#""\^a\C-a\C- \C-@\^?""#, "\x01\x01\0\0\x7f"),
        (r#""\S-a\s-a""#, "A -a"),
        (r#""\u00e9\U0001F600\N{U+3bb}""#, "é😀λ"),
        ("\"λ😀\u{2028}\u{feff}\"", "λ😀\u{2028}\u{feff}"),
    ] {
        check_read(text, string(expected));
    }
    let raw = |byte: u32| 0x3F_FF00 + byte;
    for (text, codes) in [
        (r#""\377""#, vec![raw(0xFF)]),
        (r#""é\377a""#, vec![0xE9, raw(0xFF), 97]),
        (r#""\M-a""#, vec![raw(0xE1)]),
        (r#""\M-\C-a""#, vec![raw(0x81)]),
        (r#""\xff""#, vec![raw(0xFF)]),
        (r#""\x3fffff""#, vec![raw(0xFF)]),
        (r#""a\ud800""#, vec![97, 0xD800]),
        (r#""\x110000\ 0""#, vec![0x11_0000, 48]),
    ] {
        check_read(text, Value::RawStr(codes));
    }
    for text in [r#""\C-1""#, r#""\A-a""#, r#""\M-é""#, r#""\x400000""#] {
        check_error(text, Kind::Syntax, text.chars().count(), "modifier");
    }
    check_error(r#""\N{U+110000}""#, Kind::Syntax, 4, "without the number of a character");
    check_error(r#""\u41""#, Kind::Syntax, 4, "4 digits");
    check_error(r#""\U00110000""#, Kind::Syntax, 4, "U+10FFFF");
}

#[test]
fn strings_are_printed_on_one_line_with_complete_escapes() {
    check_print(string("a\nb\r\t\"\\"), r#""a\nb\r\t\"\\""#);
    check_print(string("\x7fA\x001\x1bf"), r#""\177A\0001\033f""#);
    check_print(string("é\u{85}\u{2028}"), "\"é\u{85}\u{2028}\"");
    check_print(Value::RawStr(vec![0x3F_FFFF, 55, 0x20_0000, 65]), r#""\3777\x200000\ A""#);
    assert_eq!(print(&Value::RawStr(vec![0x40_0000])), "\"\u{FFFD}\"");
}

#[test]
fn lists() {
    let abc = || vec![symbol("a"), symbol("b"), symbol("c")];
    check_read("(a b c)", Value::List(abc()));
    check_read("(a b . (c))", Value::List(abc()));
    check_read("(a . (b . (c . ())))", Value::List(abc()));
    check_read("(a . (b c . nil))", Value::List(abc()));
    check_read("(. (a b c))", Value::List(abc()));
    check_read("(a b . c)", Value::Dotted(abc()[..2].to_vec(), Box::new(symbol("c"))));
    check_read("(a . (b . c))", Value::Dotted(abc()[..2].to_vec(), Box::new(symbol("c"))));
    check_read("(a . [b c])", {
        let tail = Value::Vector(abc()[1..].to_vec());
        Value::Dotted(vec![symbol("a")], Box::new(tail))
    });
    check_read("(. b)", symbol("b"));
    check_read("(. ())", Value::Nil);
    check_read("(a . 'b)", Value::List(vec![symbol("a"), symbol("quote"), symbol("b")]));
    check_read("(a.b)", Value::List(vec![symbol("a.b")]));
    check_read("(a .b)", Value::List(vec![symbol("a"), symbol(".b")]));
    check_read("[]", Value::Vector(vec![]));
    check_read("[a b c]", Value::Vector(abc()));
    check_read("(a'b)", {
        let quoted = Value::List(vec![symbol("quote"), symbol("b")]);
        Value::List(vec![symbol("a"), quoted])
    });
    check_read("(\"a\"\"b\")", Value::List(vec![string("a"), string("b")]));
    check_read(" ( ; comment )\n a\u{a0}b\tc ) ; end", Value::List(abc()));
}

#[test]
fn quotes() {
    let pair = |name: &str, datum: Value| Value::List(vec![symbol(name), datum]);
    check_read("'x", pair("quote", symbol("x")));
    check_read("#'f", pair("function", symbol("f")));
    check_read("''x", pair("quote", pair("quote", symbol("x"))));
    check_read("'()", pair("quote", Value::Nil));
    check_read("`(a ,b ,@c)", {
        let items = vec![symbol("a"), pair(",", symbol("b")), pair(",@", symbol("c"))];
        pair("`", Value::List(items))
    });
    check_read("(quote . a)", Value::Dotted(vec![symbol("quote")], Box::new(symbol("a"))));
}

#[test]
fn text_properties_are_dropped() {
    check_read(
        "#(\"x\" 0 1 (display (when (delete-file \"/y\") . \"z\")))",
        Value::Str("x".into()),
    );
    check_read("#(\"x\")", Value::Str("x".into()));
    check_read("#(\"\\377\" 0 1 (face bold))", Value::RawStr(vec![0x3F_FFFF]));
    check_read("(a #(\"x\" 0 1 (p #(\"y\" 0 1 (q r)))) . #(\"z\" 0 1 nil))", {
        let items = vec![symbol("a"), Value::Str("x".into())];
        Value::Dotted(items, Box::new(Value::Str("z".into())))
    });
    check_error("#(a)", Kind::Syntax, 1, "without a string");
    check_error("#()", Kind::Syntax, 1, "without a string");
    check_error("#(\"x\" . b)", Kind::Syntax, 7, "dot");
}

#[test]
fn unsupported_objects_are_refused_by_name() {
    for (text, name) in [
        ("#<buffer *scratch*>", "#<buffer *scratch*>"),
        ("#<subr car>", "#<subr car>"),
        ("#<marker (moves after insertion) at 7 in some-very-long-name>", "#<marker (moves"),
        ("#1=(a . #1#)", "circular"),
        ("#1#", "circular"),
        ("#0", "circular"),
        ("#[0 \"\" [] 1]", "byte-code"),
        ("#s(foo 1)", "a record or hash table"),
        ("#s(hash-table data (a 1))", "a record or hash table"),
        ("#&5\"\\37\"", "bool-vector"),
        ("#:g12", "uninterned"),
        ("#^[nil]", "char-table"),
        ("#^^[nil]", "char-table"),
        ("#$", "#$"),
        ("#@12 x", "doc string"),
    ] {
        check_error(text, Kind::Unsupported, 1, name);
        check_error(&format!("(é {text})"), Kind::Unsupported, 4, name);
    }
}

#[test]
fn bad_syntax_has_its_place() {
    for (text, column, part) in [
        (")", 1, "closes nothing"),
        ("(a]", 3, "`]` where a `)`"),
        ("[λ)", 3, "`)` where a `]`"),
        ("(a . )", 6, "without a tail"),
        ("(a .)", 5, "without a tail"),
        ("(a . b c)", 8, "more than one datum"),
        ("(a . b (c))", 8, "more than one datum"),
        ("(a . b . c)", 8, "a dot"),
        ("(a . . b)", 6, "a dot"),
        ("[a . b]", 4, "a dot"),
        ("'. b", 2, "a dot"),
        (".", 1, "a dot"),
        ("(')", 3, "quote"),
        ("#", 1, "no known syntax"),
        ("# x", 1, "no known syntax"),
        ("#a", 1, "no known syntax"),
        ("#sx", 1, "no known syntax"),
    ] {
        check_error(text, Kind::Syntax, column, part);
    }
    check_error("", Kind::Empty, 1, "no datum");
    check_error("  ; only a comment", Kind::Empty, 19, "no datum");
    check_error("a b", Kind::TrailingData, 3, "follows");
    check_error("(a))", Kind::TrailingData, 4, "follows");
}

#[test]
fn an_early_end_tells_which_list_is_open() {
    check_error("(:a \"λx", Kind::IncompleteString, 8, "string that begins at column 5");
    check_error("\"a\\", Kind::IncompleteString, 4, "column 1");
    check_error("\"a\\x4", Kind::IncompleteString, 6, "column 1");
    check_error("\"a\\u00", Kind::IncompleteString, 7, "column 1");
    check_error("\"a\\N{U+", Kind::IncompleteString, 8, "column 1");
    check_error("\"a\\C-", Kind::IncompleteString, 6, "column 1");
    check_error("(a (b", Kind::IncompleteList, 6, "list that begins at column 4");
    check_error("[a", Kind::IncompleteList, 3, "vector that begins at column 1");
    check_error("(a . ", Kind::IncompleteList, 6, "list");
    check_error("'", Kind::IncompleteList, 2, "quoted");
    check_error("(a ; comment)", Kind::IncompleteList, 14, "list");
    check_error("a\\", Kind::IncompleteAtom, 3, "backslash");
}

#[test]
fn every_kind_of_nesting_counts() {
    let nest = |open: &str, close: &str, depth: usize| {
        format!("{}x{}", open.repeat(depth), close.repeat(depth))
    };
    let kinds = [
        ("(", ")"),
        ("[", "]"),
        ("(a . ", ")"),
        ("'", ""),
        ("#'", ""),
        ("`", ""),
        (",", ""),
        (",@", ""),
    ];
    for (open, close) in kinds {
        assert!(read(&nest(open, close, MAX_DEPTH)).is_ok(), "{open}");
        let column = open.chars().count() * MAX_DEPTH + 1;
        check_error(&nest(open, close, MAX_DEPTH + 1), Kind::TooDeep, column, "512");
        check_error(&nest(open, close, 1_000_000), Kind::TooDeep, column, "512");
    }
    let deep = read(&nest("(", ")", MAX_DEPTH)).unwrap();
    assert_eq!(print(&deep), nest("(", ")", MAX_DEPTH));
    assert_eq!(deep.clone(), deep);
}

#[test]
fn long_lists_need_no_stack() {
    let text = format!("({})", "1 ".repeat(1_000_000));
    let value = std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || {
            let value = read(&text).unwrap();
            (print(&value).len(), text.len())
        })
        .unwrap();
    let (printed, given) = value.join().unwrap();
    assert_eq!(printed, given - 1);
}

#[test]
fn values_print_in_their_one_form() {
    check_print(Value::Nil, "nil");
    check_print(Value::Bool(true), "t");
    check_print(int(i64::MIN), "-9223372036854775808");
    check_print(Value::Float(1e300), "1e300");
    check_print(Value::Float(1.0), "1.0");
    assert_eq!(print(&Value::Bool(false)), "nil");
    assert_eq!(print(&Value::List(vec![])), "nil");
    assert_eq!(print(&Value::Map(vec![])), "nil");
    assert_eq!(print(&Value::Dotted(vec![], Box::new(int(1)))), "1");
    let map = vec![("id".into(), int(1)), ("start-line".into(), Value::List(vec![]))];
    assert_eq!(print(&Value::Map(map)), "(:id 1 :start-line nil)");
}
