//! Note-taking: a template and a model turn a long conversation into notes for the next answer.
//!
//! The model that takes the notes is the note-taker. This module decides whether notes are taken
//! for a turn and which messages the note-taker is shown, and builds the message with the notes. It
//! calls no model. If taking notes fails, the caller uses the plain history.

use std::fmt::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::unit::History;
use crate::names::names;
use crate::retrieval::excerpt::beginning;
use crate::session::message::{Message, Role};

/// Heading of the message that holds the notes.
pub(crate) const HEADING: &str = "Context summary (managed):";
/// Maximum number of characters of a tool's output that the note-taker is shown.
const TOOL_OUTPUT_SHOWN: usize = 2_000;

/// Settings that decide when and how notes are taken. A run is the user's message that begins a
/// turn, with all messages up to the next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NotesSettings {
    /// Number of runs before the current one that the note-taker is shown; 0 turns note-taking off.
    pub recent_runs: u64,
    /// Number of runs before the current one that follow the notes unchanged; 0 for none.
    pub passthrough_runs: u64,
    /// Minimum size of the history for taking notes, in tokens; 0 takes notes in every turn.
    pub token_threshold: u64,
}

impl Default for NotesSettings {
    fn default() -> Self {
        Self { recent_runs: 3, passthrough_runs: 1, token_threshold: 4_000 }
    }
}

names! {
    /// The outcome of note-taking for a turn.
    NotesStatus {
        /// The notes replace the older history.
        Managed => "managed",
        /// The history was too short for notes.
        BelowThreshold => "below-threshold",
        /// The settings turn note-taking off.
        Disabled => "disabled",
        /// Note-taking failed, and the turn used the plain history.
        Failed => "failed",
    }
}

names! {
    /// The steps of note-taking that can fail, in order.
    NotesStep {
        /// Reading the conversation.
        History => "history",
        /// Finding and reading the template.
        Template => "template",
        /// Reading the earlier notes.
        PriorSummary => "prior-summary",
        /// Building a prompt within the model's limit.
        Prompt => "prompt",
        /// Getting an answer from the model.
        Answer => "answer",
        /// Storing the notes.
        Store => "store",
        /// Building the window with the notes in it.
        Window => "window",
    }
}

/// The settings for note-taking that were given; `None` for each setting that was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NotesOptions {
    /// See [`NotesSettings::recent_runs`].
    pub recent_runs: Option<u64>,
    /// See [`NotesSettings::passthrough_runs`].
    pub passthrough_runs: Option<u64>,
    /// See [`NotesSettings::token_threshold`].
    pub token_threshold: Option<u64>,
}

impl NotesOptions {
    /// Returns these settings. Each setting that is not given is taken from `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            recent_runs: self.recent_runs.or(others.recent_runs),
            passthrough_runs: self.passthrough_runs.or(others.passthrough_runs),
            token_threshold: self.token_threshold.or(others.token_threshold),
        }
    }

    /// Returns these settings. Each setting that is not given has its default.
    pub fn in_effect(self) -> NotesSettings {
        let default = NotesSettings::default();
        NotesSettings {
            recent_runs: self.recent_runs.unwrap_or(default.recent_runs),
            passthrough_runs: self.passthrough_runs.unwrap_or(default.passthrough_runs),
            token_threshold: self.token_threshold.unwrap_or(default.token_threshold),
        }
    }
}

/// The input of the note-taker, and the messages that follow its notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesInput {
    /// Latest runs before the current one, as texts, oldest first.
    pub recent_runs: Vec<String>,
    /// Current message of the user.
    pub latest_input: String,
    /// Text of the earlier notes; empty if there are none.
    pub prior_summary: String,
    /// Numbers of the messages that follow the notes unchanged.
    pub passthrough: Vec<u64>,
}

/// Plans the notes for a turn. `history` ends with the current message of the user. `tokens` is the
/// cost of the whole history, including a summary of messages no longer in view. `prior` is the
/// text of the earlier notes; empty if there are none.
///
/// # Errors
/// The status that is the reason to take no notes and use the plain history.
pub fn plan(
    history: &History<'_>,
    settings: &NotesSettings,
    prior: String,
    tokens: u64,
) -> Result<NotesInput, NotesStatus> {
    if settings.recent_runs == 0 {
        return Err(NotesStatus::Disabled);
    }
    if settings.token_threshold > 0 && tokens < settings.token_threshold {
        return Err(NotesStatus::BelowThreshold);
    }
    let runs = runs(&history.messages);
    // The current run has only begun, so the note-taker sees the runs before it.
    let (latest, before) = runs.split_last().ok_or(NotesStatus::BelowThreshold)?;
    let newest = |count: u64| {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(before.len());
        &before[before.len() - count..]
    };
    let passthrough = newest(settings.passthrough_runs).iter().copied().chain([*latest]);
    Ok(NotesInput {
        recent_runs: newest(settings.recent_runs).iter().map(|run| shown(run)).collect(),
        latest_input: latest
            .iter()
            .filter(|message| message.role == Role::User)
            .map(|message| &*message.content)
            .collect::<Vec<_>>()
            .join("\n"),
        prior_summary: prior,
        passthrough: whole_units(history, passthrough.flatten().map(|message| message.number)),
    })
}

/// First word of a user's message if the first line of the message names a template, by which notes
/// are taken for the turn.
const DIRECTIVE: &str = "@context-helper";

