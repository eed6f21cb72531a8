//! The push to a session of an agent: what changed since the last push that the agent received.
//!
//! The server records a push before the agent gets it, and keeps the record of the previous push.
//! The caller says which push the agent received last. Therefore, a push that was recorded and then
//! lost is made again, but a push that was received is not, even if the server or the caller is
//! killed at any point.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::answer::Trouble;
use super::link::ServerLink;
use super::marked::{Digests, Now, digests, named, rendered};
use super::project::AgentProject;
use crate::visible::visible_lines;
use crate::wording::counted;

/// Maximum number of bytes of a hook's push, as JSON. Claude Code cuts a text after 10,000
/// characters, and Codex after 10,000 bytes (2,500 tokens of 4 bytes).
pub(crate) const ROOM_OF_A_HOOK: usize = 9_700;
/// Maximum size, in tokens, of the facts that are given back after a compaction.
const GIVEN_BACK: u64 = 1_950;
/// Number of attempts to fit the items or the facts into the available room, each with a smaller
/// budget.
const TRIES: u32 = 4;
/// Maximum number of items to name among those that are no longer marked.
const GONE_NAMED: usize = 100;

/// A session of an agent.
#[derive(Default)]
pub(crate) struct PushedSession<'a> {
    /// Name of the agent.
    pub(crate) agent: &'a str,
    /// Id that the agent gives the session.
    pub(crate) id: &'a str,
    /// Number of the last push that the agent received, if known.
    pub(crate) received: Option<u64>,
    /// True if the agent has lost the items that it was given.
    pub(crate) is_anew: bool,
    /// Transcript of the session, if the session was compacted. The push then gives back the facts
    /// of the session.
    pub(crate) compacted: Option<&'a Path>,
    /// Recording of the session, for the server to import once the caller has disconnected.
    pub(crate) recording: Option<&'a Path>,
    /// Maximum size of the push's text, in bytes of JSON.
    pub(crate) room: usize,
}

/// A push: the text to give an agent.
pub(crate) struct Push {
    /// Number of the push; `None` if there is nothing to record.
    pub(crate) number: Option<u64>,
    /// The text; empty if there is nothing to give.
    pub(crate) text: String,
    /// True if the server will import the recording.
    pub(crate) is_importing: bool,
}

impl Push {
    /// Returns whether there is nothing to give and nothing to record.
    pub(crate) fn is_nothing(&self) -> bool {
        self.text.is_empty() && self.number.is_none()
    }
}

/// The items that a session was given, those to send with its next prompt, and those marked now.
#[derive(Deserialize)]
pub(super) struct PushedItems {
    number: u64,
    #[serde(deserialize_with = "digests")]
    items: Digests,
    project: String,
    next: Vec<DuePush>,
    #[serde(rename = "marked")]
    pub(super) now: Now,
    #[serde(default)]
    importing: bool,
}

/// An item that the user sends once, with the next prompt.
#[derive(Deserialize)]
struct DuePush {
    number: u64,
    manager: String,
    id: String,
}

/// The items that the user sends once with a prompt, as a text.
#[derive(Default)]
pub(super) struct SentOnce {
    pub(super) text: String,
    numbers: Vec<u64>,
    ids: Vec<String>,
    tokens: u64,
}

/// The items that a push shows.
#[derive(Default)]
pub(super) struct PushShown {
    pub(super) ids: Vec<String>,
    /// Number of tokens of the items in the text of the push.
    pub(super) tokens: u64,
}

#[derive(Deserialize)]
struct RecordedPush {
    number: u64,
}

#[derive(Deserialize)]
struct Imported {
    files: Vec<ImportedRecording>,
}

#[derive(Deserialize)]
struct ImportedRecording {
    id: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct ExportedSession {
    text: String,
}

impl PushedSession<'_> {
    /// Returns a push with what changed in the project of `folder` since the last push that the
    /// agent received. Records the push, unless there is nothing to record. Tries once more if the
    /// connection is lost or the server refuses.
    ///
    /// # Errors
    /// The reason in words, if the server cannot be reached, does not answer, or refuses again.
    pub(crate) async fn push(&self, link: &ServerLink, folder: &Path) -> Result<Push, String> {
        let project = AgentProject::of(folder);
        let mut received = self.received;
        let pushed = match self.try_push(link, &project, &mut received).await {
            // The items for this prompt may have been sent with another prompt meanwhile.
            Err(Trouble::Lost | Trouble::Refused(_)) => {
                self.try_push(link, &project, &mut received).await
            }
            pushed => pushed,
        };
        pushed.map_err(|trouble| trouble.for_person())
    }

