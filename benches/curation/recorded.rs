//! What windows of recorded sessions keep of what the agent needs next: the paths, identifiers,
//! options and numbers that it writes in its next messages, as far as the history has them. Such a
//! specific is kept if a whole line of the history with it is in the window.
//!
//! Sessions are private, so none is part of the project: `SESSIONS` names a folder with them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use contexture::internals::curation::section::{Counted, Sections};
use contexture::internals::curation::strategy::{ALL, Aim, Shown, Strategy};
use contexture::internals::curation::summary::{Extractive, Source, summarize};
use contexture::internals::curation::unit::{Folded, History, Unit};
use contexture::internals::curation::window::{Request, build};
use contexture::internals::recorded::{self, RecordedMessage};
use contexture::internals::session::message::{Message, Role};
use regex::Regex;

use crate::baseline;
use crate::log::Log;
use crate::table::{percent, print};

const SHARES: &[f64] = &[0.055, 0.10, 0.11, 0.20];
/// Places in a session at which it is cut.
pub(crate) const CUTS: &[f64] = &[0.5, 0.75];
/// Number of messages after the cut whose specifics are wanted.
pub(crate) const NEXT: usize = 30;
/// Least number of messages after the cut.
const LEAST_NEXT: usize = 20;
/// Least size of the history before the cut, in tokens.
pub(crate) const LEAST_TOKENS: u64 = 8000;
/// Maximum share of the history that cannot be left out.
const MOST_FIXED: f64 = 0.08;
/// Least number of wanted specifics.
const LEAST_WANTED: usize = 8;
/// Number of last steps that are the query.
const STEPS: usize = 8;

/// Number of last messages that `summarize-session` keeps by default.
const NOT_SUMMARIZED: usize = 10;
/// Least and largest share of the budget for the ledger of a summary.
const LEDGER: [f64; 2] = [0.05, 0.2];

/// A session up to a cut.
struct Cut {
    log: Log,
    length: usize,
    tokens: u64,
    /// Lines of the history with each wanted specific.
    wanted: Vec<HashSet<String>>,
    query: String,
}

pub(crate) fn measure() -> anyhow::Result<()> {
    let Some(folder) = std::env::var_os("SESSIONS").filter(|folder| !folder.is_empty()) else {
        return Ok(());
    };
    let specifics = Regex::new(SPECIFICS)?;
    let sessions = sessions(Path::new(&folder))?;
    let mut cuts = Vec::new();
    for messages in &sessions {
        for share in CUTS {
            cuts.extend(cut(messages, *share, &specifics)?);
        }
    }
    let title = format!(
        "Specifics kept with a line, {} cuts of {} recorded sessions",
        cuts.len(),
        sessions.len()
    );
    let mut rows = vec![
        row("newest that fit", &cuts, |_, history, budget| {
            baseline::newest(history, budget, |_| true)
        }),
        row("old results masked but ten, then newest", &cuts, baseline_masked),
        row(
            "half newest, the rest by BM25 of the last steps and neighbours",
            &cuts,
            |cut, history, budget| baseline::half_newest(history, budget, &cut.query),
        ),
    ];
    for strategy in ALL {
        for asked in [false, true] {
            let name = format!(
                "`{}`{}",
                strategy.name(),
                if asked { ", asked with the last steps" } else { "" }
            );
            rows.push(row(&name, &cuts, |cut, history, budget| {
                let query = asked.then_some(cut.query.as_str());
                shown_by(*strategy, history, &Aim { budget, query, similarity: None })
            }));
        }
    }
    rows.push(row("`summarize-session`, then `tiered`", &cuts, |_, history, budget| {
        after_summary(ALL[0], history, budget, None)
    }));
    let name = "`summarize-session`, then `tiered`, asked with the last steps";
    rows.push(row(name, &cuts, |cut, history, budget| {
        after_summary(ALL[0], history, budget, Some(&cut.query))
    }));
    for (name, part) in [("all", 1.0), ("half", 0.5)] {
        let name = format!("the best lines for what comes, in {name} of the room");
        rows.push(row(&name, &cuts, |cut, history, budget| {
            oracle(cut, history, (budget as f64 * part) as u64)
        }));
    }
    let head = ["window in share of the history", "5.5 %", "10 %", "11 %", "20 %"];
    print(&title, &head, &rows)
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
fn after_summary(
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
    let source = Source {
        prior: None,
        messages: &old,
        turns: 1,
        measure: history.measure,
        ledger_tokens: room.clamp(share(LEDGER[0]), share(LEDGER[1])),
    };
    let Ok(summary) = summarize(&source, &Extractive) else { return Vec::new() };
    let counted = Counted::new(summary.render(), &**history.measure.counter());
    let sections = Sections { summary: Some(counted), ..Sections::default() };
    let window = build(&Request {
        sections: &sections,
        history: &history,
        phase: None,
        strategy,
        query,
        similarity: None,
        summary: Some(&summary),
        max_tokens: budget,
        previous: None,
    });
    let parts = window.map(|window| window.parts).unwrap_or_default();
    let texts = parts.iter().flat_map(|part| {
        let arguments = part.tool_calls.iter().map(|call| baseline::plain(&call.arguments));
        let arguments: Vec<String> = arguments.collect();
        std::iter::once(part.content.to_string()).chain(arguments)
    });
    texts.collect()
}

/// Chooses lines knowing what the agent will write: those with most of it for their cost, beside the
/// units that cannot be left out. Shows how much fits into the room.
fn oracle(cut: &Cut, history: &History<'_>, budget: u64) -> Vec<String> {
    let fixed = history.units.iter().filter(|unit| unit.kept.is_some());
    let mut left = budget.saturating_sub(fixed.clone().map(|unit| unit.tokens).sum());
    let shown = fixed.flat_map(|unit| history.members(unit)).flat_map(baseline::texts);
    let mut texts: Vec<String> = shown.collect();
    let seen: HashSet<&str> = texts.iter().flat_map(|text| text.lines()).map(bare).collect();
    let has_none = |lines: &HashSet<String>| !lines.iter().any(|line| seen.contains(&**line));
    let mut is_missing: Vec<bool> = cut.wanted.iter().map(has_none).collect();
    let mut of_line: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, lines) in cut.wanted.iter().enumerate() {
        lines.iter().for_each(|line| of_line.entry(line).or_default().push(at));
    }
    let mut chosen = Vec::new();
    loop {
        let worth = |(line, has): (&&str, &Vec<usize>)| {
            let new = has.iter().filter(|at| is_missing[**at]).count();
            let cost = history.measure.text(line) + 1;
            (new > 0 && cost <= left).then(|| (new as f64 / cost as f64, cost, (*line).to_owned()))
        };
        let best = of_line.iter().filter_map(worth).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, cost, line)) = best else { break };
        left -= cost;
        of_line[&*line].iter().for_each(|at| is_missing[*at] = false);
        chosen.push(line);
    }
    texts.extend(chosen);
    texts
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

