//! Speed of projecting a long history, and of listing what it used.

use std::hint::black_box;
use std::time::Instant;

use contexture_program::internals::curation::strategy::{ALL, Aim};
use contexture_program::internals::curation::unit::{History, HistoryCache};
use contexture_program::internals::curation::used::handed_over;
use contexture_program::internals::session::message::{Message, Role};

use crate::coding::{self, Phrasing};
use crate::log::Log;
use crate::table::print;

/// Numbers of messages, each with the time that a window may take.
const LENGTHS: [(usize, &str); 2] = [(10_000, "p95 ≤ 10 ms"), (100_000, "p95 ≤ 100 ms")];
const BUDGET: u64 = 96_000;
/// Size of what is handed over, in tokens.
const HANDED: u64 = 2_000;
const RUNS: usize = 40;
const RUNS_UNREAD: usize = 6;
/// Questions, which take turns.
const QUERIES: [&str; 4] = [
    "why does the request timeout of the parser fail?",
    "which store did we choose for the billing part?",
    "run the tests of src/parser again",
    "what may never be deleted?",
];

pub(crate) fn measure() -> anyhow::Result<()> {
    for (length, target) in LENGTHS {
        let log = long_log(length)?;
        windows(&log, target)?;
        if length == LENGTHS[0].0 {
            handed(&log)?;
        }
    }
    Ok(())
}

fn windows(log: &Log, target: &str) -> anyhow::Result<()> {
    let bytes = log.bytes();
    let history = || History::new(log.messages.iter().collect(), &log.measure);
    let mut rows = vec![row("finding the units", RUNS, "–", |_| {
        black_box(history());
    })];
    let words = HistoryCache::default();
    let whole = History { words: Some(&words), ..history() };
    for strategy in ALL {
        for asks in [false, true] {
            let name = format!("`{}`{}", strategy.name(), if asks { " with a query" } else { "" });
            rows.push(row(&name, RUNS, target, |run| {
                let query = asks.then(|| QUERIES[run % QUERIES.len()]);
                black_box(
                    strategy.project(&whole, &Aim { budget: BUDGET, query, ..Aim::default() }),
                );
            }));
        }
    }
    for (name, is_kept) in [("`query`, its first", true), ("`query`, without kept words", false)] {
        rows.push(row(name, RUNS_UNREAD, "–", |run| {
            let words = HistoryCache::default();
            let words = Some(&words).filter(|_| is_kept);
            let query = Some(QUERIES[run % QUERIES.len()]);
            let aim = Aim { budget: BUDGET, query, ..Aim::default() };
            black_box(ALL[1].project(&History { words, ..history() }, &aim));
        }));
    }
    let title = format!(
        "Speed: {} messages, {:.1} MB, {} tokens, budget {BUDGET}",
        log.messages.len(),
        bytes as f64 / 1e6,
        whole.tokens()
    );
    print(&title, &["what", "median", "p95", "processor, mean", "target"], &rows)
}

fn handed(log: &Log) -> anyhow::Result<()> {
    let bytes = log.bytes();
    let messages: Vec<&Message> = log.messages.iter().collect();
    let times = sorted_times(3, |_| {
        black_box(handed_over(&messages, HANDED, &log.measure));
    });
    let row = vec![
        format!("{HANDED} tokens of {:.1} MB", bytes as f64 / 1e6),
        format!("{:.0} ms", times[1] * 1e3),
        format!("{:.1} MB/s", bytes as f64 / 1e6 / times[1]),
    ];
    print("Speed of handing over", &["what", "median", "rate"], &[row])
}

fn row(name: &str, runs: usize, target: &str, work: impl Fn(usize)) -> Vec<String> {
    let before = processor_seconds();
    let times = sorted_times(runs, work);
    let processor = (processor_seconds() - before) / runs as f64 * 1e3;
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize] * 1e3;
    vec![
        name.to_owned(),
        format!("{:.2} ms", at(0.5)),
        format!("{:.2} ms", at(0.95)),
        format!("{processor:.1} ms"),
        target.to_owned(),
    ]
}

/// Returns the processor time of this process, in seconds: what work takes however busy the machine
/// is. The system counts it in hundredths, so only many runs together say something.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Returns how long each of several runs took, in seconds, the shortest first. `work` gets the
/// number of the run, from 0.
fn sorted_times(runs: usize, work: impl Fn(usize)) -> Vec<f64> {
    let mut times: Vec<f64> = (0..runs)
        .map(|run| {
            let start = Instant::now();
            work(run);
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Makes a log of coding sessions, one after the other, with at least `length` messages.
fn long_log(length: usize) -> anyhow::Result<Log> {
    let mut log = Log::new("o200k")?;
    log.say(Role::System, "You are a careful engineer.");
    let mut session = coding::Session::new(99, Phrasing::Familiar);
    while log.messages.len() < length {
        session.round(&mut log);
    }
    Ok(log)
}
