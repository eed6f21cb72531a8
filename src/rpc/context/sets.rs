//! Methods about named sets.

use serde::Deserialize;

use super::Step;
use super::call::Call;
use super::params::{ManagerName, Name, RequestKey, decode};
use super::present::{self, entry, figure};
use super::query::Nothing;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SetCall {
    manager: Option<ManagerName>,
    name: Name,
    request_key: Option<RequestKey>,
}

pub(super) fn save_set(_: Call, params: Value) -> Result<Step, WireError> {
    let given: SetCall = decode(params)?;
    let manager = given.manager.unwrap_or_default().0;
    Step::state(move |engine| {
        let name = &given.name.0;
        let saved = engine
            .once("save-set", given.request_key.as_deref(), |e| e.save_set(&manager, name))?;
        Ok(Value::Map(vec![
            entry("name", &**name),
            entry("count", figure(saved.count)),
            entry("replaced", saved.replaced),
        ]))
    })
}

pub(super) fn drop_set(_: Call, params: Value) -> Result<Step, WireError> {
    let given: SetCall = decode(params)?;
    let manager = given.manager.unwrap_or_default().0;
    Step::state(move |engine| {
        let name = &given.name.0;
        engine.once("drop-set", given.request_key.as_deref(), |e| e.drop_set(&manager, name))?;
        Ok(Value::Map(vec![entry("name", &**name), entry("dropped", true)]))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LoadSet {
    manager: Option<ManagerName>,
    name: Name,
    mode: Option<LoadMode>,
    request_key: Option<RequestKey>,
}

/// What becomes of the items that the manager has.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum LoadMode {
    Replace,
    Append,
}

pub(super) fn load_set(_: Call, params: Value) -> Result<Step, WireError> {
    let given: LoadSet = decode(params)?;
    let manager = given.manager.unwrap_or_default().0;
    let mode = given.mode.unwrap_or(LoadMode::Replace);
    Step::state(move |engine| {
        let name = &given.name.0;
        let loaded = engine.once("load-set", given.request_key.as_deref(), |e| match mode {
            LoadMode::Replace => e.load_set(&manager, name),
            LoadMode::Append => e.append_set(&manager, name),
        })?;
        Ok(Value::Map(vec![
            entry("name", &**name),
            entry("ids", present::ids(&loaded.ids)),
            entry("left", present::ids(&loaded.left)),
        ]))
    })
}

pub(super) fn list_sets(_: Call, params: Value) -> Result<Step, WireError> {
    decode::<Nothing>(params)?;
    Step::state(|engine| {
        let sets = engine.list_sets()?;
        Ok(Value::List(sets.iter().map(present::set).collect()))
    })
}
