//! Facts that stand in one place of the program: what is generated from them is fresh, and what
//! others say of them is true.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use contexture_program::internals::provider::Family;
use contexture_program::internals::rpc::Topic;

use crate::house::sources;
use crate::support::Home;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text between the first `begin` of a page and the next `end`.
fn between<'a>(page: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = page.split_once(begin).unwrap_or_else(|| panic!("there is no {begin:?}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end:?} after {begin:?}")).0
}

#[test]
fn the_emacs_package_has_the_facts_of_the_server() {
    let program = env!("CARGO_BIN_EXE_contexture");
    let output = Command::new(program).args(["schema", "--emacs"]).output().unwrap();
    let generated = String::from_utf8(output.stdout).unwrap();
    let kept = page("elisp/contexture-generated.el");
    assert!(kept == generated, "elisp/contexture-generated.el is stale: run `make docs`");
}

#[test]
fn the_manual_names_the_kinds_of_providers() {
    let manual = page("docs/contexture.texi");
    for family in Family::ALL {
        assert!(manual.contains(&format!("@code{{{}}}", family.name())), "{}", family.name());
    }
}

#[test]
fn every_topic_is_described_and_emacs_asks_for_none_that_there_is_not() {
    let topics: BTreeSet<&str> = Topic::ALL.iter().map(|topic| topic.name()).collect();
    let page_text = page("docs/protocol.md");
    let section =
        between(&page_text, "<!-- notifications: begin -->", "<!-- notifications: end -->");
    let headings = section.lines().filter(|line| line.starts_with("#### `"));
    let described: BTreeSet<&str> = headings.map(|line| between(line, "`", "`")).collect();
    // What a client with tools gets needs no subscription.
    let told = topics.iter().copied().chain(["tool-called", "tool-cancelled"]);
    assert_eq!(described, told.collect());
    let source = page("elisp/contexture-conversations.el");
    let asked = between(&source, "(defconst contexture-conversations--topics\n  '(", ")");
    for topic in asked.split_whitespace() {
        assert!(topics.contains(topic), "{topic}");
    }
}

/// What a default is, its constant says. A parameter has `format!` of the constant as its description,
/// so that the reference changes with it.
#[test]
fn no_comment_of_a_parameter_has_a_default_as_a_number() {
    let number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let said = |text: &str| {
        let after = ["defaults to ", "by default "].iter();
        after.flat_map(|words| text.split(words).skip(1)).any(number)
            || text
                .rsplit(" by default")
                .skip(1)
                .any(|before| before.rsplit(' ').next().is_some_and(number))
    };
    assert!(said("defaults to 1") && said("x; 8 by default.") && said("by default 1 MiB"));
    let rooms = ["src/rpc/", "src/mcp/tools/", "crates/conversation/src/provider/settings.rs"];
    for source in sources().iter().filter(|it| rooms.iter().any(|room| it.name.starts_with(room))) {
        for (at, line) in source.text.lines().enumerate() {
            let comment = line.trim_start().strip_prefix("///").filter(|it| said(it));
            assert!(comment.is_none(), "{}:{}: {line}", source.name, at + 1);
        }
    }
}

#[test]
fn the_manual_has_the_default_of_each_setting_that_is_a_number() {
    let manual = page("docs/contexture.texi");
    let settings = between(&manual, "@node Settings of the server", "@end table");
    let home = Home::new();
    let report = home.succeed(&["doctor"]);
    let shown = report.lines().filter_map(|line| line.trim().strip_suffix(" (default)"));
    let pairs = shown.filter_map(|line| line.split_once(" = "));
    let numbers: Vec<_> = pairs.filter(|(_, value)| value.parse::<u64>().is_ok()).collect();
    assert!(numbers.len() >= 4, "{report}");
    for (name, value) in numbers {
        let (_, entry) = settings
            .split_once(&format!("@item {name}\n"))
            .unwrap_or_else(|| panic!("the manual has no setting {name}"));
        let entry = entry.split("@item ").next().unwrap();
        let unit = if name.ends_with("-bytes") { " bytes" } else { "" };
        let default = format!(" {value}{unit} by default");
        assert!(entry.contains(&default), "{name}: the manual lacks {default:?}: {entry}");
    }
}
