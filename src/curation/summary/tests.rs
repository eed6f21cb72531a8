//! Summaries of short histories.

use std::sync::Arc;

use super::*;
use crate::curation::testing::conversation as messages;
use crate::tokens::Estimate;

const LONG: &str = "We talked for long about nothing of any weight, and in the end nobody could say \
                    what had been said, since it was as light as air and went the same way again.";

#[track_caller]
fn check_folding(words: &str, recent_turns: usize, expected: &[usize], turns: u64) {
    let said: Vec<(&str, &str)> = words.split(' ').map(|word| (word, "x")).collect();
    let messages = messages(&said);
    let measure = Measure::plain(Arc::new(Estimate));
    let history = History::new(messages.iter().collect(), &measure);
    let folding = folding(&history, recent_turns);
    assert_eq!((folding.units.as_slice(), folding.turns), (expected, turns), "{words}");
}

#[test]
fn recent_turns_and_units_that_cannot_be_left_out_stay() {
    check_folding("s u a u a u a", 1, &[2, 3, 4], 2);
    check_folding("s u a u a u a", 2, &[2], 1);
    check_folding("s u a u a u a", 3, &[], 0);
    check_folding("s u a u a u a", 9, &[], 0);
    check_folding("s u a u! a u a", 0, &[2, 4, 6], 3);
    check_folding("u a>1 t<1 u a>2 u", 1, &[1, 2], 2);
}

#[track_caller]
fn check_newest(words: &str, newest: usize, stay: &[u64]) {
    let said: Vec<(&str, &str)> = words.split(' ').map(|word| (word, "x")).collect();
    let messages = messages(&said);
    let measure = Measure::plain(Arc::new(Estimate));
    let history = History::new(messages.iter().collect(), &measure);
    let folded = folding_messages(&history, newest).messages(&history);
    let stays = |message: &&Message| !folded.iter().any(|gone| gone.number == message.number);
    let kept: Vec<u64> = messages.iter().filter(stays).map(|message| message.number).collect();
    assert_eq!(kept, stay, "{words}");
    assert_eq!(kept.len() + folded.len(), messages.len());
}

#[test]
fn the_newest_messages_stay_and_units_are_folded_whole() {
    check_newest("s u a>1 t<1 u a u a", 2, &[1, 2, 7, 8]);
    check_newest("u a", 2, &[1, 2]);
    check_newest("u a", 10, &[1, 2]);
    check_newest("u a a>1 t<1 u", 2, &[1, 3, 4, 5]);
}

/// A summarizer that returns fixed words, or fails.
struct Told(Result<&'static str, &'static str>);

impl Summarizer for Told {
    fn summarize(&self, _: &Source<'_>) -> Result<String, SummaryError> {
        self.0.map(str::to_owned).map_err(|reason| SummaryError::Failed(reason.to_owned()))
    }
}

#[track_caller]
fn check(
    prior: Option<&Summary>,
    said: &[(&str, &str)],
    summarizer: &dyn Summarizer,
) -> Result<Summary, SummaryError> {
    let messages = messages(said);
    let messages: Vec<&Message> = messages.iter().collect();
    let measure = Measure::plain(Arc::new(Estimate));
    let source =
        Source { prior, messages: &messages, turns: 1, measure: &measure, ledger_tokens: 200 };
    summarize(&source, summarizer)
}

#[test]
fn a_summary_counts_and_keeps_the_ledger() {
    let said = [("u", "Run `make x`."), ("a>1>2", LONG), ("t<1", LONG), ("t<2", LONG)];
    let summary = check(None, &said, &Extractive).unwrap();
    let expected = "[Previous conversation summary: 1 user messages, 1 model responses, 2 tool \
                    calls over 1 turns]\n\n## Commands\n- `make x` (msg-1)";
    assert_eq!(summary.render(), expected);
}

#[test]
fn a_second_summary_folds_the_first_in() {
    let first = check(None, &[("u", "The limit is 5 MB."), ("a", LONG)], &Extractive).unwrap();
    let said = [("u", "The limit is 9 MB."), ("a", LONG), ("a", LONG)];
    let second = check(Some(&first), &said, &Told(Ok("They talked."))).unwrap();
    assert_eq!(second.counts, Counts { user: 2, responses: 3, tool_calls: 0, turns: 2 });
    assert!(second.render().ends_with("They talked.\n\n## Numbers\n- limit: 9 MB (msg-1)"));
    let stored = serde_json::to_string(&second).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&stored).unwrap(), second);
}

#[test]
fn useless_summaries_are_refused() {
    assert_eq!(check(None, &[], &Extractive), Err(SummaryError::Nothing));
    assert_eq!(
        check(None, &[("u", "Hello.")], &Extractive),
        Err(SummaryError::NoSmaller { summary: 24, source_tokens: 2 })
    );
    assert_eq!(
        check(None, &[("u", LONG)], &Told(Err("it is down"))),
        Err(SummaryError::Failed("it is down".to_owned()))
    );
}
