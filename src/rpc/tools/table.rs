//! The table of the tools by which a model looks at its context and changes it.

use super::super::present::{entry, figure};
use super::{Argument, ContextTool, Entry, ToolRequest};
use crate::ids::SessionId;
use crate::store::session::SessionRow;
use crate::value::Value;
use crate::value::json::json_text;

/// How many memories or messages a search gives.
const FOUND: usize = 8;
/// How many hits of all sessions are looked at for those of one.
const HITS_LOOKED_AT: u64 = 200;

const fn required(name: &'static str, kind: &'static str, meaning: &'static str) -> Argument {
    Argument { name, kind, meaning, required: true }
}

const fn optional(name: &'static str, kind: &'static str, meaning: &'static str) -> Argument {
    Argument { name, kind, meaning, required: false }
}

/// Every tool, in the order in which they are offered.
pub(in super::super) static ALL: &[ContextTool] = &[
    ContextTool {
        name: "list_context",
        description: "Lists the items of your context with their ids, types, sources and tokens.",
        arguments: &[],
        method: "get-context",
        phrase: "list the context",
        params: |_, row| vec![manager(row), entry("brief", true)],
        shown: as_it_is,
    },
    ContextTool {
        name: "read_context",
        description: "Gives the whole content of an item of your context.",
        arguments: &[required("id", "string", "The item's id, such as ctx-7.")],
        method: "get-context",
        phrase: "read the item",
        params: |request, row| {
            let ids = request.argument("id").cloned().into_iter().collect();
            vec![manager(row), entry("ids", Value::List(ids))]
        },
        shown: only_item,
    },
    ContextTool {
        name: "add_file",
        description: "Adds a file, or some of its lines, to your context; from now on you see it.",
        arguments: &[
            required("path", "string", "Its name, absolute or from the project's folder."),
            optional("start_line", "integer", "The first line, from 1."),
            optional("end_line", "integer", "The last line."),
        ],
        method: "add-file",
        phrase: "add the file",
        params: |request, row| {
            vec![manager(row), entry("path", request.place()), entry("brief", true)]
        },
        shown: as_it_is,
    },
    ContextTool {
        name: "add_text",
        description: "Adds a text of your own to your context; from now on you see it.",
        arguments: &[required("content", "string", "The text.")],
        method: "add-context",
        phrase: "add a text",
        params: |_, row| vec![manager(row), entry("type", "text"), entry("brief", true)],
        shown: as_it_is,
    },
    ContextTool {
        name: "drop_context",
        description: "Takes items out of your context; the user can bring them back.",
        arguments: &[required("ids", "array", "The items' ids.")],
        method: "remove-context",
        phrase: "drop the items",
        params: |_, row| vec![manager(row)],
        shown: as_it_is,
    },
    ContextTool {
        name: "search_memory",
        description: "Finds what is remembered from earlier work that fits a text.",
        arguments: &[required("query", "string", "The text.")],
        method: "ground-query",
        phrase: "search the memories for",
        params: |_, row| vec![entry("session", session(row)), entry("limit", figure(FOUND as u64))],
        shown: as_it_is,
    },
    ContextTool {
        name: "search_session",
        description: "Finds words in this conversation, also in messages that you do not see.",
        arguments: &[required("query", "string", "The words.")],
        method: "search-sessions",
        phrase: "search the conversation for",
        params: |_, _| vec![entry("limit", figure(HITS_LOOKED_AT))],
        shown: own_hits,
    },
];

fn manager(row: &SessionRow) -> Entry {
    entry("manager", row.manager_name())
}

fn session(row: &SessionRow) -> Value {
    SessionId(row.id).into()
}

fn as_it_is(_: &ToolRequest, value: Value, _: &SessionRow) -> Result<Value, String> {
    Ok(value)
}

/// Of a list of one item, that.
fn only_item(request: &ToolRequest, value: Value, _: &SessionRow) -> Result<Value, String> {
    let item = match value {
        Value::List(mut items) => items.pop(),
        _ => None,
    };
    item.ok_or_else(|| {
        let id = request.argument("id").map(json_text).unwrap_or_default();
        format!("there is no item {id} in the context; list_context lists what there is")
    })
}

/// Of hits in all sessions, this one's.
fn own_hits(_: &ToolRequest, value: Value, row: &SessionRow) -> Result<Value, String> {
    let Value::List(hits) = value else { return Ok(value) };
    let id = session(row);
    let own = hits.into_iter().filter(|hit| hit.get("id") == Some(&id));
    Ok(Value::List(own.take(FOUND).collect()))
}
