//! How the account of a window looks on the wire.

use super::present::{entry, figure, keyword, money};
use crate::curation::report::{Entry, Report, Run, What};
use crate::curation::strategy::{Fate, Score};
use crate::ids::SessionId;
use crate::store::session::{PhaseUsage, Spent, UsageRow};
use crate::value::Value;

/// The account of a window: every part when it is to be `whole`, else with neighbours of one
/// fate told in one line.
pub(super) fn window(report: &Report, whole: bool) -> Value {
    let parts = match whole {
        true => report.entries.iter().map(part).collect(),
        false => report.condensed().iter().map(run).collect(),
    };
    let sections = report.sections.iter().map(|section| {
        Value::Map(vec![
            entry("section", keyword(section.section.name())),
            entry("before", figure(section.before)),
            entry("after", figure(section.after)),
        ])
    });
    let missing = report.missing.iter().map(|section| keyword(section.name()));
    let mut map = vec![
        entry("strategy", keyword(report.strategy)),
        entry("phase", report.phase.map_or(Value::Nil, |phase| keyword(phase.name()))),
        entry("max-tokens", figure(report.max_tokens)),
        entry("tokens-before", figure(report.tokens_before)),
        entry("tokens-after", figure(report.tokens_after)),
        entry("exact", report.exact),
        entry("sections", Value::List(sections.collect())),
        entry("missing", Value::List(missing.collect())),
        entry("parts", Value::List(parts)),
    ];
    if let Some(stable) = report.stable {
        map.push(entry(
            "stable",
            Value::Map(vec![
                entry("bytes", figure(stable.bytes)),
                entry("tokens", figure(stable.tokens)),
                entry("first-difference", stable.first_difference.map_or(Value::Nil, figure)),
                entry("section", stable.section.map_or(Value::Nil, |s| keyword(s.name()))),
            ]),
        ));
    }
    Value::Map(map)
}

fn part(part: &Entry) -> Value {
    let mut map = vec![
        entry("section", keyword(part.section.name())),
        entry("what", part.what.label(part.section)),
        entry("fate", fate(part.fate)),
        entry("reason", part.reason),
        entry("before", figure(part.before)),
        entry("after", figure(part.after)),
    ];
    if let What::Messages(numbers) = &part.what {
        map.push(entry("ids", super::messages::names(numbers)));
    }
    map.extend(part.score.as_ref().map(|score| entry("score", scored(score))));
    Value::Map(map)
}

fn run(run: &Run) -> Value {
    let mut map = vec![
        entry("section", keyword(run.section.name())),
        entry("what", &*run.label),
        entry("fate", fate(run.fate)),
        entry("reason", run.reason),
        entry("units", figure(run.units)),
        entry("before", figure(run.before)),
        entry("after", figure(run.after)),
    ];
    if let Some((lowest, highest)) = run.scores {
        map.push(entry("lowest-score", lowest));
        map.push(entry("highest-score", highest));
    }
    Value::Map(map)
}

/// A score with its parts.
pub(super) fn scored(score: &Score) -> Value {
    let parts = score.parts.iter().map(|(name, value)| entry(name, *value)).collect();
    Value::Map(vec![entry("total", score.total), entry("parts", Value::Map(parts))])
}

fn fate(fate: Fate) -> Value {
    keyword(match fate {
        Fate::Kept => "kept",
        Fate::Shortened => "shortened",
        Fate::Dropped => "dropped",
    })
}

/// A line of the usage log.
pub(super) fn usage(row: &UsageRow) -> Value {
    let mut map = vec![
        entry("session", row.session.map_or(Value::Nil, |id| SessionId(id).into())),
        entry("at", Value::Int(row.at)),
        entry("phase", row.phase.map_or(Value::Nil, |phase| keyword(phase.name()))),
        entry("strategy", keyword(&row.strategy)),
        entry("system-prompt", figure(row.system)),
        entry("design-doc", figure(row.design)),
        entry("types", figure(row.types)),
        entry("current-context", figure(row.current)),
        entry("messages", figure(row.messages)),
        entry("total", figure(row.total)),
        entry("budget", figure(row.budget)),
    ];
    map.extend(row.spent.iter().flat_map(spent));
    Value::Map(map)
}

/// What asking a model took; what its provider did not tell is nil.
fn spent(spent: &Spent) -> [(Box<str>, Value); 6] {
    let count = |count: Option<u64>| count.map_or(Value::Nil, figure);
    [
        entry("provider", &*spent.provider),
        entry("model", &*spent.model),
        entry("input", count(spent.input)),
        entry("output", count(spent.output)),
        entry("cached", count(spent.cached)),
        entry("cost", spent.cost.map_or(Value::Nil, money)),
    ]
}

/// A line of the table by phase.
pub(super) fn phase_usage(row: &PhaseUsage) -> Value {
    Value::Map(vec![
        entry("phase", row.phase.map_or(Value::Nil, |phase| keyword(phase.name()))),
        entry("windows", figure(row.windows)),
        entry("system-prompt", figure(row.system)),
        entry("design-doc", figure(row.design)),
        entry("types", figure(row.types)),
        entry("current-context", figure(row.current)),
        entry("messages", figure(row.messages)),
        entry("total", figure(row.total)),
        entry("budget", figure(row.budget)),
        entry("reported", figure(row.reported)),
        entry("input", figure(row.input)),
        entry("output", figure(row.output)),
        entry("cached", figure(row.cached)),
        entry("priced", figure(row.priced)),
        // Without a price there is no cost, not one of nothing.
        entry("cost", if row.priced > 0 { money(row.cost) } else { Value::Nil }),
    ])
}
