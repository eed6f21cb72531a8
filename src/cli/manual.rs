//! `contexture help`: shows the help of a command, or the manual at a topic.
//!
//! The topics are the nodes of the Info manual and the entries of its indexes, so there is no list
//! of them here.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::CommandFactory;

use super::{Cli, say};

/// The name of the file with the manual.
const MANUAL: &str = "contexture.info";
/// The folders in which systems keep manuals.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/local/share/info", "/usr/share/info"];
/// Maximum number of topics that are named when several could be meant.
const MOST_NAMED: usize = 20;
/// Maximum number of letters by which a misspelt topic differs.
const MOST_TYPOS: usize = 2;

/// Show the help of a command, or the manual at a topic.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contexture help sync\n  contexture help contexts\n  contexture help \
    erasing for good\n  contexture help --topics\n\nA topic is a command of the program, a heading of \
    the manual, or a word of its indexes, such as an option of Emacs or the words of a setting."
)]
pub(super) struct Help {
    /// What to show: a command, or some words
    topic: Vec<String>,
    /// List the topics of the manual
    #[arg(long, conflicts_with = "topic")]
    topics: bool,
}

impl Help {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let topic = self.topic.join(" ");
        if self.topics {
            return say(&Manual::parse(&read_manual()?).topics());
        }
        let mut program = Cli::command();
        if topic.is_empty() {
            return say(&program.render_long_help().to_string());
        }
        program.build();
        match program.find_subcommand_mut(&topic) {
            Some(command) => {
                let help = command.render_long_help().to_string();
                let text = read_manual().unwrap_or_default();
                say(&(help + &Manual::parse(&text).about_command(&topic)))
            }
            None => say(&Manual::parse(&read_manual()?).about(&topic)?),
        }
    }
}

/// Reads the manual: the one beside this program, where Info looks, or where `make docs` puts it.
fn read_manual() -> anyhow::Result<String> {
    let beside = |path: &str| -> Option<PathBuf> {
        Some(std::env::current_exe().ok()?.parent()?.join(path))
    };
    let listed = std::env::var_os("INFOPATH").unwrap_or_default();
    let folders = beside("../share/info")
        .into_iter()
        .chain(std::env::split_paths(&listed))
        .chain(SYSTEM_FOLDERS.map(PathBuf::from))
        .chain(beside("../../build"));
    for folder in folders.filter(|folder| folder.is_absolute()) {
        if let Ok(text) = std::fs::read_to_string(folder.join(MANUAL)) {
            return Ok(text);
        }
    }
    bail!(
        "{MANUAL} is not installed: `make install` in the sources installs it, and the variable \
         INFOPATH names other folders; in Emacs, use M-x contexture-help"
    )
}

/// The parts of an Info file.
#[derive(Default)]
struct Manual<'a> {
    /// Each page with its text, in order.
    pages: Vec<(&'a str, &'a str)>,
    /// Each entry of an index, with its page.
    entries: Vec<(&'a str, &'a str)>,
}

impl<'a> Manual<'a> {
    fn parse(text: &'a str) -> Self {
        let mut manual = Self::default();
        let mut indexes = Vec::new();
        for part in text.split('\u{1f}').skip(1) {
            let Some((head, body)) = part.trim_start().split_once('\n') else { continue };
            let Some((_, rest)) = head.split_once("Node: ") else { continue };
            let name = rest.split(',').next().unwrap_or(rest);
            match body.contains("[index") {
                true => indexes.push(body),
                false => manual.pages.push((name, body.trim())),
            }
        }
        manual.entries = indexes.iter().flat_map(|index| manual.read_index(index)).collect();
        manual
    }

