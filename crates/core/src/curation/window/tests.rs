//! Tests of windows of small sessions, and of very many random ones.

use crate::testing::rounds;
use proptest::prelude::{ProptestConfig, any, proptest};

use super::*;
use crate::curation::report::Entry;
use crate::curation::section::{CodeUnit, CountedText, Failure};
use crate::curation::strategy::sliding::Sliding;
use crate::curation::strategy::{ALL, Fate};
use crate::curation::summary::{Extractive, SummarySource, summarize};
use crate::curation::testing::{Random, history, messages, plain, summarize_before, worded};
use crate::session::message::Message;
use crate::tokens::{Estimate, Measure};
use crate::wording::{in_full, lines};

fn text(tokens: usize) -> Option<CountedText> {
    Some(CountedText::new("four".repeat(tokens), &Estimate))
}

fn unit(name: &str, tokens: usize, approved: bool) -> CodeUnit {
    // The two lines above the code have 53 characters if the name has four.
    let code = "x".repeat((tokens * 4).saturating_sub(53));
    CodeUnit { name: name.into(), path: "src/unit.rs".into(), code, approved }
}

/// Returns every possible section, each text of a size that identifies it.
fn everything() -> Sections {
    Sections {
        tool_schemas: None,
        system_prompt: text(10),
        design_document: text(20),
        type_definitions: text(30),
        current_unit: text(40),
        relevant_tests: text(50),
        failures: vec![Failure { name: "TWO? works".into(), ..Failure::default() }],
        units: vec![
            unit("one?", 100, true),
            unit("two?", 101, true),
            unit("late", 99, false),
            unit("thre", 102, true),
            unit("four", 103, true),
        ],
        context_items: text(60),
        summary: text(70),
        repo_map: None,
        grounding: text(80),
    }
}

fn request<'a>(
    sections: &'a Sections,
    history: &'a History<'a>,
    max_tokens: u64,
) -> WindowInput<'a> {
    WindowInput {
        sections,
        history,
        phase: None,
        strategy: &Sliding,
        query: None,
        similarity: None,
        summary: None,
        max_tokens,
        previous: None,
        restored: &[],
        once: false,
    }
}

