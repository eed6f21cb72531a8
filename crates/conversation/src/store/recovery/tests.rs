//! Corrupts the files of a large state at random, and checks five promises: no acknowledged data
//! are missing without a report, the missing changes are counted, no data are wrong, no id is given
//! twice, and every start succeeds.
//!
//! Runs a few seeds, and more in `make test-all`.

use contexture_core::testing::rounds;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::*;
use crate::context::change::{Change, SetChange, Slot};
use crate::context::item::{Item, ItemId, Kind};
use crate::session::message::Role;
use crate::store::memory::{MemoryFilter, MemoryScope, NewMemory};
use crate::store::session::NewSession;
use crate::store::testing::message;
use crate::store::{Counters, Store};
use crate::whole_file::kill;

/// Number of bursts. It is not round, so that the last bursts are in the write-ahead log only.
const BURSTS: u64 = 3013;
/// Numbers of the bursts after which older copies of the files are taken.
const OLDER: [u64; 3] = [1200, 2200, BURSTS - 3];
/// Numbers of the bursts after which a backup is made.
const BACKED_UP: [u64; 2] = [1500, 2500];
const MANAGERS: u64 = 30;
const SESSIONS: u64 = 12;

/// A small random generator, so that a seed determines everything.
struct SeededRandom(u64);

