//! What machines tell each other: changes, each signed by the machine that made it.
//!
//! A machine numbers its changes from 1, without gaps. A sum runs over all of them, and each change
//! is signed together with the sum up to it. So nobody can forge, drop or reorder changes, and any
//! machine can pass on those of another. Whatever a machine made stays its own: another machine
//! adds changes about it, and never replaces one.

mod body;
mod fit;
mod fitted;
mod key;
mod talk;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::body::{
    Body, Edited, Field, Memory, Of, OneSaid, SyncItem, SyncMark, SyncMessages, SyncProject,
    SyncScope, SyncSession,
};
pub use self::fit::{LARGEST_NUMBER, cut, fit_time};
pub use self::key::{MachineIdentity, MachineKey, SUM, Sum, hash, hex, is_signed, sum, unhex};
pub use self::talk::{Brought, MOST_BYTES, MOST_NAMED, SyncRequest, talk};

/// Version of the exchange. Machines exchange only if they have the same.
pub const PROTOCOL: u64 = 1;
/// Size of the changes in one answer, in bytes, after which no further change is added.
pub const BATCH_BYTES: usize = 2 << 20;
/// Maximum number of changes in one request and in one answer.
pub const MOST_CHANGES: usize = 2_000;
/// Maximum number of messages in a change.
pub const MOST_SAID: u64 = 200;
/// Maximum size of the body of a change, in bytes.
pub const LARGEST_BODY: usize = 24 << 20;
/// Maximum number of machines whose changes are kept.
pub const MOST_MACHINES: usize = 1_000;

/// How far the changes of a machine are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SeenChanges")]
pub struct SeenChanges {
    /// Id of the machine.
    pub machine: String,
    /// Number of the last change that is known.
    pub seq: u64,
    /// Beginning of the sum over the changes up to that one, in hexadecimal.
    pub sum: String,
    /// Numbers of changes that are said to be replaced, although no later one that replaces them is
    /// known. They are wanted if they have a body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<u64>,
}

/// A change on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SignedChange")]
pub struct SentChange {
    /// Id of the machine that made the change.
    pub machine: String,
    /// Number of the change.
    pub seq: u64,
    /// Signature of the machine, in hexadecimal.
    pub sign: String,
    /// The change, as JSON; absent if a later change replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// What stands for the body; absent if the body is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedBody>,
}

/// What stands for the body of a change that a later change of the same machine replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplacedBody {
    /// What both changes are about.
    pub about: String,
    /// Hash of the body, in hexadecimal.
    pub hash: String,
}

/// What another machine is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Exchanged")]
pub struct GivenChanges {
    /// Id of this machine.
    pub machine: String,
    /// Name of this machine.
    pub name: String,
    /// How far this machine knows the changes of all machines.
    pub known: Vec<SeenChanges>,
    /// Changes that the other machine lacks, in the order in which they came here.
    pub changes: Vec<SentChange>,
    /// True if there are more such changes.
    pub more: bool,
    /// Changes that were taken, by what they are about.
    pub taken: TakenCounts,
    /// The hub, if the call was about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<Box<HubStatus>>,
}

/// Numbers of things that were taken from another machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TakenChanges")]
pub struct TakenCounts {
    /// New sessions.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
    /// Memories.
    pub memories: u64,
    /// Managers whose items are here as sets.
    pub marks: u64,
    /// Edits of names, deletions and restorations.
    pub edits: u64,
}

/// The hub, and what this machine shares.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Hub")]
pub struct HubStatus {
    /// Address in the configuration.
    pub address: String,
    /// User who is logged in; absent if the hub does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Owner of the tables, who can read everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Why the hub cannot be used; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Projects that are shared; with `preview`, the project as it would be.
    pub projects: Vec<SharedProject>,
    /// Texts that are held back, because they look like secrets; only with `preview`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
}

/// A project, and what is shared of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedProject {
    /// Folder of the project.
    pub project: String,
    /// What the project is called on all machines.
    pub identity: String,
    /// Role whose members may read; `public` for everybody who may use the hub.
    pub readers: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of memories.
    pub memories: u64,
    /// Number of texts that are held back, because they look like secrets.
    pub held: u64,
}
