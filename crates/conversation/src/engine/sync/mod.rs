//! Exchanges changes with other machines: notes what changed here, takes what came from elsewhere,
//! and gives what another machine lacks. All of it is one request: kept whole, or not at all.

mod capture;
mod copies;
mod take;

use std::collections::HashMap;

use super::{Engine, EngineError};
use crate::session::message::Message;
use crate::store::StoreError;
use crate::store::sync::{ChangeRow, MachineRow};
use crate::sync::{
    BATCH_BYTES, Body, GivenChanges, MOST_CHANGES, MOST_MACHINES, MachineIdentity, MachineKey,
    OneSaid, ReplacedBody, SUM, SeenChanges, SentChange, SyncMessages, TakenCounts, hex,
};

/// Maximum length of the name of a machine, in characters.
const LONGEST_NAME: usize = 40;

/// What another machine asks for and gives.
#[derive(Default)]
pub struct SyncAsked {
    /// How far it knows the changes of all machines; `None` if it wants none.
    pub known: Option<Vec<SeenChanges>>,
    /// Changes that it gives.
    pub changes: Vec<SentChange>,
    /// Projects of this machine with their identities, and whether the user gave these.
    pub projects: Vec<(String, String, bool)>,
}

/// The reason why an exchange was refused. Nothing was changed.
#[derive(Debug)]
pub enum SyncRefusal {
    /// This machine needs another key: its state was copied or restored.
    NeedsKey,
    /// The other machine gave something wrong.
    Wrong(String),
    /// The engine failed.
    Engine(EngineError),
}

impl From<EngineError> for SyncRefusal {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<StoreError> for SyncRefusal {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

/// An exchange while it runs.
struct Exchange<'a> {
    engine: &'a mut Engine,
    key: &'a MachineKey,
    /// All machines by their ids.
    machines: HashMap<String, MachineRow>,
    taken: TakenCounts,
}

impl Engine {
    /// Notes what changed at this machine, takes the changes that another one gives, and returns
    /// those that it lacks.
    ///
    /// # Errors
    /// [`SyncRefusal`]; nothing is changed then.
    pub fn exchange(
        &mut self,
        me: &MachineIdentity,
        asked: &SyncAsked,
    ) -> Result<GivenChanges, SyncRefusal> {
        self.part(|engine| engine.exchange_whole(me, asked))
    }

    /// Returns the changes that this machine made after the one with this number, and whether there
    /// are more.
    ///
    /// # Errors
    /// [`SyncRefusal`].
    pub fn made_here(
        &mut self,
        me: &MachineKey,
        seq: u64,
    ) -> Result<(Vec<SentChange>, bool), SyncRefusal> {
        let rows = self.store.read().machines()?;
        let machines = rows.into_iter().filter(|row| row.id == me.id());
        let machines = machines.map(|row| (row.id.clone(), row)).collect();
        let mut exchange =
            Exchange { engine: self, key: me, machines, taken: TakenCounts::default() };
        exchange.lacking(&[SeenChanges { machine: me.id().to_owned(), seq, ..Default::default() }])
    }

