//! Notes what changed at this machine since the last exchange, as signed changes.

use super::{Exchange, SyncRefusal, said};
use crate::context::item::Item as ContextItem;
use crate::context::place;
use crate::session::message::Message;
use crate::store::memory::MemoryScope;
use crate::store::metadata::print_value;
use crate::store::session::{NewSession, SessionRow};
use crate::store::sync::{ChangeRow, KnownRow, MachineRow};
use crate::sync::{
    BATCH_BYTES, Body, Edited, Field, MOST_SAID, Memory, Of, OneSaid, SyncItem, SyncMark,
    SyncProject, SyncScope, SyncSession, fit_time, hash, sum,
};
use crate::value::Value;

/// Size of the messages in a change, in bytes, after which no further one is added.
const BYTES: usize = 128 << 10;
/// Size of the changes, in bytes, that one exchange notes. The next one goes on.
const AT_ONCE: usize = 4 * BATCH_BYTES;
/// Maximum number of sessions, memories and managers that one exchange notes.
const MOST_AT_ONCE: usize = 5_000;

impl Exchange<'_> {
    /// Notes what changed. Returns whether that is all of it.
    pub(super) fn capture(&mut self) -> Result<bool, SyncRefusal> {
        let mut left = MOST_AT_ONCE;
        let mut bytes = 0;
        for id in self.engine.store.read().changed_sessions()? {
            if left == 0 || bytes > AT_ONCE {
                return Ok(false);
            }
            left -= 1;
            bytes += self.session(id)?;
        }
        for id in self.engine.store.read().changed_memories()? {
            if left == 0 {
                return Ok(false);
            }
            left -= 1;
            self.memory(id)?;
        }
        for (id, name, version) in self.engine.store.read().changed_managers()? {
            if left == 0 || bytes > AT_ONCE {
                return Ok(false);
            }
            left -= 1;
            bytes += self.marks(id, name, version)?;
        }
        Ok(true)
    }

    /// Signs and stores a change of this machine. `messages` has the first and the last number of
    /// its messages, with the session.
    pub(super) fn note(
        &mut self,
        body: Body,
        messages: Option<(u64, u64, u64)>,
    ) -> Result<(), SyncRefusal> {
        let body = body.fitted();
        let text = body.text();
        let me = self.me();
        let (seq, hash) = (me.seq + 1, hash(&text));
        let about = body.about();
        let sum = sum(&me.sum, about.as_deref(), &hash);
        self.store_change(
            me,
            ChangeRow {
                id: None,
                machine: self.key.id().to_owned(),
                seq,
                about,
                body: messages.is_none().then_some(text),
                digest: hash.to_vec(),
                sum: sum.to_vec(),
                sign: self.key.sign(seq, &sum),
                session: messages.map(|(session, ..)| session),
                first: messages.map(|(_, first, _)| first),
                last: messages.map(|(.., last)| last),
            },
        )
    }

    /// Stores a change as the last one of its machine.
    pub(super) fn store_change(
        &mut self,
        machine: MachineRow,
        row: ChangeRow,
    ) -> Result<(), SyncRefusal> {
        self.engine.store.change()?.add_change(&row)?;
        self.put(MachineRow { seq: row.seq, sum: row.sum, ..machine })
    }

    /// Notes what changed in a session, and returns the size in bytes.
    fn session(&mut self, id: u64) -> Result<usize, SyncRefusal> {
        let row = self.engine.row(id)?;
        let known = self.engine.store.read().known("session", id)?;
        let known = match known {
            // What was continued here is a session of this machine from now on.
            Some(known) if known.machine != self.key.id() && row.messages > known.count => {
                self.keep_as_copy(&row, &known)?;
                None
            }
            known => known,
        };
        let known = match known {
            Some(known) => known,
            None => self.new_session(&row)?,
        };
        let known = self.edits(known, &row.name, row.deleted)?;
        self.messages(id, known, row.messages)
    }

    /// Moves the other machine's part of a session, which was continued here, to a session of its
    /// own. That one is hidden until the other machine continues it, too.
    fn keep_as_copy(&mut self, row: &SessionRow, known: &KnownRow) -> Result<(), SyncRefusal> {
        let name = self.free_session_name(&row.name, &known.machine)?;
        let new = NewSession {
            name: name.clone(),
            manager: String::new(),
            project: row.project.clone(),
            told: row.told.clone(),
            settings: String::new(),
            created: row.created,
            parent: Some((row.id, known.count)),
            source: None,
        };
        let gone = Some(self.engine.now());
        let store = self.engine.store.change()?;
        store.drop_known("session", row.id)?;
        let copy = store.create_session(&new)?;
        store.set_session_deleted(copy, gone)?;
        store.put_known(&KnownRow { row: copy, name, gone, ..known.clone() })?;
        self.engine.sessions.touch(copy);
        Ok(())
    }

    fn new_session(&mut self, row: &SessionRow) -> Result<KnownRow, SyncRefusal> {
        let session = SyncSession {
            number: row.id,
            name: row.name.clone(),
            created: row.created,
            project: row.named_project().map(|path| self.project(path)).transpose()?,
            agent: row.origin.agent.clone(),
            branch: row.origin.branch.clone(),
        };
        self.note(Body::Session(session), None)?;
        let known = KnownRow::new(self.key.id(), "session", [row.id; 2], &row.name, row.created);
        self.engine.store.change()?.put_known(&known)?;
        Ok(known)
    }

    /// Notes that something was renamed, deleted, forgotten or restored here.
    fn edits(
        &mut self,
        known: KnownRow,
        name: &str,
        gone: Option<i64>,
    ) -> Result<KnownRow, SyncRefusal> {
        let (now, me) = (fit_time(self.engine.now()), self.key.id().to_owned());
        let of = |known: &KnownRow| Of {
            machine: known.machine.clone(),
            kind: known.kind.clone(),
            number: known.number,
        };
        let mut new = known.clone();
        if name != known.name {
            // Whoever saw an earlier edit is later, whatever the clocks say.
            let at = now.max(known.name_at + 1);
            let field = Field::Name(name.to_owned());
            self.note(Body::Edited(Edited { of: of(&known), at, field }), None)?;
            new = KnownRow { name: name.to_owned(), name_at: at, name_by: me.clone(), ..new };
        }
        if gone != known.gone {
            let at = now.max(known.gone_at + 1);
            let field = Field::Gone(gone);
            self.note(Body::Edited(Edited { of: of(&known), at, field }), None)?;
            new = KnownRow { gone, gone_at: at, gone_by: me, ..new };
        }
        if new != known {
            self.engine.store.change()?.put_known(&new)?;
        }
        Ok(new)
    }

    /// Notes the messages of a session of this machine after those that are known, and returns their
    /// size in bytes.
    fn messages(&mut self, id: u64, mut known: KnownRow, last: u64) -> Result<usize, SyncRefusal> {
        let mut bytes = 0;
        while known.count < last && bytes <= AT_ONCE && known.machine == self.key.id() {
            let first = known.count + 1;
            let most = last.min(known.count + MOST_SAID);
            let mut messages: Vec<Message> = self.engine.store.read().messages(id, first, most)?;
            let mut size = 0;
            let fit = messages.iter().take_while(|message| {
                let fits = size <= BYTES;
                size += OneSaid::of(message).bytes();
                fits
            });
            messages.truncate(fit.count());
            let Some(newest) = messages.last().map(|message| message.number) else { break };
            self.note(said(known.number, first, &messages), Some((known.number, first, newest)))?;
            bytes += size;
            known.count = newest;
            self.engine.store.change()?.put_known(&known)?;
        }
        Ok(bytes)
    }

    fn memory(&mut self, id: u64) -> Result<(), SyncRefusal> {
        let row = self.engine.memory(id)?;
        if let Some(known) = self.engine.store.read().known("memory", id)? {
            return self.edits(known, "", row.forgotten).map(drop);
        }
        let scope = match &row.made.scope {
            MemoryScope::Everywhere => SyncScope::Everywhere,
            MemoryScope::Project(path) => SyncScope::Project(self.project(path)?),
            MemoryScope::Session(session) => {
                let of = self.engine.store.read().known("session", *session)?;
                // A session that was deleted before the first exchange stays here.
                let Some(of) = of else { return Ok(()) };
                SyncScope::Session(Of { machine: of.machine, kind: of.kind, number: of.number })
            }
        };
        let (kind, content) = (row.made.kind, row.made.content);
        let memory = Memory { number: id, scope, kind, created: row.made.created, content };
        self.note(Body::Memory(memory), None)?;
        let known = KnownRow::new(self.key.id(), "memory", [id; 2], "", row.made.created);
        self.engine.store.change()?.put_known(&known)?;
        Ok(())
    }

    /// Notes the items of a manager, and returns their size in bytes.
    fn marks(&mut self, id: u64, name: String, version: u64) -> Result<usize, SyncRefusal> {
        let slots: Vec<_> = self.engine.manager(&name)?.slots().cloned().collect();
        let item = |item: &ContextItem, pinned| SyncItem {
            kind: item.kind,
            content: item.content.to_string(),
            metadata: print_value(&Value::Map(item.metadata.0.clone())),
            at: item.timestamp,
            taken_ms: item.taken_ms,
            tokens: item.tokens,
            counted_by: item.counted_by.to_owned(),
            pinned,
        };
        let (mut items, mut bytes) = (Vec::new(), 0);
        for slot in &slots {
            bytes += slot.item.content.len();
            // The rest is at this machine.
            if bytes > AT_ONCE {
                break;
            }
            items.push(item(&slot.item, slot.pinned));
        }
        let shown = place::label(&name, None);
        let marks = SyncMark { number: id, name: shown, at: self.engine.now(), items };
        self.note(Body::Marks(marks), None)?;
        let known = KnownRow::new(self.key.id(), "manager", [id; 2], &name, 0);
        self.engine.store.change()?.put_known(&KnownRow { count: version, ..known })?;
        Ok(bytes)
    }

    /// Returns a project of this machine as other machines name it.
    fn project(&mut self, path: &str) -> Result<SyncProject, SyncRefusal> {
        let identity = self.engine.store.read().project_identity(path.trim_end_matches('/'))?;
        let identity = identity.or_else(|| {
            // A copy of another machine's project that is not here.
            Some(path.to_owned()).filter(|path| !path.starts_with('/'))
        });
        Ok(SyncProject { path: path.to_owned(), identity })
    }
}
