//! What this machine shares: a file in the state folder, so that a hub cannot ask for more.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::is_secret;
use crate::session::message::Role;
use crate::sync::{
    Body, Edited, Field, Memory, OneSaid, SentChange, SyncProject, SyncScope, SyncSession,
};
use crate::whole_file;

/// File with what is shared.
const FILE: &str = "hub.json";
/// Maximum size of a text in a hub, in bytes. A longer one is cut.
const LONGEST_TEXT: usize = 64 << 10;
/// Maximum length of the name of a memory, in characters.
const LONGEST_NAME: usize = 80;

/// What this machine shares with a hub.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shares {
    /// Machine that numbers the changes.
    pub machine: String,
    /// Machines as which this state shared before it got another key.
    pub was: BTreeSet<String>,
    /// Number of the last change that the hub has, as far as it is to have it.
    pub seq: u64,
    /// Projects by their identities.
    pub projects: BTreeMap<String, Share>,
    /// Identities of projects whose rows are still to be taken back.
    pub leaving: BTreeSet<String>,
}

/// A project that is shared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    /// Its folder.
    pub folder: String,
    /// Role whose members may read.
    pub readers: String,
    /// Numbers of its sessions.
    pub sessions: BTreeSet<u64>,
    /// Numbers of its memories.
    pub memories: BTreeSet<u64>,
    /// Number of messages that were shared.
    pub messages: u64,
    /// Number of texts that look like secrets, and were held back.
    pub held: u64,
}

