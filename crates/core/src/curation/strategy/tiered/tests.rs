//! Tests of what `tiered` keeps, and of the promises of all strategies for any input.

use crate::testing::rounds;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::curation::strategy::{ALL, Fate, Shown, Strategy as _};
use crate::curation::testing::{conversation as messages, summarize_before, worded as message};
use crate::session::message::Message;
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
    let projection = Tiered.project(&history, &Aim { budget, query, ..Aim::default() });
    let mut tokens = 0;
    let show = |shown: &Shown| match shown {
        Shown::Whole(index) => {
            tokens += log[*index].tokens;
            log[*index].number.to_string()
        }
        Shown::Shortened { index, content, tokens: cost } => {
            tokens += cost;
            assert!(content.contains("bytes left out"));
            format!("{}:cut", log[*index].number)
        }
        Shown::Note { content, tokens: cost, .. } => {
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
    let (measure, words) = (measure(), crate::curation::unit::HistoryCache::default());
    for end in (2..=log.len()).step_by(2) {
        for query in [None, Some("what of parse_header_3 and read_part_2?")] {
            let aim = Aim { budget: 1500, query, ..Aim::default() };
            let history = History::new(log[..end].iter().collect(), &measure);
            let fresh = Tiered.project(&history, &aim);
            let history = History { words: Some(&words), ..history };
            assert_eq!(Tiered.project(&history, &aim), fresh, "{end} messages");
        }
    }
}

/// Makes a run whose first result has many lines, one of which has a name that the last step
/// mentions.
fn run_with_lines() -> Vec<Message> {
    let mut log = run(12, 100);
    let mut lines: Vec<String> = (0..60).map(|line| format!("line {line} says nothing")).collect();
    lines[29] = "    fn parse_header(input) {".into();
    lines[30] = "        the first line of its body".into();
    log[3] = message(4, "t<1", &lines.join("\n"));
    for index in (4..log.len()).step_by(2) {
        log[index] = message(index as u64 + 1, "a>1", "Now parse_header.");
    }
    log
}

/// Returns the notes of a window, joined.
fn notes(log: &[Message], budget: u64) -> String {
    let measure = measure();
    let history = History::new(log.iter().collect(), &measure);
    let aim = Aim { budget, ..Aim::default() };
    let note = |shown| match shown {
        Shown::Note { content, .. } => Some(content),
        _ => None,
    };
    let shown = Tiered.project(&history, &aim).shown;
    shown.into_iter().filter_map(note).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn the_newest_stay_whole_and_a_note_stands_for_the_rest() {
    let (shown, tokens) = project(&run(12, 100), 1100, None);
    assert_eq!(shown[..2], ["1", "2"]);
    assert!(shown[2].starts_with("[msg-3…msg-"), "{shown:?}");
    assert_eq!(shown.last().map(String::as_str), Some("26"));
    assert!((800..=1100).contains(&tokens), "{tokens}");
}

#[test]
fn a_large_new_result_is_cut_to_its_ends() {
    let mut log = run(4, 300);
    log.extend(run(1, 5000).into_iter().skip(2));
    (1..).zip(&mut log).for_each(|(number, message)| message.number = number);
    let (shown, _) = project(&log, 3000, None);
    assert_eq!(shown.last().map(String::as_str), Some("12:cut"), "{shown:?}");
    let (shown, _) = project(&log, 6500, None);
    assert_eq!(shown.last().map(String::as_str), Some("12"), "it fits: {shown:?}");
}

#[test]
fn the_newest_line_of_a_name_is_shown_with_its_neighbours() {
    let notes = notes(&run_with_lines(), 900);
    let around = "\n…\nline 26 says nothing\nline 27 says nothing\nline 28 says nothing\n    \
                  fn parse_header(input) {\n        the first line of its body\nline 31 says nothing";
    assert!(notes.contains("msg-4 tool:") && notes.contains(around), "{notes}");
}

#[test]
fn of_equal_lines_the_newest_is_shown() {
    let mut log = run_with_lines();
    log[5] = Message { content: log[3].content.clone(), number: 6, ..log[3].clone() };
    let notes = notes(&log, 900);
    assert!(notes.contains("msg-6 tool:") && !notes.contains("msg-4 tool:"), "{notes}");
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
    assert!(broken <= 40, "{broken} of 199 windows did not continue the one before");
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

/// Lists the shown messages after a summary of all but the last four of the first `end`.
fn project_summarized(log: &[Message], end: usize, budget: u64) -> (Vec<String>, Projection) {
    let measure = measure();
    let mut history = History::new(log[..end].iter().collect(), &measure);
    summarize_before(&mut history, end - 4, budget);
    let mut folded = history.folded.take().unwrap();
    folded.is_folded.resize(log.len(), false);
    let mut history = History::new(log.iter().collect(), &measure);
    history.folded = Some(folded);
    let projection = Tiered.project(&history, &Aim { budget, ..Aim::default() });
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
    assert_eq!(projection.verdicts[2].reason, "everything fits");
    let (shown, projection) = project_summarized(&log, log.len(), 1100);
    assert!(shown.len() > 6 && shown.len() < 26, "{shown:?}");
    assert_eq!(projection.verdicts[2].reason, "summarized, and no room for it");
}

/// There may be no room for the names of what is left out, so the reason does not say that they
/// stand elsewhere.
#[test]
fn the_reason_claims_nothing_of_names_that_stand_nowhere() {
    let mut log = run(12, 100);
    let lines: Vec<String> =
        (0..40).map(|at| format!("the file has read_part_{at} here")).collect();
    log[3] = message(4, "t<1", &lines.join("\n"));
    for index in (5..25).step_by(2) {
        log[index] = message(index as u64 + 1, "t<1", &format!("it calls write_part_{index}()\n"));
    }
    let measure = measure();
    let history = History::new(log.iter().collect(), &measure);
    let projection = Tiered.project(&history, &Aim { budget: 120, ..Aim::default() });
    let dropped = projection.verdicts.iter().filter(|verdict| verdict.fate == Fate::Dropped);
    let reasons: Vec<&str> = dropped.map(|verdict| verdict.reason).collect();
    assert!(reasons.contains(&"no room for it"), "{reasons:?}");
    assert!(reasons.iter().all(|reason| !reason.contains("elsewhere")), "{reasons:?}");
}

#[test]
fn windows_after_a_summary_begin_with_the_same_bytes_until_the_room_is_full() {
    let log = run(40, 100);
    let (before, _) = project_summarized(&log[..62], 62, 4000);
    for end in (62..=70).step_by(2) {
        let (shown, _) = project_summarized(&log[..end], 62, 4000);
        assert!(shown.starts_with(&before), "{end}: {shown:?} after {before:?}");
    }
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
    #![proptest_config(ProptestConfig::with_cases(rounds(32, 256)))]
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
            let aim = Aim { budget, query: asked.then_some("what must you do?"), ..Aim::default() };
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
            Shown::Note { content, tokens: cost, .. } => {
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

#[test]
fn what_the_user_said_has_a_share_and_empty_lines_are_not_missed() {
    let mut log = run_with_lines();
    log[6] = message(7, "u", "Never push to main.\n\nAnd use tabs.");
    log[7] = message(8, "u", "Go on.");
    let notes = notes(&log, 900);
    assert!(notes.contains("msg-7 user:\nNever push to main.\nAnd use tabs."), "{notes}");
}

/// What the user says next is mostly about the last answer, even a long one.
#[test]
fn the_last_answer_stays_whole_up_to_a_share() {
    let mut log = run(12, 100);
    let point =
        |at| format!("({at}) The check of part {at} can fail, since nobody reads its result.");
    let answer: Vec<String> = (0..40).map(point).collect();
    let number = log.len() as u64 + 1;
    log.push(message(number, "a", &answer.join("\n")));
    for next in ["", "Do all of these."] {
        if !next.is_empty() {
            log.push(message(number + 1, "u", next));
        }
        let measure = measure();
        let history = History::new(log.iter().collect(), &measure);
        let shown =
            |budget| Tiered.project(&history, &Aim { budget, once: true, ..Aim::default() }).shown;
        assert!(shown(1400).contains(&Shown::Whole(number as usize - 1)), "{next}");
        let has = |shown: &Shown, line: &str| match shown {
            Shown::Note { content, .. } => content.contains(line),
            _ => false,
        };
        let less = shown(500);
        let kept: Vec<bool> =
            answer.iter().map(|line| less.iter().any(|shown| has(shown, line))).collect();
        let count = kept.iter().filter(|kept| **kept).count();
        assert!((10..40).contains(&count) && kept[39], "{next} {count}");
    }
}
