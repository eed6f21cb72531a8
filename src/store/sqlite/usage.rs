//! Rows for the usage of windows: the latest ones, and sums over all.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::super::StoreError;
use super::super::session::{PhaseUsage, Spent, USAGE_KEPT, UsageRow};
use super::message::phase_of;
use crate::session::message::Phase;

/// Number of windows after which the kept ones are thinned again.
const SWEEP: u64 = 256;

/// Inserts a window's usage, adds it to the sums, and returns the number of its row.
pub(super) fn log(db: &Connection, usage: &UsageRow) -> Result<u64, StoreError> {
    let UsageRow { session, at, phase, strategy, system, design, types, current, .. } = usage;
    let UsageRow { messages, total, budget, .. } = usage;
    let (session, phase) = (session.unwrap_or(0), phase.map_or("", Phase::name));
    db.prepare_cached(
        "INSERT INTO usage (session, at, phase, strategy, system, design, types, current,
                            messages, total, budget)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        session, at, phase, strategy, system, design, types, current, messages, total, budget
    ])?;
    let number = db.last_insert_rowid().unsigned_abs();
    db.prepare_cached(
        "INSERT INTO usage_sum (session, phase, windows, system, design, types, current, messages,
                                total, budget)
         VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT DO UPDATE SET
             windows = windows + 1, system = system + ?3, design = design + ?4,
             types = types + ?5, current = current + ?6, messages = messages + ?7,
             total = total + ?8, budget = budget + ?9",
    )?
    .execute(params![session, phase, system, design, types, current, messages, total, budget])?;
    if number > USAGE_KEPT && number.is_multiple_of(SWEEP) {
        db.prepare_cached("DELETE FROM usage WHERE id <= ?1")?.execute([number - USAGE_KEPT])?;
    }
    Ok(number)
}

/// Adds the cost of asking a model to a window's row and to the sums. Counts that were never
/// reported stay unknown.
pub(super) fn add_spent(db: &Connection, number: u64, spent: &Spent) -> Result<(), StoreError> {
    let Spent { provider, model, input, output, cached, cost } = spent;
    let mut query = db.prepare_cached(
        "SELECT session, phase, input IS NOT NULL OR output IS NOT NULL, cost IS NOT NULL
         FROM usage WHERE id = ?1",
    )?;
    type Before = (u64, String, bool, bool);
    let before = query.query_row([number], |row| Before::try_from(row)).optional()?;
    let Some((session, phase, was_reported, was_priced)) = before else { return Ok(()) };
    db.prepare_cached(
        "UPDATE usage SET provider = ?2, model = ?3,
             input = coalesce(input + ?4, ?4, input), output = coalesce(output + ?5, ?5, output),
             cached = coalesce(cached + ?6, ?6, cached), cost = coalesce(cost + ?7, ?7, cost)
         WHERE id = ?1",
    )?
    .execute(params![number, provider, model, input, output, cached, cost])?;
    let reported = !was_reported && (input.is_some() || output.is_some());
    let priced = !was_priced && cost.is_some();
    db.prepare_cached(
        "UPDATE usage_sum SET
             reported = reported + ?3, input = input + coalesce(?4, 0),
             output = output + coalesce(?5, 0), cached = cached + coalesce(?6, 0),
             priced = priced + ?7, cost = cost + coalesce(?8, 0)
         WHERE session = ?1 AND phase = ?2",
    )?
    .execute(params![session, phase, reported, input, output, cached, priced, cost])?;
    Ok(())
}

/// Returns the usage of at most `limit` windows, oldest first.
pub(super) fn last(
    db: &Connection,
    session: Option<u64>,
    phase: Option<Phase>,
    limit: u64,
) -> Result<Vec<UsageRow>, StoreError> {
    // Two statements, so that a query for one session uses the index.
    let which = if session.is_some() { "session = ?1" } else { "?1 IS NULL" };
    let mut query = db.prepare_cached(&format!(
        "SELECT session, at, phase, strategy, system, design, types, current, messages, total,
                budget, provider, model, input, output, cached, cost
         FROM usage WHERE {which} AND (?2 IS NULL OR phase = ?2) ORDER BY id DESC LIMIT ?3"
    ))?;
    let values = params![session, phase.map(Phase::name), super::limit(limit)];
    let rows = query.query_and_then(values, usage_of)?;
    let mut rows: Vec<UsageRow> = rows.collect::<Result<_, _>>()?;
    rows.reverse();
    Ok(rows)
}

/// Returns the sums of each phase in the order of the phases, followed by the windows without one.
pub(super) fn by_phase(
    db: &Connection,
    session: Option<u64>,
) -> Result<Vec<PhaseUsage>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT phase, sum(windows), sum(system), sum(design), sum(types), sum(current),
                sum(messages), sum(total), sum(budget), sum(reported), sum(input), sum(output),
                sum(cached), sum(priced), sum(cost)
         FROM usage_sum WHERE ?1 IS NULL OR session = ?1 GROUP BY phase",
    )?;
    let rows = query.query_and_then([session], |row| {
        Ok(PhaseUsage {
            phase: optional_phase(row, 0)?,
            windows: row.get(1)?,
            system: row.get(2)?,
            design: row.get(3)?,
            types: row.get(4)?,
            current: row.get(5)?,
            messages: row.get(6)?,
            total: row.get(7)?,
            budget: row.get(8)?,
            reported: row.get(9)?,
            input: row.get(10)?,
            output: row.get(11)?,
            cached: row.get(12)?,
            priced: row.get(13)?,
            cost: row.get(14)?,
        })
    })?;
    let mut sums: Vec<PhaseUsage> = rows.collect::<Result<_, StoreError>>()?;
    let place = |sum: &PhaseUsage| Phase::ALL.iter().position(|phase| Some(*phase) == sum.phase);
    sums.sort_by_key(|sum| place(sum).unwrap_or(usize::MAX));
    Ok(sums)
}

fn usage_of(row: &Row<'_>) -> Result<UsageRow, StoreError> {
    let session: u64 = row.get(0)?;
    Ok(UsageRow {
        session: (session > 0).then_some(session),
        at: row.get(1)?,
        phase: optional_phase(row, 2)?,
        strategy: row.get(3)?,
        system: row.get(4)?,
        design: row.get(5)?,
        types: row.get(6)?,
        current: row.get(7)?,
        messages: row.get(8)?,
        total: row.get(9)?,
        budget: row.get(10)?,
        spent: spent_of(row)?,
    })
}

fn spent_of(row: &Row<'_>) -> Result<Option<Spent>, StoreError> {
    let (Some(provider), Some(model)) = (row.get(11)?, row.get(12)?) else { return Ok(None) };
    Ok(Some(Spent {
        provider,
        model,
        input: row.get(13)?,
        output: row.get(14)?,
        cached: row.get(15)?,
        cost: row.get(16)?,
    }))
}

fn optional_phase(row: &Row<'_>, column: usize) -> Result<Option<Phase>, StoreError> {
    let name: String = row.get(column)?;
    if name.is_empty() { Ok(None) } else { phase_of(&name).map(Some) }
}
