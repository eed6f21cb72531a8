//! What is given back to an agent after a compaction: how many of the paths, commands and figures
//! that it uses in its next messages, and that the session had before, are in the text.

use std::collections::BTreeSet;
use std::path::Path;

use contexture_program::internals::curation::used::handed_over;
use contexture_program::internals::recorded::RecordedMessage;
use contexture_program::internals::session::message::{Message, Role};
use regex::Regex;
use serde_json::Value as Json;

use crate::baseline;
use crate::log::Log;
use crate::recorded::{CUTS, LEAST_TOKENS, NEXT, length_at, sessions};
use crate::table::{percent, print};

/// Size of what is given back, in tokens.
const TOKENS: u64 = 2_000;
/// Maximum size of what the hook gives back, in tokens.
const HOOK: u64 = 1_950;

/// A session up to a cut, and what is used after it.
struct Cut {
    log: Log,
    length: usize,
    used: [BTreeSet<String>; 3],
}

/// Finds paths and figures, and commands in calls of shells.
struct Kinds {
    path: Regex,
    figure: Regex,
    numbered: Regex,
    span: Regex,
    shell: Regex,
}

pub(crate) fn measure() -> anyhow::Result<()> {
    let Some(folder) = std::env::var_os("SESSIONS").filter(|folder| !folder.is_empty()) else {
        return Ok(());
    };
    let sessions = sessions(Path::new(&folder))?;
    let kinds = Kinds::new()?;
    let mut cuts = Vec::new();
    for messages in &sessions {
        for length in CUTS.iter().filter_map(|share| length_at(messages, *share)) {
            cuts.extend(Cut::new(messages, length, &kinds)?);
        }
    }
    let last = |cut: &Cut| last_tokens(&cut.log, cut.length);
    let rows = [
        row("last 2,000 tokens of the transcript", &cuts, &kinds, last),
        row("given back by `contexture hook`, 1,950 tokens", &cuts, &kinds, |cut| given(cut, HOOK)),
        row("the same with 4,000 tokens", &cuts, &kinds, |cut| given(cut, 4_000)),
        row("the same without a limit", &cuts, &kinds, |cut| given(cut, u64::MAX / 2)),
        row("by one who knows what is used next, 2,000 tokens", &cuts, &kinds, of_the_future),
    ];
    let title = format!("Used after a compaction and given back, {} cuts", cuts.len());
    print(&title, &["given back", "paths", "commands", "figures", "all", "tokens"], &rows)
}

/// Returns what the hook gives back in this many tokens.
fn given(cut: &Cut, tokens: u64) -> String {
    let messages: Vec<&Message> = cut.log.messages[..cut.length].iter().collect();
    handed_over(&messages, tokens, &cut.log.measure)
}

/// Returns the shortest of what is used after the cut, within the tokens.
fn of_the_future(cut: &Cut) -> String {
    let mut used: Vec<&str> = cut.used.iter().flatten().map(String::as_str).collect();
    used.sort_by_key(|thing| thing.len());
    while cut.log.measure.text(&used.join("\n")) > TOKENS {
        used.pop();
    }
    used.join("\n")
}

fn row(name: &str, cuts: &[Cut], kinds: &Kinds, text: impl Fn(&Cut) -> String) -> Vec<String> {
    let (mut kept, mut used, mut tokens) = ([0; 3], [0; 3], 0);
    for cut in cuts {
        let text = text(cut);
        tokens += cut.log.measure.text(&text);
        let figures = kinds.figures(&text);
        let text = spelled_out(&text);
        for (kind, all) in cut.used.iter().enumerate() {
            let has = |it: &&String| match kind {
                2 => figures.contains(it.as_str()),
                _ => text.contains(it.as_str()),
            };
            used[kind] += all.len();
            kept[kind] += all.iter().filter(has).count();
        }
    }
    let shares =
        (0..3).map(|kind| format!("{} of {}", percent(kept[kind], used[kind]), used[kind]));
    let all = percent(kept.iter().sum(), used.iter().sum());
    let mean = tokens / cuts.len().max(1) as u64;
    std::iter::once(name.to_owned()).chain(shares).chain([all, mean.to_string()]).collect()
}

/// Adds the paths that a text writes by their folder, as in `src/: a.rs, b.rs`, in full.
fn spelled_out(text: &str) -> String {
    let mut whole = text.to_owned();
    for (folder, names) in text.lines().filter_map(|line| line.split_once("/: ")) {
        names.split(", ").for_each(|name| whole.push_str(&format!("\n{folder}/{name}")));
    }
    whole
}

fn last_tokens(log: &Log, length: usize) -> String {
    let texts: Vec<String> = log.messages[..length].iter().flat_map(baseline::texts).collect();
    let text = texts.join("\n");
    let mut lines: Vec<&str> = Vec::new();
    let mut left = TOKENS;
    for line in text.lines().rev() {
        let cost = log.measure.text(line) + 1;
        if cost > left {
            break;
        }
        left -= cost;
        lines.push(line);
    }
    lines.reverse();
    lines.join("\n")
}

