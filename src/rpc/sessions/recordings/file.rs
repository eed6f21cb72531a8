//! The import of one file: reads and counts outside the engine, and appends in portions.

use std::io::BufRead;

use super::known::{self, ImportStop, SharedBeginning, Worked};
use super::outcome::{FileOutcome, ImportedFile};
use super::source::RecordingSource;
use super::spent::rows;
use crate::engine::{NewMessage, Pending, Portion};
use crate::files::Recording;
use crate::ids::SessionId;
use crate::recorded::{self, Format, Mark, Reader, RecordedMessage, RecordingError, Rewound};
use crate::rpc::call::MethodCall;
use crate::rpc::error::cancelled;
use crate::rpc::params::{Name, is_session_id};
use crate::session::message::Role;
use crate::store::session::{NewSession, RecordedOrigin};
use crate::value::{Keyword, Value};
use crate::visible::visible;
use crate::wire::message::WireError;

/// Size of a portion, in bytes. The engine appends a portion in one step, while other requests
/// wait.
const PORTION: usize = 512 << 10;
/// Size in bytes at which a portion ends even between messages that belong together.
const LARGEST_PORTION: usize = 8 << 20;
/// Name of a session whose recording has no title or question that can be a name.
const NAMELESS: &str = "recorded session";

/// What a call wants imported.
#[derive(Clone, Copy)]
pub(super) struct ImportRequest<'a> {
    /// Only sessions of the project with this root; `None` for those of all projects.
    pub(super) project: Option<&'a str>,
    /// True to examine only.
    pub(super) is_dry: bool,
    /// True if a fork of a session that is not known yet is to wait for it.
    pub(super) is_patient: bool,
}

/// Imports a file, or only examines it. If another call imports the file meanwhile, continues from
/// the place that the other call reached.
pub(super) fn import_file(
    call: &MethodCall,
    source: &RecordingSource,
    wanted: ImportRequest<'_>,
) -> Result<FileOutcome, WireError> {
    let RecordingSource { path, is_named, .. } = source;
    let failed = |error: &dyn ToString| {
        Ok(FileOutcome::File(Box::new(ImportedFile::failed(path, &error.to_string()))))
    };
    loop {
        match try_import(call, source, wanted) {
            Err(ImportStop::Overtaken) => {}
            Err(ImportStop::Read(RecordingError::Unknown)) if !*is_named => {
                return Ok(FileOutcome::Other);
            }
            Err(ImportStop::Read(error)) => return failed(&error),
            Err(ImportStop::File(error)) => return failed(&error),
            Err(ImportStop::Call(error)) => return Err(error),
            Ok(outcome) => return Ok(outcome),
        }
    }
}

fn try_import(
    call: &MethodCall,
    source: &RecordingSource,
    wanted: ImportRequest<'_>,
) -> Result<FileOutcome, ImportStop> {
    let path = &*source.path;
    let recording = source.open().map_err(ImportStop::File)?;
    let is_json = path.extension().is_some_and(|end| end == "json");
    if is_json && !source.is_named && !recording.may_be_session().map_err(ImportStop::File)? {
        return Ok(FileOutcome::Other);
    }
    let name = source.name(&recording);
    let mut known = known::session(call, Some(&name), None).map_err(ImportStop::Call)?;
    let before = known.as_ref().and_then(|known| known.mark.clone());
    let mut mark = known::place_in(&recording, known.as_ref()).map_err(ImportStop::File)?;
    let (mut shared, mut format) = (None, None);
    let is_known = match &known {
        Some(known) => mark.offset > 0 || !known::is_replaced(&recording, known)?,
        None => false,
    };
    if !is_known {
        let about;
        (format, about) = known::beginning(&recording)?;
        let agent = format.map(|format| format.agent().to_owned());
        let of_agent = agent.clone().zip(about.id);
        known = known::session(call, None, of_agent).map_err(ImportStop::Call)?;
        mark = known::place_in(&recording, known.as_ref()).map_err(ImportStop::File)?;
        if let (None, Some(fork)) = (&known, agent.zip(about.forked_from)) {
            shared = SharedBeginning::of(call, fork).map_err(ImportStop::Call)?;
            if shared.is_none() && wanted.is_patient {
                return Ok(FileOutcome::Later);
            }
        }
    }
    if let Some(known) = known.as_ref().filter(|known| known.is_deleted) {
        let (id, session) = (Some(SessionId(known.session)), Some(known.name.clone()));
        let file = ImportedFile { id, session, ..ImportedFile::of(path, "deleted") };
        return Ok(FileOutcome::File(Box::new(file)));
    }
    let format = format.or(mark.format).or_else(|| known::format(known.as_ref()?));
    // Readers of the file share its position, so this one has to be done before the next begins.
    let rewound = match format {
        Some(Format::ClaudeCode | Format::Codex) => known::rewound(&recording)?,
        _ => Rewound::default(),
    };
    let content = recording.from(mark.offset).map_err(ImportStop::File)?;
    let is_whole = known.as_ref().is_none_or(|known| known.messages == mark.messages);
    let session = known.as_ref().map(|known| (known.session, known.name.clone()));
    let mut import = Import {
        call,
        recording: &recording,
        start: mark.offset,
        reader: Reader::new(content, mark),
        session: session.as_ref().map(|(id, _)| *id),
        appending: None,
        path: name,
        before,
        is_dry: wanted.is_dry,
        is_whole,
        shared,
        question: None,
        place: None,
        portion: Vec::new(),
        bytes: 0,
        messages: 0,
        tokens: 0,
    };
    import.reader.set_file(&recording.path().to_string_lossy());
    import.reader.set_rewound(rewound);
    match import.run(wanted.project)? {
        true => {
            let shown = import.shown(session.map(|(_, name)| name)).map_err(ImportStop::Call)?;
            Ok(FileOutcome::File(Box::new(shown)))
        }
        false => Ok(FileOutcome::Other),
    }
}