/// Splits off the first line of a user's text if it is `@context-helper NAME`. Returns the name of
/// the template and the rest, or `None` if the first line is different or no text follows it.
pub fn directive(text: &str) -> Option<(&str, &str)> {
    let (line, rest) = text.split_once('\n')?;
    let name = line.strip_prefix(DIRECTIVE)?.strip_prefix([' ', '\t'])?.trim();
    (!name.is_empty() && !rest.trim().is_empty()).then_some((name, rest))
}

/// Returns the message as models see it: a user's message without its [`directive`].
pub fn without_directive(message: &Arc<Message>) -> Arc<Message> {
    match directive(&message.content).filter(|_| message.role == Role::User) {
        Some((_, rest)) => Arc::new(Message { content: rest.into(), ..(**message).clone() }),
        None => Arc::clone(message),
    }
}

/// Returns the text of the message that holds the notes.
pub fn summary_message(output: &str) -> String {
    format!("{HEADING}\n{}", output.trim())
}

/// Splits the messages into runs. Each run begins with a message of the user; messages before the
/// first such message form a run of their own. Leading system prompts are in no run. Without a
/// message of the user, there are no runs.
pub fn runs<'a, 'b>(messages: &'b [&'a Message]) -> Vec<&'b [&'a Message]> {
    let begins = |at: &usize| messages[*at].role == Role::User;
    let mut starts: Vec<usize> = (0..messages.len()).filter(begins).collect();
    let prompts = messages.iter().take_while(|message| message.role == Role::System).count();
    if starts.first().is_some_and(|first| *first > prompts) {
        starts.insert(0, prompts);
    }
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    starts.iter().zip(ends).map(|(start, end)| &messages[*start..end]).collect()
}

/// Returns, in ascending order, the numbers of all messages in units with one of `numbers`.
fn whole_units(history: &History<'_>, numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let wanted: Vec<u64> = numbers.collect();
    let units = history.units.iter().map(|unit| history.numbers(unit));
    let touched = units.filter(|unit| unit.iter().any(|number| wanted.contains(number)));
    let mut whole: Vec<u64> = touched.flatten().collect();
    whole.sort_unstable();
    whole
}

/// Formats a run for the note-taker.
fn shown(run: &[&Message]) -> String {
    let mut text = String::new();
    for message in run {
        let content = match message.role {
            Role::Tool => beginning(&message.content, TOOL_OUTPUT_SHOWN),
            _ => message.content.to_string(),
        };
        let who = match message.role {
            Role::System => "System",
            Role::User => "User",
            Role::Assistant => "Assistant",
            Role::Tool => "Tool output",
        };
        if !content.trim().is_empty() {
            let _ = writeln!(text, "{who}: {}", content.trim());
        }
        for call in &message.tool_calls {
            let _ = writeln!(text, "{who} calls {}: {}", call.name, call.arguments);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curation::testing::{history, messages, plain};

    const CHAT: &str = "s u a u a>1 t<1 a u a u";

    #[track_caller]
    fn check(settings: (u64, u64, u64), expected: Result<&[u64], NotesStatus>) {
        let (messages, measure) = (messages(CHAT), plain());
        let history = history(&messages, &measure);
        let (recent_runs, passthrough_runs, token_threshold) = settings;
        let settings = NotesSettings { recent_runs, passthrough_runs, token_threshold };
        let found = plan(&history, &settings, String::new(), history.tokens());
        assert_eq!(found.map(|input| input.passthrough), expected.map(<[u64]>::to_vec));
    }

    #[test]
    fn the_settings_take_effect() {
        check((0, 1, 0), Err(NotesStatus::Disabled));
        check((3, 1, 11), Err(NotesStatus::BelowThreshold));
        check((3, 1, 10), Ok(&[8, 9, 10]));
        check((3, 0, 0), Ok(&[10]));
        check((1, 2, 0), Ok(&[4, 5, 6, 7, 8, 9, 10]));
        check((3, 99, 0), Ok(&[2, 3, 4, 5, 6, 7, 8, 9, 10]));
    }

    #[test]
    fn the_note_taker_sees_the_last_runs_and_the_current_message() {
        let (messages, measure) = (messages(CHAT), plain());
        let settings = NotesSettings { recent_runs: 2, token_threshold: 0, ..Default::default() };
        let history = history(&messages, &measure);
        let input = plan(&history, &settings, "before".to_owned(), 10).unwrap();
        let expected = "User: four\nAssistant: four\nAssistant calls run: \nTool output: four\n\
                        Assistant: four\n\nUser: four\nAssistant: four\n";
        assert_eq!(input.recent_runs.join("\n"), expected);
        assert_eq!(input.latest_input, "four");
        assert_eq!(input.prior_summary, "before");
    }

    #[test]
    fn a_unit_that_reaches_into_another_run_stays_whole() {
        let (messages, measure) = (messages("u a>1 u t<1 a u"), plain());
        let settings = NotesSettings { token_threshold: 0, ..Default::default() };
        let history = history(&messages, &measure);
        let input = plan(&history, &settings, String::new(), 6).unwrap();
        assert_eq!(input.passthrough, [2, 3, 4, 5, 6]);
    }

    #[track_caller]
    fn check_directive(text: &str, expected: Option<(&str, &str)>) {
        assert_eq!(directive(text), expected);
    }

    #[test]
    fn a_first_line_names_the_template_of_one_turn() {
        check_directive("@context-helper goal-oriented\nGo on.", Some(("goal-oriented", "Go on.")));
        check_directive("@context-helper  a b \r\nx\ny", Some(("a b", "x\ny")));
        check_directive("@context-helper goal-oriented", None);
        check_directive("@context-helper\nx", None);
        check_directive("@context-helpers x\ny", None);
        check_directive("x\n@context-helper y\nz", None);
    }
}
