//! Offers texts other than the messages to a window, and decides which of them are admitted, the
//! most important first. Only a summary may be shortened; every other text is admitted or left out
//! as a whole.

use std::sync::Arc;

use super::phase::{self, Need};
use super::report::ReportPart;
use super::section::{
    CodeUnit, CountedText, Section, Sections, format_failures, format_implementation,
    format_previous_unit,
};
use crate::session::message::Phase;
use crate::tokens::Measure;

/// Sections that are never trimmed. Tool schemas are among them because models refuse messages that
/// call unknown tools.
pub(super) const NEVER_TRIMMED: &[Section] =
    &[Section::ToolSchemas, Section::SystemPrompt, Section::DesignDocument, Section::CurrentUnit];

/// Sections of one text each that can be left out, most important first. Sections that the phase
/// requires come before all others. The reasons for this order: a summary stands in for messages
/// that are no longer in view, the user chose the items, memories are searched anew for every turn, and a
/// model can ask for a map itself.
const PRECIOUS: &[Section] = &[
    Section::Summary,
    Section::ContextItems,
    Section::TypeDefinitions,
    Section::RelevantTests,
    Section::Implementation,
    Section::Grounding,
    Section::RepoMap,
];

/// Maximum number of approved units of code in a window.
pub(super) const PREVIOUS_UNITS: usize = 3;

/// The reasons for admitting a text or leaving it out.
pub(super) mod reason {
    pub(crate) const ALWAYS: &str = "always included";
    pub(crate) const REQUIRED: &str = "the phase requires it";
    pub(crate) const FITS: &str = "it fits";
    pub(crate) const NOT_NOW: &str = "not for this phase";
    pub(crate) const NO_ROOM: &str = "no room left after more important parts";
    pub(crate) const RECENT_UNIT: &str = "one of the last three approved units";
    pub(crate) const HALF: &str = "previous units get at most half of the remaining budget";
    pub(crate) const OLDER_UNIT: &str = "older than the last three approved units";
    pub(crate) const NO_CODE: &str = "it has no implementation";
    pub(crate) const SHORTENED: &str = "cut to its share, without what is shown anyway";
    pub(crate) const SHOWN: &str = "the messages that it stands in for are shown";
}

/// A text that is offered to a window.
pub(super) struct OfferedText {
    pub(super) section: Section,
    pub(super) what: ReportPart,
    pub(super) text: Arc<str>,
    /// Cost of the text, in tokens.
    pub(super) tokens: u64,
    /// Cost of the whole text. More than `tokens` if only a part of the text is offered.
    pub(super) whole: u64,
    pub(super) need: Need,
    pub(super) admitted: bool,
    pub(super) reason: &'static str,
}

/// All offered texts, in the order of the window.
pub(super) struct Offer {
    pub(super) texts: Vec<OfferedText>,
}

impl Offer {
    /// Collects the texts of `sections`, and records how much this phase needs each of them. Texts
    /// that are never trimmed are admitted if the phase allows them.
    pub(super) fn new(sections: &Sections, phase: Option<Phase>, measure: &Measure) -> Self {
        let mut texts = Vec::new();
        for section in Section::ALL {
            let need = phase::need(phase, *section);
            match section {
                Section::Messages => {}
                Section::PreviousUnits => {
                    let units = sections.units.iter().filter(|unit| unit.approved);
                    texts.extend(previous_units(units, need, measure));
                }
                _ => texts.extend(text(sections, *section, phase, measure).map(|counted| {
                    let tokens = measure.message(counted.tokens);
                    OfferedText::new(*section, ReportPart::Text, counted.text, tokens, need)
                })),
            }
        }
        Self { texts }
    }

    /// Returns the cost of the admitted texts, in tokens.
    pub(super) fn tokens(&self) -> u64 {
        self.admitted().map(|offered| offered.tokens).sum()
    }

    pub(super) fn admitted(&self) -> impl Iterator<Item = &OfferedText> {
        self.texts.iter().filter(|offered| offered.admitted)
    }

    /// Returns the cost of a section's text, in tokens; `None` if the text is not admitted.
    pub(super) fn cost_of(&self, section: Section) -> Option<u64> {
        self.admitted().find(|offered| offered.section == section).map(|offered| offered.tokens)
    }

    /// Replaces the text of a section with a part of it, and its cost with that of the part.
    pub(super) fn shorten(&mut self, section: Section, tokens: u64, text: String) {
        for offered in self.texts.iter_mut().filter(|offered| offered.section == section) {
            (offered.tokens, offered.text) = (tokens, text.as_str().into());
        }
    }

