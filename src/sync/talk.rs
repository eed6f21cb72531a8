//! The talk of two machines: each gives what the other lacks, until neither lacks anything.

use serde::{Deserialize, Serialize};

use super::{GivenChanges, PROTOCOL, SeenChanges, SentChange, TakenCounts};

/// Maximum number of rounds in which nothing comes although there is more.
const MOST_IDLE: u32 = 3;
/// Size of the changes, in bytes, after which one talk takes no more.
const MOST_TAKEN: usize = 4 << 30;

/// Maximum number of machines, each with a name, that one talk may bring. More come with the next one,
/// so that a host without end of them has no more than its user lets it.
const MOST_BROUGHT: usize = 32;

/// What one machine says to the other in a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SyncRequest {
    protocol: u64,
    known: Option<Vec<SeenChanges>>,
    changes: Vec<SentChange>,
}

/// A talk that has ended.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct EndedTalk {
    /// What this machine took.
    pub taken: TakenCounts,
    /// What the other machine took.
    pub given: TakenCounts,
    /// Name of the other machine.
    pub name: String,
    /// How far the other machine knows all changes.
    pub known: Vec<SeenChanges>,
    /// Number of rounds.
    pub rounds: u32,
}

impl SyncRequest {
    /// Returns a request of the version of this program.
    pub(crate) fn of(known: Option<Vec<SeenChanges>>, changes: Vec<SentChange>) -> Self {
        Self { protocol: PROTOCOL, known, changes }
    }

    /// Takes no more than one talk may bring. `brought` counts what it has brought.
    ///
    /// # Errors
    /// Says that there was more. The rest of the request is to be kept.
    pub(crate) fn admit(&mut self, brought: &mut usize) -> Result<(), String> {
        admit(&mut self.changes, brought)
    }

    /// Returns what is asked for and what is given.
    #[cfg(test)]
    pub(crate) fn into_parts(self) -> (Option<Vec<SeenChanges>>, Vec<SentChange>) {
        (self.known, self.changes)
    }
}

fn admit(changes: &mut Vec<SentChange>, brought: &mut usize) -> Result<(), String> {
    let is_too_much = |sent: &SentChange| {
        // The first change of a machine names it.
        *brought += usize::from(sent.seq == 1);
        *brought > MOST_BROUGHT
    };
    let Some(end) = changes.iter().position(is_too_much) else { return Ok(()) };
    changes.truncate(end);
    Err(format!(
        "more than {MOST_BROUGHT} machines came at once; if all of them are yours, exchange again for \
         the others"
    ))
}

/// Lets two machines exchange all changes. `remembered` is how far the other one knew the changes at
/// the end of the last talk, so that new ones go along with the first round.
///
/// # Errors
/// Those of the machines, and a reason if the other one does not keep to the rules. What was taken
/// until then is kept.
pub(crate) fn talk<E: From<String>>(
    mut ours: impl FnMut(SyncRequest) -> Result<GivenChanges, E>,
    mut theirs: impl FnMut(SyncRequest) -> Result<GivenChanges, E>,
    remembered: Vec<SeenChanges>,
) -> Result<EndedTalk, E> {
    let (mut run, mut idle, mut bytes, mut brought) = (EndedTalk::default(), 0, 0, 0);
    let guess = Some(remembered).filter(|known| !known.is_empty());
    let mut mine = ours(SyncRequest::of(guess.clone(), Vec::new()))?;
    loop {
        let request = SyncRequest::of(Some(mine.known.clone()), mine.changes);
        let mut there = match theirs(request) {
            // The guess may be wrong: the other machine may be back at an earlier state.
            Err(_) if run.rounds == 0 && guess.is_some() => {
                theirs(SyncRequest::of(Some(mine.known), Vec::new()))?
            }
            there => there?,
        };
        run.rounds += 1;
        run.given.add(there.taken);
        bytes += there
            .changes
            .iter()
            .map(|sent| sent.body.as_ref().map_or(0, String::len))
            .sum::<usize>();
        if bytes > MOST_TAKEN {
            return Err(format!("took {MOST_TAKEN} bytes; exchange again to go on").into());
        }
        let came = there.changes.len();
        let admitted = admit(&mut there.changes, &mut brought);
        mine = ours(SyncRequest::of(Some(there.known.clone()), there.changes))?;
        run.taken.add(mine.taken);
        admitted?;
        (run.name, run.known) = (there.name, there.known);
        if mine.changes.is_empty() && !mine.more && !there.more {
            // The other machine knows now what it gave.
            return Ok(run);
        }
        idle = if came == 0 && mine.changes.is_empty() { idle + 1 } else { 0 };
        if idle > MOST_IDLE {
            return Err("the other machine says that there is more, and gives nothing"
                .to_owned()
                .into());
        }
    }
}

impl TakenCounts {
    /// Adds the numbers of another round.
    fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.messages += other.messages;
        self.memories += other.memories;
        self.marks += other.marks;
        self.edits += other.edits;
    }
}
