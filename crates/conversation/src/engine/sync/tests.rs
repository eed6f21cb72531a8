//! Tests of the exchange between engines, whose talks are cut anywhere.

use contexture_core::testing::rounds;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::context::change::ContextSettings;
use crate::context::item::{Kind, Metadata};
use crate::context::manager::MAX_CAPACITY;
use crate::engine::{NewItem, NewMessage};
use crate::session::message::{Role, ToolCall};
use crate::store::memory::{MemoryFilter, MemoryScope};
use crate::store::session::{NewSession, RecordedOrigin};
use crate::store::sqlite::SqliteStore;
use crate::sync::{Brought, Edited, Field, Of, SyncItem, SyncMark, SyncRequest, hash, sum, talk};
use crate::tokens::Estimate;
use crate::value::Value;

mod killed;

/// A machine.
struct Home {
    engine: Engine,
    /// Stands for the file with the secret key.
    seed: [u8; 32],
    /// Stands for the file beside it.
    seq: u64,
    name: String,
    time: Arc<AtomicI64>,
}

impl Home {
    fn new(number: u8, series: u64) -> Self {
        let time = Arc::new(AtomicI64::new(1_800_000_000 + i64::from(number) * 86_400));
        let clock = Arc::clone(&time);
        let clock = Box::new(move || clock.load(Ordering::Relaxed) * 1000);
        let store = Box::new(SqliteStore::in_memory().unwrap());
        let engine = Engine::new(store, clock, ContextSettings { max_items: 9 }).unwrap();
        let mut seed = [number; 32];
        seed[..8].copy_from_slice(&series.to_be_bytes());
        Self { engine, seed, seq: 0, name: format!("home{number}"), time }
    }

    fn identity(&self) -> MachineIdentity {
        let key = MachineKey::of(&self.seed).unwrap();
        MachineIdentity { key, place: "here".to_owned(), seq: self.seq, name: self.name.clone() }
    }

    fn exchange(&mut self, request: SyncRequest) -> Result<GivenChanges, String> {
        let (known, changes) = request.into_parts();
        let asked = SyncAsked { known, changes, projects: Vec::new() };
        loop {
            let me = self.identity();
            let outcome = self.engine.run_alone(|engine| Ok(engine.exchange(&me, &asked)));
            match outcome.unwrap() {
                Ok(given) => {
                    self.seq = seq_of(&given.known, me.key.id());
                    return Ok(given);
                }
                Err(SyncRefusal::NeedsKey) => {
                    self.seed[31] += 100;
                    self.seq = 0;
                }
                Err(SyncRefusal::Wrong(why)) => return Err(why),
                Err(SyncRefusal::Engine(error)) => panic!("{error}"),
            }
        }
    }

    fn new_session(&mut self, name: &str) -> u64 {
        let new = NewSession { name: name.to_owned(), ..NewSession::default() };
        self.engine.run_alone(|engine| engine.open_session(new)).unwrap().id
    }

    fn say(&mut self, session: u64, text: &str) {
        let call = ToolCall { id: "c".into(), name: "f".into(), arguments: "{\"a\": 1}".into() };
        let opaque = serde_json::json!({"z": [1.50, "λ"], "a": null});
        let message = NewMessage {
            opaque: Some(Arc::new(opaque)),
            ..NewMessage::counted(Role::Assistant, text, vec![call], &Estimate)
        };
        self.engine.run_alone(|engine| engine.add_messages(session, vec![message])).unwrap();
    }

    fn remember(&mut self, text: &str) -> u64 {
        let scope = MemoryScope::Everywhere;
        self.engine.run_alone(|engine| engine.remember(scope, text, None)).unwrap()
    }

    fn mark(&mut self, manager: &str, text: &str) {
        let item = NewItem {
            kind: Kind::Code,
            content: text.into(),
            metadata: Metadata::default(),
            taken_ms: 0,
            tokens: 1,
            counted_by: "estimate",
            live: false,
            pinned: false,
        };
        self.engine.run_alone(|engine| engine.add("add-item", manager, vec![item])).unwrap();
    }