/// Formats the parts: the initials and tokens of a section, or the number of a message.
fn show(window: &Window) -> String {
    let part = |part: &MessagePart| match (part.section, part.message) {
        (Section::Messages, Some(number)) => number.to_string(),
        (Section::Messages, None) => "note".into(),
        (section, _) => {
            let initials = section.name().split('-').map(|word| &word[..1]);
            format!("{}{}", initials.collect::<String>(), part.tokens)
        }
    };
    window.parts.iter().map(part).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(phase: Option<Phase>, words: &str, max_tokens: u64, expected: &str) -> Window {
    let (sections, messages, measure) = (everything(), messages(words), plain());
    let history = history(&messages, &measure);
    let window = build(&WindowInput { phase, ..request(&sections, &history, max_tokens) }).unwrap();
    assert_eq!(show(&window), expected);
    assert_eq!(window.tokens, window.report.tokens_after);
    window
}

#[test]
fn each_phase_has_its_sections_in_a_fixed_order() {
    check(Some(Phase::Planning), "u a u", 9_999, "sp10 ci60 s70 1 2 3 g80");
    check(Some(Phase::Interface), "u a u", 9_999, "sp10 dd20 td30 ci60 s70 1 2 3 g80");
    let implementation = "sp10 dd20 td30 cu40 rt50 ci60 s70 1 2 3 pu101 pu102 pu103 g80";
    check(Some(Phase::Implementation), "u a u", 9_999, implementation);
    let testing = "sp10 dd20 td30 rt18 i90 ci60 s70 1 2 3 g80";
    check(Some(Phase::Testing), "u a u", 9_999, testing);
    let all = "sp10 dd20 td30 cu40 rt18 i90 ci60 s70 1 2 3 pu101 pu102 pu103 g80";
    check(None, "u a u", 9_999, all);
}

#[test]
fn previous_units_have_half_of_what_remains_and_the_others_are_tried() {
    // The other sections take 360, so 407 leave 203 for units: 102 + 101, but not 103 + 102.
    let phase = Some(Phase::Implementation);
    let others = "sp10 dd20 td30 cu40 rt50 ci60 s70 1 2 3";
    check(phase, "u a u", 360 + 612, &format!("{others} pu101 pu102 pu103 g80"));
    check(phase, "u a u", 360 + 611, &format!("{others} pu102 pu103 g80"));
    check(phase, "u a u", 360 + 407, &format!("{others} pu103 g80"));
    check(phase, "u a u", 360 + 205, &format!("{others} pu102 g80"));
    check(phase, "u a u", 360 + 201, &format!("{others} g80"));
}

#[test]
fn sections_take_their_tokens_from_the_messages() {
    let phase = Some(Phase::Implementation);
    let window = check(
        phase,
        "u a=100 a=100 u",
        360 + 304,
        "sp10 dd20 td30 cu40 rt50 ci60 s70 1 note 3 4 pu103 g80",
    );
    let fates = |section: Section| {
        let entries = window.report.entries.iter().filter(move |e| e.section == section);
        entries.map(move |e| format!("{} {:?}: {}", e.what.label(section), e.fate, e.reason))
    };
    let expected = [
        "one? Dropped: older than the last three approved units",
        "two? Dropped: previous units get at most half of the remaining budget",
        "thre Dropped: previous units get at most half of the remaining budget",
        "four Kept: one of the last three approved units",
    ];
    assert_eq!(fates(Section::PreviousUnits).collect::<Vec<_>>(), expected);
    let expected = [
        "msg-1 Kept: the first user message",
        "note Kept: replaces left-out messages",
        "msg-2 Dropped: older than the newest that fit",
        "msg-3 Kept: among the newest that fit",
        "msg-4 Kept: the last user message",
    ];
    assert_eq!(fates(Section::Messages).collect::<Vec<_>>(), expected);
}

#[test]
fn the_least_important_parts_go_first() {
    let phase = Some(Phase::Implementation);
    let fixed = "sp10 dd20";
    check(phase, "u a=5", 300, &format!("{fixed} td30 cu40 rt50 ci60 s70 1 2"));
    check(phase, "u a=5", 250, &format!("{fixed} td30 cu40 ci60 s70 1 2"));
    check(phase, "u a=5", 180, &format!("{fixed} td30 cu40 s70 1 2"));
    check(phase, "u a=5", 110, &format!("{fixed} td30 cu40 1 2"));
    check(phase, "u a=5", 105, &format!("{fixed} td30 cu40 1"));
    let window = check(phase, "u a=5", 100, &format!("{fixed} cu40 1 2"));
    assert_eq!(window.report.missing, [Section::TypeDefinitions]);
    check(phase, "u a=5", 71, &format!("{fixed} cu40 1"));
}

#[test]
fn a_budget_that_is_too_small_names_the_parts_that_must_stay() {
    let (sections, messages, measure) = (everything(), messages("u a u! a"), plain());
    let history = history(&messages, &measure);
    let phase = Some(Phase::Implementation);
    let request = WindowInput { phase, ..request(&sections, &history, 71) };
    let error = build(&request).unwrap_err();
    let expected = "a budget of 71 tokens is too small: the parts that cannot be left out need 72: \
                    current-unit (always included, 40 tokens), \
                    design-document (always included, 20 tokens), \
                    system-prompt (always included, 10 tokens), \
                    msg-1 (the first user message, 1 token), msg-3 (pinned, 1 token)";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.needed, 72);
    assert!(build(&WindowInput { max_tokens: error.needed, ..request }).is_ok());
}

