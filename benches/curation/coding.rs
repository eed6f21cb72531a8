//! Coding sessions with planted specifics: paths, commands, constraints, decisions and numbers with
//! later updates, among tool outputs full of other paths and numbers.
//!
//! The sentences come in sets. The extractor was written and corrected with all but the last, which
//! is for judging. Sessions of fresh sentences also change decisions, and correct numbers in the next
//! turn.

use contexture_program::internals::session::message::Role;

use crate::fresh;
use crate::log::Log;
use crate::phrases::{
    ACTIONS, COMMANDS, CONSTRAINTS, DECISIONS, ENDINGS, NUMBERS, PATHS, QUANTITIES, TOOLS, UPDATES,
    WORDS,
};
use crate::random::Random;

/// Maximum number of specifics of one round.
const OF_A_ROUND: usize = 12 + 8 + 8 + 6;

/// The set of sentences that tell the specifics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phrasing {
    /// Sentences that the extractor was written and corrected with.
    Familiar,
    /// Sentences that were held out at first, and later used to correct it.
    Former,
    /// Sentences that were held out longer, and then used to correct it, too.
    HeldOut,
    /// The half of the fresh sentences that was used to correct it.
    Developed,
    /// The other half of the fresh sentences, which was held out, and then used to correct it.
    Judged,
    /// Sentences that were written after these, and then used to correct it, too.
    Later,
    /// Sentences that were written last. Nothing was changed for them.
    Newest,
}

/// A specific that a summary has to keep.
#[derive(Debug, Clone)]
pub(crate) struct Specific {
    pub(crate) kind: &'static str,
    /// Text that must be in the summary, word for word.
    pub(crate) text: String,
    /// Thing that a number measures.
    pub(crate) subject: Option<String>,
    /// Earlier values.
    pub(crate) former: Vec<String>,
}

/// A session in progress.
pub(crate) struct Session {
    random: Random,
    phrasing: Phrasing,
    pub(crate) specifics: Vec<Specific>,
    round: usize,
}

impl Session {
    pub(crate) fn new(seed: u64, phrasing: Phrasing) -> Self {
        Self { random: Random::new(seed), phrasing, specifics: Vec::new(), round: 0 }
    }

    /// Adds about 25 turns, each with two tool calls.
    pub(crate) fn round(&mut self, log: &mut Log) {
        self.round += 1;
        let mut said: Vec<(Role, String)> = Vec::new();
        for _ in 0..12 {
            said.push(self.path());
        }
        for _ in 0..8 {
            said.push(self.command());
        }
        for _ in 0..4 {
            said.push(self.constraint());
            said.push(self.decision());
        }
        for _ in 0..6 {
            said.extend(self.number());
        }
        for _ in 0..3 {
            said.extend(self.update());
        }
        self.random.shuffle(&mut said);
        said.extend(self.redecisions());
        for turn in said.chunks(2) {
            for role in [Role::User, Role::Assistant] {
                let of_role = turn.iter().filter(|(by, _)| *by == role);
                let mut text = self.talk(role);
                of_role.for_each(|(_, sentence)| text = format!("{text}\n{sentence}"));
                log.say(role, &text);
            }
            self.tools(log);
        }
        self.corrections(log);
    }

