//! Tests of the ledgers of short conversations, as rendered text.

use std::sync::Arc;

use super::*;
use crate::curation::testing::{conversation as messages, worded as message};
use crate::session::message::ToolCall;
use crate::tokens::{Estimate, Measure};

fn lines(ledger: &Ledger) -> Vec<String> {
    let show = |entry: &Entry| format!("{} {}: {}", entry.origin, entry.kind.name(), entry.text);
    ledger.entries.iter().map(show).collect()
}

#[track_caller]
fn check(said: &[(&str, &str)], expected: &[&str]) {
    let messages = messages(said);
    let whole = Ledger::of(&messages);
    assert_eq!(lines(&whole), expected, "{said:?}");
    let folded = messages
        .iter()
        .fold(Ledger::default(), |ledger, message| ledger.merge(Ledger::of([message])));
    assert_eq!(folded.entries.len(), whole.entries.len(), "folded one by one: {folded:#?}");
}

#[test]
fn rules_are_kept_word_for_word() {
    check(
        &[
            ("u", "Fix the parser. You must never push to main! How is it going?"),
            ("a", "I always wait. We decided to go with SQLite."),
            ("u", "- Let's see.\n- Let's use tabs."),
        ],
        &[
            "1 constraint: You must never push to main!",
            "2 decision: We decided to go with SQLite.",
            "3 decision: Let's use tabs.",
        ],
    );
}

#[test]
fn a_later_number_of_the_same_subject_supersedes() {
    check(
        &[
            ("u", "The request timeout is 30 s."),
            ("u", "Set the connect timeout to 5 s."),
            ("a", "Raised the request timeout to 45 s."),
        ],
        &["2 number: connect timeout: 5 s", "3 number: request timeout: 45 s"],
    );
    check(
        &[("u", "The request timeout is 30 s."), ("u", "Hm, make it 45 s.")],
        &["2 number: request timeout: 45 s"],
    );
    check(
        &[("u", "The request timeout is 30 s."), ("u", "The timeout is 45 s.")],
        &["2 number: request timeout: 45 s"],
    );
}

#[test]
fn observed_numbers_do_not_supersede_stated_ones() {
    check(
        &[("u", "The build time must stay under 30 s."), ("a", "The build time took 34 s.")],
        &[
            "1 number: build time: 30 s",
            "1 constraint: The build time must stay under 30 s.",
            "2 number: build time: 34 s (observed)",
        ],
    );
}

#[test]
fn a_constraint_takes_over_its_new_amount() {
    check(
        &[("u", "The memory must stay under 200 MB."), ("u", "The memory is now 300 MB at most.")],
        &[
            "1 constraint: The memory must stay under 300 MB (was 200 MB).",
            "2 number: memory: 300 MB",
            "2 constraint: The memory is now 300 MB at most.",
        ],
    );
}

#[test]
fn a_new_choice_replaces_the_one_it_names() {
    check(
        &[("u", "Let's use Postgres."), ("u", "We go with SQLite instead of Postgres.")],
        &["2 decision: We go with SQLite instead of Postgres."],
    );
}

#[test]
fn a_task_goes_when_it_is_done() {
    check(
        &[
            ("a", "- [ ] write the retry tests\n- [ ] update the manual"),
            ("a", "- [x] wrote the retry tests\nTODO: check the licence"),
        ],
        &["1 task: update the manual", "2 task: check the licence"],
    );
}

#[test]
fn files_and_commands_are_taken_from_words_and_fences() {
    check(
        &[
            ("a", "See src/a.rs.\n```sh\ncargo test\n```\nThen run `make check`."),
            ("a", "```console\n$ ls docs/b.md\nx\n```\n```rust\nfn main() {}\n```"),
            ("u", "I renamed src/a.rs to src/c.rs."),
        ],
        &[
            "1 command: cargo test",
            "1 command: make check",
            "2 command: ls docs/b.md",
            "2 path: docs/b.md",
            "3 request: I renamed src/a.rs to src/c.rs.",
            "3 path: src/c.rs",
        ],
    );
}

