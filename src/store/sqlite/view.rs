//! What became of the managing of turns.

use rusqlite::{Connection, Row, named_params, params};

use super::super::StoreError;
use super::super::view::{NewView, VIEWS_KEPT, ViewRow};

const COLUMNS: &str = "session, message, turn, created, status, step, reason, template, source, path, \
                       sha256, provider, model, recent_runs, passthrough_runs, token_threshold, \
                       sections, budget, prompt_tokens, prompt, payload, output, input_tokens, \
                       output_tokens, tokens_before, tokens_after";
/// The same as parameters.
const VALUES: &str = ":session, :message, :turn, :created, :status, :step, :reason, :template, \
                      :source, :path, :sha256, :provider, :model, :recent_runs, \
                      :passthrough_runs, :token_threshold, :sections, :budget, :prompt_tokens, \
                      :prompt, :payload, :output, :input_tokens, :output_tokens, :tokens_before, \
                      :tokens_after";
/// How often the last views are thinned: once in this many.
const SWEEP: u64 = 64;

/// Inserts a view.
pub(super) fn add(db: &Connection, view: &NewView) -> Result<u64, StoreError> {
    db.prepare_cached(&format!("INSERT INTO managed_view ({COLUMNS}) VALUES ({VALUES})"))?
        .execute(named_params! {
            ":session": view.session,
            ":message": view.message,
            ":turn": view.turn,
            ":created": view.created,
            ":status": view.status,
            ":step": view.step,
            ":reason": view.reason,
            ":template": view.template,
            ":source": view.source,
            ":path": view.path,
            ":sha256": view.sha256,
            ":provider": view.provider,
            ":model": view.model,
            ":recent_runs": view.recent_runs,
            ":passthrough_runs": view.passthrough_runs,
            ":token_threshold": view.token_threshold,
            ":sections": view.sections,
            ":budget": view.budget,
            ":prompt_tokens": view.prompt_tokens,
            ":prompt": view.prompt,
            ":payload": view.payload,
            ":output": view.output,
            ":input_tokens": view.input_tokens,
            ":output_tokens": view.output_tokens,
            ":tokens_before": view.tokens_before,
            ":tokens_after": view.tokens_after,
        })?;
    let number = db.last_insert_rowid().unsigned_abs();
    if number > VIEWS_KEPT && number.is_multiple_of(SWEEP) {
        db.prepare_cached("DELETE FROM managed_view WHERE id <= ?1")?
            .execute([number - VIEWS_KEPT])?;
    }
    Ok(number)
}

/// The last views, newest first.
pub(super) fn last(
    db: &Connection,
    session: Option<u64>,
    status: Option<&str>,
    limit: u64,
) -> Result<Vec<ViewRow>, StoreError> {
    // Two statements, so that one session's are found by the index.
    let which = if session.is_some() { "session = ?1" } else { "?1 IS NULL" };
    let mut query = db.prepare_cached(&format!(
        "SELECT id, {COLUMNS} FROM managed_view
         WHERE {which} AND (?2 IS NULL OR status = ?2) ORDER BY id DESC LIMIT ?3"
    ))?;
    let rows = query.query_map(params![session, status, super::limit(limit)], view_of)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn view_of(row: &Row<'_>) -> rusqlite::Result<ViewRow> {
    let made = NewView {
        session: row.get("session")?,
        message: row.get("message")?,
        turn: row.get("turn")?,
        created: row.get("created")?,
        status: row.get("status")?,
        step: row.get("step")?,
        reason: row.get("reason")?,
        template: row.get("template")?,
        source: row.get("source")?,
        path: row.get("path")?,
        sha256: row.get("sha256")?,
        provider: row.get("provider")?,
        model: row.get("model")?,
        recent_runs: row.get("recent_runs")?,
        passthrough_runs: row.get("passthrough_runs")?,
        token_threshold: row.get("token_threshold")?,
        sections: row.get("sections")?,
        budget: row.get("budget")?,
        prompt_tokens: row.get("prompt_tokens")?,
        prompt: row.get("prompt")?,
        payload: row.get("payload")?,
        output: row.get("output")?,
        input_tokens: row.get("input_tokens")?,
        output_tokens: row.get("output_tokens")?,
        tokens_before: row.get("tokens_before")?,
        tokens_after: row.get("tokens_after")?,
    };
    Ok(ViewRow { id: row.get("id")?, made })
}
