//! Tells what a user said from what a program put into the user's turn: reminders, hooks, output
//! of commands, notices, and what an editor says about itself.

use super::programs::{self, TAGS};
use super::report::clipped;

/// Beginnings of notices that the user stopped the agent.
const STOPPED: &[&str] = &["[Request interrupted by user", "<turn_aborted>"];

/// Beginnings of summaries by which an agent continues an earlier conversation.
const CONTINUED: &[&str] = &[
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "<state_snapshot>",
];

/// Tags around what the user typed after a sign, and the sign.
const TYPED: [(&str, &str); 2] = [("bash-input", "!"), ("user-memory-input", "#")];

/// Tag around what the user wrote, in an agent that writes all else outside of it.
const QUERY: &str = "user_query";
/// Tags around what the user wrote, in agents that wrap it.
const WRAPPERS: &[&str] = &["user_message", "task", "feedback"];

/// Commands of agents about themselves, which ask nothing of a model.
const OWN_COMMANDS: &[&str] = &[
    "/add-dir",
    "/agents",
    "/bashes",
    "/bug",
    "/chrome",
    "/clear",
    "/color",
    "/compact",
    "/config",
    "/context",
    "/copy",
    "/cost",
    "/desktop",
    "/doctor",
    "/effort",
    "/exit",
    "/export",
    "/extra-usage",
    "/fast",
    "/feedback",
    "/fork",
    "/help",
    "/hooks",
    "/ide",
    "/insights",
    "/install-github-app",
    "/keybindings",
    "/login",
    "/logout",
    "/mcp",
    "/memory",
    "/mobile",
    "/model",
    "/new",
    "/output-style",
    "/passes",
    "/permissions",
    "/plugin",
    "/plugins",
    "/privacy-settings",
    "/quit",
    "/rate-limit-options",
    "/release-notes",
    "/reload-plugins",
    "/remote-control",
    "/rename",
    "/resume",
    "/rewind",
    "/sandbox",
    "/skills",
    "/stats",
    "/status",
    "/statusline",
    "/stickers",
    "/tasks",
    "/terminal-setup",
    "/theme",
    "/todos",
    "/upgrade",
    "/usage",
    "/vim",
    "/voice",
];

/// The parts of a user's turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct UserParts {
    /// What the user said; blank if all of it is a program's.
    pub(super) by_user: String,
    /// A summary by which the agent continues an earlier conversation; blank if there is none.
    pub(super) summary: String,
    /// What a program asked in the user's place; blank if it asked nothing.
    pub(super) by_program: String,
    /// Name of what the program asked.
    pub(super) name: Option<String>,
    /// True if a program wrote a part.
    pub(super) has_other: bool,
}

/// Separates the text of a user's turn by who said it.
pub(super) fn separated(text: &str) -> UserParts {
    if CONTINUED.iter().any(|start| text.trim_start().starts_with(start)) {
        return UserParts { summary: text.to_owned(), has_other: true, ..UserParts::default() };
    }
    let mut said = with_command(text);
    for tag in TAGS {
        said = without_tag(&said, tag);
    }
    for (tag, mark) in TYPED {
        if let Some((_, input, _)) = cut_tag(&said, tag) {
            said = format!("{mark}{}", input.trim());
        }
    }
    said = queries(&said).unwrap_or_else(|| programs::without_notices(&said));
    for tag in WRAPPERS {
        let is_wrapped = said.trim_start().starts_with(&format!("<{tag}>"));
        if let Some((_, inner, after)) = cut_tag(&said, tag).filter(|_| is_wrapped) {
            said = format!("{}\n{}", inner.trim(), after.trim());
        }
    }
    if programs::wrote(&said) {
        said.clear();
    }
    if let Some((name, asked)) = programs::asked(said.trim_start()) {
        let (name, by_program) = (name.map(str::to_owned), asked.to_owned());
        return UserParts { name, by_program, has_other: true, ..UserParts::default() };
    }
    let said = said.trim_matches('\n');
    let has_other = said.trim() != text.trim();
    UserParts {
        by_user: if has_other { said.trim() } else { text }.to_owned(),
        has_other,
        ..UserParts::default()
    }
}

/// Returns what the user asked, without what the agent wrote around it and in its form. Returns `None`
/// if no query is marked.
fn queries(text: &str) -> Option<String> {
    let (mut said, mut rest) = (Vec::new(), text);
    while let Some((_, query, after)) = cut_tag(rest, QUERY) {
        said.push(query.trim());
        rest = after;
    }
    let is_marked = !said.is_empty();
    said.retain(|query| !programs::wrote(query));
    is_marked.then(|| said.join("\n\n"))
}

