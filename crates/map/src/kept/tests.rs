//! The oracle: after any series of changes, a kept index equals one that was made from nothing.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::source::{Content, WalkedFile};
use crate::text::Style;
use crate::{MapTask, Unsaved};

/// Number of random series, and that in `make test-all`.
const SERIES: [u64; 2] = [700, 20_000];
const STEPS: u64 = 8;

const PATHS: &[&str] =
    &["a.rs", "src/b.rs", "src/c.el", "d.lisp", "e.py", "README.md", "data.bin", "src/f.clj"];
const TEXTS: &[&str] = &[
    "",
    "fn alpha_one() { beta_two() }\nstruct GammaThree;\n",
    "fn beta_two() {}\nimpl GammaThree { fn delta(&self) {} }\n",
    "(defun alpha-one () (beta-two))\n(my-define thing 1)\n",
    "(defmacro my-define (name x) `(defvar ,name ,x))\n",
    "def epsilon(): return alpha_one()\nclass GammaThree: pass\n",
    "# The alpha of beta\n\nwords about gamma\n",
    "\0binary",
    "(ns a.b)\n(defn zeta [x] (thing x))\n",
    "// DO NOT EDIT\nfn generated() { zeta() }\n",
];

/// A file: its text or what is wrong with it, and its stamp.
type Files = BTreeMap<String, (Content, FileStamp)>;

#[derive(Default)]
struct Disk {
    files: Files,
    branches: [(Files, Vec<usize>); 2],
    commits: Vec<(String, Vec<(String, String)>)>,
    head: Vec<usize>,
    has_git: bool,
    clock: AtomicI64,
    /// Runs when files are read: a checkout that changes meanwhile.
    at_read: Mutex<Option<(String, String)>>,
    during: Mutex<Files>,
}

impl Disk {
    fn tick(&self) -> i64 {
        self.clock.fetch_add(1_000_000, Ordering::Relaxed) + 1_000_000
    }

    fn stamp(&self, bytes: u64) -> FileStamp {
        let now = self.tick();
        FileStamp { bytes, modified: now, changed: now, inode: now as u64 }
    }

    fn write(&mut self, path: &str, text: &str) {
        let stamp = self.stamp(text.len() as u64);
        self.files.insert(path.to_owned(), (Content::Bytes(text.into()), stamp));
    }
}

impl MapSource for Disk {
    fn files(&self) -> Result<Vec<WalkedFile>, String> {
        let listed = |(path, (_, stamp)): (&String, &(Content, FileStamp))| WalkedFile {
            path: path.clone(),
            stamp: *stamp,
        };
        Ok(self.files.iter().map(listed).collect())
    }

    fn read(&self, path: &str) -> Content {
        if let Some((changed, text)) = self.at_read.lock().unwrap().take() {
            let stamp = self.stamp(text.len() as u64);
            let content = (Content::Bytes(text.into_bytes()), stamp);
            self.during.lock().unwrap().insert(changed, content);
        }
        let during = self.during.lock().unwrap();
        let file = during.get(path).or_else(|| self.files.get(path));
        file.map_or(Content::Gone, |(content, _)| content.clone())
    }

    fn now(&self) -> i64 {
        self.clock.load(Ordering::Relaxed)
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
        let id = |at: &usize| format!("{at:040x}");
        if !self.has_git || self.head.is_empty() {
            return None;
        }
        if arguments[0] == "rev-list" {
            return Some(self.head.iter().rev().map(|at| id(at) + "\n").collect::<String>().into());
        }
        let wanted = String::from_utf8_lossy(input);
        let mut out = String::new();
        for line in wanted.lines() {
            let (message, changes) = &self.commits[usize::from_str_radix(line, 16).unwrap()];
            out += &format!("\u{1}{line}\u{2}{message}\u{3}\0");
            changes.iter().for_each(|(status, path)| out += &format!("{status}\0{path}\0"));
        }
        Some(out.into())
    }
}