    fn exchange_whole(
        &mut self,
        me: &MachineIdentity,
        asked: &SyncAsked,
    ) -> Result<GivenChanges, SyncRefusal> {
        self.finish_put_off()?;
        // More than honest machines send would hold the engine for long. They add no change to as
        // many bytes.
        let size = |sent: &SentChange| sent.body.as_ref().map_or(0, String::len);
        let before: usize = asked.changes.iter().rev().skip(1).map(size).sum();
        if asked.changes.len() > MOST_CHANGES || before >= BATCH_BYTES {
            let why = format!(
                "an exchange takes at most {MOST_CHANGES} changes, or {BATCH_BYTES} bytes and one \
                 change, at once"
            );
            return Err(SyncRefusal::Wrong(why));
        }
        let most = 2 * MOST_MACHINES;
        if asked.known.as_ref().is_some_and(|known| known.len() > most) {
            let why = format!("an exchange is told of at most {most} machines");
            return Err(SyncRefusal::Wrong(why));
        }
        let rows = self.store.read().machines()?;
        let machines = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
        let taken = TakenCounts::default();
        let mut exchange = Exchange { engine: self, key: &me.key, machines, taken };
        let known = asked.known.as_deref().unwrap_or_default();
        exchange.be(me, known)?;
        exchange.name_projects(&asked.projects)?;
        let is_done = exchange.capture()?;
        exchange.compare(known)?;
        for sent in &asked.changes {
            exchange.take(sent)?;
        }
        let (changes, more) = match &asked.known {
            Some(known) => exchange.lacking(known)?,
            None => (Vec::new(), false),
        };
        let me = exchange.me();
        let known = exchange.known()?;
        Ok(GivenChanges {
            machine: me.id.clone(),
            name: me.name.clone(),
            known,
            changes,
            more: more || !is_done,
            taken: exchange.taken,
            hub: None,
        })
    }
}

impl Exchange<'_> {
    fn me(&self) -> MachineRow {
        self.machines.get(self.key.id()).cloned().unwrap_or_default()
    }

    /// Checks that the key is this state's. A key that no machine had before becomes the state's.
    fn be(&mut self, me: &MachineIdentity, known: &[SeenChanges]) -> Result<(), SyncRefusal> {
        let is_own = |row: &&MachineRow| row.place.as_ref().is_some_and(|place| !place.is_empty());
        let own = self.machines.values().find(is_own).cloned();
        let id = me.key.id();
        let others_know = known.iter().find(|seen| seen.machine == id).map_or(0, |seen| seen.seq);
        if let Some(own) = own.clone().filter(|own| own.id == id) {
            let is_same = own.place.as_deref() == Some(&me.place);
            return match is_same && own.seq >= me.seq {
                true if others_know > own.seq => Err(differ(&own.name)),
                true => Ok(()),
                false => Err(SyncRefusal::NeedsKey),
            };
        }
        if self.machines.contains_key(id) || me.seq > 0 {
            return Err(SyncRefusal::NeedsKey);
        }
        if let Some(own) = own {
            self.put(MachineRow { place: Some(String::new()), ..own })?;
        }
        let name = self.free_machine_name(&me.name, id);
        let place = Some(me.place.clone());
        self.put(MachineRow { id: id.to_owned(), name, place, seq: 0, sum: vec![0; 32] })?;
        self.note(Body::Machine(me.name.clone()), None)
    }

    fn put(&mut self, row: MachineRow) -> Result<(), SyncRefusal> {
        self.engine.store.change()?.put_machine(&row)?;
        self.machines.insert(row.id.clone(), row);
        Ok(())
    }

    /// Returns the name of a machine without characters that hide or mislead, and unlike those of
    /// other machines.
    fn free_machine_name(&self, said: &str, id: &str) -> String {
        let is_plain = |c: &char| c.is_alphanumeric() || "-_. ".contains(*c);
        let name: String = said.chars().filter(is_plain).take(LONGEST_NAME).collect();
        let name = if name.trim().is_empty() { "machine".to_owned() } else { name };
        match self.machines.values().any(|row| row.name == name && row.id != id) {
            true => format!("{name} {}", id.get(..8).unwrap_or(id)),
            false => name,
        }
    }

    fn known(&mut self) -> Result<Vec<SeenChanges>, SyncRefusal> {
        let mut open: HashMap<String, Vec<u64>> = HashMap::new();
        for (machine, seq) in self.engine.store.read().open_changes(MOST_CHANGES as u64)? {
            open.entry(machine).or_default().push(seq);
        }
        let seen = |row: &MachineRow| SeenChanges {
            machine: row.id.clone(),
            seq: row.seq,
            sum: hex(row.sum.get(..SUM).unwrap_or_default()),
            open: open.remove(&row.id).unwrap_or_default(),
        };
        let mut known: Vec<SeenChanges> = self.machines.values().map(seen).collect();
        known.sort_by(|a, b| a.machine.cmp(&b.machine));
        Ok(known)
    }

