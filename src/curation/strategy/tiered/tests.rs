//! Tests of the parts that `tiered` gives up, and of its promises for any input.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::curation::strategy::{ALL, Strategy as _};
use crate::curation::testing::{conversation as messages, summarize_before, worded as message};
use crate::session::message::{Message, ToolCall};
use crate::tokens::{Estimate, Measure};

fn measure() -> Measure {
    Measure::plain(Arc::new(Estimate))
}

/// Makes a run: the user's request, then `steps` tool calls, each with a result of `tokens` tokens.
fn run(steps: u64, tokens: usize) -> Vec<Message> {
    let mut log = messages(&[("s", "Be good."), ("u", "Make the tests pass.")]);
    for step in 0..steps {
        let number = log.len() as u64 + 1;
        log.push(message(number, "a>1", "I look at the next one, src/a.rs."));
        log.push(message(number + 1, "t<1", &format!("{step:4}").repeat(tokens)));
    }
    log
}

/// Lists the shown messages, one word each: the number, and the form if the message is shortened.
fn project(log: &[Message], budget: u64, query: Option<&str>) -> (Vec<String>, u64) {
    let measure = measure();
    let history = History::new(log.iter().collect(), &measure);
    let projection = Tiered.project(&history, &Aim { budget, query, similarity: None });
    let mut tokens = 0;
    let show = |shown: &Shown| match shown {
        Shown::Whole(index) => {
            tokens += log[*index].tokens;
            log[*index].number.to_string()
        }
        Shown::Shortened { index, content, tokens: cost } => {
            tokens += cost;
            let form = if content.contains("bytes are left out") { "spilled" } else { "masked" };
            format!("{}:{form}", log[*index].number)
        }
        Shown::Note { content, tokens: cost } => {
            tokens += cost;
            content.lines().next().unwrap_or("").to_owned()
        }
    };
    (projection.shown.iter().map(show).collect(), tokens)
}

#[test]
fn kept_words_change_no_window() {
    let mut log = messages(&[("s", "Be good."), ("u", "Why does parse_header fail?")]);
    for step in 0..60 {
        let number = log.len() as u64 + 1;
        let said = format!("We'll use port 80{step} for read_part_{}.", step % 7);
        log.push(message(number, "a>1", &said));
        let lines = format!("fn read_part_{step}() {{ parse_header_{}() }}\n", step % 9);
        log.push(message(number + 1, "t<1", &lines.repeat(20)));
    }
    // After it, a window reads no line.
    let number = log.len() as u64 + 1;
    log.push(message(number, "a>1", "I look at all."));
    log.push(message(number + 1, "t<1", &"none ".repeat(100_000)));
    let (measure, words) = (measure(), crate::curation::unit::Words::default());
    let mut ledgers = std::collections::HashSet::new();
    for end in (2..=log.len()).step_by(2) {
        for query in [None, Some("what of parse_header_3 and read_part_2?")] {
            let aim = Aim { budget: 1500, query, similarity: None };
            let history = History::new(log[..end].iter().collect(), &measure);
            let fresh = Tiered.project(&history, &aim);
            let history = History { words: Some(&words), ..history };
            assert_eq!(Tiered.project(&history, &aim), fresh, "{end} messages");
            ledgers.extend(fresh.shown.iter().filter_map(|shown| match shown {
                Shown::Note { content, .. } => content.split("\n\n").nth(1).map(str::to_owned),
                _ => None,
            }));
        }
    }
    assert!(ledgers.iter().filter(|ledger| ledger.contains("port 80")).count() > 2);
}

#[test]
fn lines_have_room_beside_a_large_newest_result() {
    let mut log = messages(&[("s", "Be good."), ("u", "Why does parse_header fail?")]);
    for step in 0..30 {
        let number = log.len() as u64 + 1;
        log.push(message(number, "a>1", &format!("I look at read_part_{step}.")));
        let lines = format!("fn read_part_{step}() {{ parse_header_{step}() }}\n").repeat(2);
        log.push(message(number + 1, "t<1", &format!("{lines}{}", "none ".repeat(160))));
    }
    let number = log.len() as u64 + 1;
    log.push(message(number, "a>1", "Now the log."));
    log.push(message(number + 1, "t<1", &"line".repeat(1000)));
    let measure = measure();
    let history = History::new(log.iter().collect(), &measure);
    let aim = Aim { budget: 2000, query: None, similarity: None };
    let shown = Tiered.project(&history, &aim).shown;
    let note = shown.iter().find_map(|shown| match shown {
        Shown::Note { content, .. } => Some(content),
        _ => None,
    });
    let quoted = note.map_or(0, |note| note.matches("read_part_").count());
    assert!(shown.contains(&Shown::Whole(log.len() - 1)) && quoted > 10, "{note:?}");
}

