//! Tests of what is kept, cut and dropped, and of the promises for any items and budget.

use crate::testing::rounds;
use proptest::prelude::*;

use super::*;
use crate::context::item::{ItemId, Kind};
use crate::context::render::render;
use crate::context::testing::{With, code, item};
use crate::tokens::{Bpe, Estimate};

fn pieces<'a>(items: &'a [Item], pinned: &[u64]) -> Vec<Piece<'a>> {
    items.iter().map(|item| Piece { item, pinned: pinned.contains(&item.id.0), since: 0 }).collect()
}

/// Makes ten items of 60 characters. Each section has 21 tokens by the estimate (83 characters).
fn ten() -> Vec<Item> {
    (1..=10).map(|id| code(id, &format!("{id:<60}"))).collect()
}

/// Checks which items are whole in the text, in order, and that the report agrees.
#[track_caller]
fn check(pinned: &[u64], max_tokens: Option<u64>, kept: &[u64]) -> Fitted {
    let items = ten();
    let fitted = fit(&pieces(&items, pinned), Format::Markdown, max_tokens, &Estimate).unwrap();
    let whole = items.iter().filter(|item| kept.contains(&item.id.0));
    assert_eq!(fitted.text, render(whole, Format::Markdown));
    assert_eq!(fitted.tokens, Estimate.count(&fitted.text));
    let reported: Vec<ItemId> =
        fitted.report.iter().filter(|v| v.fate == ItemFate::Kept).map(|v| v.id).collect();
    assert_eq!(reported, kept.iter().map(|id| ItemId(*id)).collect::<Vec<_>>());
    fitted
}

/// Checks the text of a single item that is cut, the number of lines kept, and the total.
#[track_caller]
fn check_cut(item: &Item, format: Format, max_tokens: u64, expected: &str, lines: (u64, u64)) {
    let piece = [Piece { item, pinned: false, since: 0 }];
    let fitted = fit(&piece, format, Some(max_tokens), &Estimate).unwrap();
    assert_eq!(fitted.text, expected);
    assert!(fitted.tokens <= max_tokens);
    let (lines_kept, lines_total) = lines;
    assert_eq!(fitted.report[0].fate, ItemFate::Cut { lines_kept, lines_total });
}

#[test]
fn without_a_budget_or_within_it_everything_is_kept() {
    let all = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    let fitted = check(&[3], None, &all);
    assert_eq!(fitted.tokens, 211);
    assert_eq!(check(&[3], Some(211), &all).text, fitted.text);
}

#[test]
fn the_oldest_unpinned_goes_first() {
    check(&[], Some(210), &[2, 3, 4, 5, 6, 7, 8, 9, 10]);
    check(&[], Some(50), &[9, 10]);
    check(&[1, 2], Some(90), &[1, 2, 9, 10]);
    check(&[4], Some(30), &[4]);
}

#[test]
fn the_oldest_pinned_goes_after_all_that_are_not_pinned() {
    let fitted = check(&[2, 5, 7], Some(45), &[5, 7]);
    let reason = |id: usize| fitted.report[id - 1].reason.as_str();
    assert_eq!(reason(2), "pinned, but older than the pinned items that fit in 45 tokens");
    assert_eq!(reason(5), "pinned, and fits in 45 tokens");
    assert_eq!(reason(10), "not pinned, and the pinned items leave no room for it in 45 tokens");
    let fitted = check(&[], Some(30), &[10]);
    assert_eq!(fitted.report[8].reason, "older than the items that fit in 30 tokens");
    assert_eq!((fitted.report[8].tokens, fitted.report[9].tokens), (0, 21));
}

#[test]
fn the_last_item_left_is_cut_at_a_line_end() {
    let lines: String = (1..=300).map(|line| format!("(line {line})\n")).collect();
    check_cut(
        &item(1, Kind::Code, &lines).in_file("a.lisp"),
        Format::Markdown,
        40,
        "## Context\n\n### Code (from a.lisp)\n```lisp\n(line 1)\n(line 2)\n(line 3)\n(line 4)\n\
         (line 5)\n(line 6)\n[… 294 of 300 lines left out to fit the token budget]\n```\n\n",
        (6, 300),
    );
    check_cut(
        &code(1, &lines),
        Format::Org,
        34,
        "* Context\n\n** Code\n#+begin_src lisp\n(line 1)\n(line 2)\n(line 3)\n\
         [… 297 of 300 lines left out to fit the token budget]\n#+end_src\n\n",
        (3, 300),
    );
}

