//! Generated sessions, written and read, with and without edits.

use contexture_core::testing::rounds;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::tokens::Estimate;

/// Lines that look like those of the file, and others that Markdown knows.
const LINES: &[&str] = &[
    "",
    "  ",
    "Plain words.",
    "# A title",
    "## A heading (of its own)",
    "## User (msg-2, 2026-01-01 00:00:00 UTC)",
    "## Assistant (msg-1, 5, pinned)\r",
    "\\## Tool (msg-3, 7, answers a)",
    "\\\\Calls `run` (a):",
    "Calls `run` (a):",
    "Conversation ses-9, begun 2026-01-01 00:00:00 UTC. Messages: 3.",
    "## Summary of messages no longer in view",
    "```",
    "```text",
    "````json",
    "   ~~~",
    "\t```rust",
    "ends\r",
    "<!-- msg-1 -->",
    "\u{202e}turned",
];

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(select(LINES), 0..6).prop_map(|lines| lines.join("\n"))
}

fn message() -> impl Strategy<Value = Message> {
    let calls = proptest::collection::vec((select(&["a", "b c", "x`y"][..]), text()), 0..3);
    let role = select(ROLES.map(|(role, _)| role).to_vec());
    (role, text(), calls, select(&["a", "call_7, pinned"][..])).prop_map(
        |(role, content, calls, answers)| {
            let call = |(name, arguments): (&str, String)| ToolCall {
                id: format!("call {name}"),
                name: name.to_owned(),
                arguments,
            };
            let is_answer = role == Role::Assistant;
            NewMessage {
                role,
                content: content.into(),
                phase: is_answer.then_some(Phase::Testing),
                tool_calls: if is_answer { calls.into_iter().map(call).collect() } else { vec![] },
                tool_call_id: (role == Role::Tool).then(|| answers.to_owned()),
                opaque: None,
                pinned: false,
                tokens: 0,
                counted_by: "estimate",
                timestamp: None,
            }
            .into_message(1, 0)
        },
    )
}

fn log_of(messages: Vec<Message>) -> Vec<Arc<Message>> {
    let numbered = |(number, message)| Message { number, timestamp: 1_764_000_000, ..message };
    (1..).zip(messages).map(numbered).map(Arc::new).collect()
}

fn row() -> SessionRow {
    let project = Some("/srv/a. Project: b. Messages: 3.".to_owned());
    SessionRow {
        id: 7,
        name: "ses-1".into(),
        created: 1_764_000_001,
        project,
        ..SessionRow::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: rounds(300, 20_000), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_written_is_read_and_each_edit_is_told(
        messages in proptest::collection::vec(message(), 0..6),
        more in proptest::collection::vec(message(), 0..2),
        which in any::<proptest::sample::Index>(),
    ) {
        let log = log_of(messages);
        let text = write(&row(), &log, &SessionState::default());
        let written = read(&text).unwrap();
        prop_assert_eq!((written.session, written.begun), (7, 1_764_000_001));
        prop_assert_eq!(&written.project, &row().project);
        prop_assert_eq!(written.messages.len(), log.len(), "{}", text);
        for (said, message) in written.messages.iter().zip(&log) {
            prop_assert!(said.is(message), "{}\n{:?}\n{:?}", text, said.content, message);
            prop_assert_eq!((said.phase, said.timestamp), (message.phase, message.timestamp));
        }
        // What was said since, and blanks at the end, are no edits.
        let grown = [log.clone(), log_of(more)].concat();
        prop_assert_eq!(written.edited(&grown), vec![]);
        prop_assert_eq!(read(&format!("{text}\n \n")).unwrap().edited(&log), vec![]);
        // Elsewhere it becomes a session with the same messages.
        let other = written.read(&Estimate).unwrap();
        prop_assert_eq!((&*other.name, other.messages.len()), ("imported ses-1", log.len()));
        if log.is_empty() {
            return Ok(());
        }
        let message = which.get(&log);
        let id = MessageId(message.number);
        let first = heading(message, &SessionState::default());
        let edited = text.replace(&first, &format!("{first}\n\nTyped since."));
        prop_assert_eq!(read(&edited).unwrap().edited(&log), vec![id]);
        let doubled = text + "\n" + &first + "\n";
        prop_assert!(read(&doubled).unwrap().edited(&log).contains(&id));
    }
}

#[test]
fn no_other_text_is_a_session() {
    for text in ["", "{\"contexture_session\": 1}", "# A\n\n## User (msg-1, 5)\n", "Conversation 7"]
    {
        assert!(read(text).is_none(), "{text}");
    }
}
