//! Shortens the summary in a window. As far as there is room, the window also shows the messages
//! that the summary stands in for. The summary therefore takes only a share of the window, and
//! leaves out the words of these messages.

use std::collections::HashSet;

use super::WindowInput;
use crate::curation::offer::{Offer, reason};
use crate::curation::section::Section;
use crate::curation::strategy::{Projection, Shown};

/// Maximum share of a window for the summary. A window without a summary has a note about left-out
/// messages, which has the same maximum. With 10 %, windows of recorded sessions had one percentage
/// point less of the text that was needed.
const SHARE: f64 = 0.05;

/// Cuts the summary to its [`SHARE`] if the history has messages that it stands in for.
pub(super) fn cut(offer: &mut Offer, request: &WindowInput<'_>) {
    let (Some(summary), Some(_)) = (request.summary, &request.history.folded) else { return };
    let measure = request.history.measure;
    let most = (request.max_tokens as f64 * SHARE) as u64;
    let text = summary.within(most, measure).render();
    offer.shorten(Section::Summary, measure.note(&text), text);
}

/// Removes from the summary the words of messages that are shown whole.
/// Removes the whole summary if all messages that it stands in for are shown whole.
pub(super) fn spare(offer: &mut Offer, request: &WindowInput<'_>, chosen: &Projection) {
    let (Some(summary), Some(folded)) = (request.summary, &request.history.folded) else { return };
    let history = request.history;
    let shown = chosen.shown.iter().filter_map(|shown| match shown {
        Shown::Whole(index) if folded.is_folded[*index] => Some(history.messages[*index].number),
        _ => None,
    });
    let shown: HashSet<u64> = shown.collect();
    let count = folded.is_folded.iter().filter(|is_folded| **is_folded).count();
    if shown.len() == count && !folded.has_others {
        offer.withdraw(Section::Summary, reason::SHOWN);
        return;
    }
    let Some(most) = offer.cost_of(Section::Summary).filter(|_| !shown.is_empty()) else { return };
    let mut rest = summary.clone();
    rest.said.words.retain(|words| !shown.contains(&words.number));
    let text = rest.within(most, history.measure).render();
    let tokens = history.measure.note(&text);
    if tokens <= most {
        offer.shorten(Section::Summary, tokens, text);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary_of;
    use super::super::{Section, build};
    use super::*;
    use crate::curation::section::{CountedText, Sections};
    use crate::curation::strategy::{ALL, Fate};
    use crate::curation::summary::SummaryText;
    use crate::curation::testing::{conversation, plain, summarize_before};
    use crate::curation::unit::History;
    use crate::session::message::Message;

    fn said() -> Vec<Message> {
        let rules = ["Never edit src/old.rs.", "Always run make check.", "Use port 5433."];
        let filler = "and so on, as everybody knows ".repeat(20);
        let long: Vec<String> = rules.iter().map(|rule| format!("{rule} {filler}")).collect();
        let mut said = vec![("u", "Begin."), ("a", &*filler)];
        said.extend(long.iter().map(|text| ("u", &**text)));
        said.extend([("a", &*filler), ("a", &*filler), ("u", "Go on.")]);
        conversation(&said)
    }

    /// Returns the outcome and the text of the summary in a window.
    #[track_caller]
    fn check(max_tokens: u64, expected: Fate, reason: &str) -> String {
        let (messages, measure) = (said(), plain());
        let mut history = History::new(messages.iter().collect(), &measure);
        summarize_before(&mut history, 7, max_tokens);
        let folded: Vec<&Message> = messages[1..7].iter().collect();
        let summary: SummaryText = summary_of(&folded, &measure).unwrap();
        let text = CountedText::new(summary.render(), &**measure.counter());
        let sections = Sections { summary: Some(text), ..Sections::default() };
        let window = build(&WindowInput {
            sections: &sections,
            history: &history,
            phase: None,
            strategy: ALL[0],
            query: None,
            similarity: None,
            summary: Some(&summary),
            max_tokens,
            previous: None,
            restored: &[],
            once: false,
        })
        .unwrap();
        let entry = window.report.entries.iter().find(|entry| entry.section == Section::Summary);
        let entry = entry.unwrap();
        assert_eq!((entry.fate, entry.reason), (expected, reason), "{:#?}", window.report.entries);
        let part = window.parts.iter().find(|part| part.section == Section::Summary);
        part.map(|part| part.content.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_summary_is_not_needed_beside_all_its_messages() {
        assert_eq!(check(2000, Fate::Dropped, "the messages that it stands in for are shown"), "");
    }

    #[test]
    fn a_summary_leaves_out_what_is_shown() {
        let text = check(1000, Fate::Shortened, "cut to its share, without what is shown anyway");
        assert!(text.starts_with("[Previous conversation summary"), "{text}");
        assert!(!text.contains("(msg-5)"), "msg-5 is shown: {text}");
    }
}
