//! What a change says.

use serde::{Deserialize, Serialize};

use super::fit::{LARGEST_NUMBER, LONGEST_NAME, LONGEST_TEXT, cut, fit_name, fit_time};
use super::{LARGEST_BODY, MOST_SAID};
use crate::context::manager::MAX_CAPACITY;
use crate::session::message::{Message, Phase, Role, Signals, ToolCall};

/// Maximum size of a tool call's arguments, or of what a model's server wants back, in bytes.
const LONGEST_PART: usize = 256 << 10;
/// Maximum size of all tool calls of a message, in bytes. Further calls are left out.
const LARGEST_CALLS: usize = 1 << 20;
/// Size of a tool call beside its texts, in bytes.
const CALL_BYTES: usize = 64;

/// A change. The numbers in it are those of rows at the machine that made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Body {
    /// The first change of each machine: what the machine is called.
    Machine(String),
    /// A session began.
    Session(SyncSession),
    /// Messages were said.
    Said(SyncMessages),
    /// A memory was made.
    Memory(Memory),
    /// A manager's items are now these.
    Marks(SyncMark),
    /// Something was renamed, deleted, forgotten or restored.
    Edited(Edited),
}

/// A thing by the name that all machines have for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Of {
    /// Id of the machine that made it.
    pub machine: String,
    /// `session` or `memory`.
    pub kind: String,
    /// Its number there.
    pub number: u64,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncProject {
    /// Its folder.
    pub path: String,
    /// Its Git remote, or the name that its user gave it, if any.
    pub identity: Option<String>,
}

/// A session as it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncSession {
    pub number: u64,
    pub name: String,
    pub created: i64,
    pub project: Option<SyncProject>,
    pub agent: Option<String>,
    pub branch: Option<String>,
}

/// Messages of a session, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncMessages {
    pub session: u64,
    pub first: u64,
    pub messages: Vec<OneSaid>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneSaid {
    role: Role,
    at: i64,
    content: String,
    tokens: u64,
    counted_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opaque: Option<String>,
}

/// Who may find a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SyncScope {
    Everywhere,
    Project(SyncProject),
    Session(Of),
}

/// A memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub number: u64,
    pub scope: SyncScope,
    pub kind: String,
    pub created: i64,
    pub content: String,
}

/// The items of a manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncMark {
    pub number: u64,
    /// Name of the manager for people.
    pub name: String,
    pub at: i64,
    pub items: Vec<SyncItem>,
}

/// An item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncItem {
    pub kind: crate::context::item::Kind,
    pub content: String,
    /// An s-expression.
    pub metadata: String,
    pub at: i64,
    pub taken_ms: i64,
    pub tokens: u64,
    pub counted_by: String,
    pub pinned: bool,
}

/// An edit of something, wherever it was made. Of all edits of one field, the newest counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edited {
    pub of: Of,
    pub at: i64,
    pub field: Field,
}

/// What an edit gave a thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Field {
    /// A name.
    Name(String),
    /// The time at which it was deleted or forgotten; none if it was restored.
    Gone(Option<i64>),
}

impl Body {
    /// Writes the body, always in the same way.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a body that another machine wrote.
    ///
    /// # Errors
    /// The reason why the body is refused.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > LARGEST_BODY {
            return Err(format!("is larger than {LARGEST_BODY} bytes"));
        }
        let body: Self = serde_json::from_str(text).map_err(|error| {
            format!("cannot be read ({error}); the other machine may have a newer version")
        })?;
        if body.text() != text {
            return Err("is not written as this version writes it".to_owned());
        }
        body.check().map(|()| body).map_err(|what| format!("has {what}"))
    }

    /// Returns the text with which a later change replaces this one, if one can.
    pub fn about(&self) -> Option<String> {
        match self {
            Self::Marks(marks) => Some(format!("marks {}", marks.number)),
            _ => None,
        }
    }

    /// Refuses what no machine makes.
    fn check(&self) -> Result<(), &'static str> {
        let (numbers, names): (Vec<u64>, Vec<&str>) = match self {
            Self::Machine(name) => (vec![], vec![name]),
            Self::Session(it) => {
                let mut names = vec![&*it.name];
                names.extend(it.agent.iter().chain(&it.branch).map(|name| &**name));
                names.extend(it.project.iter().flat_map(SyncProject::names));
                (vec![it.number, it.created.unsigned_abs()], names)
            }
            Self::Said(it) => {
                let fit = it.messages.iter().all(OneSaid::is_sound) && it.first > 0;
                if !fit || !(1..=MOST_SAID).contains(&(it.messages.len() as u64)) {
                    return Err("messages that are not valid");
                }
                (vec![it.session, it.first], vec![])
            }
            Self::Memory(it) => {
                let of = match &it.scope {
                    SyncScope::Everywhere => vec![],
                    SyncScope::Project(project) => project.names().collect(),
                    SyncScope::Session(of) => vec![&*of.machine],
                };
                if it.content.len() > LONGEST_TEXT {
                    return Err("a memory that is too long");
                }
                (vec![it.number, it.created.unsigned_abs()], [vec![&*it.kind], of].concat())
            }
            Self::Marks(it) => {
                if it.items.len() > MAX_CAPACITY || !it.items.iter().all(SyncItem::is_sound) {
                    return Err("items that are not valid");
                }
                (vec![it.number, it.at.unsigned_abs()], vec![&it.name])
            }
            Self::Edited(it) => {
                let gone = match &it.field {
                    Field::Name(_) => 0,
                    Field::Gone(at) => at.unwrap_or_default().unsigned_abs(),
                };
                let name = if let Field::Name(name) = &it.field { name } else { "" };
                // The time of the edit may follow that of an earlier one; see `Exchange::edit`.
                (vec![it.of.number, gone], vec![name, &it.of.machine])
            }
        };
        if numbers.iter().any(|number| *number > LARGEST_NUMBER) {
            return Err("a number or time that is not valid");
        }
        if names.iter().any(|name| name.len() > LONGEST_NAME || name.contains('\0')) {
            return Err("a name that is too long");
        }
        Ok(())
    }
}

