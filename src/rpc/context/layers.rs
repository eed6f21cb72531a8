//! Methods about layers: the managers that a place has, and moving items between them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::item::Item;
use crate::context::place::{self, Kind, Place};
use crate::engine::{
    Engine, EngineError, Former, Layer, OpenLayer, OpenLayers, Selection, Wanted, WantedLayer,
};
use crate::files::{self, FileError};
use crate::ids::ItemId;
use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::error::param_error;
use crate::rpc::params::{MAX_NAME_BYTES, ManagerName, Name, Short, given_list, ids};
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema, Default)]
pub(super) struct OpenLayersCall {
    /// Absolute name of the root of the project; `nil` outside of a project.
    root: Option<Short>,
    /// Absolute name of the folder whose project to use if there is no `:root`; without a project,
    /// the folder itself.
    directory: Option<Short>,
    /// Absolute name of the file.
    filename: Option<Short>,
    /// Name of the buffer, if it has no file. With `:filename`, the name that the buffer had before
    /// it had a file: the items that are stored under this name move into the file's layer.
    buffer: Option<Short>,
    /// Number of the buffer, which no other buffer of this name ever has; required with `:buffer`.
    number: Option<Short>,
    /// Name or id of a session whose own manager is the last layer.
    session: Option<Name>,
    /// Names that the managers of this place had before there were layers: the names of the buffer
    /// and of the project's folder. If all items of such a manager belong to the file, or else to
    /// the project, the items move into that layer, provided that it has room for all of them.
    formerly: Option<Vec<ManagerName>>,
}

/// A manager whose items moved into a layer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TakenOver")]
struct TakenOver {
    /// Name of the manager.
    manager: String,
    /// The layer.
    layer: Layer,
    /// Number of items.
    items: u64,
}

/// A manager that belongs to no layer, but whose items the caller may expect.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ManagerElsewhere")]
struct Elsewhere {
    /// Name of the manager.
    manager: String,
    /// Label to show.
    label: String,
    /// Number of items.
    items: u64,
}

/// The open layers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OpenLayers")]
pub(super) struct Opened {
    /// Layers from general to specific.
    layers: Vec<OpenLayer>,
    /// Managers whose items moved into a layer now.
    taken_over: Vec<TakenOver>,
    /// Managers whose items are not part of the open layers: those of this folder with another
    /// remote, those of an earlier buffer with this name, and those named in `:formerly` whose
    /// items did not move.
    elsewhere: Vec<Elsewhere>,
}

pub(super) fn open_layers(call: Call, given: OpenLayersCall) -> Result<Step, WireError> {
    let spot = Spot::of(&given)?;
    let formerly = given.formerly.into_iter().flatten().map(|ManagerName(name)| name);
    let find = former_managers(formerly.collect(), spot.file.is_some());
    let former = spot.compared(call.tools.engine.ask_blocking(find)?);
    let wanted = Wanted {
        layers: spot.layers()?,
        session: given.session.map(|Name(name)| name),
        former,
        root: spot.folder.as_ref().map(|(_, root)| text(root)),
    };
    Step::state(move |engine| Ok(shown(engine.open_layers(wanted)?)))
}

/// Returns the layers of a folder, or those that exist without a folder. Reads the disk.
pub(in crate::rpc) fn layers_of(directory: Option<Short>) -> Result<Wanted, WireError> {
    let spot = Spot::of(&OpenLayersCall { directory, ..OpenLayersCall::default() })?;
    let root = spot.folder.as_ref().map(|(_, root)| text(root));
    Ok(Wanted { layers: spot.layers()?, session: None, former: Vec::new(), root })
}

fn shown(open: OpenLayers) -> Opened {
    let taken = open.taken_over.into_iter().filter_map(|held| {
        Some(TakenOver { layer: held.layer?, manager: held.manager, items: held.items })
    });
    let elsewhere = open.elsewhere.into_iter().map(|held| Elsewhere {
        label: place::label(&held.manager, None),
        manager: held.manager,
        items: held.items,
    });
    Opened { layers: open.layers, taken_over: taken.collect(), elsewhere: elsewhere.collect() }
}

