//! Counts the specifics of coding sessions that windows have after several rounds, with a summary of
//! all but the last messages, and without any provider.

use contexture_program::internals::curation::strategy::ALL;
use contexture_program::internals::curation::unit::History;

use crate::coding::{Phrasing, Session, Specific};
use crate::log::Log;
use crate::recorded::after_summary;
use crate::table::{percent, print};

const SESSIONS: u64 = 10;
const ROUNDS: usize = 5;
/// Size of each window, as a share of the history.
const SHARE: f64 = 0.2;
const KINDS: &[(&str, &str)] = &[
    ("paths", "≥ 95 %"),
    ("commands", "≥ 95 %"),
    ("constraints", "≥ 95 %"),
    ("numbers", "≥ 90 %"),
    ("decisions", "≥ 75 %"),
];
/// Numbers of rounds after which the windows are examined.
const LOOKS: &[usize] = &[1, 3, 5];

/// Kept and planted specifics after a number of rounds, for each of [`KINDS`].
type Count = [(usize, usize); KINDS.len()];

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
        let mut counts = [Count::default(); ROUNDS + 1];
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
    for (round, count) in counts.iter_mut().enumerate().skip(1) {
        session.round(&mut log);
        if LOOKS.contains(&round) {
            let history = History::new(log.messages.iter().collect(), &log.measure);
            let budget = (history.tokens() as f64 * SHARE) as u64;
            let text = after_summary(ALL[0], &history, budget, None).join("\n");
            look(count, &session.specifics, &text);
        }
    }
    Ok(())
}

fn look(count: &mut Count, specifics: &[Specific], text: &str) {
    for specific in specifics {
        if let Some(kind) = KINDS.iter().position(|(kind, _)| *kind == specific.kind) {
            count[kind].1 += 1;
            count[kind].0 += usize::from(text.lines().any(|line| has(line, specific)));
        }
    }
}

/// Returns whether a line has the words and, for a number, also the thing it measures.
fn has(line: &str, specific: &Specific) -> bool {
    let subject = |subject: &String| subject.split(' ').all(|word| line.contains(word));
    let words = &*specific.text;
    let whole = line.match_indices(words).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_ascii_digit())
            && !line[at + words.len()..].starts_with(|c: char| c.is_alphanumeric())
    });
    whole && specific.subject.as_ref().is_none_or(subject)
}

fn table(phrasing: &str, counts: &[Count]) -> anyhow::Result<()> {
    let row = |(at, (kind, target)): (usize, &(&str, &str))| {
        let mut row = vec![(*kind).to_owned()];
        row.extend(LOOKS.iter().map(|round| {
            let (kept, all) = counts[*round][at];
            percent(kept, all)
        }));
        row.push((*target).to_owned());
        row
    };
    let rows: Vec<Vec<String>> = KINDS.iter().enumerate().map(row).collect();
    let title = format!(
        "Specifics in windows, {SESSIONS} coding sessions, {phrasing} phrasings, no provider"
    );
    let columns = ["kept in 20 % after so many rounds", "1", "3", "5", "target"];
    print(&title, &columns, &rows)
}
