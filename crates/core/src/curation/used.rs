//! Lists the paths, addresses, commands and figures that the work used, in few tokens. An agent
//! loses these in a compaction, and asks for them first afterwards.

mod command;
mod path;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value as Json;

use super::said::UserWords;
use crate::retrieval::words::ends;
use crate::session::message::{Message, Role};
use crate::tokens::Measure;

// These weights were chosen on some recorded sessions and tested on others; `docs/benchmarks.md`
// names both.

/// Weight of a mention in an output of a tool.
const OF_OUTPUT: f64 = 1.2;
/// Weight of a mention in the words of the user or the model, or in a call.
const OF_WORDS: f64 = 3.0;
/// Share of the room for the user's words, as far as the work used much.
const SAID: f64 = 0.23;
/// Maximum cost of the gap between the two parts, in tokens.
const GAP: u64 = 4;
/// Weight of a figure, relative to that of a path, an address or a command.
const OF_FIGURE: f64 = 1.2;
/// Number of messages after which the weight of a mention has fallen to about 40 %.
const AGE: f64 = 60.0;
/// Weight that a mention keeps however old it is, relative to a new one.
const OLD: f64 = 0.02;
/// Maximum weight of the mentions of a thing in one message.
const MOST: f64 = 6.0;
/// Exponent for the length of a thing. The weight is divided by the length to this power, so that
/// short things come first.
const LENGTH: f64 = 0.8;
/// Share of the length of a path's folder that counts, since other paths may share the folder.
const OF_FOLDER: f64 = 0.3;
/// Number of bytes added to the length of each thing before its weight is divided.
const ADDED_LENGTH: f64 = 4.0;

/// Maximum number of bytes of a text that are read: half at its beginning and half at its end.
const READ: usize = 256 * 1024;
/// Maximum number of things to list.
const MOST_SHOWN: usize = 2000;
/// Maximum length of an address, in bytes.
const LONGEST_ADDRESS: usize = 200;

/// Pattern of a figure, with the word before it and the unit after it.
static FIGURES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let units = "%|(?:ms|s|min|h|kB|KB|KiB|MB|MiB|GB|GiB|px)\\b";
    let word = "(?:(?<word>[A-Za-z_][\\w-]{1,14})[ \\t\":=#]{1,3})?";
    Regex::new(&format!("{word}\\b(?<figure>(?:\\d+(?:\\.\\d+)+|\\d{{2,}})(?: ?(?:{units})|\\b))"))
        .ok()
});

/// The kind of a thing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Sort {
    Command,
    /// A path or an address.
    Path,
    Figure,
}

/// A thing that the work used.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Thing {
    kind: Sort,
    text: String,
}

/// What is known about a thing.
#[derive(Default)]
struct Use {
    weight: f64,
    /// Word before the figure, from its last mention that has one.
    word: Option<String>,
}

/// Returns the commands, paths, addresses and figures that `messages` used, as Markdown of at most
/// `tokens` tokens. If not all of them fit, those have priority that are short or that were used
/// often, recently, or outside of tool outputs. Things in `beside`, a text that is sent with the
/// result, are left out. The result is empty if nothing was used or nothing fits.
pub fn used(messages: &[&Message], beside: &str, tokens: u64, measure: &Measure) -> String {
    let mut uses = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        read(message, recency(messages.len() - at), &mut uses);
    }
    let figures = figures_of(beside);
    let is_beside = |thing: &Thing| match thing.kind {
        Sort::Figure => figures.contains(&*thing.text),
        _ => beside.contains(&thing.text),
    };
    let mut best: Vec<(Thing, Use)> = uses.into_iter().collect();
    best.retain(|(thing, _)| !is_beside(thing));
    best.sort_by(|(a, of_a), (b, of_b)| {
        worth(b, of_b).total_cmp(&worth(a, of_a)).then_with(|| a.text.cmp(&b.text))
    });
    within(&best, tokens, measure)
}

