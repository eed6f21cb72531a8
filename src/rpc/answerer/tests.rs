//! Tests of how a model's words and questions reach a person.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::agent::AvailableModel;
use crate::provider::settings::ProviderSettings;
use crate::value::Key;

fn entry(name: &str, value: impl Into<Value>) -> (Key, Value) {
    (name.into(), value.into())
}

#[test]
fn a_question_tells_the_place_outside_and_hides_no_character() {
    let title = |outside: Option<&str>| {
        let mut params = vec![entry("tool", "add_file")];
        params.extend(outside.map(|place| entry("outside", place)));
        match question(&Value::Map(params), "add the file a\u{202e}") {
            ProgressPiece::Question(_, approval) => approval.title,
            ProgressPiece::Text(_) | ProgressPiece::Note(_) => unreachable!("a question was asked"),
        }
    };
    assert_eq!(title(None), "The model wants to add the file a\\u{202e}");
    assert_eq!(
        title(Some("/home/me/.ssh/id\n\u{200b}")),
        "The model wants to add the file a\\u{202e} (outside the project: \
         /home/me/.ssh/id\\n\\u{200b})"
    );
}

/// A chat of pieces, with the number of pieces sent so far, and its result.
struct Chatter {
    pieces: usize,
    said: Arc<AtomicUsize>,
    result: Value,
}

impl MethodCaller for Chatter {
    fn call(&self, _: &str, _: Value) -> Later<'_, Result<Value, WireError>> {
        Box::pin(std::future::ready(Ok(Value::Nil)))
    }

    fn stream(
        &self,
        _: &str,
        _: Value,
        progress: Arc<dyn Peer>,
        _: CancellationToken,
    ) -> Later<'_, Result<Value, WireError>> {
        let (pieces, said) = (self.pieces, Arc::clone(&self.said));
        let result = self.result.clone();
        let chat = tokio::spawn(async move {
            for number in 0..pieces {
                let text = entry("text", format!("piece {number}\n"));
                progress
                    .progress(Value::Map(vec![entry("kind", Value::Keyword("text".into())), text]));
                said.fetch_add(1, Ordering::Relaxed);
                progress.room().await;
            }
            Ok(result)
        });
        Box::pin(async { chat.await.unwrap() })
    }
}

/// A listener whose output is shown only as far as the test permits.
struct Screen {
    shown: Mutex<String>,
    turns: tokio::sync::Semaphore,
}

impl Listener for Screen {
    fn say(&self, piece: &str) {
        self.shown.lock().unwrap().push_str(piece);
    }

    fn shown(&self) -> Later<'_, ()> {
        Box::pin(async { self.turns.acquire().await.unwrap().forget() })
    }

    fn allow(&self, _: Approval) -> Later<'_, Decision> {
        Box::pin(std::future::ready(Decision::Refuse))
    }

    fn confirm(&self, _: String) -> Later<'_, bool> {
        Box::pin(std::future::ready(false))
    }
}

impl Screen {
    /// Takes a turn, and shows all of it.
    async fn take(self: &Arc<Self>, chatter: Chatter) {
        let agent = ModelAnswerer::new(Providers::new(vec![playing()]));
        agent.take_turn(turn(), &chatter, &**self).await.unwrap();
    }
}

/// A model that plays an answer with the text `x`.
fn playing() -> AvailableModel {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.toml");
    std::fs::write(&script, "[[answer]]\ntext = \"x\"\n").unwrap();
    let (name, kind, model) = ("play".into(), "scripted".into(), "m-1".into());
    let said = ProviderSettings { name, kind, model, script: Some(script), ..Default::default() };
    AvailableModel::open(&said.checked().unwrap()).unwrap()
}

fn screen() -> Arc<Screen> {
    let turns = tokio::sync::Semaphore::new(0);
    Arc::new(Screen { shown: Mutex::default(), turns })
}

fn turn() -> UserInput {
    let cancelled = CancellationToken::new();
    UserInput { session: "s".to_owned(), text: "go".to_owned(), with_items: true, cancelled }
}

#[tokio::test]
async fn a_screen_that_is_slow_stops_the_chat_and_nothing_is_lost() {
    let said = Arc::new(AtomicUsize::new(0));
    let chatter = Chatter { pieces: 5_000, said: Arc::clone(&said), result: Value::Nil };
    let screen = screen();
    let shown = Arc::clone(&screen);
    let task = tokio::spawn(async move { shown.take(chatter).await });
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    let before = said.load(Ordering::Relaxed);
    assert!(before < 1_500, "{before} pieces were said to a screen that shows none");
    screen.turns.add_permits(1_000);
    task.await.unwrap();
    let shown = screen.shown.lock().unwrap();
    assert_eq!(shown.lines().filter(|line| line.starts_with("piece")).count(), 5_000);
}

#[test]
fn what_happens_beside_the_answer_has_lines_of_its_own() {
    let mut shown = ShownProgress::default();
    let mut text = String::new();
    let note = || ProgressPiece::Note("; note\n".to_owned());
    let say = |text: &str| ProgressPiece::Text(text.to_owned());
    for piece in [note(), say("I look"), say(""), note(), note(), say("Done.\n"), note()] {
        shown.append(piece, &mut text);
    }
    assert_eq!(text, "; note\nI look\n; note\n; note\nDone.\n; note\n");
}

#[tokio::test]
async fn an_answer_that_is_not_whole_says_why() {
    let why = "a filter stopped it\u{202e}";
    for (pieces, ending, expected) in [
        (1, Value::Nil, "piece 0\n\n"),
        (1, why.into(), "piece 0\n; a filter stopped it\\u{202e}\n"),
        (0, why.into(), "; a filter stopped it\\u{202e}\n"),
    ] {
        let (screen, result) = (screen(), Value::Map(vec![entry("ending", ending)]));
        screen.take(Chatter { pieces, said: Arc::default(), result }).await;
        assert_eq!(*screen.shown.lock().unwrap(), expected);
    }
}