#[test]
fn missing_required_sections_are_reported_and_not_refused() {
    let (sections, messages, measure) = (Sections::default(), messages(""), plain());
    let history = history(&messages, &measure);
    let missing = |phase| {
        let request = WindowInput { phase: Some(phase), ..request(&sections, &history, 0) };
        let missing = build(&request).unwrap().report.missing;
        missing.iter().map(|section| section.name()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(missing(Phase::Planning), "system-prompt messages");
    let testing = "system-prompt design-document type-definitions relevant-tests";
    assert_eq!(missing(Phase::Testing), testing);
    let empty = Sections { system_prompt: text(0), ..Sections::default() };
    let window = build(&request(&empty, &history, 0)).unwrap();
    assert_eq!((window.parts.len(), window.tokens), (0, 0));
}

#[test]
fn system_prompts_in_messages_come_before_changing_sections() {
    let expected = "sp10 dd20 td30 cu40 rt18 i90 1 2 ci60 s70 3 4 5 6 pu101 pu102 pu103 g80";
    let window = check(None, "s s u s a u", 9_999, expected);
    assert_eq!(window.tokens, window.report.tokens_after);
}

#[test]
fn tools_are_counted_and_never_go() {
    let (messages, measure) = (messages("u a u"), plain());
    let history = history(&messages, &measure);
    let sections = Sections { tool_schemas: text(7), ..Sections::default() };
    let window = build(&request(&sections, &history, 9)).unwrap();
    assert_eq!((show(&window).as_str(), window.tokens), ("ts7 1 3", 9));
    assert_eq!(build(&request(&sections, &history, 8)).unwrap_err().needed, 9);
}

#[test]
fn usage_is_reported_by_purpose() {
    let all = "sp10 dd20 td30 cu40 rt50 ci60 s70 1 2 3 pu101 pu102 pu103 g80";
    let window = check(Some(Phase::Implementation), "u a u", 9_999, all);
    let expected = WindowUsage {
        phase: Some(Phase::Implementation),
        system: 10,
        design: 20,
        types: 30,
        current_context: 90,
        messages: 3,
        total: 669,
    };
    assert_eq!(window.usage, expected);
    let sections = window
        .report
        .sections
        .iter()
        .map(|tokens| format!("{} {}→{}", tokens.section.name(), tokens.before, tokens.after));
    let sections: Vec<String> = sections.collect();
    assert_eq!(sections[4], "relevant-tests 50→50");
    assert_eq!(sections.last().unwrap(), "grounding 80→80");
}

#[test]
fn the_first_byte_that_differs_from_the_previous_window_is_reported() {
    let (sections, measure) = (everything(), plain());
    let (short, long) = (messages("u a"), messages("u a u"));
    let (short, long) = (history(&short, &measure), history(&long, &measure));
    let phase = Some(Phase::Planning);
    let first = build(&WindowInput { phase, ..request(&sections, &short, 999) }).unwrap();
    assert_eq!(first.report.stable, None);
    let previous = first.fingerprint();
    let previous = Some(&previous);
    let again = build(&WindowInput { phase, previous, ..request(&sections, &short, 999) }).unwrap();
    assert_eq!(again.report.stable.unwrap().first_difference, None);
    let next = build(&WindowInput { phase, previous, ..request(&sections, &long, 999) }).unwrap();
    let stable = next.report.stable.unwrap();
    // Sections after the messages also follow the new message, so they are not stable.
    assert_eq!((stable.bytes, stable.tokens), (4 * 142, 142));
    assert_eq!(stable.section, Some(Section::Messages));
}

/// A strategy that breaks every rule.
struct Careless;

impl Strategy for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn keeps(&self) -> &'static str {
        "every other message, whatever it costs"
    }

    fn project(&self, history: &History<'_>, _: &Aim<'_>) -> Projection {
        let content = "much".repeat(999);
        let tokens = history.measure.note(&content);
        let note = Shown::Note { content, tokens, lines: Vec::new() };
        let shown = (0..history.messages.len()).step_by(2).map(Shown::Whole).chain([note]);
        Projection { shown: shown.collect(), verdicts: Vec::new() }
    }
}

/// Checks that what the receipt lists as left out comes back to the byte, whole and in ranges.
#[track_caller]
fn check_receipt(window: &Window, history: &History<'_>, random: &mut Random) {
    for entry in window.report.entries.iter().filter(|entry| entry.fate != Fate::Kept) {
        assert!(!entry.reason.is_empty() && entry.before >= entry.after, "{entry:?}");
        let ReportPart::Messages(numbers) = &entry.what else { continue };
        for number in numbers {
            let message = history.messages.iter().find(|it| it.number == *number).unwrap();
            let text = in_full(
                &message.content,
                message.tool_calls.iter().map(ToolCall::name_and_arguments),
            );
            let (content, calls) = text.split_at(message.content.len());
            assert_eq!(content, &*message.content);
            let mut of_calls = message.tool_calls.iter();
            assert!(of_calls.all(|call| calls.contains(&call.arguments)), "{text}");
            let count = text.lines().count() as u64;
            let cut = random.below(count);
            let parts = [lines(&text, 1, Some(cut)), lines(&text, cut + 1, None)];
            assert_eq!(parts.map(Option::unwrap_or_default).concat(), text);
        }
    }
}

