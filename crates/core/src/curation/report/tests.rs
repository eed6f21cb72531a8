//! Tests of reports of windows made by hand.

use super::*;

fn entry(numbers: &[u64], fate: Fate, reason: &'static str, total: Option<f64>) -> Entry {
    Entry {
        section: Section::Messages,
        what: ReportPart::Messages(numbers.to_vec()),
        fate,
        reason,
        score: total.map(|total| Score { total, parts: Vec::new() }),
        before: 10,
        after: if fate == Fate::Dropped { 0 } else { 10 },
    }
}

#[test]
fn similar_neighbours_become_one_line() {
    let text = Entry {
        section: Section::SystemPrompt,
        what: ReportPart::Text,
        ..entry(&[], Fate::Kept, "always", None)
    };
    let note = Entry { what: ReportPart::Note, ..entry(&[], Fate::Kept, "note", None) };
    let report = Report {
        strategy: "sliding",
        phase: None,
        max_tokens: 100,
        tokens_before: 70,
        tokens_after: 40,
        messages: SentCount { sent: 0, of: 0, shortened: 0 },
        exact: true,
        sections: Vec::new(),
        entries: vec![
            text,
            entry(&[1], Fate::Kept, "first", None),
            entry(&[2, 9], Fate::Dropped, "old", Some(8.0)),
            entry(&[3], Fate::Dropped, "old", Some(2.5)),
            entry(&[4, 5], Fate::Dropped, "older", None),
            note,
            entry(&[6], Fate::Kept, "new", Some(1.0)),
        ],
        missing: Vec::new(),
        stable: None,
    };
    let lines: Vec<String> = report
        .condensed()
        .iter()
        .map(|run| {
            let scores = run.scores.map_or(String::new(), |(low, high)| format!(" {low}–{high}"));
            let Run { label, reason, units, before, after, .. } = run;
            format!("{label} {reason} {units}{scores} {before}→{after}")
        })
        .collect();
    let expected = [
        "system-prompt always 1 10→10",
        "msg-1 first 1 10→10",
        "msg-2…msg-9 old 2 2.5–8 20→0",
        "msg-4…msg-5 older 1 10→0",
        "note note 1 10→10",
        "msg-6 new 1 1–1 10→10",
    ];
    assert_eq!(lines, expected);
}

fn print(section: Section, content: &str) -> Print {
    let message = (section == Section::Messages).then_some(1);
    Print { section, role: Role::System, message, content: content.into(), tokens: 3 }
}

#[track_caller]
fn check(old: &[Print], new: &[Print], expected: (Option<u64>, Option<Section>, u64, u64)) {
    let fingerprint = |prints: &[Print]| Fingerprint { prints: prints.to_vec() };
    let Stable { first_difference, section, bytes, tokens } =
        fingerprint(old).compared_with(&fingerprint(new));
    assert_eq!((first_difference, section, bytes, tokens), expected);
}

#[test]
fn the_first_byte_that_differs_is_found() {
    let system = || print(Section::SystemPrompt, "be brief");
    let message = |text: &str| print(Section::Messages, text);
    check(&[], &[], (None, None, 0, 0));
    check(&[system()], &[system()], (None, None, 8, 3));
    check(&[system()], &[system(), message("a")], (Some(8), Some(Section::Messages), 8, 3));
    check(&[system(), message("a")], &[system()], (Some(8), None, 8, 3));
    let old = [system(), message("hello")];
    check(&old, &[system(), message("help")], (Some(11), Some(Section::Messages), 11, 3));
    let other = Print { message: Some(2), ..message("hello") };
    check(&old, &[system(), other], (Some(13), Some(Section::Messages), 13, 3));
    let other = Print { role: Role::User, ..system() };
    check(&old, &[other], (Some(0), Some(Section::SystemPrompt), 0, 0));
}