impl SeededRandom {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

fn open_at(folder: &Path) -> OpenedStore {
    open(folder, Box::new(|| Ok(()))).unwrap()
}

/// Returns the same text of random words for the same number.
fn content(what: &str, number: u64) -> String {
    let mut random = SeededRandom(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let words = 3 + random.below(if number.is_multiple_of(97) { 2000 } else { 60 });
    let words: Vec<String> = (0..words).map(|_| format!("{:x}", random.next() >> 40)).collect();
    format!("{what} {number} {}", words.join(" "))
}

fn slot(number: u64) -> Slot {
    let item = Item {
        id: ItemId(number),
        kind: Kind::Code,
        content: content("item", number).into(),
        metadata: Default::default(),
        timestamp: 5,
        taken_ms: 6,
        tokens: 7,
        counted_by: "o200k",
        live: false,
    };
    Slot { rank: number as i64, pinned: false, version: number, item: item.into() }
}

/// All writes that were acknowledged.
#[derive(Default, Clone)]
struct Acknowledged {
    next_item: u64,
    items: BTreeSet<u64>,
    messages: BTreeMap<u64, u64>,
    memories: BTreeSet<u64>,
    sets: BTreeSet<u64>,
    keys: BTreeSet<u64>,
    last_memory: u64,
    last_set: u64,
}

impl Acknowledged {
    /// Writes a burst and records that it was acknowledged.
    fn burst(&mut self, store: &mut impl Store, number: u64) {
        let manager = format!("m{}", number % MANAGERS);
        match number % 20 {
            0 => {
                let id = store.change().unwrap().write_set(5, &[slot(number)]).unwrap();
                assert!(id > self.last_set, "set {id} was given before");
                self.last_set = id;
                let set = SetChange { name: format!("s{number}"), before: None, after: Some(id) };
                let change =
                    Change { method: "save-set".into(), set: Some(set), ..Change::default() };
                store.record(&manager, &change).unwrap();
                self.sets.insert(number);
            }
            1 => {
                let memory = NewMemory {
                    scope: MemoryScope::Everywhere,
                    kind: "note".into(),
                    origin: None,
                    content: content("memory", number),
                    created: 1,
                };
                let id = store.change().unwrap().add_memory(&memory).unwrap();
                assert!(id > self.last_memory, "memory {id} was given before");
                self.last_memory = id;
                self.memories.insert(number);
            }
            2..=4 => {
                let session = number % SESSIONS + 1;
                let last = self.messages.entry(session).or_default();
                *last += 1;
                let text = content("message", session << 32 | *last);
                store
                    .change()
                    .unwrap()
                    .append_messages(session, &[message(*last, Role::User, &text)])
                    .unwrap();
            }
            _ => {
                let next = store.counters().unwrap().next_item;
                assert!(next >= self.next_item, "item {next} was given before");
                let mut change = Change { method: "add".into(), ..Change::default() };
                change.enter(slot(next));
                store.record(&manager, &change).unwrap();
                store.remember(&format!("key {number}"), &content("key", number)).unwrap();
                self.items.insert(next);
                self.keys.insert(number);
                self.next_item = next + 1;
            }
        }
        store.keep().unwrap();
        let before = store.counters().unwrap();
        let (next_item, next_version) = (self.next_item.max(before.next_item), self.next_item);
        let next_version = next_version.max(before.next_version);
        store.commit(Counters { next_item, next_version, ..before }).unwrap();
    }

    /// Panics when something that can be read differs from what was written.
    fn check_readable(&self, store: &mut impl Store) {
        for number in 0..MANAGERS {
            let slots = store.load(&format!("m{number}")).ok().flatten().map(|it| it.slots);
            for slot in slots.into_iter().flatten() {
                assert_eq!(*slot.item.content, content("item", slot.version), "a wrong item");
            }
        }
        for (session, last) in &self.messages {
            for one in store.read().messages(*session, 1, *last).into_iter().flatten() {
                assert_eq!(*one.content, content("message", session << 32 | one.number));
            }
        }
        let memories = store.read().memories(&MemoryFilter::default(), 99_999);
        memories.iter().flatten().for_each(|row| _ = number_of("memory", &row.made.content));
        for number in &self.keys {
            let outcome = store.recall(&format!("key {number}")).ok().flatten();
            assert!(outcome.is_none_or(|outcome| outcome == content("key", *number)));
        }
    }

    /// Panics when stored data differs from what was written, and returns what is missing.
    fn check(&self, store: &mut impl Store) -> Vec<String> {
        let mut missing = Vec::new();
        let mut items = BTreeSet::new();
        for number in 0..MANAGERS {
            let Some(stored) = store.load(&format!("m{number}")).unwrap() else { continue };
            for slot in stored.slots {
                assert_eq!(*slot.item.content, content("item", slot.version), "a wrong item");
                assert_eq!(slot.item.id.0, slot.version);
                items.insert(slot.version);
            }
        }
        missing.extend(self.items.difference(&items).map(|number| format!("item {number}")));
        for (session, last) in &self.messages {
            let count = store.read().session(*session).unwrap().map_or(0, |row| row.messages);
            let found = store.read().messages(*session, 1, count).unwrap();
            assert_eq!(found.len() as u64, count);
            for one in &found {
                assert_eq!(*one.content, content("message", session << 32 | one.number));
            }
            missing.extend((count + 1..=*last).map(|number| format!("message {session} {number}")));
        }
        let memories = store.read().memories(&MemoryFilter::default(), 99_999).unwrap();
        let memories: BTreeSet<u64> =
            memories.iter().map(|row| number_of("memory", &row.made.content)).collect();
        missing
            .extend(self.memories.difference(&memories).map(|number| format!("memory {number}")));
        for number in &self.sets {
            let Some(set) = store.read().set_named(&format!("s{number}")).unwrap() else {
                missing.push(format!("set {number}"));
                continue;
            };
            let slots = store.read().read_set(set).unwrap();
            assert_eq!(slots.len(), 1);
            assert_eq!(*slots[0].item.content, content("item", *number));
        }
        for number in &self.keys {
            match store.recall(&format!("key {number}")).unwrap() {
                None => missing.push(format!("key {number}")),
                Some(outcome) => assert_eq!(outcome, content("key", *number)),
            }
        }
        missing
    }
}

/// Returns the number in a content, which must be the number under which the content was written.
fn number_of(what: &str, text: &str) -> u64 {
    let number = text.split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(text, content(what, number));
    number
}

/// A large state at the moment of a crash, and older copies of its files.
struct CrashedState {
    dir: tempfile::TempDir,
    model: Acknowledged,
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let path = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &path);
        } else {
            fs::copy(entry.path(), path).unwrap();
        }
    }
}

fn build() -> CrashedState {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("state");
    fs::create_dir(&folder).unwrap();
    let mut store = open_at(&folder).store;
    let mut model = Acknowledged { next_item: 1, ..Acknowledged::default() };
    for number in 1..=SESSIONS {
        let name = format!("session {number}");
        store
            .change()
            .unwrap()
            .create_session(&NewSession { name, ..NewSession::default() })
            .unwrap();
    }
    store.keep().unwrap();
    let counters = store.counters().unwrap();
    store.commit(counters).unwrap();
    for number in 1..=BURSTS {
        model.burst(&mut store, number);
        if number % 500 == 0 {
            store.settle().unwrap();
        }
        if BACKED_UP.contains(&number) {
            let now = jiff::Timestamp::now().as_second();
            backup::write_automatic(&Files::new(&folder), now, 7).unwrap();
        }
        if OLDER.contains(&number) {
            copy_folder(&folder, &dir.path().join(format!("old-{number}")));
        }
        // A few bursts that the checkpoint lacks.
        if number == BURSTS - 45 {
            store.settle().unwrap();
        }
    }
    copy_folder(&folder, &dir.path().join("crashed"));
    store.settle().unwrap();
    drop(store);
    copy_folder(&folder, &dir.path().join("settled"));
    CrashedState { dir, model }
}