/// Checks that messages that the user wants back are there whole, or that the report says why not.
#[track_caller]
fn check_restored(request: &WindowInput<'_>, window: &Window) {
    for entry in &window.report.entries {
        let ReportPart::Messages(numbers) = &entry.what else { continue };
        if numbers.iter().any(|number| request.restored.contains(number)) {
            let is_there = entry.fate == Fate::Kept && entry.before == entry.after;
            assert!(is_there || entry.reason == NO_ROOM, "{entry:?}");
        }
    }
}

/// Checks the rules that hold for every window.
#[track_caller]
fn check_window(request: &WindowInput<'_>, history: &History<'_>) {
    let window = match build(request) {
        Ok(window) => window,
        Err(error) => {
            assert!(error.needed > request.max_tokens);
            let sum: u64 = error.parts.iter().map(|part| part.tokens).sum();
            assert_eq!(sum, error.needed);
            return;
        }
    };
    assert!(window.tokens <= request.max_tokens);
    assert_eq!(window.tokens, window.parts.iter().map(|part| part.tokens).sum::<u64>());
    assert_eq!(window.tokens, window.report.tokens_after);
    let counted: u64 = window.parts.iter().map(|part| cost(part, history)).sum();
    assert_eq!(window.tokens, counted, "a part has another cost than it says");
    let shown: Vec<u64> = window.parts.iter().filter_map(|part| part.message).collect();
    assert!(shown.is_sorted_by(|a, b| a < b), "messages are repeated or out of order");
    for unit in &history.units {
        let there = |message: &&Message| shown.binary_search(&message.number).is_ok();
        let count = history.members(unit).filter(there).count();
        let whole = count == unit.members.len();
        assert!(whole || (count == 0 && unit.kept.is_none()), "torn or lost: {unit:?}");
        let changed = |message: &Message| {
            let part = window.parts.iter().find(|part| part.message == Some(message.number));
            part.is_some_and(|part| part.content != message.content)
        };
        assert!(unit.kept.is_none() || !history.members(unit).any(changed), "changed: {unit:?}");
    }
    let messages =
        window.report.entries.iter().filter(|e| matches!(e.what, ReportPart::Messages(_)));
    assert_eq!(messages.count(), history.units.len());
    for entry in &window.report.entries {
        let ReportPart::Messages(numbers) = &entry.what else { continue };
        let is_told = numbers.iter().any(|number| has_lines_of(&window, *number));
        assert!(entry.fate != Fate::Dropped || (entry.after > 0) == is_told, "{entry:?}");
    }
    assert_eq!(build(request).as_ref(), Ok(&window), "a second build differs");
    check_receipt(&window, history, &mut Random::new(window.tokens));
    check_restored(request, &window);
}

/// Returns whether a note has lines of a message.
fn has_lines_of(window: &Window, number: u64) -> bool {
    let mut notes = window.parts.iter().filter(|part| part.message.is_none());
    notes.any(|note| note.content.contains(&format!("\nmsg-{number} ")))
}

fn cost(part: &MessagePart, history: &History<'_>) -> u64 {
    let same = |message: &&&Message| {
        part.message == Some(message.number) && part.content == message.content
    };
    match history.messages.iter().find(same) {
        Some(message) => history.measure.message(message.tokens),
        None => history.measure.note(&part.content),
    }
}

fn small_sections(random: &mut Random) -> Sections {
    let mut some = |most: u64| text(random.below(most) as usize).filter(|_| random.below(3) > 0);
    let mut sections = Sections {
        system_prompt: some(9),
        design_document: some(9),
        type_definitions: some(9),
        current_unit: some(9),
        relevant_tests: some(9),
        context_items: some(30),
        summary: some(30),
        repo_map: some(30),
        grounding: some(30),
        ..Sections::default()
    };
    for _ in 0..random.below(5) {
        sections.units.push(unit("some", random.below(60) as usize, random.below(3) > 0));
    }
    sections
}

/// Summarizes messages, unless that would make them no smaller.
pub(super) fn summary_of(messages: &[&Message], measure: &Measure) -> Option<SummaryText> {
    let source = SummarySource { prior: None, messages, turns: 1, measure, said_tokens: 999 };
    summarize(&source, &Extractive).ok()
}