/// Returns what another agent, or the same one after a compaction, needs of a session: the user's
/// words, newest first, and what the work used, as Markdown of at most `tokens` tokens. The words
/// get [`SAID`] of the room, and what the rest leaves.
pub fn handed_over(messages: &[&Message], tokens: u64, measure: &Measure) -> String {
    let said = UserWords::of(messages.iter().copied());
    let words = said.clone().within((tokens as f64 * SAID) as u64, measure).render();
    let left = tokens.saturating_sub(measure.text(&words) + GAP);
    let used = used(messages, &words, left, measure);
    let words = said.within(tokens.saturating_sub(measure.text(&used) + GAP), measure).render();
    [used, words].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn recency(age: usize) -> f64 {
    (-(age as f64) / AGE).exp() + OLD
}

fn worth(thing: &Thing, used: &Use) -> f64 {
    let figure = if thing.kind == Sort::Figure { OF_FIGURE } else { 1.0 };
    let folder = match thing.kind {
        Sort::Path => folder_of(&thing.text).len(),
        _ => 0,
    };
    let length = thing.text.len() as f64 - folder as f64 * (1.0 - OF_FOLDER);
    figure * used.weight / (length + ADDED_LENGTH).powf(LENGTH)
}

/// Reads the paths, addresses and figures of a message, and the commands of its calls.
fn read(message: &Message, recency: f64, uses: &mut HashMap<Thing, Use>) {
    let by = if message.role == Role::Tool { OF_OUTPUT } else { OF_WORDS };
    let mut mentions: HashMap<Thing, (f64, Option<String>)> = HashMap::new();
    let arguments = message.tool_calls.iter().map(|call| spelled_out(&call.arguments));
    for text in std::iter::once(Cow::Borrowed(&*message.content)).chain(arguments) {
        for part in ends(&text, READ) {
            each_thing(part, |kind, text, word| {
                let mention = mentions.entry(Thing { kind, text: text.to_owned() }).or_default();
                mention.0 += by;
                mention.1 = word.map(str::to_owned).or(mention.1.take());
            });
        }
    }
    for call in &message.tool_calls {
        command::each(call, |command| {
            let text = command.replace('\n', " ");
            mentions.entry(Thing { kind: Sort::Command, text }).or_default().0 += by;
        });
    }
    for (thing, (weight, word)) in mentions {
        let used = uses.entry(thing).or_default();
        used.weight += weight.min(MOST) * recency;
        used.word = word.or(used.word.take());
    }
}

/// Returns the names and values in a call's JSON arguments as text with real line breaks; arguments
/// that are not JSON unchanged.
fn spelled_out(arguments: &str) -> Cow<'_, str> {
    fn each(value: &Json, text: &mut String) {
        match value {
            Json::Object(fields) => fields.iter().for_each(|(name, value)| {
                text.push_str(name);
                text.push(' ');
                each(value, text);
            }),
            Json::Array(values) => values.iter().for_each(|value| each(value, text)),
            Json::String(string) => text.push_str(string),
            other => text.push_str(&other.to_string()),
        }
        text.push('\n');
    }
    let Ok(value) = serde_json::from_str(arguments) else { return Cow::Borrowed(arguments) };
    let mut text = String::new();
    each(&value, &mut text);
    Cow::Owned(text)
}

/// Calls `take` for each path, address and figure, with its kind and text, and for a figure also
/// with the word before it.
fn each_thing(text: &str, mut take: impl FnMut(Sort, &str, Option<&str>)) {
    let between = |c: char| c.is_whitespace() || "`'\"()[]{}<>,;|=".contains(c);
    for word in text.split(between) {
        if let Some(path) = path::path(word).or_else(|| address(word)) {
            take(Sort::Path, path, None);
        }
    }
    let figures = FIGURES.iter().flat_map(|figures| figures.captures_iter(text));
    for found in figures {
        let word = found.name("word").map(|word| word.as_str());
        let figure = found.name("figure").filter(|figure| !numbers_a_line(text, figure.range()));
        figure.into_iter().for_each(|figure| take(Sort::Figure, figure.as_str(), word));
    }
}

