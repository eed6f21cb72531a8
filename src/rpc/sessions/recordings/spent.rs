//! What agents recorded of tokens and costs, as rows of the usage log.

use crate::recorded::RecordedUsage;
use crate::store::session::{Spent, UsageRow};

/// Strategy name of windows that another agent built.
const OF_AGENT: &str = "agent";

/// Converts what an agent recorded to rows of the usage log, as for windows. Leaves out what was
/// before `since`.
pub(super) fn rows(usages: Vec<RecordedUsage>, since: Option<i64>) -> Vec<UsageRow> {
    let is_own =
        |usage: &RecordedUsage| since.is_none_or(|since| usage.time.is_some_and(|it| it >= since));
    usages.into_iter().filter(is_own).map(row).collect()
}

fn row(usage: RecordedUsage) -> UsageRow {
    let RecordedUsage { time, model, used, room, input, output, cached, cost } = usage;
    let model = model.unwrap_or_default();
    UsageRow {
        at: time.unwrap_or(i64::MAX),
        strategy: OF_AGENT.to_owned(),
        messages: used,
        total: used,
        budget: room,
        spent: Some(Spent { model, input, output, cached, cost, ..Spent::default() }),
        ..UsageRow::default()
    }
}
