//! Effect of a provider's prompt cache on the windows of a long run of tools.
//!
//! The first messages of a window that equal those of the window before are read from the cache,
//! and the others are written to it. The prices are those of a provider that charges a tenth for
//! reading and a quarter more for writing.

use contexture_program::internals::curation::strategy::{ALL, Aim, Shown};
use contexture_program::internals::curation::unit::History;
use contexture_program::internals::session::message::Role;

use crate::log::Log;
use crate::random::Random;
use crate::table::print;

const STEPS: usize = 400;
const STEP_TOKENS: usize = 1500;
const BASE_TOKENS: usize = 15_000;
const WINDOW: u64 = 80_000;
const READ: f64 = 0.1;
const WRITE: f64 = 1.25;
/// Maximum cost: 0.26 of that of the newest that fit.
const TARGET: f64 = 7.1e6;

/// A shown message: its index, the text that replaces it, and its cost.
type Part = (usize, Option<String>, u64);

#[derive(Default)]
struct Bill {
    cost: f64,
    largest: u64,
    rewritten: usize,
    before: Vec<Part>,
}

pub(crate) fn measure() -> anyhow::Result<()> {
    let log = run()?;
    let mut rows = vec![row("newest that fit, every turn", &log, newest_that_fit)];
    for strategy in ALL {
        rows.push(row(&format!("`{}`", strategy.name()), &log, |history| {
            let shown = strategy.project(history, &Aim { budget: WINDOW, ..Aim::default() }).shown;
            shown.into_iter().map(|shown| part(history, shown)).collect()
        }));
    }
    let title = format!(
        "Prompt cache: {STEPS} tool steps of about {STEP_TOKENS} tokens, base {BASE_TOKENS}, window {WINDOW}"
    );
    let columns = [
        "strategy",
        "token-equivalents",
        "target for tiered",
        "largest window",
        "windows not mostly cached",
    ];
    print(&title, &columns, &rows)
}

/// Makes a run of tools. The estimate counts four characters per token, so sizes are exact.
fn run() -> anyhow::Result<Log> {
    let mut random = Random::new(7);
    let mut log = Log::new("estimate")?;
    log.say(Role::System, &"rule".repeat(BASE_TOKENS));
    log.say(Role::User, "Make the tests pass.");
    for step in 0..STEPS {
        let tokens = STEP_TOKENS - 60 - 300 + random.below(600);
        let arguments = format!("{{\"command\": \"make test-{step} VERBOSE=1\"}}");
        let said =
            "Next I look at what the tests of this part say, since the last change. ".repeat(2);
        log.call(&said, "shell", &arguments, &format!("{step:4}").repeat(tokens));
    }
    Ok(log)
}

fn row(name: &str, log: &Log, window: impl Fn(&History<'_>) -> Vec<Part>) -> Vec<String> {
    let mut bill = Bill::default();
    // A request follows each result.
    for end in (2..=log.messages.len()).step_by(2) {
        let history = History::new(log.messages[..end].iter().collect(), &log.measure);
        bill.request(window(&history));
    }
    let within = if bill.largest <= WINDOW { "" } else { " OVER" };
    vec![
        name.to_owned(),
        format!("{:.3} M", bill.cost / 1e6),
        format!("≤ {:.1} M", TARGET / 1e6),
        format!("{}{within}", bill.largest),
        bill.rewritten.to_string(),
    ]
}

impl Bill {
    fn request(&mut self, window: Vec<Part>) {
        let same = window.iter().zip(&self.before).take_while(|(now, before)| now == before);
        let cached: u64 = same.map(|((_, _, tokens), _)| tokens).sum();
        let total: u64 = window.iter().map(|(_, _, tokens)| tokens).sum();
        self.cost += cached as f64 * READ + (total - cached) as f64 * WRITE;
        self.largest = self.largest.max(total);
        self.rewritten += usize::from(cached * 2 < total);
        self.before = window;
    }
}

fn part(history: &History<'_>, shown: Shown) -> Part {
    match shown {
        Shown::Whole(index) => {
            (index, None, history.measure.message(history.messages[index].tokens))
        }
        Shown::Shortened { index, content, tokens } => (index, Some(content), tokens),
        Shown::Note { content, tokens, .. } => (usize::MAX, Some(content), tokens),
    }
}

/// Chooses messages without a strategy: those that cannot be left out, then the newest units.
fn newest_that_fit(history: &History<'_>) -> Vec<Part> {
    let kept = |unit: &&contexture_program::internals::curation::unit::Unit| unit.kept.is_some();
    let mut left = WINDOW - history.units.iter().filter(kept).map(|unit| unit.tokens).sum::<u64>();
    let mut indices: Vec<usize> =
        history.units.iter().filter(kept).flat_map(|unit| unit.members.clone()).collect();
    for unit in history.units.iter().rev().filter(|unit| unit.kept.is_none()) {
        if unit.tokens > left {
            break;
        }
        left -= unit.tokens;
        indices.extend(&unit.members);
    }
    indices.sort_unstable();
    indices.into_iter().map(|index| part(history, Shown::Whole(index))).collect()
}
