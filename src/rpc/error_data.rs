//! The kinds of errors, with the data that programs get of each. The comments are the reference.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::shapes::ParamPath;
use crate::curation::section::Section;
use crate::ids::{CheckpointId, ItemId, MemoryId, MessageId, SessionId};
use crate::names::names;
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

names! {
    /// A kind of error whose data are the kind alone.
    PlainKind {
        /// The set to restore was saved or dropped from another manager since.
        SetChanged => "set-changed",
        /// The summarizer failed; the message says why.
        SummarizerFailed => "summarizer-failed",
        /// No file has this name.
        FileMissing => "file-missing",
        /// The file cannot be read; the message says why.
        FileUnreadable => "file-unreadable",
        /// The file is not UTF-8 text.
        FileBinary => "file-binary",
        /// The file is above `:max-file-bytes`.
        FileTooLarge => "file-too-large",
        /// The path is a directory.
        IsADirectory => "is-a-directory",
        /// The path is a device, a pipe or a socket, which are never opened.
        NotARegularFile => "not-a-regular-file",
        /// The file does not have these lines.
        PastEnd => "past-end",
        /// The lines are not a range.
        BadRange => "bad-range",
        /// The path is relative.
        NotAbsolute => "not-absolute",
        /// The path names a file on another machine.
        NotLocal => "not-local",
        /// The path leads out of its folder.
        OutsideFolder => "outside-folder",
        /// The template cannot be read, or is too large.
        TemplateUnreadable => "template-unreadable",
        /// A client over TCP tried to change providers without the secret, or to trust a project.
        NotAllowed => "not-allowed",
        /// There are 100 providers already.
        TooManyProviders => "too-many-providers",
        /// No call waits for this approval; it was answered, or its turn has ended.
        NoSuchApproval => "no-such-approval",
        /// The change could not be stored, for example because the disk is full; nothing of the call
        /// was kept.
        StoreFailed => "store-failed",
        /// The database is damaged; nothing of the call was kept.
        StoreDamaged => "store-damaged",
        /// The state folder has not been writable since the start; reading works. Each change tries
        /// again, so repeat it once there is room.
        ReadOnly => "read-only",
        /// The files of the state were removed while the server was running; nothing was kept.
        StateRemoved => "state-removed",
        /// The backup could not be written, or did not read back.
        BackupFailed => "backup-failed",
        /// The server is about to end.
        ShuttingDown => "shutting-down",
        /// The call was cancelled.
        Cancelled => "cancelled",
        /// A defect in the server; the call changed nothing.
        Internal => "internal",
    }
}

