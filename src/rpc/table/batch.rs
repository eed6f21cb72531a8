//! Several calls in one: all or nothing, or each on its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{find, spelled};
use crate::engine::Engine;
use crate::rpc::call::MethodCall;
use crate::rpc::error::param_error;
use crate::rpc::limits::{MAX_BATCH, PAGE_BYTES};
use crate::rpc::method::{ChangeKind, Method, Pace};
use crate::rpc::page::SMALLEST_PAGE;
use crate::rpc::params::not_negative;
use crate::rpc::{Awaited, EngineOperation, Finish, Step};
use crate::value::{Value, kebab};
use crate::wire::dialect::Dialect;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Batch {
    /// The calls in their order, each with its `:method` and the `:params` that the method takes.
    calls: Vec<BatchCall>,
    /// Undo everything if a call fails. By default, the other calls keep their effects.
    atomic: Option<bool>,
    /// Version that an earlier call gave a manager. The changes of this call then belong to the same
    /// step, so that one `undo` takes back both. Defaults to a step of its own.
    step: Option<i64>,
}

/// A call in a batch.
#[derive(Deserialize, JsonSchema)]
struct BatchCall {
    /// Name of the method.
    method: String,
    /// Parameters of the method.
    #[schemars(with = "serde_json::Value")]
    params: Option<Value>,
}

/// A call that has run until it needs the engine.
struct BatchedCall {
    /// Name of the method in the call.
    name: String,
    method: &'static Method,
    operation: EngineOperation,
}

/// A call that has begun.
enum Start {
    Ready(BatchedCall),
    /// It soon needs the engine, once it has read a file.
    Soon(String, &'static Method, Awaited),
}

/// A call that reads a file before it needs the engine, with its place in the batch.
struct BatchedRead {
    index: usize,
    name: String,
    method: &'static Method,
    work: Awaited,
}

type BatchedOutcome = Result<Finish, WireError>;

pub(super) fn batch(call: MethodCall, given: Batch) -> Result<Step, WireError> {
    if !(1..=MAX_BATCH).contains(&given.calls.len()) {
        let message = format!("must have from 1 to {MAX_BATCH} entries, got {}", given.calls.len());
        return Err(param_error("calls", &message));
    }
    let is_atomic = given.atomic.unwrap_or(false);
    let dialect = call.dialect;
    let page_bytes = (PAGE_BYTES / given.calls.len()).max(SMALLEST_PAGE);
    let call = MethodCall { id: None, page_bytes, ..call };
    let mut calls = Vec::with_capacity(given.calls.len());
    for (index, one) in given.calls.into_iter().enumerate() {
        let name = one.method.clone();
        match begin(&call, one, index) {
            Err(error) if is_atomic => return Err(placed(error, index, &name)),
            begun => calls.push(begun),
        }
    }
    let step = not_negative("step", given.step)?.unwrap_or(0);
    let (mut calls, mut ready) = (calls.into_iter().enumerate(), Vec::new());
    let Some(mut waiting) = until_one_waits(&mut calls, &mut ready) else {
        return carry_all_out(ready, is_atomic, step, dialect);
    };
    Ok(Step::Await(Box::pin(async move {
        loop {
            let BatchedRead { index, name, method, work } = waiting;
            match waited(work, index, method).await {
                Ok(operation) => ready.push(Ok(BatchedCall { name, method, operation })),
                Err(error) => {
                    let error = spelled(error, dialect, Some(method));
                    if is_atomic {
                        return Err(placed(error, index, &name));
                    }
                    ready.push(Err(error));
                }
            }
            match until_one_waits(&mut calls, &mut ready) {
                Some(next) => waiting = next,
                None => return carry_all_out(ready, is_atomic, step, dialect),
            }
        }
    })))
}

/// Moves calls to `ready`, up to the first that has to wait. Returns that one; `None` if no call has
/// to.
fn until_one_waits(
    calls: &mut impl Iterator<Item = (usize, Result<Start, WireError>)>,
    ready: &mut Vec<Result<BatchedCall, WireError>>,
) -> Option<BatchedRead> {
    for (index, start) in calls {
        match start {
            Ok(Start::Soon(name, method, work)) => {
                return Some(BatchedRead { index, name, method, work });
            }
            Ok(Start::Ready(begun)) => ready.push(Ok(begun)),
            Err(error) => ready.push(Err(error)),
        }
    }
    None
}

fn carry_all_out(
    calls: Vec<Result<BatchedCall, WireError>>,
    is_atomic: bool,
    step: u64,
    dialect: Dialect,
) -> Result<Step, WireError> {
    Step::then(move |engine| {
        engine.join_step(step);
        let outcomes = match is_atomic {
            false => apart(engine, calls, dialect),
            true => match engine.part(|engine| together(engine, calls, dialect)) {
                Ok(outcomes) => outcomes,
                Err(error) => return Ok(Finish::Refused(error)),
            },
        };
        Ok(answer(outcomes))
    })
}

/// Runs a call until it needs the engine.
fn begin(
    call: &MethodCall,
    BatchCall { method, params }: BatchCall,
    at: usize,
) -> Result<Start, WireError> {
    let mut params = params.unwrap_or_default();
    let name = kebab(&method).into_owned();
    let found = find(&name, &mut params);
    let called = found.map_err(|error| spelled(error, call.dialect, None))?;
    let method = called.method;
    if let Some(why) = why_alone(method) {
        return Err(refused(why, at, method));
    }
    let dialect = call.dialect;
    let step = called.run(call.clone(), params);
    match step.map_err(|error| spelled(error, dialect, Some(method)))? {
        Step::Await(work) => Ok(Start::Soon(name, method, work)),
        step => {
            Ok(Start::Ready(BatchedCall { name, method, operation: operation(step, at, method)? }))
        }
    }
}

/// Waits until a call needs the engine.
async fn waited(
    mut work: Awaited,
    at: usize,
    method: &'static Method,
) -> Result<EngineOperation, WireError> {
    loop {
        match work.await? {
            Step::Await(more) => work = more,
            step => return operation(step, at, method),
        }
    }
}

/// Returns what a call does in the engine.
fn operation(step: Step, at: usize, method: &Method) -> Result<EngineOperation, WireError> {
    match step {
        Step::Done(answer) => Ok(Box::new(|_| Ok(Finish::Now(answer)))),
        Step::State(_, operation) => Ok(operation),
        _ => Err(refused("waits for a model or an editor", at, method)),
    }
}

fn refused(why: &str, at: usize, method: &Method) -> WireError {
    let name = method.name;
    let message = format!("must not be {name} in a batch, because it {why}; call it alone");
    param_error(&format!("calls[{at}].method"), &message)
}

/// Returns the reason why a method cannot be in a batch; `None` if it can.
fn why_alone(method: &Method) -> Option<&'static str> {
    match (method.pace, method.change, method.family) {
        (Pace::Aside, ..) => Some("waits for a model, a disk or a person"),
        (Pace::InOrder, ChangeKind::Nothing, _) => Some("takes long to compute"),
        (.., "model") => Some("concerns models"),
        (.., "server") => Some("concerns the connection or the server"),
        (_, ChangeKind::AfterWork, "template") => Some("changes files"),
        _ => None,
    }
}

