//! Emacs is the judge of s-expressions: random and nasty data go both ways through a real one.

pub(crate) mod values;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use contexture_program::internals::value::Value;
use contexture_program::internals::value::sexp::{ReadErrorKind, print, read};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use values::{identical, value};

/// Random values each way.
const ROUNDS: usize = 2000;

/// An Emacs that answers the commands of `oracle.el`.
struct Oracle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/sexp_oracle/oracle.el");
        let mut child = Command::new("emacs")
            .args(["-Q", "--batch", "-l", script])
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("these tests need a program `emacs` (28 or later) on the PATH");
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    #[track_caller]
    fn ask(&mut self, command: char, argument: &str) -> String {
        assert!(!argument.contains('\n'), "{argument:?} is more than one line");
        writeln!(self.input, "{command} {argument}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        assert!(answer.ends_with('\n'), "Emacs died over {command} {argument}");
        answer.truncate(answer.len() - 1);
        assert!(!answer.starts_with("error: "), "{answer} for {command} {argument}");
        answer
    }

    /// We read what Emacs printed, and Emacs reads what we print as the value it started from,
    /// without text properties.
    #[track_caller]
    fn check_there_and_back(&mut self, printed: &str) {
        let value = read(printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
        let ours = print(&value);
        let verdict = self.ask('C', &ours);
        assert_eq!(verdict, "ok", "Emacs printed {printed}, we read {value:?}, we print {ours}");
    }

    /// Emacs reads what we print, and we read what it prints as the value we started from.
    #[track_caller]
    fn check_round_trip(&mut self, command: char, value: &Value) {
        let ours = print(value);
        let theirs = self.ask(command, &ours);
        let back = read(&theirs).unwrap_or_else(|error| panic!("{error}: {theirs}"));
        assert!(
            identical(&back, value),
            "{value:?}\nprinted {ours}\nreturned {theirs}\nas {back:?}"
        );
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Values from a fixed seed.
fn samples(strategy: impl Strategy<Value = Value>) -> impl Iterator<Item = Value> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, b"the seed of the Emacs oracle 01!");
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    (0..ROUNDS).map(move |_| strategy.new_tree(&mut runner).unwrap().current())
}

#[test]
fn emacs_and_we_agree_on_nasty_values() {
    let mut oracle = Oracle::start();
    let mut count = 0;
    loop {
        let printed = oracle.ask('N', &count.to_string());
        if printed == "end" {
            break;
        }
        oracle.check_there_and_back(&printed);
        count += 1;
    }
    assert!(count > 100, "only {count} values in the table");
}

#[test]
fn emacs_and_we_agree_on_random_values_of_emacs() {
    let mut oracle = Oracle::start();
    oracle.ask('S', "seed");
    for _ in 0..ROUNDS {
        let printed = oracle.ask('G', "");
        oracle.check_there_and_back(&printed);
    }
}

#[test]
fn objects_of_emacs_are_refused_wherever_they_are() {
    let mut oracle = Oracle::start();
    oracle.ask('S', "seed");
    for _ in 0..ROUNDS {
        let printed = oracle.ask('O', "");
        let error = read(&printed).expect_err(&printed);
        assert_eq!(error.kind, ReadErrorKind::Unsupported, "{error}: {printed}");
        assert!(error.message.contains("instead"), "{error}");
    }
}

#[test]
fn emacs_and_we_agree_on_random_values_of_ours() {
    let mut oracle = Oracle::start();
    for (index, value) in samples(value()).enumerate() {
        let command = if index % 2 == 0 { 'R' } else { 'E' };
        oracle.check_round_trip(command, &value);
    }
}

#[test]
fn emacs_prints_codes_that_are_no_characters_as_we_do() {
    let mut oracle = Oracle::start();
    for codes in [vec![0xD800], vec![0x11_0000, 65], vec![0x3F_FF7F, 48], vec![0xE9, 0xDFFF, 97]] {
        oracle.check_round_trip('E', &Value::RawStr(codes));
    }
}

proptest! {
    #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn what_is_printed_reads_as_the_same(value in value()) {
        let printed = print(&value);
        prop_assert!(!printed.contains(['\n', '\r']));
        let back = read(&printed);
        prop_assert!(back.as_ref().is_ok_and(|back| identical(back, &value)), "{printed} {back:?}");
    }

    #[test]
    fn lexpr_reads_everyday_data_as_we_do(value in values::everyday()) {
        let printed = print(&value);
        let options = lexpr::parse::Options::elisp();
        let theirs = lexpr::from_str_custom(&printed, options).unwrap();
        prop_assert_eq!(values::from_lexpr(&theirs), value, "{}", printed);
    }

    #[test]
    fn we_read_everyday_data_of_lexpr_as_it_does(value in values::everyday()) {
        let theirs = values::to_lexpr(&value);
        let printed = lexpr::to_string_custom(&theirs, lexpr::print::Options::elisp()).unwrap();
        prop_assert_eq!(read(&printed).unwrap(), value, "{}", printed);
    }
}
