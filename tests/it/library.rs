//! The library as other programs use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use contexture::provider::Answer;
use contexture::provider::chat::{AnswerStream, ChatProvider, Request, Stop, StreamEvent};
use contexture::{
    Conversation, Decision, Error, ErrorKind, Item, Kind, Message, Outcome, Provider, Refusal,
    Reply, Role, Tokenizer, Tool, ToolContext, Turn, TurnConfig, TurnEvent, TurnStream,
};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::json;

use crate::pictures;
use crate::support::Home;

#[path = "../../crates/conversation/examples/agent.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, whose main nobody calls here"
)]
mod agent;

#[path = "../../crates/conversation/examples/approval.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, whose main nobody calls here"
)]
mod approval;

#[path = "../../crates/conversation/examples/provider.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, whose main nobody calls here"
)]
mod own_provider;

#[path = "../../crates/conversation/examples/readme.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, whose main nobody calls here"
)]
mod readme;

#[tokio::test]
async fn the_program_on_the_library_page_does_what_it_says() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let example = read("crates/conversation/examples/readme.rs");
    let shown = &example[example.find("pub async fn talk(").unwrap()..];
    let shown = &shown[..shown.find("\n}\n").unwrap() + 3];
    let advice = "docs/library.md does not show what examples/readme.rs has";
    assert!(read("docs/library.md").contains(&format!("```rust\n{shown}```\n")), "{advice}");
    let mut told = Vec::new();
    readme::talk(Provider::scripted(readme::SCRIPT), &mut told).await.unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(told.starts_with("The limit is 4 now.\n"), "{told}");
    assert!(told.contains(" tokens, 1 calls\n") && told.contains("\ncontext-items: "), "{told}");
}

#[tokio::test]
async fn the_examples_do_what_they_say() {
    let mut told = Vec::new();
    own_provider::run(&mut told).await.unwrap();
    assert_eq!(String::from_utf8(told).unwrap(), "abacus: 5 words\n");
    let mut told = Vec::new();
    approval::run(&mut told).await.unwrap();
    let expected = "May it call delete_file {\"path\": \"old.txt\"}? Yes.\nold.txt is gone\n\
                    It is deleted.\nOnce upon a time…\n";
    assert_eq!(String::from_utf8(told).unwrap(), expected);
}

#[tokio::test]
async fn the_example_summarizes_takes_checkpoints_and_goes_back() {
    let mut told = Vec::new();
    let tally = agent::run(&mut told).await.unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(tally.summaries >= 3, "{told}");
    assert!(tally.checkpoints >= 5, "{told}");
    assert!(tally.grounded >= 30, "{tally:?}");
    assert_eq!(tally.rollbacks, 1, "{told}");
    assert!(tally.largest_window <= 1_000, "{tally:?}");
    assert_eq!(tally.runs, 40, "{told}");
}

#[tokio::test]
async fn a_conversation_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Conversation::builder("a").state_folder(folder.path()).open();
    let conversation = open().await.unwrap();
    conversation.process_turn("one").await.unwrap();
    conversation.add_response("re one").await.unwrap();
    conversation.checkpoint("here").await.unwrap();
    let taken = open().await.err().unwrap();
    assert!(taken.to_string().contains("belongs to this process"));
    let Error::FolderTaken { path, pid, .. } = taken else { panic!("{taken}") };
    assert_eq!((&*path, pid), (folder.path(), Some(std::process::id())));
    let clone = conversation.clone();
    conversation.close().await;
    assert!(matches!(clone.messages().await, Err(Error::Closed)));
    let conversation = open().await.unwrap();
    conversation.process_turn("two").await.unwrap();
    assert_eq!(conversation.rollback(None).await.unwrap().turns_lost, 1);
    assert_eq!(conversation.undo_view().await.unwrap().turns_restored, 1);
    let messages = conversation.messages().await.unwrap();
    let words: Vec<&str> = messages.iter().map(|message| &*message.content).collect();
    assert_eq!(words, ["one", "re one", "two"]);
}

