//! Costs of the library's own functions, without a process or a wire in between.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use contexture_program::internals::context::change::ContextSettings;
use contexture_program::internals::context::item::{Item, ItemId, Kind, Metadata};
use contexture_program::internals::context::manager::{Arrival, Manager};
use contexture_program::internals::context::render::{Format, render};
use contexture_program::internals::value::Value;
use contexture_program::internals::value::sexp;

use crate::row::{Row, Target, least};

const ADDS: u64 = 100_000;
/// Number of the rendered and printed items, each a screenful.
const ITEMS: u64 = 50;
const ITEM_BYTES: usize = 2000;
/// Number of times that a set of items is rendered, printed or read in one measure.
const ROUNDS: usize = 100;
/// Number of repetitions of each measure. The shortest time counts.
const REPETITIONS: usize = 25;

/// Checks that adding costs the same in a ring of any size.
pub(crate) fn adds() -> anyhow::Result<Vec<Row>> {
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for _ in 0..REPETITIONS {
        small.push(seconds_of_adds(50)?);
        large.push(seconds_of_adds(1000)?);
    }
    let (small, large) = (least(&small), least(&large));
    let per_add = |seconds: f64| format!("{:.0} ns", seconds / ADDS as f64 * 1e9);
    Ok(vec![Row {
        measure: "100,000 adds in process, capacity 1000 : 50".to_owned(),
        ours: per_add(large),
        peer: per_add(small),
        ratio: large / small,
        target: Target::Within(0.8, 1.2),
    }])
}

/// Measures rendering a full manager as Markdown, in megabytes of text per second.
pub(crate) fn rendering() -> anyhow::Result<Vec<Row>> {
    let mut items: Vec<_> = (1..=ITEMS).map(|id| item(id, &text(ITEM_BYTES))).collect();
    for item in &mut items {
        item.metadata.set("filename", Value::Str("src/sums.lisp".to_owned()));
    }
    let bytes = render(&items, Format::Markdown).len();
    let rate = rate(bytes, || render(black_box(&items), Format::Markdown));
    Ok(vec![Row::at_least("rendering 50 items of 2 KB", rate, 1000.0, "MB/s")])
}

/// Measures printing and reading an answer of `get-context`, in megabytes of text per second.
pub(crate) fn s_expressions() -> anyhow::Result<Vec<Row>> {
    let message = Value::List((1..=ITEMS).map(message_item).collect());
    let line = sexp::print(&message);
    anyhow::ensure!(sexp::read(&line)? == message, "the message is not read as it was printed");
    let printing = rate(line.len(), || sexp::print(black_box(&message)));
    let reading = rate(line.len(), || sexp::read(black_box(&line)));
    Ok(vec![
        Row::at_least("printing s-expressions, mostly strings", printing, 200.0, "MB/s"),
        Row::at_least("reading s-expressions, mostly strings", reading, 200.0, "MB/s"),
    ])
}

fn message_item(id: u64) -> Value {
    let keyword = |name: &str| Value::Keyword(name.into());
    Value::List(vec![
        keyword("id"),
        Value::Str(ItemId(id).to_string()),
        keyword("type"),
        keyword("code"),
        keyword("content"),
        Value::Str(text(ITEM_BYTES)),
        keyword("tokens"),
        Value::Int(500),
    ])
}

/// Returns the megabytes per second if each call of `work` handles `bytes` bytes.
fn rate<T>(bytes: usize, work: impl Fn() -> T) -> f64 {
    let seconds: Vec<_> = (0..REPETITIONS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                black_box(work());
            }
            start.elapsed().as_secs_f64()
        })
        .collect();
    (bytes * ROUNDS) as f64 / 1e6 / least(&seconds)
}

fn seconds_of_adds(capacity: usize) -> anyhow::Result<f64> {
    let mut manager = Manager::new(ContextSettings { max_items: capacity });
    let arrivals: Vec<_> = (1..=ADDS).map(arrival).collect();
    let start = Instant::now();
    for arrival in arrivals {
        let change = manager.plan_add("add-item", vec![arrival])?;
        manager.apply(&change);
    }
    black_box(&manager);
    Ok(start.elapsed().as_secs_f64())
}

fn arrival(number: u64) -> Arrival {
    let item = Arc::new(item(number, "(+ 1 2)\n"));
    Arrival { item, version: number, pinned: false }
}

fn item(number: u64, content: &str) -> Item {
    Item {
        id: ItemId(number),
        kind: Kind::Code,
        content: content.into(),
        metadata: Metadata::default(),
        timestamp: 1_790_000_000,
        taken_ms: 1_790_000_000_000,
        tokens: content.len() as u64 / 4,
        counted_by: "estimate",
        live: false,
    }
}

/// Returns code of `bytes` bytes, with the newlines and quotes that code has.
fn text(bytes: usize) -> String {
    let line = "(defun sum (a b) \"Add A and B.\"\n  (+ a b)) ; sums\n";
    line.repeat(bytes / line.len() + 1)[..bytes].to_owned()
}
