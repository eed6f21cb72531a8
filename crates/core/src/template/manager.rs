//! The prompt of a note-taker, that is, of a model that turns older messages into notes. The prompt
//! is a template filled with the conversation.

use super::render::render_noting;
use super::{Fields, Template, TemplateError};

/// System prompt of a note-taker. The template gives the instructions.
pub const TASK: &str = "You keep the working notes of a conversation between a user and another \
                        model. That model will see your notes in the place of the older messages, \
                        and nothing else of them. Follow the instructions that come with the \
                        conversation, answer with the notes alone, in plain words or Markdown, and \
                        neither answer the user nor call tools.";

/// The parts of a conversation that a template can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TemplateConversation<'a> {
    /// Newest notes of an earlier turn, or else a summary of the messages that are no longer in
    /// view. Empty if there is neither.
    pub prior_summary: &'a str,
    /// The last messages as text. Empty if there are none.
    pub recent_conversation: &'a str,
    /// Current user message.
    pub latest_input: &'a str,
}

/// The prompt of a note-taker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerPrompt {
    /// Text of the user's message in the request. [`TASK`] is the text of the system message.
    pub text: String,
    /// Names of the sections of the request, in order.
    pub sections: Vec<String>,
}

impl Template {
    /// Builds the prompt that asks a note-taker for its notes. A part of the conversation that the
    /// template does not show follows the template under a heading. Empty parts are left out.
    ///
    /// # Errors
    /// The errors of [`render`](super::render()).
    pub fn manager_prompt(
        &self,
        conversation: &TemplateConversation<'_>,
    ) -> Result<ManagerPrompt, TemplateError> {
        let parts = [
            ("prior_summary", "Notes so far", conversation.prior_summary),
            ("recent_conversation", "What was said last", conversation.recent_conversation),
            ("latest_input", "What the user says now", conversation.latest_input),
        ];
        let fields: Fields<'_> = parts.iter().map(|(field, .., text)| (*field, *text)).collect();
        let (rendered, placed) = render_noting(self, &fields)?;
        let mut text = rendered.trim().to_owned();
        let mut sections = vec!["task".to_owned(), "template".to_owned()];
        for (field, heading, content) in parts {
            if content.trim().is_empty() {
                continue;
            }
            sections.push(field.replace('_', "-"));
            if !placed.has(field) {
                text += &format!("\n\n## {heading}\n\n{}", content.trim());
            }
        }
        Ok(ManagerPrompt { text, sections })
    }
}

#[cfg(test)]
mod tests {
    use super::super::TemplatePlace;
    use super::*;

    #[track_caller]
    fn check(template: &str, said: [&str; 3], expected: &str, sections: &[&str]) {
        let template = Template::parse("t", TemplatePlace::BuiltIn, template).unwrap();
        let [prior_summary, recent_conversation, latest_input] = said;
        let conversation =
            TemplateConversation { prior_summary, recent_conversation, latest_input };
        let prompt = template.manager_prompt(&conversation).unwrap();
        assert_eq!(prompt.text, expected);
        assert_eq!(prompt.sections[..2], ["task", "template"]);
        assert_eq!(prompt.sections[2..], *sections);
    }

    #[test]
    fn parts_stand_where_the_template_has_them() {
        check(
            "Was: {{ prior_summary }}. Said: {{ recent_conversation }}. Now: {{ latest_input }}.",
            ["P", "R", "L"],
            "Was: P. Said: R. Now: L.",
            &["prior-summary", "recent-conversation", "latest-input"],
        );
    }

    #[test]
    fn parts_without_a_place_follow_and_empty_ones_are_left_out() {
        check(
            "Keep names.\n",
            ["", "User: R\n", "L"],
            "Keep names.\n\n## What was said last\n\nUser: R\n\n## What the user says now\n\nL",
            &["recent-conversation", "latest-input"],
        );
        check("Keep names.", ["", "", ""], "Keep names.", &[]);
    }

    #[test]
    fn a_part_shown_under_a_condition_is_not_repeated() {
        let template = "{% if prior_summary %}So far: {{ prior_summary }}{% endif %}";
        check(template, ["P", "", ""], "So far: P", &["prior-summary"]);
    }

    #[test]
    fn a_part_in_a_branch_not_taken_is_not_lost() {
        let template = "{% if prior_summary %}{{ recent_conversation }}{% endif %}";
        check(template, ["", "R", ""], "\n\n## What was said last\n\nR", &["recent-conversation"]);
        check(
            template,
            ["P", "R", ""],
            "R\n\n## Notes so far\n\nP",
            &["prior-summary", "recent-conversation"],
        );
    }
}
