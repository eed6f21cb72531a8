//! Uses of tools in SpecStory's Markdown, which has only a summary of each call, and often its
//! result.

use serde_json::json;

use super::{SpecstoryDocument, closes, decoded, fence, is_blank, unescaped};

pub(super) struct ToolUse {
    pub(super) name: String,
    /// The part of the arguments that the Markdown shows.
    input: String,
    /// The result; `None` if the Markdown has none.
    pub(super) result: Option<String>,
    is_tagged: bool,
}

/// Beginning of the use of a tool in version 1 of the format.
const PLAIN: &str = "Tool use: **";
/// Beginning of the use of a tool in version 2 of the format.
const TAGGED: &str = "<tool-use data-tool-";
/// Beginning of the use of a tool that has no name of its own.
const DETAILS: &str = "<details>";
/// Beginning of the line that shows a read file, where the use has no other mark.
const READ: &str = "Read file: ";
/// The line after which all is the result.
const REST: &str = "*Result*:";
/// Name of a tool of which the Markdown does not tell the name.
const NAMELESS: &str = "tool";

impl ToolUse {
    /// Returns the arguments as JSON.
    pub(super) fn arguments(&self) -> String {
        match self.input.is_empty() {
            true => "{}".to_owned(),
            false => json!({ "shown": self.input }).to_string(),
        }
    }

    /// Returns whether this is the use `before` once more, but empty. Some versions write both, with
    /// nothing between.
    pub(super) fn repeats(&self, before: &Self) -> bool {
        let is_empty = |used: &Self| used.input.is_empty() && used.result.is_none();
        let is_tagged = self.is_tagged && before.is_tagged;
        is_tagged && self.name == before.name && is_empty(self) && !is_empty(before)
    }
}

/// Returns whether a line marks the use of a tool as such, as all but the early versions do.
pub(super) fn is_marked(line: &str) -> bool {
    line.starts_with(PLAIN) || line.starts_with(TAGGED)
}

/// Returns whether a line opens a fence that has a command for a shell.
pub(super) fn is_command(line: &str) -> bool {
    line.starts_with("```") && fence(line).is_some() && is_shell(line.trim_matches('`').trim())
}

/// Returns a command, and perhaps its output, that stands alone in its lines.
pub(super) fn command(lines: &[&str]) -> ToolUse {
    used(lines, FencedKind::Details)
}

/// Returns whether the use of a tool begins with this line.
pub(super) fn begins(document: &SpecstoryDocument<'_>, at: usize) -> bool {
    let line = document.lines[at];
    let next = || {
        document.lines.get(at + 1).is_some_and(|next| next.trim_start().starts_with("<summary>"))
    };
    let is_alone = || {
        at > 0
            && is_blank(document.lines[at - 1])
            && document.lines.get(at + 1).is_none_or(|next| is_blank(next))
    };
    is_marked(line)
        || (line.starts_with(DETAILS) && (line.contains("<summary>") || next()))
        || (line.starts_with(READ) && is_alone())
}

/// Returns whether the use of a tool ends with this line.
pub(super) fn is_end(line: &str) -> bool {
    let line = line.trim();
    line.ends_with("</tool-use>") || line == "</details>"
}

/// Reads the use of a tool that begins with a line. Returns the use and the line after it.
pub(super) fn read(document: &SpecstoryDocument<'_>, at: usize) -> (ToolUse, usize) {
    let line = document.lines[at];
    let kind = match line {
        _ if line.starts_with(TAGGED) => FencedKind::Tagged,
        _ if line.starts_with(PLAIN) => FencedKind::Plain,
        _ if line.starts_with(READ) => {
            let used = ToolUse {
                name: "read_file".to_owned(),
                input: line[READ.len()..].trim().to_owned(),
                result: None,
                is_tagged: false,
            };
            return (used, at + 1);
        }
        _ => FencedKind::Details,
    };
    let next = end(document, at, kind);
    (used(&document.lines[at..next], kind), next)
}

