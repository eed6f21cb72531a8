//! The tool `read`: the text of an item, a message or a file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{ToolCallContext, no_item, sessions};
use crate::mcp::answer::{Trouble, beginning};
use crate::mcp::argument::{self, ArgumentLines, ReadArgument};
use crate::mcp::project::AgentProject;
use crate::visible::visible_path;
use crate::wording::{counted, in_full, lines, span};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct ReadArguments {
    /// An id (ctx-N, ses-N/msg-N, or msg-N of the latest session) or a path in the project, such as src/a.rs or src/a.rs:10-20.
    what: String,
    /// Lines such as 10-20; all by default.
    lines: Option<String>,
    /// First character to show of the first line, to read a long line in parts.
    from: Option<u64>,
}

/// Maximum size of a file of which some lines are read, in bytes.
const LARGEST_FILE: u64 = 256 << 20;

#[derive(Deserialize)]
struct ReadItem {
    content: String,
    metadata: Json,
    tokens: u64,
    state: String,
}

#[derive(Deserialize)]
struct ReadMessage {
    role: String,
    content: String,
    tokens: u64,
    tool_calls: Option<Vec<MessageCall>>,
}

#[derive(Deserialize)]
struct MessageCall {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct ReadText {
    path: String,
    content: String,
    start_line: Option<u64>,
    end_line: Option<u64>,
    total_lines: u64,
    tokens: u64,
    unsaved: bool,
    other_texts: u64,
    late_editors: u64,
}

/// A text to show. `head` is a line about the text, and `first_line` the number of its first line.
pub(in crate::mcp) struct ShownText {
    head: String,
    content: String,
    first_line: u64,
    /// Number of the first character in the first line.
    first_character: u64,
}

pub(in crate::mcp) async fn answer(
    asked: &ToolCallContext<'_>,
    given: ReadArguments,
) -> Result<String, Trouble> {
    let wanted = given.lines.as_deref().map(argument::lines).transpose()?;
    let project = asked.project(None).await?;
    let text = match ReadArgument::read(&given.what) {
        ReadArgument::Item(id) => item(asked, &project, id).await?.only(wanted)?,
        ReadArgument::Message { session, message } => {
            self::message(asked, &project, session, message).await?.only(wanted)?
        }
        ReadArgument::Place(path, named) => file(asked, &project, path, wanted.or(named)).await?,
    };
    Ok(text.from(given.from.unwrap_or(1))?.shown())
}

/// Reads an item that is marked in the project.
pub(in crate::mcp) async fn item(
    asked: &ToolCallContext<'_>,
    project: &AgentProject,
    id: &str,
) -> Result<ShownText, Trouble> {
    let managers = asked.layers(project).await?;
    let params = json!({ "managers": managers, "ids": [id] });
    let items: Option<Vec<ReadItem>> = asked.link.call("list_items", params).await?;
    let item = items.into_iter().flatten().next().ok_or_else(|| no_item(id))?;
    let name = item.metadata["filename"].as_str().map(|name| project.relative(name));
    let first_line = item.metadata["start_line"].as_u64().unwrap_or(1);
    let place = name.map(|name| format!(" · {name}:{first_line}")).unwrap_or_default();
    let unsaved = if item.metadata["unsaved"] == true { " · unsaved text" } else { "" };
    let tokens = counted(item.tokens, "token");
    let head = format!("{id}{place} · {tokens} · {}{unsaved}", item.state);
    Ok(ShownText { head, content: item.content, first_line, first_character: 1 })
}

async fn message(
    asked: &ToolCallContext<'_>,
    project: &AgentProject,
    session: Option<&str>,
    message: &str,
) -> Result<ShownText, Trouble> {
    let session = sessions::find(asked, project, session).await?;
    let params = json!({ "session": session.id, "ids": [message], "view": "log" });
    let found: Option<Vec<ReadMessage>> = asked.link.call("get_messages", params).await?;
    let found = found.into_iter().flatten().next();
    let said = found.ok_or_else(|| {
        Trouble::Wrong(format!("there is no message {message} in {}", session.id))
    })?;
    let tokens = counted(said.tokens, "token");
    let head = format!("{}/{message} · {} · {tokens}", session.id, said.role);
    let calls = said.tool_calls.iter().flatten().map(|call| (&*call.name, &*call.arguments));
    Ok(ShownText {
        head,
        content: in_full(&said.content, calls),
        first_line: 1,
        first_character: 1,
    })
}

/// Fails for a folder that is no project, whose files are not read.
pub(super) fn check_project(project: &AgentProject) -> Result<(), Trouble> {
    match project.is_project {
        true => Ok(()),
        false => Err(Trouble::Wrong(format!(
            "{} is not a project, so its files are not read; the user can name a project with \
             `contexture mcp --project DIR`",
            visible_path(&project.root)
        ))),
    }
}

async fn file(
    asked: &ToolCallContext<'_>,
    project: &AgentProject,
    path: &str,
    wanted: Option<ArgumentLines>,
) -> Result<ShownText, Trouble> {
    check_project(project)?;
    let params = json!({
        "path": path, "root": project.directory(), "ask_editors": true,
        "max_file_bytes": wanted.map(|_| LARGEST_FILE),
        "start_line": wanted.map(|(first, _)| first), "end_line": wanted.and_then(|(_, last)| last),
    });
    let text: ReadText = match asked.link.call("read_file", params).await {
        Err(Trouble::Refused(why)) if wanted.is_none() && why.contains("limit") => {
            // The rest of the reason is advice that only a person can follow.
            let why = why.split(';').next().unwrap_or_default();
            let advice = "read a part of it with `lines`, such as \"1-200\"";
            return Err(Trouble::Wrong(format!("{why}; {advice}")));
        }
        read => read?,
    };
    let name = project.relative(&text.path);
    let place = match (text.start_line, text.end_line) {
        (Some(start), Some(end)) => format!("{name}:{}", span(start, end)),
        _ => name.into_owned(),
    };
    let source = match (text.unsaved, text.other_texts, text.late_editors) {
        (true, 0, _) => "unsaved text of the editor",
        (true, ..) => "unsaved text of an editor; another editor has other unsaved text",
        (false, _, 0) => "on disk",
        (false, ..) => "on disk; the editor did not answer, and may have newer text",
    };
    let (lines, tokens) = (counted(text.total_lines, "line"), counted(text.tokens, "token"));
    // A name at the beginning of the line could make it a heading.
    let head = format!("file {place} of {lines} · {tokens} · {source}");
    let first_line = text.start_line.unwrap_or(1);
    Ok(ShownText { head, content: text.content, first_line, first_character: 1 })
}

impl ShownText {
    /// Keeps only the lines `wanted`, or all lines if that is `None`. Counts lines from
    /// `first_line`. Fails if the first wanted line does not exist.
    fn only(mut self, wanted: Option<ArgumentLines>) -> Result<Self, Trouble> {
        let Some((first, last)) = wanted else { return Ok(self) };
        let count = self.content.lines().count() as u64;
        let end = self.first_line + count.max(1) - 1;
        if first < self.first_line || first > end {
            let message = format!(
                "there is no line {first}; ask for lines from {} to {end}",
                self.first_line
            );
            return Err(Trouble::Wrong(message));
        }
        let last = last.unwrap_or(end).min(end);
        let before = self.first_line - 1;
        let lines = lines(&self.content, first - before, Some(last - before));
        self.content = lines.unwrap_or_default().to_owned();
        self.head = format!("{} · lines {}", self.head, span(first, last));
        self.first_line = first;
        Ok(self)
    }