    /// Refuses another machine that knows other changes under the same numbers.
    fn compare(&mut self, known: &[SeenChanges]) -> Result<(), SyncRefusal> {
        for seen in known {
            let Some(row) = self.machines.get(&seen.machine) else { continue };
            if seen.seq == 0 || seen.seq > row.seq {
                continue;
            }
            let name = row.name.clone();
            let change = self.engine.store.read().change_of(&seen.machine, seen.seq)?;
            let sum = change.map(|row| hex(row.sum.get(..SUM).unwrap_or_default()));
            if sum.as_ref() != Some(&seen.sum) {
                return Err(differ(&name));
            }
        }
        Ok(())
    }

    /// Returns changes that another machine lacks, and whether there are more.
    fn lacking(&mut self, known: &[SeenChanges]) -> Result<(Vec<SentChange>, bool), SyncRefusal> {
        let mut rows: Vec<ChangeRow> = Vec::new();
        let wanted = known.iter().flat_map(|seen| seen.open.iter().map(move |seq| (seen, seq)));
        for (seen, seq) in wanted.take(MOST_CHANGES) {
            let row = self.engine.store.read().change_of(&seen.machine, *seq)?;
            rows.extend(row.filter(|row| row.body.is_some() && row.seq <= seen.seq));
        }
        let known: HashMap<&str, u64> =
            known.iter().map(|seen| (&*seen.machine, seen.seq)).collect();
        // Beyond the last one of a list that was cut, those of other machines may depend on what is
        // not in the list.
        let mut until = u64::MAX;
        for machine in self.machines.values() {
            let seq = known.get(&*machine.id).copied().unwrap_or(0);
            if seq < machine.seq {
                let most = MOST_CHANGES as u64;
                let of = self.engine.store.read().changes_after(&machine.id, seq, most)?;
                if of.len() == MOST_CHANGES {
                    until = until.min(of.last().and_then(|row| row.id).unwrap_or_default());
                }
                rows.extend(of);
            }
        }
        rows.sort_by_key(|row| row.id);
        let (mut sent, mut bytes, count) = (Vec::new(), 0, rows.len());
        for row in rows.into_iter().filter(|row| row.id.is_some_and(|id| id <= until)) {
            if bytes >= BATCH_BYTES || sent.len() == MOST_CHANGES {
                break;
            }
            let body = self.body_of(&row)?;
            bytes += body.as_ref().map_or(0, String::len);
            let about = row.about.filter(|_| body.is_none());
            let replaced = about.map(|about| ReplacedBody { about, hash: hex(&row.digest) });
            let (machine, sign) = (row.machine, hex(&row.sign));
            sent.push(SentChange { machine, seq: row.seq, sign, body, replaced });
        }
        let more = until < u64::MAX || sent.len() < count;
        Ok((sent, more))
    }

    /// Returns the body of a change; `None` if a later change replaced it.
    fn body_of(&mut self, row: &ChangeRow) -> Result<Option<String>, SyncRefusal> {
        let (Some(session), Some(first), Some(last)) = (row.session, row.first, row.last) else {
            return Ok(row.body.clone());
        };
        let store = self.engine.store.read();
        let Some(known) = store.known_as(&row.machine, "session", session)? else {
            return Err(SyncRefusal::Wrong(format!("the messages of session {session} are gone")));
        };
        let messages = store.messages(known.row, first, last)?;
        Ok(Some(said(session, first, &messages).text()))
    }
}

/// Returns the refusal of a machine that knows other changes of a machine under the same numbers.
fn differ(name: &str) -> SyncRefusal {
    SyncRefusal::Wrong(format!(
        "the two machines know different changes of {name} under the same numbers, so one of them \
         was restored from a copy; remove the file machine-key in the state folder of that one, \
         and exchange again"
    ))
}

/// Returns the body of a change with messages of a session.
fn said(session: u64, first: u64, messages: &[Message]) -> Body {
    Body::Said(SyncMessages {
        session,
        first,
        messages: messages.iter().map(OneSaid::of).collect(),
    })
}

#[cfg(test)]
mod tests;
