//! What machines tell each other: changes, each signed by the machine that made it.
//!
//! A machine numbers its changes from 1, without gaps. A sum runs over all of them, and each change
//! is signed together with the sum up to it. So nobody can forge, drop or reorder changes, and any
//! machine can pass on those of another. Whatever a machine made stays its own: another machine
//! adds changes about it, and never replaces one.

mod body;
mod fit;
mod fitted;
pub(crate) mod hub;
mod key;
mod talk;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::body::{
    Body, Edited, Field, Memory, Of, OneSaid, SyncItem, SyncMark, SyncMessages, SyncProject,
    SyncScope, SyncSession,
};
pub(crate) use self::fit::cut;
pub(crate) use self::key::{
    MachineIdentity, MachineKey, SUM, Sum, hash, hex, is_signed, sum, unhex,
};
pub(crate) use self::talk::{Brought, MOST_BYTES, MOST_NAMED, SyncRequest, talk};

/// Version of the exchange. Machines exchange only if they have the same.
pub(crate) const PROTOCOL: u64 = 1;
/// Size of the changes in one answer, in bytes, after which no further change is added.
pub(crate) const BATCH_BYTES: usize = 2 << 20;
/// Maximum number of changes in one answer.
pub(crate) const MOST_CHANGES: usize = 2_000;
/// Maximum size of the body of a change, in bytes.
pub(crate) const LARGEST_BODY: usize = 24 << 20;
/// Maximum number of machines whose changes are kept.
pub(crate) const MOST_MACHINES: usize = 1_000;

/// How far the changes of a machine are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SeenChanges")]
pub(crate) struct SeenChanges {
    /// Id of the machine.
    pub machine: String,
    /// Number of the last change that is known.
    pub seq: u64,
    /// Beginning of the sum over the changes up to that one, in hexadecimal.
    pub sum: String,
}

/// A change on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SignedChange")]
pub(crate) struct SentChange {
    /// Id of the machine that made the change.
    pub machine: String,
    /// Number of the change.
    pub seq: u64,
    /// Signature of the machine, in hexadecimal.
    pub sign: String,
    /// The change, as JSON; absent if a later change replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Hash of the body, in hexadecimal; absent if the body is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// What another machine is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Exchanged")]
pub(crate) struct GivenChanges {
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
    pub hub: Option<Box<hub::HubStatus>>,
}

/// Numbers of things that were taken from another machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TakenChanges")]
pub(crate) struct TakenCounts {
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
