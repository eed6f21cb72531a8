//! Tests of scripts and their effects.

use super::super::chat::{ChatMessage, Response};
use super::*;
use crate::session::message::Role;

fn request(text: &str) -> Request {
    Request { messages: vec![ChatMessage::new(Role::User, text)], ..Request::default() }
}

/// Returns the answer, and the error that ended it.
fn played(provider: &dyn ChatProvider, text: &str) -> (Response, Option<ProviderError>) {
    let mut whole = Response::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let failure = runtime.block_on(async {
        let mut reply = provider.chat(&request(text)).await?;
        whole.read(&mut *reply).await
    });
    (whole, failure.err())
}

#[test]
fn the_script_of_the_documentation_plays() {
    let documentation = include_str!("../scripted.rs");
    let lines = documentation.lines().skip_while(|line| *line != "//! ```toml").skip(1);
    let lines = lines.take_while(|line| *line != "//! ```");
    let script: Vec<&str> = lines.map(|line| line.trim_start_matches("//!")).collect();
    let provider = Scripted::new(&script.join("\n"), "m").unwrap();
    let (whole, failure) = played(&provider, "please write tests");
    assert_eq!((&*whole.text, failure), ("Here is a test.", None));
    assert_eq!((&*whole.reasoning, whole.calls.len()), ("They ask for tests.", 1));
    assert_eq!((whole.usage.input, whole.stop), (Some(12), Some(Stop::Calls)));
    let (_, failure) = played(&provider, "x");
    let failure = failure.unwrap();
    assert_eq!(failure.kind, ErrorKind::RateLimited);
    assert!(failure.to_string().contains("too many requests; try again in 2 s"), "{failure}");
    let (whole, failure) = played(&provider, "x");
    assert_eq!((&*whole.text, whole.stop), ("This breaks o", None));
    assert_eq!(failure.unwrap().kind, ErrorKind::Unavailable);
}

#[test]
fn data_to_be_sent_back_come_only_with_calls() {
    let check = |calls: &str, expected: bool| {
        let script = format!("[[answer]]\nopaque = {{ signature = \"x\" }}\n{calls}");
        let (whole, _) = played(&Scripted::new(&script, "m").unwrap(), "x");
        assert_eq!(whole.opaque.is_some(), expected, "{script}");
    };
    check("calls = [{ name = \"f\" }]", true);
    check("", false);
}

#[test]
fn an_answer_can_stop_coming() {
    let provider = Scripted::new("[[answer]]\ntext = \"a\"\nhang = true", "m").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut reply = provider.chat(&request("x")).await.unwrap();
        assert_eq!(reply.next().await.unwrap(), Some(StreamEvent::Text("a".to_owned())));
        let next = tokio::time::timeout(Duration::from_millis(5), reply.next());
        assert!(next.await.is_err());
    });
}

#[test]
fn answers_take_turns_and_those_that_fit_go_first() {
    let script = "[[answer]]\ntext = \"1\"\n[[answer]]\ntext = \"2\"\n\
                  [[answer]]\nwhen = \"fit\"\ntext = \"3\"\ncalls = [{ name = \"f\" }]";
    let provider = Scripted::new(script, "m").unwrap();
    let texts: Vec<String> =
        ["a", "it fits", "b", "c"].iter().map(|text| played(&provider, text).0.text).collect();
    assert_eq!(texts, ["1", "3", "2", "1"]);
    let id = |whole: Response| whole.calls[0].id.clone();
    assert_ne!(id(played(&provider, "fit").0), id(played(&provider, "fit").0));
}

#[test]
fn a_script_that_was_edited_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.toml");
    let write = |script: &str, age: u64| {
        std::fs::write(&path, script).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    };
    write("[[answer]]\ntext = \"1\"", 30);
    let provider = Scripted::open(&path, "m").unwrap().with_model("other");
    let answer = |text| played(&*provider, text).0.text;
    assert_eq!(answer("a"), "1");
    write("[[answer]]\ntext = \"2\"\n[[answer]]\ntext = \"3\"", 20);
    assert_eq!([answer("a"), answer("b"), answer("c")], ["2", "3", "2"]);
    write("[[answer]]\ntxt = \"4\"", 10);
    let failure = played(&*provider, "a").1.unwrap();
    assert_eq!(failure.kind, ErrorKind::Unconfigured);
    assert!(failure.what.contains("answers.toml: line 2: unknown field `txt`"), "{failure:?}");
    write("[[answer]]\ntext = \"4\"", 0);
    assert_eq!(answer("a"), "4");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(answer("a"), "4");
}

#[track_caller]
fn check_refused(script: &str, expected: &str) {
    let error = Scripted::new(script, "m").err().unwrap();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_is_wrong_with_a_script_is_said() {
    check_refused("", "missing field `answer`");
    check_refused("answer = []", "no [[answer]]");
    check_refused("[[answer]]\ntxt = \"a\"", "line 2: unknown field `txt`");
    check_refused("[[answer]]\nerror = \"bad\"", "unknown variant `bad`");
    check_refused("[[answer]]\ndelay = -1", "delay must be from 0");
    let provider = Scripted::new("[[answer]]\nwhen = \"a\"\ntext = \"b\"", "m").unwrap();
    let (_, failure) = played(&provider, "x");
    assert_eq!(failure.unwrap().kind, ErrorKind::Unconfigured);
}

#[track_caller]
fn check_opened(path: &Path, expected: Option<&str>) {
    let error = Scripted::open(path, "m").err();
    assert!(error.as_deref().zip(expected).is_none_or(|(e, x)| e.contains(x)), "{error:?}");
    assert_eq!(error.is_some(), expected.is_some());
}

#[test]
fn only_a_regular_file_of_some_size_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("good"), "[[answer]]\ntext = \"a\"\n").unwrap();
    check_opened(&path("good"), None);
    check_opened(&path("none"), Some("No such file"));
    // A FIFO that nobody writes to.
    crate::system::make_fifo(path("fifo"));
    check_opened(&path("fifo"), Some("not a regular file"));
    check_opened(Path::new("/dev/zero"), Some("not a regular file"));
    check_opened(folder.path(), Some("not a regular file"));
    // A sparse file, which takes no space on the disk.
    let large = std::fs::File::create(path("large")).unwrap();
    large.set_len(LONGEST_SCRIPT + 1).unwrap();
    check_opened(&path("large"), Some("more than 16777216 bytes"));
    std::fs::write(path("latin"), b"text = \"\xff\"").unwrap();
    check_opened(&path("latin"), Some("not UTF-8"));
}
