//! The kinds of errors, each with the data that programs get. The protocol's reference shows
//! these comments.

mod codes;

use schemars::JsonSchema;
use serde::Serialize;

pub(super) use self::codes::{BadParameter, CODES, UnknownMethod};
use crate::curation::section::Section;
use crate::ids::{CheckpointId, ItemId, MemoryId, MessageId, SessionId};
use crate::names::names;
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

names! {
    /// A kind of error whose data consists of the kind alone.
    PlainKind {
        /// Another manager has since saved or dropped the set that `undo` or `redo` would change.
        SetChanged => "set-changed",
        /// The summarizer failed; the message says why.
        SummarizerFailed => "summarizer-failed",
        /// No file has this name.
        FileMissing => "file-missing",
        /// The file cannot be read; the message says why.
        FileUnreadable => "file-unreadable",
        /// The file is not UTF-8 text.
        FileBinary => "file-binary",
        /// The file is larger than `:max-file-bytes`.
        FileTooLarge => "file-too-large",
        /// The path is a directory.
        IsADirectory => "is-a-directory",
        /// The path is a device, a pipe or a socket, which are never opened.
        NotARegularFile => "not-a-regular-file",
        /// The file does not have the lines that the call names.
        PastEnd => "past-end",
        /// The lines are not a range: lines are counted from 1, and the end must not be before the
        /// start.
        BadRange => "bad-range",
        /// The path begins with neither `/` nor `~/`.
        NotAbsolute => "not-absolute",
        /// The path names a file on another machine.
        NotLocal => "not-local",
        /// The path leads outside the folder that it must stay in.
        OutsideFolder => "outside-folder",
        /// The name of the file says that it may hold passwords, keys or tokens, so `read-file` does
        /// not read it. The user can mark it as an item.
        HoldsSecrets => "holds-secrets",
        /// The template cannot be read, or is too large.
        TemplateUnreadable => "template-unreadable",
        /// The connection does not permit the call. Over TCP, a client cannot manage trusted
        /// projects, and needs the secret to change providers and to register or call tools. A
        /// client of EPC, SLY or SLIME cannot register tools.
        NotAllowed => "not-allowed",
        /// There are already 100 providers.
        TooManyProviders => "too-many-providers",
        /// No call waits for this approval; it was answered, its turn has ended, or it was never
        /// asked.
        NoSuchApproval => "no-such-approval",
        /// The state could not be read or written, for example because the disk is full. The
        /// failed step of the call changed nothing.
        StoreFailed => "store-failed",
        /// The database is damaged. The failed step of the call changed nothing.
        StoreDamaged => "store-damaged",
        /// The state cannot be written, for example because the disk is full; reading works. Each
        /// change tries again to write, so remove the cause and repeat the call.
        ReadOnly => "read-only",
        /// The files of the state were removed while the server was running. The failed step of the
        /// call changed nothing.
        StateRemoved => "state-removed",
        /// The backup could not be made, or could not be read back.
        BackupFailed => "backup-failed",
        /// The server is about to end.
        ShuttingDown => "shutting-down",
        /// The call was cancelled.
        Cancelled => "cancelled",
        /// A defect in the server. Unless the message says that the failed step of the call was
        /// undone, that step may have changed something.
        Internal => "internal",
    }
}