#[test]
fn the_newest_item_is_cut_beside_pinned_and_small_ones() {
    let lines: String = (1..=300).map(|line| format!("(line {line})\n")).collect();
    let items = [
        item(1, Kind::Code, "(old)"),
        item(2, Kind::Code, "(pinned)"),
        item(3, Kind::Code, &lines),
        item(4, Kind::Code, "(also pinned)"),
    ];
    let fitted = fit(&pieces(&items, &[2, 4]), Format::Markdown, Some(60), &Estimate).unwrap();
    assert_eq!(
        fitted.text,
        "## Context\n\n### Code\n```lisp\n(old)\n```\n\n### Code\n```lisp\n(pinned)\n```\n\n\
         ### Code\n```lisp\n(line 1)\n(line 2)\n(line 3)\n(line 4)\n(line 5)\n(line 6)\n\
         [… 294 of 300 lines left out to fit the token budget]\n```\n\n### Code\n```lisp\n\
         (also pinned)\n```\n\n"
    );
    let reasons = fitted.report.iter().map(|verdict| verdict.reason.as_str()).collect::<Vec<_>>();
    assert_eq!(fitted.report[0].fate, ItemFate::Kept);
    assert_eq!(reasons[2], "too large for what the other items leave of 60 tokens");
    assert_eq!(fitted.report[2].fate, ItemFate::Cut { lines_kept: 6, lines_total: 300 });
}

#[test]
fn a_newest_item_that_is_larger_than_the_budget_does_not_push_out_small_ones() {
    let lines: String = (1..=300).map(|line| format!("(line {line})\n")).collect();
    let items = [
        item(1, Kind::Code, "(old)"),
        item(2, Kind::Code, "(newer)"),
        item(3, Kind::Code, &lines),
        item(4, Kind::Code, &lines),
    ];
    let fitted = fit(&pieces(&items, &[]), Format::Markdown, Some(60), &Estimate).unwrap();
    assert!(fitted.tokens <= 60 && fitted.text.contains("(old)"), "{}", fitted.text);
    assert!(fitted.text.contains("(newer)") && fitted.text.contains("(line 1)\n"));
    let fates: Vec<_> = fitted.report.iter().map(|verdict| verdict.fate).collect();
    assert_eq!(fates[..3], [ItemFate::Kept, ItemFate::Kept, ItemFate::Dropped]);
    assert!(matches!(fates[3], ItemFate::Cut { lines_total: 300, .. }), "{fates:?}");
    for verdict in &fitted.report[2..] {
        assert_eq!(verdict.reason, "too large for what the other items leave of 60 tokens");
    }
}

#[test]
fn a_line_that_is_too_long_is_cut_between_characters() {
    let long = "é".repeat(1000);
    check_cut(
        &item(1, Kind::Text, &long),
        Format::Markdown,
        30,
        "## Context\n\n### Text\n```text\nééééééééééééééééééééééééé\n\
         [… 975 of 1000 characters left out to fit the token budget]\n```\n\n",
        (0, 1),
    );
    check_cut(
        &item(1, Kind::Text, &format!("{long}\nnext\n")),
        Format::Markdown,
        23,
        "## Context\n\n### Text\n```text\n\
         [… 2 of 2 lines left out to fit the token budget]\n```\n\n",
        (0, 2),
    );
}

#[test]
fn a_cut_text_is_well_formed() {
    let hostile = "<a>&\"\\\n".repeat(200);
    check_cut(
        &code(1, &hostile),
        Format::Json,
        45,
        "{\"items\":[{\"id\":\"ctx-1\",\"type\":\"code\",\"content\":\"<a>&\\\"\\\\\\n<a>&\\\"\\\\\\n\
         <a>&\\\"\\\\\\n<a>&\\\"\\\\\\n<a>&\\\"\\\\\\n[… 195 of 200 lines left out to fit the token budget]\\n\",\
         \"language\":\"lisp\"}]}",
        (5, 200),
    );
    check_cut(
        &code(1, &hostile),
        Format::Xml,
        41,
        "<context>\n<item id=\"ctx-1\" type=\"code\" language=\"lisp\">\n&lt;a&gt;&amp;\"\\\n\
         &lt;a&gt;&amp;\"\\\n[… 198 of 200 lines left out to fit the token budget]\n</item>\n\
         </context>\n",
        (2, 200),
    );
}