/// Replaces the tags around a command, such as `/fix 42`, by the command. Removes a command of the
/// agent about itself.
fn with_command(text: &str) -> String {
    let Some((before, name, after)) = cut_tag(text, "command-name") else {
        return text.to_owned();
    };
    let rest = format!("{before}{after}");
    let (rest, arguments) = match cut_tag(&rest, "command-args") {
        Some((before, arguments, after)) => {
            (format!("{before}{after}"), arguments.trim().to_owned())
        }
        None => (rest, String::new()),
    };
    let name = name.trim();
    match OWN_COMMANDS.contains(&name) {
        true => rest,
        false => format!("{name} {arguments}").trim_end().to_owned() + "\n" + rest.trim(),
    }
}

/// Returns a text without the elements with this tag, and the spaces before them.
fn without_tag(text: &str, tag: &str) -> String {
    let (mut left, mut rest, mut begins_line) = (String::new(), text, true);
    while let Some((before, _, after)) = cut_tag_after(rest, tag, begins_line) {
        begins_line = ends_line(before).unwrap_or(begins_line);
        left.push_str(before.trim_end_matches(' '));
        rest = after;
    }
    left + rest
}

/// Splits a text at the first element with this tag, if the element begins a line or is a reminder.
/// Returns the text before, in and after the element.
fn cut_tag<'a>(text: &'a str, tag: &str) -> Option<(&'a str, &'a str, &'a str)> {
    cut_tag_after(text, tag, true)
}

/// Does the same for a text that begins a line if `begins_line` is true.
fn cut_tag_after<'a>(
    text: &'a str,
    tag: &str,
    begins_line: bool,
) -> Option<(&'a str, &'a str, &'a str)> {
    let (opening, closing) = (format!("<{tag}"), format!("</{}>", tag.split(' ').next()?));
    for (at, _) in text.match_indices(&opening) {
        let inner = &text[at + opening.len()..];
        let is_whole = inner.starts_with(['>', ' ', '\n']);
        if is_whole && ends_line(&text[..at]).unwrap_or(begins_line) {
            let (_, inside) = inner.split_once('>')?;
            let (inside, after) = inside.split_once(&closing)?;
            return Some((&text[..at], inside, after));
        }
    }
    None
}

/// Returns whether what follows a text begins a line or follows another element; `None` if the text is
/// blank.
fn ends_line(text: &str) -> Option<bool> {
    let text = text.trim_end_matches([' ', '\t']);
    (!text.is_empty()).then(|| text.ends_with(['\n', '>']))
}

/// Returns whether a user's turn has only the notice by which an agent records that the user stopped
/// it.
pub(super) fn says_stopped(text: &str) -> bool {
    STOPPED.iter().any(|start| text.trim_start().starts_with(start))
}

/// Returns the beginning of what a user asked, on one line; `None` if the words ask nothing.
pub fn question(said: &str) -> Option<String> {
    title(said).map(clipped)
}

/// Returns the part of a user's words that can be a title: without placeholders of pictures, and of
/// a command only its arguments, if it has any. Returns `None` if nothing is left.
pub(super) fn title(said: &str) -> Option<&str> {
    let mut rest = said.trim_start();
    while let Some(inner) = rest.strip_prefix("[image").or_else(|| rest.strip_prefix("[Image")) {
        rest = inner.split_once(']')?.1.trim_start();
    }
    if let Some(after) = rest.strip_prefix("User provided an image") {
        rest = after.split_once('\n')?.1.trim_start();
    }
    if rest.starts_with("[media attached") {
        rest = rest.split_once(']')?.1.trim_start();
    }
    if rest.starts_with("[attached file:") || rest.starts_with('!') {
        return None;
    }
    if let Some((name, arguments)) = rest.split_once(char::is_whitespace)
        && is_command(name)
        && !arguments.trim().is_empty()
    {
        rest = arguments.trim();
    }
    (!rest.trim().is_empty()).then_some(rest)
}