/// The places that a call is about, as they are on the disk.
struct Spot {
    /// Folder of the project, or the folder that is used in its place.
    folder: Option<(Kind, PathBuf)>,
    /// Git remote of the project, in its normal form.
    remote: Option<String>,
    file: Option<PathBuf>,
    buffer: Option<String>,
}

impl Spot {
    /// Finds the places of a call on the disk.
    fn of(given: &OpenLayersCall) -> Result<Self, WireError> {
        let folder = match (&given.root, &given.directory) {
            (Some(root), _) => Some((Kind::Project, true_name(root)?)),
            (None, Some(directory)) => {
                let folder = true_name(directory)?;
                Some(match files::project_root(&folder).filter(|_| !is_remote(directory)) {
                    Some(root) => (Kind::Project, root),
                    None => (Kind::Folder, folder),
                })
            }
            (None, None) => None,
        };
        let is_local =
            ![&given.root, &given.directory].into_iter().flatten().any(|it| is_remote(it));
        let project = folder.as_ref().filter(|(kind, _)| is_local && *kind == Kind::Project);
        let remote = project.and_then(|(_, root)| files::remote_of(root));
        let buffer = match (&given.buffer, &given.number) {
            (Some(buffer), Some(number)) => Some(place::numbered(buffer, number)),
            (None, None) => None,
            _ => return Err(param_error("number", "and buffer must be given together")),
        };
        Ok(Self {
            folder,
            remote: remote.as_deref().and_then(place::normal_remote),
            file: given.filename.as_deref().map(true_name).transpose()?,
            buffer,
        })
    }

    /// Returns the layers from general to specific.
    fn layers(&self) -> Result<Vec<WantedLayer>, WireError> {
        let shared = ManagerName::default().0;
        let mut layers =
            vec![WantedLayer { layer: Layer::Everywhere, manager: shared, once: None }];
        let mut add = |layer, param, kind, name: &str, remote, once| {
            let manager = Place { remote, ..Place::new(kind, name) }.manager();
            if manager.len() > MAX_NAME_BYTES {
                let message = format!(
                    "is too long: the name of its manager would have over {MAX_NAME_BYTES} bytes"
                );
                return Err(param_error(param, &message));
            }
            layers.push(WantedLayer { layer, manager, once });
            Ok(())
        };
        let remote = self.remote.as_deref();
        if let Some((kind, folder)) = &self.folder {
            add(Layer::Project, "root", *kind, &text(folder), remote, None)?;
        }
        if let Some(file) = &self.file {
            let once = self.buffer.as_deref().map(|name| Place::new(Kind::Buffer, name).manager());
            add(Layer::File, "filename", Kind::File, &text(file), remote, once)?;
        } else if let Some(buffer) = &self.buffer {
            add(Layer::Buffer, "buffer", Kind::Buffer, buffer, None, None)?;
        }
        Ok(layers)
    }

    /// Finds the layer that the items of each former manager belong to.
    fn compared(&self, found: Vec<Found>) -> Vec<Former> {
        let mut known: HashMap<String, PathBuf> = HashMap::new();
        // Asks the disk only once for each name.
        let mut resolved = |name: &str| {
            let look_up = || true_name(name).unwrap_or_else(|_| PathBuf::from(name));
            known.entry(name.to_owned()).or_insert_with(look_up).clone()
        };
        let compared = found.into_iter().map(|Found { manager, items, is_named }| {
            let ids = items.iter().map(|item| item.id).collect();
            let to = self.layer_of(&manager, &items, &mut resolved);
            Former { manager, ids, to, is_named }
        });
        compared.collect()
    }

