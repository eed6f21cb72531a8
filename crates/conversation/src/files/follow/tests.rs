//! Tests of finding texts in edited files.

use super::*;

const FILE: &str = "\
use a::b;

fn one(x: u8) -> u8 {
    let y = x + 1;
    y * 2
}

fn two(x: u8) -> u8 {
    let z = x + 3;
    z * 4
}

fn three() {
    println!(\"three\");
}
";
fn anchor(file: &str, range: (u64, u64)) -> Option<Anchor> {
    super::anchor(&Searched::new(file, ""), range)
}

fn locate(wanted: &WantedText<'_>, file: &str) -> TextMatch {
    super::locate(wanted, &Searched::new(file, ""))
}

/// Lines of the function in the middle.
const RANGE: (u64, u64) = (8, 11);

#[track_caller]
fn check(now: &str, expected: Result<(u64, u64, Found), &str>) {
    let text = lines::slice(FILE, RANGE.0, Some(RANGE.1)).unwrap();
    let around = anchor(FILE, RANGE).unwrap();
    let wanted = WantedText { text, range: RANGE, anchor: Some(&around), symbol: Some("two") };
    let found = match locate(&wanted, now) {
        TextMatch::At { start, end, found } => Ok((start, end, found)),
        TextMatch::Unsure(reason) => Err(reason),
    };
    assert_eq!(found, expected, "{now}");
}

#[test]
fn what_is_there_is_found() {
    check(FILE, Ok((8, 11, Found::Exact)));
    check(&format!("// One more.\n{FILE}"), Ok((9, 12, Found::Moved)));
    let tabs = FILE.replace("    z", "\tz").replace("x + 3", "x  +  3");
    check(&tabs, Ok((8, 11, Found::Reformatted)));
    let wrapped = FILE.replace("fn two(x: u8) -> u8 {", "fn two(\n    x: u8) -> u8 {");
    check(&wrapped, Ok((8, 12, Found::Reformatted)));
    check(&FILE.replace("z * 4", "z * 5"), Ok((8, 11, Found::Edited)));
    let longer = FILE.replace("    z * 4\n", "    log(z);\n    z * 4\n");
    check(&longer, Ok((8, 12, Found::Edited)));
}

#[test]
fn what_is_gone_or_there_twice_is_not_guessed() {
    let text = lines::slice(FILE, RANGE.0, Some(RANGE.1)).unwrap();
    check(&FILE.replace(text, ""), Err(GONE));
    check("", Err(GONE));
    let edited = FILE.replace("x + 3", "x + 33");
    // The edited version is where the text was.
    check(&format!("{edited}\n{text}"), Ok((8, 11, Found::Edited)));
    let both = FILE.replace(text, &format!("{text}\n{text}"));
    check(&both, Err(SEVERAL));
}

#[test]
fn nothing_is_found_without_a_text() {
    let wanted = WantedText { text: "\n \n", range: (1, 2), anchor: None, symbol: None };
    assert_eq!(locate(&wanted, FILE), TextMatch::Unsure(EMPTY));
}

#[test]
fn a_lisp_definition_is_found_by_its_name_and_its_last_bracket() {
    let file = "(defun area (r)\n  \"In one.\"\n  (* pi r r))\n\n(defun other () 1)\n";
    let text = lines::slice(file, 1, Some(3)).unwrap();
    let around = anchor(file, (1, 3)).unwrap();
    let wanted = WantedText { text, range: (1, 3), anchor: Some(&around), symbol: Some("area") };
    let check = |now: &str, expected| {
        let found = matches!(locate(&wanted, now), TextMatch::At { start: 3, end: 5, .. });
        assert_eq!(found, expected, "{now}");
    };
    let edited = ";; New.\n\n(defun area (r)\n  \"Area.\"\n  (* 3 r r))\n\n(defun other () 1)\n";
    check(edited, true);
    check(&edited.replace("r r))", "r r)"), false);
    check(&edited.replace("(defun area", "(defun areas"), false);
    check(&format!("{edited}(defun area (r)\n  2)\n"), false);
}

#[test]
fn a_definition_whose_end_is_gone_does_not_take_that_of_the_next() {
    let file = "(defun less (i)\n  \"Less.\"\n  (- i 1))\n\n(defun size (ring)\n  \"Size.\"\n  (car ring))\n";
    let text = lines::slice(file, 1, Some(3)).unwrap();
    let around = anchor(file, (1, 3)).unwrap();
    let wanted = WantedText { text, range: (1, 3), anchor: Some(&around), symbol: Some("less") };
    let now = "(defun less (i)\n  \"Size.\"\n  (car ring))\n";
    assert!(matches!(locate(&wanted, now), TextMatch::Unsure(_)));
}

#[test]
fn a_line_that_was_lost_and_stands_beside_a_place_makes_it_uncertain() {
    let now = FILE.replace(
        "fn two(x: u8) -> u8 {\n    let z = x + 3;\n    z * 4\n}",
        "    let z = x + 3;\n    let new = 1;\nfn two(x: u8) -> u8 {\n    z * 4\n}",
    );
    let around = anchor(FILE, RANGE).unwrap();
    let text = lines::slice(FILE, RANGE.0, Some(RANGE.1)).unwrap();
    let wanted = WantedText { text, range: RANGE, anchor: Some(&around), symbol: None };
    let place = locate(&wanted, &now.replace("fn one", "fn none").replace("y * 2", "y * 3"));
    assert!(!matches!(place, TextMatch::At { start: 10, .. }), "{place:?}");
}
#[test]
fn brackets_with_new_lines_between_them_are_not_guessed() {
    let file = "def up do\n  alter do\n    add 1\n  end\nend\n\ndef down do\n  2\nend\n";
    let text = lines::slice(file, 4, Some(5)).unwrap();
    let around = anchor(file, (4, 5)).unwrap();
    let wanted = WantedText { text, range: (4, 5), anchor: Some(&around), symbol: None };
    let moved = format!("# One more.\n{file}");
    assert!(matches!(locate(&wanted, &moved), TextMatch::At { start: 5, end: 6, .. }));
    let now = file.replace("  end\nend\n\n", "  end\n  log 3\nend\n\n");
    assert!(matches!(locate(&wanted, &now), TextMatch::Unsure(_)));
}

#[test]
fn edited_lines_in_their_places_are_found_beside_new_ones() {
    let before = "(defvar scale 1000\n  \"The scale.\")\n";
    let now = "(defvar scale 5\n  \"The scale.\")\n";
    check_alike(before, (1, 2), &format!(";; A head.\n{now}"), Ok((2, 3)));
    check_alike(before, (1, 2), &format!("{now};; A foot.\n"), Ok((1, 2)));
    check_alike(before, (1, 2), &format!("(defvar scale 7)\n{now}"), Err(GONE));
    let around = |inner: &str| format!("(one)\n\n{inner}\n(two)\n");
    let (before, head) = (around(before), format!(";; A head.\n{now}"));
    check_alike(&before, (3, 4), &around(&head), Ok((4, 5)));
    let other = head.replace("The scale", "A scalar value");
    check_alike(&before, (3, 4), &around(&other), Err(GONE));
}

const ELIXIR: &str = "\
defmodule Jobs.Compute do
  @moduledoc \"Computes all groups.\"

  use Worker,
    queue: :default,
    attempts: 3,
    unique: [keys: [:project_id], period: 30]

  require Logger

  alias Jobs.Groups

  @impl true
  def perform(%Job{args: args}) do
    Logger.info(\"computing the groups of a project\")
    Groups.compute(args)
  end
end
";

/// Finds `perform` in an edited version of the file. Returns its first and its last line.
fn performs(now: &str) -> Option<(u64, u64)> {
    let (text, around) = (lines::slice(ELIXIR, 14, Some(17))?, anchor(ELIXIR, (14, 17))?);
    let (anchor, symbol) = (Some(&around), Some("perform"));
    let wanted = WantedText { text, range: (14, 17), anchor, symbol };
    match super::locate(&wanted, &Searched::new(now, "elixir")) {
        TextMatch::At { start, end, .. } => Some((start, end)),
        TextMatch::Unsure(_) => None,
    }
}

#[test]
fn a_method_that_was_written_anew_is_the_block_under_its_first_line() {
    let inner =
        "    Logger.info(\"computing the groups of a project\")\n    Groups.compute(args)\n";
    let other = "    args\n    |> Map.fetch!(:project)\n    |> start()\n";
    let now = ELIXIR.replace(inner, other).replace("@impl true", "@doc false");
    assert_eq!(performs(&now), Some((14, 18)));
    assert_eq!(performs(&now.replace("def perform(", "def begin(")), None);
    assert_eq!(performs(&now.replace("    |> start()\n  end", "    |> start()")), None);
}

#[test]
fn a_text_whose_last_word_was_moved_away_does_not_take_an_edited_line() {
    let header = "defmodule Jobs.Compute do\n";
    let moved = ELIXIR.replace("(args)\n  end\n", "(args)\ndefmodule Jobs.Compute28 do\n");
    let now = moved.replace(header, "  end\n");
    assert_eq!(performs(&now), None, "{now}");
}

/// Marks lines of a file and finds them in another version of it.
#[track_caller]
fn check_alike(before: &str, range: (u64, u64), now: &str, expected: Result<(u64, u64), &str>) {
    let text = lines::slice(before, range.0, Some(range.1)).unwrap();
    let around = anchor(before, range).unwrap();
    let wanted = WantedText { text, range, anchor: Some(&around), symbol: None };
    let found = match locate(&wanted, now) {
        TextMatch::At { start, end, .. } => Ok((start, end)),
        TextMatch::Unsure(reason) => Err(reason),
    };
    assert_eq!(found, expected, "{now}");
}

#[test]
fn a_look_alike_is_not_the_text() {
    let block = "try:\n    run()\nexcept E:\n    pass\n";
    let twice = format!("# A\n{block}# B\n{block}# C\n");
    check_alike(&twice, (7, 10), &format!("# A\n# B\n{block}# C\n"), Ok((3, 6)));
    check_alike(&twice, (7, 10), &format!("# A\n{block}# B\n# C\n"), Err(COPY));
    let once = format!("# A\n{block}# C\n");
    check_alike(&once, (2, 5), &format!("# Z\n{block}{once}"), Ok((7, 10)));
    let defs =
        "def a():\n    return None\n\ndef b():\n    return None\n\ndef c():\n    return None\n";
    check_alike(defs, (5, 5), &format!("# top\n{defs}"), Ok((6, 6)));
    let without = defs.replace("def b():\n    return None\n\n", "");
    check_alike(defs, (5, 5), &without, Err(SEVERAL));
    let old = "def a():\n    old()\n\ndef b():\n    target()\n\nend = 1\n";
    let new = "def a():\n    target()\n\ndef b():\n    new()\n\nend = 1\n";
    check_alike(old, (5, 5), new, Err(STRAY));
    let braces = "f() {\n  a\n}\ng() {\n  b\n}\nh() {\n  c\n}\n";
    check_alike(braces, (6, 6), &braces.replace("g() {\n  b\n}\n", ""), Err(SEVERAL));
}

#[test]
fn a_definition_that_was_edited_with_its_neighbours_is_the_block_under_its_first_line() {
    let before = "def a():\n    x = 1\n    return x\n\ndef b(y):\n    z = y + 2\n    return z\n\n\
                  def c():\n    return 3\n";
    let now = "def a(k):\n    w = k\n    return w\n\ndef b(y):\n    total = sum(y)\n    \
               log(total)\n    return total\n\ndef c(k):\n    return k * 3\n";
    let text = lines::slice(before, 5, Some(7)).unwrap();
    let around = anchor(before, (5, 7)).unwrap();
    let wanted = WantedText { text, range: (5, 7), anchor: Some(&around), symbol: Some("b") };
    let place = super::locate(&wanted, &Searched::new(now, "python"));
    assert_eq!(place, TextMatch::At { start: 5, end: 8, found: Found::Edited });
}

/// That this ends is what it checks: compared line by line, these texts take hours.
#[test]
fn a_long_text_is_found_only_where_it_moved() {
    let many = 10 * MOST_LINES;
    let numbered: Vec<String> = (0..many).map(|at| format!("line {at}\n")).collect();
    let reversed: String = numbered.iter().rev().map(String::as_str).collect();
    let equal = "x\n".repeat(many);
    for text in [numbered.concat(), equal.clone()] {
        let (file, range) = (format!("head\n{text}tail\n"), (2, many as u64 + 1));
        let around = super::anchor(&Searched::new(&file, ""), range);
        let wanted = WantedText { text: &text, range, anchor: around.as_ref(), symbol: None };
        let moved = TextMatch::At { start: 3, end: many as u64 + 2, found: Found::Moved };
        assert_eq!(locate(&wanted, &format!("new\n{file}")), moved);
        assert_eq!(locate(&wanted, &format!("{reversed}y\n")), TextMatch::Unsure(TOO_LONG));
        let longer = locate(&wanted, &format!("{equal}y\n{equal}{equal}"));
        let why = if text == equal { SEVERAL } else { TOO_LONG };
        assert_eq!(longer, TextMatch::Unsure(why));
    }
}