    fn sessions(&mut self) -> Vec<(u64, String)> {
        let rows = self.engine.read().sessions(false).unwrap();
        rows.into_iter().map(|row| (row.id, row.name)).collect()
    }

    fn texts(&mut self, session: u64) -> Vec<String> {
        let messages = self.engine.read().messages(session, 1, u64::MAX).unwrap();
        messages.iter().map(|message| message.content.to_string()).collect()
    }

    /// Does something that a user does, with a text. Returns whether the text was said.
    fn act(&mut self, random: &mut LinearRandom, text: &str) -> bool {
        let sessions = self.sessions();
        let some = |random: &mut LinearRandom| &sessions[random.below(sessions.len())];
        match random.below(8) {
            1..=3 if !sessions.is_empty() => {
                self.say(some(random).0, text);
                return true;
            }
            4 if !sessions.is_empty() => {
                let _ =
                    self.engine.run_alone(|engine| engine.rename_session(&some(random).1, text));
            }
            5 if !sessions.is_empty() => {
                let _ = self.engine.run_alone(|engine| engine.delete_session(&some(random).1));
            }
            6 => {
                let id = self.remember(text);
                let forgotten = random.below(3) == 0;
                self.engine.run_alone(|engine| engine.forget(id, forgotten)).unwrap();
            }
            7 => self.mark(["a", "b"][random.below(2)], text),
            _ => drop(self.new_session(&format!("s{}", random.below(4)))),
        }
        false
    }

    /// Returns the texts of all sessions, or of those that were exchanged.
    fn all_texts(&mut self, exchanged: bool) -> BTreeSet<String> {
        let mut rows = self.engine.read().sessions(true).unwrap();
        rows.retain(|row| {
            !exchanged || self.engine.read().known("session", row.id).unwrap().is_some()
        });
        rows.iter().flat_map(|row| self.texts(row.id)).collect()
    }

    fn memories(&mut self) -> Vec<(String, Option<i64>, Option<String>)> {
        let filter = MemoryFilter { with_forgotten: true, ..MemoryFilter::default() };
        let rows = self.engine.list_memories(&filter, 9999).unwrap();
        rows.into_iter().map(|row| (row.made.content, row.forgotten, row.machine)).collect()
    }

    /// Returns all that should be the same everywhere, read from the rows that people see.
    fn digest(&mut self) -> BTreeMap<(String, String, u64), String> {
        let machines: Vec<String> =
            self.engine.read().machines().unwrap().into_iter().map(|row| row.id).collect();
        let mut all = BTreeMap::new();
        for machine in machines {
            for kind in ["session", "memory"] {
                for number in 0..200 {
                    let read = self.engine.read();
                    let Some(known) = read.known_as(&machine, kind, number).unwrap() else {
                        continue;
                    };
                    let shown = match kind {
                        "session" => {
                            let row = read.session(known.row).unwrap().unwrap();
                            assert_eq!(row.deleted, known.gone);
                            let gone = known.gone.filter(|_| known.gone_at > 0);
                            let texts = self.texts(known.row);
                            let distinct: BTreeSet<_> = texts.iter().collect();
                            assert_eq!(distinct.len(), texts.len(), "nothing is there twice");
                            assert!(texts.len() as u64 == known.count);
                            format!("{gone:?} {texts:?} {} {}", known.name_at, known.name_by)
                        }
                        _ => {
                            let row = read.memory(known.row).unwrap().unwrap();
                            assert_eq!(row.forgotten, known.gone);
                            format!("{:?} {}", row.forgotten, row.made.content)
                        }
                    };
                    all.insert((machine.clone(), kind.to_owned(), number), shown);
                }
            }
        }
        all
    }
}

fn seq_of(known: &[SeenChanges], machine: &str) -> u64 {
    known.iter().find(|seen| seen.machine == machine).map_or(0, |seen| seen.seq)
}