    /// Leaves out the text of a section for the reason `why`, even if it was admitted.
    pub(super) fn withdraw(&mut self, section: Section, why: &'static str) {
        for offered in self.texts.iter_mut().filter(|offered| offered.section == section) {
            (offered.admitted, offered.reason) = (false, why);
        }
    }

    /// Admits the texts with this need, as far as they fit into `room` tokens. Does not admit
    /// previous units of code.
    pub(super) fn admit(&mut self, mut room: u64, need: Need) {
        for section in PRECIOUS {
            let wanted = |offered: &&mut OfferedText| {
                offered.section == *section && offered.need == need && !offered.admitted
            };
            for offered in self.texts.iter_mut().filter(wanted) {
                let why = if need == Need::Must { reason::REQUIRED } else { reason::FITS };
                offered.admit(&mut room, why, reason::NO_ROOM);
            }
        }
    }

    /// Admits previous units of code, newest first, as far as they fit both into `half`, which is
    /// the most that they may cost, and into the free `room`, in tokens.
    pub(super) fn admit_previous_units(&mut self, half: u64, room: u64) {
        let mut left = half.min(room);
        let tight = if half <= room { reason::HALF } else { reason::NO_ROOM };
        let open = |offered: &&mut OfferedText| {
            offered.section == Section::PreviousUnits && offered.reason == reason::RECENT_UNIT
        };
        for offered in self.texts.iter_mut().filter(open).rev() {
            offered.admit(&mut left, reason::RECENT_UNIT, tight);
        }
    }
}

impl OfferedText {
    fn new(section: Section, what: ReportPart, text: Arc<str>, tokens: u64, need: Need) -> Self {
        let admitted = need != Need::No && NEVER_TRIMMED.contains(&section);
        let reason = match need {
            Need::No => reason::NOT_NOW,
            _ if admitted => reason::ALWAYS,
            _ => reason::NO_ROOM,
        };
        Self { section, what, text, tokens, whole: tokens, need, admitted, reason }
    }

    fn admit(&mut self, room: &mut u64, why: &'static str, why_not: &'static str) {
        self.admitted = self.tokens <= *room;
        self.reason = if self.admitted { why } else { why_not };
        if self.admitted {
            *room -= self.tokens;
        }
    }
}

/// Returns the text of a section, if there is one.
fn text(
    sections: &Sections,
    section: Section,
    phase: Option<Phase>,
    measure: &Measure,
) -> Option<CountedText> {
    let made = |text: String| Some(CountedText::new(text, measure.counter().as_ref()));
    let failing = phase != Some(Phase::Implementation) && !sections.failures.is_empty();
    let given = match section {
        Section::ToolSchemas => sections.tool_schemas.clone(),
        Section::SystemPrompt => sections.system_prompt.clone(),
        Section::DesignDocument => sections.design_document.clone(),
        Section::TypeDefinitions => sections.type_definitions.clone(),
        Section::CurrentUnit => sections.current_unit.clone(),
        Section::RelevantTests if failing => made(format_failures(&sections.failures)),
        Section::RelevantTests => sections.relevant_tests.clone(),
        Section::Implementation => made(format_implementation(&sections.units, &sections.failures)),
        Section::ContextItems => sections.context_items.clone(),
        Section::Summary => sections.summary.clone(),
        Section::RepoMap => sections.repo_map.clone(),
        Section::Grounding => sections.grounding.clone(),
        Section::Messages | Section::PreviousUnits => None,
    };
    given.filter(|counted| !counted.text.is_empty())
}

fn previous_units<'a>(
    approved: impl Iterator<Item = &'a CodeUnit>,
    need: Need,
    measure: &Measure,
) -> Vec<OfferedText> {
    let approved: Vec<&CodeUnit> = approved.collect();
    let recent = approved.len().saturating_sub(PREVIOUS_UNITS);
    let offered = approved.iter().enumerate().map(|(at, unit)| {
        let (text, reason) = match () {
            () if need == Need::No => (String::new(), reason::NOT_NOW),
            () if at < recent => (String::new(), reason::OLDER_UNIT),
            () if unit.code.is_empty() => (String::new(), reason::NO_CODE),
            () => (format_previous_unit(unit), reason::RECENT_UNIT),
        };
        let tokens = if text.is_empty() { 0 } else { measure.note(&text) };
        let what = ReportPart::CodeUnit(unit.name.clone());
        let offered = OfferedText::new(Section::PreviousUnits, what, text.into(), tokens, need);
        OfferedText { reason, ..offered }
    });
    offered.collect()
}
