//! Costs of long conversations: an append, opening, and a window.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use contexture_program::internals::curation::prune::prune;
use contexture_program::internals::curation::section::Sections;
use contexture_program::internals::curation::strategy;
use contexture_program::internals::curation::unit::History;
use contexture_program::internals::curation::window::{WindowInput, build};
use contexture_program::internals::session::message::{Message, Role, Signals, ToolCall};
use contexture_program::internals::tokens::model::Model;
use contexture_program::internals::tokens::{Counter, Measure, TokenizerName};

use crate::row::{Row, Target, least, p95};
use crate::server::Server;

const SHORT: usize = 1_000;
const LONG: usize = 100_000;
/// Number of messages appended in one measure, each durably and with its tokens counted.
const APPENDS: usize = 2_000;
/// Number of repetitions of that measure. The shortest time counts.
const REPETITIONS: usize = 7;
/// Number of times that the long session is opened.
const OPENINGS: usize = 5;

/// Number of messages in the history of a window, and number of windows.
const MESSAGES: u64 = 10_000;
const WINDOWS: usize = 100;
/// Maximum cost of a window, in tokens: the design's figure.
const BUDGET: u64 = 96_000;

/// Checks that an append with its count costs the same after a history of any length.
pub(crate) fn appends() -> anyhow::Result<Vec<Row>> {
    let mut server = Server::start()?;
    fill(&mut server, "short", SHORT)?;
    fill(&mut server, "long", LONG)?;
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for _ in 0..REPETITIONS {
        short.push(seconds_of_appends(&mut server, "short")?);
        long.push(seconds_of_appends(&mut server, "long")?);
    }
    let (short, long) = (least(&short), least(&long));
    let per_append = |seconds: f64| format!("{:.1} µs", seconds / APPENDS as f64 * 1e6);
    Ok(vec![Row {
        measure: "add-message of 200 B, pipelined, after 100,000 : 1,000".to_owned(),
        ours: per_append(long),
        peer: per_append(short),
        ratio: long / short,
        target: Target::AtMost(1.2),
    }])
}

fn seconds_of_appends(server: &mut Server, session: &str) -> anyhow::Result<f64> {
    let mut lines = String::new();
    for number in 0..APPENDS {
        // Writing to a string cannot fail.
        let _ = writeln!(
            lines,
            "(:id {number} :method add-message :params (:session {session:?} :content {:?}))",
            text(number)
        );
    }
    // The server drops long sessions from memory to make room. Reading one again is another
    // measure.
    server.call("get-messages", &format!("(:session {session:?} :limit 1)"))?;
    let start = Instant::now();
    server.pipeline(&lines, APPENDS)?;
    Ok(start.elapsed().as_secs_f64())
}

/// Measures the time from the first call about a long session to its answer in a newly started
/// server, and the server's memory after it.
pub(crate) fn opening() -> anyhow::Result<Vec<Row>> {
    let mut server = Server::start()?;
    fill(&mut server, "long", LONG)?;
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for _ in 0..OPENINGS {
        server.restart()?;
        server.call("ping", "nil")?;
        let start = Instant::now();
        server.call("open-session", "(:name \"long\")")?;
        server.call("get-messages", "(:limit 1)")?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        sizes.push(server.resident_mb()?);
    }
    let largest = sizes.into_iter().fold(0.0, f64::max);
    Ok(vec![
        Row::at_most("opening a session of 100,000 messages, p95", p95(times), 300.0, "ms"),
        Row::at_most("memory with that session", largest, 200.0, "MB"),
    ])
}

/// Creates a session with the given number of messages.
pub(crate) fn fill(server: &mut Server, session: &str, messages: usize) -> anyhow::Result<()> {
    server.call("open-session", &format!("(:name {session:?})"))?;
    for first in (0..messages).step_by(SHORT) {
        let mut params = String::from("(:messages (");
        for number in first..first + SHORT {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            let _ = write!(params, "(:role :{role} :content {:?})", text(number));
        }
        server.call("add-message", &(params + "))"))?;
    }
    Ok(())
}

/// Returns a text of 200 bytes that is different for every number.
fn text(number: usize) -> String {
    let words = format!("message {number} says that src/part{}.rs has an error; ", number % 97);
    words.repeat(200 / words.len() + 1)[..200].to_owned()
}

/// Measures pruning a long history, and building a window from it with each strategy.
pub(crate) fn windows() -> anyhow::Result<Vec<Row>> {
    let measure = Measure::plain(TokenizerName::Estimate.counter());
    let messages: Vec<Message> = (1..=MESSAGES).map(|number| message(number, &measure)).collect();
    let model = Model::named("claude-sonnet-4-5", &[]);
    let mut rows = vec![timed("prune", || {
        let history = History::new(messages.iter().collect(), &measure);
        black_box(prune(&history, Some(BUDGET), &model)?);
        Ok(())
    })?];
    for strategy in strategy::ALL {
        // Only this strategy needs a question. Without one, `tiered` works as in a usual turn.
        let asked = (strategy.name() == "query").then_some("which error does src/part7.rs have?");
        rows.push(timed(&format!("build by {}", strategy.name()), || {
            let history = History::new(messages.iter().collect(), &measure);
            let sections = Sections::default();
            let window = build(&WindowInput {
                sections: &sections,
                history: &history,
                phase: None,
                strategy: *strategy,
                query: asked,
                similarity: None,
                summary: None,
                max_tokens: BUDGET,
                previous: None,
                restored: &[],
                once: false,
            })?;
            black_box(window);
            Ok(())
        })?);
    }
    Ok(rows)
}

fn timed(what: &str, mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Row> {
    let mut times = Vec::with_capacity(WINDOWS);
    for _ in 0..WINDOWS {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Row::at_most(&format!("{what}, 10,000 messages, p95"), p95(times), 10.0, "ms"))
}

/// Makes a message. Of each four, one is the user's, one calls a tool, one is its result, and one
/// answers.
fn message(number: u64, measure: &Measure) -> Message {
    let turn = number / 4;
    let role = match number % 4 {
        0 => Role::User,
        2 => Role::Tool,
        _ => Role::Assistant,
    };
    let content: Arc<str> = text(number as usize).into();
    let tool_calls = match number % 4 {
        1 => vec![ToolCall {
            id: format!("call-{turn}"),
            name: "read_file".to_owned(),
            arguments: format!("{{\"path\":\"src/part{}.rs\"}}", turn % 97),
        }],
        _ => Vec::new(),
    };
    let counter: &dyn Counter = &**measure.counter();
    Message {
        number,
        role,
        timestamp: 1_790_000_000,
        phase: None,
        tool_call_id: (role == Role::Tool).then(|| format!("call-{turn}")),
        pinned: false,
        tokens: counter.count(&content),
        counted_by: counter.name(),
        signals: Signals::of(role, &content, &tool_calls),
        tool_calls,
        content,
        opaque: None,
    }
}