/// The data of an error whose kind has members of its own.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(inline)]
pub(super) enum ErrorData<'a> {
    /// All items are pinned, so none can make room; or a directory has too many files.
    CapacityFull {
        /// Name of the manager.
        manager: &'a str,
        /// Number of items to add.
        adding: u64,
        /// Maximum number of items.
        capacity: usize,
        /// Number of pinned items.
        pinned: usize,
        /// Same as `:adding`; only for a directory.
        #[serde(skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
        /// Tokens of the files; only for a directory.
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
    },
    /// The new capacity is below the number of pinned items.
    PinnedExceedCapacity {
        /// Name of the manager.
        manager: &'a str,
    },
    /// The manager has no item with this id.
    NoSuchItem {
        /// Id of the item.
        id: ItemId,
        /// Name of the manager.
        manager: &'a str,
        /// Manager that has it; `nil` if none does.
        held_by: Option<&'a str>,
    },
    /// There is nothing to undo.
    NothingToUndo {
        /// Name of the manager.
        manager: &'a str,
    },
    /// The manager or session has another version than `:if-version`: it was changed since.
    Conflict {
        /// Version now; 0 if there is no such session.
        version: u64,
        /// Version in the call.
        expected: u64,
        /// Name of the manager; absent for a session.
        #[serde(skip_serializing_if = "Option::is_none")]
        manager: Option<&'a str>,
        /// Name of the session; absent for a manager.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<&'a str>,
        /// Id of the session, if it exists; absent for a manager.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
    },
    /// The key was used for a call with other parameters, or by an earlier release, which stored no
    /// answer to repeat.
    KeyReused {
        /// Always `:request-key`.
        param: Keyword<&'static str>,
    },
    /// The cursor was used, forgotten, or belongs to another method or connection; list again.
    NoSuchCursor {
        /// The cursor.
        cursor: &'a str,
    },
    /// No set has this name.
    NoSuchSet {
        /// Names of the sets.
        known: &'a [String],
    },
    /// The mandatory parts do not fit `:max-tokens`.
    BudgetTooSmall {
        /// Number of tokens that would be enough.
        needed: u64,
        /// Maximum number of tokens.
        max_tokens: u64,
        /// Parts that cannot be left out; only for the window of a session or a history.
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<Vec<NeededPart>>,
    },
    /// No session has this name or id, or none is open; to restore one, none was deleted.
    NoSuchSession {
        /// Name or id in the call; `nil` if it named none.
        session: Option<&'a str>,
        /// Names of the sessions, last changed first; at most 100.
        known: &'a [String],
    },
    /// A session has this name already.
    SessionExists {
        /// The name.
        session: &'a str,
    },
    /// The log has no message with this id.
    NoSuchMessage {
        /// Id of the message.
        message: MessageId,
        /// Number of messages in the log.
        length: u64,
    },
    /// The session has no revision with this number.
    NoSuchRevision {
        /// Number in the call.
        revision: u64,
        /// Number of the newest revision.
        newest: u64,
    },
    /// No memory has this id.
    NoSuchMemory {
        /// Id of the memory.
        memory: MemoryId,
    },
    /// There is no checkpoint to go back to.
    NoCheckpoint {
        /// Name of the session.
        session: &'a str,
        /// Ids of the checkpoints; at most the newest 100.
        known: Vec<CheckpointId>,
    },
    /// There is no rollback to undo.
    NoRollback {
        /// Name of the session.
        session: &'a str,
    },
    /// The session keeps no versions, so it has no checkpoints.
    VersioningNotEnabled {
        /// Name of the session.
        session: &'a str,
    },
    /// The session is in the middle of another turn.
    SessionBusy {
        /// Name of the session.
        session: &'a str,
    },
    /// A setting is out of range.
    BadSetting {
        /// Name of the setting.
        setting: Keyword<&'static str>,
    },
    /// A summary would not help; the message says why.
    NotSummarized {
        /// Tokens of the summary; only if it is not smaller.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary_tokens: Option<u64>,
        /// Tokens of the messages; only if the summary is not smaller.
        #[serde(skip_serializing_if = "Option::is_none")]
        source_tokens: Option<u64>,
    },
    /// The directory has more than a million entries, or its files are too large together.
    TreeTooLarge {
        /// Size of the files; only if they are too large.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    /// No template has this name.
    NoSuchTemplate {
        /// Names of the templates.
        known: &'a [String],
    },
    /// Only an untrusted project has this template.
    TemplateUntrusted {
        /// Folder of the project.
        project: String,
    },
    /// The template has an error.
    TemplateMalformed {
        /// Line of the error, counted from 1.
        line: usize,
        /// Column of the error, counted from 1 in characters.
        column: usize,
    },
    /// No provider has this name.
    NoSuchProvider {
        /// Names of the providers.
        known: &'a [String],
    },
    /// No provider is configured, or the key of one was not found.
    Unconfigured {
        /// Name of the provider whose key was not found; absent if none is configured.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<&'a str>,
        /// Name of its model; absent if no provider is configured.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<&'a str>,
    },
    /// The provider rejects the key.
    Authentication(ProviderData<'a>),
    /// The provider limits the rate.
    RateLimited(ProviderData<'a>),
    /// The account has no money or quota left.
    QuotaExhausted(ProviderData<'a>),
    /// The provider finds the window too long.
    ContextTooLong {
        #[serde(flatten)]
        of: ProviderData<'a>,
        /// Number of tokens that the mandatory parts need; only if the window cannot be made shorter.
        #[serde(skip_serializing_if = "Option::is_none")]
        needed: Option<u64>,
        /// Parts that cannot be left out; only if the window cannot be made shorter.
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<Vec<NeededPart>>,
    },
    /// The provider rejects the request, for example since it does not know the model.
    BadRequest(ProviderData<'a>),
    /// The provider cannot be reached, takes too long, or broke off.
    Unavailable(ProviderData<'a>),
    /// The provider has another interface.
    Malformed(ProviderData<'a>),
}

/// The data of an error of a provider.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(super) struct ProviderData<'a> {
    /// Name of the provider.
    pub(super) provider: &'a str,
    /// Name of the model.
    pub(super) model: &'a str,
    /// Number of seconds to wait, if the provider gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after: Option<u64>,
}

/// A part that a window cannot leave out.
#[derive(Serialize, JsonSchema)]
pub(super) struct NeededPart {
    /// Name of the part.
    pub(super) what: String,
    /// Section of the part.
    pub(super) section: Section,
    /// Reason why it cannot be left out.
    pub(super) reason: &'static str,
    /// Tokens of the part.
    pub(super) tokens: u64,
}

/// Members of every error of `chat` after the question was stored.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct InTurn {
    /// Id of the user's message.
    pub(super) question: MessageId,
    /// Id of the last message with an answer, or the part of one that came; `nil` if none came.
    pub(super) id: Option<MessageId>,
}

/// The data of the error −32700.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "the dialects make them, which know no methods")]
pub(super) struct Unreadable {
    /// Place of the error in the line, counted from 1 in characters, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
}

/// The data of the error −32601.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct UnknownMethod {
    /// The methods with the nearest names; at most three.
    pub(super) nearest: Vec<&'static str>,
}

/// The data of the error −32602.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct BadParameter<'a> {
    /// Name of the parameter, or the path of a member in it, if the error is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) param: Option<ParamPath<'a>>,
}

/// A schema that is made when it is asked for.
type Made = fn(&mut SchemaGenerator) -> Schema;

/// The codes of errors, their meanings, and their data if they have no `:kind`.
pub(super) const CODES: [(i32, &str, Option<Made>); 7] = [
    (WireError::PARSE, "The line could not be read.", Some(made::<Unreadable>)),
    (WireError::INVALID_REQUEST, "The message is not a request, or is too large.", None),
    (WireError::METHOD_NOT_FOUND, "No method has this name.", Some(made::<UnknownMethod>)),
    (
        WireError::INVALID_PARAMS,
        "A parameter is missing, unknown or out of range.",
        Some(made::<BadParameter<'_>>),
    ),
    (WireError::INTERNAL, "A defect in the server; the call changed nothing.", None),
    (WireError::CANCELLED, "The call was cancelled.", None),
    (WireError::APPLICATION, "The call was understood and refused.", None),
];

fn made<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl PlainKind {
    /// Returns the code of errors of this kind.
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Cancelled => WireError::CANCELLED,
            Self::Internal => WireError::INTERNAL,
            _ => WireError::APPLICATION,
        }
    }
}

impl ErrorData<'_> {
    /// Returns the data as sent.
    pub(super) fn shown(&self) -> Value {
        let mut data = Value::of(self);
        if let Value::Map(members) = &mut data
            && let Some((_, kind)) = members.iter_mut().find(|(name, _)| &**name == "kind")
            && let Value::Str(name) = kind
        {
            *kind = Value::Keyword(std::mem::take(name).into());
        }
        data
    }
}
