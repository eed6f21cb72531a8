//! Tests of whole texts in each format. They also show that no content or name breaks out of its
//! place.

use proptest::prelude::*;

use super::*;
use crate::context::item::Kind;
use crate::context::testing::{With, code, item};
use crate::visible::visible_lines;

#[track_caller]
fn check(items: &[Item], format: Format, expected: &str) {
    assert_eq!(render(items, format), expected);
}

/// Makes a region of a file in a project, and a REPL history without metadata.
fn two() -> Vec<Item> {
    vec![
        code(1, "(defun f ())")
            .in_file("/home/me/agent/src/agent.lisp")
            .with("project", "/home/me/agent")
            .at_lines(42, 58),
        item(2, Kind::ReplHistory, "> (f)\nNIL\n"),
    ]
}

#[test]
fn markdown_is_as_the_protocol_says() {
    check(&[], Format::Markdown, "## Context\n\n");
    check(
        &two(),
        Format::Markdown,
        "## Context\n\n\
         ### Code (from src/agent.lisp:42-58)\n```lisp\n(defun f ())\n```\n\n\
         ### Repl-History\n```lisp\n> (f)\nNIL\n```\n\n",
    );
}

#[test]
fn markdown_annotations_need_a_name_and_ranges_need_both_lines() {
    let mut half = code(2, "x").in_file("a.rs");
    half.metadata.set("start-line", contexture_value::Value::Int(3));
    check(
        &[code(1, "x").at_lines(1, 2), half],
        Format::Markdown,
        "## Context\n\n### Code\n```lisp\nx\n```\n\n### Code (from a.rs)\n```rust\nx\n```\n\n",
    );
}

#[test]
fn a_diff_is_not_called_lines_of_its_file() {
    let diff = item(1, Kind::Text, "-x\n+y\n").with("origin", "diff").with("language", "diff");
    let items = [diff.in_file("/p/a.rs").at_lines(1, 2)];
    check(
        &items,
        Format::Markdown,
        "## Context\n\n### Text (changes of /p/a.rs:1-2)\n```diff\n-x\n+y\n```\n\n",
    );
    let org = render(&items, Format::Org);
    assert!(org.contains("** Text (changes of /p/a.rs:1-2)\n"), "{org}");
}

#[test]
fn every_type_has_its_title() {
    for kind in Kind::ALL {
        let title = kind.title();
        let language = language::of_item(&item(1, *kind, "x"));
        let expected = format!("## Context\n\n### {title}\n```{language}\nx\n```\n\n");
        check(&[item(1, *kind, "x")], Format::Markdown, &expected);
    }
}

#[test]
fn content_is_verbatim_and_never_closes_its_fence() {
    check(
        &[
            item(1, Kind::Text, "a\r\n  ```` b\n\n\n"),
            item(2, Kind::Text, ""),
            item(3, Kind::Text, "\n"),
            item(4, Kind::Text, "end\r"),
        ],
        Format::Markdown,
        "## Context\n\n\
         ### Text\n`````text\na\r\n  ```` b\n\n\n`````\n\n\
         ### Text\n```text\n```\n\n\
         ### Text\n```text\n\n```\n\n\
         ### Text\n```text\nend\r\n```\n\n",
    );
}

#[test]
fn names_cannot_break_a_heading() {
    let name = "a\nb\r\t\u{1b}[0m\u{85}\u{2028}\u{2029}\u{202e}\u{feff}é\\n語 #.rs";
    let visible = "a\\nb\\r\\t\\u{1b}[0m\\u{85}\\u{2028}\\u{2029}\\u{202e}\\u{feff}é\\n語 #.rs";
    let items = [code(1, "x").in_file(name)];
    let markdown = format!("## Context\n\n### Code (from {visible})\n```rust\nx\n```\n\n");
    check(&items, Format::Markdown, &markdown);
    let org = format!("* Context\n\n** Code (from {visible})\n#+begin_src rust\nx\n#+end_src\n\n");
    check(&items, Format::Org, &org);
}

#[test]
fn xml_escapes_bodies_and_attributes() {
    check(&[], Format::Xml, "<context>\n</context>\n");
    check(
        &two(),
        Format::Xml,
        "<context>\n\
         <item id=\"ctx-1\" type=\"code\" file=\"src/agent.lisp\" lines=\"42-58\" language=\"lisp\">\n\
         (defun f ())\n</item>\n\
         <item id=\"ctx-2\" type=\"repl-history\" language=\"lisp\">\n&gt; (f)\nNIL\n</item>\n\
         </context>\n",
    );
    check(
        &[item(7, Kind::Text, "</item>\n</context>\0").in_file("\"<a&b>\n'\".txt"), code(8, "")],
        Format::Xml,
        "<context>\n\
         <item id=\"ctx-7\" type=\"text\" file=\"&quot;&lt;a&amp;b&gt;\\n'&quot;.txt\" language=\"text\">\n\
         &lt;/item&gt;\n&lt;/context&gt;\u{fffd}\n</item>\n\
         <item id=\"ctx-8\" type=\"code\" language=\"lisp\">\n</item>\n\
         </context>\n",
    );
}

