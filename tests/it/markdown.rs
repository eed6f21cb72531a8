//! What is rendered, byte for byte, in the Markdown of the protocol and in the other formats.

use crate::support::*;

/// Adds items by their plists and checks the rendering of them all.
#[track_caller]
fn check(items: &[&str], expected: &str) {
    check_as("markdown", items, expected);
}

#[track_caller]
fn check_as(format: &str, items: &[&str], expected: &str) {
    let mut client = Home::new().ephemeral(&[]);
    for item in items {
        client.ok("add-context", item);
    }
    let text = client.ok("context-to-string", &format!("(:format :{format})"));
    assert_eq!(text, expected);
}

/// Checks the one fence of an item with this plist.
#[track_caller]
fn check_fence(item: &str, expected: &str) {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("add-context", item);
    let text = client.ok("context-to-string", "nil");
    let fence = text.as_str().unwrap().lines().nth(3).unwrap();
    assert_eq!(fence, expected, "{item}");
}

#[test]
fn the_sample_of_the_protocol_byte_for_byte() {
    check(
        &[
            r#"(:type :code :content "(defun send-to-agent (instruction) …)"
                :metadata (:filename "src/agent.lisp" :start-line 42 :end-line 58))"#
                .replace('\n', " ")
                .as_str(),
            r#"(:type :repl-history :content "…")"#,
        ],
        "## Context\n\n### Code (from src/agent.lisp:42-58)\n```lisp\n\
         (defun send-to-agent (instruction) …)\n```\n\n### Repl-History\n```lisp\n…\n```\n\n",
    );
}

#[test]
fn an_empty_manager_gives_the_header_and_the_blank_line() {
    check(&[], "## Context\n\n");
}

#[test]
fn the_annotation_needs_a_file_name_and_the_range_needs_both_lines() {
    let heading = |metadata: &str, expected: &str| {
        let item = format!("(:content \"x\" :metadata ({metadata}))");
        check(&[&item], &format!("## Context\n\n### Code{expected}\n```lisp\nx\n```\n\n"));
    };
    heading("", "");
    heading(":start-line 1 :end-line 2", "");
    heading(":filename \"a.lisp\"", " (from a.lisp)");
    heading(":filename \"a.lisp\" :start-line 3", " (from a.lisp)");
    heading(":filename \"a.lisp\" :end-line 3", " (from a.lisp)");
    heading(":filename \"a.lisp\" :start-line 3 :end-line 3", " (from a.lisp:3)");
    heading(":filename nil :start-line 3 :end-line 3", "");
}

#[test]
fn file_names_are_shown_relative_to_their_project() {
    let item = r#"(:content "x" :metadata (:filename "/p/src/a.lisp" :project "/p/"))"#;
    check(&[item], "## Context\n\n### Code (from src/a.lisp)\n```lisp\nx\n```\n\n");
}

#[test]
fn file_names_cannot_break_the_header() {
    let item = r#"(:content "x" :metadata (:filename "a\n### Code\r\u2028b.lisp"))"#;
    let heading = r"### Code (from a\n### Code\r\u{2028}b.lisp)";
    check(&[item], &format!("## Context\n\n{heading}\n```lisp\nx\n```\n\n"));
}