    /// Leaves out the characters of the first line before the one numbered `from`. Fails if the line
    /// has no such character.
    fn from(mut self, from: u64) -> Result<Self, Trouble> {
        if from <= 1 {
            return Ok(self);
        }
        let line = self.content.lines().next().unwrap_or_default();
        let at = usize::try_from(from - 1).ok().and_then(|at| line.char_indices().nth(at));
        let Some((at, _)) = at else {
            let (number, length) = (self.first_line, line.chars().count());
            let message = format!("line {number} has only {length} characters");
            return Err(Trouble::Wrong(message));
        };
        self.content.drain(..at);
        self.head = format!("{} · from character {from} of line {}", self.head, self.first_line);
        self.first_character = from;
        Ok(self)
    }

    /// Formats the text, cut to the maximum size of an answer.
    fn shown(self) -> String {
        let head = format!("{}\n\n", self.head);
        head + &self.cut()
    }

    /// Returns the content, cut to the maximum size of an answer. Says how to read on: after the last
    /// whole line, or within a line that does not fit.
    pub(in crate::mcp) fn cut(self) -> String {
        let Some((shown, lines)) = beginning(&self.content) else { return self.content };
        let advice = match shown.ends_with('\n') {
            true => format!("`lines` \"{}-\"", self.first_line + lines),
            false => format!(
                "`lines` \"{}-\" and `from` {}",
                self.first_line,
                self.first_character + shown.chars().count() as u64
            ),
        };
        format!("{shown}\nCut here; read on with {advice}.\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_item_are_counted_as_in_its_file() {
        let text = || ShownText {
            head: "ctx-1".into(),
            content: "a\nb\nc\n".into(),
            first_line: 10,
            first_character: 1,
        };
        let only = |lines| text().only(Some(lines)).map(|text| (text.content, text.first_line));
        assert_eq!(only((11, Some(11))).unwrap(), ("b\n".into(), 11));
        assert_eq!(only((11, None)).unwrap(), ("b\nc\n".into(), 11));
        assert_eq!(only((10, Some(99))).unwrap(), ("a\nb\nc\n".into(), 10));
        for lines in [(9, None), (13, Some(14))] {
            assert!(only(lines).unwrap_err().to_string().contains("lines from 10 to 12"));
        }
    }

    #[test]
    fn a_long_line_is_read_in_parts_to_its_end() {
        let content = "é".repeat(70_000) + "\nnext\n";
        let (mut from, mut read) = (1, String::new());
        loop {
            let text = ShownText {
                head: "file a".into(),
                content: content.clone(),
                first_line: 3,
                first_character: 1,
            };
            let shown = text.from(from).unwrap().shown();
            let part = shown.split("\n\n").nth(1).unwrap();
            let Some((part, advice)) = part.split_once("\nCut here") else {
                read += part;
                break;
            };
            read += part;
            assert!(advice.contains("`lines` \"3-\" and `from` "), "{advice}");
            let number = advice.trim_end().trim_end_matches('.').rsplit(' ').next().unwrap();
            from = number.parse().unwrap();
        }
        assert_eq!(read, content);
        let text = ShownText { head: "f".into(), content, first_line: 3, first_character: 1 };
        assert!(text.from(70_001).is_err());
    }
}