impl CrashedState {
    /// Damages one file of `folder` and describes the damage.
    fn damage(&self, folder: &Path, random: &mut SeededRandom) -> (String, String) {
        let mut files = Files::new(folder).all();
        files.push(Files::new(folder).backups().join("latest.db"));
        // The database and its log are damaged more often, because all depends on them.
        let path = &files[[0, 0, 0, 1, 1, 1, 2, 3, 4][random.below(9)]];
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut bytes = fs::read(path).unwrap_or_default();
        let length = bytes.len();
        let how = match random.below(9) {
            0 => {
                flip(&mut bytes, random);
                "a bit flipped"
            }
            1 => {
                (0..1 + random.below(20)).for_each(|_| flip(&mut bytes, random));
                "bits flipped"
            }
            2 => {
                bytes.truncate(random.below(length));
                "truncated"
            }
            3 => {
                bytes.truncate(random.below(length / 4096 + 1) * 4096);
                "truncated to pages"
            }
            4 => {
                bytes = [bytes.clone(), bytes].concat();
                "doubled"
            }
            5 => {
                let at = random.below(length / 4096 + 1) * 4096;
                let end = length.min(at + 4096 * (1 + random.below(5)));
                bytes.get_mut(at..end).into_iter().for_each(|part| part.fill(0));
                "zeroed"
            }
            6 => {
                let old = format!("old-{}", OLDER[random.below(3)]);
                bytes = fs::read(self.dir.path().join(old).join(&name)).unwrap_or_default();
                "swapped with an older copy"
            }
            7 => {
                let from = random.below(length);
                bytes[from..].iter_mut().for_each(|byte| *byte = random.next() as u8);
                "garbage to the end"
            }
            _ => {
                let _ = fs::remove_file(path);
                return (name, "missing".to_owned());
            }
        };
        fs::write(path, bytes).unwrap();
        (name, how.to_owned())
    }

    /// Damages a copy of the state and opens it. Returns whether a loss was reported.
    fn try_seed(&self, seed: u64) -> bool {
        let mut random = SeededRandom(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
        (0..5).for_each(|_| _ = random.next());
        let dir = tempfile::tempdir_in(self.dir.path()).unwrap();
        let folder = dir.path();
        let base = ["crashed", "crashed", "settled"][random.below(3)];
        copy_folder(&self.dir.path().join(base), folder);
        let files = if random.below(4) == 0 { 2 } else { 1 };
        let done: Vec<_> = (0..files).map(|_| self.damage(folder, &mut random)).collect();
        let about = format!("seed {seed}: {base}, {done:?}");
        let _printed_when_it_fails = OnPanic(&about);
        let inspected = inspect(folder).unwrap_or_else(|error| panic!("{about}: {error}"));
        let opened = open(folder, Box::new(|| Ok(())));
        let OpenedStore { mut store, mut findings } =
            opened.unwrap_or_else(|e| panic!("{about}: {e}"));
        assert!(store.refusal().is_none(), "{about}: only for reading");
        self.model.check_readable(&mut store);
        match check_file(&Files::new(folder)) {
            Ok(()) => assert_eq!(store.damage(), None, "{about}"),
            Err(StoreError::Damaged(_)) => findings.extend(store.renew().unwrap()),
            Err(error) => panic!("{about}: {error}"),
        }
        let lost = findings.iter().any(|finding| finding.lost);
        let missing = self.model.check(&mut store);
        store.keep().unwrap();
        let counters = store.counters().unwrap();
        store.commit(counters).unwrap();
        assert!(missing.is_empty() || lost, "{about}: not told: {missing:?} {findings:#?}");
        assert_eq!(lost, inspected.iter().any(|finding| finding.lost), "{about}: {inspected:#?}");
        if files == 1 {
            // A burst with an item has a key, too.
            let count = missing.iter().filter(|lack| !lack.starts_with("key")).count();
            assert_eq!(told(&findings), count, "{about}: {missing:?} {findings:#?}");
            assert!(count <= 1000, "{about}: {count}");
            let is_state = ["contexture.db", "contexture.db-wal"].contains(&&*done[0].0);
            assert!(!lost || is_state, "{about}: {findings:#?}");
        }
        let mut after = self.model.clone();
        after.messages.clear();
        // Leaves messages out, because their session may be lost.
        let bursts = (9020..9060).filter(|number| !(2..=4).contains(&(number % 20)));
        bursts.for_each(|number| after.burst(&mut store, number));
        drop(store);
        let OpenedStore { mut store, findings } = open_at(folder);
        assert!(!findings.iter().any(|finding| finding.lost), "{about}: again {findings:#?}");
        let left = after.check(&mut store);
        let old: BTreeSet<&String> = missing.iter().filter(|m| !m.starts_with("mess")).collect();
        assert_eq!(left.iter().collect::<BTreeSet<_>>(), old, "{about}: {findings:#?}");
        lost
    }
}

/// Returns the number of changes that the findings call lost.
fn told(findings: &[Finding]) -> usize {
    let number = |finding: &Finding| {
        let words: Vec<&str> = finding.text.split(' ').collect();
        let mut pairs = words.windows(2).filter(|pair| pair[1].starts_with("change"));
        pairs.find_map(|pair| pair[0].parse::<usize>().ok())
    };
    findings.iter().filter(|finding| finding.lost).filter_map(number).sum()
}

/// Names the seed when a check fails.
struct OnPanic<'a>(&'a str);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed: {}", self.0);
        }
    }
}

