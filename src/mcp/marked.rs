//! The marked items of a project as they are now, and their renderings.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::answer::Trouble;
use super::link::Link;
use super::project::Project;

/// The outcome of rendering an item.
#[derive(Deserialize, Clone)]
pub(super) struct Verdict {
    pub(super) id: String,
    pub(super) fate: String,
    pub(super) tokens: u64,
    pub(super) reason: String,
}

#[derive(Deserialize)]
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) tokens: u64,
    pub(super) report: Vec<Verdict>,
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
struct Item {
    id: String,
    digest: String,
}

/// Reads a list of items with their digests.
pub(super) fn digests<'de, D: Deserializer<'de>>(from: D) -> Result<Digests, D::Error> {
    let items = Vec::<Item>::deserialize(from)?;
    Ok(items.into_iter().map(|item| (item.id, item.digest)).collect())
}

/// The result of the method `open-layers`.
#[derive(Deserialize)]
struct Opened {
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    manager: String,
}

pub(super) async fn rendered(
    link: &Link,
    managers: &[String],
    ids: Option<&[&String]>,
    budget: u64,
) -> Result<Rendered, Trouble> {
    let mut params = json!({ "managers": managers, "max_tokens": budget });
    if let Some(ids) = ids {
        params["ids"] = json!(ids);
    }
    link.call("render_items", params).await
}

pub(super) fn left_out(report: &[Verdict]) -> Vec<Verdict> {
    report.iter().filter(|verdict| verdict.fate != "kept").cloned().collect()
}

/// Returns a line that names the items that were left out or cut; empty if there are none.
pub(super) fn named(left_out: &[Verdict]) -> String {
    let each: Vec<_> =
        left_out.iter().map(|verdict| format!("{} ({})", verdict.id, verdict.fate)).collect();
    match each.is_empty() {
        true => String::new(),
        false => {
            format!(
                "\nCut or left out: {}. `explain` says why; `read` shows an item.\n",
                each.join(", ")
            )
        }
    }
}

/// Returns the managers of the project's layers, from the most general to the most specific.
pub(super) async fn layers(link: &Link, project: &Project) -> Result<Vec<String>, Trouble> {
    let place = json!({ "directory": project.directory() });
    let Opened { layers } = link.call("open_layers", place).await?;
    Ok(layers.into_iter().map(|layer| layer.manager).collect())
}

/// Asks the editors to send their unsaved text to the server.
pub(super) async fn edits(link: &Link) -> Result<(), Trouble> {
    let IgnoredAny = link.call("ask_editors", json!({})).await?;
    Ok(())
}
