//! The marked items of a project as they are now, and their renderings.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value as Json, json};

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
struct Listed {
    id: String,
    content: String,
    metadata: Json,
    covered_by: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) tokens: u64,
    pub(super) report: Vec<Verdict>,
}

/// The items of a project at a revision.
pub(super) struct Now {
    pub(super) managers: Vec<String>,
    pub(super) digests: HashMap<String, u64>,
    pub(super) revision: u64,
    /// True if an editor did not send its changes in time.
    pub(super) is_late: bool,
}

#[derive(Deserialize)]
struct EditorsAsked {
    late: u64,
}

/// The open layers of a project.
#[derive(Deserialize)]
struct Opened {
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    manager: String,
    version: u64,
}

impl Now {
    /// Asks editors for their changes and lists the project's items, which brings live items up to
    /// date with their files. Both may change the revision, so it is read last.
    pub(super) async fn of(link: &Link, project: &Project) -> Result<Self, Trouble> {
        let is_late = edits(link).await?;
        let (managers, _) = layers(link, project).await?;
        let items: Option<Vec<Listed>> =
            link.call("list_items", json!({ "managers": managers })).await?;
        let (managers, revision) = layers(link, project).await?;
        let shown = items.into_iter().flatten().filter(|item| item.covered_by.is_none());
        let digests = shown.map(|item| (item.id.clone(), digest(&item))).collect();
        Ok(Self { managers, digests, revision, is_late })
    }
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

/// Names the items that were left out or cut, in one line; empty if there are none.
pub(super) fn named(left_out: &[Verdict]) -> String {
    let each: Vec<_> =
        left_out.iter().map(|verdict| format!("{} ({})", verdict.id, verdict.fate)).collect();
    match each.is_empty() {
        true => String::new(),
        false => {
            format!("\nNot whole: {}. `explain` says why; `read` shows an item.\n", each.join(", "))
        }
    }
}

/// Returns a hash of the parts of an item that a model sees: the text, the place and the staleness.
fn digest(item: &Listed) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(item.content.as_bytes());
    for member in ["filename", "start_line", "end_line", "stale"] {
        hasher.update(b"\0").update(item.metadata[member].to_string().as_bytes());
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}

/// Returns the managers of the project's layers, from the most general to the most specific, and
/// the newest of their versions.
pub(super) async fn layers(link: &Link, project: &Project) -> Result<(Vec<String>, u64), Trouble> {
    let place = json!({ "directory": project.directory() });
    let Opened { layers } = link.call("open_layers", place).await?;
    let newest = layers.iter().map(|layer| layer.version).max().unwrap_or(0);
    Ok((layers.into_iter().map(|layer| layer.manager).collect(), newest))
}

/// Has editors send their unsaved text. Returns whether one did not answer in time.
pub(super) async fn edits(link: &Link) -> Result<bool, Trouble> {
    let EditorsAsked { late } = link.call("ask_editors", json!({})).await?;
    Ok(late > 0)
}
