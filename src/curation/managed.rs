//! Managed views: a template and a model make of a long conversation what the next answer needs.
//!
//! This decides whether a turn is managed and what the manager is shown, and puts the view
//! together. It calls no model; whoever does falls back on the raw history when that fails.

use std::fmt::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::unit::History;
use crate::names::names;
use crate::session::message::{Message, Role};

/// What the message begins with that stands for the managed part.
pub const HEADING: &str = "Context summary (managed):";
/// How many characters of a tool's output the manager is shown.
const TOOL_OUTPUT_SHOWN: usize = 2_000;

/// When and how a conversation is managed. A run is all the messages of one turn of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ManageSettings {
    /// How many of the last runs the manager is shown; 0: nothing is managed.
    pub recent_runs: u64,
    /// How many of the last runs follow the summary as they are; 0: none.
    pub passthrough_runs: u64,
    /// Below how many tokens of the whole history nothing is managed; 0: every turn is.
    pub token_threshold: u64,
}

impl Default for ManageSettings {
    fn default() -> Self {
        Self { recent_runs: 3, passthrough_runs: 1, token_threshold: 4_000 }
    }
}

names! {
    /// What became of the managing of a turn.
    Status {
        /// The view is in place of the history.
        Managed => "managed",
        /// There was too little history for it.
        BelowThreshold => "below-threshold",
        /// The settings say that nothing is managed.
        Disabled => "disabled",
        /// It failed, and the turn went on with the raw history.
        Failed => "failed",
    }
}

names! {
    /// Where the managing of a turn can fail, in the order of its steps.
    Step {
        /// Reading the conversation.
        History => "history",
        /// Finding the template and reading it.
        Template => "template",
        /// Reading what was noted before.
        PriorSummary => "prior-summary",
        /// Making the prompt, within what the model takes.
        Prompt => "prompt",
        /// Asking the model.
        Answer => "answer",
        /// Storing the view.
        Store => "store",
        /// Building the window with the view in it.
        Window => "window",
    }
}

/// The settings that somebody said; `None` where nothing was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct SaidSettings {
    /// See [`ManageSettings::recent_runs`].
    pub recent_runs: Option<u64>,
    /// See [`ManageSettings::passthrough_runs`].
    pub passthrough_runs: Option<u64>,
    /// See [`ManageSettings::token_threshold`].
    pub token_threshold: Option<u64>,
}

impl SaidSettings {
    /// These, and where they say nothing, `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            recent_runs: self.recent_runs.or(others.recent_runs),
            passthrough_runs: self.passthrough_runs.or(others.passthrough_runs),
            token_threshold: self.token_threshold.or(others.token_threshold),
        }
    }

    /// These, and where they say nothing, the defaults.
    pub fn in_effect(self) -> ManageSettings {
        let default = ManageSettings::default();
        ManageSettings {
            recent_runs: self.recent_runs.unwrap_or(default.recent_runs),
            passthrough_runs: self.passthrough_runs.unwrap_or(default.passthrough_runs),
            token_threshold: self.token_threshold.unwrap_or(default.token_threshold),
        }
    }
}

/// What is to be done for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// The history passes as it is.
    Raw(Status),
    /// The manager is to be asked.
    Manage(Managing),
}

/// What the manager is shown, and what follows its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Managing {
    /// The last runs as text, oldest first.
    pub recent_runs: Vec<String>,
    /// What the user says now.
    pub latest_input: String,
    /// The summary of the turn before.
    pub prior_summary: Option<String>,
    /// The messages that follow the summary, by number.
    pub passthrough: Vec<u64>,
}

/// Decides on a turn. `history` ends with what the user says now, `tokens` is what all of it costs
/// with a summary of what is no longer in view; `prior` is what the manager noted before.
pub fn plan(
    history: &History<'_>,
    settings: &ManageSettings,
    prior: Option<&str>,
    tokens: u64,
) -> Plan {
    if settings.recent_runs == 0 {
        return Plan::Raw(Status::Disabled);
    }
    if settings.token_threshold > 0 && tokens < settings.token_threshold {
        return Plan::Raw(Status::BelowThreshold);
    }
    let runs = runs(&history.messages);
    // The present run has only begun: what the manager is shown are those before it.
    let (before, latest) = match runs.split_last() {
        Some((latest, before)) => (before, *latest),
        None => return Plan::Raw(Status::BelowThreshold),
    };
    let newest = |count: u64| {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(before.len());
        &before[before.len() - count..]
    };
    let passthrough = newest(settings.passthrough_runs).iter().copied().chain([latest]);
    Plan::Manage(Managing {
        recent_runs: newest(settings.recent_runs).iter().map(|run| shown(run)).collect(),
        latest_input: latest
            .iter()
            .filter(|message| message.role == Role::User)
            .map(|message| &*message.content)
            .collect::<Vec<_>>()
            .join("\n"),
        prior_summary: prior.map(str::to_owned),
        passthrough: whole_units(history, passthrough.flatten().map(|message| message.number)),
    })
}