/// The data of an error whose kind has members of its own.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(inline)]
pub(super) enum ErrorData<'a> {
    /// The items do not fit, even if every unpinned item is evicted: too many items are pinned, or
    /// a directory or set is too large for the manager.
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
        /// Tokens of the items to add; only for a directory.
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
        /// Manager that has the item; `nil` if none does.
        held_by: Option<&'a str>,
    },
    /// The text may hold passwords, keys or tokens, and the call asked not to add such text.
    LooksSecret {
        /// What looks like a secret: paths of files, relative to the root for a directory.
        names: Vec<String>,
    },
    /// There is nothing to undo.
    NothingToUndo(StepData<'a>),
    /// There is nothing to redo: nothing was undone, or another change was made since.
    NothingToRedo(StepData<'a>),
    /// The version of the manager or session is not `:if-version`, so it has changed since.
    Conflict {
        /// Version now; 0 if `open-session` was to open a session that does not exist.
        version: u64,
        /// Version that the call requires.
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
    /// The cursor was used before, is too old, or belongs to another method or connection; request
    /// the list again.
    NoSuchCursor {
        /// The cursor.
        cursor: &'a str,
    },
    /// No set has this name.
    NoSuchSet {
        /// Names of the sets.
        known: &'a [String],
    },
    /// The mandatory parts do not fit into `:max-tokens`.
    BudgetTooSmall {
        /// Number of tokens that the mandatory parts need.
        needed: u64,
        /// Maximum number of tokens.
        max_tokens: u64,
        /// Parts that cannot be left out; absent for a rendering of items.
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<Vec<NeededPart>>,
    },
    /// No session has this name or id, or the call names no session and none exists.
    NoSuchSession {
        /// Name or id in the call; `nil` if the call named no session.
        session: Option<&'a str>,
        /// Names of the sessions, or of the deleted ones, to restore one; at most 100, the
        /// one with the latest message first.
        known: &'a [String],
    },
    /// Another session already has this name.
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
    /// The log of the context or session has no operation with this number.
    NoSuchOperation {
        /// Number of the operation in the call.
        operation: u64,
        /// Number of the newest operation; 0 if there is none.
        newest: u64,
    },
    /// No memory has this id.
    NoSuchMemory {
        /// Id of the memory.
        memory: MemoryId,
    },
    /// The session has no such checkpoint, or none at all.
    NoCheckpoint {
        /// Name of the session.
        session: &'a str,
        /// Ids of the checkpoints; at most the newest 100.
        known: Vec<CheckpointId>,
    },
    /// The session keeps no versions (`:versioning` is `nil`), so it cannot be rolled back.
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
        /// Tokens of the summary; only if the summary would not be smaller than the messages.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary_tokens: Option<u64>,
        /// Tokens of the messages and of the earlier summary; only if the new summary would not be
        /// smaller.
        #[serde(skip_serializing_if = "Option::is_none")]
        source_tokens: Option<u64>,
    },
    /// The directory has more than 500,000 entries, or its files are too large together.
    TreeTooLarge {
        /// Total size of the files, in bytes; only if that is too large.
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
    /// No provider is configured, or the key of a provider was not found.
    Unconfigured {
        /// Name of the provider whose key was not found; absent if none is configured.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<&'a str>,
        /// Name of the provider's model; absent if no provider is configured.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<&'a str>,
    },
    /// The provider rejects the key.
    Authentication(ProviderData<'a>),
    /// Too many requests reached the provider in a short time.
    RateLimited(ProviderData<'a>),
    /// The account has no money or quota left.
    QuotaExhausted(ProviderData<'a>),
    /// The provider refuses the window as too long.
    ContextTooLong {
        #[serde(flatten)]
        of: ProviderData<'a>,
        /// Number of tokens that the mandatory parts need; only if the window cannot be made
        /// shorter.
        #[serde(skip_serializing_if = "Option::is_none")]
        needed: Option<u64>,
        /// Parts that cannot be left out; only if the window cannot be made shorter.
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<Vec<NeededPart>>,
    },
    /// The provider rejects the request, for example because it does not know the model.
    BadRequest(ProviderData<'a>),
    /// The provider cannot be reached, takes too long, breaks off its answer, or reports a failure of
    /// its own.
    Unavailable(ProviderData<'a>),
    /// The provider's answer does not follow the provider's protocol, or is too long; the address
    /// may belong to another kind of server.
    Malformed(ProviderData<'a>),
}

/// The manager or session in which there is nothing to undo or redo.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct StepData<'a> {
    /// Name of the manager; absent for a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) manager: Option<&'a str>,
    /// Name of the session; absent for a manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<&'a str>,
}

/// The data of an error from a provider.
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
    /// Reason why the part cannot be left out.
    pub(super) reason: &'static str,
    /// Tokens of the part.
    pub(super) tokens: u64,
}

/// The members that every error of `chat` has once the question is stored.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct InTurn {
    /// Id of the user's message.
    pub(super) question: MessageId,
    /// Id of the message with the part of the answer that came; `nil` if none was stored.
    pub(super) id: Option<MessageId>,
}

impl PlainKind {
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Cancelled => WireError::CANCELLED,
            Self::Internal => WireError::INTERNAL,
            _ => WireError::APPLICATION,
        }
    }
}

impl ErrorData<'_> {
    /// Returns the data in the form in which clients get it.
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
