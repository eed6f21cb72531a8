//! Follows items through histories of edits of files that are full of look-alikes.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;

use super::*;
use crate::context::testing::{With, code};
use crate::files::testing::Dice;
use crate::tokens::Estimate;

/// Number of histories.
const HISTORIES: u64 = 400;
/// Maximum number of edits in a history.
const EDITS: usize = 5;

/// At most one look in this many may see a look-alike: with several edits between two looks, the text
/// that was deleted and its copy elsewhere read like one text that was moved. Measured: 9 of 1,707.
const WRONG: usize = 100;

/// A line with its own number, by which the test knows where the line went.
#[derive(Clone, PartialEq)]
struct NumberedLine(usize, String);

/// A file, as blocks of lines.
#[derive(Clone)]
struct LinesOfFile {
    blocks: Vec<Vec<NumberedLine>>,
    next: usize,
}

impl LinesOfFile {
    fn new(dice: &mut Dice) -> Self {
        let mut file = Self { blocks: vec![], next: 0 };
        for _ in 0..3 + dice.roll(6) {
            let block = file.block(dice);
            file.blocks.push(block);
        }
        file
    }

    /// Makes a block that looks like many others.
    fn block(&mut self, dice: &mut Dice) -> Vec<NumberedLine> {
        let name = ["a", "b", "c"][dice.roll(3)];
        let lines = match dice.roll(4) {
            0 => vec!["try:".into(), "    run()".into(), "except E:".into(), "    pass".into()],
            1 => vec![format!("def {name}():"), "    return None".into(), String::new()],
            2 => vec![format!("{name}() {{"), format!("  {name}"), "}".into()],
            _ => vec![format!("# note {}", self.next)],
        };
        lines.into_iter().map(|text| self.line(text)).collect()
    }

    fn line(&mut self, text: String) -> NumberedLine {
        self.next += 1;
        NumberedLine(self.next, text)
    }

    fn edit(&mut self, dice: &mut Dice) {
        let (at, other) = (dice.roll(self.blocks.len()), dice.roll(self.blocks.len()));
        match dice.roll(5) {
            0 => {
                let copy = self.blocks[other].clone();
                let copy = copy.into_iter().map(|line| self.line(line.1)).collect();
                self.blocks.insert(at, copy);
            }
            1 if self.blocks.len() > 1 => drop(self.blocks.remove(at)),
            2 => self.blocks.swap(at, other),
            3 => {
                let line = dice.roll(self.blocks[at].len());
                self.next += 1;
                let text = &mut self.blocks[at][line].1;
                *text = format!("{text} # {}", self.next);
            }
            _ => {
                let block = self.block(dice);
                self.blocks.insert(at, block);
            }
        }
    }

    fn lines(&self) -> Vec<NumberedLine> {
        self.blocks.concat()
    }

    fn text(&self) -> String {
        self.lines().iter().map(|line| format!("{}\n", line.1)).collect()
    }
}

/// Returns the lines next to a place that are not blank; `None` at the ends of the file.
fn neighbours(lines: &[NumberedLine], at: &Range<usize>) -> [Option<String>; 2] {
    let told = |line: &&NumberedLine| !line.1.trim().is_empty();
    let before = lines[..at.start].iter().rev().find(told);
    let after = lines[at.end..].iter().find(told);
    [before, after].map(|line| line.map(|line| line.1.clone()))
}

struct Trial {
    path: PathBuf,
    before: Vec<NumberedLine>,
    marked: Range<usize>,
}

impl Trial {
    fn look(&self, item: &Arc<Item>, text: &str) -> Arc<Item> {
        std::fs::write(&self.path, text).unwrap();
        let options = ReadOptions { max_bytes: 1 << 20 };
        reread(&Estimate, item, &options, &mut FileReader::default()).item
    }