    /// Makes a push, without trying again. `received` is the number of the last push that the agent
    /// received. If the number is unknown, sets `received` to the number of the latest push, since
    /// the push made here may be recorded and then lost.
    async fn try_push(
        &self,
        link: &ServerLink,
        project: &AgentProject,
        received: &mut Option<u64>,
    ) -> Result<Push, Trouble> {
        let facts = self.facts(link).await.unwrap_or_default();
        let before = self.before(link, project, *received).await?;
        received.get_or_insert(before.number);
        let room = self.room.saturating_sub(length(&facts));
        let sent = before.sent(link, room * 2 / 3).await?;
        let nothing = Digests::new();
        let had = if self.is_anew { &nothing } else { &before.items };
        let mut change = MarkedChange::between(had, &before.now.digests);
        change.changed.retain(|id| !sent.ids.contains(id));
        // Items of another project are out of sight here, but nobody unmarked them.
        if !before.project.is_empty() && before.project != project.directory() {
            change.gone.clear();
        }
        let room = room.saturating_sub(length(&sent.text));
        let (items, shown) = match change.is_nothing() {
            true => Default::default(),
            false => change.text(link, project, &before.now.managers, room).await?,
        };
        let text = visible_lines(&(facts + &sent.text + &items)).into_owned();
        let is_recorded = before.now.digests != before.items
            || !sent.numbers.is_empty()
            || self.is_anew && !text.is_empty();
        let number = match is_recorded {
            true => Some(self.record(link, project, &before, shown, &sent).await?),
            false => None,
        };
        Ok(Push { number, text, is_importing: before.importing })
    }

    /// Asks the server for the items that the session has after the push `received`, for those to
    /// send with its next prompt, and for those marked now, including unsaved text.
    pub(super) async fn before(
        &self,
        link: &ServerLink,
        project: &AgentProject,
        received: Option<u64>,
    ) -> Result<PushedItems, Trouble> {
        let asked = json!({
            "agent": self.agent, "agent_session": self.id, "project": project.directory(),
            "number": received, "marked": true, "recording": self.recording,
        });
        link.call("pushed_context", asked).await
    }

    /// Records a push that gives the session the items that are marked now. Returns the number of
    /// the push. Fails if an item of `sent` has been sent with another prompt in the meantime.
    pub(super) async fn record(
        &self,
        link: &ServerLink,
        project: &AgentProject,
        before: &PushedItems,
        shown: PushShown,
        sent: &SentOnce,
    ) -> Result<u64, Trouble> {
        let item = |(id, digest): (&String, &String)| json!({ "id": id, "digest": digest });
        let record = json!({
            "agent": self.agent, "agent_session": self.id, "after": before.number,
            "items": before.now.digests.iter().map(item).collect::<Vec<_>>(), "project": project.directory(),
            "shown": shown.ids.iter().chain(&sent.ids).collect::<Vec<_>>(),
            "tokens": shown.tokens + sent.tokens, "next": sent.numbers,
        });
        let RecordedPush { number } = link.call("record_push", record).await?;
        Ok(number)
    }

    /// Returns the facts of the session as a text; `None` if the session was not compacted, or has
    /// no facts that fit. Also returns `None` on failure, since the items are worth giving without
    /// the facts.
    async fn facts(&self, link: &ServerLink) -> Option<String> {
        let transcript = self.compacted?.to_str()?;
        let imported: Result<Imported, Trouble> =
            link.call("import_sessions", json!({ "paths": [transcript] })).await;
        let session = imported.ok()?.files.into_iter().next()?.id?;
        let mut tokens = GIVEN_BACK;
        for _ in 0..TRIES {
            let asked = json!({ "session": session, "max_tokens": tokens });
            let facts: ExportedSession = link.call("export_session", asked).await.ok()?;
            if facts.text.is_empty() {
                return None;
            }
            let text = format!(
                "Facts of this session from before its compaction, as Contexture recorded them:\n\
                 \n{}\n\n",
                facts.text
            );
            let (length, room) = (length(&text) as u64, self.room as u64 * 3 / 4);
            if length <= room {
                return Some(text);
            }
            // A little less than what would fit, since the number of bytes per token varies.
            tokens = tokens * room / length * 19 / 20;
        }
        None
    }
}

impl PushedItems {
    /// Returns the items for the next prompt as a text of at most `room` bytes of JSON, or, if they
    /// do not fit even when cut, as a text that only names them.
    pub(super) async fn sent(&self, link: &ServerLink, room: usize) -> Result<SentOnce, Trouble> {
        if self.next.is_empty() {
            return Ok(SentOnce::default());
        }
        let managers: BTreeSet<_> = self.next.iter().map(|due| due.manager.clone()).collect();
        let ids: BTreeSet<_> = self.next.iter().map(|due| due.id.clone()).collect();
        let (managers, ids) = (Vec::from_iter(managers), Vec::from_iter(ids));
        let head = "Sent by the user with this prompt";
        let frame = |text: &str| format!("{head}:\n\n{}\n\n", text.trim_end());
        let fitting = fitting(link, &managers, &ids, room, frame).await;
        let (text, tokens) = fitting.unwrap_or_else(|| {
            let names = ids.join(", ");
            (format!("{head}, but too long to show: {names}; call the tool `read`.\n\n"), 0)
        });
        Ok(SentOnce {
            text,
            numbers: self.next.iter().map(|due| due.number).collect(),
            ids,
            tokens,
        })
    }
}