#[tokio::test]
async fn without_versioning_there_is_nothing_to_go_back_to() {
    let conversation = Conversation::builder("a").versioning(false).open().await.unwrap();
    conversation.process_turn("one").await.unwrap();
    assert_eq!(conversation.checkpoint("x").await.unwrap(), None);
    let error = conversation.rollback(None).await.unwrap_err().to_string();
    assert!(error.starts_with("versioning is not enabled"), "{error}");
}

#[tokio::test]
async fn settings_out_of_range_and_unknown_strategies_are_refused() {
    let error = async |builder: contexture::Builder| builder.open().await.err().unwrap();
    let config = TurnConfig { max_tokens: Some(1), ..TurnConfig::default() };
    let wrong = error(Conversation::builder("a").config(config)).await;
    assert!(matches!(wrong, Error::Setting(_)));
    assert_eq!(wrong.to_string(), "max-tokens must be a whole number from 256 to 10000000, got 1");
    let wrong = error(Conversation::builder("a").strategy("best")).await.to_string();
    assert!(
        wrong.starts_with("there is no strategy \"best\"; the strategies are tiered, "),
        "{wrong}"
    );
    let twice = Conversation::builder("a").tool(Add::default()).tool(Add::default());
    assert!(matches!(error(twice).await, Error::Tool { .. }));
    let script = Conversation::builder("a").provider(Provider::scripted("answer = 1"));
    assert!(matches!(error(script).await, Error::Setting(_)));
    let unknown = error(Conversation::builder("a").tool(Add::default()).allow(["sub"])).await;
    assert_eq!(unknown.to_string(), "the tool \"sub\" does not exist; the only tool is add");
    let nowhere = error(Conversation::builder("a").state_folder("")).await;
    assert!(matches!(nowhere, Error::Setting(_)), "{nowhere}");
}

#[tokio::test]
async fn every_message_costs_what_the_tokenizer_says() {
    let conversation =
        Conversation::builder("a").tokenizer(Tokenizer::Estimate).open().await.unwrap();
    conversation.say(Message::system("12345678").pinned()).await.unwrap();
    conversation.process_turn("1234").await.unwrap();
    assert_eq!(conversation.stats().await.unwrap().tokens, 3);
    let window = conversation.window().await.unwrap();
    assert_eq!(window.tokens, 3);
    assert_eq!(window.parts.len(), 2);
}

/// Adds numbers, or waits for ever.
#[derive(Default)]
struct Add {
    calls: Arc<AtomicUsize>,
    asks: bool,
    hangs: bool,
}

#[derive(Deserialize)]
struct Numbers {
    a: i64,
    b: i64,
}

impl Tool for Add {
    type Args = Numbers;
    type Error = &'static str;

    fn name(&self) -> std::borrow::Cow<'_, str> {
        "add".into()
    }

    fn description(&self) -> String {
        "Adds two numbers.".to_owned()
    }

    fn parameters(&self) -> serde_json::Value {
        let number = json!({ "type": "integer" });
        json!({ "type": "object", "properties": { "a": number, "b": number } })
    }

    fn needs_approval(&self) -> bool {
        self.asks
    }

    async fn call(&self, args: Numbers, _: ToolContext) -> Result<String, &'static str> {
        let Numbers { a, b } = args;
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        assert_ne!(a, 13, "a defect of the tool");
        a.checked_add(b).map(|sum| sum.to_string()).ok_or("the sum is too large")
    }
}

/// A script whose model calls `add` with each of these arguments, and then echoes what it was sent.
fn adding(arguments: &[&str]) -> String {
    let calls = arguments.iter().map(|text| format!("{{ name = 'add', arguments = '{text}' }}"));
    let calls = calls.collect::<Vec<_>>().join(", ");
    format!("[[answer]]\ncalls = [{calls}]\n[[answer]]\ntext = ['The ', 'end']\n")
}

async fn with_script(script: &str, tool: Add) -> Conversation {
    let builder = Conversation::builder("a").provider(Provider::scripted(script));
    builder.tool(tool).max_tokens(2_000).open().await.unwrap()
}