/// Returns whether a word is the name of a command, such as `/fix-issue`.
pub(super) fn is_command(word: &str) -> bool {
    let name = word.strip_prefix('/').unwrap_or_default();
    !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || "-_:.".contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, by_user: &str) {
        let said = separated(text);
        assert_eq!(said.by_user, by_user);
        assert_eq!(said.has_other, by_user != text, "{text}");
    }

    #[test]
    fn what_programs_add_is_not_the_users_word() {
        check("fix it", "fix it");
        check("fix it\n<system-reminder>\nUse Rust.\n</system-reminder>", "fix it");
        check("<system-reminder>a</system-reminder>\n<ide_selection>b</ide_selection>go", "go");
        check("<bash-stdout>x\ny</bash-stdout><bash-stderr></bash-stderr>", "");
        check("<bash-input>git status</bash-input>", "!git status");
        check("[Request interrupted by user for tool use]", "");
        check("<user_query>\nwhy?\n</user_query>", "why?");
        check(
            "# Context from my IDE setup:\n\n## Open tabs:\n- a\n\n## My request for Codex:\nrename it\n",
            "rename it",
        );
        check("# Context from my IDE setup:\n\n## Open tabs:\n- a", "");
        check(
            "# Files mentioned by the user:\n\n## a.png: /a.png\n\n## My request for Codex:\nwhy?",
            "why?",
        );
        check("<user-memory-input>Use Rust.</user-memory-input>", "#Use Rust.");
        check(
            "<system_notification>\ndone\n</system_notification>\n<user_query>The above subagent \
            result is already visible to the user. DO NOT</user_query>",
            "",
        );
        check("<rules>\nx\n</rules>\n<user_query>\nwhy?\n</user_query>\n<context/>", "why?");
        check("go on\n\n# TODO LIST UPDATE REQUIRED - You MUST\n\n- [ ] a", "go on");
        check(
            "why @a.rs?\n--- Content from referenced files ---\nfn a() {}\n--- End of content ---",
            "why @a.rs?",
        );
        check("[ERROR] You did not use a tool in your previous response! Please retry.", "");
        check("<state_snapshot>\n<goal>x</goal>\n</state_snapshot>", "");
    }

    #[test]
    fn the_frame_around_a_message_of_a_chat_is_not_the_users_word() {
        let info = |name: &str, json: &str| {
            format!("{name} (untrusted metadata):\n```json\n{{\n  {json}\n}}\n```\n\n")
        };
        let about = info("Conversation info", "\"message_id\": \"4\", \"sender\": \"Ann\"");
        let sender = info("Sender", "\"label\": \"Ann\"");
        check(&format!("{about}{sender}Which port?\nAnd why?"), "Which port?\nAnd why?");
        check(&format!("{about}[message_id: 4]\nAnn: Which port?"), "Which port?");
        check(&format!("{sender}[Wed 2026-03-25 08:29 GMT+8] Which port?"), "Which port?");
        let told = "System: [2026-03-25 08:33:28 GMT+8] Gateway restart\nSystem: Run: x\n\n";
        check(&format!("{told}{sender}Which port?"), "Which port?");
        check("Read HEARTBEAT.md if it exists (workspace context). Follow it strictly.", "");
        check("[Wed] is a day", "[Wed] is a day");
        check(
            "in ```json\n{}\n``` (untrusted metadata):",
            "in ```json\n{}\n``` (untrusted metadata):",
        );
    }

    #[test]
    fn what_a_schedule_asks_is_asked_by_a_program() {
        let said =
            separated("[cron:a1-b2 Back up] Please back up.\nCurrent time: Monday\n\nReturn it.");
        assert_eq!((said.by_user, said.by_program), (String::new(), "Please back up.".to_owned()));
        assert_eq!(said.name.as_deref(), Some("Back up"));
        let said = separated("[Subagent Context] You are a subagent.\n\n[Subagent Task]: look");
        assert!(said.by_user.is_empty() && said.by_program.ends_with("look"), "{said:?}");
    }

    #[test]
    fn commands_are_told_as_they_were_typed() {
        let command = |name: &str, args: &str| {
            format!(
                "<command-message>m</command-message>\n<command-name>{name}</command-name>\n\
                 <command-args>{args}</command-args>"
            )
        };
        check(&command("/fix-issue", "42 it loops"), "/fix-issue 42 it loops");
        check(&command("/pr-review", ""), "/pr-review");
        check(&command("/clear", ""), "");
    }

    #[test]
    fn other_markup_is_the_users_own() {
        for text in [
            "<div class=\"a\"> does not center, why?",
            "what does <system-reminder> mean?",
            "<skillful>a</skillful>",
            "<system-reminder> is never closed",
            "  indented\n",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn titles_say_what_was_asked() {
        assert_eq!(title("/fix-issue 42 it loops"), Some("42 it loops"));
        assert_eq!(title("/pr-review"), Some("/pr-review"));
        assert_eq!(title("[Image #1] why?"), Some("why?"));
        assert_eq!(title("[image: image/png]\n\n[Image #1] why?"), Some("why?"));
        assert_eq!(title("[image: image/png]"), None);
        assert_eq!(title("/usr/bin/env is gone"), Some("/usr/bin/env is gone"));
        assert_eq!(title("!git status"), None);
    }
}
