//! Uses of tools in SpecStory's Markdown, which has only a summary of each call, and the result in
//! a fence.

use serde_json::json;

pub(super) struct ToolUse {
    pub(super) name: String,
    /// The part of the arguments that the Markdown shows.
    input: String,
    pub(super) result: String,
}

/// Beginning of the use of a tool in version 1 of the format.
const PLAIN: &str = "Tool use: **";
/// Beginning of the use of a tool in version 2 of the format.
const TAGGED: &str = "<tool-use";

impl ToolUse {
    /// Returns the arguments as JSON.
    pub(super) fn arguments(&self) -> String {
        match self.input.is_empty() {
            true => "{}".to_owned(),
            false => json!({ "shown": self.input }).to_string(),
        }
    }
}

/// Returns whether the use of a tool begins with this line.
pub(super) fn begins(line: &str) -> bool {
    line.starts_with(PLAIN) || line.starts_with(TAGGED)
}

/// Reads the use of a tool with which `text` begins. Returns the use and the text after it.
pub(super) fn read(text: &str) -> (ToolUse, &str) {
    match text.starts_with(TAGGED) {
        true => tagged(text),
        false => plain(text),
    }
}

/// A fence in the block of a tool.
struct Fence<'a> {
    language: &'a str,
    lines: Vec<&'a str>,
}

/// The lines of a block outside of fences, the fences, and the number of bytes read.
struct Block<'a> {
    outside: Vec<&'a str>,
    fences: Vec<Fence<'a>>,
    read: usize,
}

/// The place where a block ends, relative to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The block continues.
    NotYet,
    /// The block ends before the line.
    Before,
    /// The block ends with the line.
    After,
}

/// Reads the lines of a block. For each line outside of fences, `end_at` tells whether the block
/// ends there.
fn block(text: &str, end_at: impl Fn(&str, &Block<'_>) -> End) -> Block<'_> {
    let mut block = Block { outside: Vec::new(), fences: Vec::new(), read: 0 };
    let mut is_open = false;
    for whole in text.split_inclusive('\n') {
        let line = whole.trim_end_matches(['\n', '\r']);
        match (line.strip_prefix("```"), block.fences.last_mut()) {
            (Some(_), _) if is_open => is_open = false,
            (None, Some(fence)) if is_open => fence.lines.push(line),
            (Some(language), _) => {
                is_open = true;
                block.fences.push(Fence { language: language.trim(), lines: Vec::new() });
            }
            (None, _) => {
                let end = end_at(line, &block);
                if end == End::Before {
                    break;
                }
                block.outside.push(line);
                if end == End::After {
                    block.read += whole.len();
                    break;
                }
            }
        }
        block.read += whole.len();
    }
    block
}

fn tagged(text: &str) -> (ToolUse, &str) {
    let block = block(text, |line, _| match line.contains("</tool-use>") {
        true => End::After,
        false => End::NotYet,
    });
    let first = block.outside.first().copied().unwrap_or_default();
    let attribute = |name: &str| {
        let (_, rest) = first.split_once(name)?;
        rest.split_once('"').map(|(value, _)| value)
    };
    let name = attribute("data-tool-name=\"").unwrap_or("tool").to_owned();
    let mut input: Vec<String> = Vec::new();
    for line in &block.outside {
        let line = without_tags(line);
        let line = line.strip_prefix("Tool use: ").unwrap_or(&line);
        let line = line.strip_prefix(&format!("**{name}**")).unwrap_or(line);
        input.push(line.trim_start_matches(" •").trim().to_owned());
    }
    // A tool's output is shown as plain text; a fence in another language shows its input.
    let is_write = attribute("data-tool-type=\"") == Some("write");
    let is_result = |fence: &Fence<'_>| !is_write || matches!(fence.language, "" | "text" | "bash");
    let mut fences = block.fences;
    let result = match fences.pop_if(|fence| is_result(fence)) {
        Some(fence) => inside(&fence),
        None => String::new(),
    };
    input.extend(fences.iter().map(inside));
    (ToolUse { name, input: joined(input), result }, &text[block.read..])
}

fn plain(text: &str) -> (ToolUse, &str) {
    let has_result = |block: &Block<'_>| block.outside.iter().any(|line| is_result(line));
    let mut block = block(text, |line, block| {
        let is_over = has_result(block) && !block.fences.is_empty() && !line.trim().is_empty();
        let is_next = !block.outside.is_empty() && (line.starts_with(PLAIN) || line == "<think>");
        if is_over || is_next { End::Before } else { End::NotYet }
    });
    let first = block.outside.first().copied().unwrap_or_default();
    let (name, shown) =
        first.strip_prefix(PLAIN).and_then(|rest| rest.split_once("**")).unwrap_or(("tool", first));
    let before = block.outside.iter().skip(1).take_while(|line| !is_result(line));
    let mut input = vec![shown.trim().to_owned()];
    input.extend(before.map(|line| (*line).to_owned()));
    let result = if has_result(&block) { block.fences.pop() } else { None };
    let result = result.map(|fence| inside(&fence)).unwrap_or_default();
    input.extend(block.fences.iter().map(inside));
    (ToolUse { name: name.to_owned(), input: joined(input), result }, &text[block.read..])
}

fn is_result(line: &str) -> bool {
    matches!(line.trim_end(), "Result:" | "Error:")
}

/// Returns the text inside a fence. In the Markdown, fences within that text begin with a
/// backslash.
fn inside(fence: &Fence<'_>) -> String {
    let lines = fence.lines.iter().map(|line| line.replace("\\```", "```"));
    lines.collect::<Vec<_>>().join("\n")
}

fn joined(parts: Vec<String>) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    parts.join("\n").trim().to_owned()
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
    text + rest
}