    /// Returns the entries of an index, such as `* ACP:    Agents over ACP.   (line 6)`.
    fn read_index(&self, index: &'a str) -> Vec<(&'a str, &'a str)> {
        let entry = |line: &'a str| {
            let line = line.strip_prefix("* ")?;
            // An entry may have colons of its own.
            line.match_indices(':').find_map(|(at, _)| {
                let (page, _) = line[at + 1..].rsplit_once('.')?;
                let page = self.page(page.trim())?.0;
                Some((line[..at].split(" <").next()?, page))
            })
        };
        index.lines().filter_map(entry).collect()
    }

    fn page(&self, name: &str) -> Option<(&'a str, &'a str)> {
        self.pages.iter().copied().find(|(page, _)| alike(page, name))
    }

    /// Lists the topics.
    fn topics(&self) -> String {
        self.pages.iter().fold(String::new(), |all, (page, _)| all + page + "\n")
    }

    /// Says where the manual has a command of the program.
    fn about_command(&self, command: &str) -> String {
        let entry = format!("contexture {command}");
        self.pages_with(|topic| alike(topic, &entry)).iter().fold(String::new(), |mut all, page| {
            // Writing to a string cannot fail.
            let _ = write!(all, "\nThe manual has more: contexture help {}\n", page.to_lowercase());
            all
        })
    }

    /// Returns the page about a topic, or the names of the pages that could be meant.
    fn about(&self, topic: &str) -> anyhow::Result<String> {
        let low = topic.to_lowercase();
        let mut found = self.page(topic).map(|(name, _)| vec![name]).unwrap_or_default();
        let near = |name: &str| strsim::osa_distance(&name.to_lowercase(), &low) <= MOST_TYPOS;
        let tries: [&dyn Fn(&str) -> bool; 3] = [
            &|name| alike(name, topic),
            &|name| low.split_whitespace().all(|word| name.to_lowercase().contains(word)),
            &|name| near(name),
        ];
        for is_meant in tries {
            if found.is_empty() {
                found = self.pages_with(is_meant);
            }
        }
        if found.is_empty() {
            let has_all = |text: &str| {
                let text = text.to_lowercase();
                low.split_whitespace().all(|word| text.contains(word))
            };
            found = self.pages.iter().filter(|page| has_all(page.1)).map(|page| page.0).collect();
        }
        match &found[..] {
            [] => bail!("the manual has nothing on {topic:?}: see `contexture help --topics`"),
            [one] => Ok(self.page(one).map(|(_, text)| shown(text)).unwrap_or_default()),
            several => Ok(several
                .iter()
                .take(MOST_NAMED)
                .fold(format!("The manual has {topic:?} in several places:\n"), |all, page| {
                    all + "  contexture help " + &page.to_lowercase() + "\n"
                })),
        }
    }

    /// Returns the pages whose name or whose entry in an index is meant, each page once.
    fn pages_with(&self, is_meant: impl Fn(&str) -> bool) -> Vec<&'a str> {
        let mut found = Vec::new();
        let named = self.pages.iter().map(|(page, _)| (*page, *page));
        for (name, page) in named.chain(self.entries.iter().copied()) {
            if is_meant(name) && !found.contains(&page) {
                found.push(page);
            }
        }
        found
    }
}

fn alike(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Returns the text of a page, with its links as words.
fn shown(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.to_ascii_lowercase().find("*note") {
        let (before, link) = rest.split_at(at);
        let see = if link.starts_with("*N") { "See " } else { "see " };
        text = text + before + see;
        let link = link["*note".len()..].trim_start();
        rest = match link.split_once("::") {
            Some((name, after)) => {
                text = text + "\"" + name + "\"";
                after
            }
            None => link,
        };
    }
    text + rest + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "This is it.\n\n\u{1f}\nFile: c.info,  Node: Top,  Up: (dir)\n\nThe whole.\n\n* Menu:\n\n\
        * A page::   One.\n\u{1f}\nFile: c.info,  Node: A page,  Next: Other page,  Up: Top\n\n1 A page\n********\n\n\
        Some text (*note\nOther page::).\n\n\u{1f}\nFile: c.info,  Node: Other page,  Up: Top\n\nMore.  *Note A \
        page::.\n\n\u{1f}\nFile: c.info,  Node: Index,  Up: Top\n\nIndex\n*****\n\n\0\u{8}[index\0\u{8}]\n* Menu:\n\n\
        * C-c x ::                              A page.      (line 6)\n* a long entry that takes two lines: Other page.\n   \
                                        (line   9)\n* contexture map:   Other page. (line  3)\n* page of two: A page. (line 4)\n\
        * page of two <1>: Other page. (line 4)\n\u{1f}\nTag Table:\nNode: Top\n";

    #[test]
    fn topics_are_pages_and_entries_of_indexes() {
        let manual = Manual::parse(INFO);
        assert_eq!(manual.topics(), "Top\nA page\nOther page\n");
        let page = "1 A page\n********\n\nSome text (see \"Other page\").\n";
        let other = "More.  See \"A page\".\n";
        for (topic, text) in [
            ("a PAGE", page),
            ("C-c x :", page),
            ("other page", other),
            ("A long entry that takes two lines", other),
            ("lines takes", other),
            ("othr page", other),
            ("contexture map", other),
            ("text some", page),
        ] {
            assert_eq!(manual.about(topic).unwrap(), text, "{topic}");
        }
        let several = manual.about("page of two").unwrap();
        assert!(several.contains("help a page\n") && several.contains("help other page\n"));
        assert!(manual.about("nothing such").unwrap_err().to_string().contains("--topics"));
        assert!(manual.about_command("map").ends_with("contexture help other page\n"));
        assert_eq!(manual.about_command("mcp"), "");
    }

    #[test]
    fn a_text_that_is_no_manual_has_no_topics() {
        assert_eq!(Manual::parse("").topics() + &Manual::parse("\u{1f}\nNode: x").topics(), "");
    }
}
