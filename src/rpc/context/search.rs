//! The method that searches items by words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::refresh::current;
use crate::context::item::Kind;
use crate::engine::View;
use crate::ids::ItemId;
use crate::retrieval::excerpt::excerpt;
use crate::retrieval::scan::scores;
use crate::retrieval::words::stems;
use crate::rpc::call::Call;
use crate::rpc::params::{ManagerName, Short, given_list, not_negative, selection};
use crate::rpc::{Finish, Step};
use crate::store::MOST_WORDS;
use crate::wire::message::WireError;

/// Default number of hits.
const DEFAULT_HITS: usize = 20;

#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchItems {
    /// Words to find.
    query: Short,
    manager: Option<ManagerName>,
    /// Several managers instead of one, from general to specific. An item that a later item
    /// repeats is not searched.
    #[serde(default, deserialize_with = "given_list")]
    managers: Option<Vec<ManagerName>>,
    #[schemars(description = format!("Maximum number of hits; defaults to {DEFAULT_HITS}."))]
    limit: Option<i64>,
}

/// An item that a search found.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ItemHit")]
pub(super) struct ItemHit {
    /// Id of the item, `ctx-N`.
    id: ItemId,
    /// Manager that holds the item.
    manager: String,
    /// Type of the content.
    r#type: Kind,
    /// File of the item; `nil` if it has none.
    filename: Option<String>,
    /// First line of the item in its file; `nil` if the item is a whole file or has no file.
    start_line: Option<u64>,
    /// Last line of the item in its file; `nil` if `:start-line` is `nil`.
    end_line: Option<u64>,
    /// Tokens of the content.
    tokens: u64,
    /// Score of the hit; higher is better.
    score: f64,
    /// Text around the first word that matches; the beginning of the text if only the file name
    /// matches.
    excerpt: String,
}

pub(super) fn search_items(call: Call, given: SearchItems) -> Result<Step, WireError> {
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_HITS);
    let chosen = selection(given.manager, given.managers, None, None)?;
    let query = given.query.0;
    Step::then(move |engine| {
        let views = engine.select(&chosen)?;
        Ok(Finish::later(move || {
            let views = current(&call.tools, &*call.tools.counter, call.caller, views);
            Ok(best(&views, &query, limit))
        }))
    })
}

/// Returns the items that have words of the query, best first; at most `limit`.
fn best(views: &[View], query: &str, limit: usize) -> Vec<ItemHit> {
    let mut sought = stems(query);
    sought.sort_unstable();
    sought.dedup();
    sought.truncate(MOST_WORDS);
    let texts = views
        .iter()
        .map(|View { item, .. }| [&*item.content, item.metadata.filename().unwrap_or_default()]);
    let scores = scores(texts, &sought);
    let mut found: Vec<(&View, f64)> =
        views.iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
    // The sort is stable: items with equal scores keep their order.
    found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    found.into_iter().take(limit).map(|(view, score)| hit(view, score, query)).collect()
}

fn hit(view: &View, score: f64, query: &str) -> ItemHit {
    let item = &view.item;
    let (start_line, end_line) = item.metadata.lines().unzip();
    ItemHit {
        id: item.id,
        manager: view.manager.to_string(),
        r#type: item.kind,
        filename: item.metadata.filename().map(str::to_owned),
        start_line,
        end_line,
        tokens: item.tokens,
        score,
        excerpt: excerpt(&item.content, query),
    }
}