impl Cut {
    fn new(
        messages: &[RecordedMessage],
        length: usize,
        kinds: &Kinds,
    ) -> anyhow::Result<Option<Self>> {
        // The hook's sessions count with this tokenizer. An estimate is a third too low here, since
        // paths and figures have few characters for each token.
        let mut log = Log::new("o200k")?;
        messages.iter().take(length + NEXT).for_each(|message| log.record(message));
        let (before, after) = log.messages.split_at(length);
        if before.iter().map(|message| message.tokens).sum::<u64>() < LEAST_TOKENS {
            return Ok(None);
        }
        let before = kinds.of(before.iter());
        let after = kinds.of(after.iter().filter(|message| message.role == Role::Assistant));
        let used = std::array::from_fn(|kind| &before[kind] & &after[kind]);
        Ok(Some(Self { log, length, used }))
    }
}

impl Kinds {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            path: Regex::new(PATH)?,
            figure: Regex::new(FIGURE)?,
            numbered: Regex::new(r"^ *(\d+)[\t→|]")?,
            span: Regex::new("`([^`]+)`")?,
            shell: Regex::new("(?i)shell|bash|exec|run|command|terminal")?,
        })
    }

    /// Returns the paths, commands and figures of messages.
    fn of<'a>(&self, messages: impl Iterator<Item = &'a Message>) -> [BTreeSet<String>; 3] {
        let mut kinds = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        for message in messages {
            for text in baseline::texts(message) {
                kinds[0].extend(self.path.find_iter(&text).map(|it| it.as_str().to_owned()));
                let text = self.without_line_numbers(&text);
                kinds[2].extend(self.figures(&text).into_iter().map(str::to_owned));
            }
            for call in &message.tool_calls {
                if self.shell.is_match(&call.name) {
                    kinds[1].extend(self.commands(&call.arguments));
                }
            }
        }
        kinds
    }

    /// Leaves out the numbers that a tool wrote before the lines of a file: those one more or less
    /// than the number of a line beside theirs. They say nothing without the file.
    fn without_line_numbers(&self, text: &str) -> String {
        let number = |line: &str| self.numbered.captures(line)?[1].parse::<u64>().ok();
        let lines: Vec<(Option<u64>, &str)> =
            text.lines().map(|line| (number(line), line)).collect();
        let is_listed = |at: usize| {
            let beside = |at: usize| lines.get(at).and_then(|(number, _)| *number);
            let before = at.checked_sub(1).and_then(beside).map(|number| number + 1);
            let after = beside(at + 1).and_then(|number| number.checked_sub(1));
            lines[at].0.is_some() && (lines[at].0 == before || lines[at].0 == after)
        };
        let bare = |at: usize| match is_listed(at) {
            true => self.numbered.replace(lines[at].1, ""),
            false => lines[at].1.into(),
        };
        (0..lines.len()).map(bare).collect::<Vec<_>>().join("\n")
    }

    fn figures<'a>(&self, text: &'a str) -> BTreeSet<&'a str> {
        self.figure.find_iter(text).map(|it| it.as_str()).collect()
    }

    /// Returns the commands in the arguments of a call: its `command`, or what a recording shows of
    /// it between backquotes.
    fn commands(&self, arguments: &str) -> Vec<String> {
        let Ok(fields) = serde_json::from_str::<Json>(arguments) else { return Vec::new() };
        let named = fields["command"].as_str().or(fields["cmd"].as_str()).map(str::to_owned);
        let shown = fields["shown"].as_str().unwrap_or_default();
        let spans = self.span.captures_iter(shown).map(|span| span[1].to_owned());
        let lines = named.into_iter().chain(spans).collect::<Vec<_>>().join("\n");
        lines.lines().map(str::trim).filter(|line| line.contains(' ')).map(str::to_owned).collect()
    }
}

/// Paths, and names of files. Written apart from the rules by which it is given back. Without the
/// endings, `io.EOF` and `process.env` in code would count as files, and `os/exec` as a folder.
const PATH: &str = r"(?x)
    (?:~|\.{1,2})?/(?:[\w@+-][\w.@+-]*/)+[\w.@+-]*\w
    | (?:[\w@+-][\w.@+-]*/)*[\w.@+-]*\w
      \.(?:c|css|el|go|h|html|java|js|json|jsx|lock|md|mod|py|rb|rs|sh|sql|toml|ts|tsx|txt|ya?ml)\b";

/// Figures of two digits or more, with a unit that follows.
const FIGURE: &str = r"\b\d+(?:\.\d+)+\b|\b\d{2,}(?:\s?(?:%|(?:ms|s|MB|KB|GB|px|min)\b)|\b)";