#[test]
fn old_messages_go_and_the_newest_stay_whole() {
    let (shown, tokens) = project(&run(12, 100), 1600, None);
    let note =
        "[10 earlier messages are left out between msg-3 and msg-12; the log holds all of them]";
    let newest = (13..=26).map(|number| number.to_string());
    let expected = ["1".into(), "2".into(), note.to_owned()].into_iter().chain(newest);
    assert_eq!(shown, expected.collect::<Vec<_>>());
    assert!(tokens <= 1600);
}

#[test]
fn the_ledger_of_old_messages_stays() {
    let log = run(60, 100);
    let (shown, tokens) = project(&log, 1000, None);
    assert!(shown[2].starts_with('[') && shown[2].contains("earlier messages are left out"));
    assert!(tokens <= 1000, "{tokens}");
    let measure = measure();
    let history = History::new(log.iter().collect(), &measure);
    let projection = Tiered.project(&history, &Aim { budget: 1000, query: None, similarity: None });
    let note = projection.shown.iter().find_map(|shown| match shown {
        Shown::Note { content, .. } => Some(content.as_str()),
        _ => None,
    });
    assert!(note.unwrap().contains("- src/a.rs (msg-"), "{note:?}");
}

#[test]
fn a_large_result_keeps_its_ends() {
    let mut log = run(1, 5000);
    log.extend(run(4, 300).into_iter().skip(2));
    (1..).zip(&mut log).for_each(|(number, message)| message.number = number);
    let (shown, _) = project(&log, 7000, None);
    assert_eq!(shown.join(" "), "1 2 3 4:spilled 5 6 7 8 9 10 11 12");
}

#[test]
fn results_that_the_model_has_not_seen_go_last() {
    let mut log = run(8, 100);
    let newest = log.pop().unwrap();
    log.push(message(newest.number, "t<1", &"   7".repeat(760)));
    let (shown, tokens) = project(&log, 1000, None);
    assert_eq!(shown[shown.len() - 2..], ["17", "18"], "{shown:?}");
    assert!(tokens <= 1000, "{tokens}");
}

/// Makes a run whose first result has many lines, one of which has a name that the last step
/// mentions.
fn run_with_lines() -> Vec<Message> {
    let mut log = run(12, 100);
    let mut lines = vec!["nothing of interest is on this line"; 60];
    lines[29] = "    fn parse_header(input) {";
    lines[30] = "        the first line of its body";
    log[3] = message(4, "t<1", &lines.join("\n"));
    for index in (4..log.len()).step_by(2) {
        log[index] = message(index as u64 + 1, "a>1", "I change parse_header next.");
    }
    log
}

#[track_caller]
fn check_text(log: &[Message], budget: u64, expected: &str) {
    let measure = measure();
    let history = History::new(log.iter().collect(), &measure);
    let projection = Tiered.project(&history, &Aim { budget, query: None, similarity: None });
    let has = |shown: &Shown| match shown {
        Shown::Shortened { content, .. } | Shown::Note { content, .. } => {
            content.contains(expected)
        }
        Shown::Whole(_) => false,
    };
    assert!(projection.shown.iter().any(has), "{:?}", projection.shown);
}

#[test]
fn the_note_quotes_the_lines_that_the_work_names() {
    let listed = "\n4: fn parse_header(input) {";
    check_text(&run_with_lines(), 700, listed);
    check_text(&run_with_lines(), 2100, listed);
}