/// What a hub is told.
#[derive(Debug, PartialEq)]
pub(crate) enum SharedPiece {
    /// A session or a memory of a project.
    Source { kind: &'static str, number: u64, project: String, name: String, created: i64 },
    /// Texts of it.
    Said { kind: &'static str, number: u64, texts: Vec<SharedText> },
    /// It has another name.
    Name { kind: &'static str, number: u64, name: String },
    /// It was deleted or forgotten at this time, or restored.
    Gone { machine: String, kind: &'static str, number: u64, at: Option<i64> },
}

/// A text.
#[derive(Debug, PartialEq)]
pub(crate) struct SharedText {
    pub part: u64,
    pub role: &'static str,
    pub at: i64,
    pub content: String,
}

/// A text that is held back, because it looks like a secret.
#[derive(Debug, PartialEq)]
pub(crate) struct HeldBack {
    pub kind: &'static str,
    pub number: u64,
    pub part: u64,
}

impl Shares {
    /// Reads what is shared from a state folder.
    ///
    /// # Errors
    /// Those of the file. Nothing is shared then.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        match std::fs::read_to_string(folder.join(FILE)) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Writes what is shared.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_string(self)?;
        whole_file::replace(&folder.join(FILE), |file, _| file.write_all(text.as_bytes()))
    }

    /// Returns whether nothing is shared, and nothing is still to be taken back.
    pub(crate) fn is_done(&self) -> bool {
        self.projects.is_empty() && self.leaving.is_empty()
    }

    /// Begins again: all changes of `machine` are looked at once more.
    pub(crate) fn begin(&mut self, machine: &str) {
        if self.machine != machine {
            let before = std::mem::replace(&mut self.machine, machine.to_owned());
            self.was.extend(Some(before).filter(|before| !before.is_empty()));
        }
        self.seq = 0;
        for share in self.projects.values_mut() {
            let (folder, readers) = (share.folder.clone(), share.readers.clone());
            *share = Share { folder, readers, ..Share::default() };
        }
    }

    /// Returns what a hub is told of a change of this machine, and what is held back.
    ///
    /// # Errors
    /// The reason why the change cannot be read.
    pub(crate) fn pieces(
        &mut self,
        sent: &SentChange,
    ) -> Result<(Vec<SharedPiece>, Vec<HeldBack>), String> {
        self.seq = sent.seq;
        let (mut pieces, mut held) = (Vec::new(), Vec::new());
        // What a later change replaced is a set of marks, which is not shared.
        let Some(body) = &sent.body else { return Ok((pieces, held)) };
        match Body::read(body).map_err(|why| format!("a change of this machine {why}"))? {
            Body::Session(session) => pieces.extend(self.session(session)),
            Body::Said(said) => {
                let share = self.projects.values_mut();
                let share = { share }.find(|share| share.sessions.contains(&said.session));
                if let Some(share) = share {
                    let (kind, number) = ("session", said.session);
                    let mut texts = Vec::new();
                    for (part, one) in (said.first..).zip(&said.messages) {
                        match text(part, one) {
                            Some(text) if is_secret(None, &text.content) => {
                                held.push(HeldBack { kind, number, part });
                            }
                            text => texts.extend(text),
                        }
                    }
                    share.messages += texts.len() as u64;
                    share.held += held.len() as u64;
                    if !texts.is_empty() {
                        pieces.push(SharedPiece::Said { kind, number, texts });
                    }
                }
            }
            Body::Memory(memory) => self.memory(memory, &mut pieces, &mut held),
            Body::Edited(edited) => pieces.extend(self.edited(edited)),
            Body::Machine(_) | Body::Marks(_) => {}
        }
        Ok((pieces, held))
    }

    fn share(&mut self, project: &SyncProject) -> Option<(&String, &mut Share)> {
        let is_it = |(identity, share): &(&String, &mut Share)| {
            project.identity.as_ref().map_or(share.folder == project.path, |it| it == *identity)
        };
        self.projects.iter_mut().find(is_it)
    }

    fn session(&mut self, session: SyncSession) -> Option<SharedPiece> {
        let SyncSession { number, name, created, project, .. } = session;
        let (identity, share) = self.share(&project?)?;
        share.sessions.insert(number);
        let name = named(&name, "session");
        Some(SharedPiece::Source {
            kind: "session",
            number,
            project: identity.clone(),
            name,
            created,
        })
    }

    fn memory(&mut self, memory: Memory, pieces: &mut Vec<SharedPiece>, held: &mut Vec<HeldBack>) {
        let Memory { number, scope, created, content, .. } = memory;
        let machine = self.machine.clone();
        let found = match &scope {
            SyncScope::Everywhere => None,
            SyncScope::Project(project) => self.share(project),
            SyncScope::Session(of) => self
                .projects
                .iter_mut()
                .find(|(_, share)| of.machine == machine && share.sessions.contains(&of.number)),
        };
        let Some((identity, share)) = found else { return };
        let kind = "memory";
        if is_secret(None, &content) {
            share.held += 1;
            held.push(HeldBack { kind, number, part: 0 });
            return;
        }
        share.memories.insert(number);
        let name: String = content.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = name.chars().take(LONGEST_NAME).collect();
        pieces.push(SharedPiece::Source { kind, number, project: identity.clone(), name, created });
        let text = SharedText { part: 0, role: kind, at: created, content: plain(&content) };
        pieces.push(SharedPiece::Said { kind, number, texts: vec![text] });
    }

    fn edited(&self, edited: Edited) -> Option<SharedPiece> {
        let Edited { of, field, .. } = edited;
        let kind = if of.kind == "session" { "session" } else { "memory" };
        match field {
            Field::Gone(at) => {
                Some(SharedPiece::Gone { machine: of.machine, kind, number: of.number, at })
            }
            Field::Name(name) => {
                let is_shared = of.machine == self.machine
                    && self.projects.values().any(|share| share.sessions.contains(&of.number));
                let name = named(&name, kind);
                is_shared.then_some(SharedPiece::Name { kind, number: of.number, name })
            }
        }
    }
}

/// Returns what the user or a model said. Results of tools, which may have anything, stay here.
fn text(part: u64, one: &OneSaid) -> Option<SharedText> {
    let (role, at, content) = one.said();
    let role = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        _ => return None,
    };
    (!content.trim().is_empty()).then(|| SharedText { part, role, at, content: plain(content) })
}

/// Returns a text that a database takes.
fn plain(text: &str) -> String {
    crate::sync::cut(text, LONGEST_TEXT).replace('\0', "\u{fffd}")
}

fn named(name: &str, otherwise: &str) -> String {
    if is_secret(None, name) { otherwise.to_owned() } else { plain(name) }
}