    fn phrase(&mut self, class: &str, phrases: [&'static [&'static str]; 3]) -> String {
        let sentence = match phrases.get(self.phrasing as usize) {
            Some(set) => self.random.of(set),
            None => self.random.of(&fresh::sentences(class, self.phrasing)),
        };
        sentence.replace("\\n", "\n")
    }

    fn by_anyone(&mut self) -> Role {
        if self.random.happens(0.5) { Role::User } else { Role::Assistant }
    }

    fn keep(&mut self, kind: &'static str, text: &str) {
        self.specifics.push(Specific {
            kind,
            text: text.to_owned(),
            subject: None,
            former: Vec::new(),
        });
    }

    fn path(&mut self) -> (Role, String) {
        let path = self.new_path("src");
        self.keep("paths", &path);
        (self.by_anyone(), self.phrase("path", PATHS).replace("{p}", &path))
    }

    fn new_path(&mut self, root: &str) -> String {
        let (folder, name) = (self.random.of(WORDS), self.random.of(WORDS));
        let number = self.random.below(900);
        format!("{root}/{folder}/{name}_{number}.{}", self.random.of(ENDINGS))
    }

    fn command(&mut self) -> (Role, String) {
        let (word, number) = (self.random.of(WORDS), self.random.below(1000));
        let command = match self.random.below(5) {
            0 => format!("cargo test --lib {word}::case_{number} -- --nocapture"),
            1 => format!("git bisect start HEAD v0.{number}.0"),
            2 => format!("docker compose up {word} --scale {word}={number}"),
            3 => format!("./scripts/{word}.sh --seed {number}"),
            _ => format!("psql -d {word}_{number} -c 'select 1'"),
        };
        self.keep("commands", &command);
        (self.by_anyone(), self.phrase("command", COMMANDS).replace("{c}", &command))
    }

    fn constraint(&mut self) -> (Role, String) {
        let word = format!("{} {}", self.random.of(WORDS), self.random.of(WORDS));
        let action = self.random.of(ACTIONS).replace("{w}", &word);
        self.keep("constraints", &action);
        (Role::User, self.phrase("constraint", CONSTRAINTS).replace("{a}", &action))
    }

    fn decision(&mut self) -> (Role, String) {
        let (tool, word) = (self.random.of(TOOLS), self.random.of(WORDS));
        let word = format!("the {word} part {}", self.random.below(900));
        let sentence =
            self.phrase("decision", DECISIONS).replace("{a}", tool).replace("{w}", &word);
        self.keep("decisions", sentence.trim_end_matches('.'));
        (self.by_anyone(), sentence)
    }

    /// Gives other answers to two decisions of an earlier round.
    fn redecisions(&mut self) -> Vec<(Role, String)> {
        let sentences = fresh::sentences("redecide", self.phrasing);
        let mut said = Vec::new();
        for _ in 0..if sentences.is_empty() { 0 } else { 2 } {
            let known = self.specifics.len().saturating_sub(OF_A_ROUND);
            let is_first =
                |specific: &Specific| specific.kind == "decisions" && specific.former.is_empty();
            let first: Vec<usize> =
                (0..known).filter(|at| is_first(&self.specifics[*at])).collect();
            if first.is_empty() {
                break;
            }
            let at = self.random.of(&first);
            let text = self.specifics[at].text.clone();
            let Some(old) = TOOLS.iter().find(|tool| text.contains(**tool)) else { break };
            let part = text.find(" part ").unwrap_or(0);
            let Some(start) = text[..part].rfind("the ") else { break };
            let subject: Vec<&str> = text[start..].split([' ', ',', ':', ';']).take(4).collect();
            let subject = subject.join(" ");
            let new = *TOOLS.iter().find(|tool| *tool != old).unwrap_or(old);
            let sentence = self.random.of(&sentences).replace("{a}", new).replace("{o}", old);
            let sentence = sentence.replace("{w}", &subject);
            let specific = &mut self.specifics[at];
            specific.former.push((*old).to_owned());
            specific.text = sentence.trim_end_matches('.').to_owned();
            specific.subject = Some(subject);
            said.push((self.by_anyone(), sentence));
        }
        said
    }

    /// States numbers, and corrects each in the next turn.
    fn corrections(&mut self, log: &mut Log) {
        let sentences = fresh::sentences("follow", self.phrasing);
        for _ in 0..if sentences.is_empty() { 0 } else { 2 } {
            let Some((_, stated)) = self.number() else { continue };
            let Some(specific) = self.specifics.last_mut() else { continue };
            let Some(subject) = &specific.subject else { continue };
            let Some((_, values)) = QUANTITIES.iter().find(|(name, _)| subject.ends_with(name))
            else {
                continue;
            };
            let old = specific.text.clone();
            let new = values.iter().find(|value| **value != old).map_or("", |value| *value);
            specific.former.push(old.clone());
            new.clone_into(&mut specific.text);
            let sentence = self.random.of(&sentences).replace("{v}", new).replace("{o}", &old);
            log.say(Role::User, &stated);
            log.say(Role::Assistant, "Okay, I am on it.");
            log.say(Role::User, &sentence);
            self.tools(log);
        }
    }

    fn number(&mut self) -> Option<(Role, String)> {
        let (quantity, values) = self.random.of(QUANTITIES);
        let subject = format!("{} {quantity}", self.random.of(WORDS));
        if self.specifics.iter().any(|other| other.subject.as_ref() == Some(&subject)) {
            return None;
        }
        let value = (self.random.of(values)).to_owned();
        let sentence =
            self.phrase("number", NUMBERS).replace("{s}", &subject).replace("{v}", &value);
        let (subject, former) = (Some(subject), Vec::new());
        self.specifics.push(Specific { kind: "numbers", text: value, subject, former });
        Some((self.by_anyone(), sentence))
    }

    /// Gives another value to a number of an earlier round.
    fn update(&mut self) -> Option<(Role, String)> {
        let known = self.specifics.len().saturating_sub(OF_A_ROUND);
        let numbers: Vec<usize> =
            (0..known).filter(|at| self.specifics[*at].kind == "numbers").collect();
        if numbers.is_empty() {
            return None;
        }
        let at = self.random.of(&numbers);
        // Once is enough: two updates in one round could come in any order.
        if !self.specifics[at].former.is_empty() {
            return None;
        }
        let old = self.specifics[at].text.clone();
        let subject = self.specifics[at].subject.clone()?;
        let (_, values) = QUANTITIES.iter().find(|(name, _)| subject.ends_with(name))?;
        let value = (*values.iter().find(|value| **value != old)?).to_owned();
        let sentence = self.phrase("update", UPDATES).replace("{s}", &subject).replace("{o}", &old);
        let sentence = sentence.replace("{v}", &value);
        self.specifics[at].former.push(old);
        self.specifics[at].text = value;
        Some((self.by_anyone(), sentence))
    }

    fn talk(&mut self, role: Role) -> String {
        const USER: &[&str] = &[
            "Can you have a look at this one next?",
            "Good, go on.",
            "Hm, that is not what I meant.",
            "Could it be that the order matters here?",
            "Nice, thanks. What is left?",
        ];
        const MODEL: &[&str] = &[
            "I read the code and see what happens: the state is built twice.",
            "This looks right to me, but the edge case with no input stays open.",
            "It compiles; now the slow path has the same check as the fast one.",
            "The first attempt did not hold, so I went back one step.",
        ];
        (self.random.of(if role == Role::User { USER } else { MODEL })).to_owned()
    }

    /// Adds a listing and a log, full of unrelated paths and numbers.
    fn tools(&mut self, log: &mut Log) {
        let mut listing = String::new();
        for _ in 0..20 + self.random.below(60) {
            listing.push_str(&self.new_path("vendor"));
            listing.push('\n');
        }
        let word = self.random.of(WORDS);
        log.call("", "list_files", &format!("{{\"pattern\": \"**/{word}*\"}}"), &listing);
        let mut output = String::new();
        for line in 0..30 + self.random.below(90) {
            let word = self.random.of(WORDS);
            let number = self.random.below(5000);
            output.push_str(&match self.random.below(12) {
                0 => format!("warning: unused variable `{word}_{number}`\n"),
                1 => format!("error[E0{number}]: cannot find {word} in this scope\n"),
                2 => format!("step {line}: {number} ms\n"),
                _ => {
                    format!("{line:04} [{word}] handled item {number} without remarks, going on\n")
                }
            });
        }
        log.call("", "read_log", &format!("{{\"lines\": {}}}", output.len() / 50), &output);
    }
}