fn flip(bytes: &mut [u8], random: &mut SeededRandom) {
    let at = random.below(bytes.len());
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

#[test]
fn a_loss_is_told_in_the_singular_and_plural() {
    assert_eq!([1, 2].map(are_lost), ["1 change is lost", "2 changes are lost"]);
}

#[test]
fn a_state_that_nobody_damaged_is_opened_without_a_word() {
    let built = build();
    for base in ["crashed", "settled"] {
        let OpenedStore { mut store, findings } = open_at(&built.dir.path().join(base));
        assert_eq!(findings, [], "{base}");
        assert_eq!(built.model.check(&mut store), [""; 0], "{base}");
    }
}

#[test]
fn a_backup_a_day_is_kept_and_only_so_many() {
    const DAY: i64 = 24 * 60 * 60;
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let mut store = open_at(dir.path()).store;
    let mut model = Acknowledged { next_item: 1, ..Acknowledged::default() };
    assert!(backup::is_due(&files, 0));
    let now = jiff::Timestamp::now().as_second();
    // A backup of an earlier day was killed.
    let left = ["", "-journal"]
        .map(|end| files.backups().join(format!("contexture-2020-01-01T000000Z.db.new{end}")));
    fs::create_dir_all(files.backups()).unwrap();
    left.iter().for_each(|path| fs::write(path, "x").unwrap());
    for number in 5..15 {
        model.burst(&mut store, number);
        let made = backup::write_automatic(&files, now + 2 * DAY, 3).unwrap();
        backup::check(&made.path).unwrap();
        // Writes made meanwhile are in the state but not in the backup.
        model.burst(&mut store, number + 20);
        store.settle().unwrap();
        let named = files.backups().join(format!("contexture-2026-01-{number:02}.db"));
        fs::rename(&made.path, named).unwrap();
    }
    let backups = backup::list(&files);
    assert_eq!(backups.len(), 3, "{backups:?}");
    let last = backups.last().unwrap().clone();
    for _ in 0..2 {
        let latest = backup::write_automatic(&files, last.at + 3600, 3).unwrap();
        assert!(latest.path.ends_with("latest.db"), "{latest:?}");
    }
    assert_eq!(backup::list(&files).len(), 4);
    assert!(!backup::is_due(&files, last.at + 3600) && backup::is_due(&files, last.at + 90_000));
    let first_at = backups[0].at;
    assert!(backup::is_due(&files, first_at - 1), "all are from the future");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(200_000);
    fs::File::options().write(true).open(&last.path).unwrap().set_modified(later).unwrap();
    assert!(!backup::is_due(&files, last.at + 3600), "the clock went back after the last");
    drop(store);
    assert_eq!(model.check(&mut open_at(dir.path()).store), [""; 0]);
    assert!(!left.iter().any(|path| path.exists()));
    restore(dir.path(), &last.path).unwrap();
    let OpenedStore { mut store, findings } = open_at(dir.path());
    assert_eq!(model.check(&mut store).len(), 2, "the item and the key that came later");
    assert!(!findings.iter().any(|finding| finding.lost), "{findings:?}");
}

#[test]
fn a_backup_of_a_damaged_state_leaves_the_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let mut store = open_at(dir.path()).store;
    let mut model = Acknowledged { next_item: 1, ..Acknowledged::default() };
    (5..15).for_each(|number| model.burst(&mut store, number));
    let earlier = backup::write_asked(&files).unwrap();
    drop(store);
    let mut bytes = fs::read(files.database()).unwrap();
    let text = b"item 1 ";
    let at = bytes.windows(text.len()).position(|part| part == text).unwrap();
    bytes[at] ^= 1;
    fs::write(files.database(), bytes).unwrap();
    let mut store = open_at(dir.path()).store;
    let error = backup::write_asked(&files).unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    assert!(error.to_string().contains("table version"), "{error}");
    let read = (0..MANAGERS).find_map(|number| store.load(&format!("m{number}")).err());
    assert!(matches!(read, Some(StoreError::Damaged(_))), "{read:?}");
    assert!(store.damage().unwrap().contains("table version"));
    backup::check(&earlier.path).unwrap();
    assert_eq!(fs::read_dir(files.backups()).unwrap().count(), 1, "no draft stays");
}

