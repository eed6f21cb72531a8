//! Lists in pages: a method returns its whole list, and the client gets as much of it as fits into
//! an answer, with a cursor for the rest. Handlers do not know about pages.
//!
//! The rest of a list is kept as it was when the first page was made, so that following the cursor
//! gives everything once, whatever changes meanwhile.

mod cut;
mod fields;

use serde_json::{Value as Json, json};

use super::call::MethodCall;
use super::client::{Client, Rest};
use super::error::{application, param_error};
use super::error_data::ErrorData;
use super::limits::{LISTS_KEPT, MAX_HITS, PAGE_BYTES};
use super::params::{lacks, not_negative};
use super::{Finish, Step};
use crate::value::{Key, Value};
use crate::wire::dialect::Dialect;
use crate::wire::message::WireError;

/// Parameters that every method with pages takes.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameters")]
pub(super) struct PageParams {
    /// `:next` of an earlier answer; returns the next page of that list. All other parameters
    /// except `:max-bytes` are then ignored.
    cursor: Option<String>,
    /// Return only these members of each entry. If the result has several lists, a list whose
    /// entries have none of these members is returned empty.
    fields: Option<Vec<String>>,
    /// Return a page with as many entries as fit into this number of bytes.
    max_bytes: Option<i64>,
    /// Leave long members out of each entry.
    brief: Option<bool>,
}

/// Minimum size of a page that a client may ask for, in bytes.
pub(super) const SMALLEST_PAGE: usize = 1 << 10;
/// Number of bytes reserved for the frame of the answer, the cursor and the counts.
const FRAME_BYTES: usize = 512;
/// Name of the list in a page of a result that is a list itself.
const ITEMS: &str = "items";

/// The lists in a method's result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paged {
    /// Paths of the lists, such as `report.parts`; empty if the result itself is the list.
    pub(super) lists: &'static [&'static str],
    /// Members that `:brief` leaves out; empty if the method has no such parameter, or one with
    /// another meaning.
    pub(super) brief: &'static [&'static str],
    /// True if the newest entries are last. The first page has the newest entries, and later pages
    /// have older entries.
    pub(super) newest_last: bool,
    /// Number of entries in a page unless the call has a `:limit`; `None` for as many as fit.
    pub(super) page: Option<usize>,
    /// Number of entries that the handler is asked for if the client takes pages, in place of
    /// `:limit` or the default limit; `None` leaves the handler's limit as it is.
    pub(super) most: Option<i64>,
}

impl Paged {
    /// A result that is a list itself. The first page has the first entries.
    pub(super) const LIST: Self =
        Self { lists: &[], brief: &[], newest_last: false, page: None, most: None };

    /// Returns the paths of the lists in a page.
    pub(super) fn paths(&self) -> &'static [&'static str] {
        if self.lists.is_empty() { &[ITEMS] } else { self.lists }
    }
}

/// The parameters of a call that are about pages.
struct PageOptions {
    fields: Option<fields::ChosenFields>,
    is_brief: bool,
    /// Size of the page; `None` if the client wants the whole list.
    max_bytes: Option<usize>,
    page: Option<usize>,
    /// True if the newest entries are last; the hits of a query have the best first.
    newest_last: bool,
    /// Maximum number of entries of the whole list, if it has one.
    most: Option<i64>,
}

/// Returns the schema of a page of a result. `whole` is the schema of the result itself: a list, or
/// an object with lists.
pub(super) fn schema(paged: &Paged, whole: Json) -> Json {
    let mut page = match paged.lists.is_empty() {
        true => json!({ "type": "object", "properties": { ITEMS: whole }, "required": [ITEMS] }),
        false => whole,
    };
    page["properties"]["truncated"] = json!({
        "type": "boolean",
        "description": "True if there are more entries, on later pages or beyond the \
                        method's maximum.",
    });
    page["properties"]["next"] = json!({
        "type": ["string", "null"],
        "description": "Cursor of the next page; `nil` on the last.",
    });
    page["properties"]["left"] =
        json!({ "type": "integer", "description": "Number of entries on later pages." });
    if let Some(required) = page["required"].as_array_mut() {
        required.extend(["truncated", "next", "left"].map(Json::from));
    }
    page
}

