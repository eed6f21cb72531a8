//! Builds the report of a window from the parts that were offered, chosen and built.

use super::{MessagePart, WindowInput, fingerprint};
use crate::curation::offer::{Offer, OfferedText, reason};
use crate::curation::phase::{self, Need};
use crate::curation::report::{Entry, Report, ReportPart, SectionTokens, SentCount};
use crate::curation::section::Section;
use crate::curation::strategy::{Fate, Projection, Shown};
use crate::curation::unit::History;
use crate::session::message::Role;

/// Reason given for a note.
const NOTE: &str = "replaces left-out messages";

pub(super) fn report(
    request: &WindowInput<'_>,
    offer: &Offer,
    chosen: Projection,
    parts: &[MessagePart],
) -> Report {
    let is_shortened = |shown: &&Shown| matches!(shown, Shown::Shortened { .. });
    let messages = SentCount {
        sent: parts.iter().filter(|part| part.message.is_some()).count() as u64,
        of: request.history.messages.len() as u64,
        shortened: chosen.shown.iter().filter(is_shortened).count() as u64,
    };
    let entries = entries(offer, request.history, chosen);
    let sections = sections(&entries);
    Report {
        strategy: request.strategy.name(),
        phase: request.phase,
        max_tokens: request.max_tokens,
        tokens_before: sections.iter().map(|tokens| tokens.before).sum(),
        tokens_after: sections.iter().map(|tokens| tokens.after).sum(),
        exact: request.history.measure.is_exact(),
        messages,
        sections,
        entries,
        missing: missing(request, offer),
        stable: request.previous.map(|previous| previous.compared_with(&fingerprint(parts))),
    }
}

fn entries(offer: &Offer, history: &History<'_>, chosen: Projection) -> Vec<Entry> {
    let mut of_messages = entries_of_messages(history, chosen);
    let mut entries = Vec::with_capacity(offer.texts.len() + of_messages.len());
    for section in Section::ALL {
        let texts = offer.texts.iter().filter(|offered| offered.section == *section);
        entries.extend(texts.map(entry_of));
        if *section == Section::Messages {
            entries.append(&mut of_messages);
        }
    }
    entries
}

fn entry_of(offered: &OfferedText) -> Entry {
    let (fate, reason) = match (offered.admitted, offered.tokens < offered.whole) {
        (false, _) => (Fate::Dropped, offered.reason),
        (true, false) => (Fate::Kept, offered.reason),
        (true, true) => (Fate::Shortened, reason::SHORTENED),
    };
    Entry {
        section: offered.section,
        what: offered.what.clone(),
        fate,
        reason,
        score: None,
        before: offered.whole,
        after: if offered.admitted { offered.tokens } else { 0 },
    }
}

/// Lists one entry for each unit and one for each note. The entry of a note comes right after that
/// of the unit whose message is shown before the note. Lines of a unit in a note count for the unit.
fn entries_of_messages(history: &History<'_>, chosen: Projection) -> Vec<Entry> {
    let unit_of = history.unit_of_each_message();
    let mut after = vec![0; history.units.len()];
    let mut notes: Vec<(usize, u64)> = Vec::new();
    let mut place = 0;
    for shown in &chosen.shown {
        let tokens = shown.tokens(history);
        match shown {
            Shown::Note { lines, .. } => {
                let mut rest = tokens;
                for (index, cost) in lines {
                    let cost = rest.min(*cost);
                    after[unit_of[*index]] += cost;
                    rest -= cost;
                }
                notes.push((place, rest));
            }
            Shown::Whole(index) | Shown::Shortened { index, .. } => {
                after[unit_of[*index]] += tokens;
                place = unit_of[*index] + 1;
            }
        }
    }
    notes.sort_by_key(|(place, _)| *place);
    let mut notes = notes.into_iter().peekable();
    let mut entries = Vec::with_capacity(history.units.len() + notes.len());
    for (at, (unit, verdict)) in history.units.iter().zip(chosen.verdicts).enumerate() {
        while let Some((_, tokens)) = notes.next_if(|(place, _)| *place <= at) {
            entries.push(note(tokens));
        }
        entries.push(Entry {
            section: Section::Messages,
            what: ReportPart::Messages(history.numbers(unit)),
            fate: verdict.fate,
            reason: verdict.reason,
            score: verdict.score,
            before: unit.tokens,
            after: after[at],
        });
    }
    entries.extend(notes.map(|(_, tokens)| note(tokens)));
    entries
}

fn note(tokens: u64) -> Entry {
    Entry {
        section: Section::Messages,
        what: ReportPart::Note,
        fate: Fate::Kept,
        reason: NOTE,
        score: None,
        before: 0,
        after: tokens,
    }
}

fn sections(entries: &[Entry]) -> Vec<SectionTokens> {
    let by_section = entries.chunk_by(|a, b| a.section == b.section);
    let sum = |entries: &[Entry]| SectionTokens {
        section: entries[0].section,
        before: entries.iter().map(|entry| entry.before).sum(),
        after: entries.iter().map(|entry| entry.after).sum(),
    };
    by_section.map(sum).collect()
}

fn missing(request: &WindowInput<'_>, offer: &Offer) -> Vec<Section> {
    let described = request.history.messages.iter().any(|message| message.role == Role::User);
    let required = |section: &&Section| phase::need(request.phase, **section) == Need::Must;
    let there = |section: Section| match section {
        Section::Messages => described,
        _ => offer.admitted().any(|offered| offered.section == section),
    };
    Section::ALL.iter().filter(required).copied().filter(|section| !there(*section)).collect()
}