#[test]
fn many_lines_of_a_message_have_their_places() {
    let mut log = run_with_lines();
    let mut lines = vec!["nothing of interest is on this line".to_owned(); 60];
    for at in (9..50).step_by(10) {
        lines[at] = format!("    call_{at}(parse_header);");
    }
    log[3] = message(4, "t<1", &lines.join("\n"));
    for index in (4..log.len()).step_by(2) {
        let said = format!("I change call_{} next.", 10 * (index / 2) - 11);
        log[index] = message(index as u64 + 1, "a>1", &said);
    }
    check_text(&log, 2100, "msg-4, run:\n…\n");
    check_text(&log, 2100, "10:     call_9(parse_header);\n");
}

#[test]
fn an_older_reading_of_a_file_is_not_quoted() {
    let mut log = run_with_lines();
    let read = |id: &str| {
        let arguments = "{\"path\": \"a.rs\"}".into();
        vec![ToolCall { id: id.into(), name: "read_file".into(), arguments }]
    };
    (log[2].tool_calls, log[4].tool_calls) = (read("1"), read("1"));
    log[5] = Message { content: log[3].content.clone(), number: 6, ..log[3].clone() };
    check_text(&log, 700, "\n6: fn parse_header(input) {");
}

#[test]
fn numbers_that_differ_from_result_to_result_are_not_quoted() {
    let mut log = run(12, 100);
    for index in (3..log.len()).step_by(2) {
        let text = format!("Wall time: {}.0{index} seconds\nplain words", index * 7);
        let result = message(index as u64 + 1, "t<1", &format!("{text}\n{}", "word ".repeat(80)));
        log[index] = Message { tool_call_id: log[index].tool_call_id.clone(), ..result };
    }
    let measure = measure();
    let history = History::new(log.iter().collect(), &measure);
    let aim = Aim { budget: 700, query: None, similarity: None };
    for shown in Tiered.project(&history, &aim).shown {
        assert!(!matches!(shown, Shown::Note { content, .. } if content.contains("Wall time")));
    }
}

#[test]
fn messages_that_fit_the_query_stay() {
    let mut log = run(30, 40);
    let content = "the parser fails in the last line of the file";
    log[13] = Message { tool_call_id: log[13].tool_call_id.clone(), ..message(14, "t<1", content) };
    let (shown, tokens) = project(&log, 400, Some("why does the parser fail?"));
    assert!(shown.contains(&"13".to_owned()) && shown.contains(&"14".to_owned()), "{shown:?}");
    assert!(shown.contains(&"62".to_owned()), "the newest are there too: {shown:?}");
    assert!(tokens <= 400);
}

#[test]
fn consecutive_turns_begin_with_the_same_bytes() {
    let log = run(200, 100);
    let (mut before, mut broken): (Vec<String>, usize) = (Vec::new(), 0);
    for end in (4..=log.len()).step_by(2) {
        let (shown, tokens) = project(&log[..end], 4000, None);
        assert!(tokens <= 4000);
        broken += usize::from(!shown.starts_with(&before));
        before = shown;
    }
    assert!(broken <= 16, "{broken} of 199 windows did not continue the one before");
}

/// Lists the shown messages after a summary of all but the last four of the first `end`.
fn project_summarized(log: &[Message], end: usize, budget: u64) -> (Vec<String>, Projection) {
    let measure = measure();
    let mut history = History::new(log[..end].iter().collect(), &measure);
    summarize_before(&mut history, end - 4, budget);
    let mut folded = history.folded.take().unwrap();
    folded.is_folded.resize(log.len(), false);
    let mut history = History::new(log.iter().collect(), &measure);
    history.folded = Some(folded);
    let projection = Tiered.project(&history, &Aim { budget, query: None, similarity: None });
    let show = |shown: &Shown| match shown {
        Shown::Whole(index) | Shown::Shortened { index, .. } => log[*index].number.to_string(),
        Shown::Note { content, .. } => content.clone(),
    };
    (projection.shown.iter().map(show).collect(), projection)
}

