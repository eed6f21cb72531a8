//! The library's conversations under bad treatment: several handles, futures that are dropped, and
//! tools and providers that panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture::provider::Answer;
use contexture::provider::chat::{AnswerStream, ChatProvider, Request, Stop, StreamEvent};
use contexture::summary::{Summarizer, SummaryError, SummarySource};
use contexture::{
    Builder, Conversation, Error, Item, Kind, Message, Outcome, OutputSchema, Provider, Refusal,
    Role, Server, ToolChoice, TurnConfig,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::endpoint::{Answer as Answering, Endpoint};
use crate::support::Home;

const OK: &str = "[[answer]]\ntext = 'ok'\n";
const CALLING: &str = "[[answer]]\ncalls = [{ name = 'work', arguments = '{}' }]\n\
                       [[answer]]\ntext = 'done'\n";

fn builder(name: &str, script: &str) -> Builder {
    Conversation::builder(name).provider(Provider::scripted(script))
}

async fn open(script: &str) -> Conversation {
    builder("a", script).open().await.unwrap()
}

/// A conversation whose tool does this.
async fn with_tool<F>(script: &str, work: fn(Conversation) -> F) -> Conversation
where
    F: Future<Output = Result<String, Error>> + Send + 'static,
{
    let call = move |_: Value, context: contexture::ToolContext| {
        assert!(!context.call_id().is_empty());
        work(context.conversation().clone())
    };
    let builder = builder("a", script).function("work", "Works.", json!({"type": "object"}), call);
    builder.open().await.unwrap()
}

async fn words(conversation: &Conversation) -> Vec<String> {
    let messages = conversation.messages().await.unwrap();
    messages.into_iter().map(|message| message.content).collect()
}

#[tokio::test]
async fn handles_of_a_conversation_take_turns_one_after_another() {
    let one = open(OK).await;
    let two = builder("a", OK).beside(&one).open().await.unwrap();
    let mut turns = tokio::task::JoinSet::new();
    for number in 0..300 {
        let handle = if number % 2 == 0 { &one } else { &two }.clone();
        turns.spawn(async move { handle.chat(format!("question {number}")).await });
    }
    for turn in turns.join_all().await {
        assert_eq!(turn.unwrap().text, "ok");
    }
    let messages = two.numbered_messages().await.unwrap();
    assert_eq!(messages.len(), 600);
    for pair in messages.chunks(2) {
        assert_eq!((pair[0].1.role, pair[1].1.role), (Role::User, Role::Assistant));
    }
}

#[tokio::test]
async fn a_second_handle_has_the_settings_of_the_first() {
    let one = builder("a", OK).max_tokens(2_000).open().await.unwrap();
    let other = builder("a", OK).max_tokens(3_000).beside(&one).open().await.err().unwrap();
    assert!(matches!(&other, Error::AlreadyOpen(name) if name == "a"), "{other}");
    // The settings do not depend on the order in which they are given.
    let config = TurnConfig { max_tokens: Some(9_000), ..TurnConfig::default() };
    for handle in [
        builder("a", OK).max_tokens(2_000).config(config),
        builder("a", OK).config(config).max_tokens(2_000),
    ] {
        handle.beside(&one).open().await.unwrap();
    }
    let two = builder("b", OK).beside(&one).open().await.unwrap();
    drop(one);
    builder("a", OK).max_tokens(3_000).beside(&two).open().await.unwrap();
}

#[tokio::test]
async fn a_tool_that_asks_for_a_turn_of_its_conversation_is_refused() {
    let conversation = with_tool(CALLING, |conversation| async move {
        let fork = conversation.fork("fork", None).await?;
        let busy = [conversation.chat("now").await, fork.chat("then").await];
        let is_busy = |name: &str, turn: &Result<_, Error>| {
            matches!(turn, Err(Error::Busy(of)) if of == name)
        };
        Ok(format!("{} {}", is_busy("a", &busy[0]), is_busy("fork", &busy[1])))
    })
    .await;
    let reply = conversation.chat("go").await.unwrap();
    assert_eq!(reply.calls[0].text, "true false");
}

#[tokio::test]
async fn values_out_of_range_are_refused() {
    let error = async |builder: Builder| builder.open().await.err().unwrap();
    let provider = || Provider::scripted(OK);
    for wrong in [
        builder("a", OK).max_tokens(1),
        builder("a", OK).max_items(0),
        builder("a", OK).max_items(1_001),
        Conversation::builder("a").provider(provider().max_tokens(0)),
        Conversation::builder("a").provider(provider().price(-1.0, 1.0)),
        Conversation::builder("a").provider(provider().price(1.0, f64::NAN)),
    ] {
        let wrong = error(wrong).await;
        assert!(matches!(wrong, Error::Setting(_)), "{wrong}");
    }
    let conversation = open(OK).await;
    for turn in [
        conversation.chat("go").max_tokens(3),
        conversation.chat("go").coherence(1.1),
        conversation.chat("go").coherence(f64::NAN),
        conversation.chat("go").temperature(-0.1),
        conversation.chat("go").max_rounds(1_001),
    ] {
        let wrong = turn.await.unwrap_err();
        assert!(matches!(wrong, Error::Setting(_)), "{wrong}");
    }
    assert!(matches!(conversation.window().max_tokens(3).await, Err(Error::Setting(_))));
    for (start, end) in [(0, 1), (3, 2)] {
        let wrong = conversation.add(Item::new("x").region("/x.rs", start..=end)).await;
        assert!(matches!(wrong, Err(Error::File(_))));
    }
    assert!(conversation.messages().await.unwrap().is_empty());
    // The kind of an item does not depend on the order, either.
    let kind = |item: Item| item.kind(Kind::Error);
    conversation.add(kind(Item::new("x").region("/x.rs", 1..=1))).await.unwrap();
    conversation.add(kind(Item::new("y")).region("/x.rs", 2..=2)).await.unwrap();
    let items = conversation.items().await.unwrap();
    assert!(items.iter().all(|item| item.kind == Kind::Error));
}

#[tokio::test]
async fn the_last_question_is_asked_again() {
    let script = "[[answer]]\ntext = 'one'\n[[answer]]\ntext = 'two'\n\
                  [[answer]]\nerror = 'bad-request'\n[[answer]]\ntext = 'three'\n";
    let conversation = open(script).await;
    let nothing = conversation.retry().await.unwrap_err();
    assert!(matches!(nothing, Error::Refused { why: Refusal::NothingToRetry, .. }), "{nothing}");
    conversation.chat("first").await.unwrap();
    assert_eq!(conversation.retry().await.unwrap().text, "two");
    assert_eq!(words(&conversation).await, ["first", "two"]);
    conversation.chat("second").await.unwrap_err();
    assert_eq!(conversation.retry().await.unwrap().text, "three");
    assert_eq!(words(&conversation).await, ["first", "two", "second", "three"]);
}

#[tokio::test]
async fn messages_are_removed_with_what_belongs_to_them() {
    let conversation = with_tool(CALLING, |_| async { Ok("worked".to_owned()) }).await;
    conversation.chat("go").await.unwrap();
    assert_eq!(words(&conversation).await, ["go", "", "worked", "done"]);
    assert_eq!(conversation.remove_message(3).await.unwrap(), [2, 3]);
    assert_eq!(words(&conversation).await, ["go", "done"]);
    let gone = conversation.remove_message(3).await.unwrap_err();
    assert!(matches!(gone, Error::Refused { why: Refusal::NoSuchMessage, .. }), "{gone}");
    conversation.undo_view().await.unwrap();
    assert_eq!(words(&conversation).await.len(), 4);
}

#[tokio::test]
async fn conversations_are_forked_listed_and_deleted() {
    let one = open(OK).await;
    one.chat("first").await.unwrap();
    let two = one.fork("b", None).await.unwrap();
    assert_eq!((two.name(), two.chat("second").await.unwrap().text.as_str()), ("b", "ok"));
    assert_eq!((words(&one).await.len(), words(&two).await.len()), (2, 4));
    let taken = one.fork("b", None).await.unwrap_err();
    assert!(matches!(taken, Error::Refused { why: Refusal::NameTaken, .. }), "{taken}");
    let names = async || {
        let known = one.conversations().await.unwrap();
        known.into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    let mut all = names().await;
    all.sort();
    assert_eq!(all, ["a", "b"]);
    one.delete("b").await.unwrap();
    assert_eq!(names().await, ["a"]);
    let gone = two.chat("third").await.unwrap_err();
    assert!(matches!(gone, Error::Refused { why: Refusal::NoSuchConversation, .. }), "{gone}");
}

#[tokio::test]
async fn a_cancelled_turn_tells_what_there_was_of_it() {
    let conversation = open("[[answer]]\ntext = 'So far'\nhang = true\n").await;
    let mut stream = conversation.chat("go").stream();
    assert!(stream.next().await.is_some());
    let partial = stream.cancel().await.unwrap();
    assert_eq!((&*partial.text, partial.reply.is_none()), ("So far", true));
    assert_eq!(words(&conversation).await, ["go", "So far"]);
    let conversation = open(OK).await;
    let mut stream = conversation.chat("go").stream();
    while stream.next().await.is_some() {}
    assert_eq!(stream.cancel().await.unwrap().reply.unwrap().text, "ok");
}

#[tokio::test]
async fn the_limit_of_a_view_is_the_smaller_of_budget_and_model() {
    let open = async |name, max_tokens, model| {
        let builder = Conversation::builder(name).model(model).max_tokens(max_tokens);
        builder.open().await.unwrap().stats().await.unwrap().limit
    };
    assert_eq!(open("a", 2_000, "gpt-4o").await, 2_000);
    assert_eq!(open("b", 1_000_000, "gpt-4o").await, 128_000);
}

/// A provider that panics where it is told to.
#[derive(Clone)]
struct Panicking {
    at: &'static str,
    asked: Arc<AtomicUsize>,
}

impl ChatProvider for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn model(&self) -> &str {
        "m"
    }

    fn with_model(&self, _: &str) -> Arc<dyn ChatProvider> {
        Arc::new(self.clone())
    }

    fn chat<'a>(&'a self, request: &'a Request) -> Answer<'a, Box<dyn AnswerStream>> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(asked > 0 || self.at != "chat", "a defect of the provider");
        assert!(asked > 0 || request.choice == ToolChoice::Auto);
        let at = if asked == 0 { self.at } else { "" };
        Box::pin(async move {
            assert!(at != "answer", "a defect of the provider");
            Ok(Box::new(Pieces { at, said: 0 }) as Box<dyn AnswerStream>)
        })
    }
}

