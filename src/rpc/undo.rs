//! Methods that go back and forth in the log of operations of a context or of a session's view.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::operations::{Log, OperationLine, next_line};
use super::params::{ManagerName, Name, not_negative};
use crate::engine::{Engine, EngineError};
use crate::ids::{ItemId, MessageId};
use crate::store::Way;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct StepCall {
    manager: Option<ManagerName>,
    /// Session whose view to change, in place of a manager.
    session: Option<Name>,
    /// Only report what the call would do; defaults to `nil`.
    dry_run: Option<bool>,
    /// Return the `:change` too; defaults to `nil`.
    describe: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Restore {
    manager: Option<ManagerName>,
    /// Session whose view to restore, in place of a manager.
    session: Option<Name>,
    /// Number of the operation, which is then the last one in effect; 0 is the state before the
    /// first one that is kept.
    operation: i64,
    /// Only report what the call would do; defaults to `nil`.
    dry_run: Option<bool>,
}

/// What an undo, a redo or a restoration did, and what there is now.
#[derive(Serialize, JsonSchema, Default)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "OperationDone")]
pub(super) struct Done {
    /// Method whose operation was undone; absent unless one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    undone: Option<String>,
    /// Method whose operation was redone; absent unless one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    redone: Option<String>,
    /// Number of the operation that was restored; absent unless one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    restored: Option<u64>,
    /// Name of the session; absent for a manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The operation that was undone or redone; only if the call has `:describe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<OperationLine>,
    /// Number of items in the manager, or of messages in view, now.
    count: usize,
    /// Total tokens of the items in the manager now; absent for a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_tokens: Option<u64>,
    /// Other managers in which operations of the same calls were undone or redone; absent if there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
    /// Ids of the items or messages that came back; absent if none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    returned: Vec<String>,
    /// Ids of the items or messages that left; absent if none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<String>,
    /// Number of turns that came back; absent for a manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_restored: Option<u64>,
    /// Number of turns that left the conversation; absent for a manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    turns_lost: Option<u64>,
}

/// A way through a log.
#[derive(Clone, Copy)]
enum Going {
    Undo,
    Redo,
    /// To the operation with this number.
    To(u64),
}

impl Going {
    fn way(self) -> Option<Way> {
        match self {
            Self::Undo => Some(Way::Undo),
            Self::Redo => Some(Way::Redo),
            Self::To(_) => None,
        }
    }

    fn done(self, method: String) -> Done {
        match self {
            Self::Undo => Done { undone: Some(method), ..Done::default() },
            Self::Redo => Done { redone: Some(method), ..Done::default() },
            Self::To(number) => Done { restored: Some(number), ..Done::default() },
        }
    }
}

pub(super) fn undo(_: MethodCall, given: StepCall) -> Result<Step, WireError> {
    given.go(Going::Undo)
}

pub(super) fn redo(_: MethodCall, given: StepCall) -> Result<Step, WireError> {
    given.go(Going::Redo)
}

pub(super) fn restore(_: MethodCall, given: Restore) -> Result<Step, WireError> {
    let Restore { manager, session, operation, dry_run } = given;
    let number = not_negative("operation", Some(operation))?.unwrap_or(0);
    StepCall { manager, session, dry_run, describe: None }.go(Going::To(number))
}

impl StepCall {
    fn go(self, going: Going) -> Result<Step, WireError> {
        let log = Log::of(self.manager, self.session)?;
        let described = going.way().filter(|_| self.describe == Some(true));
        stepping(self.dry_run, move |engine| match &log {
            Log::Manager(manager) => in_manager(engine, manager, going, described),
            Log::Session(session) => in_session(engine, session, going, described),
        })
    }
}

/// Runs an operation. If the call is only a dry run, reverts it.
pub(super) fn stepping<T: Serialize>(
    dry_run: Option<bool>,
    operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
) -> Result<Step, WireError> {
    Step::state(move |engine| match dry_run {
        Some(true) => engine.rehearse(operation),
        _ => operation(engine),
    })
}

fn in_manager(
    engine: &mut Engine,
    manager: &str,
    going: Going,
    described: Option<Way>,
) -> Result<Done, EngineError> {
    let change = match described {
        Some(_) => engine.operations(manager, 1)?.into_iter().find(|it| it.next == described),
        None => None,
    };
    let before = items(engine, manager)?;
    let (method, also) = match going {
        Going::Undo => {
            let undone = engine.undo(manager)?;
            (undone.undone, undone.also)
        }
        Going::Redo => {
            let redone = engine.redo(manager)?;
            (redone.redone, redone.also)
        }
        Going::To(number) => (String::new(), engine.restore(manager, number)?),
    };
    let after = items(engine, manager)?;
    let (count, total_tokens) = engine.size(manager)?;
    Ok(Done {
        change: change.map(OperationLine::from),
        count,
        total_tokens: Some(total_tokens),
        also,
        returned: missing(&before, &after),
        left: missing(&after, &before),
        ..going.done(method)
    })
}

fn in_session(
    engine: &mut Engine,
    session: &str,
    going: Going,
    described: Option<Way>,
) -> Result<Done, EngineError> {
    let (row, done) = engine.between_turns(Some(session), |engine, row| {
        let id = row.id;
        let change = match described {
            Some(way) => next_line(engine, id, way)?,
            None => None,
        };
        let before = in_view(engine, id)?;
        let (method, turns) = match going {
            Going::Undo => engine.undo_session(id)?,
            Going::Redo => engine.redo_session(id)?,
            Going::To(number) => (String::new(), engine.restore_view(id, number)?),
        };
        let after = in_view(engine, id)?;
        Ok(Done {
            change,
            count: after.len(),
            returned: missing(&before, &after),
            left: missing(&after, &before),
            turns_restored: Some(turns.turns_restored),
            turns_lost: Some(turns.turns_lost),
            ..going.done(method)
        })
    })?;
    Ok(Done { session: Some(row.name), ..done })
}

fn items(engine: &mut Engine, manager: &str) -> Result<BTreeSet<ItemId>, EngineError> {
    Ok(engine.order(manager)?.into_iter().map(ItemId).collect())
}

fn in_view(engine: &mut Engine, id: u64) -> Result<BTreeSet<MessageId>, EngineError> {
    Ok(engine.session(id)?.in_view().map(|message| MessageId(message.number)).collect())
}

/// Returns the ids in `of` that `from` lacks.
fn missing<T: Ord + ToString>(from: &BTreeSet<T>, of: &BTreeSet<T>) -> Vec<String> {
    of.difference(from).map(T::to_string).collect()
}