/// A running import of one file.
struct Import<'a> {
    call: &'a MethodCall,
    recording: &'a Recording,
    reader: Reader<Box<dyn BufRead + 'a>>,
    session: Option<u64>,
    /// The portion that the engine is appending while the next one is read.
    appending: Option<Pending<Option<u64>>>,
    path: String,
    /// The stored [`ReadUpTo`](known::ReadUpTo) up to which the file was read; `None` if nothing is stored.
    before: Option<String>,
    is_dry: bool,
    /// True if the session has nothing but what was imported, so that its messages have the numbers
    /// that the reader counts.
    is_whole: bool,
    /// The beginning that the session shares with the one of which it is a fork.
    shared: Option<SharedBeginning>,
    question: Option<String>, // of a fork, after that beginning
    /// The folder, project and remote of the session, once they are known.
    place: Option<Worked>,
    /// Offset in bytes at which this import began to read.
    start: u64,
    portion: Vec<NewMessage>,
    /// Size of the portion, in bytes.
    bytes: usize,
    messages: u64,
    tokens: u64,
}

impl Import<'_> {
    /// Reads the file to its end, and appends its messages unless the run is dry. Returns false,
    /// and appends nothing, if the file belongs to a project other than `project`.
    fn run(&mut self, project: Option<&str>) -> Result<bool, ImportStop> {
        let mut is_checked = project.is_none();
        loop {
            let message = self.reader.next().map_err(ImportStop::Read)?;
            if !is_checked {
                is_checked = true;
                if self.project().as_deref() != project {
                    return Ok(false);
                }
            }
            let is_last = message.is_none();
            if let Some(message) = message {
                self.take(message);
            }
            let is_full = self.bytes >= PORTION && self.reader.is_between_units();
            if is_full || is_last || self.bytes >= LARGEST_PORTION {
                self.reader.pause().into_iter().for_each(|message| self.take(message));
                self.append(is_last)?;
            }
            if is_last {
                self.finish_appending()?;
                return Ok(true);
            }
        }
    }

    fn take(&mut self, message: RecordedMessage) {
        if self.shared.as_mut().is_some_and(|shared| shared.has(&message)) {
            return;
        }
        if self.shared.is_some() && self.question.is_none() && message.role == Role::User {
            self.question = recorded::question(&message.content);
        }
        let RecordedMessage { role, content, tool_calls, tool_call_id, timestamp } = message;
        self.bytes += content.len() + tool_calls.iter().map(|it| it.arguments.len()).sum::<usize>();
        let counted = NewMessage::counted(role, &content, tool_calls, &self.call.counter());
        self.messages += 1;
        self.tokens += counted.tokens;
        if !self.is_dry {
            self.portion.push(NewMessage { tool_call_id, timestamp, ..counted });
        }
    }

    /// Waits until the engine has appended the portion before.
    fn finish_appending(&mut self) -> Result<(), ImportStop> {
        if let Some(appending) = self.appending.take() {
            let appended = appending.wait().map_err(|error| ImportStop::Call(error.into()))?;
            self.session = Some(appended.ok_or(ImportStop::Overtaken)?);
        }
        Ok(())
    }

    /// Lets the engine append the portion to the session, and store the place up to which the file
    /// was read, once it has appended the portion before. Does neither in a dry run, or if there is
    /// nothing new.
    fn append(&mut self, is_last: bool) -> Result<(), ImportStop> {
        if self.call.cancelled.is_cancelled() {
            return Err(ImportStop::Call(cancelled()));
        }
        self.finish_appending()?;
        self.bytes = 0;
        let gone = self.reader.take_gone().filter(|_| self.is_whole);
        let is_other = self.reader.offset() != self.start || self.before.is_none();
        let has_moved = is_last && self.session.is_some() && is_other;
        let is_worth_it = !self.portion.is_empty() || gone.is_some() || has_moved;
        if self.is_dry || !is_worth_it {
            return Ok(());
        }
        let mark = self.reader.mark();
        let ends = self.recording.ends(mark.offset).map_err(ImportStop::File)?;
        let origin = self.origin(&mark);
        let place = serde_json::to_string(&known::ReadUpTo { mark, ends });
        let place = place.map_err(|error| ImportStop::Read(RecordingError::Io(error.into())))?;
        let first = self.portion.first().and_then(|message| message.timestamp);
        // What a fork repeats was spent by its parent.
        let since = self.shared.as_ref().map(|_| first.unwrap_or(i64::MAX));
        let portion = Portion {
            path: self.path.clone(),
            session: self.session,
            gone,
            new: NewSession {
                parent: self.shared.as_ref().and_then(SharedBeginning::parent),
                name: self.name(),
                told: self.project(),
                settings: super::super::NO_SETTINGS.to_owned(),
                source: Some(self.path.clone()),
                created: self.reader.about().started.unwrap_or(i64::MAX),
                ..NewSession::default()
            },
            messages: std::mem::take(&mut self.portion),
            origin,
            usages: rows(self.reader.take_usages(), since),
            before: self.before.replace(place.clone()),
            mark: place,
        };
        let engine = &self.call.tools.engine;
        let appending =
            engine.begin_for(self.call.caller, move |engine| engine.import_portion(portion));
        self.appending = Some(appending.map_err(|error| ImportStop::Call(error.into()))?);
        Ok(())
    }

    /// Returns what the recording, which was read up to `mark`, tells about the session.
    fn origin(&mut self, mark: &Mark) -> RecordedOrigin {
        let about = self.reader.about().clone();
        let Worked { folder, project, remote } = self.place().clone();
        RecordedOrigin {
            agent: self.reader.format().map(|format| format.agent().to_owned()),
            session: about.id,
            parent: about.parent,
            folder: folder.filter(|folder| Some(folder) != project.as_ref()),
            branch: about.branch,
            remote,
            open_since: mark.called.filter(|_| !mark.open.is_empty()),
            is_stopped: mark.is_stopped,
        }
    }

    fn project(&mut self) -> Option<String> {
        self.place().project.clone()
    }

    /// Returns where the agent worked. Looks at the disk only once.
    fn place(&mut self) -> &Worked {
        let known = self.place.take();
        let about = self.reader.about();
        let is_new = known.as_ref().is_none_or(|it| it.folder.is_none() && about.project.is_some());
        let place = match known {
            Some(known) if !is_new => known,
            _ => Worked::of(self.call, about, self.recording.path()),
        };
        self.place.insert(place)
    }

    /// Returns the name of the session: its title, else its first question, which a fork does not share
    /// with its parent; [`NAMELESS`] if there is neither, or if it cannot be a name.
    fn name(&self) -> String {
        let about = self.reader.about();
        let title = about.title.as_ref().or(self.question.as_ref()).or(about.question.as_ref());
        let title = title.map(|title| visible(title).into_owned()).unwrap_or_default();
        match Value::Str(title).decode() {
            Ok(Name(name)) if !is_session_id(&name) => name,
            _ => NAMELESS.to_owned(),
        }
    }

    fn shown(mut self, known: Option<String>) -> Result<ImportedFile, WireError> {
        let state = match (&known, self.messages) {
            (None, 0) => "empty",
            (None, _) => "new",
            (Some(_), 0) => "unchanged",
            (Some(_), _) => "grown",
        };
        let session = match (self.session, &known) {
            (Some(id), None) => {
                Some(self.call.tools.engine.ask_blocking(move |engine| engine.row(id))?.name)
            }
            (None, None) => Some(self.name()),
            _ => known,
        };
        let project = self.project();
        let about = self.reader.about();
        Ok(ImportedFile {
            format: self.reader.format().map(|format| Keyword(format.name())),
            session,
            id: self.session.map(SessionId),
            question: about.question.clone(),
            project,
            model: about.model.clone(),
            started: about.started,
            messages: self.messages,
            tokens: self.tokens,
            left_out: self.reader.left_out(),
            ..ImportedFile::of(self.recording.path(), state)
        })
    }
}
