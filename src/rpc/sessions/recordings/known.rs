//! What is known of a recording before it is read: the session that it became, under whatever name,
//! how far it was read, what it shares with the session of which it is a fork, and its project.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, KnownRecording};
use crate::files::{self, FileError, Recording};
use crate::recorded::{
    self, About, Format, Mark, Reader, RecordedMessage, RecordingError, Rewound,
};
use crate::rpc::call::MethodCall;
use crate::session::message::ToolCall;
use crate::store::session::bare_folder;
use crate::wire::message::WireError;

/// Reasons why an import stops.
pub(super) enum ImportStop {
    /// Another call imported a part of the file meanwhile.
    Overtaken,
    Read(RecordingError),
    File(FileError),
    Call(WireError),
}

/// The place up to which a file was read, as it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct ReadUpTo {
    pub(super) mark: Mark,
    /// Hash that shows whether the file is still the same.
    pub(super) ends: String,
}

/// Returns the session that the file `name` became, or else the one to which an agent gave an id.
/// `agent` has the agent and the id.
pub(super) fn session(
    call: &MethodCall,
    name: Option<&str>,
    agent: Option<(String, String)>,
) -> Result<Option<KnownRecording>, WireError> {
    let name = name.unwrap_or_default().to_owned();
    let known = call.tools.engine.ask_blocking_for(call.caller, move |engine| {
        let agent = agent.as_ref().map(|(agent, id)| (&**agent, &**id));
        engine.recording(&name, agent)
    });
    Ok(known?)
}

/// Reads the beginning of a recording, up to its first message. Returns its format and what it tells
/// about itself by then.
pub(super) fn beginning(recording: &Recording) -> Result<(Option<Format>, About), ImportStop> {
    let mut reader = Reader::new(recording.from(0).map_err(ImportStop::File)?, Mark::default());
    reader.set_file(&recording.path().to_string_lossy());
    reader.next().map_err(ImportStop::Read)?;
    Ok((reader.format(), reader.about().clone()))
}

/// Returns whether a file has another session than it had when it was read.
pub(super) fn is_replaced(
    recording: &Recording,
    known: &KnownRecording,
) -> Result<bool, ImportStop> {
    let Some(was) = place(known).and_then(|place| place.mark.about.id) else { return Ok(false) };
    Ok(beginning(recording)?.1.id.is_some_and(|id| id != was))
}

fn place(known: &KnownRecording) -> Option<ReadUpTo> {
    serde_json::from_str(known.mark.as_ref()?).ok()
}

/// Returns the records of a recording before which the user went back.
pub(super) fn rewound(recording: &Recording) -> Result<Rewound, ImportStop> {
    let content = recording.from(0).map_err(ImportStop::File)?;
    recorded::rewound(content).map_err(|error| ImportStop::Read(error.into()))
}

/// Returns the format of the files from which a session was imported.
pub(super) fn format(known: &KnownRecording) -> Option<Format> {
    place(known)?.mark.format
}

/// Returns the mark from which to read a file: the farthest at which an import of the session ended,
/// from this file or from another with the same content, or the beginning if the part that was read
/// may have changed. A program that rewrites its files may change them anywhere.
pub(super) fn place_in(
    recording: &Recording,
    known: Option<&KnownRecording>,
) -> Result<Mark, FileError> {
    let Some(known) = known else { return Ok(Mark::default()) };
    let all = known.mark.iter().chain(&known.others);
    let places: Vec<ReadUpTo> = all.filter_map(|place| serde_json::from_str(place).ok()).collect();
    let mut farthest: Option<&Mark> = None;
    for ReadUpTo { mark, ends } in &places {
        let is_same = recording.bytes() >= mark.offset && recording.ends(mark.offset)? == *ends;
        let is_as_it_was = is_same && recording.bytes() == mark.offset;
        let is_farther = farthest.is_none_or(|other| other.offset < mark.offset);
        if is_farther && (is_as_it_was || is_same && mark.only_grows()) {
            farthest = Some(mark);
        }
    }
    if let Some(mark) = farthest {
        return Ok(mark.clone());
    }
    let mut marks = places.into_iter().map(|place| place.mark);
    let Some(mut first) = marks.next() else { return Ok(Mark::default()) };
    for mark in marks {
        first.seen.extend(mark.seen);
        first.messages = first.messages.max(mark.messages);
    }
    Ok(first.anew())
}

