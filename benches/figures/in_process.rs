//! What the library's own functions cost, without a process or a wire in between.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use contexture::context::change::Settings;
use contexture::context::item::{Item, ItemId, Kind, Metadata};
use contexture::context::manager::{Arrival, Manager};

use crate::row::{Row, Target, least};

const ADDS: u64 = 100_000;
/// How often each measure is repeated; the least counts.
const REPETITIONS: usize = 9;

/// Adding costs the same however large the ring is.
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

fn seconds_of_adds(capacity: usize) -> anyhow::Result<f64> {
    let mut manager = Manager::new(Settings { max_items: capacity });
    let arrivals: Vec<_> = (1..=ADDS).map(arrival).collect();
    let start = Instant::now();
    for arrival in arrivals {
        let change = manager.plan_add("add-context", vec![arrival])?;
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