#[test]
fn the_final_newline_is_added_only_if_it_is_missing() {
    check(&[r#"(:content "x\n")"#], "## Context\n\n### Code\n```lisp\nx\n```\n\n");
    check(&[r#"(:content "x\n\n")"#], "## Context\n\n### Code\n```lisp\nx\n\n```\n\n");
    check(&[r#"(:content "x")"#], "## Context\n\n### Code\n```lisp\nx\n```\n\n");
}

#[test]
fn content_is_verbatim() {
    check(
        &[r#"(:content "\tä <b> \\n \" \r\nλ😀\x7f")"#],
        "## Context\n\n### Code\n```lisp\n\tä <b> \\n \" \r\nλ😀\x7f\n```\n\n",
    );
}

#[test]
fn a_fence_is_one_longer_than_the_longest_run_that_begins_a_line() {
    check_fence(r#"(:content "``")"#, "```lisp");
    check_fence(r#"(:content "a ````` b")"#, "```lisp");
    check_fence(r#"(:content "```\nx\n```")"#, "````lisp");
    check_fence(r#"(:content "x\n``````")"#, "```````lisp");
    check(
        &[r#"(:type :text :content "````")"#],
        "## Context\n\n### Text\n`````text\n````\n`````\n\n",
    );
}

#[test]
fn the_language_comes_from_the_first_sign_that_says_something() {
    let named = |metadata: &str, expected: &str| {
        check_fence(&format!("(:content \"#!/bin/sh\" :metadata ({metadata}))"), expected);
    };
    named(":language \"rust\" :filename \"a.py\"", "```rust");
    named(":language \"emacs-lisp-mode\" :filename \"a.py\"", "```elisp");
    named(":filename \"a.py\"", "```python");
    named(":filename \"Makefile\"", "```makefile");
    named(":filename \"unknown\"", "```sh");
    check_fence(r#"(:content ";; -*- mode: python -*-")"#, "```python");
    check_fence(r#"(:content "x")"#, "```lisp");
    check_fence(r#"(:type :error :content "x")"#, "```lisp");
    check_fence(r#"(:type :repl-history :content "x")"#, "```lisp");
    check_fence(r#"(:type :text :content "x")"#, "```text");
}

#[test]
fn a_language_cannot_break_the_fence() {
    check_fence(r#"(:content "x" :metadata (:language "a`b\nc d"))"#, "```abcd");
}

#[test]
fn every_type_has_its_heading() {
    let mut client = Home::new().ephemeral(&[]);
    for kind in ["code", "text", "file", "repl-history", "error", "custom"] {
        client.ok("add-context", &format!("(:content \"x\" :type :{kind})"));
    }
    let text = client.ok("context-to-string", "nil");
    let headings: Vec<&str> =
        text.as_str().unwrap().lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(headings, ["Code", "Text", "File", "Repl-History", "Error", "Custom"]);
}

#[test]
fn xml_cannot_be_closed_by_content() {
    check_as(
        "xml",
        &[
            r#"(:content "a</item></context>&]]>" :metadata (:filename "q\"<.rs" :start-line 1 :end-line 2))"#,
        ],
        "<context>\n<item id=\"ctx-1\" type=\"code\" file=\"q&quot;&lt;.rs\" lines=\"1-2\" \
         language=\"rust\">\na&lt;/item&gt;&lt;/context&gt;&amp;]]&gt;\n</item>\n</context>\n",
    );
    check_as("xml", &[], "<context>\n</context>\n");
}

#[test]
fn org_blocks_are_comma_escaped() {
    check_as(
        "org",
        &[r#"(:content "* a\n#+end_src\nb" :metadata (:filename "a.el"))"#],
        "* Context\n\n** Code (from a.el)\n#+begin_src elisp\n,* a\n,#+end_src\nb\n#+end_src\n\n",
    );
    check_as("org", &[], "* Context\n\n");
}

#[test]
fn json_is_json() {
    let mut client = Home::new().ephemeral(&[]);
    let params = r#"(:content "a\"\n" :metadata (:filename "a.el" :start-line 1 :end-line 2))"#;
    client.ok("add-context", params);
    client.add("*shared*", "b");
    let text = client.ok("context-to-string", "(:format :json)");
    let parsed: Json = serde_json::from_str(text.as_str().unwrap()).unwrap();
    let first = &parsed["items"][0];
    assert_eq!((&first["content"], &first["file"]), (&"a\"\n".into(), &"a.el".into()));
    assert_eq!((&first["type"], &first["language"]), (&"code".into(), &"elisp".into()));
    assert_eq!(first["lines"], serde_json::json!([1, 2]));
    assert_eq!(parsed["items"][1]["id"], "ctx-2");
}

#[test]
fn an_unknown_format_is_an_error_that_lists_the_formats() {
    let error = Home::new().ephemeral(&[]).fails("context-to-string", "(:format :html)");
    assert_eq!((error.code, error.param()), (-32602, "format"));
    for format in ["markdown", "xml", "org", "json"] {
        assert!(error.message.contains(format), "{error:?}");
    }
}

#[test]
fn a_rendering_never_exceeds_max_tokens_and_reports_what_went() {
    let mut client = Home::new().ephemeral(&[]);
    for number in 0..12 {
        let content = format!("line {number} of code\n").repeat(1 + number);
        client.add("*shared*", &content);
    }
    client.ok("update-items", "(:pinned t :id \"ctx-3\")");
    let whole = client.ok("render-items", "nil");
    let all = whole["tokens"].as_u64().unwrap();
    assert_eq!(whole["text"], client.ok("context-to-string", "nil"));
    for format in ["markdown", "xml", "org", "json"] {
        for budget in (0..=all + 50).step_by(13) {
            let params = format!("(:max-tokens {budget} :format :{format})");
            let rendered = match client.call("render-items", &params) {
                Ok(rendered) => rendered,
                Err(error) => {
                    assert_eq!((error.code, error.kind()), (1, "budget-too-small"));
                    continue;
                }
            };
            assert!(rendered["tokens"].as_u64().unwrap() <= budget, "{format} {budget}");
            assert_eq!(client.ok("context-to-string", &params), rendered["text"]);
            let report = rendered["report"].as_array().unwrap();
            assert_eq!(report.len(), 12);
            for verdict in report {
                let id = verdict["id"].as_str().unwrap();
                let number: usize = id[4..].parse().unwrap();
                let shown =
                    rendered["text"].as_str().unwrap().contains(&format!("line {} of", number - 1));
                let expected = verdict["fate"] != "dropped" && verdict["lines_kept"] != 0;
                assert_eq!(shown, expected, "{format} {budget} {verdict}");
                assert!(!verdict["reason"].as_str().unwrap().is_empty());
            }
        }
    }
}

#[test]
fn the_oldest_unpinned_items_are_left_out_first() {
    let mut client = Home::new().ephemeral(&[]);
    for name in ["one", "two", "three"] {
        client.add("*shared*", &format!("{name}\n").repeat(20));
    }
    client.ok("update-items", "(:pinned t :id \"ctx-1\")");
    let all = client.ok("render-items", "nil")["tokens"].as_u64().unwrap();
    let rendered = client.ok("render-items", &format!("(:max-tokens {})", all - 1));
    let fates: Vec<_> = rendered["report"].as_array().unwrap().iter().map(|v| &v["fate"]).collect();
    assert_eq!(fates, ["kept", "dropped", "kept"]);
}

#[test]
fn an_item_too_big_by_itself_is_cut_at_a_line_with_a_visible_marker() {
    let mut client = Home::new().ephemeral(&["--tokenizer", "o200k"]);
    client.add("*shared*", &"some words on a line\n".repeat(500));
    let rendered = client.ok("render-items", "(:max-tokens 100)");
    assert!(rendered["tokens"].as_u64().unwrap() <= 100);
    assert_eq!(rendered["token_counter"], "o200k");
    let text = rendered["text"].as_str().unwrap();
    let marker = text.lines().rev().nth(2).unwrap();
    assert!(marker.contains("of 500 lines left out"), "{text}");
    assert_eq!(rendered["report"][0]["fate"], "cut");
    let error = client.fails("context-to-string", "(:max-tokens 3)");
    assert_eq!(error.kind(), "budget-too-small");
    assert_eq!(error.data["max_tokens"], 3);
}

#[test]
fn a_negative_budget_is_an_error_that_names_it() {
    let error = Home::new().ephemeral(&[]).fails("render-items", "(:max-tokens -1)");
    assert_eq!((error.code, error.param()), (-32602, "max-tokens"));
}