/// Lets two homes talk; after `cut` steps the connection is gone.
fn meet(homes: &mut [Home], one: usize, other: usize, cut: u64) -> Result<(), String> {
    let [one, other] = homes.get_disjoint_mut([one, other]).unwrap();
    let left = std::cell::Cell::new(cut);
    let step = || match left.get() {
        0 => Err("cut".to_owned()),
        steps => {
            left.set(steps - 1);
            Ok(())
        }
    };
    let theirs = |request| {
        step()?;
        let given = other.exchange(request)?;
        // The answer may be lost although the other home took everything.
        step()?;
        Ok(given)
    };
    talk(|request| one.exchange(request), theirs, Vec::new()).map(drop)
}

/// Lets all homes talk until nothing is new.
fn settle(homes: &mut [Home]) {
    for _ in 0..2 {
        for (one, other) in [(0, 1), (1, 2), (2, 0)] {
            if one.max(other) < homes.len() {
                meet(homes, one, other, u64::MAX).unwrap();
            }
        }
    }
}

fn homes(count: u8, series: u64) -> Vec<Home> {
    (1..=count).map(|number| Home::new(number, series)).collect()
}

/// Returns the numbers of the series to run: as many as asked for, or those from one to another, as
/// in 5000..10000. Says how far it is.
fn series(few: u64, all: u64) -> impl Iterator<Item = u64> {
    let asked = std::env::var("CONTEXTURE_SERIES").unwrap_or_else(|_| rounds(few, all).to_string());
    let (first, end) = asked.split_once("..").unwrap_or(("0", &asked));
    let [first, end] = [first, end].map(|number| number.parse::<u64>().unwrap());
    (first..end).inspect(move |series| {
        if series % 100 == 99 {
            eprintln!("{} series from {first} on are begun", series + 1 - first);
        }
    })
}

struct LinearRandom(u64);