struct Pieces {
    at: &'static str,
    said: usize,
}

impl AnswerStream for Pieces {
    fn next(&mut self) -> Answer<'_, Option<StreamEvent>> {
        self.said += 1;
        assert!(self.said < 2 || self.at != "next", "a defect of the provider");
        let piece = match self.said {
            1 => Some(StreamEvent::Text("ok".to_owned())),
            2 => Some(StreamEvent::Stopped(Stop::Finished)),
            _ => None,
        };
        Box::pin(std::future::ready(Ok(piece)))
    }
}

#[tokio::test]
async fn a_provider_that_panics_only_fails_its_turn() {
    for at in ["chat", "answer", "next"] {
        let provider = Panicking { at, asked: Arc::default() };
        let builder = Conversation::builder("a").provider(Provider::custom(provider));
        let conversation = builder.open().await.unwrap();
        let failed = conversation.chat("go").await.unwrap_err();
        assert!(matches!(failed, Error::Internal(_)), "{at}: {failed}");
        assert_eq!(conversation.retry().await.unwrap().text, "ok", "{at}");
        assert_eq!(words(&conversation).await, ["go", "ok"], "{at}");
    }
}

/// Arguments whose reading panics.
struct Unreadable;

impl<'de> Deserialize<'de> for Unreadable {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("a defect of the tool")
    }
}

