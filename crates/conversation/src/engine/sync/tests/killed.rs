//! Replicas in processes of their own, which are killed at any moment, and restored from backups.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::*;
use crate::store::recovery::{self, Files, backup};

/// Variables of a process that is a replica: its folder, how far its clock is ahead, and its number.
const REPLICA: [&str; 3] = ["CONTEXTURE_REPLICA", "CONTEXTURE_AHEAD", "CONTEXTURE_NUMBER"];
/// Begin of a line that is an answer, not one of the test harness.
const MARK: &str = "=answer=";

/// What a replica is told.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Do something that a user does, chosen by a number, with a text.
    Act(u64, String),
    Exchange(SyncRequest),
    BackUp,
    Tell,
}

/// What it answers.
#[derive(Serialize, Deserialize)]
enum Answer {
    /// Whether the text was said.
    Acted(bool),
    Given(GivenChanges),
    Refused(String),
    BackedUp(PathBuf),
    /// All that should be the same everywhere, and all texts of sessions that were exchanged and of
    /// those that were not.
    Told(Vec<((String, String, u64), String)>, BTreeSet<String>, BTreeSet<String>),
}

/// Is a replica, until nothing more comes.
fn replica(folder: &Path) {
    let number = |name| std::env::var(name).unwrap().parse::<i64>().unwrap();
    let (ahead, name) = (number(REPLICA[1]), format!("home{}", number(REPLICA[2])));
    let store = recovery::open(folder, Box::new(|| Ok(()))).unwrap().store;
    let clock = Box::new(move || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        i64::try_from(now).unwrap() + ahead * 1000
    });
    let engine = Engine::new(Box::new(store), clock, ContextSettings { max_items: 9 }).unwrap();
    let mut home = Home { engine, name, seed: [0; 32], seq: 0, time: Arc::default() };
    let identity = |anew| MachineIdentity::open(folder, anew).unwrap();
    for line in std::io::stdin().lines() {
        let answer = match serde_json::from_str(&line.unwrap()).unwrap() {
            Order::Act(seed, text) => Answer::Acted(home.act(&mut LinearRandom(seed), &text)),
            Order::Exchange(request) => {
                let (known, changes) = request.into_parts();
                let asked = SyncAsked { known, changes, projects: Vec::new() };
                let mut attempt = |me: MachineIdentity| {
                    let me = MachineIdentity { name: home.name.clone(), ..me };
                    home.engine.run_alone(|engine| Ok(engine.exchange(&me, &asked))).unwrap()
                };
                let outcome = match attempt(identity(false)) {
                    Err(SyncRefusal::NeedsKey) => attempt(identity(true)),
                    outcome => outcome,
                };
                match outcome {
                    Ok(given) => {
                        let seq = seq_of(&given.known, &given.machine);
                        MachineIdentity::note(folder, &given.machine, seq).unwrap();
                        Answer::Given(given)
                    }
                    Err(SyncRefusal::Wrong(why)) => Answer::Refused(why),
                    Err(other) => panic!("{other:?}"),
                }
            }
            Order::BackUp => {
                Answer::BackedUp(backup::write_asked(&Files::new(folder)).unwrap().path)
            }
            Order::Tell => Answer::Told(
                home.digest().into_iter().collect(),
                home.all_texts(true),
                home.all_texts(false),
            ),
        };
        // Not to the harness, which may hold back what is printed.
        writeln!(std::io::stderr(), "{MARK}{}", serde_json::to_string(&answer).unwrap()).unwrap();
    }
}

/// A replica, seen from the test.
struct Replica {
    folder: tempfile::TempDir,
    ahead: i64,
    number: usize,
    process: Option<Child>,
    lines: Option<Box<dyn Iterator<Item = std::io::Result<String>>>>,
}