/// The beginning that a fork shares with the session of which it is a fork.
pub(super) struct SharedBeginning {
    parent: u64,
    /// Messages of that session that have not been found in the fork yet.
    left: VecDeque<(Arc<str>, Vec<ToolCall>)>,
    /// Number of messages that both have.
    count: u64,
}

impl SharedBeginning {
    /// Returns the messages of a session, by its agent and the id that the agent gave it; `None` if
    /// it is not known.
    pub(super) fn of(
        call: &MethodCall,
        (agent, id): (String, String),
    ) -> Result<Option<Self>, WireError> {
        let engine = &call.tools.engine;
        let found = engine.ask_blocking(move |engine| engine.messages_of_agent(&agent, &id))?;
        Ok(found.map(|(parent, messages)| {
            let left = messages.into_iter().map(|it| (it.content, it.tool_calls)).collect();
            Self { parent, left, count: 0 }
        }))
    }

    /// Returns whether a message is the next that both sessions have. A subagent's fork gives the
    /// user's words as words of the agent, so the author does not count.
    pub(super) fn has(&mut self, message: &RecordedMessage) -> bool {
        let calls = |calls: &[ToolCall]| -> Vec<(String, String)> {
            calls.iter().map(|it| (it.name.clone(), it.arguments.clone())).collect()
        };
        let is_next = self.left.pop_front().is_some_and(|(content, theirs)| {
            *content == *message.content && calls(&theirs) == calls(&message.tool_calls)
        });
        match is_next {
            true => self.count += 1,
            false => self.left.clear(),
        }
        is_next
    }

    /// Returns the session and the number of messages that both have; `None` if they share none.
    pub(super) fn parent(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.parent, self.count))
    }
}

/// Where an agent worked.
#[derive(Debug, Clone, Default)]
pub(super) struct Worked {
    /// Folder that the recording names.
    pub(super) folder: Option<String>,
    /// Root of the folder's project, or else the folder.
    pub(super) project: Option<String>,
    /// URL of the project's Git remote.
    pub(super) remote: Option<String>,
}

impl Worked {
    /// Finds the project of a recording at `path`: of the folder that the recording names, or else
    /// of the one that its place tells. The project of a folder that is gone may be known from an
    /// earlier session.
    pub(super) fn of(call: &MethodCall, about: &About, path: &Path) -> Self {
        let of_history = || Some(files::project_of_history(path)?.to_string_lossy().into_owned());
        let folder = about.project.clone().or_else(of_history);
        // A recording may name anything, and Emacs would connect to the host in a remote name.
        let local =
            |folder: String| files::absolute(&folder).ok()?.into_os_string().into_string().ok();
        let folder = folder.and_then(local);
        let Some(folder) = folder.map(|folder| bare_folder(&folder).to_owned()) else {
            return Self::default();
        };
        let known = match files::is_there(&folder) {
            true => None,
            false => {
                let gone = folder.clone();
                let ask = move |engine: &mut Engine| engine.project_of_folder(&gone);
                call.tools.engine.ask_blocking(ask).ok().flatten()
            }
        };
        let project = known.unwrap_or_else(|| files::project_of(&folder));
        let remote = about.remote.as_deref().map(files::without_user);
        let remote = remote.or_else(|| files::repository_address(Path::new(&project)));
        Self { folder: Some(folder), project: Some(project), remote }
    }
}