/// Returns whether a figure is the number that a tool wrote before the line of a file. Such figures
/// say nothing without the file. They begin a line and precede a tab, `→` or `|`, and the line
/// above or below begins with the previous or the next number.
fn numbers_a_line(text: &str, figure: Range<usize>) -> bool {
    let (before, after) = (&text[..figure.start], &text[figure.end..]);
    let start = before.trim_end_matches(' ');
    if !(after.starts_with(['\t', '→', '|']) && (start.is_empty() || start.ends_with('\n'))) {
        return false;
    }
    let number = |line: &str| {
        let line = line.trim_start_matches(' ');
        let end = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
        line[..end].parse::<u64>().ok()
    };
    let Some(this) = number(&text[figure]) else { return false };
    let last = before.lines().nth_back(usize::from(!before.ends_with('\n'))).and_then(number);
    let next = after.lines().nth(1).and_then(number);
    last.is_some_and(|last| last + 1 == this) || next == Some(this + 1)
}

/// Returns the address in a word of a text, such as `https://x.org/a` or `s3://x/a`, or the path in
/// an address such as `file:///x/a`.
fn address(word: &str) -> Option<&str> {
    let (before, rest) = word.split_once("://")?;
    let scheme = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
    let rest = word.len() - rest.len();
    let start = if &before[scheme..] == "file" { rest } else { scheme };
    let address = word[start..].trim_end_matches(['.', ':', '!', '?', '*', '/']);
    let whole = scheme < before.len() && start + address.len() > rest;
    (whole && address.len() <= LONGEST_ADDRESS).then_some(address)
}

/// Renders as many of the best things as fit into `tokens` tokens.
fn within(best: &[(Thing, Use)], tokens: u64, measure: &Measure) -> String {
    let (mut fits, mut too_many) = (0, best.len().min(MOST_SHOWN) + 1);
    while fits + 1 < too_many {
        let middle = usize::midpoint(fits, too_many);
        match measure.text(&render(&best[..middle])) <= tokens {
            true => fits = middle,
            false => too_many = middle,
        }
    }
    render(&best[..fits])
}

fn render(chosen: &[(Thing, Use)]) -> String {
    let of = |kind: Sort| chosen.iter().filter(move |(thing, _)| thing.kind == kind);
    let mut commands: Vec<&str> = of(Sort::Command).map(|(thing, _)| &*thing.text).collect();
    commands.sort_unstable();
    let commands = commands.join("\n");
    let paths = of(Sort::Path).map(|(thing, _)| &*thing.text).collect();
    let paths = by_folder(&without_ends(paths)).join("\n");
    let known: HashSet<&str> = &figures_of(&commands) | &figures_of(&paths);
    let figures = of(Sort::Figure).filter(|(thing, _)| !known.contains(&*thing.text));
    let figures = by_word(figures.map(|(thing, used)| (used.word.as_deref(), &*thing.text)));
    let blocks = [
        ("## Commands used\n", commands),
        ("## Files and addresses used\n", paths),
        ("## Figures\n", figures),
    ];
    let blocks = blocks.iter().filter(|(_, list)| !list.is_empty());
    blocks.map(|(heading, list)| format!("{heading}{list}")).collect::<Vec<_>>().join("\n\n")
}

fn figures_of(text: &str) -> HashSet<&str> {
    let figures = FIGURES.iter().flat_map(|figures| figures.captures_iter(text));
    figures.filter_map(|found| found.name("figure")).map(|found| found.as_str()).collect()
}

/// Lists figures, those without a word before them first: `10 20, port 80 443`.
fn by_word<'a>(figures: impl Iterator<Item = (Option<&'a str>, &'a str)>) -> String {
    let mut words: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
    for (word, figure) in figures {
        words.entry(word).or_default().push(figure);
    }
    let group = |(word, figures): (Option<&str>, Vec<&str>)| match word {
        Some(word) => format!("{word} {}", figures.join(" ")),
        None => figures.join(" "),
    };
    words.into_iter().map(group).collect::<Vec<_>>().join(", ")
}