#[tokio::test]
async fn a_tool_that_panics_only_fails_its_call() {
    let ended = |text: String| async { Ok::<_, Error>(text) };
    let defect = || -> String { panic!("a defect of the tool") };
    let schema = || json!({"type": "object"});
    let tool = |builder: Builder, at| match at {
        "arguments" => builder
            .function("work", "Works.", schema(), move |_: Unreadable, _| ended(String::new())),
        "call" => builder.function("work", "Works.", schema(), move |_: Value, _| ended(defect())),
        _ => builder.function("work", "Works.", schema(), move |_: Value, _| async move {
            tokio::task::yield_now().await;
            ended(defect()).await
        }),
    };
    for at in ["arguments", "call", "await"] {
        let conversation = tool(builder("a", CALLING), at).open().await.unwrap();
        for _ in 0..2 {
            let reply = conversation.chat("go").await.unwrap();
            assert_eq!((&*reply.text, reply.calls[0].outcome), ("done", Outcome::Failed), "{at}");
            assert!(reply.calls[0].text.contains("panic"), "{at}: {}", reply.calls[0].text);
        }
    }
}

/// A summarizer that panics.
struct Defective;

impl Summarizer for Defective {
    fn summarize(&self, _: &SummarySource<'_>) -> Result<String, SummaryError> {
        panic!("a defect of the summarizer")
    }
}