#[test]
fn a_summary_takes_away_nothing_that_fits() {
    let log = run(12, 100);
    let (shown, projection) = project_summarized(&log, log.len(), 4000);
    assert_eq!(shown, (1..=26).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(projection.verdicts[2].reason, "summarized, but there is room for it");
    let (shown, projection) = project_summarized(&log, log.len(), 1600);
    assert!(shown.len() > 8 && shown.len() < 26, "{shown:?}");
    assert_eq!(projection.verdicts[2].reason, "summarized, and no room for it");
}

#[test]
fn lines_of_summarized_messages_are_quoted() {
    let (shown, _) = project_summarized(&run_with_lines(), 26, 700);
    assert!(shown[2].contains("4: fn parse_header(input) {"), "{shown:?}");
}

#[test]
fn windows_after_a_summary_begin_with_the_same_bytes_until_the_next_fold() {
    let log = run(40, 100);
    let (before, _) = project_summarized(&log[..62], 62, 4000);
    for end in (62..=70).step_by(2) {
        let (shown, _) = project_summarized(&log[..end], 62, 4000);
        assert!(shown.starts_with(&before), "{end}: {shown:?} after {before:?}");
    }
}

#[test]
fn a_later_reading_changes_nothing_before_the_next_fold() {
    let mut log = run_with_lines();
    let arguments: String = "{\"path\": \"a.rs\"}".into();
    let read = vec![ToolCall { id: "1".into(), name: "read_file".into(), arguments }];
    log[2].tool_calls.clone_from(&read);
    let (before, _) = project(&log, 700, None);
    log.extend([Message { tool_calls: read, ..message(27, "a>1", "") }, message(28, "t<1", "now")]);
    let (after, _) = project(&log, 700, None);
    assert!(after.starts_with(&before), "{after:?} after {before:?}");
}

/// Generates a history of roles, sizes, calls and answers, including calls in flight and orphaned
/// answers.
fn histories() -> impl proptest::strategy::Strategy<Value = Vec<(&'static str, usize)>> {
    let word = prop_oneof![
        2 => Just("u"), 2 => Just("a"), 1 => Just("s"), 2 => Just("a>1"), 1 => Just("a>1>2"),
        2 => Just("t<1"), 1 => Just("t<2"), 1 => Just("t<9"), 1 => Just("a!"),
    ];
    prop::collection::vec((word, 0usize..400), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_strategy_keeps_its_promises(
        said in histories(),
        room in 0u64..3000,
        asked in any::<bool>(),
        summarized in prop::option::of(0usize..60),
    ) {
        let log: Vec<Message> = (1..)
            .zip(&said)
            .map(|(number, (word, size))| message(number, word, &"You must. ".repeat(*size)))
            .collect();
        let measure = measure();
        let mut history = History::new(log.iter().collect(), &measure);
        if let Some(end) = summarized {
            summarize_before(&mut history, end, 2 * room);
        }
        let never_lost: u64 =
            history.units.iter().filter(|unit| unit.kept.is_some()).map(|unit| unit.tokens).sum();
        let budget = never_lost + room;
        for strategy in ALL {
            let aim = Aim { budget, query: asked.then_some("what must you do?"), similarity: None };
            let projection = strategy.project(&history, &aim);
            prop_assert_eq!(&projection, &strategy.project(&history, &aim), "{}", strategy.name());
            keeps_its_promises(&history, &projection, budget)?;
        }
    }
}

fn keeps_its_promises(
    history: &History<'_>,
    projection: &Projection,
    budget: u64,
) -> Result<(), TestCaseError> {
    let (mut tokens, mut whole, mut seen) = (0, Vec::new(), Vec::new());
    for shown in &projection.shown {
        match shown {
            Shown::Whole(index) => {
                tokens += history.measure.message(history.messages[*index].tokens);
                whole.push(*index);
                seen.push(*index);
            }
            Shown::Shortened { index, content, tokens: cost } => {
                prop_assert_eq!(*cost, history.measure.note(content));
                tokens += cost;
                seen.push(*index);
            }
            Shown::Note { content, tokens: cost } => {
                prop_assert_eq!(*cost, history.measure.note(content));
                tokens += cost;
            }
        }
    }
    prop_assert!(tokens <= budget, "{} of {}", tokens, budget);
    prop_assert_eq!(projection.verdicts.len(), history.units.len());
    for (unit, verdict) in history.units.iter().zip(&projection.verdicts) {
        let shown = unit.members.iter().filter(|member| seen.contains(member)).count();
        let dropped = verdict.fate == Fate::Dropped;
        prop_assert_eq!(shown, if dropped { 0 } else { unit.members.len() }, "a broken pair");
        if unit.kept.is_some() {
            prop_assert!(unit.members.iter().all(|member| whole.contains(member)));
        }
    }
    Ok(())
}
