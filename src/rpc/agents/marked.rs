//! The marked items of a project as they are now, so that a program that serves an agent learns
//! with one call what to give the agent.

use schemars::JsonSchema;
use serde::Serialize;

use crate::agent::refresh;
use crate::context::item::Item;
use crate::context::repeat::covered;
use crate::engine::{Engine, EngineError, Selection, Versioned, View, WantedLayers};
use crate::ids::ItemId;
use crate::rpc::call::MethodCall;
use crate::value::json::json_text;
use crate::wire::message::WireError;

/// Names of the metadata that agents are shown, besides the content.
const SHOWN: [&str; 4] = ["filename", "start-line", "end-line", "stale"];

/// The marked items of a project.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MarkedItems")]
pub(super) struct Marked {
    /// Managers of the project, from general to specific.
    managers: Vec<String>,
    /// Highest version among the managers in `:managers`.
    revision: u64,
    /// Number of editors that did not answer in time; their unsaved text may be missing.
    late_editors: usize,
    /// The items that a rendering contains, each with a digest of what an agent is shown.
    items: Vec<MarkedItem>,
}

/// A marked item.
#[derive(Serialize, JsonSchema)]
struct MarkedItem {
    /// Id of the item.
    id: ItemId,
    /// Digest of the text, the place and the staleness of the item.
    digest: String,
}

/// The items of a project, before the files of live items are read.
pub(super) struct FoundItems {
    managers: Vec<String>,
    views: Vec<View>,
}

impl FoundItems {
    /// Selects the items of the layers.
    pub(super) fn of(engine: &mut Engine, layers: WantedLayers) -> Result<Self, EngineError> {
        let layers = engine.open_layers(layers)?.layers;
        let managers: Vec<String> = layers.into_iter().map(|layer| layer.manager).collect();
        let chosen = Selection { managers: managers.clone(), ..Selection::default() };
        Ok(Self { views: engine.select(&chosen)?, managers })
    }

    /// Brings live items up to date with their files, which may give their managers newer versions.
    /// Reads the disk. Copies `late_editors` to the result.
    pub(super) fn up_to_date(
        self,
        call: &MethodCall,
        late_editors: usize,
    ) -> Result<Marked, WireError> {
        let Self { managers, views } = self;
        let views = refresh::current(&call.tools, &*call.tools.counter, call.caller, views);
        let items: Vec<&Item> = views.iter().map(|view| &*view.item).collect();
        let shown = items.iter().zip(covered(&items)).filter(|(_, by)| by.is_none());
        let items = shown.map(|(item, _)| MarkedItem { id: item.id, digest: digest(item) });
        let items = items.collect();
        let named: Vec<_> = managers.iter().cloned().map(Versioned::Manager).collect();
        let newest = move |engine: &mut Engine| {
            named.iter().try_fold(0, |newest, of| Ok(engine.version(of)?.max(newest)))
        };
        let revision = call.tools.engine.ask_blocking(newest)?;
        Ok(Marked { managers, revision, late_editors, items })
    }
}

/// Returns a digest of the parts of an item that an agent is shown.
fn digest(item: &Item) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(item.content.as_bytes());
    for name in SHOWN {
        let value = item.metadata.get(name).map_or_else(|| "null".to_owned(), json_text);
        hasher.update(b"\0").update(value.as_bytes());
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    format!("{:016x}", u64::from_le_bytes(first))
}
