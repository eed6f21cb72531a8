//! Facts that stand in one place of the program, and that Emacs and the documentation repeat.

use std::collections::BTreeSet;
use std::path::Path;

use contexture::internals::curation::config::{TurnConfig, Value};
use contexture::internals::curation::strategy;
use contexture::internals::engine::{DEFAULT_TEMPLATE, SessionSettings};
use contexture::internals::provider::Family;
use contexture::internals::rpc::{Method, Topic, methods};

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text between the first `begin` of a page and the next `end`.
fn between<'a>(page: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = page.split_once(begin).unwrap_or_else(|| panic!("there is no {begin:?}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end:?} after {begin:?}")).0
}

fn shown(value: Value) -> String {
    match value {
        Value::Count(count) => count.to_string(),
        Value::Ratio(ratio) => ratio.to_string(),
        Value::Switch(on) => (if on { "`t`" } else { "`nil`" }).to_owned(),
    }
}

#[test]
fn the_reference_names_the_defaults_of_sessions() {
    let page = page("docs/protocol.md");
    let method = between(&page, "#### `configure-session`\n", "\n#### ");
    let defaults = SessionSettings::default();
    let switches = [
        ("archive-pruned", defaults.archive_pruned),
        ("versioning", defaults.versioning),
        ("manage", defaults.manage),
    ];
    let switches = switches.map(|(name, on)| (name, shown(Value::Switch(on))));
    let template = [("template", format!("`{DEFAULT_TEMPLATE}`"))];
    let of_turns = TurnConfig::default().settings();
    let of_turns = of_turns.iter().filter_map(|it| Some((it.name, shown(it.default?))));
    for (name, default) in of_turns.chain(switches).chain(template) {
        let line = between(method, &format!("\n- `:{name}` "), "\n");
        assert!(line.ends_with(&format!(" {default}.")), "{name} is {default}: {line}");
    }
}

#[test]
fn emacs_knows_the_strategies_and_the_defaults_of_sessions() {
    let source = page("elisp/contexture-conversations.el");
    let settings = between(&source, "(defconst contexture-conversations--more-settings", "\n\n");
    let names = strategy::names();
    let strategies = between(settings, "(:strategy ", ")\n    (:");
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    assert_eq!(between(strategies, ":values (", ")"), quoted.join(" "));
    assert!(strategies.ends_with(&format!(":default :{}", names[0])), "{strategies}");
    let defaults = SessionSettings::default();
    let switches = [
        ("archive-pruned", defaults.archive_pruned),
        ("versioning", defaults.versioning),
        ("manage", defaults.manage),
    ];
    for (name, on) in switches {
        let line = between(settings, &format!("(:{name} "), ")");
        assert_eq!(line.ends_with(":default t"), on, "{name}: {line}");
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

#[test]
fn emacs_gives_a_request_key_to_every_method_that_takes_one() {
    let takes_key = |method: &&Method| method.params().iter().any(|p| p.name == "request-key");
    let taking = methods().filter(takes_key).map(|method| method.name);
    // It also reads settings, and gives the same when it is repeated.
    let mut taking: Vec<&str> = taking.filter(|name| *name != "configure-session").collect();
    taking.extend(methods().filter(takes_key).flat_map(Method::contract_names));
    let source = page("elisp/contexture-rpc.el");
    let given = between(&source, "(defconst contexture--changing-methods\n  '(", ")");
    assert_eq!(given.split_whitespace().collect::<BTreeSet<_>>(), taking.into_iter().collect());
}

#[test]
fn emacs_knows_the_lists_of_which_it_gets_the_newest_page_first() {
    let newest = methods().filter(|method| method.has_newest_page_first());
    let names =
        newest.flat_map(|method| std::iter::once(method.name).chain(method.contract_names()));
    let source = page("elisp/contexture-rpc.el");
    let known = between(&source, "(defconst contexture--newest-first-methods\n  '(", ")");
    assert_eq!(known.split_whitespace().collect::<BTreeSet<_>>(), names.collect());
}

#[test]
fn emacs_and_the_manual_know_the_kinds_of_providers() {
    let source = page("elisp/contexture-doctor.el");
    let known = between(&source, "(defconst contexture-provider--kinds\n  '(", ")\n  \"");
    let kind = |family: &Family| format!("({:?} . {:?})", family.name(), family.usual_url());
    let kinds = Family::ALL.iter().map(kind).chain(["(\"scripted\")".to_owned()]);
    let kinds: Vec<String> = kinds.collect();
    assert_eq!(known.lines().map(str::trim).collect::<Vec<_>>(), kinds);
    let manual = page("docs/contexture.texi");
    for family in Family::ALL {
        assert!(manual.contains(&format!("@code{{{}}}", family.name())), "{}", family.name());
    }
}
