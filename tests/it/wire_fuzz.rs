//! The checks of the fuzz targets, on random and mutated inputs from a fixed seed.

#[path = "../../fuzz/checks.rs"]
mod checks;

use crate::tiers::rounds;

/// Inputs for each check.
fn number_of_rounds() -> usize {
    rounds(8_000, 40_000)
}

/// Where mutation starts.
const SEEDS: &[&str] = &[
    r#"(:id 1 :method add-context :params (:manager "a" :content "(+ 1 2)" :type :code))"#,
    r#"{"jsonrpc":"2.0","id":"x","method":"get_context","params":{"limit":-3,"types":["code",null]}}"#,
    r#"(:id "7" :result (:items [1 2.5 1e+300 -0.0 0.0e+NaN] :pinned t))"#,
    r#"(1+ a\ b \, λ ## - +1x 1e5x \123 \?a .foo 'q #'f `(a ,b ,@c) (a . b) . [x])"#,
    r#"(?a ?\C-a ?\M-x ?\^? ?\x41 ?\u03bb ?\N{U+3bb} #x1F #o17 #b101 #24rNN 123456789012345678901)"#,
    r#"("\^a\C-a\M-a\x41\ b\177\u00e9\U0001F600\N{U+3bb}" "é\377" #("x" 0 1 (face bold)))"#,
    r##"(#s(hash-table test equal data (a 1)) #&9"\377\1" #_x #1=(a #1#) #<buffer x> #[0] #:g)"##,
    r#"(:emacs-rex (contexture:add-context :content "a" :metadata (quote (:x 1))) "X" t 12)"#,
    r#"(:emacs-rex (slynk:autodoc '("a" slynk::%cursor-marker%) :w 3) nil :repl-thread 3)"#,
    r#"(:emacs-channel-send 1 (:process "it's (un\"balanced"))"#,
    r#"(call 7 add_context ((:content "x")))"#,
    r#"{"a":[1e400,18446744073709551616,-0,"\ud83d\ude00\u0000"],"$serde_json::private::Number":"1"}"#,
];

/// Templates where mutation starts.
const TEMPLATES: &[&str] = &[
    "---\ndescription: \"x: y\"\nrecent-runs: 3\nmodel: m\n---\nHello {{ a }}\n",
    "{% if a %}[{{ code|trim }}]{% elif not empty %}no{% else %}{{ a.b }}{% endif %}\n",
    "{% for line in code|lines %}{{ loop.index }} {{ line }}{% else %}none{% endfor %}",
    "{% set n = a|length - 1 %}{{ a[0:n] }} {{ 'x' if n > 2 and a in code else \"y\" }}",
    "{%- raw -%}{{ a ~ b }}{% endraw %}{# note #}\n```json\n{\"a\": 1}\n```\n{{ range(3) }}",
];

/// What templates are made of.
const TEMPLATE_PIECES: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{%-",
    "-%}",
    "---\n",
    "\n",
    " if ",
    " else ",
    " elif ",
    " endif ",
    " for ",
    " in ",
    " endfor ",
    " set ",
    " = ",
    " ~ ",
    " + ",
    " * ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "|",
    ".",
    "'",
    "\"",
    "\\",
    "a",
    "code",
    "empty",
    "range(9)",
    "upper",
    "split",
    "default('x')",
    " is ",
    " not ",
    " defined",
    " raw ",
    " endraw ",
    " with ",
    " macro m() ",
    "recent-runs: ",
    "9",
    "-1",
    "1e9",
    "λ",
    "\0",
    "```json\n",
    "```\n",
    " recursive ",
    "loop(a)",
];

/// Pieces that change the meaning of what surrounds them.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\\",
    "'",
    "`",
    ",",
    ",@",
    "#",
    "#s(",
    "#(",
    "#&3",
    "?",
    ".",
    " . ",
    ";",
    ":",
    "\n",
    "\r\n",
    "\0",
    "\u{7f}",
    "\u{a0}",
    "λ",
    "\\x",
    "\\u",
    "\\M-",
    "\\C-",
    "\\^",
    "e",
    "+",
    "-",
    "0",
    "9",
    "1e5",
    "e+INF",
    "e+NaN",
    "nil",
    "t",
    ":id",
    "null",
    "\\377",
    "\\ud800",
    "(call ",
    "(methods 1)",
    "(:emacs-rex ",
    " nil t 1)",
    "contexture:",
];

/// Steele, Lea and Flood's SplitMix64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number from 0 to `bound - 1`.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.below(40);
        (0..length).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    fn pieces(&mut self, pieces: &[&str]) -> Vec<u8> {
        let count = self.below(30);
        (0..count).map(|_| self.pick(pieces)).collect::<String>().into_bytes()
    }

    fn mutated(&mut self, seeds: &[&str], pieces: &[&str]) -> Vec<u8> {
        let mut data = self.pick(seeds).as_bytes().to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(data.len().max(1));
            let end = (at + self.below(8)).min(data.len());
            match self.below(5) {
                0 => drop(data.drain(at..end)),
                1 => data.truncate(at),
                2 => drop(data.splice(at..at, self.pick(pieces).bytes())),
                3 => drop(data.splice(at..end, self.pick(pieces).bytes())),
                _ => drop(data.splice(at..end, self.bytes())),
            }
        }
        data
    }
}

/// Runs `check` on inputs of every sort.
fn run(check: fn(&[u8]), seeds: &[&str], pieces: &[&str]) {
    let mut random = Random(2);
    for round in 0..number_of_rounds() {
        let data = match round % 4 {
            0 => random.bytes(),
            1 => random.pieces(pieces),
            _ => random.mutated(seeds, pieces),
        };
        let outcome = std::panic::catch_unwind(|| check(&data));
        assert!(outcome.is_ok(), "round {round}: {:?}", String::from_utf8_lossy(&data));
    }
}

#[test]
fn no_bytes_upset_the_reader() {
    run(checks::sexp::check, SEEDS, PIECES);
}

#[test]
fn frames_do_not_depend_on_how_a_stream_is_cut() {
    run(checks::frame::check, SEEDS, PIECES);
}

#[test]
fn wrong_lengths_are_found_however_a_stream_is_cut() {
    run(checks::length::check, SEEDS, PIECES);
}

#[test]
fn no_text_upsets_the_templates() {
    run(checks::template::check, TEMPLATES, TEMPLATE_PIECES);
}

#[test]
fn no_depth_upsets_the_templates() {
    let mut random = Random(3);
    for round in 0..number_of_rounds() / 4 {
        let data = random.bytes();
        let outcome = std::panic::catch_unwind(|| checks::nesting::check(&data));
        assert!(outcome.is_ok(), "round {round}: {data:?}");
    }
}