/// Leaves out each path that is the end of another: `a.rs` if there is `src/a.rs`.
fn without_ends<'a>(mut paths: Vec<&'a str>) -> Vec<&'a str> {
    let end_of = |path: &'a str| path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    let known: HashSet<&str> = paths.iter().copied().flat_map(end_of).collect();
    paths.retain(|path| !known.contains(path));
    paths
}

/// Returns the folder of a path, with a slash at its end; empty if there is none.
fn folder_of(path: &str) -> &str {
    let end = path.trim_end_matches('/').rfind('/');
    &path[..end.map_or(0, |at| at + 1)]
}

/// Returns the lines that list paths: one line for each folder, such as `src/: a.rs, b.rs`, and one
/// line for all paths without a folder.
fn by_folder(paths: &[&str]) -> Vec<String> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in paths {
        let folder = folder_of(path);
        folders.entry(folder).or_default().push(&path[folder.len()..]);
    }
    let line = |(folder, mut names): (&str, Vec<&str>)| {
        names.sort_unstable();
        match (folder, &*names) {
            ("", names) => names.join(", "),
            (_, [name]) => format!("{folder}{name}"),
            _ => format!("{folder}: {}", names.join(", ")),
        }
    };
    folders.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_folder_share_a_line_and_ends_are_left_out() {
        let paths =
            ["b.rs", "src/b.rs", "src/a.rs", "src/cli/", "/x/src/a.rs", "Makefile", "Cargo.toml"];
        assert_eq!(
            by_folder(&without_ends(paths.to_vec())),
            ["Cargo.toml, Makefile", "/x/src/a.rs", "src/: b.rs, cli/"]
        );
    }

    #[test]
    fn paths_and_addresses_are_found_between_marks() {
        let mut found = Vec::new();
        each_thing(
            "[log](src/a.rs),b.rs 2>out/x.txt {\"url\":\"https://x.org/a/b\"} see (http://y.org/c). \
             9→s3://b/key file:///x/y.rs http:// ://x $HOME/z #!/bin/sh",
            |kind, text, _| found.extend((kind == Sort::Path).then(|| text.to_owned())),
        );
        let expected = [
            "src/a.rs",
            "b.rs",
            "out/x.txt",
            "https://x.org/a/b",
            "http://y.org/c",
            "s3://b/key",
            "/x/y.rs",
            "$HOME/z",
            "/bin/sh",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_of_listed_lines_are_no_figures() {
        let figures = |text: &str| {
            let mut found = Vec::new();
            each_thing(text, |kind, text, _| {
                found.extend((kind == Sort::Figure).then(|| text.to_owned()));
            });
            found
        };
        assert_eq!(figures("   9→a\n  10→b 64\n  11→c"), ["64"]);
        assert_eq!(figures("98\tx\n99\ty\n100\t"), Vec::<String>::new());
        assert_eq!(figures("4096\tsrc\n512\tdocs\n12: x\n13: y"), ["4096", "512", "12", "13"]);
        assert_eq!(figures("40|a"), ["40"]);
    }

    #[test]
    fn the_middle_of_a_long_text_is_read() {
        let text = format!("{0} port 8443 {0}", "word ".repeat(READ / 20));
        let message = crate::curation::testing::said(1, Role::Tool, &text);
        let mut uses = HashMap::new();
        read(&message, 1.0, &mut uses);
        assert!(uses.keys().any(|thing| thing.text == "8443"));
    }

    #[test]
    fn figures_share_the_word_before_them() {
        let figures = [(Some("port"), "80"), (None, "10"), (Some("port"), "443"), (None, "2 s")];
        assert_eq!(by_word(figures.into_iter()), "10 2 s, port 80 443");
    }
}
