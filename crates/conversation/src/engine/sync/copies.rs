//! Names, projects and deletions of what came from other machines.

use std::sync::Arc;

use super::{Exchange, SyncRefusal};
use crate::context::change::Slot;
use crate::context::item::{Item as ContextItem, ItemId, Metadata};
use crate::ids::SessionId;
use crate::store::counter_name;
use crate::store::metadata::read_value;
use crate::store::sync::KnownRow;
use crate::sync::SyncItem;
use crate::value::Value;

/// Maximum length of the name of another machine's session, in bytes: that of a name here.
const LONGEST_NAME: usize = 1024;

impl Exchange<'_> {
    /// Notes the identities of the projects of this machine.
    pub(super) fn name_projects(
        &mut self,
        projects: &[(String, String, bool)],
    ) -> Result<(), SyncRefusal> {
        for (path, identity, given) in projects {
            let known = self.engine.store.read().project_identity(path)?;
            if known.as_ref() == Some(identity) {
                continue;
            }
            let sessions = self.engine.store.change()?.put_project(path, identity, *given)?;
            for id in sessions {
                drop(self.engine.sessions.take(id));
                self.engine.sessions.touch(id);
            }
        }
        Ok(())
    }

    /// Returns a name for a copy of another machine's session that no session here has.
    pub(super) fn free_session_name(
        &mut self,
        name: &str,
        machine: &str,
    ) -> Result<String, SyncRefusal> {
        // A name in the form of an id would hide the session with that id.
        let is_name = !name.is_empty() && name.parse::<SessionId>().is_err();
        let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
        if is_name && self.engine.store.read().session_named(name)?.is_none() {
            return Ok(name.to_owned());
        }
        let machine = self.machines.get(machine).map_or("", |row| &*row.name);
        Ok(self.engine.free_name_like(format!("{name} ({machine})"))?)
    }

    /// Gives a session the name of another machine's edit.
    pub(super) fn rename(
        &mut self,
        known: KnownRow,
        name: &str,
        at: i64,
        by: &str,
    ) -> Result<(), SyncRefusal> {
        if known.kind != "session" {
            return Ok(());
        }
        let row = known.row;
        let holder = self.engine.store.read().session_named(name)?;
        let name = match holder {
            Some(holder) if holder.id == row => name.to_owned(),
            _ => self.free_session_name(name, by)?,
        };
        let store = self.engine.store.change()?;
        store.rename_session(row, &name)?;
        let by = by.to_owned();
        store.put_known(&KnownRow { name, name_at: at, name_by: by, ..known })?;
        self.seen_anew(row)
    }

    /// Deletes, forgets or restores something as another machine did.
    pub(super) fn set_gone(
        &mut self,
        known: KnownRow,
        gone: Option<i64>,
        at: i64,
        by: &str,
    ) -> Result<(), SyncRefusal> {
        let row = known.row;
        let known = KnownRow { gone, gone_at: at, gone_by: by.to_owned(), ..known };
        if known.kind == "memory" {
            let store = self.engine.store.change()?;
            store.set_memory_forgotten(row, gone)?;
            store.put_known(&known)?;
            return Ok(());
        }
        let known = match gone {
            Some(_) => {
                self.engine.sessions.close(row);
                known
            }
            None => self.with_free_name(known)?,
        };
        let store = self.engine.store.change()?;
        store.set_session_deleted(row, gone)?;
        store.put_known(&known)?;
        self.seen_anew(row)
    }

    /// Gives a deleted session that is to come back another name if its own was taken meanwhile.
    pub(super) fn with_free_name(&mut self, known: KnownRow) -> Result<KnownRow, SyncRefusal> {
        let name = self.free_session_name(&known.name, &known.machine)?;
        if name != known.name {
            self.engine.store.change()?.rename_session(known.row, &name)?;
        }
        Ok(KnownRow { name, ..known })
    }

    /// Makes the engine read a session again.
    pub(super) fn seen_anew(&mut self, row: u64) -> Result<(), SyncRefusal> {
        drop(self.engine.sessions.take(row));
        self.engine.sessions.touch(row);
        Ok(self.engine.session_changed(row, "exchange")?)
    }

    /// Returns items of another machine as those of a set. They are copies, and follow no file.
    pub(super) fn slots(&mut self, items: Vec<SyncItem>) -> Option<Vec<Slot>> {
        let now = self.engine.now();
        let slot = |(rank, it): (u64, SyncItem)| {
            let metadata = match read_value(&it.metadata)? {
                Value::Map(entries) => Metadata(entries),
                _ => return None,
            };
            let item = ContextItem {
                id: ItemId(0),
                kind: it.kind,
                content: it.content.into(),
                metadata,
                timestamp: it.at.min(now),
                taken_ms: it.taken_ms,
                tokens: it.tokens,
                counted_by: counter_name(&it.counted_by),
                live: false,
            };
            Some(Slot {
                item: Arc::new(item),
                rank: rank.cast_signed(),
                pinned: it.pinned,
                version: 0,
            })
        };
        (0..).zip(items).map(slot).collect()
    }
}
