//! What windows of recorded sessions keep of what the agent needs next: the names (paths,
//! identifiers, options, versions and hashes) that it writes in its next messages, as far as the
//! history has them.
//!
//! There are two measures. *Line*: a whole line with the name is in the window. *Around*: so are
//! three lines on each side of that line. The first alone is easy to satisfy with single lines that
//! nobody can read. Every window is rendered to text in the same way.
//!
//! Sessions are private, so none is part of the project: `SESSIONS` names a folder with them.

use std::collections::{BTreeMap, HashSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use contexture_program::internals::curation::section::{CountedText, Sections};
use contexture_program::internals::curation::strategy::{ALL, Aim, Shown, Strategy};
use contexture_program::internals::curation::summary::{Extractive, SummarySource, summarize};
use contexture_program::internals::curation::unit::{Folded, History, Unit};
use contexture_program::internals::curation::window::{WindowInput, build};
use contexture_program::internals::recorded::{self, RecordedMessage};
use contexture_program::internals::session::message::{Message, Role};
use regex::Regex;

use crate::baseline;
use crate::log::Log;
use crate::table::print;

const SHARES: &[f64] = &[0.05, 0.10, 0.20, 0.50];
/// Places in a session at which it is cut.
pub(crate) const CUTS: &[f64] = &[0.5, 0.75];
/// Number of messages after the cut whose names are wanted.
pub(crate) const NEXT: usize = 30;
/// Least number of messages after the cut.
const LEAST_NEXT: usize = 6;
/// Least size of the history before the cut, in tokens.
pub(crate) const LEAST_TOKENS: u64 = 8000;
/// Maximum share of the history that cannot be left out.
const MOST_FIXED: f64 = 0.08;
/// Least number of wanted names.
const LEAST_WANTED: usize = 8;
/// Number of last steps that are the query.
const STEPS: usize = 8;
/// Number of lines on each side of a line that the second measure wants.
const AROUND: usize = 3;
/// Least length of a wanted name, in characters.
const LEAST_NAME: usize = 4;
/// Mean length below which the messages of a chat count as short, in bytes.
const SHORT: usize = 600;

/// Number of last messages that `summarize-session` keeps by default.
const NOT_SUMMARIZED: usize = 10;
/// Least and largest share of the budget for the words of a summary.
const SAID: [f64; 2] = [0.05, 0.2];

/// A line that has a wanted name, and the line with its neighbours.
type Spot = (String, Vec<String>);

/// A session up to a cut.
struct Cut {
    log: Log,
    length: usize,
    tokens: u64,
    /// For each wanted name, the places of the history that have it: a line, and its neighbours.
    wanted: Vec<Vec<Spot>>,
    query: String,
    kind: &'static str,
}

pub(crate) fn measure() -> anyhow::Result<()> {
    let Some(folder) = std::env::var_os("SESSIONS").filter(|folder| !folder.is_empty()) else {
        return Ok(());
    };
    let names = Regex::new(NAMES)?;
    let sessions = sessions(Path::new(&folder))?;
    let mut kinds: BTreeMap<&str, Vec<Cut>> = BTreeMap::new();
    for messages in &sessions {
        for share in CUTS {
            if let Some(cut) = cut(messages, *share, &names)? {
                kinds.entry(cut.kind).or_default().push(cut);
            }
        }
    }
    kinds.iter().try_for_each(|(kind, cuts)| of_kind(kind, cuts))
}

fn of_kind(kind: &str, cuts: &[Cut]) -> anyhow::Result<()> {
    let mut rows = vec![
        row("newest that fit", cuts, |_, history, budget| {
            baseline::newest(history, budget, |_| true)
        }),
        row("old results masked but ten, then newest", cuts, baseline_masked),
    ];
    for strategy in ALL {
        for (once, asked, with) in [
            (true, false, ", once"),
            (false, false, ""),
            (false, true, ", asked with the last steps"),
        ] {
            // The others use neither.
            if once && strategy.name() != "tiered"
                || asked && !["tiered", "query"].contains(&strategy.name())
            {
                continue;
            }
            let name = format!("`{}`{with}", strategy.name());
            rows.push(row(&name, cuts, |cut, history, budget| {
                let query = asked.then_some(cut.query.as_str());
                shown_by(*strategy, history, &Aim { budget, query, once, ..Aim::default() })
            }));
        }
    }
    let name = format!("`summarize-session`, then `{}`", ALL[0].name());
    rows.push(row(&name, cuts, |_, history, budget| after_summary(ALL[0], history, budget, None)));
    let title = format!("Names kept: line, around; {} cuts of {kind}", cuts.len());
    print(
        &title,
        &["window in share of the history", "5 %", "10 %", "20 %", "50 %", "filled"],
        &rows,
    )
}

/// Reads the sessions in a folder. Of several recordings of one session, the longest counts.
pub(crate) fn sessions(folder: &Path) -> anyhow::Result<Vec<Vec<RecordedMessage>>> {
    let mut sessions = BTreeMap::<String, Vec<RecordedMessage>>::new();
    for path in files(folder)? {
        let Ok(read) = recorded::read(BufReader::new(std::fs::File::open(&path)?)) else {
            continue;
        };
        let id = read.about.id.clone().unwrap_or_else(|| path.display().to_string());
        let longest = sessions.entry(id).or_default();
        if read.messages.len() > longest.len() {
            *longest = read.messages;
        }
    }
    Ok(sessions.into_values().collect())
}

/// Returns the length of a session up to a cut, which parts no call from its results. Returns
/// `None` if too few messages are left.
pub(crate) fn length_at(messages: &[RecordedMessage], share: f64) -> Option<usize> {
    let mut length = (messages.len() as f64 * share) as usize;
    while messages.get(length).is_some_and(|message| message.role == Role::Tool) {
        length += 1;
    }
    (messages.len() >= length + LEAST_NEXT).then_some(length)
}

fn baseline_masked(cut: &Cut, history: &History<'_>, budget: u64) -> Vec<String> {
    let results = (0..cut.length).rev().filter(|at| history.messages[*at].role == Role::Tool);
    let newest: HashSet<usize> = results.take(10).collect();
    baseline::newest(history, budget, |index| {
        history.messages[index].role != Role::Tool || newest.contains(&index)
    })
}

/// Summarizes all but the last messages, as a session whose maximum is the budget does, and returns
/// the texts of the next window.
pub(crate) fn after_summary(
    strategy: &dyn Strategy,
    history: &History<'_>,
    budget: u64,
    query: Option<&str>,
) -> Vec<String> {
    let length = history.messages.len();
    let newest = length.saturating_sub(NOT_SUMMARIZED);
    let is_old = |unit: &&Unit| unit.kept.is_none() && unit.members.iter().all(|at| *at < newest);
    let mut is_folded = vec![false; length];
    let folded = history.units.iter().filter(is_old).flat_map(|unit| &unit.members);
    folded.for_each(|index| is_folded[*index] = true);
    let old = history.messages.iter().zip(&is_folded).filter(|(_, is_folded)| **is_folded);
    let old: Vec<&Message> = old.map(|(message, _)| *message).collect();
    let mut history = History::new(history.messages.clone(), history.measure);
    history.folded =
        Some(Folded { is_folded, newest: length - 1, room: budget, has_others: false });
    let share = |share: f64| (budget as f64 * share) as u64;
    let room = share(0.5).saturating_sub(history.others());
    let source = SummarySource {
        prior: None,
        messages: &old,
        turns: 1,
        measure: history.measure,
        said_tokens: room.clamp(share(SAID[0]), share(SAID[1])),
    };
    let Ok(summary) = summarize(&source, &Extractive) else { return Vec::new() };
    let counted = CountedText::new(summary.render(), &**history.measure.counter());
    let sections = Sections { summary: Some(counted), ..Sections::default() };
    let window = build(&WindowInput {
        sections: &sections,
        history: &history,
        phase: None,
        strategy,
        query,
        similarity: None,
        summary: Some(&summary),
        max_tokens: budget,
        previous: None,
        restored: &[],
        once: false,
    });
    let parts = window.map(|window| window.parts).unwrap_or_default();
    let texts = parts.iter().flat_map(|part| {
        let arguments = part.tool_calls.iter().map(|call| baseline::plain(&call.arguments));
        let arguments: Vec<String> = arguments.collect();
        std::iter::once(part.content.to_string()).chain(arguments)
    });
    texts.collect()
}

/// Returns the texts that a strategy shows.
fn shown_by(strategy: &dyn Strategy, history: &History<'_>, aim: &Aim<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for shown in strategy.project(history, aim).shown {
        match shown {
            Shown::Whole(index) => texts.extend(baseline::texts(history.messages[index])),
            Shown::Shortened { index, content, .. } => {
                texts.extend(baseline::arguments(history.messages[index]));
                texts.push(content);
            }
            Shown::Note { content, .. } => texts.push(content),
        }
    }
    texts
}

