//! The marked items of a project as they are now, and their renderings.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::answer::Trouble;
use super::link::ServerLink;

/// The outcome of rendering an item.
#[derive(Deserialize)]
pub(super) struct MarkedVerdict {
    pub(super) id: String,
    pub(super) fate: String,
    pub(super) tokens: u64,
    pub(super) reason: String,
}

#[derive(Deserialize)]
pub(super) struct MarkedText {
    pub(super) text: String,
    pub(super) tokens: u64,
    pub(super) report: Vec<MarkedVerdict>,
}

/// The marked items of a project at one revision.
#[derive(Deserialize)]
pub(super) struct Now {
    pub(super) managers: Vec<String>,
    #[serde(rename = "items", deserialize_with = "digests")]
    pub(super) digests: Digests,
    pub(super) revision: u64,
    /// Number of editors that did not send their unsaved text in time.
    pub(super) late_editors: u64,
}

/// Digests of items as an agent sees the items, by item id.
pub(super) type Digests = BTreeMap<String, String>;

/// An item with its digest, as the server lists it.
#[derive(Deserialize)]
struct DigestedItem {
    id: String,
    digest: String,
}

/// Reads a list of items with their digests.
pub(super) fn digests<'de, D: Deserializer<'de>>(from: D) -> Result<Digests, D::Error> {
    let items = Vec::<DigestedItem>::deserialize(from)?;
    Ok(items.into_iter().map(|item| (item.id, item.digest)).collect())
}

impl MarkedVerdict {
    /// Returns whether the item was rendered in full.
    pub(super) fn is_kept(&self) -> bool {
        self.fate == "kept"
    }
}

pub(super) async fn rendered(
    link: &ServerLink,
    managers: &[String],
    ids: Option<&[String]>,
    budget: u64,
) -> Result<MarkedText, Trouble> {
    let mut params = json!({ "managers": managers, "max_tokens": budget });
    if let Some(ids) = ids {
        params["ids"] = json!(ids);
    }
    link.call("render_items", params).await
}

/// Returns a line that names the items that were left out or cut; empty if there are none.
pub(super) fn named(report: &[MarkedVerdict]) -> String {
    let left_out = report.iter().filter(|verdict| !verdict.is_kept());
    let each: Vec<_> = left_out.map(|it| format!("{} ({})", it.id, it.fate)).collect();
    if each.is_empty() {
        return String::new();
    }
    let each = each.join(", ");
    format!("\nCut or left out: {each}. `explain` says why; `read` shows an item.\n")
}
