//! Counts the specifics of coding sessions that remain after several summaries, without any
//! provider.

use contexture::internals::curation::summary::{Extractive, Source, Summary, summarize};
use contexture::internals::session::message::Message;

use crate::coding::{Phrasing, Session, Specific};
use crate::log::Log;
use crate::table::{percent, print};

const SESSIONS: u64 = 10;
const ROUNDS: usize = 5;
/// Maximum size of each summary, as a share of its source.
const SHARE: f64 = 0.2;
const KINDS: &[(&str, &str)] = &[
    ("paths", "≥ 95 %"),
    ("commands", "≥ 95 %"),
    ("constraints", "≥ 95 %"),
    ("numbers", "≥ 90 %"),
    ("decisions", "≥ 75 %"),
];
/// Numbers of rounds after which the summaries are examined.
const LOOKS: &[usize] = &[1, 3, 5];

/// Counts of what was kept after a number of rounds.
#[derive(Default, Clone)]
struct Count {
    /// Kept and planted specifics, for each of [`KINDS`].
    of_kind: Vec<(usize, usize)>,
    superseded: usize,
    summary_tokens: u64,
    source_tokens: u64,
}

pub(crate) fn measure() -> anyhow::Result<()> {
    for (phrasing, name) in [
        (Phrasing::Familiar, "familiar"),
        (Phrasing::Former, "once held-out"),
        (Phrasing::HeldOut, "later held-out"),
        (Phrasing::Developed, "fresh, developed with"),
        (Phrasing::Judged, "fresh, once for judging"),
        (Phrasing::Later, "later, once for judging"),
        (Phrasing::Newest, "newest, for judging"),
    ] {
        let mut counts = vec![Count::default(); ROUNDS + 1];
        for seed in 1..=SESSIONS {
            session(seed, phrasing, &mut counts)?;
        }
        table(name, &counts)?;
    }
    Ok(())
}

fn session(seed: u64, phrasing: Phrasing, counts: &mut [Count]) -> anyhow::Result<()> {
    let mut log = Log::new("o200k")?;
    let mut session = Session::new(seed, phrasing);
    let mut prior: Option<Summary> = None;
    let (mut start, mut all_tokens) = (0, 0);
    for count in counts.iter_mut().skip(1) {
        session.round(&mut log);
        let messages: Vec<&Message> = log.messages[start..].iter().collect();
        start = log.messages.len();
        let measure = &log.measure;
        let source = Source {
            prior: prior.as_ref(),
            messages: &messages,
            turns: 1,
            measure,
            ledger_tokens: 0,
        };
        let ledger_tokens = (source.tokens() as f64 * SHARE) as u64;
        all_tokens += messages.iter().map(|message| measure.message(message.tokens)).sum::<u64>();
        let summary = summarize(&Source { ledger_tokens, ..source }, &Extractive)?;
        let text = summary.render();
        count.look(&session.specifics, &text);
        count.summary_tokens += measure.note(&text);
        count.source_tokens += all_tokens;
        prior = Some(summary);
    }
    Ok(())
}

impl Count {
    fn look(&mut self, specifics: &[Specific], text: &str) {
        self.of_kind.resize(KINDS.len(), (0, 0));
        let lines: Vec<&str> = text.lines().collect();
        for specific in specifics {
            let Some(kind) = KINDS.iter().position(|(kind, _)| *kind == specific.kind) else {
                continue;
            };
            self.of_kind[kind].1 += 1;
            let kept = lines.iter().any(|line| has(line, specific, &specific.text));
            self.of_kind[kind].0 += usize::from(kept);
            // The newest stands first, so an older value may only follow.
            let first = lines.iter().position(|line| has(line, specific, &specific.text));
            let before = &lines[..first.unwrap_or(lines.len())];
            for former in &specific.former {
                let is_former = |line: &&&str| has(line, specific, former);
                self.superseded += before.iter().filter(is_former).count();
            }
        }
    }
}

/// Returns whether a line has the words and, for a number, also the thing it measures.
fn has(line: &str, specific: &Specific, words: &str) -> bool {
    let subject = |subject: &String| subject.split(' ').all(|word| line.contains(word));
    let whole = line.match_indices(words).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_ascii_digit())
            && !line[at + words.len()..].starts_with(|c: char| c.is_alphanumeric())
    });
    whole && specific.subject.as_ref().is_none_or(subject)
}

fn table(phrasing: &str, counts: &[Count]) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for (at, (kind, target)) in KINDS.iter().enumerate() {
        let mut row = vec![(*kind).to_owned()];
        row.extend(LOOKS.iter().map(|round| {
            let (kept, all) = counts[*round].of_kind[at];
            percent(kept, all)
        }));
        row.push((*target).to_owned());
        rows.push(row);
    }
    let mut superseded = vec!["older values before the last one, or without it".to_owned()];
    superseded.extend(LOOKS.iter().map(|round| counts[*round].superseded.to_string()));
    superseded.push("0".to_owned());
    rows.push(superseded);
    let mut size = vec!["size of the summary relative to the messages it replaces".to_owned()];
    size.extend(LOOKS.iter().map(|round| {
        percent(counts[*round].summary_tokens as usize, counts[*round].source_tokens as usize)
    }));
    size.push("–".to_owned());
    rows.push(size);
    let title =
        format!("Specifics kept, {SESSIONS} coding sessions, {phrasing} phrasings, no provider");
    let columns = ["kept after so many compactions to 20 %", "1", "3", "5", "target"];
    print(&title, &columns, &rows)
}