/// Everything that an index knows, without numbers.
fn dump(index: &Index) -> String {
    let mut out = String::new();
    let name = |id: &NameId| index.names.text(*id).to_owned();
    for (path, file) in index.files() {
        let mut words: Vec<_> = file.words.iter().map(|(id, times)| (name(id), *times)).collect();
        words.sort_by(|one, other| one.0.cmp(&other.0));
        let references: Vec<_> = file.references.iter().map(|(id, n)| (name(id), *n)).collect();
        let definitions: Vec<_> = file
            .definitions
            .iter()
            .map(|it| (name(&it.name), it.line, it.end, it.form.as_ref().map(name), &it.signature))
            .collect();
        let definers: Vec<_> = file.definers.iter().map(name).collect();
        out += &format!(
            "{path} {:?} {:?} {} {} {} {words:?} {references:?} {definitions:?} {definers:?}\n",
            file.language,
            file.state,
            file.lines,
            file.length,
            name(&file.stem)
        );
    }
    for id in &index.history.order {
        out += &format!("{id} {:?}\n", index.history.commits[id]);
    }
    out
}

fn map(index: &Index, query: &str, focus: &str) -> String {
    let task = MapTask { query, focus: vec![focus], ..MapTask::default() };
    let count = |text: &str| text.len() as u64 / 4;
    let style = Style { max_tokens: 120, count: &count, show: &str::to_owned };
    let map = index.map(&task, &style);
    assert!(map.tokens <= 120, "{map:?}");
    map.text
}

struct Congruence(u64);

