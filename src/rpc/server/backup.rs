//! Backups on request and by themselves, and the check of the whole state.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Notify;

use crate::engine::{Engine, EngineError, Handle};
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::error::{internal_error, refused};
use crate::rpc::error_data::PlainKind;
use crate::rpc::params::Nothing;
use crate::store::StoreError;
use crate::store::recovery::backup::{
    Backup, CHANGES_A_BACKUP, is_due, newest_good, write_asked, write_automatic,
};
use crate::store::recovery::{Files, check_file};
use crate::visible::visible_path;
use crate::wire::message::WireError;

/// Time from the start of the server to the first check of the last backup's age.
const AFTER_START: Duration = Duration::from_secs(60);
/// Time between later checks.
const AGAIN: Duration = Duration::from_secs(60 * 60);

/// Looks after the state in a folder: reads it completely after the first answers, backs it up once
/// a day and after each [`CHANGES_A_BACKUP`] changes, and replaces it with the newest good backup
/// when it is damaged. `quiet` tells when the server is idle after changes. Keeps the newest `kept`
/// daily backups; 0 makes none. Ends when the engine has ended.
pub(crate) async fn look_after_state(
    engine: Handle,
    quiet: Arc<Notify>,
    folder: PathBuf,
    kept: usize,
) {
    let files = Files::new(&folder);
    let mut state = Tended { engine, files, kept, is_checked: false, backed_up: None };
    let mut next = tokio::time::Instant::now() + AFTER_START;
    loop {
        tokio::select! {
            () = quiet.notified() => {}
            () = tokio::time::sleep_until(next) => next += AGAIN,
        }
        match state.tend().await {
            Ok(()) => {}
            Err(EngineError::Ended) => return,
            Err(error) => tracing::warn!("cannot back up the state: {error}"),
        }
    }
}

/// A state that is looked after.
struct Tended {
    engine: Handle,
    files: Files,
    kept: usize,
    /// Set when the whole state has been read since the start.
    is_checked: bool,
    /// Number of changes in the newest automatic backup; `None` until it is read.
    backed_up: Option<u64>,
}

impl Tended {
    async fn tend(&mut self) -> Result<(), EngineError> {
        let ask = self.engine.ask(|engine| Ok((engine.condition()?, engine.refusal()))).await?;
        let (condition, refusal) = ask;
        // A state that cannot be written is a copy in memory, or is checked once it can be.
        if refusal.is_some() {
            return Ok(());
        }
        if !self.is_checked || condition.damage.is_some() {
            let files = self.files.clone();
            let checked = blocking(move || check_file(&files)).await;
            self.is_checked = true;
            if self.renew_if_damaged(checked, condition.damage).await? {
                return Ok(());
            }
        }
        self.back_up(condition.changes).await
    }

    /// Writes a backup if one is due.
    async fn back_up(&mut self, changes: u64) -> Result<(), EngineError> {
        if self.kept == 0 {
            return Ok(());
        }
        let backed_up = match self.backed_up {
            Some(backed_up) => backed_up,
            None => {
                let files = self.files.clone();
                let newest = move || Ok(newest_good(&files, 0).map_or(0, |(_, changes)| changes));
                blocking(newest).await?
            }
        };
        self.backed_up = Some(backed_up);
        let now = jiff::Timestamp::now().as_second();
        let is_day_over = is_due(&self.files, now);
        if changes.saturating_sub(backed_up) < CHANGES_A_BACKUP && !is_day_over {
            return Ok(());
        }
        let (files, kept) = (self.files.clone(), self.kept);
        let written = blocking(move || write_automatic(&files, now, kept)).await;
        if let Ok(backup) = &written {
            self.backed_up = Some(changes);
            tracing::info!("wrote the backup {}", visible_path(&backup.path));
        }
        self.renew_if_damaged(written.map(drop), None).await.map(drop)
    }

    /// Replaces the state if the outcome of a check, or a reader of the state, says that it is
    /// damaged. Returns whether it is.
    async fn renew_if_damaged(
        &self,
        checked: Result<(), EngineError>,
        damage: Option<String>,
    ) -> Result<bool, EngineError> {
        let wrong = match (checked, damage) {
            (Err(EngineError::Store(StoreError::Damaged(wrong))), _) | (Ok(()), Some(wrong)) => {
                wrong
            }
            (checked, _) => return checked.map(|()| false),
        };
        tracing::error!("the database is damaged: {wrong}");
        self.engine.ask(Engine::restore_backup).await.map(|()| true)
    }
}

/// Does work with files on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, EngineError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|_| EngineError::Ended)??)
}

pub(super) fn backup(call: MethodCall, _: Nothing) -> Result<Step, WireError> {
    let (engine, folder) = (call.tools.engine.clone(), call.tools.state_folder.clone());
    Ok(Step::Await(Box::pin(async move {
        // What was asked before is stored when this is answered.
        let refusal = engine.ask(|engine| Ok(engine.refusal())).await?;
        let said = match (folder, refusal) {
            (Some(folder), None) => {
                let written = tokio::task::spawn_blocking(move || write(folder));
                let written =
                    written.await.unwrap_or_else(|_| Err(internal_error("writing a backup")));
                return Step::done(&written?);
            }
            (Some(_), Some(why)) => {
                format!("no backup can be made while the state is read-only ({why})")
            }
            (None, _) => {
                "this server keeps no state in files, so there is nothing to back up".to_owned()
            }
        };
        Err(refused(PlainKind::BackupFailed, said))
    })))
}

fn write(folder: PathBuf) -> Result<BackupShown, WireError> {
    match write_asked(&Files::new(&folder)) {
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