/// Reads the use of a tool below a heading without a name. Returns it and the line after it.
pub(super) fn nameless(document: &SpecstoryDocument<'_>, at: usize) -> (ToolUse, usize) {
    let begin = (at..document.lines.len()).find(|at| !is_blank(document.lines[*at]));
    let begin = begin.unwrap_or(document.lines.len());
    if begin < document.lines.len() && begins(document, begin) {
        return read(document, begin);
    }
    let next = end(document, at, FencedKind::Plain);
    (used(&document.lines[begin.min(next)..next], FencedKind::Plain), next)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FencedKind {
    Tagged,
    Plain,
    Details,
}

/// Returns the line after the use of a tool that begins with line `begin`.
fn end(document: &SpecstoryDocument<'_>, begin: usize, kind: FencedKind) -> usize {
    let mut open: Option<usize> = None;
    // A fence with the result was closed, so that only blank lines can follow in a plain block.
    let (mut has_result, mut is_told) = (false, false);
    for at in begin..document.lines.len() {
        let line = document.lines[at];
        if at > begin && document.turn_at(at, open.is_some()).is_some() {
            return at;
        }
        if at > begin && is_next(document, at, kind, open.is_some()) {
            return at;
        }
        if let Some(fence) = open {
            if closes(line, fence) && !line.starts_with(' ') {
                open = None;
                is_told = has_result;
                continue;
            }
        } else if is_told && !is_blank(line) && kind == FencedKind::Plain {
            return at;
        } else if let Some(fence) = fence(line).filter(|_| !line.starts_with(' ')) {
            open = Some(fence);
            continue;
        }
        has_result |= open.is_none() && is_result(line);
        if closes_use(line, kind) && (open.is_none() || is_plausible(document, at, kind)) {
            return at + 1;
        }
        if open.is_none()
            && document.is_rule(at)
            && !(kind == FencedKind::Tagged && is_closed_later(document, at))
        {
            return at;
        }
    }
    document.lines.len()
}

/// Returns whether the tag that ends a use of this kind stands in a line.
fn closes_use(line: &str, kind: FencedKind) -> bool {
    match kind {
        FencedKind::Tagged => line.trim_end().ends_with("</tool-use>"),
        FencedKind::Details | FencedKind::Plain => {
            line.trim() == "</details>" || line.starts_with(DETAILS) && line.ends_with("</details>")
        }
    }
}

/// Returns whether the use of another tool begins with a line. Inside a fence, this needs a sign
/// that the fence was never closed.
fn is_next(document: &SpecstoryDocument<'_>, at: usize, kind: FencedKind, in_fence: bool) -> bool {
    let line = document.lines[at];
    match kind {
        FencedKind::Tagged => line.starts_with(TAGGED) && (!in_fence || document.follows_end(at)),
        FencedKind::Plain => line.starts_with(PLAIN) || (!in_fence && line.starts_with("<think>")),
        FencedKind::Details => line.starts_with(PLAIN) || line.starts_with(TAGGED),
    }
}

/// Returns whether an end inside an open fence is the end of the use: if the fence that seems to be
/// open ends just before, or if a rule follows.
fn is_plausible(document: &SpecstoryDocument<'_>, at: usize, kind: FencedKind) -> bool {
    let mut before = document.lines[..at].iter().rev();
    let before = before.find(|line| !is_blank(line) && line.trim() != "</details>");
    let mut after = document.lines[at + 1..].iter();
    let after = after.find(|line| !is_blank(line));
    let ends_fence = before.is_some_and(|line| closes(line, 3));
    let is_followed = after.is_none_or(|line| *line == super::RULE);
    match kind {
        FencedKind::Tagged => ends_fence || is_followed,
        FencedKind::Plain | FencedKind::Details => is_followed,
    }
}

/// Returns whether the tag that ends a use follows a rule before the next use or turn.
fn is_closed_later(document: &SpecstoryDocument<'_>, rule: usize) -> bool {
    for at in document.ahead(rule + 1..document.lines.len()) {
        let line = document.lines[at];
        if closes_use(line, FencedKind::Tagged) {
            return true;
        }
        if line.starts_with(TAGGED) || document.turn_at(at, false).is_some() {
            return false;
        }
    }
    false
}

/// A fence in the block of a tool.
struct Fence<'a> {
    language: &'a str,
    lines: Vec<&'a str>,
}

impl Fence<'_> {
    /// Returns the text inside the fence. In the Markdown, fences within that text begin with a
    /// backslash.
    fn text(&self) -> String {
        let lines =
            self.lines.iter().map(|line| line.replace("\\```", "```").replace("&#96;", "`"));
        unescaped(&lines.collect::<Vec<_>>().join("\n"))
    }

    /// Returns whether the fence has plain text, as results have.
    fn is_plain(&self) -> bool {
        matches!(self.language, "" | "text" | "txt" | "plaintext" | "output")
    }
}

/// The lines of a block, in and outside of fences.
#[derive(Default)]
struct FencedBlock<'a> {
    /// Lines outside of fences, before the result.
    outside: Vec<&'a str>,
    fences: Vec<Fence<'a>>,
    /// True if a line says that the result follows.
    has_result: bool,
    /// The result, if a line says that all that follows is the result.
    rest: Option<String>,
}

