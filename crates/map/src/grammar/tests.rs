//! Tests of the grammars.

use crate::facts::{FileFacts, FileState};
use crate::words::Splitter;

#[track_caller]
fn facts(path: &str, text: &str) -> FileFacts {
    FileFacts::of(path, text.as_bytes(), &mut Splitter::default())
}

/// The definitions of a text as `line name: signature`, indented by their depth.
#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let facts = facts(path, text);
    let show = |it: &crate::facts::Defined| {
        format!("{}{} {}: {}", " ".repeat(it.depth.into()), it.line, it.name, it.signature)
    };
    let shown: Vec<String> = facts.definitions.iter().map(show).collect();
    assert_eq!(shown, expected, "{text}");
}

#[track_caller]
fn refers(path: &str, text: &str, names: &[&str], not: &[&str]) {
    let facts = facts(path, text);
    for name in names {
        assert!(facts.references.contains_key(*name), "{name}: {:?}", facts.references);
    }
    for name in not {
        assert!(!facts.references.contains_key(*name), "{name}: {:?}", facts.references);
    }
}

#[test]
fn rust_has_items_and_methods() {
    check(
        "a.rs",
        "pub(crate) struct One<T> {\n  x: T,\n}\nimpl<T> One<T> {\n    pub fn two(&self) -> u8 { 1 }\n}\n\
         const KEY: &str = \"secret\";\nmacro_rules! three { () => {} }\nmod four;\n",
        &[
            "1 One: pub(crate) struct One<T>",
            "4 One<T>: impl<T> One<T>",
            " 5 two: pub fn two(&self) -> u8",
            "7 KEY: const KEY: &str",
            "8 three: macro_rules! three { () => {} }",
            "9 four: mod four",
        ],
    );
    refers("a.rs", "fn a() { b::c(D { e: f!(g) }) } // h", &["b", "c", "D", "e", "g"], &["a", "h"]);
}

#[test]
fn c_and_cpp_follow_declarators() {
    check(
        "a.c",
        "#include \"some/reader.h\"\n#define MAX 10\nstatic int *one(char c)\n{\n  return 0;\n}\n\
         int two(void);\nstruct three { int x; };\ntypedef struct { int y; } four;\nstruct three v;\n",
        &[
            "2 MAX: #define MAX",
            "3 one: static int *one(char c)",
            "7 two: int two(void)",
            "8 three: struct three",
            "9 four: typedef struct { int y; } four",
        ],
    );
    refers("a.c", "#include \"some/reader.h\"\n", &["reader"], &[]);
    check(
        "a.cpp",
        "namespace n {\nclass One : Two {\n  void m() const;\n};\n}\nvoid n::One::m() const {}\n",
        &[
            "1 n: namespace n",
            " 2 One: class One : Two",
            "  3 m: void m() const",
            "6 m: void n::One::m() const",
        ],
    );
}

#[test]
fn python_has_functions_classes_and_constants_at_the_top() {
    check(
        "a.py",
        "KEY = 'secret'\nclass One(Two):\n    x = 1\n    async def three(self) -> int:\n        y = 1\n\ndef four(a,\n         b):\n    pass\n",
        &[
            "1 KEY: KEY",
            "2 One: class One(Two)",
            " 4 three: async def three(self) -> int",
            "7 four: def four(a, b)",
        ],
    );
}

#[test]
fn functions_that_are_assigned_are_definitions() {
    check(
        "a.ts",
        "export const one = async (a: number): Promise<void> => { };\nconst two = memo(function (x) { return x });\n\
         exports.three = () => 1;\nclass C { four = () => 1; five(): void {} }\n\
         export default { six: function () {}, seven() {} };\nconst limit = 10;\nfunction* eight() { const local = 1 }\n\
         interface Nine { x: number }\n",
        &[
            "1 one: const one = async (a: number): Promise<void> =>",
            "2 two: const two = memo(function (x)",
            "3 three: exports.three = () =>",
            "4 C: class C",
            " 4 four: four = () =>",
            " 4 five: five(): void",
            "5 six: six: function ()",
            "5 seven: seven()",
            "6 limit: const limit",
            "7 eight: function* eight()",
            "8 Nine: interface Nine",
        ],
    );
    refers(
        "a.js",
        "import x from './parts/reader.js'; require('./other')",
        &["reader", "other"],
        &[],
    );
    check(
        "a.jsx",
        "const App = () => <div className=\"x\">{y}</div>;\n",
        &["1 App: const App = () =>"],
    );
}

#[test]
fn go_java_ruby_and_bash_define() {
    check(
        "a.go",
        "package p\n\nimport \"x/y\"\n\nconst K = \"s\"\n\nfunc (s *S) One(a int) error { return nil }\n\ntype S struct{ a int }\n",
        &["5 K: K", "7 One: func (s *S) One(a int) error", "9 S: S struct{ a int }"],
    );
    check(
        "a.java",
        "class A extends B {\n  @Override public int one(int x) { return x; }\n  A() {}\n}\n",
        &["1 A: class A extends B", " 2 one: @Override public int one(int x)", " 3 A: A()"],
    );
    check(
        "a.rb",
        "module M\n  class A < B\n    KEY = 's'\n    def one(x)\n    end\n    def self.two; end\n  end\nend\n",
        &[
            "1 M: module M",
            " 2 A: class A < B",
            "  3 KEY: KEY",
            "  4 one: def one(x)",
            "  6 two: def self.two; end",
        ],
    );
    check("a.sh", "one() {\n  two x\n}\n", &["1 one: one()"]);
    refers("a.sh", "one() {\n  two x\n}\n", &["two"], &[]);
}

#[test]
fn broken_and_hostile_texts_end() {
    for path in ["a.rs", "a.c", "a.cpp", "a.py", "a.ts", "a.js", "a.go", "a.java", "a.rb", "a.sh"] {
        for text in [
            "",
            "}",
            "((((((",
            "class",
            "def f(",
            "\u{feff}x",
            "fn a() { fn b( {{{ ]]",
            "\"\"\"",
            "#include",
        ] {
            facts(path, text);
        }
        let deep = "(".repeat(50_000);
        facts(path, &deep);
        let nested = "{[".repeat(20_000) + "x";
        facts(path, &nested);
    }
}

#[test]
fn what_is_not_code_has_words_or_a_name() {
    assert_eq!(facts("a.bin", "a\0b").state, FileState::Binary);
    assert_eq!(facts("a.lock", "x y").state, FileState::Generated);
    let minified = facts("a.js", &("function a(){}".repeat(1_000)));
    assert_eq!((minified.state, minified.definitions.len()), (FileState::Generated, 0));
    let unknown = facts("a.zig", "fn someThing() void {}");
    assert!(unknown.words.contains_key("thing"));
    assert_eq!(
        facts("a.go", "// Code generated by x. DO NOT EDIT.\nfunc a() {}").state,
        FileState::Generated
    );
    assert_eq!(facts("tool", "#!/usr/bin/env python3\ndef a(): pass\n").definitions[0].name, "a");
}

/// That this ends is what it checks: the grammar itself takes hours.
#[test]
fn here_documents_without_end_are_left_out() {
    let script = |count: usize| "f() { :; }\n".to_owned() + &"cat <<A\nx\nA\n".repeat(count);
    assert_eq!(facts("a.sh", &script(9)).definitions.len(), 1);
    for open in ["<<A\n", "cat <<A <<B\n", "<<-A\n"] {
        assert_eq!(facts("a.sh", &open.repeat(200_000)).state, FileState::Unparsed);
    }
}