/// Carries out each call on its own.
fn apart(
    engine: &mut Engine,
    calls: Vec<Result<BatchedCall, WireError>>,
    dialect: Dialect,
) -> Vec<BatchedOutcome> {
    let one = |begun: Result<BatchedCall, WireError>| {
        engine.part(|engine| carry_out(engine, begun?, dialect))
    };
    calls.into_iter().map(one).collect()
}

/// Carries out all calls. Fails with the error of the first call that fails.
fn together(
    engine: &mut Engine,
    calls: Vec<Result<BatchedCall, WireError>>,
    dialect: Dialect,
) -> Result<Vec<BatchedOutcome>, WireError> {
    let one = |(index, begun): (usize, Result<BatchedCall, WireError>)| {
        let begun = begun?;
        let name = begun.name.clone();
        carry_out(engine, begun, dialect).map(Ok).map_err(|error| placed(error, index, &name))
    };
    calls.into_iter().enumerate().map(one).collect()
}

fn carry_out(engine: &mut Engine, begun: BatchedCall, dialect: Dialect) -> BatchedOutcome {
    let outcome = match (begun.operation)(engine).map_err(WireError::from) {
        Ok(Finish::Refused(error)) => Err(error),
        outcome => outcome,
    };
    outcome.map_err(|error| spelled(error, dialect, Some(begun.method)))
}

/// Adds to an error which call of the batch failed.
fn placed(error: WireError, index: usize, method: &str) -> WireError {
    let message = format!(
        "call {} of the batch, {method}: {}; no call of the batch had any effect",
        index + 1,
        error.message
    );
    let mut data = match error.data {
        Value::Map(entries) => entries,
        _ => Vec::new(),
    };
    let place = InBatch { index: index as u64, method: method.to_owned() };
    if let Value::Map(place) = Value::of(&place) {
        data.extend(place);
    }
    WireError::new(error.code, message).with(Value::Map(data))
}

/// Further data in the error of an atomic batch.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct InBatch {
    /// Place of the call that failed, counted from 0.
    index: u64,
    /// Method of the call that failed.
    method: String,
}

/// The results of a batch, in the order of the calls.
#[derive(Serialize, JsonSchema)]
pub(super) struct BatchResult {
    /// The outcome of each call.
    results: Vec<CallOutcome>,
}

/// The outcome of a call in a batch: its result or its error.
#[derive(Serialize, JsonSchema)]
struct CallOutcome {
    /// Result of the method, as outside of a batch; absent if the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// Error of the method, as outside of a batch; absent if the call succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallError>,
}

/// An error of a call in a batch.
#[derive(Serialize, JsonSchema)]
struct CallError {
    /// Code of the error, for programs.
    code: i32,
    /// Message of the error, for people.
    message: String,
    /// Details for programs; `nil` if there are none.
    data: Value,
}

/// Returns the answer, after the work that the calls left for later.
fn answer(outcomes: Vec<BatchedOutcome>) -> Finish {
    let is_ready = |outcome: &BatchedOutcome| !matches!(outcome, Ok(Finish::Later(_)));
    match outcomes.iter().all(is_ready) {
        true => Finish::Now(results(outcomes)),
        false => Finish::Later(Box::new(move || Ok(results(outcomes)))),
    }
}

fn results(outcomes: Vec<BatchedOutcome>) -> Value {
    let shown = |outcome: BatchedOutcome| match outcome.and_then(Finish::answer) {
        Ok(result) => CallOutcome { result: Some(result), error: None },
        Err(WireError { code, message, data }) => {
            CallOutcome { result: None, error: Some(CallError { code, message, data }) }
        }
    };
    Value::of(&BatchResult { results: outcomes.into_iter().map(shown).collect() })
}