#[test]
fn org_makes_source_blocks() {
    check(&[], Format::Org, "* Context\n\n");
    check(
        &[two().remove(0), item(2, Kind::Text, "* a\n#+end_src"), code(3, "")],
        Format::Org,
        "* Context\n\n\
         ** Code (from src/agent.lisp:42-58)\n#+begin_src lisp\n(defun f ())\n#+end_src\n\n\
         ** Text\n#+begin_src text\n,* a\n,#+end_src\n#+end_src\n\n\
         ** Code\n#+begin_src lisp\n#+end_src\n\n",
    );
}

#[test]
fn json_is_one_object() {
    check(&[], Format::Json, r#"{"items":[]}"#);
    check(
        &two(),
        Format::Json,
        concat!(
            r#"{"items":[{"id":"ctx-1","type":"code","content":"(defun f ())","#,
            r#""file":"src/agent.lisp","lines":[42,58],"language":"lisp"},"#,
            r#"{"id":"ctx-2","type":"repl-history","content":"> (f)\nNIL\n","language":"lisp"}]}"#
        ),
    );
}

#[test]
fn formats_have_their_wire_names() {
    assert_eq!(Format::default(), Format::Markdown);
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(*format));
        let quoted = format!("\"{}\"", format.name());
        assert_eq!(serde_json::to_string(format).unwrap(), quoted);
    }
    assert_eq!(Format::from_name("html"), None);
}

/// Returns the text after the fenced block with which `markdown` begins, read as `CommonMark` reads
/// it.
fn after_block(markdown: &str) -> &str {
    let fence = markdown.bytes().take_while(|byte| *byte == b'`').count();
    let mut rest = markdown;
    while let Some(end) = rest.find(['\n', '\r']) {
        rest = &rest[end + 1..];
        let line = rest.split(['\n', '\r']).next().unwrap_or_default();
        let code = line.trim_start_matches(' ');
        let run = code.bytes().take_while(|byte| *byte == b'`').count();
        if line.len() - code.len() < 4
            && run >= fence
            && code[run..].trim_matches([' ', '\t']).is_empty()
        {
            return &rest[line.len()..];
        }
    }
    panic!("the block is not closed: {markdown:?}")
}

/// Removes Org's commas from `text`, as `org-unescape-code-in-string` does.
fn org_unescaped(text: &str) -> String {
    let unescape = |line: &str| {
        let code = line.trim_start_matches([' ', '\t']);
        let sign = code.trim_start_matches(',');
        let escaped = code.len() > sign.len() && (sign.starts_with('*') || sign.starts_with("#+"));
        format!("{}{}", &line[..line.len() - code.len()], &code[usize::from(escaped)..])
    };
    text.split_inclusive('\n').map(unescape).collect()
}

proptest! {
    #[test]
    fn no_content_closes_its_fence(content in "(`{1,5}|[ \t]{1,4}|\n|\r|x|~~~|\u{2028}){0,30}") {
        let text = render([&item(1, Kind::Text, &content)], Format::Markdown);
        let block = text.strip_prefix("## Context\n\n### Text\n").unwrap();
        prop_assert_eq!(after_block(block), "\n\n");
    }

    #[test]
    fn no_content_closes_its_element(content in "(<|>|&|\\]\\]>|</item>|<!--|\0|[a-z\u{fff0}-\u{ffff}]|\n){0,30}") {
        let text = render([&item(1, Kind::Text, &content)], Format::Xml);
        let body = text.strip_prefix("<context>\n<item id=\"ctx-1\" type=\"text\" language=\"text\">\n");
        let body = body.unwrap().strip_suffix("</item>\n</context>\n").unwrap();
        let forbidden = ['<', '>', '\0', '\u{fffe}', '\u{ffff}'];
        prop_assert!(!body.contains(forbidden));
        let plain = body.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        let expected = content.replace(['\0', '\u{fffe}', '\u{ffff}'], "\u{fffd}");
        prop_assert_eq!(plain.trim_end_matches('\n'), expected.trim_end_matches('\n'));
    }

    #[test]
    fn org_blocks_give_their_content_back(content in "([ \t]|,|\\*|#\\+|#|\n|end_src|x|\r){0,30}\n") {
        let text = render([&item(1, Kind::Text, &content)], Format::Org);
        let body = text.strip_prefix("* Context\n\n** Text\n#+begin_src text\n").unwrap();
        let body = body.strip_suffix("#+end_src\n\n").unwrap();
        let opens = |line: &str| line.starts_with('*') || line.trim_start_matches([' ', '\t']).starts_with("#+");
        prop_assert!(!body.lines().any(opens), "{}", body);
        prop_assert_eq!(org_unescaped(body), content);
    }

    #[test]
    fn headings_are_one_line_whatever_the_name(name in "(\\PC|[\0-\u{9f}]|\u{2028}|\u{2029}|\u{202e}){0,20}") {
        for format in [Format::Markdown, Format::Org] {
            let text = render([&item(1, Kind::Text, "x").in_file(&name)], format);
            let lines = text.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
            prop_assert_eq!(lines.count(), 8);
        }
    }

    #[test]
    fn nothing_hides_in_a_name(name in "(a|\\p{C}|\\p{Cf}|\\PC|[\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}]){0,20}") {
        for format in Format::ALL {
            let text = render([&item(1, Kind::Text, "x").in_file(&name)], *format);
            prop_assert_eq!(visible_lines(&text), &*text);
        }
        let text = render([&item(1, Kind::Text, "x").in_file(&name)], Format::Json);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read["items"][0]["file"], &name, "programs read the name as it is");
    }
}