    /// Returns the layer that all items belong to; `None` if there is none, or if the call has no
    /// folder. An item that names neither a file nor a project belongs to any layer, but at least
    /// one item must say where it is from. A manager with the name of the project's folder always
    /// belongs to the project.
    fn layer_of(
        &self,
        manager: &str,
        items: &[Arc<Item>],
        mut resolved: impl FnMut(&str) -> PathBuf,
    ) -> Option<Layer> {
        let (kind, root) = self.folder.as_ref()?;
        if manager.ends_with('/') && resolved(manager) == *root {
            return Some(Layer::Project);
        }
        let mut from = Vec::new();
        for item in items {
            let file = item.metadata.filename().map(&mut resolved);
            let project = item.metadata.text("project").map(&mut resolved);
            from.push((file, project));
        }
        from.retain(|(file, project)| file.is_some() || project.is_some());
        let is_here = |file: &Option<PathBuf>| file.is_none() || *file == self.file;
        if self.file.is_some()
            && from.iter().all(|(file, _)| is_here(file))
            && from.iter().any(|(file, _)| file.is_some())
        {
            return Some(Layer::File);
        }
        let is_inside = |(file, project): &(Option<PathBuf>, Option<PathBuf>)| match kind {
            Kind::Project => match project {
                Some(project) => project == root,
                None => file.as_ref().is_some_and(|file| file.starts_with(root)),
            },
            _ => project.is_none() && file.as_ref().and_then(|file| file.parent()) == Some(root),
        };
        (!from.is_empty() && from.iter().all(is_inside)).then_some(Layer::Project)
    }
}

/// A former manager: one with a name from the time before there were layers. Comes with its items.
struct Found {
    manager: String,
    items: Vec<Arc<Item>>,
    is_named: bool,
}

/// Returns an operation that reads the managers with these names. The manager of a file may also
/// have a name that Emacs made unique, such as `NEWS<app>`.
fn former_managers(
    names: Vec<String>,
    is_file: bool,
) -> impl FnOnce(&mut Engine) -> Result<Vec<Found>, EngineError> + Send {
    move |engine| {
        let mut found: Vec<Found> = Vec::new();
        for name in names {
            let unique = match is_file {
                true => engine.managers_beginning(&format!("{name}<"))?,
                false => Vec::new(),
            };
            let unique = unique.into_iter().filter(|name| name.ends_with('>'));
            for (manager, is_named) in
                unique.map(|name| (name, false)).chain([(name.clone(), true)])
            {
                let is_known = found.iter().any(|found| found.manager == manager);
                if is_known || manager == place::SHARED || Place::of(&manager).is_some() {
                    continue;
                }
                let managers = vec![manager.clone()];
                let views = engine.select(&Selection { managers, ..Selection::default() })?;
                let items = views.into_iter().map(|view| view.item).collect();
                found.push(Found { manager, items, is_named });
            }
        }
        Ok(found)
    }
}

/// Returns the name of a file or folder on this machine with its links resolved. From the name of
/// one elsewhere, which may be a URL, only removes superfluous slashes. Fails only with
/// [`FileError::NotAbsolute`].
fn true_name(name: &str) -> Result<PathBuf, FileError> {
    match files::absolute(name) {
        Ok(path) => Ok(files::true_name(&path)),
        Err(error @ FileError::NotAbsolute { .. }) if !name.contains("://") => Err(error),
        Err(_) => {
            let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
            Ok(PathBuf::from(format!("/{}", parts.join("/"))))
        }
    }
}

fn is_remote(name: &str) -> bool {
    files::absolute(name).is_err()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Transfer {
    /// Id of the item.
    id: Option<ItemId>,
    /// Ids of several items; `:id` or `:ids` is required.
    #[serde(default, deserialize_with = "given_list")]
    ids: Option<Vec<ItemId>>,
    manager: Option<ManagerName>,
    /// Manager to move the items to.
    into: Name,
}

/// Items that moved to another manager.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TransferredItems")]
pub(super) struct Transferred {
    /// Ids of the items, which stay the same.
    ids: Vec<ItemId>,
    /// Manager that has the items now.
    into: String,
    /// Number of items in `:into` now.
    count: usize,
    /// Total tokens of the items in `:into` now.
    total_tokens: u64,
    /// Ids of the items evicted to make room, oldest first.
    evicted: Vec<ItemId>,
}

pub(super) fn transfer_items(_: Call, given: Transfer) -> Result<Step, WireError> {
    let ids = ids(given.id, given.ids)?;
    let (from, into) = (given.manager.unwrap_or_default().0, given.into.0);
    if from == into {
        return Err(param_error("into", "must not be the manager that the items are in"));
    }
    Step::state(move |engine| {
        let added = engine.transfer("transfer-items", &from, &ids, &into)?;
        let (count, total_tokens) = engine.size(&into)?;
        let (ids, evicted) = (ItemId::all(&added.ids), ItemId::all(&added.evicted));
        Ok(Transferred { ids, into, count, total_tokens, evicted })
    })
}
