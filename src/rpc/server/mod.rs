//! Methods about the server itself.

use serde::Deserialize;

use super::backup::shown;
use super::call::{Call, Topic};
use super::error::param_error;
use super::params::{MAX_METADATA_BYTES, decode};
use super::present::{entry, figure, keyword};
use super::query::Nothing;
use super::table::{self, Param};
use super::{Finish, Step};
use crate::store::recovery::Files;
use crate::store::recovery::backup::list;
use crate::value::sexp::MAX_DEPTH;
use crate::value::{MAX_DATA, Value, to_value};
use crate::wire::dialect::Dialect;
use crate::wire::message::{Id, WireError};

pub(super) fn ping(_: Call, params: Value) -> Result<Step, WireError> {
    decode::<Nothing>(params)?;
    Ok(Step::Done(keyword("pong")))
}

pub(super) fn server_info(call: Call, params: Value) -> Result<Step, WireError> {
    decode::<Nothing>(params)?;
    let tools = call.tools;
    Step::then(move |engine| {
        let statistics = engine.statistics();
        let refusal = engine.refusal();
        let work = move || {
            let limits = tools.limits;
            let folder =
                tools.state_folder.as_ref().map(|path| path.to_string_lossy().into_owned());
            let newest = tools.state_folder.as_ref();
            let newest = newest.and_then(|folder| list(&Files::new(folder)).pop());
            let dialects = Dialect::ALL.iter().map(|dialect| keyword(dialect.name())).collect();
            let notices = tools.notices.iter().map(|text| Value::from(&**text)).collect();
            Ok(Value::Map(vec![
                entry("name", "contexture"),
                entry("version", env!("CARGO_PKG_VERSION")),
                entry("dialects", Value::List(dialects)),
                entry("pid", figure(u64::from(std::process::id()))),
                entry("state", folder.map_or(Value::Nil, Value::from)),
                entry("token-counter", keyword(tools.counter.name())),
                entry(
                    "limits",
                    Value::Map(vec![
                        entry("max-message-bytes", figure(limits.max_message_bytes as u64)),
                        entry("max-depth", figure(MAX_DEPTH as u64)),
                        entry("max-data", figure(MAX_DATA as u64)),
                        entry("max-metadata-bytes", figure(MAX_METADATA_BYTES as u64)),
                        entry("max-file-bytes", figure(limits.max_file_bytes)),
                        entry("max-items", figure(limits.max_items as u64)),
                    ]),
                ),
                entry("statistics", to_value(&statistics).unwrap_or_default()),
                entry("notices", Value::List(notices)),
                entry("read-only", refusal.map_or(Value::Nil, Value::from)),
                entry("backup", newest.as_ref().map_or(Value::Nil, shown)),
            ]))
        };
        Ok(Finish::Later(Box::new(work)))
    })
}

pub(super) fn methods(_: Call, params: Value) -> Result<Step, WireError> {
    decode::<Nothing>(params)?;
    let rows = table::methods().map(|method| {
        Value::Map(vec![
            entry("name", method.name),
            entry("doc", method.doc),
            entry("params", Value::List(method.params.iter().map(param).collect())),
            entry("result", method.result),
        ])
    });
    Ok(Step::Done(Value::List(rows.collect())))
}

fn param(param: &Param) -> Value {
    let values = (param.values)();
    let mut map = vec![
        entry("name", param.name),
        entry("type", param.kind),
        entry("required", param.required),
        entry("doc", param.doc),
    ];
    if !values.is_empty() {
        let values = values.into_iter().map(keyword).collect();
        map.push(entry("values", Value::List(values)));
    }
    Value::Map(map)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Subscribe {
    topics: Vec<Topic>,
}

pub(super) fn subscribe(_: Call, params: Value) -> Result<Step, WireError> {
    let given: Subscribe = decode(params)?;
    Ok(Step::Subscribe(given.topics))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cancel {
    id: Value,
}

pub(super) fn cancel(_: Call, params: Value) -> Result<Step, WireError> {
    let given: Cancel = decode(params)?;
    match given.id {
        Value::Int(id) => Ok(Step::Cancel(Id::Int(id))),
        Value::Str(id) => Ok(Step::Cancel(Id::Str(id))),
        _ => Err(param_error("id", "must be a request's id, an integer or a string")),
    }
}

pub(super) fn shutdown(_: Call, params: Value) -> Result<Step, WireError> {
    decode::<Nothing>(params)?;
    Ok(Step::ShutDown)
}