/// Makes a row of the table: both measures for each share, and how much of the room is filled.
fn row(
    name: &str,
    cuts: &[Cut],
    shown: impl Fn(&Cut, &History<'_>, u64) -> Vec<String>,
) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    let (mut used, mut room) = (0.0, 0.0);
    for share in SHARES {
        let mut sums = [0.0; 2];
        for cut in cuts {
            let messages = cut.log.messages[..cut.length].iter().collect();
            let history = History::new(messages, &cut.log.measure);
            let budget = (cut.tokens as f64 * share) as u64;
            let texts = shown(cut, &history, budget);
            used += texts.iter().map(|text| cut.log.measure.text(text)).sum::<u64>() as f64;
            room += budget as f64;
            let kept = cut.kept(&texts);
            sums = [sums[0] + kept[0], sums[1] + kept[1]];
        }
        let [line, around] = sums.map(|sum| sum * 100.0 / cuts.len() as f64);
        row.push(format!("{line:.0}, {around:.0}"));
    }
    row.push(format!("{:.0} %", used * 100.0 / room));
    row
}

impl Cut {
    /// Returns the shares of the wanted names that texts have with a line, and with what is around.
    fn kept(&self, texts: &[String]) -> [f64; 2] {
        let lines: HashSet<&str> = texts.iter().flat_map(|text| text.lines()).map(bare).collect();
        let line = |(line, _): &&Spot| lines.contains(line.as_str());
        let whole = |(_, near): &Spot| near.iter().all(|line| lines.contains(line.as_str()));
        let count = |is_kept: &dyn Fn(&Vec<Spot>) -> bool| {
            self.wanted.iter().filter(|places| is_kept(places)).count() as f64
                / self.wanted.len() as f64
        };
        [
            count(&|places| places.iter().any(|place| line(&place))),
            count(&|places| places.iter().filter(line).any(whole)),
        ]
    }
}