#[tokio::test]
async fn a_summarizer_that_panics_only_fails_its_call() {
    let conversation = builder("a", OK).summarizer(Defective).open().await.unwrap();
    let said = "We write the numbers one after another. ".repeat(40);
    for _ in 0..6 {
        conversation.chat(&*said).await.unwrap();
    }
    let failed = conversation.summarize(1).await.unwrap_err();
    assert!(matches!(failed, Error::Internal(_)), "{failed}");
    assert_eq!(conversation.chat("still there?").await.unwrap().text, "ok");
    assert_eq!(conversation.messages().await.unwrap().len(), 14);
}

#[tokio::test]
async fn a_folder_that_another_process_has_is_refused_until_it_is_free() {
    let home = Home::new();
    let mut server = home.stdio(&[]);
    // A server takes its folder before it answers the first call.
    server.ok("list-sessions", "nil");
    let open = || builder("a", OK).state_folder(home.state()).open();
    let refused = open().await.err().unwrap();
    let Error::FolderTaken { path, pid, .. } = &refused else { panic!("{refused}") };
    assert_eq!((path, *pid), (&home.state(), Some(server.process().pid())), "{refused}");
    server.end();
    assert_eq!(open().await.unwrap().chat("go").await.unwrap().text, "ok");
}

#[tokio::test]
async fn a_turn_that_is_dropped_anywhere_leaves_a_usable_conversation() {
    for steps in 0..80 {
        let conversation = with_tool(CALLING, |_| async {
            tokio::task::yield_now().await;
            Ok("worked".to_owned())
        })
        .await;
        let stream = conversation.chat("go").stream();
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        drop(stream);
        let reply = conversation.chat("again").await.unwrap();
        assert!(["done", ""].contains(&&*reply.text), "{steps}: {reply:?}");
        assert_eq!(words(&conversation).await.last().map(String::as_str), Some("done"));
    }
}

/// Polls a future at most `times` times, and drops it.
async fn polled(future: impl Future, times: usize) {
    let (mut future, mut left) = (Box::pin(future), times);
    let poll = |context: &mut std::task::Context<'_>| match left {
        0 => std::task::Poll::Ready(()),
        _ => {
            left -= 1;
            context.waker().wake_by_ref();
            future.as_mut().poll(context).map(drop)
        }
    };
    std::future::poll_fn(poll).await;
}

#[tokio::test]
async fn a_turn_whose_calls_are_dropped_leaves_a_usable_conversation() {
    for times in 0..40 {
        for call in ["next", "reply", "cancel", "chat"] {
            let conversation = with_tool(CALLING, |_| async {
                tokio::task::yield_now().await;
                Ok("worked".to_owned())
            })
            .await;
            let turn = conversation.chat("go");
            match call {
                "next" => {
                    let mut stream = turn.stream();
                    polled(stream.next(), times).await;
                    // Only the call was dropped, and not the turn.
                    assert_eq!(stream.reply().await.unwrap().text, "done", "{times}");
                }
                "reply" => polled(turn.stream().reply(), times).await,
                "cancel" => polled(turn.stream().cancel(), times).await,
                _ => polled(turn.into_future(), times).await,
            }
            let reply = conversation.chat("again").await.unwrap();
            assert!(["done", ""].contains(&&*reply.text), "{call}, {times}: {reply:?}");
            assert_eq!(words(&conversation).await.last().map(String::as_str), Some("done"));
        }
    }
}