/// Adds to the schema of a list's entry the member that marks an entry as cut to fit a page.
pub(super) fn mark_as_cut(entry: &mut Json) {
    entry["properties"][cut::TRUNCATED] = json!({
        "type": "boolean",
        "description": "True if the entry is larger than a page and its longest members are cut.",
    });
}

/// Runs a method whose result has pages.
pub(super) fn run(
    method: &'static str,
    paged: &'static Paged,
    result: fn() -> &'static Json,
    call: MethodCall,
    mut params: Value,
    run: fn(MethodCall, Value) -> Result<Step, WireError>,
) -> Result<Step, WireError> {
    let given: Option<i64> = taken(&mut params, "max-bytes")?;
    let most_bytes = call.tools.limits.max_message_bytes;
    let max_bytes = given.map(|bytes| page_bytes(bytes, most_bytes)).transpose()?;
    let by_default = call.page_bytes.min(most_bytes);
    let (client, dialect) = (call.client.clone(), call.dialect);
    if let Some(cursor) = taken::<String>(&mut params, "cursor")? {
        let rest = client.take(&cursor).filter(|rest| rest.method == method);
        let rest = rest.ok_or_else(|| no_such_cursor(&cursor))?;
        let empty = Value::Map(Vec::new());
        let max_bytes = max_bytes.unwrap_or(by_default);
        return Ok(Step::Done(rest.page(empty, max_bytes, dialect, &client, most_bytes)));
    }
    let fields: Option<Vec<String>> = taken(&mut params, "fields")?;
    let fields = fields.map(|fields| fields::ChosenFields::new(&fields, paged.lists, result()));
    let is_search = !lacks(&params, "query");
    let newest_last = paged.newest_last && !is_search;
    let most = if is_search { paged.most.map(|most| most.min(MAX_HITS)) } else { paged.most };
    let mut asked = PageOptions {
        fields: fields.transpose()?,
        is_brief: !paged.brief.is_empty() && taken(&mut params, "brief")?.unwrap_or(false),
        max_bytes,
        page: paged.page,
        newest_last,
        most,
    };
    if asked.max_bytes.is_some() && (paged.page.is_some() || newest_last || most.is_some()) {
        let limit = taken(&mut params, "limit")?;
        asked.page = not_negative("limit", limit)?.or(paged.page);
        if let Some(most) = most {
            params.put_first("limit", Value::Int(most));
        }
    }
    let step = run(call, params)?;
    if asked.max_bytes.is_none() && asked.fields.is_none() && !asked.is_brief {
        return Ok(step);
    }
    let shape = move |value| asked.shape(method, paged, value, dialect, &client, most_bytes);
    shaped(step, Box::new(shape))
}

/// A function that reduces a whole result to the part that the client wants.
type PageShape = Box<dyn FnOnce(Value) -> Result<Value, WireError> + Send>;

/// Returns a step that passes its answer through `shape`. A large answer is shaped on a thread that
/// may block.
fn shaped(step: Step, shape: PageShape) -> Result<Step, WireError> {
    Ok(match step {
        Step::Done(value) => Step::Done(shape(value)?),
        Step::Await(work) => Step::Await(Box::pin(async { shaped(work.await?, shape) })),
        Step::State(reach, operation) => {
            let operation = move |engine: &mut _| match operation(engine)? {
                Finish::Now(value) if value.exceeds(PAGE_BYTES) => {
                    Ok(Finish::Later(Box::new(move || shape(value))))
                }
                Finish::Now(value) => Ok(shape(value).into()),
                Finish::Later(work) => Ok(Finish::Later(Box::new(move || shape(work()?)))),
                Finish::Refused(error) => Ok(Finish::Refused(error)),
            };
            Step::State(reach, Box::new(operation))
        }
        other => other,
    })
}

/// Removes a parameter from the parameters of a call, and decodes it; `None` if it is absent or
/// `nil`.
pub(super) fn taken<T: serde::de::DeserializeOwned>(
    params: &mut Value,
    name: &str,
) -> Result<Option<T>, WireError> {
    let given = params.take_named(name).filter(|value| *value != Value::Nil);
    let decoded = given.map(Value::decode).transpose();
    decoded.map_err(|error| param_error(name, &error.message))
}