fn cut(messages: &[RecordedMessage], share: f64, names: &Regex) -> anyhow::Result<Option<Cut>> {
    let Some(length) = length_at(messages, share) else { return Ok(None) };
    let mut log = Log::new("estimate")?;
    messages.iter().take(length + NEXT).for_each(|message| log.record(message));
    let history = History::new(log.messages[..length].iter().collect(), &log.measure);
    let tokens = history.tokens();
    let fixed: u64 = history.units.iter().filter(|u| u.kept.is_some()).map(|u| u.tokens).sum();
    if tokens < LEAST_TOKENS || fixed as f64 > tokens as f64 * MOST_FIXED {
        return Ok(None);
    }
    let wanted = wanted(&log.messages, length, names);
    let query = query(&log.messages[..length]);
    let kind = kind(&log.messages[..length]);
    let cut = Cut { log, length, tokens, wanted, query, kind };
    Ok((cut.wanted.len() >= LEAST_WANTED).then_some(cut))
}

/// Returns the kind of a history, as the tables name it.
fn kind(messages: &[Message]) -> &'static str {
    let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
    match () {
        () if messages.iter().any(|message| message.role == Role::Tool) => "sessions with tools",
        () if bytes / messages.len() < SHORT => "chats of short messages",
        () if messages.iter().any(|message| message.content.contains("\n```")) => "chats with code",
        () => "chats in prose",
    }
}

/// Returns the names in a text. Of a path, the last part is its name.
fn names_in<'t>(names: &Regex, text: &'t str) -> impl Iterator<Item = &'t str> {
    let found = names.find_iter(text).map(|found| found.as_str());
    let found = found.map(|name| name.rsplit('/').next().unwrap_or(name));
    found.filter(|name| name.chars().count() >= LEAST_NAME)
}

/// Returns the places of the history with each name that the agent writes after the cut.
fn wanted(messages: &[Message], length: usize, names: &Regex) -> Vec<Vec<Spot>> {
    let next = messages[length..].iter().filter(|message| message.role == Role::Assistant);
    let next: Vec<String> = next.flat_map(baseline::texts).collect();
    let mut found: BTreeMap<&str, Vec<Spot>> = BTreeMap::new();
    for text in &next {
        found.extend(names_in(names, text).map(|name| (name, Vec::new())));
    }
    for text in messages[..length].iter().flat_map(baseline::texts) {
        let lines: Vec<&str> = text.lines().map(bare).filter(|line| !line.is_empty()).collect();
        for (at, line) in lines.iter().enumerate() {
            for name in names_in(names, line) {
                if let Some(places) = found.get_mut(name) {
                    let near = at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len());
                    let near = lines[near].iter().map(|line| (*line).to_owned());
                    places.push(((*line).to_owned(), near.collect()));
                }
            }
        }
    }
    found.into_values().filter(|places| !places.is_empty()).collect()
}

fn query(messages: &[Message]) -> String {
    let of_role = |role: Role| messages.iter().rev().filter(move |message| message.role == role);
    let steps = of_role(Role::User).take(1).chain(of_role(Role::Assistant).take(STEPS));
    steps.flat_map(baseline::texts).collect::<Vec<_>>().join("\n")
}

/// Returns a line without the number that a tool or a window put before it.
fn bare(line: &str) -> &str {
    let mut line = line.trim();
    for _ in 0..2 {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() < line.len() && rest.starts_with(['→', ':', '\t']) {
            line = rest.trim_start_matches(['→', ':', '\t']).trim();
        }
    }
    line
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "md" || ending == "jsonl") {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Paths, names of files, options, identifiers, versions, issues and hashes. Written apart from the
/// rule by which windows are chosen, so that the rule is not measured against itself.
const NAMES: &str = r"(?x)
    (?:~|\.{1,2})?/?(?:[\w@+-][\w.@+-]*/)+[\w.@+-]*\w
    | \b[\w-]+\.[a-z]{1,5}\b
    | \B--[a-z][\w-]*
    | \b[a-z0-9]+(?:_[a-z0-9]+)+\b
    | \b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b
    | \b[a-z]+[a-z0-9]*[A-Z]\w*\b
    | \b[A-Z][a-z0-9]+[A-Z]\w*\b
    | \b\d+(?:\.\d+){2,}\b
    | \B\#\d+\b
    | \b[0-9a-f]{7,40}\b";