#[tokio::test]
async fn other_calls_that_are_dropped_leave_a_usable_conversation() {
    let folder = tempfile::tempdir().unwrap();
    for times in 0..30 {
        polled(builder("a", OK).state_folder(folder.path()).open(), times).await;
    }
    let conversation = loop {
        match builder("a", OK).state_folder(folder.path()).open().await {
            Err(Error::FolderTaken { .. }) => tokio::task::yield_now().await,
            opened => break opened.unwrap(),
        }
    };
    for times in 0..30 {
        polled(conversation.process_turn("turn"), times).await;
        polled(conversation.add("item"), times).await;
        polled(conversation.remember("a fact"), times).await;
        polled(conversation.window().into_future(), times).await;
        polled(conversation.checkpoint("x"), times).await;
        polled(conversation.fork(format!("fork {times}"), None), times).await;
        polled(conversation.prune(Some(300)), times).await;
        polled(conversation.summarize(1), times).await;
        polled(conversation.rollback(None), times).await;
        polled(conversation.undo_view(), times).await;
        polled(conversation.retry().into_future(), times).await;
    }
    assert_eq!(conversation.chat("still there?").await.unwrap().text, "ok");
    polled(conversation.clone().close(), 1).await;
    conversation.close().await;
    let again = builder("a", OK).state_folder(folder.path()).open().await.unwrap();
    assert_eq!(again.chat("and now?").await.unwrap().text, "ok");
}

#[tokio::test]
async fn many_conversations_need_few_threads() {
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let before = threads();
    let mut all = Vec::new();
    for _ in 0..100 {
        let conversation = open(OK).await;
        conversation.say("hi").await.unwrap();
        all.push(conversation);
    }
    let after = threads();
    assert!(after < before + 20, "{before} threads, then {after}");
}

#[tokio::test]
async fn a_turn_says_which_tool_and_what_form_it_wants() {
    let script = "[[answer]]\necho = true\n";
    let conversation = with_tool(script, |_| async { Ok(String::new()) }).await;
    let form = OutputSchema::new("answer", json!({"type": "object"}));
    conversation.chat("go").tool_choice(ToolChoice::Any).output(form).await.unwrap();
    let unknown = conversation.chat("go").tool_choice(ToolChoice::Tool("play".into())).await;
    assert!(matches!(unknown, Err(Error::Tool { .. })));
    let mut none = conversation.chat("go").tool_choice(ToolChoice::None).stream();
    while none.next().await.is_some() {}
    assert!(none.reply().await.unwrap().text.contains("without-calls"));
    assert_eq!(conversation.messages().await.unwrap()[0], Message::user("go"));
}

#[tokio::test]
async fn a_server_is_asked_as_often_and_for_what_the_program_says() {
    let answering =
        || Endpoint::listing(|_, _| Answering::new(529, "{}").header("Retry-After", "0"));
    for (retries, asks_limit) in [(0, false), (2, false), (0, true)] {
        let server = answering();
        let model = Server::openai("m").url(&server.url).api_key("k").header("x-team", "blue");
        let model = model.retries(retries).asks_limit(asks_limit);
        let builder = Conversation::builder("a").provider(model);
        let failed = builder.open().await.unwrap().chat("go").await.unwrap_err();
        assert!(matches!(failed, Error::Provider(_)), "{failed}");
        let asked = server.asked();
        let posts = asked.iter().filter(|asked| asked.method == "POST").count();
        assert_eq!(posts, usize::try_from(retries).unwrap() + 1);
        assert_eq!(asked.len() > posts, asks_limit);
        assert!(asked.iter().all(|asked| asked.headers["x-team"] == "blue"));
    }
}
