//! Tests of the ledgers of short conversations.

use std::sync::Arc;

use super::*;
use crate::curation::testing::conversation as messages;
use crate::session::message::{Role, ToolCall};
use crate::tokens::{Estimate, Measure};

#[track_caller]
fn check(said: &[(&str, &str)], expected: &[&str]) {
    let messages = messages(said);
    let ledger = Ledger::of(&messages);
    let show = |entry: &Entry| format!("{} {}: {}", entry.origin, entry.kind.name(), entry.text);
    assert_eq!(ledger.entries.iter().map(show).collect::<Vec<_>>(), expected, "{said:?}");
    let folded = messages.iter().fold(Ledger::default(), |ledger, message| ledger.and([message]));
    assert_eq!(folded, ledger, "folded one by one");
    let stored = serde_json::to_string(&ledger).unwrap();
    assert_eq!(serde_json::from_str::<Ledger>(&stored).unwrap(), ledger);
}

#[test]
fn the_users_words_are_kept_verbatim_in_any_language() {
    check(
        &[
            ("u", "Nie nach main schieben!\nUnd: Port 5433."),
            ("a", "We decided to go with SQLite."),
            ("u", "不要修改旧文件。"),
            ("u", "<system-reminder>nothing</system-reminder>"),
        ],
        &["1 said: Nie nach main schieben!\nUnd: Port 5433.", "3 said: 不要修改旧文件。"],
    );
}

#[test]
fn files_and_commands_are_taken_from_words_and_fences() {
    check(
        &[
            ("a", "See src/a.rs.\n```sh\ncargo test\n```\nThen `make check`."),
            ("a", "```console\n$ ls docs/b.md\nx\n```\n```rust\nfn main() {}\n```"),
            ("a", "src/a.rs again"),
        ],
        &[
            "1 command: cargo test",
            "1 command: make check",
            "2 command: ls docs/b.md",
            "2 path: docs/b.md",
            "3 path: src/a.rs",
        ],
    );
}

#[test]
fn commands_are_taken_from_calls() {
    let call = ToolCall {
        id: "1".into(),
        name: "shell".into(),
        arguments: r#"{"command":"cargo test && git commit -m \"x\n\ny\"","path":"src/a.rs"}"#
            .into(),
    };
    let said = crate::curation::testing::said(3, Role::Assistant, "").calling(vec![call]);
    let rendered = Ledger::of([&said]).render();
    let expected = "## Files\n- src/a.rs (msg-3)\n\n## Commands\n\
                    - `cargo test && git commit -m \"x` (msg-3)";
    assert_eq!(rendered, expected);
}

#[test]
fn the_newest_words_come_first_with_their_turns() {
    let messages = messages(&[("u", "Use tabs."), ("a", "Yes."), ("u", "No: spaces.\nFour.")]);
    let expected = "## What the user said, newest first\n- Turn 2 (msg-3): No: spaces.\n  Four.\n\
                    - Turn 1 (msg-1): Use tabs.";
    assert_eq!(Ledger::of(&messages).render(), expected);
}

#[test]
fn what_does_not_fit_is_counted_and_hides_nothing() {
    let log = "all fine\n".repeat(150);
    let words: Vec<String> =
        (0..40).map(|at| format!("Part {at} is in src/part_{at}.rs.")).collect();
    let mut said = vec![("u", "Never call the cloud from tests."), ("u", &*log)];
    said.extend(words.iter().map(|text| ("a", &**text)));
    let measure = Measure::plain(Arc::new(Estimate));
    let whole = Ledger::of(&messages(&said));
    for tokens in [0, 20, 60, 100, 200, 400, 2000] {
        let ledger = whole.clone().within(tokens, &measure);
        assert!(measure.text(&ledger.render()) <= tokens, "{tokens}: {}", ledger.render());
        assert_eq!(ledger.entries.len() as u64 + ledger.left_out, whole.entries.len() as u64);
        let has_rule = ledger.render().contains("Never call the cloud");
        assert!(has_rule || tokens < 100, "{tokens}: {}", ledger.render());
    }
    assert_eq!(whole.clone().within(2000, &measure), whole);
}

#[test]
fn entries_of_unknown_kinds_are_not_read() {
    let stored = r#"{"entries":[{"kind":"number","text":"x: 1","origin":1,"times":1,"voice":"model"},
        {"kind":"path","text":"a.rs","origin":2,"times":1,"voice":"model"}],"withdrawn":[]}"#;
    let ledger: Ledger = serde_json::from_str(stored).unwrap();
    assert_eq!(ledger.render(), "## Files\n- a.rs (msg-2)");
}