impl Replica {
    fn new(number: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ahead = [0, 86_400, -86_400][number % 3];
        let mut replica = Self { folder, ahead, number, process: None, lines: None };
        replica.start();
        replica
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn start(&mut self) {
        std::fs::create_dir_all(self.state()).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = module_path!().split_once("::").unwrap().1;
        command.args([&format!("{name}::{NAME}"), "--exact", "--nocapture"]);
        command.env(REPLICA[0], self.state()).env(REPLICA[1], self.ahead.to_string());
        command.env(REPLICA[2], self.number.to_string());
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        self.lines = Some(Box::new(BufReader::new(process.stderr.take().unwrap()).lines()));
        self.process = Some(process);
    }

    /// Kills the process, in the middle of whatever it does.
    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Tells the replica something. With a time, it is killed then, and started again.
    fn tell(&mut self, order: &Order, killed: Option<Duration>) -> Option<Answer> {
        let line = serde_json::to_string(order).unwrap();
        writeln!(self.process.as_mut().unwrap().stdin.as_mut().unwrap(), "{line}").unwrap();
        if let Some(after) = killed {
            std::thread::sleep(after);
            self.kill();
            self.start();
            return None;
        }
        let mut lines = self.lines.as_mut().unwrap().map(Result::unwrap);
        let answer = lines.find_map(|line| line.split_once(MARK).map(|(_, json)| json.to_owned()));
        Some(serde_json::from_str(&answer.expect("the replica ended")).unwrap())
    }

    /// Copies what somebody would keep of the state.
    fn back_up(&mut self) -> PathBuf {
        let Some(Answer::BackedUp(made)) = self.tell(&Order::BackUp, None) else { unreachable!() };
        let kept = self.folder.path().join("kept");
        let _ = std::fs::remove_dir_all(&kept);
        let copied = Command::new("cp").arg("-a").arg(self.state()).arg(&kept).status();
        assert!(copied.unwrap().success());
        let name = made.file_name().unwrap();
        std::fs::rename(kept.join("backups").join(name), kept.join("backup")).unwrap();
        kept
    }

    /// Puts the state back, from the backup or as a copy of the whole folder.
    fn restore(&mut self, kept: &Path, wholly: bool) {
        self.kill();
        if wholly {
            std::fs::remove_dir_all(self.state()).unwrap();
            let copied = Command::new("cp").arg("-a").arg(kept).arg(self.state()).status();
            assert!(copied.unwrap().success());
        } else {
            recovery::restore(&self.state(), &kept.join("backup")).unwrap();
        }
        self.start();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The changes of all machines that anybody was ever told, by their numbers.
type Changes = BTreeMap<(String, u64), Vec<u8>>;

/// Lets two replicas talk. One of them is killed in the round `cut`.
fn talk_of(
    replicas: &mut [Replica],
    [one, other]: [usize; 2],
    seen: &mut Changes,
    random: &mut LinearRandom,
    cut: Option<usize>,
) -> Result<(), String> {
    let pair = std::cell::RefCell::new(replicas.get_disjoint_mut([one, other]).unwrap());
    let state = std::cell::RefCell::new((0, seen, random));
    let ask = |at: usize, request: SyncRequest| {
        let (step, seen, random) = &mut *state.borrow_mut();
        let killed = (Some(*step) == cut).then(|| Duration::from_micros(random.below(4000) as u64));
        *step += 1;
        let replica = &mut pair.borrow_mut()[at];
        match replica.tell(&Order::Exchange(request), killed) {
            Some(Answer::Given(given)) => {
                for sent in &given.changes {
                    let hash = match &sent.replaced {
                        Some(replaced) => replaced.hash.clone(),
                        None => hex(&hash(sent.body.as_deref().unwrap_or_default())),
                    };
                    let key = (sent.machine.clone(), sent.seq);
                    let before = seen.insert(key.clone(), hash.clone().into_bytes());
                    let is_same = before.is_none_or(|before| before == hash.into_bytes());
                    assert!(is_same, "one number for two changes: {key:?}");
                }
                Ok(given)
            }
            Some(Answer::Refused(why)) => Err(why),
            _ => Err("cut".to_owned()),
        }
    };
    talk(|request| ask(0, request), |request| ask(1, request), Vec::new()).map(drop)
}

const NAME: &str = "replicas_that_are_killed_and_restored_end_equal_and_lose_nothing";

#[test]
fn replicas_that_are_killed_and_restored_end_equal_and_lose_nothing() {
    if let Some(folder) = std::env::var_os(REPLICA[0]) {
        return replica(Path::new(&folder));
    }
    let [mut kills, mut restored, mut talks] = [0; 3];
    for series in series(4, 200) {
        let mut random = LinearRandom(series * 7919 + 1);
        let mut replicas: Vec<Replica> = (0..3).map(Replica::new).collect();
        let (mut seen, mut kept) = (Changes::new(), [None, None, None]);
        // What was acknowledged and must be there at the end, with where and when it was.
        let mut said: Vec<(usize, usize, String)> = Vec::new();
        for step in 0..16 {
            let at = random.below(3);
            let text = format!("{series} {at} {step}");
            match random.below(12) {
                0..=5 => {
                    let killed = (random.below(8) == 0)
                        .then(|| Duration::from_micros(random.below(4000) as u64));
                    kills += u64::from(killed.is_some());
                    let seed = random.0;
                    let answer = replicas[at].tell(&Order::Act(seed, text.clone()), killed);
                    if let Some(Answer::Acted(true)) = answer {
                        said.push((at, step, text));
                    }
                }
                6 => kept[at] = Some((replicas[at].back_up(), step)),
                7 if kept[at].is_some() => {
                    let (from, until) = kept[at].take().unwrap();
                    // What nobody else had is gone, as its owner wanted.
                    said.retain(|(of, when, _)| *of != at || *when < until);
                    replicas[at].restore(&from, random.below(2) == 0);
                    restored += 1;
                }
                _ => {
                    let other = (at + 1 + random.below(2)) % 3;
                    let cut = Some(random.below(6)).filter(|_| random.below(3) == 0);
                    kills += u64::from(cut.is_some());
                    talks += 1;
                    let met = talk_of(&mut replicas, [at, other], &mut seen, &mut random, cut);
                    met.or_else(|why| if why == "cut" { Ok(()) } else { Err(why) })
                        .unwrap_or_else(|why| panic!("series {series}: {why}"));
                }
            }
        }
        for _ in 0..2 {
            for pair in [[0, 1], [1, 2], [2, 0]] {
                talk_of(&mut replicas, pair, &mut seen, &mut random, None)
                    .unwrap_or_else(|why| panic!("series {series}: {why}"));
            }
        }
        let told = replicas.iter_mut().map(|it| match it.tell(&Order::Tell, None) {
            Some(Answer::Told(digest, shared, all)) => (digest, shared, all),
            _ => unreachable!(),
        });
        let told: Vec<_> = told.collect();
        assert!(told[0].0 == told[1].0 && told[1].0 == told[2].0, "series {series}: {told:#?}");
        let all: BTreeSet<&String> = told.iter().flat_map(|told| &told.2).collect();
        for (.., text) in &said {
            assert!(all.contains(text), "series {series} lost {text}");
        }
        let shared: BTreeSet<&String> = told.iter().flat_map(|told| &told.1).collect();
        for told in &told {
            let own: BTreeSet<&String> = told.1.iter().collect();
            assert_eq!(own, shared, "series {series} lost something");
        }
    }
    let _ = writeln!(std::io::stderr(), "{talks} talks, {kills} kills, {restored} restored");
}
