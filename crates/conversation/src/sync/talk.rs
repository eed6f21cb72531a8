//! The talk of two machines: each gives what the other lacks, until neither lacks anything.

use serde::{Deserialize, Serialize};

use super::{GivenChanges, PROTOCOL, SeenChanges, SentChange, TakenCounts};

/// Maximum number of rounds in which nothing comes although there is more.
const MOST_IDLE: u32 = 3;
/// Size of the changes that one talk brings to a machine, in bytes, and number of machines with a name.
/// More come with the next one, so that a host without end of them has no more than its user lets it.
pub const MOST_BYTES: usize = 512 << 20;
pub const MOST_NAMED: usize = 32;

/// What one talk has brought to a machine.
#[derive(Debug, Default)]
pub struct Brought {
    bytes: usize,
    machines: usize,
}

/// What one machine says to the other in a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncRequest {
    protocol: u64,
    known: Option<Vec<SeenChanges>>,
    changes: Vec<SentChange>,
}

/// A talk that has ended.
#[derive(Debug, Default, PartialEq)]
pub struct EndedTalk {
    /// What this machine took.
    pub taken: TakenCounts,
    /// What the other machine took.
    pub given: TakenCounts,
    /// Name of the other machine.
    pub name: String,
    /// The changes that the other machine has: for each machine, up to which number.
    pub known: Vec<SeenChanges>,
    /// Number of rounds.
    pub rounds: u32,
}

impl SyncRequest {
    /// Returns a request of the version of this program.
    pub fn of(known: Option<Vec<SeenChanges>>, changes: Vec<SentChange>) -> Self {
        Self { protocol: PROTOCOL, known, changes }
    }

    /// Takes no more than one talk may bring.
    ///
    /// # Errors
    /// Says that there was more. The rest of the request is to be kept.
    pub fn admit(&mut self, brought: &mut Brought) -> Result<(), String> {
        brought.admit(&mut self.changes)
    }

    /// Returns what is asked for and what is given.
    #[cfg(test)]
    pub fn into_parts(self) -> (Option<Vec<SeenChanges>>, Vec<SentChange>) {
        (self.known, self.changes)
    }
}

impl Brought {
    fn admit(&mut self, changes: &mut Vec<SentChange>) -> Result<(), String> {
        let is_too_much = |sent: &SentChange| {
            let replaced = sent.replaced.as_ref().map(|it| it.about.len() + it.hash.len());
            let body = sent.body.as_ref().map(String::len).or(replaced);
            self.bytes += sent.machine.len() + sent.sign.len() + body.unwrap_or(0);
            // The first change of a machine names it.
            self.machines += usize::from(sent.seq == 1);
            self.bytes > MOST_BYTES || self.machines > MOST_NAMED
        };
        let Some(end) = changes.iter().position(is_too_much) else { return Ok(()) };
        changes.truncate(end);
        let what = match self.machines > MOST_NAMED {
            true => format!("{MOST_NAMED} machines"),
            false => format!("{} MB", MOST_BYTES >> 20),
        };
        Err(format!(
            "more than {what} came at once; what came before is kept; if all of it is yours, exchange \
             again for the rest"
        ))
    }
}

/// Lets two machines exchange all changes. `remembered` is how far the other one knew the changes at
/// the end of the last talk, so that new ones go along with the first round.
///
/// # Errors
/// Those of the machines, and a reason if the other one does not keep to the rules. What was taken
/// until then is kept.
pub fn talk<E: From<String>>(
    mut ours: impl FnMut(SyncRequest) -> Result<GivenChanges, E>,
    mut theirs: impl FnMut(SyncRequest) -> Result<GivenChanges, E>,
    remembered: Vec<SeenChanges>,
) -> Result<EndedTalk, E> {
    let (mut run, mut idle, mut brought) = (EndedTalk::default(), 0, Brought::default());
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
        let came = there.changes.len();
        let admitted = brought.admit(&mut there.changes);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::ReplacedBody;

    #[test]
    fn one_talk_brings_so_many_bytes_and_the_next_one_the_rest() {
        let sent = |seq, body: Option<&str>, hash: Option<&str>| {
            let (machine, sign) = ("m".repeat(64), "s".repeat(128));
            let hash = hash.map(str::to_owned);
            let replaced = hash.map(|hash| ReplacedBody { about: String::new(), hash });
            SentChange { machine, seq, sign, body: body.map(str::to_owned), replaced }
        };
        // What has no body counts, too.
        for change in [sent(2, Some("body"), None), sent(2, None, Some("hash"))] {
            let mut brought = Brought { bytes: MOST_BYTES - 3 * 196, machines: 0 };
            let mut request = SyncRequest::of(None, vec![change; 5]);
            let why = request.admit(&mut brought).unwrap_err();
            assert!(why.contains("more than 512 MB") && why.contains("is kept"), "{why}");
            assert_eq!(request.changes.len(), 3);
            assert_eq!(request.admit(&mut Brought::default()), Ok(()));
            assert_eq!(request.changes.len(), 3);
        }
    }
}