fn page_bytes(given: i64, most: usize) -> Result<usize, WireError> {
    match usize::try_from(given) {
        Ok(bytes) if (SMALLEST_PAGE..=most).contains(&bytes) => Ok(bytes),
        _ => Err(param_error(
            "max-bytes",
            &format!("must be from {SMALLEST_PAGE} to {most}, got {given}"),
        )),
    }
}

fn no_such_cursor(cursor: &str) -> WireError {
    let message = format!(
        "there is no list with the cursor {cursor:?}: a cursor works once, for its own method and \
         connection, and the server keeps the last {LISTS_KEPT} lists; request the list again"
    );
    application(&ErrorData::NoSuchCursor { cursor }, message)
}

impl PageOptions {
    /// Reduces the entries of a result to the members that the client asks for, and the result to
    /// a page if the client takes pages.
    fn shape(
        self,
        method: &'static str,
        paged: &'static Paged,
        result: Value,
        dialect: Dialect,
        client: &Client,
        most_bytes: usize,
    ) -> Result<Value, WireError> {
        let is_list = paged.lists.is_empty();
        if is_list && !matches!(result, Value::List(_) | Value::Nil) {
            // The call asked for something other than the list, such as the number of its entries.
            return Ok(result);
        }
        let mut whole = match is_list {
            true => Value::Map(vec![(ITEMS.into(), result)]),
            false => result,
        };
        let brief = if self.is_brief { paged.brief } else { &[] };
        for (at, path) in paged.paths().iter().enumerate() {
            if let Some(list) = fields::list_at(&mut whole, path) {
                fields::shorten(list, brief);
                self.fields.iter().for_each(|chosen| chosen.keep(at, list));
            }
        }
        let Some(max_bytes) = self.max_bytes else {
            return Ok(match whole {
                Value::Map(mut entries) if is_list => {
                    entries.pop().map(|(_, v)| v).unwrap_or_default()
                }
                whole => whole,
            });
        };
        let lists: Vec<_> = paged
            .paths()
            .iter()
            .filter_map(|path| Some((*path, std::mem::take(fields::list_at(&mut whole, path)?))))
            .collect();
        let Some((_, first)) = lists.first() else {
            // The result is another one than that with the lists.
            return Ok(whole);
        };
        let entries = first.len();
        let rest = Rest {
            method,
            lists,
            newest_last: self.newest_last,
            page: self.page,
            is_clamped: self.most.is_some_and(|most| entries as i64 >= most),
            bytes: 0,
        };
        Ok(rest.page(whole, max_bytes, dialect, client, most_bytes))
    }
}

impl Rest {
    /// Fills a page with as many entries as fit, and keeps the rest for the client.
    fn page(
        mut self,
        mut page: Value,
        max_bytes: usize,
        dialect: Dialect,
        client: &Client,
        most_bytes: usize,
    ) -> Value {
        let room = max_bytes.saturating_sub(FRAME_BYTES + dialect.length_of(&page));
        // If a result is not a list itself, its first page also has the other members; later pages
        // do not.
        let has_all_room = matches!(&page, Value::Map(entries) if entries.len() <= 1);
        let taken =
            cut::fill(&mut self.lists, room, has_all_room, self.page, self.newest_last, dialect);
        for (path, items) in taken {
            fields::put_list(&mut page, path, items);
        }
        let left: usize = self.lists.iter().map(|(_, items)| items.len()).sum();
        let is_clamped = self.is_clamped;
        self.bytes = self.lists.iter().flat_map(|(_, items)| items).map(Value::weight).sum();
        // A page without room for any entry would be followed by empty pages forever.
        let next = (left > 0 && self.page != Some(0)).then(|| client.keep(self, most_bytes));
        if let Value::Map(entries) = &mut page {
            let member = |name: &str, value: Value| (Key::from(name), value);
            entries.push(member("truncated", Value::Bool(left > 0 || is_clamped)));
            entries.push(member("next", next.map_or(Value::Nil, Value::Str)));
            entries.push(member("left", Value::from(left as u64)));
        }
        page
    }
}