/// Checks windows of a random history, by every strategy or by one of them in turn.
fn check_random(seed: u64, most: u64, every: bool) {
    let mut random = Random::new(seed);
    let (messages, sections) = (random.messages(most), small_sections(&mut random));
    let measure = plain().scaled([1.0, 1.2, 1.55][random.below(3) as usize], false);
    let mut history = history(&messages, &measure);
    let all = history.tokens() + 200;
    let phases = Phase::ALL.len() as u64 + 1;
    let phase = Phase::ALL.get(random.below(phases) as usize).copied();
    let query = Some("nothing much").filter(|_| random.below(2) == 0);
    let max_tokens = random.below(all + 10);
    let once = random.below(2) == 0;
    let wanted = random.below(4);
    let restored: Vec<u64> = (0..wanted).map(|_| 1 + random.below(most)).collect();
    if random.below(3) == 0 {
        let end = random.below(messages.len() as u64 + 1) as usize;
        summarize_before(&mut history, end, random.below(all));
    }
    let folded: Vec<&Message> = history
        .messages
        .iter()
        .filter(|it| history.is_folded(it.number as usize - 1))
        .copied()
        .collect();
    let summary = summary_of(&folded, &measure);
    let strategies: Vec<&dyn Strategy> = ALL.iter().copied().chain([&Careless as _]).collect();
    let turn = seed as usize % strategies.len();
    for strategy in if every { &strategies[..] } else { &strategies[turn..=turn] } {
        let strategy = *strategy;
        let request =
            WindowInput { phase, query, strategy, ..request(&sections, &history, max_tokens) };
        let request =
            WindowInput { summary: summary.as_ref(), restored: &restored, once, ..request };
        check_window(&request, &history);
    }
}

/// `make test-all` looks at many more.
#[test]
fn random_histories_give_whole_windows_within_their_budgets() {
    for seed in 0..rounds(4000, 100_000) {
        let seen = std::panic::catch_unwind(|| check_random(seed, 14, false));
        assert!(seen.is_ok(), "history {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn longer_histories_do_as_well(seed in any::<u64>(), most in 15..150_u64) {
        check_random(seed, most, true);
    }
}

#[test]
fn lines_in_a_note_are_not_counted_as_left_out() {
    let mut log = messages("u");
    for step in 0..12 {
        let number = log.len() as u64 + 1;
        log.push(worded(
            number,
            "a>1",
            &format!("I look at read_part_{step} in src/part_{step}.rs."),
        ));
        let lines =
            (0..40).map(|line| format!("    part_{line}.read_{step}(the_input, {line});\n"));
        log.push(worded(number + 1, "t<1", &lines.collect::<String>()));
    }
    let (sections, measure) = (Sections::default(), plain());
    let history = history(&log, &measure);
    for budget in [200, 500, 900, 2000] {
        let request = WindowInput { strategy: ALL[0], ..request(&sections, &history, budget) };
        let window = build(&request).unwrap();
        let left = |entry: &Entry| entry.before - entry.after;
        let of_messages = |entry: &&Entry| entry.fate == Fate::Dropped;
        let in_report: u64 = window.report.entries.iter().filter(of_messages).map(left).sum();
        let notes = window.parts.iter().filter(|part| part.message.is_none());
        let said =
            notes.map(|note| note.content.split(' ').nth(1).unwrap().parse::<u64>().unwrap());
        assert_eq!(in_report, said.sum::<u64>(), "{budget}");
        assert!(in_report < history.tokens() - budget / 4, "{in_report}");
    }
}

#[test]
fn the_mistake_of_a_strategy_is_reported() {
    let (sections, messages, measure) = (Sections::default(), messages("u a>1 t<1 a u"), plain());
    let history = history(&messages, &measure);
    let request = WindowInput { strategy: &Careless, ..request(&sections, &history, 5) };
    let window = build(&request).unwrap();
    assert_eq!(show(&window), "1 5");
    let reasons: Vec<_> = window.report.entries.iter().map(|e| (e.fate, e.reason)).collect();
    assert_eq!(reasons[1], (Fate::Dropped, "the strategy showed it in part or more than once"));
}