#[test]
fn the_error_names_a_budget_that_is_large_enough() {
    let items = [code(1, &"x".repeat(1000)), code(2, &"y".repeat(1000))];
    let pieces = pieces(&items, &[]);
    let error = fit(&pieces, Format::Markdown, Some(5), &Estimate).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a budget of 5 tokens is too small: these items need at least 21"
    );
    assert!(fit(&pieces, Format::Markdown, Some(20), &Estimate).is_err());
    assert!(fit(&pieces, Format::Markdown, Some(21), &Estimate).is_ok());
    let error = fit(&[], Format::Markdown, Some(2), &Estimate).unwrap_err();
    assert_eq!(error, RenderBudgetTooSmall { needed: 3, max_tokens: 2 });
    assert_eq!(fit(&[], Format::Markdown, Some(3), &Estimate).unwrap().text, "## Context\n\n");
}

/// Checks the promises that hold for any result.
fn check_promises(items: &[Item], pins: &[bool], format: Format, max: u64, counter: &dyn Counter) {
    let pieces: Vec<Piece<'_>> = items
        .iter()
        .zip(pins)
        .map(|(item, pinned)| Piece { item, pinned: *pinned, since: 0 })
        .collect();
    let result = fit(&pieces, format, Some(max), counter);
    assert_eq!(result, fit(&pieces, format, Some(max), counter), "a second call differs");
    let fitted = match result {
        Ok(fitted) => fitted,
        Err(error) => {
            assert!(error.needed > max, "{error}");
            let enough = fit(&pieces, format, Some(error.needed), counter);
            return assert!(enough.is_ok_and(|fitted| fitted.tokens <= error.needed));
        }
    };
    assert!(fitted.tokens <= max, "{} of {max} tokens", fitted.tokens);
    assert_eq!(fitted.tokens, counter.count(&fitted.text));
    assert_eq!(fitted.report.len(), items.len());
    let with = |fate: fn(ItemFate) -> bool| {
        let verdicts = fitted.report.iter().zip(&pieces);
        verdicts.filter(move |(verdict, _)| fate(verdict.fate)).map(|(_, piece)| *piece)
    };
    let is_large = |piece: Piece<'_>| {
        let mut section = String::new();
        crate::context::render::section(piece.item, format, &mut section);
        counter.count(&section) > max
    };
    let kept: Vec<Piece<'_>> = with(|fate| fate == ItemFate::Kept).collect();
    let cut = with(|fate| matches!(fate, ItemFate::Cut { .. })).count();
    if cut == 0 {
        assert_eq!(fitted.text, render(kept.iter().map(|piece| piece.item), format));
    } else {
        assert_eq!(cut, 1, "more than one item is cut");
        let mut are_large = with(|fate| matches!(fate, ItemFate::Cut { .. })).map(is_large);
        let is_alone = kept.iter().all(|piece| piece.pinned);
        assert!(is_alone || are_large.all(|it| it), "a small item is cut beside an unpinned one");
    }
    for dropped in with(|fate| fate == ItemFate::Dropped).filter(|piece| !is_large(*piece)) {
        let goes_later =
            |other: &Piece<'_>| (dropped.pinned, dropped.item.id) < (other.pinned, other.item.id);
        assert!(kept.iter().all(goes_later), "{} went too early", dropped.item.id);
    }
    let everything = render(items, format);
    if counter.count(&everything) <= max {
        assert_eq!(fitted.text, everything, "an item is missing although all fit");
    }
    if format == Format::Json {
        serde_json::from_str::<serde_json::Value>(&fitted.text).unwrap();
    }
}

fn contents() -> impl Strategy<Value = Vec<(String, bool)>> {
    let content = prop_oneof![
        "[a-z (),;\n]{0,200}",
        "(```|\n|\r|<|>|&|\"|é|東|,\\*|#\\+end_src|[a-z]{1,9} ){0,60}",
        "[a-z]{300,400}",
    ];
    prop::collection::vec((content, any::<bool>()), 0..8)
}

fn check_contents(contents: Vec<(String, bool)>, format: usize, max: u64, counter: &dyn Counter) {
    let (contents, pins): (Vec<String>, Vec<bool>) = contents.into_iter().unzip();
    let items: Vec<Item> = (1..).zip(&contents).map(|(id, text)| code(id, text)).collect();
    check_promises(&items, &pins, Format::ALL[format], max, counter);
}

#[test]
fn the_budget_that_an_error_names_is_enough_though_another_item_is_cut() {
    let contents = vec![(String::new(), true), ("`".repeat(9), true)];
    check_contents(contents, 0, 0, &Estimate);
}

proptest! {
    #[test]
    fn promises_hold_by_the_estimate(c in contents(), format in 0..4usize, max in 0..600u64) {
        check_contents(c, format, max, &Estimate);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(32, 256)))]

    #[test]
    fn promises_hold_by_byte_pairs(c in contents(), format in 0..4usize, max in 0..600u64) {
        check_contents(c, format, max, &Bpe::O200K);
    }
}