impl Congruence {
    fn below(&mut self, limit: usize) -> usize {
        // A linear congruence: any spread of numbers will do.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

fn change(disk: &mut Disk, dice: &mut Congruence) -> String {
    let path = dice.of(PATHS);
    match dice.below(13) {
        0..=3 => {
            let text = dice.of(TEXTS);
            disk.write(path, text);
            format!("write {path} {text:?}")
        }
        4 => {
            disk.files.remove(path);
            format!("remove {path}")
        }
        5 => {
            let stamp = disk.stamp(0);
            if let Some((_, old)) = disk.files.get_mut(path) {
                *old = FileStamp { bytes: old.bytes, ..stamp };
            }
            format!("touch {path}")
        }
        6 => {
            let to = dice.of(PATHS);
            if let Some(file) = disk.files.remove(path) {
                disk.files.insert(to.to_owned(), file);
            }
            format!("rename {path} {to}")
        }
        7 => {
            // The same stamp, as on a file system with a coarse clock.
            let (text, now) = (dice.of(TEXTS), *disk.clock.get_mut());
            if let Some((content, stamp)) = disk.files.get_mut(path)
                && now - stamp.changed < 1_000_000_000
                && stamp.bytes == text.len() as u64
            {
                *content = Content::Bytes(text.into());
            }
            format!("rewrite {path} within a tick")
        }
        8 => {
            let other = dice.below(2);
            let now = (disk.files.clone(), disk.head.clone());
            let before = std::mem::replace(&mut disk.branches[other], now);
            disk.head = before.1;
            disk.files = before.0;
            // A checkout writes the files that differ; it may also keep the times.
            if dice.below(2) == 0 {
                let paths: Vec<String> = disk.files.keys().cloned().collect();
                for path in paths {
                    let stamp = disk.stamp(0);
                    let file = disk.files.get_mut(&path).unwrap();
                    file.1 = FileStamp { bytes: file.1.bytes, ..stamp };
                }
            }
            "switch".to_owned()
        }
        9 => {
            disk.has_git = true;
            let message = dice.of(&["fix the alpha", "beta of gamma", "zeta"]).to_owned();
            let status = |it: &str| ("M".to_owned(), it.to_owned());
            let changes = vec![status(path), status(dice.of(PATHS))];
            disk.head.push(disk.commits.len());
            disk.commits.push((message, changes));
            "commit".to_owned()
        }
        10 => {
            disk.has_git = !disk.has_git;
            "git comes or goes".to_owned()
        }
        11 => {
            let what = [Content::Secret, Content::TooLarge, Content::Unreadable, Content::Binary];
            let stamp = disk.stamp(9);
            disk.files.insert(path.to_owned(), (what[dice.below(4)].clone(), stamp));
            format!("cannot read {path}")
        }
        _ => {
            *disk.clock.get_mut() += 10_000_000_000;
            "time passes".to_owned()
        }
    }
}

/// Does something to the file of the index, as a crash or damage would.
fn disturb(kept: StoredIndex, path: &Path, dice: &mut Congruence) -> (StoredIndex, String) {
    let what = match dice.below(12) {
        0 | 1 => "reopen",
        2 => {
            let text = fs::read(path).unwrap_or_default();
            let cut = dice.below(text.len() + 1);
            fs::write(path, &text[..cut]).unwrap();
            "cut"
        }
        3 => {
            let mut text = fs::read(path).unwrap_or_default();
            if !text.is_empty() {
                let at = dice.below(text.len());
                text[at] ^= 1 << dice.below(8);
            }
            fs::write(path, &text).unwrap();
            "damage"
        }
        4 => {
            let mut kept = kept;
            kept.write_anew().unwrap();
            return (kept, "write anew".to_owned());
        }
        _ => return (kept, String::new()),
    };
    drop(kept);
    (StoredIndex::open(Some(path.to_owned())), what.to_owned())
}

#[test]
fn any_series_of_changes_gives_what_a_new_index_has() {
    let folder = tempfile::tempdir().unwrap();
    let all = std::env::var("CONTEXTURE_TESTS").is_ok_and(|tier| tier == "all");
    for seed in 0..SERIES[usize::from(all)] {
        let mut dice = Congruence(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let path = folder.path().join("index");
        let _ = fs::remove_file(&path);
        let mut disk = Disk::default();
        let mut kept = StoredIndex::open(Some(path.clone()));
        let mut done = Vec::new();
        for _ in 0..STEPS {
            for _ in 0..=dice.below(3) {
                done.push(change(&mut disk, &mut dice));
            }
            let (after, what) = disturb(kept, &path, &mut dice);
            kept = after;
            done.push(what);
            kept.update(&disk).unwrap();
            let unsaved = match dice.below(3) {
                0 => vec![Unsaved {
                    path: dice.of(PATHS).to_owned(),
                    text: dice.of(TEXTS).to_owned(),
                }],
                _ => Vec::new(),
            };
            kept.index_mut().set_unsaved(&unsaved);
            let mut anew = Index::default();
            anew.update(&disk).unwrap();
            anew.set_unsaved(&unsaved);
            assert_eq!(dump(kept.index()), dump(&anew), "series {seed}: {done:#?}");
            let (query, focus) = (dice.of(&["", "fix alpha", "GammaThree"]), dice.of(PATHS));
            assert_eq!(
                map(kept.index(), query, focus),
                map(&anew, query, focus),
                "{seed}: {done:#?}"
            );
        }
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_read_again() {
    let mut disk = Disk::default();
    disk.write("a.rs", TEXTS[1]);
    disk.write("src/b.rs", TEXTS[2]);
    *disk.at_read.lock().unwrap() = Some(("src/b.rs".to_owned(), TEXTS[9].to_owned()));
    let mut index = Index::default();
    index.update(&disk).unwrap();
    let during = std::mem::take(&mut *disk.during.lock().unwrap());
    disk.files.extend(during);
    *disk.clock.get_mut() += 10_000_000_000;
    index.update(&disk).unwrap();
    let mut anew = Index::default();
    anew.update(&disk).unwrap();
    assert_eq!(dump(&index), dump(&anew));
}

#[test]
fn an_index_that_cannot_be_written_is_in_memory() {
    let mut disk = Disk::default();
    disk.write("a.rs", TEXTS[1]);
    let mut kept = StoredIndex::open(Some("/nonexistent/folder/index".into()));
    kept.update(&disk).unwrap();
    kept.update(&disk).unwrap();
    assert_eq!(kept.index().len(), 1);
}

#[test]
fn nothing_is_read_or_written_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let mut disk = Disk::default();
    PATHS.iter().for_each(|path| disk.write(path, TEXTS[1]));
    *disk.clock.get_mut() += 10_000_000_000;
    let mut kept = StoredIndex::open(Some(path.clone()));
    assert_eq!(kept.update(&disk).unwrap().read, PATHS.len());
    let before = fs::read(&path).unwrap();
    assert_eq!(kept.update(&disk).unwrap(), Updated::default());
    let mut again = StoredIndex::open(Some(path.clone()));
    assert_eq!(again.update(&disk).unwrap(), Updated::default());
    assert_eq!(fs::read(&path).unwrap(), before);
    disk.write(PATHS[0], TEXTS[2]);
    assert_eq!(again.update(&disk).unwrap().read, 1);
}