/// The word that begins a prompt of which one template is to manage one turn.
const DIRECTIVE: &str = "@context-helper";

/// Takes the first line `@context-helper NAME` off what a user says: the template's name, and the
/// rest. What has no such line, or nothing but it, is no such prompt.
pub fn directive(text: &str) -> Option<(&str, &str)> {
    let (line, rest) = text.split_once('\n')?;
    let name = line.strip_prefix(DIRECTIVE)?.strip_prefix([' ', '\t'])?.trim();
    (!name.is_empty() && !rest.trim().is_empty()).then_some((name, rest))
}

/// What a model is shown of a message: all of it but a [`directive`] of the user's.
pub fn without_directive(message: &Arc<Message>) -> Arc<Message> {
    match directive(&message.content).filter(|_| message.role == Role::User) {
        Some((_, rest)) => Arc::new(Message { content: rest.into(), ..(**message).clone() }),
        None => Arc::clone(message),
    }
}

/// The text of the message that stands for the managed part.
pub fn summary_message(output: &str) -> String {
    format!("{HEADING}\n{}", output.trim())
}

/// The messages by runs: each begins with a message of the user, the first perhaps with what came
/// before any. System prompts are in none.
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

/// The numbers of all messages in the units that have one of `numbers`, ascending.
fn whole_units(history: &History<'_>, numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let wanted: Vec<u64> = numbers.collect();
    let of_unit = |unit: &super::unit::Unit| -> Vec<u64> {
        history.members(unit).map(|message| message.number).collect()
    };
    let units = history.units.iter().map(of_unit);
    let touched = units.filter(|unit| unit.iter().any(|number| wanted.contains(number)));
    let mut whole: Vec<u64> = touched.flatten().collect();
    whole.sort_unstable();
    whole
}

/// A run as the manager reads it.
fn shown(run: &[&Message]) -> String {
    let mut text = String::new();
    for message in run {
        let content = match message.role {
            Role::Tool => head(&message.content, TOOL_OUTPUT_SHOWN),
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

fn head(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curation::testing::{history, messages, plain};

    const CHAT: &str = "s u a u a>1 t<1 a u a u";

    #[track_caller]
    fn check(settings: (u64, u64, u64), expected: Result<&[u64], Status>) {
        let (messages, measure) = (messages(CHAT), plain());
        let history = history(&messages, &measure);
        let (recent_runs, passthrough_runs, token_threshold) = settings;
        let settings = ManageSettings { recent_runs, passthrough_runs, token_threshold };
        let found = match plan(&history, &settings, None, history.tokens()) {
            Plan::Raw(status) => Err(status),
            Plan::Manage(managing) => Ok(managing.passthrough),
        };
        assert_eq!(found, expected.map(<[u64]>::to_vec));
    }

    #[test]
    fn the_settings_mean_what_they_say() {
        check((0, 1, 0), Err(Status::Disabled));
        check((3, 1, 11), Err(Status::BelowThreshold));
        check((3, 1, 10), Ok(&[8, 9, 10]));
        check((3, 0, 0), Ok(&[10]));
        check((1, 2, 0), Ok(&[4, 5, 6, 7, 8, 9, 10]));
        check((3, 99, 0), Ok(&[2, 3, 4, 5, 6, 7, 8, 9, 10]));
    }

    #[test]
    fn the_manager_is_shown_the_last_runs_and_what_is_said_now() {
        let (messages, measure) = (messages(CHAT), plain());
        let settings = ManageSettings { recent_runs: 2, token_threshold: 0, ..Default::default() };
        let Plan::Manage(managing) =
            plan(&history(&messages, &measure), &settings, Some("before"), 10)
        else {
            panic!("it is managed")
        };
        let expected = "User: four\nAssistant: four\nAssistant calls run: \nTool output: four\n\
                        Assistant: four\n\nUser: four\nAssistant: four\n";
        assert_eq!(managing.recent_runs.join("\n"), expected);
        assert_eq!(managing.latest_input, "four");
        assert_eq!(managing.prior_summary.as_deref(), Some("before"));
    }

    #[test]
    fn a_unit_that_reaches_into_another_run_stays_whole() {
        let (messages, measure) = (messages("u a>1 u t<1 a u"), plain());
        let settings = ManageSettings { token_threshold: 0, ..Default::default() };
        let Plan::Manage(managing) = plan(&history(&messages, &measure), &settings, None, 6) else {
            panic!("it is managed")
        };
        assert_eq!(managing.passthrough, [2, 3, 4, 5, 6]);
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
