//! Stored facts about other machines: plain data.

/// A machine: this one, or one whose changes are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachineRow {
    /// Id of the machine.
    pub id: String,
    /// Name of the machine as shown here.
    pub name: String,
    /// Mark of the file with the secret key; empty if this machine had the id before it got another
    /// key; `None` for another machine.
    pub place: Option<String>,
    /// Number of its last change that is known here.
    pub seq: u64,
    /// Sum over its changes up to that one.
    pub sum: Vec<u8>,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeRow {
    /// Place in the order in which the changes came here; `None` for a new one.
    pub id: Option<u64>,
    /// Machine that made it.
    pub machine: String,
    /// Number of the change at that machine.
    pub seq: u64,
    /// Text with which a later change replaces this one.
    pub about: Option<String>,
    /// The body; `None` if it is messages, or was replaced.
    pub body: Option<String>,
    /// Hash of the body.
    pub digest: Vec<u8>,
    /// Sum over the changes up to this one.
    pub sum: Vec<u8>,
    /// Signature.
    pub sign: Vec<u8>,
    /// Number of the session of which the body has messages.
    pub session: Option<u64>,
    /// First of these messages.
    pub first: Option<u64>,
    /// Last of these messages.
    pub last: Option<u64>,
}

/// A row as all machines name it, and what was last exchanged of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownRow {
    /// Kind of the row: `session`, `memory`, `manager`, or `set` for the copy of a manager's items.
    pub kind: String,
    /// Number of the row here.
    pub row: u64,
    /// Machine that made it.
    pub machine: String,
    /// Number of the row there.
    pub number: u64,
    /// Name that it has here.
    pub name: String,
    /// Time at which it was deleted or forgotten.
    pub gone: Option<i64>,
    /// Number of messages of a session; version of a manager.
    pub count: u64,
    /// Time of the edit that gave the name.
    pub name_at: i64,
    /// Machine of that edit.
    pub name_by: String,
    /// Time of the edit that deleted or restored it.
    pub gone_at: i64,
    /// Machine of that edit.
    pub gone_by: String,
}

impl KnownRow {
    /// Returns the entry of something that `machine` made at the time `at`: its number here, its
    /// number there, and its name here.
    pub fn new(machine: &str, kind: &str, [row, number]: [u64; 2], name: &str, at: i64) -> Self {
        let machine = machine.to_owned();
        Self {
            kind: kind.to_owned(),
            row,
            number,
            name: name.to_owned(),
            name_at: at,
            name_by: machine.clone(),
            gone_by: machine.clone(),
            machine,
            ..Self::default()
        }
    }
}
