//! Backups on request, and one every day.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::{EngineError, Handle};
use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::error::{internal_error, refused};
use crate::rpc::error_data::PlainKind;
use crate::rpc::params::Nothing;
use crate::store::StoreError;
use crate::store::recovery::Files;
use crate::store::recovery::backup::{Backup, Snapshot, is_due, write_asked, write_daily};
use crate::visible::visible_path;
use crate::wire::message::WireError;

/// Time from the start of the server to the first check of the last backup's age.
const AFTER_START: Duration = Duration::from_secs(60);
/// Time between later checks.
const AGAIN: Duration = Duration::from_secs(60 * 60);

/// Writes a backup beside the state whenever the last automatic one is a day old, and keeps the
/// newest `kept` backups; 0 makes none. Ends when the engine has ended.
pub(crate) async fn keep_backups(engine: Handle, folder: PathBuf, kept: usize) {
    tokio::time::sleep(AFTER_START).await;
    loop {
        match back_up_if_due(&engine, folder.clone(), kept).await {
            Ok(Some(backup)) => tracing::info!("wrote the backup {}", visible_path(&backup.path)),
            Ok(None) => {}
            Err(EngineError::Ended) => return,
            Err(error) => tracing::warn!("cannot make the daily backup: {error}"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Writes a backup if one is due. Returns the backup, if one was written.
async fn back_up_if_due(
    engine: &Handle,
    folder: PathBuf,
    kept: usize,
) -> Result<Option<Backup>, EngineError> {
    let files = Files::new(&folder);
    if kept == 0 || !is_due(&files, jiff::Timestamp::now().as_second()) {
        return Ok(None);
    }
    let Some(snapshot) = engine.ask(|engine| engine.snapshot()).await? else { return Ok(None) };
    let write = move || write_daily(&files, &snapshot, kept);
    let written = tokio::task::spawn_blocking(write).await;
    written.map_or(Err(EngineError::Ended), |backup| Ok(Some(backup?)))
}

pub(super) fn backup(call: Call, _: Nothing) -> Result<Step, WireError> {
    let (engine, folder) = (call.tools.engine.clone(), call.tools.state_folder.clone());
    Ok(Step::Await(Box::pin(async move {
        let settled = engine.ask(|engine| Ok((engine.snapshot()?, engine.refusal())));
        let (snapshot, refusal) = settled.await?;
        let Some((folder, snapshot)) = folder.zip(snapshot) else {
            let said = refusal.map_or_else(
                || "this server keeps no state in files, so there is nothing to back up".to_owned(),
                |why| format!("no backup can be made while the state is read-only ({why})"),
            );
            return Err(refused(PlainKind::BackupFailed, said));
        };
        let written = tokio::task::spawn_blocking(move || write(folder, &snapshot));
        let written = written.await.unwrap_or_else(|_| Err(internal_error("writing a backup")));
        Step::done(&written?)
    })))
}

fn write(folder: PathBuf, snapshot: &Snapshot) -> Result<BackupShown, WireError> {
    match write_asked(&Files::new(&folder), snapshot) {
        Ok(backup) => Ok(backup.into()),
        Err(error @ StoreError::Backup { .. }) => {
            Err(refused(PlainKind::BackupFailed, error.to_string()))
        }
        Err(error) => Err(EngineError::from(error).into()),
    }
}

/// A backup, as clients get it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Backup")]
pub(super) struct BackupShown {
    /// File of the backup.
    path: String,
    /// Size of the file, in bytes.
    bytes: u64,
    /// Time at which the backup was made, in Unix seconds.
    at: i64,
}

impl From<Backup> for BackupShown {
    fn from(Backup { path, bytes, at }: Backup) -> Self {
        Self { path: path.to_string_lossy().into_owned(), bytes, at }
    }
}