impl LinearRandom {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

#[test]
fn what_one_says_is_a_copy_with_its_origin_at_the_other() {
    let mut homes = homes(2, 0);
    let session = homes[0].new_session("talk");
    for number in 0..500 {
        homes[0].say(session, &format!("message {number}"));
    }
    homes[0].remember("use tabs");
    homes[0].mark("project:/p/", "marked text");
    settle(&mut homes);
    let there = &mut homes[1];
    let row = there.engine.read().session_named("talk").unwrap().unwrap();
    assert_eq!((row.messages, row.machine.as_deref()), (500, Some("home1")));
    assert_eq!(there.texts(row.id)[499], "message 499");
    assert_eq!(there.memories(), [("use tabs".into(), None, Some("home1".into()))]);
    let sets = there.engine.read().sets().unwrap();
    assert_eq!(sets[0].name, "home1: project p");
    assert!(there.engine.read().latest_session().unwrap().is_none(), "a copy is never current");
    let own = homes[0].engine.read().session_named("talk").unwrap().unwrap();
    assert_eq!(own.machine, None);
}

#[test]
fn a_session_continued_in_two_places_is_two() {
    let mut homes = homes(2, 0);
    let session = homes[0].new_session("talk");
    homes[0].say(session, "first");
    settle(&mut homes);
    let copy = homes[1].engine.read().session_named("talk").unwrap().unwrap().id;
    homes[1].say(copy, "there");
    settle(&mut homes);
    // Until it is continued here, too, one of them is enough.
    assert_eq!(homes[0].sessions().len(), 2);
    assert_eq!(homes[1].sessions().len(), 1);
    homes[0].say(session, "here");
    settle(&mut homes);
    for home in &mut homes {
        let names = home.sessions();
        let texts: BTreeSet<_> = names.iter().map(|(id, _)| home.texts(*id)).collect();
        let both = [vec!["first", "here"], vec!["first", "there"]];
        let both = both.map(|texts| texts.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(texts, BTreeSet::from(both), "{names:?}");
    }
    assert_eq!(homes[0].digest(), homes[1].digest());
}

#[test]
fn the_newest_edit_counts_everywhere() {
    let mut homes = homes(3, 0);
    homes[0].new_session("talk");
    let memory = homes[0].remember("x");
    settle(&mut homes);
    let rename = |home: &mut Home, to: &str| {
        let (_, name) = home.sessions()[0].clone();
        home.engine.run_alone(|engine| engine.rename_session(&name, to)).unwrap();
    };
    // The clock of the third is two days ahead of that of the first.
    rename(&mut homes[2], "third");
    rename(&mut homes[1], "second");
    settle(&mut homes);
    for home in &mut homes {
        assert_eq!(home.sessions()[0].1, "third");
    }
    // Who saw that edit is later.
    rename(&mut homes[0], "first");
    homes[0].engine.run_alone(|engine| engine.forget(memory, true)).unwrap();
    settle(&mut homes);
    for home in &mut homes {
        assert_eq!(home.sessions()[0].1, "first");
        assert!(home.memories()[0].1.is_some());
    }
}

#[test]
fn random_partitions_cuts_and_clocks_end_in_equal_digests() {
    for series in series(16, 3000) {
        let mut random = LinearRandom(series);
        let mut homes = homes(3, series);
        let mut said = BTreeSet::new();
        for step in 0..14 {
            let at = random.below(3);
            let home = &mut homes[at];
            home.time.fetch_add(random.below(90).try_into().unwrap(), Ordering::Relaxed);
            let text = format!("{series} {at} {step}");
            match random.below(9) {
                0..=7 => {
                    if home.act(&mut random, &text) {
                        said.insert(text);
                    }
                }
                _ => {
                    let other = (at + 1 + random.below(2)) % 3;
                    let cut = random.below(8) as u64;
                    // A number that was not noted beside the state before the end.
                    let before = homes[at].seq;
                    if let Err(why) = meet(&mut homes, at, other, cut) {
                        assert_eq!(why, "cut", "series {series}");
                        homes[at].seq = before;
                    }
                }
            }
        }
        settle(&mut homes);
        let digests: Vec<_> = homes.iter_mut().map(Home::digest).collect();
        assert!(
            digests[0] == digests[1] && digests[1] == digests[2],
            "series {series}: {digests:#?}"
        );
        // What was deleted before anybody saw it stays where it was said.
        let all: BTreeSet<_> = homes.iter_mut().flat_map(|home| home.all_texts(true)).collect();
        for home in &mut homes {
            assert!(all.is_subset(&home.all_texts(true)), "series {series} lost something");
        }
        let kept: BTreeSet<_> = homes.iter_mut().flat_map(|home| home.all_texts(false)).collect();
        assert!(said.is_subset(&kept), "series {series} lost something");
    }
}

#[test]
fn hostile_changes_are_refused_in_words_and_leave_nothing() {
    let mut homes = homes(2, 0);
    let session = homes[0].new_session("talk");
    homes[0].say(session, "hello");
    let all = homes[0].exchange(SyncRequest::of(Some(Vec::new()), Vec::new())).unwrap().changes;
    let [_, home] = &mut homes[..] else { unreachable!() };
    let mut refused = |changes: Vec<SentChange>, why: &str| {
        let before = home.digest();
        let error = home.exchange(SyncRequest::of(None, changes)).unwrap_err();
        assert!(error.contains(why), "{error}");
        assert_eq!(home.digest(), before);
        assert!(home.sessions().is_empty());
    };
    let with = |at: usize, change: &dyn Fn(&mut SentChange)| {
        let mut changes = all.clone();
        change(&mut changes[at]);
        changes
    };
    refused(all[1..].to_vec(), "missing");
    refused(
        with(2, &|it| it.body = it.body.as_ref().map(|body| body.replace("hello", "hullo"))),
        "not signed",
    );
    refused(with(1, &|it| it.sign.replace_range(..2, "00")), "not signed");
    refused(with(2, &|it| it.machine = "ab".repeat(32)), "missing");
    refused(with(1, &|it| it.body = None), "either a body or what stands for it");
    let replaced = |about: &str| Some(ReplacedBody { about: about.into(), hash: "x".into() });
    refused(with(1, &|it| (it.body, it.replaced) = (None, replaced("marks 1"))), "wrong form");
    refused(with(1, &|it| (it.body, it.replaced) = (None, replaced(""))), "either a body");
    refused(with(1, &|it| it.replaced = replaced("marks 1")), "either a body");
    refused(vec![all[0].clone(); MOST_CHANGES + 1], "at most 2000 changes");
    let large = SentChange { body: Some("x".repeat(BATCH_BYTES)), ..all[1].clone() };
    refused(vec![all[0].clone(), large.clone(), all[2].clone()], "and one change, at once");
    refused(vec![all[0].clone(), large], "newer version");
    // What a machine signs may be wrong, too.
    let key = MachineKey::of(&[77; 32]).unwrap();
    let signed = |bodies: &[String]| signed(77, bodies);
    let name = Body::Machine("evil\u{202e}\n".to_owned()).text();
    let of = Of { machine: all[0].machine.clone(), kind: "session".into(), number: 1 };
    let edit = |of| Body::Edited(Edited { of, at: 1, field: Field::Name("x".into()) }).text();
    let said = r#"{"role":"user","at":1,"content":"x","tokens":1,"counted_by":"estimate"}"#;
    let messages = |count: usize| {
        let all = vec![said; count].join(",");
        format!("{{\"said\":{{\"session\":7,\"first\":1,\"messages\":[{all}]}}}}")
    };
    let item = SyncItem {
        kind: Kind::Text,
        content: String::new(),
        metadata: "nil".into(),
        at: 1,
        taken_ms: 1,
        tokens: 0,
        counted_by: "estimate".into(),
        pinned: false,
    };
    let items = vec![item; MAX_CAPACITY + 1];
    let marks = Body::Marks(SyncMark { number: 1, name: "m".into(), at: 1, items }).text();
    let bodies = [
        (&*messages(200), "unknown session"),
        (&*messages(201), "not valid"),
        (&*marks, "not valid"),
        ("{", "newer version"),
        ("{\"new-kind\":1}", "newer version"),
        ("{\"machine\":\"b\"}", "second time"),
        ("{\"machine\": \"b\"}", "not written"),
        ("{\"said\":{\"session\":1,\"first\":1,\"messages\":[]}}", "not valid"),
        (
            "{\"said\":{\"session\":7,\"first\":1,\"messages\":[{\"role\":\"user\",\"at\":1,\"content\":\"x\",\
          \"tokens\":1,\"counted_by\":\"estimate\"}]}}",
            "unknown session",
        ),
        (
            "{\"said\":{\"session\":7,\"first\":1,\"messages\":[{\"role\":\"user\",\"at\":1,\"content\":\"x\",\
          \"tokens\":99999999,\"counted_by\":\"estimate\"}]}}",
            "not valid",
        ),
        (&edit(of), "unknown"),
        (&edit(Of { machine: key.id().into(), kind: "counter".into(), number: 1 }), "neither"),
        (&format!("{{\"machine\":\"{}\"}}", "x".repeat(9999)), "too long"),
    ];
    for (body, why) in bodies {
        refused(signed(&[name.clone(), body.to_owned()]), why);
    }
    refused(signed(&["{\"said\":1}".to_owned()]), "newer version");
    refused(
        signed(&[edit(Of { machine: "m".into(), kind: "memory".into(), number: 1 })]),
        "does not say the name",
    );
    // A name from outside shows no other text.
    home.exchange(SyncRequest::of(None, signed(&[name]))).unwrap();
    let names = home.engine.read().machines().unwrap();
    assert!(names.iter().any(|row| row.name == "evil"), "{names:?}");
    // This machine made none of the changes that name it.
    let own = home.identity().key;
    let total = sum(&[1; 32], None, &hash("x"));
    let sign = hex(&own.sign(99, &total));
    let sent = SentChange {
        machine: own.id().into(),
        seq: 99,
        sign,
        body: Some("x".into()),
        replaced: None,
    };
    let error = home.exchange(SyncRequest::of(None, vec![sent])).unwrap_err();
    assert!(error.contains("names this machine"), "{error}");
    let seen = SeenChanges {
        machine: own.id().into(),
        seq: 1,
        sum: "00".repeat(8),
        ..SeenChanges::default()
    };
    let error = home.exchange(SyncRequest::of(Some(vec![seen.clone()]), Vec::new())).unwrap_err();
    assert!(error.contains("restored from a copy"), "{error}");
    let seen = vec![seen; MOST_MACHINES * 2 + 1];
    let error = home.exchange(SyncRequest::of(Some(seen), Vec::new())).unwrap_err();
    assert!(error.contains("at most 2000 machines"), "{error}");
}

/// A machine passes on what another one made. It may keep back the body of a change only if a later
/// change of that machine replaces it, and not for ever.
#[test]
fn a_machine_between_two_others_drops_nothing_that_one_of_them_made() {
    let mut homes = homes(2, 0);
    let session = homes[0].new_session("talk");
    homes[0].say(session, "hello");
    homes[0].remember("use tabs");
    homes[0].mark("project:/p/", "one");
    homes[0].exchange(SyncRequest::of(None, Vec::new())).unwrap();
    homes[0].mark("project:/p/", "two");
    let wanted = Some(Vec::new());
    let all = homes[0].exchange(SyncRequest::of(wanted, Vec::new())).unwrap().changes;
    let about = |sent: &SentChange| Body::read(sent.body.as_ref()?).unwrap().about();
    let marks = all.iter().filter_map(about).next().unwrap();
    assert_eq!(all.iter().filter(|sent| sent.body.is_none()).count(), 1, "the first marks");
    let mut dropped = 0;
    for at in (0..all.len()).filter(|at| all[*at].body.is_some()) {
        let mut home = Home::new(9, 0);
        let mut changes = all.clone();
        let body = changes[at].body.take().unwrap();
        let is_marks = Body::read(&body).unwrap().about().is_some();
        let hash = hex(&hash(&body));
        changes[at].replaced = Some(ReplacedBody { about: marks.clone(), hash });
        let taken = home.exchange(SyncRequest::of(Some(Vec::new()), changes));
        assert_eq!(taken.is_ok(), is_marks, "{body}: {taken:?}");
        dropped += usize::from(is_marks);
        homes[1] = home;
        settle(&mut homes);
        let there = &mut homes[1];
        let copy = there.sessions()[0].0;
        assert_eq!(there.texts(copy), ["hello"]);
        assert_eq!(there.memories().len(), 1);
        let sets = there.engine.read().sets().unwrap();
        assert_eq!((&*sets[0].name, sets[0].count), ("home1: project p", 2), "{body}");
        let known = there.exchange(SyncRequest::of(None, Vec::new())).unwrap().known;
        assert!(known.iter().all(|seen| seen.open.is_empty()), "{known:?}");
    }
    assert_eq!(dropped, 1);
}

/// A machine whose clock is wrong, or that lies, gives no edit that another machine cannot take back.
#[test]
fn an_edit_at_the_last_time_that_there_is_can_be_taken_back() {
    let last = crate::sync::LARGEST_NUMBER.cast_signed();
    for seed in 70..90_u8 {
        let mut homes = homes(2, 0);
        let own = homes[0].new_session("talk");
        settle(&mut homes);
        let of = Of {
            machine: homes[0].identity().key.id().into(),
            kind: "session".into(),
            number: own,
        };
        let edit = |at, field| Body::Edited(Edited { of: of.clone(), at, field }).text();
        let evil = [
            Body::Machine("evil".to_owned()).text(),
            edit(last, Field::Gone(Some(last))),
            edit(last, Field::Name("evil".into())),
        ];
        let changes = signed(seed, &evil);
        for home in &mut homes {
            home.exchange(SyncRequest::of(None, changes.clone())).unwrap();
            assert!(home.sessions().is_empty());
        }
        let [home, _] = &mut homes[..] else { unreachable!() };
        home.engine.run_alone(|engine| engine.restore_session("evil")).unwrap();
        home.engine.run_alone(|engine| engine.rename_session("evil", "mine")).unwrap();
        settle(&mut homes);
        for home in &mut homes {
            assert_eq!(home.sessions()[0].1, "mine", "seed {seed}");
        }
        // The next edit is later by one, not by more.
        for at in [last + 3, i64::MAX, -last - 1] {
            let mut bodies = evil.to_vec();
            bodies.push(edit(at, Field::Gone(None)));
            let error = homes[1].exchange(SyncRequest::of(None, signed(seed, &bodies)));
            assert!(error.unwrap_err().contains("a time that is not valid"));
        }
    }
}

/// Returns changes that the machine with this seed signs.
fn signed(seed: u8, bodies: &[String]) -> Vec<SentChange> {
    let key = MachineKey::of(&[seed; 32]).unwrap();
    let mut before = [0; 32];
    let sent = |(seq, body): (u64, &String)| {
        before = sum(&before, None, &hash(body));
        let (machine, sign) = (key.id().to_owned(), hex(&key.sign(seq, &before)));
        SentChange { machine, seq, sign, body: Some(body.clone()), replaced: None }
    };
    (1..).zip(bodies).map(sent).collect()
}

#[test]
fn a_state_behind_its_number_gets_another_key_and_loses_nothing() {
    let mut homes = homes(2, 0);
    let session = homes[0].new_session("talk");
    homes[0].say(session, "one");
    settle(&mut homes);
    let before = homes[0].identity().key.id().to_owned();
    // The file beside the state has seen more than the state knows: it was restored.
    homes[0].seq += 5;
    homes[0].say(session, "two");
    settle(&mut homes);
    assert_ne!(homes[0].identity().key.id(), before);
    assert_eq!(homes[0].digest(), homes[1].digest());
    let mut texts: Vec<_> = homes[1].sessions();
    texts.sort();
    let texts: Vec<_> = texts.iter().map(|(id, _)| homes[1].texts(*id)).collect();
    assert_eq!(texts, [vec!["one"], vec!["one", "two"]]);
}

/// What recordings and files brought here may have any length and any time. One change that another
/// machine refuses would end all exchanges.
#[test]
fn whatever_is_here_is_taken_elsewhere() {
    let long = "λ\0\u{1}".repeat(700_000);
    for (text, time) in [("x".to_owned(), i64::MIN), (long, i64::MAX)] {
        let mut homes = homes(2, 0);
        let id = homes[0].new_session("talk");
        let origin = RecordedOrigin {
            agent: Some(text.clone()),
            branch: Some(text.clone()),
            folder: Some(text.clone()),
            ..RecordedOrigin::default()
        };
        let told = Some(format!("/{text}"));
        let new = NewSession { name: text.clone(), told, created: time, ..NewSession::default() };
        let name = text.chars().take(9_000).collect::<String>();
        let arguments = text.chars().take(300_000).collect();
        let call = ToolCall { id: name.clone(), name, arguments };
        let message = NewMessage {
            timestamp: Some(time),
            tool_call_id: Some(text.clone()),
            tokens: u64::MAX >> 8,
            ..NewMessage::counted(Role::Assistant, &text, vec![call; 9], &Estimate)
        };
        let mut metadata = Metadata::default();
        metadata.set("filename", Value::Str(text.clone()));
        let item = NewItem {
            kind: Kind::Code,
            content: text.as_str().into(),
            metadata,
            taken_ms: time,
            tokens: u64::MAX >> 8,
            counted_by: "estimate",
            live: false,
            pinned: false,
        };
        let brought = homes[0].engine.run_alone(|engine| {
            let brought = engine.store.change()?.create_session(&new)?;
            engine.store.change()?.set_session_origin(brought, &origin)?;
            engine.sessions.touch(brought);
            engine.session_changed(brought, "import-sessions")?;
            engine.add_messages(brought, vec![message.clone(), message])?;
            engine.remember(MemoryScope::Session(brought), &text, None)?;
            engine.remember(MemoryScope::Project(text.clone()), &text, None)?;
            engine.add("add-item", "m", vec![item.clone(), item])?;
            Ok(brought)
        });
        let brought = brought.unwrap();
        settle(&mut homes);
        assert_eq!((homes[1].sessions().len(), homes[1].memories().len()), (2, 2));
        assert_eq!(homes[1].texts(2).len(), homes[0].texts(brought).len());
        // What comes later comes, too.
        homes[0].say(id, "later");
        settle(&mut homes);
        let there = homes[1].engine.read().session_named("talk").unwrap().unwrap().id;
        assert_eq!(homes[1].texts(there), ["later"]);
    }
}

/// A host may name as many machines as it likes, but one talk brings few of them.
#[test]
fn a_host_with_machines_without_end_brings_few_at_once() {
    let mut home = Home::new(1, 0);
    home.exchange(SyncRequest::of(None, Vec::new())).unwrap();
    let named =
        |number: u8| signed(number, &[Body::Machine(format!("evil{number}")).text()]).remove(0);
    let mut rounds = 0_u8;
    let theirs = |_| {
        rounds += 1;
        assert!(rounds < 9, "the talk goes on");
        let changes = (rounds * 10..rounds * 10 + 10).map(named).collect();
        let (machine, name, known) = Default::default();
        Ok(GivenChanges {
            machine,
            name,
            known,
            changes,
            more: true,
            taken: TakenCounts::default(),
            hub: None,
        })
    };
    let why = talk(|request| home.exchange(request), theirs, Vec::new()).unwrap_err();
    assert!(why.contains("more than 32 machines"), "{why}");
    assert_eq!(home.engine.read().machines().unwrap().len(), 33);
    // The side that is asked counts in the same way, over all requests of a talk.
    let mut brought = Brought::default();
    let taken = [20, 20].map(|count| {
        let mut request = SyncRequest::of(None, (1..=count).map(named).collect());
        let admitted = request.admit(&mut brought).is_ok();
        (admitted, request.into_parts().1.len())
    });
    assert_eq!(taken, [(true, 20), (false, 12)]);
}

/// Another machine may edit what is here at the last time there is, and name its sessions as it
/// likes. Neither ends the exchanges, nor hides a session.
#[test]
fn a_hostile_edit_and_a_hostile_name_end_and_hide_nothing() {
    let mut homes = homes(2, 0);
    let own = homes[0].new_session("talk");
    settle(&mut homes);
    let of =
        Of { machine: homes[0].identity().key.id().into(), kind: "session".into(), number: own };
    let session = |number, name: &str| {
        let (name, created) = (name.to_owned(), 1);
        let (project, agent, branch) = (None, None, None);
        Body::Session(crate::sync::SyncSession { number, name, created, project, agent, branch })
    };
    let edit = |at, field| Body::Edited(Edited { of: of.clone(), at, field });
    let bodies = [
        Body::Machine("evil".to_owned()),
        session(1, "ses-1"),
        session(2, &"x".repeat(4000)),
        edit(1 << 40, Field::Name("ses-1".into())),
        edit((1 << 40) - 1, Field::Gone(Some(1 << 40))),
        edit(1 << 40, Field::Gone(None)),
    ];
    let changes = signed(78, &bodies.map(|body| body.text()));
    homes[0].exchange(SyncRequest::of(None, changes)).unwrap();
    let found = homes[0].engine.run_alone(|engine| engine.find_session(Some("ses-1"))).unwrap();
    assert_eq!(found.id, own);
    let name = found.name;
    assert!(homes[0].sessions().iter().all(|(_, name)| name.len() < 1100));
    homes[0].engine.run_alone(|engine| engine.rename_session(&name, "mine again")).unwrap();
    homes[0].say(own, "later");
    settle(&mut homes);
    let row = homes[1].engine.run_alone(|engine| engine.row(own)).unwrap();
    assert_eq!(homes[1].texts(row.id), ["later"]);
}