fn row(
    name: &str,
    cuts: &[Cut],
    shown: impl Fn(&Cut, &History<'_>, u64) -> Vec<String>,
) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    for share in SHARES {
        let mut sum = 0.0;
        for cut in cuts {
            let messages = cut.log.messages[..cut.length].iter().collect();
            let history = History::new(messages, &cut.log.measure);
            let texts = shown(cut, &history, (cut.tokens as f64 * share) as u64);
            let lines: HashSet<&str> =
                texts.iter().flat_map(|text| text.lines()).map(bare).collect();
            let has =
                |with: &&HashSet<String>| with.iter().any(|line| lines.contains(line.as_str()));
            sum += cut.wanted.iter().filter(has).count() as f64 / cut.wanted.len() as f64;
        }
        row.push(percent((sum * 1000.0) as usize, cuts.len() * 1000));
    }
    row
}

fn cut(messages: &[RecordedMessage], share: f64, specifics: &Regex) -> anyhow::Result<Option<Cut>> {
    let Some(length) = length_at(messages, share) else { return Ok(None) };
    let mut log = Log::new("estimate")?;
    messages.iter().take(length + NEXT).for_each(|message| log.record(message));
    let history = History::new(log.messages[..length].iter().collect(), &log.measure);
    let tokens = history.tokens();
    let fixed: u64 = history.units.iter().filter(|u| u.kept.is_some()).map(|u| u.tokens).sum();
    if tokens < LEAST_TOKENS || fixed as f64 > tokens as f64 * SHARES[0].max(MOST_FIXED) {
        return Ok(None);
    }
    let wanted = wanted(&log.messages, length, specifics);
    let query = query(&log.messages[..length]);
    Ok((wanted.len() >= LEAST_WANTED).then_some(Cut { log, length, tokens, wanted, query }))
}

/// Returns the lines with each specific that the agent writes after the cut.
fn wanted(messages: &[Message], length: usize, specifics: &Regex) -> Vec<HashSet<String>> {
    let next = messages[length..].iter().filter(|message| message.role == Role::Assistant);
    let next: Vec<String> = next.flat_map(baseline::texts).collect();
    let mut found: HashMap<&str, HashSet<String>> = HashMap::new();
    for text in &next {
        found.extend(specifics.find_iter(text).map(|found| (found.as_str(), HashSet::new())));
    }
    for text in messages[..length].iter().flat_map(baseline::texts) {
        for line in text.lines() {
            for specific in specifics.find_iter(line) {
                if let Some(lines) = found.get_mut(specific.as_str()) {
                    lines.insert(bare(line).to_owned());
                }
            }
        }
    }
    let mut wanted: Vec<_> = found.into_iter().filter(|(_, lines)| !lines.is_empty()).collect();
    wanted.sort_unstable_by_key(|(specific, _)| *specific);
    wanted.into_iter().map(|(_, lines)| lines).collect()
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

/// Paths, names of files, options, identifiers and numbers. Written apart from the rules by which
/// windows are chosen, so that these are not measured against themselves.
const SPECIFICS: &str = r"(?x)
    (?:~|\.{1,2})?/?(?:[\w@+-][\w.@+-]*/)+[\w.@+-]*\w
    | \b[\w-]+\.[A-Za-z]{1,5}\b
    | --?[A-Za-z][\w-]*
    | \b[A-Za-z]\w*_\w+\b
    | \b[a-z]+[a-z0-9]*[A-Z]\w*\b
    | \b[A-Z][a-z0-9]+[A-Z]\w*\b
    | \b\d+(?:\.\d+)+\b
    | \b\d{2,}\b";
