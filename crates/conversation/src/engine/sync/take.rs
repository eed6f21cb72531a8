//! Takes the changes of other machines.

use super::{Exchange, SyncRefusal, said};
use crate::engine::Event;
use crate::store::counter_name;
use crate::store::memory::{MemoryScope, NewMemory};
use crate::store::session::{NewSession, RecordedOrigin};
use crate::store::sync::{ChangeRow, KnownRow, MachineRow};
use crate::sync::{
    Body, Edited, Field, LARGEST_NUMBER, MOST_MACHINES, Memory, Of, SentChange, Sum, SyncMark,
    SyncMessages, SyncProject, SyncScope, SyncSession, hash, is_signed, sum, unhex,
};

impl Exchange<'_> {
    /// Takes a change, unless it is known.
    pub(super) fn take(&mut self, sent: &SentChange) -> Result<(), SyncRefusal> {
        let new =
            MachineRow { id: sent.machine.clone(), sum: vec![0; 32], ..MachineRow::default() };
        let machine = self.machines.get(&sent.machine).cloned().unwrap_or(new);
        if sent.seq <= machine.seq {
            return self.complete(sent);
        }
        if sent.machine == self.key.id() {
            return Err(wrong(sent, "names this machine, which did not make it"));
        }
        if sent.seq != machine.seq + 1 {
            return Err(wrong(sent, "comes after changes that are missing"));
        }
        let body = sent.body.as_deref().map(Body::read).transpose();
        let body = body.map_err(|why| wrong(sent, &why))?;
        let (about, hash): (_, Sum) = match (&sent.body, &body, &sent.replaced) {
            (Some(text), Some(body), None) => (body.about(), hash(text)),
            (None, None, Some(replaced)) if !replaced.about.is_empty() => {
                let hash = unhex(&replaced.hash).and_then(|hash| hash.try_into().ok());
                let hash = hash.ok_or_else(|| wrong(sent, "has a hash of a wrong form"))?;
                (Some(replaced.about.clone()), hash)
            }
            _ => return Err(wrong(sent, "must have either a body or what stands for it")),
        };
        let sum = sum(&machine.sum, about.as_deref(), &hash);
        let sign = unhex(&sent.sign).unwrap_or_default();
        if !is_signed(&sent.machine, sent.seq, &sum, &sign) {
            return Err(wrong(sent, "is not signed by the machine that it names"));
        }
        let mut row = ChangeRow {
            machine: sent.machine.clone(),
            seq: sent.seq,
            about,
            digest: hash.to_vec(),
            sum: sum.to_vec(),
            sign,
            ..ChangeRow::default()
        };
        // What this machine was called before it was copied is another machine, if that lives.
        let machine = MachineRow { place: None, ..machine };
        let machine = self.named(machine, body.as_ref(), sent)?;
        if let Some(body) = body {
            if let Body::Said(SyncMessages { session, first, messages }) = &body {
                row.session = Some(*session);
                row.first = Some(*first);
                row.last = Some(first + messages.len() as u64 - 1);
            } else {
                row.body.clone_from(&sent.body);
            }
            self.apply(sent, body)?;
        }
        self.store_change(machine, row)
    }

    /// Takes the body of a change that came without it, if no known change replaces that one.
    fn complete(&mut self, sent: &SentChange) -> Result<(), SyncRefusal> {
        let Some(body) = &sent.body else { return Ok(()) };
        let store = self.engine.store.read();
        let Some(row) = store.change_of(&sent.machine, sent.seq)? else { return Ok(()) };
        if row.digest != hash(body) || !store.is_open(&sent.machine, sent.seq)? {
            return Ok(());
        }
        self.engine.store.change()?.complete_change(&sent.machine, sent.seq, body)?;
        self.apply(sent, Body::read(body).map_err(|why| wrong(sent, &why))?)
    }

    /// Returns the machine of a change, with its name if the change is the first one.
    fn named(
        &mut self,
        machine: MachineRow,
        body: Option<&Body>,
        sent: &SentChange,
    ) -> Result<MachineRow, SyncRefusal> {
        match body {
            Some(Body::Machine(name)) if machine.seq == 0 => {
                if self.machines.len() >= MOST_MACHINES {
                    return Err(wrong(
                        sent,
                        "is of a new machine, and as many machines as can be kept are known",
                    ));
                }
                let name = self.free_machine_name(name, &machine.id);
                self.put(MachineRow { name, ..machine.clone() })?;
                Ok(self.machines.get(&machine.id).cloned().unwrap_or(machine))
            }
            Some(Body::Machine(_)) => Err(wrong(sent, "names its machine a second time")),
            _ if machine.seq == 0 => Err(wrong(sent, "does not say the name of its machine")),
            _ => Ok(machine),
        }
    }

    fn apply(&mut self, sent: &SentChange, body: Body) -> Result<(), SyncRefusal> {
        match body {
            Body::Machine(_) => Ok(()),
            Body::Session(session) => self.begin(sent, session),
            Body::Said(said) => self.append(sent, said),
            Body::Memory(memory) => self.remember(sent, memory),
            Body::Marks(marks) => self.mark(sent, marks),
            Body::Edited(edited) => self.edit(sent, &edited),
        }
    }

    fn begin(&mut self, sent: &SentChange, session: SyncSession) -> Result<(), SyncRefusal> {
        self.refuse_second(sent, "session", session.number)?;
        let name = self.free_session_name(&session.name, &sent.machine)?;
        let told = match &session.project {
            Some(project) => Some(self.here(project, &sent.machine)?),
            None => None,
        };
        let new = NewSession {
            name: name.clone(),
            manager: String::new(),
            project: None,
            told,
            settings: String::new(),
            created: session.created,
            parent: None,
            source: None,
        };
        let origin =
            RecordedOrigin { agent: session.agent, branch: session.branch, ..Default::default() };
        let store = self.engine.store.change()?;
        let id = store.create_session(&new)?;
        store.set_session_origin(id, &origin)?;
        store.put_known(&KnownRow::new(
            &sent.machine,
            "session",
            [id, session.number],
            &name,
            session.created,
        ))?;
        self.taken.sessions += 1;
        self.engine.sessions.touch(id);
        Ok(self.engine.session_changed(id, "exchange")?)
    }

    fn append(&mut self, sent: &SentChange, said_there: SyncMessages) -> Result<(), SyncRefusal> {
        let number = said_there.session;
        let known = self.engine.store.read().known_as(&sent.machine, "session", number)?;
        let known = known.ok_or_else(|| wrong(sent, "has messages of an unknown session"))?;
        if said_there.first != known.count + 1 {
            return Err(wrong(sent, "has messages that do not follow the earlier ones"));
        }
        let count = said_there.messages.len() as u64;
        let numbered = said_there.messages.into_iter().zip(said_there.first..);
        let messages: Option<Vec<_>> =
            numbered.map(|(message, number)| message.message(number, counter_name)).collect();
        let messages = messages.ok_or_else(|| wrong(sent, "has messages that are not valid"))?;
        // They are given on as they are stored here.
        if Some(said(number, said_there.first, &messages).text()) != sent.body {
            return Err(wrong(sent, "is not written as this version writes it"));
        }
        self.engine.store.change()?.append_messages(known.row, &messages)?;
        // A copy that was set aside when the session was continued here has news now.
        let known = match known.gone.is_some() && known.gone_at == 0 {
            true => {
                let known = self.with_free_name(KnownRow { gone: None, ..known })?;
                self.engine.store.change()?.set_session_deleted(known.row, None)?;
                known
            }
            false => known,
        };
        let row = known.row;
        self.engine.store.change()?.put_known(&KnownRow { count: known.count + count, ..known })?;
        self.taken.messages += count;
        self.seen_anew(row)
    }

    fn remember(&mut self, sent: &SentChange, memory: Memory) -> Result<(), SyncRefusal> {
        self.refuse_second(sent, "memory", memory.number)?;
        let scope = match memory.scope {
            SyncScope::Everywhere => MemoryScope::Everywhere,
            SyncScope::Project(project) => {
                MemoryScope::Project(self.here(&project, &sent.machine)?)
            }
            SyncScope::Session(of) => MemoryScope::Session(self.found(sent, &of)?.row),
        };
        let Memory { number, kind, created, content, .. } = memory;
        let new = NewMemory { scope, kind, origin: None, content, created };
        let store = self.engine.store.change()?;
        let id = store.add_memory(&new)?;
        store.put_known(&KnownRow::new(&sent.machine, "memory", [id, number], "", created))?;
        self.taken.memories += 1;
        self.engine.events.push(Event::MemoriesChanged { method: "exchange", id });
        Ok(())
    }

    fn mark(&mut self, sent: &SentChange, marks: SyncMark) -> Result<(), SyncRefusal> {
        let number = marks.number;
        let before = self.engine.store.read().known_as(&sent.machine, "set", number)?;
        let machine = self.machines.get(&sent.machine).map_or("", |row| &*row.name);
        let name = format!("{machine}: {}", marks.name);
        let at = marks.at;
        let slots =
            self.slots(marks.items).ok_or_else(|| wrong(sent, "has items that are not valid"))?;
        // Two managers of a machine may have one label.
        let is_taken = self.engine.store.read().set_named(&name)?.is_some()
            && before.as_ref().is_none_or(|before| before.name != name);
        let name = if is_taken { format!("{name} {number}") } else { name };
        let store = self.engine.store.change()?;
        if let Some(before) = before {
            store.put_set(&before.name, None)?;
            store.drop_known("set", before.row)?;
        }
        let set = store.write_set(at, &slots)?;
        store.put_set(&name, Some(set).filter(|_| !slots.is_empty()))?;
        store.put_known(&KnownRow::new(&sent.machine, "set", [set, number], &name, at))?;
        self.taken.marks += 1;
        Ok(())
    }

    /// Takes an edit, which counts if it is the newest one of its field.
    fn edit(&mut self, sent: &SentChange, edited: &Edited) -> Result<(), SyncRefusal> {
        let known = self.found(sent, &edited.of)?;
        let before = match &edited.field {
            Field::Name(_) => known.name_at,
            Field::Gone(_) => known.gone_at,
        };
        // Whoever saw the last edit that there can be is later by one: no time is the last one.
        let largest = LARGEST_NUMBER.cast_signed();
        if edited.at > largest.max(before + 1) || edited.at < -largest {
            return Err(wrong(sent, "has a time that is not valid"));
        }
        let stamp = (edited.at, &*sent.machine);
        self.taken.edits += 1;
        match &edited.field {
            Field::Name(name) if stamp > (known.name_at, &*known.name_by) => {
                self.rename(known, name, edited.at, &sent.machine)
            }
            Field::Gone(gone) if stamp > (known.gone_at, &*known.gone_by) => {
                self.set_gone(known, *gone, edited.at, &sent.machine)
            }
            _ => Ok(()),
        }
    }

    /// Returns the thing that a change is about.
    fn found(&mut self, sent: &SentChange, of: &Of) -> Result<KnownRow, SyncRefusal> {
        if !["session", "memory"].contains(&&*of.kind) {
            return Err(wrong(sent, "is about neither a session nor a memory"));
        }
        let found = self.engine.store.read().known_as(&of.machine, &of.kind, of.number)?;
        found.ok_or_else(|| wrong(sent, "is about something unknown"))
    }

    fn refuse_second(
        &mut self,
        sent: &SentChange,
        kind: &str,
        number: u64,
    ) -> Result<(), SyncRefusal> {
        match self.engine.store.read().known_as(&sent.machine, kind, number)? {
            Some(_) => Err(wrong(sent, "creates something that was created before")),
            None => Ok(()),
        }
    }

    /// Returns the folder of a project here, or what stands for it while it has none.
    fn here(&mut self, project: &SyncProject, machine: &str) -> Result<String, SyncRefusal> {
        let machine = self.machines.get(machine).map_or("", |row| &*row.name);
        match &project.identity {
            Some(identity) if !identity.starts_with('/') => {
                let folder = self.engine.store.read().project_of(identity)?;
                Ok(folder.unwrap_or_else(|| identity.clone()))
            }
            _ => Ok(format!("{machine}:{}", project.path)),
        }
    }
}

fn wrong(sent: &SentChange, why: &str) -> SyncRefusal {
    let machine: String = sent.machine.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    SyncRefusal::Wrong(format!("change {} of machine {machine} {why}", sent.seq))
}
