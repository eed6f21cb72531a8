//! Tests of what is read by lines.

use crate::facts::{Defined, FileFacts};
use crate::words::Splitter;

#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let facts = FileFacts::of(path, text.as_bytes(), &mut Splitter::default());
    let show = |it: &Defined| {
        let (depth, held) = (" ".repeat(it.depth.into()), if it.counts { "" } else { "(" });
        format!("{depth}{}-{} {held}{}: {}", it.line, it.end, it.name, it.signature)
    };
    let shown: Vec<String> = facts.definitions.iter().map(show).collect();
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn csharp_has_types_methods_and_properties() {
    check(
        "a.cs",
        "namespace A.B;\n/* class No */\n[Obsolete(\"x\")]\npublic static partial class One<T> where T : new()\n{\n    \
         private const string Key = \"secret\";\n    public One(int x)\n    {\n    }\n    \
         public static Task<List<int>> ReadAsync<U>(string text = \"a\")\n    {\n        \
         return new Other();\n    }\n    [Json] public int Size { get; set; }\n    public string Name => \"n\";\n}\n\
         public readonly record struct Two(int X);\n",
        &[
            "4-16 One: public static partial class One<T> where T : new()",
            " 10-13 ReadAsync: public static Task<List<int>> ReadAsync<U>(string text = \"a\")",
            " 14-14 Size: [Json] public int Size",
            " 15-15 Name: public string Name",
            "17-17 Two: public readonly record struct Two(int X)",
        ],
    );
}

#[test]
fn kotlin_has_extensions_and_values_at_the_top() {
    check(
        "a.kt",
        "@Deprecated(\"no\") public fun <T : Any> List<T>.one(x: Int): T = x\n\
         const val KEY = \"secret\"\nenum class Two { A }\ninternal data class Three(val a: Int) {\n    \
         companion object\n    private val four: Int get() = 1\n    fun five() {\n        val no = 1\n    }\n}\n\
         /**\n fun no()\n */\nfun interface Six\ntypealias Seven = Int\n",
        &[
            "1-1 one: @Deprecated(\"no\") public fun <T : Any> List<T>.one(x: Int): T",
            "2-2 KEY: const val KEY",
            "3-3 Two: enum class Two",
            "4-10 Three: internal data class Three(val a: Int)",
            " 6-6 four: private val four: Int get()",
            " 7-9 five: fun five()",
            "14-14 Six: fun interface Six",
            "15-15 Seven: typealias Seven",
        ],
    );
}

#[test]
fn swift_scala_and_php_have_types_and_functions() {
    check(
        "a.swift",
        "open class One: Two {\n    public private(set) var three = 1\n    @discardableResult\n    \
         class func four<T>(_ x: T) -> T {\n        let no = x\n        return no\n    }\n}\n\
         extension One.Five {\n  func six() {}\n}\n",
        &[
            "1-8 One: open class One: Two",
            " 2-2 three: public private(set) var three",
            " 4-7 four: class func four<T>(_ x: T) -> T",
            "9-11 (Five: extension One.Five",
            " 10-10 six: func six()",
        ],
    );
    check(
        "a.scala",
        "package a\nsealed trait One[F[_]] {\n  def two(f: A => B = c): F[B] = f\n}\nfinal case class Three(x: Int)\n\
         implicit val four: One[Int] = null\n",
        &[
            "2-4 One: sealed trait One[F[_]]",
            " 3-3 two: def two(f: A => B = c): F[B]",
            "5-5 Three: final case class Three(x: Int)",
            "6-6 four: implicit val four: One[Int]",
        ],
    );
    check(
        "a.php",
        "<?php\nabstract class One extends Two\n{\n    const KEY = 'secret';\n    #[Pure]\n    \
         public static function &three(array $x): self\n    {\n        return function () {};\n    }\n}\n",
        &[
            "2-10 One: abstract class One extends Two",
            " 6-9 three: public static function &three(array $x): self",
        ],
    );
}

#[test]
fn elixir_lua_haskell_and_zig_have_theirs() {
    check(
        "a.ex",
        "defmodule One.Two do\n  @moduledoc \"\"\"\n  def no\n  \"\"\"\n  @callback three(x :: term) :: :ok\n  \
         def four(1), do: 1\n  def four(x) do\n    x\n  end\nend\ndefimpl Five, for: Six do\nend\n",
        &[
            "1-10 Two: defmodule One.Two",
            " 5-5 three: @callback three(x :: term) :: :ok",
            " 6-6 four: def four(1), do: 1",
            "11-12 (Five: defimpl Five, for: Six",
        ],
    );
    check(
        "a.lua",
        "local M = {}\n--[[\nfunction no() end\n]]\nfunction M.one(a) return a end\nlocal function two()\nend\n\
         function M:three()\n  return function() end\nend\nM.four = function(x)\nend\n",
        &[
            "5-5 one: function M.one(a) return a end",
            "6-7 two: local function two()",
            "8-10 three: function M:three()",
            "11-12 four: M.four",
        ],
    );
    check(
        "a.hs",
        "module A where\ndata One a = Two | Three\nclass (Eq a) => Four a where\n  five :: a -> Int\n\
         six :: Eq a => a -> Int\nsix x = 1\ninstance Four Int where\n",
        &[
            "2-2 One: data One a",
            "3-4 Four: class (Eq a) => Four a where",
            "5-5 six: six :: Eq a => a -> Int",
            "7-7 (Four: instance Four Int where",
        ],
    );
    check(
        "a.zig",
        "const std = @import(\"std\");\npub const One = struct {\n    x: u8,\n    pub fn two(self: *One) u8 {\n        \
         const no = 1;\n        return no;\n    }\n};\n",
        &["2-8 One: pub const One", " 4-7 two: pub fn two(self: *One) u8"],
    );
}

#[test]
fn names_in_code_are_references() {
    let text = "fun one(x: Two) = three(x) // four\n// five\n";
    let facts = FileFacts::of("a.kt", text.as_bytes(), &mut Splitter::default());
    for (name, is_one) in [("one", false), ("Two", true), ("three", true), ("five", false)] {
        assert_eq!(facts.references.contains_key(name), is_one, "{name}");
    }
}

#[test]
fn any_text_is_read_to_its_end() {
    for ending in ["cs", "ex", "hs", "kt", "lua", "php", "scala", "swift", "zig"] {
        for text in [
            "",
            "{",
            "}",
            "class",
            "class <",
            "fun <T",
            "@",
            "@a(",
            "[",
            "#[",
            "public",
            "private(set",
            "def é.ü(",
            "public >(",
            "public <>(",
            "a ::",
            "= function",
            "/*",
            "\"\"\"",
            "{-",
            "class => ",
            "public String é<",
            "fun a.",
            "fun a<b>?.",
            "\u{3000}class é",
        ] {
            let _ =
                FileFacts::of(&format!("a.{ending}"), text.as_bytes(), &mut Splitter::default());
        }
    }
}
