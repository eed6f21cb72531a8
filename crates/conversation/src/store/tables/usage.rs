//! Rows for the token usage of windows: one for each of the latest windows, and sums over all
//! windows.

use rusqlite::types::ValueRef;
use rusqlite::{Row, RowIndex, params};

use super::super::StoreError;
use super::super::session::{PhaseUsage, Spent, USAGE_KEPT, UsageRow};
use super::sql::{Column, Columns, Statements, columns, limit};
use super::{TableReading, Writing};
use crate::session::message::Phase;

/// Number of windows between two removals of the oldest rows.
const SWEEP: u64 = 256;

columns!(Spent { provider, model, input, output, cached, cost });
columns!(PhaseUsage {
    windows,
    system,
    design,
    types,
    current,
    messages,
    total,
    budget,
    reported,
    input,
    output,
    cached,
    priced,
    cost,
    ..Self::default()
});

impl TableReading<'_> {
    /// Returns the usage of the latest windows, at most `most`, oldest first. If given, `session`
    /// and `phase` restrict the windows to one session or one phase.
    pub fn usage(
        &self,
        session: Option<u64>,
        phase: Option<Phase>,
        most: u64,
    ) -> Result<Vec<UsageRow>, StoreError> {
        // Two statements, so that a query for one session uses the index.
        let which = if session.is_some() { "session = ?1" } else { "?1 IS NULL" };
        let sql = format!(
            "SELECT {}, nullif(session, 0), at, nullif(phase, ''), strategy, system, design, types,
                    current, messages, total, budget
             FROM usage WHERE {which} AND (?2 IS NULL OR phase = ?2) ORDER BY id DESC LIMIT ?3",
            Spent::list()
        );
        let mut rows = self.db.rows(
            &sql,
            params![session, phase.as_ref().map(Column), limit(most)],
            usage_of,
        )?;
        rows.reverse();
        Ok(rows)
    }

    /// Returns the sums over all windows of a session, or of all sessions, one for each phase, in
    /// the order of the phases. The sum of the windows without a phase comes last.
    pub fn usage_by_phase(&self, session: Option<u64>) -> Result<Vec<PhaseUsage>, StoreError> {
        let sums: Vec<String> =
            PhaseUsage::NAMES.iter().map(|name| format!("sum({name})")).collect();
        let sql = format!(
            "SELECT {}, nullif(phase, '') AS named FROM usage_sum
             WHERE ?1 IS NULL OR session = ?1 GROUP BY phase",
            sums.join(", ")
        );
        let mut sums = self.db.rows(&sql, [session], |row| {
            Ok(PhaseUsage { phase: phase_of(row, "named")?, ..PhaseUsage::of(row)? })
        })?;
        let place = |sum: &PhaseUsage| Phase::ALL.iter().position(|p| Some(*p) == sum.phase);
        sums.sort_by_key(|sum| place(sum).unwrap_or(usize::MAX));
        Ok(sums)
    }
}

impl Writing<'_> {
    /// Records the usage of a window, adds it to the sums, and returns the number of its row.
    pub fn log_usage(&self, usage: &UsageRow) -> Result<u64, StoreError> {
        let UsageRow { session, at, phase, strategy, system, design, types, current, .. } = usage;
        let UsageRow { messages, total, budget, .. } = usage;
        let (session, phase) = (session.unwrap_or(0), phase.map_or("", Phase::name));
        let number = self.db.insert(
            "INSERT INTO usage (session, at, phase, strategy, system, design, types, current,
                                messages, total, budget)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                session, at, phase, strategy, system, design, types, current, messages, total,
                budget
            ],
        )?;
        self.db.change(
            "INSERT INTO usage_sum (session, phase, windows, system, design, types, current,
                                    messages, total, budget)
             VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET
                 windows = windows + 1, system = system + ?3, design = design + ?4,
                 types = types + ?5, current = current + ?6, messages = messages + ?7,
                 total = total + ?8, budget = budget + ?9",
            params![session, phase, system, design, types, current, messages, total, budget],
        )?;
        if number > USAGE_KEPT && number.is_multiple_of(SWEEP) {
            self.db.change("DELETE FROM usage WHERE id <= ?1", [number - USAGE_KEPT])?;
        }
        Ok(number)
    }

    /// Adds the cost of asking a model to the row with this number and to the sums. Counts that
    /// were never reported stay unknown. Does nothing when the row is no longer kept.
    pub fn add_spent(&self, number: u64, spent: &Spent) -> Result<(), StoreError> {
        type Before = (u64, String, bool, bool);
        let Spent { provider, model, input, output, cached, cost } = spent;
        let sql = "SELECT session, phase, input IS NOT NULL OR output IS NOT NULL, cost IS NOT NULL
                   FROM usage WHERE id = ?1";
        let before = self.db.row(sql, [number], |row| Before::try_from(row))?;
        let Some((session, phase, was_reported, was_priced)) = before else { return Ok(()) };
        self.db.change(
            "UPDATE usage SET provider = ?2, model = ?3,
                 input = coalesce(input + ?4, ?4, input),
                 output = coalesce(output + ?5, ?5, output),
                 cached = coalesce(cached + ?6, ?6, cached), cost = coalesce(cost + ?7, ?7, cost)
             WHERE id = ?1",
            params![number, provider, model, input, output, cached, cost],
        )?;
        let reported = !was_reported && (input.is_some() || output.is_some());
        let priced = !was_priced && cost.is_some();
        self.db.change(
            "UPDATE usage_sum SET
                 reported = reported + ?3, input = input + coalesce(?4, 0),
                 output = output + coalesce(?5, 0), cached = cached + coalesce(?6, 0),
                 priced = priced + ?7, cost = cost + coalesce(?8, 0)
             WHERE session = ?1 AND phase = ?2",
            params![session, phase, reported, input, output, cached, priced, cost],
        )?;
        Ok(())
    }
}

/// Reads the columns of [`Spent`], which are null when no model was asked, and the columns of the
/// window.
fn usage_of(row: &Row<'_>) -> rusqlite::Result<UsageRow> {
    let is_spent = row.get_ref(0)? != ValueRef::Null;
    Ok(UsageRow {
        session: row.get(6)?,
        at: row.get(7)?,
        phase: phase_of(row, 8)?,
        strategy: row.get(9)?,
        system: row.get(10)?,
        design: row.get(11)?,
        types: row.get(12)?,
        current: row.get(13)?,
        messages: row.get(14)?,
        total: row.get(15)?,
        budget: row.get(16)?,
        spent: is_spent.then(|| Spent::of(row)).transpose()?,
    })
}

fn phase_of(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<Phase>> {
    Ok(row.get::<_, Option<Column<_>>>(column)?.map(|phase| phase.0))
}