#[tokio::test]
async fn a_turn_tells_its_events_and_then_its_reply() {
    let script = adding(&[r#"{"a": 1, "b": 2}"#]);
    let conversation = with_script(&script, Add::default()).await;
    let mut stream = conversation.chat("What is 1 + 2?").stream();
    let mut events = Vec::new();
    while let Some(event) = StreamExt::next(&mut stream).await {
        events.push(event);
    }
    let text = |text: &str| TurnEvent::Text(text.to_owned());
    let (tool, arguments) = ("add".to_owned(), r#"{"a": 1, "b": 2}"#.to_owned());
    let TurnEvent::ToolCall { id, .. } = &events[0] else { panic!("{events:?}") };
    let result = TurnEvent::ToolResult {
        id: id.clone(),
        tool: tool.clone(),
        outcome: Outcome::Done,
        text: "3".to_owned(),
    };
    let called = TurnEvent::ToolCall { id: id.clone(), tool, arguments };
    assert_eq!(events, [called, result, text("The "), text("end")]);
    let reply = stream.reply().await.unwrap();
    assert_eq!((&*reply.text, reply.rounds, reply.calls.len()), ("The end", 2, 1));
    let roles: Vec<Role> =
        conversation.messages().await.unwrap().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
}

#[tokio::test]
async fn a_call_that_fails_is_told_to_the_model_and_the_turn_goes_on() {
    let most = format!(r#"{{"a": {}, "b": 1}}"#, i64::MAX);
    let script = adding(&[&most, r#"{"a": 1}"#, r#"{"a": 13, "b": 1}"#]);
    let reply = with_script(&script, Add::default()).await.chat("go").await.unwrap();
    let texts: Vec<&str> = reply.calls.iter().map(|call| &*call.text).collect();
    assert_eq!(texts[0], "the sum is too large");
    assert!(
        texts[1].starts_with("the arguments do not match the tool's parameters: missing field `b`"),
        "{texts:?}"
    );
    assert_eq!(texts[2], "the tool add failed with a panic");
    assert!(reply.calls.iter().all(|call| call.outcome == Outcome::Failed));
    assert_eq!(reply.text, "The end");
}

#[tokio::test]
async fn a_model_that_only_calls_is_stopped_after_its_rounds() {
    let script = "[[answer]]\ncalls = [{ name = 'add', arguments = '{\"a\": 1, \"b\": 2}' }]\n";
    let calls = Arc::new(AtomicUsize::new(0));
    let tool = Add { calls: Arc::clone(&calls), ..Add::default() };
    let conversation = with_script(script, tool).await;
    let reply = conversation.chat("go").max_rounds(3).temperature(0.0).await.unwrap();
    assert!(reply.is_out_of_rounds && reply.text.is_empty());
    assert_eq!((reply.rounds, calls.load(Ordering::Relaxed)), (4, 2));
    assert_eq!(reply.calls[2].outcome, Outcome::Refused);
}

#[tokio::test]
async fn a_call_that_needs_approval_waits_for_it() {
    let script = adding(&[r#"{"a": 1, "b": 2}"#]);
    let calls = Arc::new(AtomicUsize::new(0));
    let tool = || Add { calls: Arc::clone(&calls), asks: true, hangs: false };
    let conversation = with_script(&script, tool()).await;
    for (decision, outcome) in
        [(Decision::Refuse, Outcome::Refused), (Decision::Once, Outcome::Done)]
    {
        let mut stream = conversation.chat("go").stream();
        while let Some(event) = stream.next().await {
            if let TurnEvent::Approval(question) = event {
                assert_eq!(question.phrase, r#"call add {"a": 1, "b": 2}"#);
                assert!(conversation.approve(question.number, decision));
            }
        }
        assert_eq!(stream.reply().await.unwrap().calls[0].outcome, outcome);
    }
    // Nobody hears of the question when only the reply is waited for.
    let conversation = with_script(&script, tool()).await;
    let reply = conversation.chat("go").await.unwrap();
    assert_eq!(reply.calls[0].outcome, Outcome::Refused);
    let reply = conversation.chat("go").stream().reply().await.unwrap();
    assert_eq!(reply.calls[0].outcome, Outcome::Refused);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_stream_that_is_dropped_cancels_its_turn_and_the_next_one_waits() {
    let script = adding(&[r#"{"a": 1, "b": 2}"#]);
    let conversation = with_script(&script, Add { hangs: true, ..Add::default() }).await;
    let mut stream = conversation.chat("one").stream();
    assert!(matches!(stream.next().await, Some(TurnEvent::ToolCall { .. })));
    drop(stream);
    let reply = conversation.chat("two").tools(Vec::<String>::new()).await.unwrap();
    assert_eq!(reply.text, "The end");
    let messages = conversation.messages().await.unwrap();
    let result = messages.iter().find(|message| message.role == Role::Tool).unwrap();
    assert_eq!(result.content, "the turn was cancelled");
    // So is a turn that goes on when the conversation is closed.
    let script = "[[answer]]\ntext = 'So far'\nhang = true\n";
    let conversation = with_script(script, Add::default()).await;
    let mut stream = conversation.chat("three").stream();
    assert_eq!(stream.next().await, Some(TurnEvent::Text("So far".to_owned())));
    conversation.close().await;
    assert!(matches!(stream.reply().await, Err(Error::Cancelled)));
}

#[tokio::test]
async fn a_question_without_an_answer_is_asked_again_edited_or_removed() {
    let done = "[[answer]]\ntext = 'Done'\n";
    let failing = format!("[[answer]]\nerror = 'bad-request'\n{done}");
    let hanging = format!("[[answer]]\ntext = 'So far'\nhang = true\n{done}");
    for (script, hangs) in [(failing, false), (hanging, true)] {
        for next in [Some("Count"), Some("Count to 2"), None] {
            let conversation = with_script(&script, Add::default()).await;
            conversation.checkpoint("before").await.unwrap().unwrap();
            if hangs {
                let mut stream = conversation.chat("Count").stream();
                assert!(stream.next().await.is_some());
                drop(stream);
                // The turn ends when what came of the answer is stored.
                while conversation.messages().await.unwrap().len() < 2 {
                    tokio::task::yield_now().await;
                }
            } else {
                conversation.chat("Count").await.unwrap_err();
            }
            conversation.rollback(None).await.unwrap();
            assert_eq!(conversation.messages().await.unwrap().len(), 0, "{script} {next:?}");
            let Some(next) = next else { continue };
            assert_eq!(conversation.chat(next).await.unwrap().text, "Done");
            let messages = conversation.messages().await.unwrap();
            let words: Vec<&str> = messages.iter().map(|message| &*message.content).collect();
            assert_eq!(words, [next, "Done"]);
        }
    }
}

#[tokio::test]
async fn closing_a_conversation_ends_a_tool_that_hangs_and_the_turns_that_wait() {
    let script = adding(&[r#"{"a": 1, "b": 2}"#]);
    let calls = Arc::new(AtomicUsize::new(0));
    let tool = Add { calls: Arc::clone(&calls), asks: false, hangs: true };
    let conversation = with_script(&script, tool).await;
    let mut hanging = conversation.chat("one").stream();
    assert!(matches!(hanging.next().await, Some(TurnEvent::ToolCall { .. })));
    while calls.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let waiting = conversation.chat("two").stream();
    conversation.clone().close().await;
    assert!(matches!(hanging.reply().await, Err(Error::Cancelled)));
    assert!(matches!(waiting.reply().await, Err(Error::Closed)));
    assert!(matches!(conversation.chat("three").await, Err(Error::Closed)));
}

#[test]
fn a_conversation_whose_runtime_is_gone_is_closed_and_its_folder_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let open = || {
        let script = "[[answer]]\ntext = 'So far'\nhang = true\n";
        let builder = Conversation::builder("a").provider(Provider::scripted(script));
        builder.state_folder(folder.path()).open()
    };
    let first = runtime();
    let (conversation, stream) = first.block_on(async {
        let conversation = open().await.unwrap();
        let mut stream = conversation.chat("one").stream();
        assert!(stream.next().await.is_some());
        (conversation, stream)
    });
    drop(first);
    runtime().block_on(async {
        assert!(matches!(stream.reply().await, Err(Error::Closed)));
        assert!(matches!(conversation.messages().await, Err(Error::Closed)));
        assert!(matches!(conversation.chat("two").await, Err(Error::Closed)));
        conversation.close().await;
        let again = open().await.unwrap();
        assert_eq!(again.messages().await.unwrap(), [Message::user("one")]);
        again.close().await;
    });
}

#[tokio::test]
async fn everything_can_be_shown_for_debugging() {
    let builder =
        Conversation::builder("a").provider(Provider::scripted("[[answer]]\ntext = 'ok'"));
    assert!(format!("{builder:?}").starts_with(r#"Builder { name: "a", folder: None"#));
    let conversation = builder.open().await.unwrap();
    assert!(format!("{conversation:?}").starts_with(r#"Conversation { name: "a""#));
    assert!(format!("{:?}", conversation.window().max_tokens(300)).contains("Some(300)"));
    let turn = conversation.chat("go");
    assert!(format!("{turn:?}").contains(r#"content: "go""#));
    let stream = turn.stream();
    assert!(format!("{stream:?}").starts_with("TurnStream { waiting: "));
    assert!(format!("{:?}", stream.reply().await.unwrap()).contains(r#"text: "ok""#));
    let missing = conversation.chat("go").provider("x").await.unwrap_err();
    assert!(matches!(missing, Error::Setting(_)));
}

#[tokio::test]
async fn items_are_in_the_windows_and_can_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.rs"), "fn one() {}\nfn two() {}\n").unwrap();
    let script = "[[answer]]\necho = true\n";
    let builder = Conversation::builder("a").provider(Provider::scripted(script));
    let conversation = builder.project(folder.path()).open().await.unwrap();
    let file = conversation.add_file("a.rs", 2..).await.unwrap();
    conversation.add(Item::new("fn three() {}").region("/x/b.rs", 3..=3)).await.unwrap();
    let note = conversation.add("a note").await.unwrap();
    let payload = conversation.chat("go").await.unwrap().text;
    for (text, is_there) in [("one()", false), ("two()", true), ("three()", true), ("note", true)] {
        assert_eq!(payload.contains(text), is_there, "{text} in {payload}");
    }
    conversation.remove([file, note]).await.unwrap();
    let left = conversation.items().await.unwrap();
    assert_eq!((left.len(), left[0].kind, left[0].lines), (1, Kind::Code, Some((3, 3))));
    conversation.undo().await.unwrap();
    assert_eq!(conversation.items().await.unwrap().len(), 3);
    assert!(matches!(
        conversation.remove([contexture::ItemId(99)]).await,
        Err(Error::Refused { why: Refusal::NoSuchItem, .. })
    ));
    assert!(matches!(conversation.add_file("missing.rs", ..).await, Err(Error::File(_))));
}

/// A provider that answers with the kinds and contents of the pictures and PDFs that it is shown.
struct Looking {
    takes_pdf: bool,
}

impl ChatProvider for Looking {
    fn name(&self) -> &str {
        "looking"
    }

    fn model(&self) -> &str {
        "m"
    }

    fn with_model(&self, _: &str) -> Arc<dyn ChatProvider> {
        Arc::new(Self { takes_pdf: self.takes_pdf })
    }

    fn takes_pdf(&self) -> bool {
        self.takes_pdf
    }

    fn chat<'a>(&'a self, request: &'a Request) -> Answer<'a, Box<dyn AnswerStream>> {
        let shown = request.messages.iter().flat_map(|said| &said.pictures);
        let shown = shown.map(|it| format!("{} {} {}\n", it.name, it.media, it.data));
        let said = vec![StreamEvent::Text(shown.collect()), StreamEvent::Stopped(Stop::Finished)];
        Box::pin(std::future::ready(Ok(Box::new(Said(said.into_iter())) as Box<dyn AnswerStream>)))
    }
}

struct Said(std::vec::IntoIter<StreamEvent>);

impl AnswerStream for Said {
    fn next(&mut self) -> Answer<'_, Option<StreamEvent>> {
        Box::pin(std::future::ready(Ok(self.0.next())))
    }
}

#[tokio::test]
async fn pictures_are_shown_to_models_that_take_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        std::fs::write(folder.path().join(name), content).unwrap();
    };
    let (png, pdf) = (pictures::png(64, 48), pictures::pdf("The port is 5433"));
    write("shot.png", &png);
    write("notes.pdf", pdf.as_bytes());
    write("cut.png", &png[..20]);
    write("wide.png", &pictures::png(9_000, 10));
    write("large.png", &[&png[..], &[0; 4_000_000]].concat());
    let shown =
        |name, media, content: &[u8]| format!("{name} {media} {}\n", STANDARD.encode(content));
    let picture = shown("shot.png", "image/png", &png);
    let both = picture.clone() + &shown("notes.pdf", "application/pdf", pdf.as_bytes());
    for (takes_pdf, expected) in [(true, both), (false, picture)] {
        let builder = Conversation::builder("a").provider(Provider::custom(Looking { takes_pdf }));
        let builder = builder.project(folder.path()).max_tokens(20_000);
        let conversation = builder.open().await.unwrap();
        for name in ["shot.png", "notes.pdf"] {
            conversation.add_file(name, ..).await.unwrap();
        }
        for name in ["cut.png", "wide.png", "large.png"] {
            let refused = conversation.add_file(name, ..).await.unwrap_err();
            assert!(matches!(refused, Error::File(_)) && refused.to_string().contains(name));
        }
        let reply = conversation.chat("Which port?").await.unwrap();
        assert_eq!((reply.text, reply.left_out.len()), (expected, 0));
        let listed = conversation.items().await.unwrap();
        assert!(listed[0].content.starts_with("shot.png: png picture, 64 × 48 pixels"));
        assert!(listed[1].content.contains("The port is 5433"));
    }
    // A model that sees no pictures refuses one by its name.
    let blind =
        Conversation::builder("a").provider(Provider::scripted("[[answer]]\ntext = 'ok'\n"));
    let blind = blind.project(folder.path()).open().await.unwrap();
    blind.add_file("shot.png", ..).await.unwrap();
    let refused = blind.chat("What is it?").model("gpt-3.5-turbo").await.unwrap_err();
    assert!(refused.to_string().contains("shot.png"), "{refused}");
}

#[tokio::test]
async fn a_budget_is_kept_by_windows_and_named_by_errors() {
    let script = "[[answer]]\ntext = 'ok'\n[[answer]]\nerror = 'rate-limited'\n";
    let conversation = with_script(script, Add::default()).await;
    conversation.say(Message::system("word ".repeat(1_000)).pinned()).await.unwrap();
    let error = conversation.chat("go").max_tokens(300).await.err().unwrap();
    let Error::BudgetTooSmall { needed, parts, .. } = error else { panic!("{error}") };
    assert!(needed > 1_000 && !parts.is_empty());
    let reply = conversation.chat("go").max_tokens(needed + 50).await.unwrap();
    assert!(reply.window_tokens <= needed + 50);
    let report = conversation.report().await.unwrap().unwrap();
    assert_eq!(report.report.tokens_after, reply.window_tokens);
    let error = conversation.chat("again").await.err().unwrap();
    let Error::Provider(error) = error else { panic!("{error}") };
    assert_eq!(error.kind, ErrorKind::RateLimited);
}

#[tokio::test]
async fn without_a_provider_or_a_tool_of_that_name_no_turn_begins() {
    let conversation = Conversation::builder("a").open().await.unwrap();
    assert!(matches!(conversation.chat("go").await, Err(Error::NoProvider)));
    let conversation = with_script("[[answer]]\ntext = 'ok'\n", Add::default()).await;
    assert!(matches!(conversation.chat("go").tools(["sub"]).await, Err(Error::Tool { .. })));
    assert!(matches!(conversation.chat("go").provider("x").await, Err(Error::Setting(_))));
    assert!(conversation.messages().await.unwrap().is_empty());
}

#[tokio::test]
async fn conversations_share_a_state_and_functions_are_tools() {
    let folder = tempfile::tempdir().unwrap();
    let script = "[[answer]]\ncalls = [{ name = 'double', arguments = '{\"number\": 4}' }]\n\
                  [[answer]]\ntext = 'ok'\n";
    let open = |name: &str| {
        let double = |args: serde_json::Value, _| async move {
            let number = args["number"].as_i64().ok_or("no number")?;
            Ok::<_, &str>((2 * number).to_string())
        };
        let builder = Conversation::builder(name).provider(Provider::scripted(script));
        builder.function("double", "Doubles a number.", json!({ "type": "object" }), double)
    };
    let one = open("one").state_folder(folder.path()).open().await.unwrap();
    let two = open("two").beside(&one).open().await.unwrap();
    let (first, second) = tokio::join!(one.chat("a"), two.chat("b"));
    assert_eq!((&*first.unwrap().calls[0].text, &*second.unwrap().calls[0].text), ("8", "8"));
    assert_eq!(two.messages().await.unwrap()[0], Message::user("b"));
    two.close().await;
    assert!(matches!(one.messages().await, Err(Error::Closed)));
    let one = open("one").state_folder(folder.path()).open().await.unwrap();
    assert_eq!(one.messages().await.unwrap().len(), 4);
    let twice = open("one")
        .beside(&one)
        .function("a b", "x", json!({}), |_: (), _| async { Ok::<_, &str>(String::new()) });
    assert!(matches!(twice.open().await, Err(Error::Tool { .. })));
}

#[tokio::test]
async fn a_server_undoes_what_the_library_pruned() {
    let home = Home::new();
    let builder = Conversation::builder("a").state_folder(home.state());
    let conversation = builder.open().await.unwrap();
    for number in 0..30 {
        conversation.say(format!("The number {number} is even or odd.")).await.unwrap();
    }
    assert!(!conversation.prune(Some(200)).await.unwrap().removed.is_empty());
    conversation.close().await;
    let undone = home.stdio(&[]).ok("undo", "(:session \"a\")");
    assert_eq!(undone["undone"], "prune-session");
}

#[tokio::test]
async fn models_can_be_given_the_tools_of_the_context() {
    let script = "[[answer]]\ncalls = [{ name = 'add_text', arguments = '{\"content\": \"x\"}' }]\n\
                  [[answer]]\ntext = 'ok'\n";
    let builder = Conversation::builder("a").provider(Provider::scripted(script));
    let builder = builder.context_tools().allow(["add_text"]);
    let conversation = builder.open().await.unwrap();
    let reply = conversation.chat("go").await.unwrap();
    assert_eq!(reply.calls[0].outcome, Outcome::Done);
    assert_eq!(&*conversation.items().await.unwrap()[0].content, "x");
}

#[test]
fn a_history_of_messages_is_curated() {
    let mut history = vec![Message::system("Be brief.")];
    history.extend((0..300).map(|number| Message::user(format!("The number {number} is odd."))));
    let window = contexture::curate::curate(&history, 400).window().unwrap();
    assert!(window.tokens <= 400 && window.parts.len() < history.len());
    assert_eq!(window.parts.first(), Some(&contexture::curate::Part::Message(0)));
}

#[tokio::test]
async fn a_conversation_is_shared_by_tasks_and_its_futures_are_sent() {
    fn is_sent<T: Send + 'static>(value: T) -> T {
        value
    }
    fn is_shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    let conversation = with_script("[[answer]]\ntext = 'ok'\n", Add::default()).await;
    is_shared(&conversation);
    let turn: Turn = is_sent(conversation.chat("x"));
    let stream: TurnStream = is_sent(turn.stream());
    is_sent(stream.reply()).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let conversation = conversation.clone();
        tasks.spawn(async move {
            conversation.add(format!("note {number}")).await?;
            conversation.remember("a fact").await?;
            let reply: Reply = conversation.chat(format!("question {number}")).await?;
            conversation.window().await?;
            conversation.report().await?;
            conversation.quality().await?;
            conversation.ground_query("fact").await?;
            Ok::<_, Error>(reply.text)
        });
    }
    for outcome in tasks.join_all().await {
        assert_eq!(outcome.unwrap(), "ok");
    }
    assert_eq!(conversation.messages().await.unwrap().len(), 18);
    conversation.close().await;
}
