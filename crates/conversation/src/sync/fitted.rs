//! Makes changes fit for other machines: what came from recordings and files may have any length and
//! any time, and one change that is refused would end all exchanges.

use super::LARGEST_BODY;
use super::body::{
    Body, Edited, Field, Memory, SyncItem, SyncMark, SyncProject, SyncScope, SyncSession,
};
use super::fit::{LONGEST_TEXT, NOTE_BYTES, cut, fit_name, fit_time};

impl Body {
    /// Returns the body as other machines take it.
    pub fn fitted(self) -> Self {
        match self {
            Self::Session(it) => Self::Session(SyncSession {
                name: fit_name(&it.name),
                created: fit_time(it.created),
                project: it.project.map(SyncProject::fitted),
                agent: it.agent.as_deref().map(fit_name),
                branch: it.branch.as_deref().map(fit_name),
                ..it
            }),
            Self::Memory(it) => Self::Memory(Memory {
                scope: match it.scope {
                    SyncScope::Project(project) => SyncScope::Project(project.fitted()),
                    scope => scope,
                },
                kind: fit_name(&it.kind),
                created: fit_time(it.created),
                content: cut(&it.content, LONGEST_TEXT - NOTE_BYTES),
                ..it
            }),
            Self::Marks(mut it) => {
                let mut left = LARGEST_BODY / 2;
                it.items.retain_mut(|item| {
                    item.fit();
                    let size = serde_json::to_string(item).map_or(usize::MAX, |text| text.len());
                    let fits = size <= left;
                    left = if fits { left - size } else { 0 };
                    fits
                });
                Self::Marks(SyncMark { name: fit_name(&it.name), at: fit_time(it.at), ..it })
            }
            Self::Edited(it) => {
                let field = match it.field {
                    Field::Name(name) => Field::Name(fit_name(&name)),
                    Field::Gone(at) => Field::Gone(at.map(fit_time)),
                };
                Self::Edited(Edited { field, ..it })
            }
            // A message is made fit when it is told, since it is told from the log each time.
            body @ (Self::Machine(_) | Self::Said(_)) => body,
        }
    }
}

impl SyncProject {
    fn fitted(self) -> Self {
        Self { path: fit_name(&self.path), identity: self.identity.as_deref().map(fit_name) }
    }
}

impl SyncItem {
    fn fit(&mut self) {
        self.tokens = self.tokens.min(self.most_tokens());
        self.at = fit_time(self.at);
        self.taken_ms = fit_time(self.taken_ms / 1000) * 1000 + self.taken_ms % 1000;
    }
}