#[test]
fn a_call_gives_its_command_and_its_path() {
    let call = |name: &str, arguments: &str| ToolCall {
        id: "1".into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let mut message = message(7, "a", "");
    message.tool_calls = vec![
        call("shell", r#"{"command": ["cargo", "fmt"]}"#),
        call("read_file", r#"{"path": "src/lib.rs", "limit": 5}"#),
        call("bash", "make all"),
    ];
    let ledger = Ledger::of([&message]);
    assert_eq!(
        lines(&ledger),
        ["7 command: cargo fmt", "7 path: src/lib.rs", "7 command: make all"]
    );
}

#[test]
fn only_clear_forms_are_taken_from_outputs() {
    check(
        &[(
            "t",
            "running 3 tests\nerror[E0308]: mismatched types\n  --> src/x.rs:4:5\nbuild time: 3 s\nyou must see this",
        )],
        &[
            "1 error: error[E0308]: mismatched types",
            "1 path: src/x.rs",
            "1 number: build time: 3 s (observed)",
        ],
    );
    check(&[("t", "5 passed; 0 failed")], &[]);
}

#[test]
fn equal_entries_are_joined_and_move_to_their_last_mention() {
    let messages = messages(&[("t", "a/b.rs"), ("u", "You must not lie."), ("u", "Open a/b.rs")]);
    let ledger = Ledger::of(&messages);
    assert_eq!(lines(&ledger), ["2 constraint: You must not lie.", "3 path: a/b.rs"]);
    assert_eq!(ledger.entries[1].times, 2);
    assert_eq!(ledger.entries[1].voice, Voice::Person);
}

#[test]
fn the_least_valuable_entries_go_first_and_are_counted() {
    let measure = Measure::plain(Arc::new(Estimate));
    let messages = messages(&[
        ("t", "src/seen.rs src/too.rs"),
        ("u", "You must not lie. See src/said.rs."),
        ("a", "Let's use tabs."),
    ]);
    let ledger = Ledger::of(&messages);
    let bounded = ledger.clone().within(50, &measure);
    assert_eq!(lines(&bounded), ["2 constraint: You must not lie.", "3 decision: Let's use tabs."]);
    assert_eq!(bounded.left_out, 3);
    for tokens in 0..80 {
        assert!(measure.text(&ledger.clone().within(tokens, &measure).render()) <= tokens);
    }
    assert_eq!(ledger.clone().within(1000, &measure), ledger);
    assert!(ledger.within(0, &measure).is_empty());
}

#[test]
fn the_text_has_a_heading_for_each_kind() {
    let messages = messages(&[("u", "You must not lie. Run `make x`."), ("a", "See src/a.rs")]);
    let mut ledger = Ledger::of(&messages);
    ledger.left_out = 2;
    let expected = "## Constraints\n- You must not lie. (msg-1)\n\n## Files\n- src/a.rs (msg-2)\n\n\
                    ## Commands\n- `make x` (msg-1)\n\n2 more entries left out for lack of room.";
    assert_eq!(ledger.render(), expected);
    assert_eq!(Ledger::default().render(), "");
}

#[test]
fn a_stored_ledger_is_read_back() {
    let messages = messages(&[("u", "Set the limit to 5 MB. Use tabs instead of spaces.")]);
    let ledger = Ledger::of(&messages);
    let text = serde_json::to_string(&ledger).unwrap();
    assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
}

#[test]
fn what_the_work_used_comes_first_and_fits() {
    let measure = Measure::plain(Arc::new(Estimate));
    let messages = [
        message(1, "u", "Deploy to port 5433 as in docs/deploy.md, with `cargo test --lib`."),
        message(2, "t", "src/seen/once.rs\nlistening on port 8080"),
        message(3, "a", "src/main.rs and docs/deploy.md are done; port 5433 answers."),
    ];
    let messages: Vec<&Message> = messages.iter().collect();
    let ledger = Ledger::of(messages.iter().copied());
    let all = ledger.used(&messages, "", 1000, &measure);
    let expected = "## Commands used\ncargo test --lib\n\n\
        ## Files and addresses used\ndocs/deploy.md\nsrc/main.rs\nsrc/seen/once.rs\n\n\
        ## Figures\nport 5433 8080";
    assert_eq!(all, expected);
    for tokens in 0..measure.text(&all) {
        let some = ledger.used(&messages, "", tokens, &measure);
        assert!(measure.text(&some) <= tokens, "{tokens}: {some}");
        assert!(!some.contains("8080") || some.contains("docs/deploy.md"), "{some}");
    }
    let beside = ledger.used(&messages, "src/main.rs, and 8080", 1000, &measure);
    assert!(!beside.contains("main.rs") && !beside.contains("8080"), "{beside}");
    assert_eq!(Ledger::default().used(&[], "", 100, &measure), "");
}

#[test]
fn commands_that_a_recording_shows_in_a_call_are_found() {
    let shown = r#"{"shown": "Run the tests\n`go test ./pkg/...`"}"#;
    let call = ToolCall { id: "1".into(), name: "Bash".into(), arguments: shown.into() };
    let ran = Message { tool_calls: vec![call], ..message(1, "a", "") };
    let commands = Ledger::of([&ran]).entries;
    let commands = commands.iter().filter(|entry| entry.kind == Kind::Command);
    assert_eq!(commands.map(|entry| &*entry.text).collect::<Vec<_>>(), ["go test ./pkg/..."]);
}
