//! Records messages on a separate thread, in one file of JSON lines for each session. The server
//! imports the file after each turn. Messages are passed on without waiting for the recording.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, SystemTime};

use serde_json::{Value as Json, json};

use super::message::AcpResult;
use crate::store::ownership::make_private;

/// Maximum number of bytes that wait to be written. Records beyond this maximum are left out, and
/// the recording says how many.
const MOST_WAITING: usize = 32 << 20;

/// The thread that writes recordings.
pub(super) struct Recorder {
    jobs: Sender<RecordJob>,
    /// Number of bytes that wait to be written.
    waiting: Arc<AtomicUsize>,
    /// Number of records that were left out since a record was last accepted.
    dropped: AtomicU64,
}

enum RecordJob {
    Write {
        place: AcpSession,
        dropped: u64,
        members: String,
        ends_turn: bool,
    },
    /// Ends the thread once all earlier records are written. The thread then drops `_done`, which
    /// wakes the waiting side.
    End {
        _done: SyncSender<()>,
    },
}

/// A session of an agent.
#[derive(Clone)]
pub(super) struct AcpSession {
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) folder: PathBuf,
}

/// What to record. The JSON of a prompt or an update is recorded unchanged.
pub(super) enum AcpRecord<'a> {
    Prompt(&'a str),
    Update(&'a str),
    /// The end of a turn. `usage` is what the agent reported, or null if it reported nothing.
    Stop {
        reason: String,
        usage: Json,
    },
}

impl Recorder {
    /// Starts the thread, which writes recordings into `folder`. After each turn, the thread calls
    /// `written` with the path of the recording.
    pub(super) fn start(folder: PathBuf, written: impl Fn(PathBuf) + Send + 'static) -> Self {
        let (jobs, todo) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let ours = Arc::clone(&waiting);
        std::thread::spawn(move || work(&folder, &todo, &ours, &written));
        Self { jobs, waiting, dropped: AtomicU64::new(0) }
    }

    /// Records a message, unless too many bytes wait to be written.
    pub(super) fn note(&self, place: AcpSession, said: &AcpRecord<'_>) {
        let members = said.members();
        let bytes = members.len();
        if self.waiting.load(Ordering::Relaxed) + bytes > MOST_WAITING {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let ends_turn = matches!(said, AcpRecord::Stop { .. });
        // If the thread has ended, nothing is recorded.
        let _ = self.jobs.send(RecordJob::Write { place, dropped, members, ends_turn });
    }

    /// Ends the thread once everything is written. Waits at most `patience` for the end.
    pub(super) fn end(&self, patience: Duration) {
        let (done, ended) = sync_channel::<()>(0);
        if self.jobs.send(RecordJob::End { _done: done }).is_ok() {
            let _ = ended.recv_timeout(patience);
        }
    }
}

impl AcpRecord<'_> {
    /// Returns the record of a turn's end. `outcome` is the result of the turn's prompt, or `None`
    /// if the prompt failed.
    pub(super) fn stop(outcome: Option<AcpResult>) -> Self {
        match outcome {
            Some(AcpResult { stop_reason, usage, .. }) => {
                Self::Stop { reason: stop_reason.unwrap_or_default(), usage }
            }
            None => Self::Stop { reason: "error".to_owned(), usage: Json::Null },
        }
    }

    fn members(&self) -> String {
        match self {
            Self::Prompt(blocks) => format!("\"prompt\":{blocks}"),
            Self::Update(update) => format!("\"update\":{update}"),
            Self::Stop { reason, usage } => format!("\"stop\":{},\"usage\":{usage}", json!(reason)),
        }
    }
}

fn work(
    folder: &Path,
    todo: &Receiver<RecordJob>,
    waiting: &AtomicUsize,
    written: &impl Fn(PathBuf),
) {
    let mut files = HashMap::new();
    for job in todo {
        let RecordJob::Write { place, dropped, members, ends_turn } = job else { return };
        waiting.fetch_sub(members.len(), Ordering::Relaxed);
        let path = folder.join(file_name(&place));
        // A recording that cannot be opened or written is given up.
        let file = files.entry(path.clone()).or_insert_with(|| {
            open(folder, &path, &place).map_err(|error| warn(&place, error)).ok()
        });
        let Some(open) = file else { continue };
        if let Err(error) = open.write_all(lines(dropped, &members).as_bytes()) {
            warn(&place, error);
            *file = None;
        } else if ends_turn {
            written(path);
        }
    }
}

fn warn(place: &AcpSession, error: impl Display) {
    tracing::warn!("acp: session {} is not recorded: {error}", place.session);
}

/// Opens a recording for appending. A new recording begins with a line about the session. If the
/// last line of an existing recording is incomplete, because a process was killed while it wrote,
/// adds a line end.
fn open(folder: &Path, path: &Path, place: &AcpSession) -> anyhow::Result<File> {
    make_private(folder)?;
    let mut options = OpenOptions::new();
    let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
    if file.metadata()?.len() == 0 {
        let AcpSession { agent, session, folder } = place;
        let head = json!({ "agent": agent, "session": session, "cwd": folder.to_string_lossy() });
        writeln!(file, "{{\"acp\":{head},\"time\":{}}}", seconds())?;
        return Ok(file);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Returns the file name of a session's recording. No two sessions of an agent share a recording.
fn file_name(place: &AcpSession) -> String {
    let hash = blake3::hash(format!("{}\0{}", place.agent, place.session).as_bytes()).to_hex();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let agent: String = place.agent.chars().filter(is_plain).take(40).collect();
    format!("{agent}-{}.jsonl", &hash[..16])
}

/// Returns the record with these `members` as a line. Before this line comes a line with the number
/// `dropped`, unless that is 0.
fn lines(dropped: u64, members: &str) -> String {
    let time = seconds();
    let gap = match dropped {
        0 => String::new(),
        _ => format!("{{\"time\":{time},\"dropped\":{dropped}}}\n"),
    };
    format!("{gap}{{\"time\":{time},{members}}}\n")
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
