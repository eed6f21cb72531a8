//! The sections that a window must or may have in each phase: planning, designing, implementing and
//! testing.

use super::section::Section::{self, *};
use crate::session::message::Phase;

/// The sections of one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PhaseRule {
    /// The phase.
    pub phase: Phase,
    /// Sections that the windows of the phase must have. For the section of messages, one message
    /// of the user is enough.
    pub must: &'static [Section],
    /// Sections that the windows of the phase have if the sections exist and fit.
    pub may: &'static [Section],
}

/// Rules of all phases.
pub(crate) const RULES: &[PhaseRule] = &[
    PhaseRule { phase: Phase::Planning, must: &[SystemPrompt, Messages], may: &[] },
    PhaseRule {
        phase: Phase::Interface,
        must: &[SystemPrompt, DesignDocument],
        may: &[TypeDefinitions],
    },
    PhaseRule {
        phase: Phase::Implementation,
        must: &[SystemPrompt, DesignDocument, TypeDefinitions, CurrentUnit],
        may: &[RelevantTests, PreviousUnits],
    },
    PhaseRule {
        phase: Phase::Testing,
        must: &[SystemPrompt, DesignDocument, TypeDefinitions, RelevantTests],
        may: &[Implementation],
    },
];

/// Sections that any window may have, whatever its phase.
pub(crate) const ANY_PHASE: &[Section] =
    &[ToolSchemas, ContextItems, Summary, Messages, RepoMap, Grounding];

/// The need of a window for a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The window must have the section.
    Must,
    /// The window may have the section.
    May,
    /// The window does not have the section.
    No,
}

/// Returns how much a window of this phase needs a section. Without a phase, a window may have
/// every section.
pub fn need(phase: Option<Phase>, section: Section) -> Need {
    let Some(rule) = RULES.iter().find(|rule| Some(rule.phase) == phase) else {
        return Need::May;
    };
    match section {
        _ if rule.must.contains(&section) => Need::Must,
        _ if rule.may.contains(&section) || ANY_PHASE.contains(&section) => Need::May,
        _ => Need::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(phase: Phase, must: &str, may: &str) {
        let with = |wanted: Need| {
            let sections = Section::ALL.iter().filter(|section| !ANY_PHASE.contains(section));
            let names = sections.filter(|section| need(Some(phase), **section) == wanted);
            names.map(|section| section.name()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((with(Need::Must).as_str(), with(Need::May).as_str()), (must, may));
        assert_eq!(need(Some(phase), Summary), Need::May);
    }

    #[test]
    fn each_phase_has_its_sections() {
        check(Phase::Planning, "system-prompt", "");
        assert_eq!(need(Some(Phase::Planning), Messages), Need::Must);
        check(Phase::Interface, "system-prompt design-document", "type-definitions");
        check(
            Phase::Implementation,
            "system-prompt design-document type-definitions current-unit",
            "relevant-tests previous-units",
        );
        check(
            Phase::Testing,
            "system-prompt design-document type-definitions relevant-tests",
            "implementation",
        );
    }

    #[test]
    fn every_phase_has_a_rule_and_without_one_every_section_is_allowed() {
        assert_eq!(RULES.len(), Phase::ALL.len());
        assert!(Section::ALL.iter().all(|section| need(None, *section) == Need::May));
    }
}