#[test]
fn whatever_is_damaged_is_told_and_survived() {
    let built = build();
    let seeds = rounds(6, 1000);
    let first = std::env::var("CONTEXTURE_DAMAGE_FIRST").ok().and_then(|text| text.parse().ok());
    let first: u64 = first.unwrap_or(1);
    let mut failed = Vec::new();
    let mut told = 0;
    for seed in first..first + seeds {
        let tried = std::panic::AssertUnwindSafe(|| built.try_seed(seed));
        match std::panic::catch_unwind(tried) {
            Ok(lost) => told += usize::from(lost),
            Err(_) => failed.push(seed),
        }
    }
    assert_eq!(failed, [0; 0], "seeds that failed");
    eprintln!("{seeds} states damaged: {told} losses told, none silent");
}

/// Restores a backup, and ends the program at each operation on files in turn: the state is always the
/// old one or that of the backup, with its list of trusted projects.
#[test]
fn a_restore_that_is_killed_leaves_the_old_state_or_the_new() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let files = Files::new(&at("old"));
    fs::create_dir(at("old")).unwrap();
    let mut store = open_at(&at("old")).store;
    let mut backed_up = Acknowledged { next_item: 1, ..Acknowledged::default() };
    (5..15).for_each(|number| backed_up.burst(&mut store, number));
    fs::write(files.trust(), "[1]").unwrap();
    store.settle().unwrap();
    let made = backup::write_asked(&files).unwrap();
    let backup = at("backup.db");
    fs::rename(made.path, &backup).unwrap();
    let mut newer = backed_up.clone();
    (25..35).for_each(|number| newer.burst(&mut store, number));
    fs::write(files.trust(), "[2]").unwrap();
    drop(store);
    let mut outcomes = BTreeSet::new();
    for place in 0.. {
        let folder = at(&format!("{place}"));
        copy_folder(&at("old"), &folder);
        kill::at(Some(place));
        let restored = restore(&folder, &backup);
        let was_killed = kill::has_come() && restored.is_err();
        kill::at(None);
        let mut store = open_at(&folder).store;
        let trust = fs::read_to_string(folder.join(TRUST_FILE)).unwrap();
        let missing = newer.check(&mut store).len();
        let is_old = missing == 0 && trust == "[2]";
        // Each newer burst has an item and a key.
        let is_new = missing == 20 && backed_up.check(&mut store).is_empty() && trust == "[1]";
        assert!(is_old || is_new, "killed at {place}: {trust}, {missing} missing");
        assert!(is_new || was_killed, "{restored:?}");
        assert!(!Files::new(&folder).restoring().exists());
        let names = |folder: &Path| {
            let all = fs::read_dir(folder).into_iter().flatten().flatten();
            all.map(|it| it.file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        let left = [names(&folder), names(&folder.join("backups"))].concat();
        assert!(!left.iter().any(|name| name.contains(".new")), "killed at {place}: {left:?}");
        outcomes.insert(is_new);
        drop(store);
        if !was_killed {
            assert!(place > 20, "only {place} operations");
            break;
        }
        fs::remove_dir_all(&folder).unwrap();
    }
    assert_eq!(outcomes.len(), 2);
}