    /// Returns why the item is wrong, if it is certain of a wrong place.
    fn wrong(&self, item: &Item, file: &LinesOfFile) -> Option<String> {
        if item.stale().is_some() {
            return None;
        }
        let (start, end) = item.metadata.lines()?;
        let (lines, at) = (file.lines(), start as usize - 1..end as usize);
        let found: HashSet<usize> = lines[at.clone()].iter().map(|line| line.0).collect();
        let own = &self.before[self.marked.clone()];
        let told = |line: &&NumberedLine| !line.1.trim().is_empty();
        let left = own.iter().filter(told).filter(|line| found.contains(&line.0)).count();
        let is_own = |line: &NumberedLine| own.iter().any(|own| own.0 == line.0);
        let text =
            |lines: &[NumberedLine]| lines.iter().map(|line| line.1.clone()).collect::<Vec<_>>();
        let copies =
            self.before.windows(own.len()).filter(|other| text(other) == text(own)).count();
        // Whoever reads both files cannot tell a copy from the text if the copy is between the same
        // neighbours, if all on one side is as it was, or if the text is gone and had no copy before.
        let is_like = neighbours(&lines, &at) == neighbours(&self.before, &self.marked);
        let own: Vec<&NumberedLine> = own.iter().filter(told).collect();
        let (start, end) = (at.start, self.marked.start);
        let is_prefix = text(&lines[..at.end]) == text(&self.before[..self.marked.end])
            || text(&lines[start..]) == text(&self.before[end..]);
        let may_be = is_like || is_prefix || (copies == 1 && !lines.iter().any(is_own));
        (left * 2 < own.len() && !may_be)
            .then(|| format!("{start}-{end} has {left} of {}", own.len()))
    }
}

#[test]
fn one_look_and_many_see_the_same_and_never_a_look_alike() {
    let temp = tempfile::tempdir().unwrap();
    let (mut certain, mut there, mut wrong) = (0, 0, Vec::new());
    for seed in 0..HISTORIES {
        let mut dice = Dice(seed << 20);
        let mut file = LinesOfFile::new(&mut dice);
        let (before, text) = (file.lines(), file.text());
        let start = dice.roll(before.len());
        let marked = start..(start + 1 + dice.roll(4)).min(before.len());
        let content: String =
            before[marked.clone()].iter().map(|line| format!("{}\n", line.1)).collect();
        if content.trim().is_empty() {
            continue;
        }
        let path = temp.path().join(format!("{seed}.py"));
        let trial = Trial { path, before, marked };
        let item = code(1, &content).in_file(trial.path.to_str().unwrap());
        let item = item.at_lines(trial.marked.start as i64 + 1, trial.marked.end as i64);
        let first = trial.look(&Arc::new(Item { live: true, ..item }), &text);
        assert!(first.stale().is_none(), "{seed}: {first:?}");
        let mut followed = Arc::clone(&first);
        for _ in 0..=dice.roll(EDITS) {
            file.edit(&mut dice);
            followed = trial.look(&followed, &file.text());
            let told = || format!("{seed}:\n{text}---\n{}---\n{content}", file.text());
            if let Some(why) = trial.wrong(&followed, &file) {
                wrong.push(format!("{}{why}", told()));
            }
            let at_once = trial.look(&first, &file.text());
            let seen = |item: &Item| match item.stale() {
                Some(reason) => Err(reason.to_owned()),
                None => Ok((item.metadata.lines(), item.content.clone())),
            };
            assert_eq!(seen(&followed), seen(&at_once), "{}", told());
            certain += usize::from(at_once.stale().is_none());
            there += 1;
        }
        let back = trial.look(&followed, &text);
        assert_eq!((back.stale(), &back.content), (None, &first.content), "{seed}: it is back");
    }
    assert!(wrong.len() * WRONG <= there, "{} of {there}: {}", wrong.len(), wrong.join("\n====\n"));
    assert!(certain * 2 > there, "{certain} of {there} are certain");
}