impl SentOnce {
    pub(super) fn is_nothing(&self) -> bool {
        self.numbers.is_empty()
    }
}

/// Renders items with smaller and smaller budgets, until `frame` turns them into a text of at most
/// `room` bytes of JSON. Returns the text and the number of tokens of the items; `None` if the
/// items still do not fit after [`TRIES`] attempts.
async fn fitting(
    link: &ServerLink,
    managers: &[String],
    ids: &[String],
    room: usize,
    frame: impl Fn(&str) -> String,
) -> Option<(String, u64)> {
    let mut budget = room as u64 / 3;
    for _ in 0..TRIES {
        let shown = rendered(link, managers, Some(ids), budget).await;
        budget /= 2;
        let Ok(shown) = shown else { continue };
        let text = frame(&(shown.text + &named(&shown.report)));
        if length(&text) <= room {
            return Some((text, shown.tokens));
        }
    }
    None
}

/// Has the server import a recording.
///
/// # Errors
/// The reason in words, if the server cannot be reached or cannot import the recording.
pub(crate) async fn import(link: &ServerLink, recording: &str) -> Result<(), String> {
    let imported: Result<Imported, Trouble> =
        link.call("import_sessions", json!({ "paths": [recording] })).await;
    let files = imported.map_err(|trouble| trouble.for_person())?.files;
    files.into_iter().find_map(|file| file.error).map_or(Ok(()), Err)
}

/// The difference between what an agent has and what is marked now.
pub(super) struct MarkedChange {
    /// Items that are new or changed.
    pub(super) changed: Vec<String>,
    /// Items that are no longer marked.
    gone: Vec<String>,
}

impl MarkedChange {
    pub(super) fn between(had: &Digests, now: &Digests) -> Self {
        let changed = now.iter().filter(|(id, digest)| had.get(*id) != Some(*digest));
        let gone = had.keys().filter(|id| !now.contains_key(*id));
        Self { changed: changed.map(|(id, _)| id.clone()).collect(), gone: gone.cloned().collect() }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }

    /// Returns the change as a text of at most `room` bytes of JSON. If the items do not fit, the
    /// text shows only a part of them or only their number, and says how to get them. Also returns
    /// the new or changed items, with the number of tokens that the text shows.
    async fn text(
        &self,
        link: &ServerLink,
        project: &AgentProject,
        managers: &[String],
        room: usize,
    ) -> Result<(String, PushShown), Trouble> {
        let name = project.label();
        if self.changed.is_empty() {
            let head =
                format!("What the user marked in the editor for project {name} has changed:");
            return Ok((self.with_gone(&head, room), PushShown::default()));
        }
        let head = format!("Marked by the user in the editor for project {name}");
        let gone = self.gone_text(GONE_NAMED);
        let frame = |text: &str| format!("{head}, new or changed:\n\n{text}{gone}");
        let fitting = fitting(link, managers, &self.changed, room, frame).await;
        let (text, tokens) = fitting.unwrap_or_else(|| {
            let items = counted(self.changed.len() as u64, "item");
            let advice = "too long to show; call the tool `context`";
            (self.with_gone(&format!("{head}: {items} new or changed, {advice}."), room), 0)
        });
        Ok((text, PushShown { ids: self.changed.clone(), tokens }))
    }

    /// Returns the heading `head`, followed by the names of the items that are no longer marked. If
    /// this text is longer than `room` bytes of JSON, it has the number of the items in place of
    /// their names.
    fn with_gone(&self, head: &str, room: usize) -> String {
        let text = |names| format!("{head}\n{}", self.gone_text(names));
        let named = text(GONE_NAMED);
        if length(&named) <= room { named } else { text(0) }
    }

    /// Returns a line that names the items that are no longer marked, at most `names` of them;
    /// empty if there are none.
    pub(super) fn gone_text(&self, names: usize) -> String {
        let named: Vec<&str> = self.gone.iter().take(names).map(String::as_str).collect();
        let gone = match (named.is_empty(), self.gone.len() - named.len()) {
            (true, 0) => return String::new(),
            (true, all) => counted(all as u64, "item"),
            (false, 0) => named.join(", "),
            (false, more) => format!("{} and {more} more", named.join(", ")),
        };
        format!("\nNo longer marked: {gone}\n")
    }
}

/// Returns the number of bytes of a text as it is sent: with hidden characters made visible, and as
/// JSON.
fn length(text: &str) -> usize {
    Json::from(&*visible_lines(text)).to_string().len()
}