/// Splits a block. The last plain fence reaches to the last line that can close it, since results
/// may hold fences of their own.
fn split<'a>(lines: &[&'a str]) -> FencedBlock<'a> {
    let mut block = FencedBlock::default();
    let last = lines.iter().rposition(|line| closes(line, 3) && !line.starts_with(' '));
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if line.trim_end() == REST {
            let end = lines.len() - closing(&lines[at + 1..]);
            block.rest = Some(lines[at + 1..end].join("\n"));
            break;
        }
        let Some(length) = fence(line).filter(|_| !line.starts_with(' ')) else {
            block.has_result |= is_result(line);
            if !is_result(line) {
                block.outside.push(line);
            }
            at += 1;
            continue;
        };
        let language = line.trim_start_matches('`').trim();
        let mut new = Fence { language, lines: Vec::new() };
        let own = (at + 1..lines.len())
            .find(|at| closes(lines[*at], length) && !lines[*at].starts_with(' '));
        let follows = !block.fences.is_empty() || !language.is_empty() || block.has_result;
        let is_last = new.is_plain() && follows;
        let close = if is_last { last.filter(|last| *last > at).or(own) } else { own };
        // If the fence was never closed, what closes the block is no part of it.
        let close = close.unwrap_or_else(|| lines.len() - closing(&lines[at + 1..]));
        new.lines.extend(&lines[at + 1..close.max(at + 1)]);
        block.fences.push(new);
        at = close.max(at) + 1;
    }
    block
}

/// Returns the number of lines at the end that close a block.
fn closing(lines: &[&str]) -> usize {
    let closes = |line: &&&str| is_blank(line) || is_end(line) || **line == super::RULE;
    lines.iter().rev().take_while(closes).count()
}

fn used(lines: &[&str], kind: FencedKind) -> ToolUse {
    let mut block = split(lines);
    let first = lines.first().copied().unwrap_or_default();
    let attribute = |name: &str| {
        let (_, rest) = first.split_once(name)?;
        rest.split_once('"').map(|(value, _)| decoded(value))
    };
    let mut outside: Vec<String> =
        block.outside.iter().map(|line| decoded(&without_tags(line))).collect();
    let mut name = attribute("data-tool-name=\"").unwrap_or_default();
    for line in &mut outside {
        if let Some((found, rest)) =
            line.trim_start().strip_prefix(PLAIN).and_then(|rest| rest.split_once("**"))
        {
            name = if name.is_empty() { found.to_owned() } else { name };
            *line = rest.trim_start_matches(" •").trim().to_owned();
        }
    }
    if name.is_empty() {
        let is_command = block.fences.first().is_some_and(|fence| is_shell(fence.language));
        let is_read = outside.iter().any(|line| line.starts_with(READ));
        name = if is_command {
            "run_command"
        } else if is_read {
            "read_file"
        } else {
            NAMELESS
        }
        .to_owned();
    }
    let of_kind = attribute("data-tool-type=\"").unwrap_or_default();
    let has_result = match block.fences.last() {
        None => false,
        Some(_) if kind == FencedKind::Plain && block.has_result => true,
        Some(fence) if fence.language == "diff" => false,
        Some(fence) if is_shell(fence.language) => false,
        Some(_) if kind == FencedKind::Plain && name != "run_command" && !is_shell_name(&name) => {
            block.has_result
        }
        Some(fence) if of_kind == "write" => fence.is_plain(),
        Some(_) => true,
    };
    let mut result = block.rest.take();
    if result.is_none() && has_result {
        result = block.fences.pop().map(|fence| fence.text());
    }
    // Some tools show their result as a table, or as one line in bold.
    if result.is_none() {
        let is_shown = |line: &String| line.starts_with('|') || is_remark(line);
        let shown: Vec<String> = outside.extract_if(.., |line| is_shown(line)).collect();
        result = (!shown.is_empty()).then(|| shown.join("\n"));
    }
    let mut input = outside;
    input.extend(block.fences.iter().map(Fence::text));
    ToolUse { name, input: joined(input), result, is_tagged: kind == FencedKind::Tagged }
}

/// Returns whether a line is a remark in bold, other than the heading of a list or chunk, or says
/// that nothing was found.
fn is_remark(line: &str) -> bool {
    if line.trim() == "No results found" {
        return true;
    }
    let inner = line.trim().strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
    inner.is_some_and(|inner| inner.starts_with("No ") || inner.starts_with("Error"))
}

fn is_shell(language: &str) -> bool {
    matches!(
        language,
        "bash" | "sh" | "shell" | "zsh" | "fish" | "powershell" | "pwsh" | "cmd" | "bat"
    )
}

fn is_shell_name(name: &str) -> bool {
    name.contains("terminal") || name.contains("command") || name == "Bash"
}

fn is_result(line: &str) -> bool {
    matches!(line.trim_end(), "Result:" | "Error:")
}

fn joined(parts: Vec<String>) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !is_blank(part)).collect();
    parts.iter().map(|part| part.trim()).collect::<Vec<_>>().join("\n")
}

/// Returns a line without the tags that make up the block of a tool.
fn without_tags(line: &str) -> String {
    const TAGS: [&str; 3] = ["tool-use", "details", "summary"];
    let (mut rest, mut text) = (line, String::new());
    while let Some((before, tag)) = rest.split_once('<') {
        let name = tag.strip_prefix('/').unwrap_or(tag);
        text.push_str(before);
        rest = match (TAGS.iter().any(|known| name.starts_with(known)), tag.split_once('>')) {
            (true, Some((_, after))) => after,
            _ => {
                text.push('<');
                tag
            }
        };
    }
    (text + rest).trim().to_owned()
}
