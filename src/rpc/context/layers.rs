//! The method about layers, the managers that a place has.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unsaved::ask;
use crate::context::place::{self, Place, PlaceKind};
use crate::engine::{Layer, OpenLayer, OpenLayers, WantedLayer, WantedLayers};
use crate::files::{self, FileError};
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::editors::Heard;
use crate::rpc::error::param_error;
use crate::rpc::params::{MAX_NAME_BYTES, ManagerName, Name, Short};
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema, Default)]
pub(super) struct OpenLayersCall {
    /// Absolute name of the root of the project; `nil` outside of a project.
    root: Option<Short>,
    /// Absolute name of the folder whose project to use if there is no `:root`. A folder outside of
    /// any project counts as one.
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
    /// First ask the editors (the clients that subscribed to `text-wanted`) for text that is not
    /// saved. They send what changed in live items. Waits for their answers, but at most 200 ms.
    #[serde(default)]
    ask_editors: bool,
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
pub(super) struct LayersResult {
    /// Folder of the project; `nil` if the call names none.
    root: Option<String>,
    /// Layers from general to specific.
    layers: Vec<OpenLayer>,
    /// Managers whose items moved into a layer now.
    taken_over: Vec<TakenOver>,
    /// Managers whose items are not part of the open layers: those of this folder with another
    /// remote, and those of a former buffer with this name.
    elsewhere: Vec<Elsewhere>,
    /// Number of editors that were asked; only with `:ask-editors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_editors: Option<usize>,
    /// Number of the asked editors that did not answer in time; their unsaved text may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    late_editors: Option<usize>,
}

pub(super) fn open_layers(call: MethodCall, given: OpenLayersCall) -> Result<Step, WireError> {
    let spot = Spot::of(&given)?;
    let root = spot.root();
    let session = given.session.map(|Name(name)| name);
    let wanted = WantedLayers { layers: spot.layers()?, session, root: root.clone() };
    let open =
        |heard| Step::state(move |engine| Ok(shown(root, engine.open_layers(wanted)?, heard)));
    if !given.ask_editors {
        return open(None);
    }
    Ok(Step::Await(Box::pin(async move { open(Some(ask(&call, None).await?)) })))
}

/// Returns the layers of a folder, or those that exist without a folder. Reads the disk.
pub(in crate::rpc) fn layers_of(directory: Option<Short>) -> Result<WantedLayers, WireError> {
    let spot = Spot::of(&OpenLayersCall { directory, ..OpenLayersCall::default() })?;
    Ok(WantedLayers { layers: spot.layers()?, session: None, root: spot.root() })
}

fn shown(root: Option<String>, open: OpenLayers, heard: Option<Heard>) -> LayersResult {
    let taken = open.taken_over.into_iter().filter_map(|held| {
        Some(TakenOver { layer: held.layer?, manager: held.manager, items: held.items })
    });
    let elsewhere = open.elsewhere.into_iter().map(|held| Elsewhere {
        label: place::label(&held.manager, None),
        manager: held.manager,
        items: held.items,
    });
    LayersResult {
        root,
        layers: open.layers,
        taken_over: taken.collect(),
        elsewhere: elsewhere.collect(),
        asked_editors: heard.as_ref().map(|heard| heard.asked),
        late_editors: heard.map(|heard| heard.late),
    }
}

/// The places that a call is about, as they are on the disk.
struct Spot {
    /// Folder of the project.
    folder: Option<PathBuf>,
    /// Git remote of the project, in its normal form.
    remote: Option<String>,
    file: Option<PathBuf>,
    buffer: Option<String>,
}

impl Spot {
    /// Finds the places of a call on the disk.
    fn of(given: &OpenLayersCall) -> Result<Self, WireError> {
        let folder = match (&given.root, &given.directory) {
            (Some(root), _) => Some(true_name(root)?),
            (None, Some(directory)) => {
                let folder = true_name(directory)?;
                let root = files::project_root(&folder).filter(|_| !is_remote(directory));
                Some(root.unwrap_or(folder))
            }
            (None, None) => None,
        };
        let is_local =
            ![&given.root, &given.directory].into_iter().flatten().any(|it| is_remote(it));
        let remote = folder.as_deref().filter(|_| is_local).and_then(files::remote_of);
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

    /// Returns the folder of the project.
    fn root(&self) -> Option<String> {
        self.folder.as_deref().map(text)
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
        if let Some(root) = self.root() {
            add(Layer::Project, "root", PlaceKind::Project, &root, remote, None)?;
        }
        if let Some(file) = &self.file {
            let once =
                self.buffer.as_deref().map(|name| Place::new(PlaceKind::Buffer, name).manager());
            add(Layer::File, "filename", PlaceKind::File, &text(file), remote, once)?;
        } else if let Some(buffer) = &self.buffer {
            add(Layer::Buffer, "buffer", PlaceKind::Buffer, buffer, None, None)?;
        }
        Ok(layers)
    }
}

/// Returns the name of a file or folder on this machine with its links resolved. From a name on
/// another machine, which may be a URL, only removes superfluous slashes. Fails only with
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