impl SyncProject {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.identity.as_deref().into_iter().chain([&*self.path])
    }
}

impl OneSaid {
    /// Returns a message as it is told to other machines.
    pub fn of(message: &Message) -> Self {
        let opaque = message.opaque.as_ref().map(|opaque| opaque.to_string());
        let call = |call: &ToolCall| ToolCall {
            id: fit_name(&call.id),
            name: fit_name(&call.name),
            arguments: cut(&call.arguments, LONGEST_PART),
        };
        let mut left = LARGEST_CALLS;
        let fits = |call: &ToolCall| {
            let size = CALL_BYTES + call.id.len() + call.name.len() + call.arguments.len();
            let fits = size <= left;
            left -= if fits { size } else { 0 };
            fits
        };
        let said = Self {
            role: message.role,
            at: fit_time(message.timestamp),
            content: cut(&message.content, LONGEST_TEXT),
            tokens: message.tokens,
            counted_by: message.counted_by.to_owned(),
            phase: message.phase,
            calls: message.tool_calls.iter().map(call).take_while(fits).collect(),
            answers: message.tool_call_id.as_deref().map(fit_name),
            opaque: opaque.filter(|opaque| opaque.len() <= LONGEST_PART),
        };
        Self { tokens: said.tokens.min(said.most_tokens()), ..said }
    }

    /// Returns the message with this number. `counter` knows the counters of tokens.
    pub fn message(self, number: u64, counter: impl Fn(&str) -> &'static str) -> Option<Message> {
        let counted_by = counter(&self.counted_by);
        if counted_by != self.counted_by {
            return None;
        }
        let opaque = self.opaque.map(|opaque| serde_json::from_str::<serde_json::Value>(&opaque));
        let message = Message {
            number,
            role: self.role,
            signals: Signals::of(self.role, &self.content, &self.calls),
            content: self.content.into(),
            timestamp: self.at,
            phase: self.phase,
            tool_calls: self.calls,
            tool_call_id: self.answers,
            opaque: opaque.transpose().ok()?.map(Into::into),
            pinned: false,
            tokens: self.tokens,
            counted_by,
        };
        Some(message)
    }

    /// Returns who said it, when, and the text.
    pub fn said(&self) -> (Role, i64, &str) {
        (self.role, self.at, &self.content)
    }

    /// Returns the approximate size, in bytes.
    pub fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.content.len() + calls.sum::<usize>() + self.opaque.as_ref().map_or(0, String::len)
    }

    /// Returns the most tokens that the message can have: a token has at least a byte; names, ids and
    /// rounding have some room.
    fn most_tokens(&self) -> u64 {
        1024 + 2 * self.bytes() as u64
    }

    fn is_sound(&self) -> bool {
        self.at.unsigned_abs() <= LARGEST_NUMBER && self.tokens <= self.most_tokens()
    }
}

impl SyncItem {
    pub(super) fn most_tokens(&self) -> u64 {
        1024 + 2 * self.content.len() as u64
    }

    fn is_sound(&self) -> bool {
        let times = [self.at, self.taken_ms / 1000];
        times.iter().all(|at| at.unsigned_abs() <= LARGEST_NUMBER)
            && self.tokens <= self.most_tokens()
    }
}
