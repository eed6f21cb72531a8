//! The prompt of a note-taker, that is, of a model that turns older messages into notes. The prompt
//! is a template filled with the conversation.

use super::{Fields, Template, TemplateError, render};

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
        let rendered = render(self, &fields)?;
        let masked = parts.map(|(field, _, content)| (field, masked(field, content)));
        let fields: Fields<'_> = masked.iter().map(|(field, text)| (*field, &**text)).collect();
        let shown = render(self, &fields).unwrap_or_default();
        let mut text = rendered.trim().to_owned();
        let mut sections = vec!["task".to_owned(), "template".to_owned()];
        for (field, heading, content) in parts {
            if content.trim().is_empty() {
                continue;
            }
            sections.push(field.replace('_', "-"));
            let mut lines = content.lines().map(str::trim).filter(|line| !line.is_empty());
            if !shown.contains(mask(field)) || !lines.any(|line| rendered.contains(line)) {
                text += &format!("\n\n## {heading}\n\n{}", content.trim());
            }
        }
        Ok(ManagerPrompt { text, sections })
    }
}

/// Returns the character that stands for a part. A template that writes it shows something of the
/// part, and does not only ask about it.
/// Neither filters nor lists change the character.
fn mask(field: &str) -> char {
    match field {
        "prior_summary" => 'ǀ',
        "recent_conversation" => 'ǁ',
        _ => 'ǂ',
    }
}

/// Returns a part with each of its characters masked, except white space.
fn masked(field: &str, content: &str) -> String {
    content.replace(|c: char| !c.is_whitespace(), mask(field).encode_utf8(&mut [0; 4]))
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

    /// Checks which parts a template shows, where `A` stands for the notes so far, and `B` for what
    /// was said last.
    #[track_caller]
    fn check_shown(text: &str, expected: &[&str]) {
        let text = text.replace('A', "prior_summary").replace('B', "recent_conversation");
        let template = Template::parse("t", TemplatePlace::BuiltIn, &text).unwrap();
        let (prior_summary, recent_conversation) = ("Äpfel\nof a", "Birnen\nof b");
        let conversation =
            TemplateConversation { prior_summary, recent_conversation, latest_input: "" };
        let prompt = template.manager_prompt(&conversation).unwrap().text;
        let follows = |heading: &str| prompt.contains(&format!("## {heading}\n\n"));
        let found = [("a", "Notes so far"), ("b", "What was said last")];
        let found = found.into_iter().filter(|(_, heading)| !follows(heading));
        assert_eq!(found.map(|(part, _)| part).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn shown_parts_are_recognized_in_every_form() {
        check_shown("λ {{ A }} and  {{- B -}}  .", &["a", "b"]);
        check_shown("{{ A|trim }}{{ B[-8:] }}", &["a", "b"]);
        check_shown("{{ (A|lines)[1:] }}{{ A|lines }}{{ (B|lines)[0] }}", &["a", "b"]);
        check_shown("{% for line in A|lines %}> {{ line }}\n{% endfor %}", &["a"]);
        check_shown("{% set x = A|trim %}{% set y = x %}{{ y }}", &["a"]);
        check_shown("{% if A %}{{ A }}{% endif %}{{ B if B else 'none' }}", &["a", "b"]);
        check_shown("{{ A or B }}", &["a"]);
        check_shown("{{ latest_input or B }}", &["b"]);
    }

    #[test]
    fn other_words_than_those_that_were_said_do_not_stand_for_a_part() {
        check_shown("{{ A|upper }} of b", &[]);
        check_shown("{% if 'p' not in A %}{{ A }}{% endif %}", &[]);
    }

    #[test]
    fn conditions_and_branches_not_taken_show_nothing() {
        check_shown("{% if A %}yes{% endif %}", &[]);
        check_shown("{% if latest_input %}{{ A }}{% else %}{{ B }}{% endif %}", &["b"]);
        let asked = "{{ 'yes' if A else 'no' }} {{ A|length }} {{ A is defined }} {{ 'x' in A }}";
        check_shown(asked, &[]);
        check_shown("{{ A and 'known' }}", &[]);
        check_shown("{% for n in range(2) if A %}{{ n }}{% endfor %}", &[]);
        check_shown("{% set x = A or B %}{{ x }}", &["a"]);
        check_shown("{% raw %}{{ A }}{% endraw %}{# {{ B }} #}{{ none_such.A }}", &[]);
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
