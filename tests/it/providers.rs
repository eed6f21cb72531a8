//! Every kind of server of models against one suite, from a server on this machine that answers
//! as its public documentation says.

mod asked;
mod families;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use contexture_program::internals::provider::chat::{
    ChatMessage, ChatProvider, OnWait, OutputSchema, Request, Response, Stop, StreamEvent,
    ToolChoice, ToolDefinition, Usage,
};
use contexture_program::internals::provider::secret::KeySource;
use contexture_program::internals::provider::{
    ErrorKind, Family, HttpProvider, ProviderError, Serving, Times,
};
use contexture_program::internals::session::message::{Role, ToolCall};

use self::families::{FAMILIES, Kind};
use crate::endpoint::{Answer, Asked, Body, Endpoint};
use crate::strict;
use crate::support::*;
use crate::tiers::rounds;

const TIMES: Times = Times {
    begin: Duration::from_secs(20),
    silence: Duration::from_secs(20),
    end: Duration::from_secs(1),
};

/// The address of the server, as users of this family write it.
fn base<'s>(kind: &Kind, server: &'s Endpoint) -> &'s str {
    let has_version = matches!(kind.family, Family::Openai | Family::Responses);
    if has_version { &server.url } else { &server.root }
}

fn provider(kind: &Kind, server: &Endpoint) -> HttpProvider {
    let base = base(kind, server);
    let key = KeySource::Command("echo k-123".to_owned());
    HttpProvider::new(kind.family, "here", base, "test-model", key).waiting(TIMES)
}

fn request() -> Request {
    let call = ToolCall {
        id: "call_1".to_owned(),
        name: "read_file".to_owned(),
        arguments: "{\"path\":\"a.rs\"}".to_owned(),
    };
    let calls = ChatMessage { tool_calls: vec![call], ..ChatMessage::new(Role::Assistant, "") };
    let result = ChatMessage {
        tool_call_id: Some("call_1".to_owned()),
        ..ChatMessage::new(Role::Tool, "fn a()")
    };
    Request {
        messages: vec![
            ChatMessage::new(Role::System, "Be brief."),
            ChatMessage::new(Role::User, "What is in a.rs?"),
            calls,
            result,
            ChatMessage::new(Role::User, "Go on."),
        ],
        stable: 2,
        tools: vec![ToolDefinition {
            name: "read_file".to_owned(),
            description: "Reads a file".to_owned(),
            schema: serde_json::json!({"type": "object"}),
        }],
        max_tokens: Some(100),
        temperature: Some(0.5),
        ..Request::default()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// What came, and the error with which it ended.
async fn asked(provider: &dyn ChatProvider) -> (Response, Option<ProviderError>) {
    let mut whole = Response::default();
    let failure = async {
        let request = request();
        let mut reply = provider.chat(&request).await?;
        whole.read(&mut *reply).await?;
        assert_eq!(reply.next().await.unwrap(), None, "what has ended stays so");
        Ok(())
    };
    let failure = failure.await.err();
    (whole, failure)
}

fn ask(
    kind: &Kind,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) -> (Response, Option<ProviderError>) {
    let server = Endpoint::new(move |_, _| answer());
    runtime().block_on(asked(&provider(kind, &server)))
}

/// Ids that a server does not give are made up anew each time.
fn without_made_up_ids(mut whole: Response) -> Response {
    let made_up = |call: &&mut ToolCall| call.id.starts_with("call-");
    whole.calls.iter_mut().filter(made_up).for_each(|call| call.id = "made-up".to_owned());
    whole
}

fn expected(kind: &Kind) -> Response {
    let id = if kind.gives_ids { "call_2" } else { "made-up" };
    Response {
        text: "Grüße 😀, done.".to_owned(),
        reasoning: if kind.reasons { "Hmm, é.".to_owned() } else { String::new() },
        calls: vec![ToolCall {
            id: id.to_owned(),
            name: "read_file".to_owned(),
            arguments: "{\"path\":\"ä.rs\"}".to_owned(),
        }],
        opaque: Some(serde_json::from_str(kind.opaque).unwrap()),
        usage: Usage { input: Some(25), output: Some(15), ..kind.usage },
        stop: Some(Stop::Calls),
    }
}

#[test]
fn answers_are_whole_wherever_the_bytes_are_split() {
    for kind in FAMILIES {
        for stream in [kind.stream.to_owned(), kind.stream.replace('\n', "\r\n")] {
            let bytes = stream.into_bytes();
            let server = {
                let bytes = bytes.clone();
                // The first is cut at every byte, the others in two.
                Endpoint::new(move |_, before| {
                    let chunks = match before * rounds(7, 1) {
                        0 => bytes.chunks(1).map(<[u8]>::to_vec).collect(),
                        cut => vec![bytes[..cut].to_vec(), bytes[cut..].to_vec()],
                    };
                    Answer::streaming(Body::Chunks(chunks))
                })
            };
            let provider = provider(kind, &server);
            runtime().block_on(async {
                for cut in (0..bytes.len()).step_by(rounds(7, 1)) {
                    let (whole, failure) = asked(&provider).await;
                    assert_eq!(failure, None, "{:?} cut at {cut}", kind.family);
                    let mut whole = without_made_up_ids(whole);
                    // Who sent them is kept with them, and so are the ids that the server gave.
                    let opaque = whole.opaque.as_mut().and_then(Json::as_object_mut).unwrap();
                    assert!(opaque.remove("from").is_some_and(|from| from.is_string()));
                    opaque.remove("ids");
                    assert_eq!(whole, expected(kind), "{:?} cut at {cut}", kind.family);
                }
            });
        }
    }
}

#[test]
fn requests_are_what_the_documentation_says() {
    for kind in FAMILIES {
        let server =
            Endpoint::new(|_, _| Answer::streaming(Body::Chunks(vec![kind.stream.into()])));
        let provider = provider(kind, &server);
        runtime().block_on(asked(&provider));
        let heard = server.asked().remove(0);
        assert_eq!(heard.path, kind.path);
        assert_eq!(heard.headers.get(kind.key.0).map(String::as_str), Some(kind.key.1));
        let expected: Json = serde_json::from_str(kind.body).unwrap();
        assert_eq!(heard.body, expected, "{:?}", kind.family);
        let payload: Json = serde_json::from_str(&provider.payload(&request())).unwrap();
        assert_eq!(payload, expected, "what is inspected is what is sent");
    }
}

/// The answer as it is sent back to its server with a result of its call: with the opaque data that
/// came, or with these.
fn sent_back(kind: &Kind, other: Option<Option<Json>>) -> Json {
    let server = Endpoint::new(|_, _| Answer::streaming(Body::Chunks(vec![kind.stream.into()])));
    let provider = provider(kind, &server);
    let Response { text, calls, opaque, .. } = runtime().block_on(asked(&provider)).0;
    let opaque = other.unwrap_or(opaque);
    let result = ChatMessage {
        tool_call_id: Some(calls[0].id.clone()),
        ..ChatMessage::new(Role::Tool, "fn")
    };
    let answer =
        ChatMessage { tool_calls: calls, opaque, ..ChatMessage::new(Role::Assistant, &text) };
    let messages = vec![ChatMessage::new(Role::User, "What is in ä.rs?"), answer, result];
    let payload = provider.payload(&Request { messages, ..Request::default() });
    let payload: Json = serde_json::from_str(&payload).unwrap();
    // Between the question and the result.
    if let Some(items) = payload["input"].as_array() {
        return items[1..items.len() - 1].into();
    }
    payload["messages"].as_array().or(payload["contents"].as_array()).unwrap()[1].clone()
}

#[test]
fn signed_thoughts_go_back_with_the_results_of_the_calls() {
    for kind in FAMILIES {
        let again: Json = serde_json::from_str(kind.again).unwrap();
        assert_eq!(sent_back(kind, None), again, "{:?}", kind.family);
        // What another kind of server gave is not for this one.
        let foreign = serde_json::json!({"another": [{"text": "x"}]});
        let without = sent_back(kind, Some(None));
        assert_ne!(without, again, "{:?}", kind.family);
        assert_eq!(sent_back(kind, Some(Some(foreign))), without, "{:?}", kind.family);
    }
}

#[track_caller]
fn check_refused(kind: &Kind, status: u16, body: &str, expected: ErrorKind) {
    let text = body.to_owned();
    let (whole, failure) =
        ask(kind, move || Answer::new(status, text.clone()).header("Retry-After", "3600"));
    let failure = failure.unwrap();
    assert_eq!((failure.kind, whole), (expected, Response::default()), "{failure}");
    let said = failure.to_string();
    assert!(said.starts_with("here with the model \"test-model\": "), "{said}");
    assert!(!said.contains("k-123"), "{said}");
}

#[test]
fn refusals_are_told_apart() {
    for kind in FAMILIES {
        let error = |message: &str| kind.refusal.replace("MESSAGE", message);
        check_refused(kind, 401, &error("no such key k-123"), ErrorKind::Authentication);
        check_refused(kind, 403, &error("not for you"), ErrorKind::Authentication);
        check_refused(kind, 404, &error("no such model"), ErrorKind::BadRequest);
        check_refused(kind, 400, &error("prompt is too long: 9 > 8"), ErrorKind::ContextTooLong);
        check_refused(kind, 400, &error("maximum context length is 8"), ErrorKind::ContextTooLong);
        check_refused(kind, 429, &error("slow down"), ErrorKind::RateLimited);
        check_refused(kind, 500, &error("oops"), ErrorKind::Unavailable);
        check_refused(kind, 529, "", ErrorKind::Unavailable);
        check_refused(kind, 302, "", ErrorKind::BadRequest);
    }
}

#[test]
fn a_server_that_is_busy_is_asked_again_but_not_for_ever() {
    let kind = &FAMILIES[0];
    let server = Endpoint::new(|_, before| match before {
        0 => Answer::new(429, "").header("Retry-After", "0"),
        1 => Answer::new(503, ""),
        _ => Answer::streaming(Body::Chunks(vec![kind.stream.into()])),
    });
    let (_, failure) = runtime().block_on(asked(&provider(kind, &server)));
    assert_eq!((failure, server.asked().len()), (None, 3));
    let server = Endpoint::new(|_, _| Answer::new(500, "").header("Retry-After", "0"));
    let (_, failure) = runtime().block_on(asked(&provider(kind, &server)));
    assert_eq!((failure.unwrap().kind, server.asked().len()), (ErrorKind::Unavailable, 3));
}

#[test]
fn a_server_that_loads_a_model_is_waited_for_as_long_as_there_is_time() {
    for kind in FAMILIES {
        let loading = || Answer::new(503, kind.refusal.replace("MESSAGE", "Loading model"));
        let server = Endpoint::new(move |_, before| match before {
            // More often than a failure that may pass is tried.
            0..=3 => loading().header("Retry-After", "0"),
            _ => Answer::streaming(Body::Chunks(vec![kind.stream.into()])),
        });
        let (_, failure) = runtime().block_on(asked(&provider(kind, &server)));
        assert_eq!((failure, server.asked().len()), (None, 5), "{:?}", kind.family);
    }
    let kind = &FAMILIES[0];
    // The second pause is longer than there is time.
    let server = Endpoint::new(|_, before| {
        Answer::new(529, "").header("Retry-After", if before == 0 { "0" } else { "30" })
    });
    let (_, failure) = runtime().block_on(asked(&provider(kind, &server)));
    assert_eq!((failure.unwrap().kind, server.asked().len()), (ErrorKind::Unavailable, 2));
}

#[test]
fn every_kind_of_server_is_tried() {
    for family in Family::ALL {
        let is_tried = FAMILIES.iter().any(|kind| kind.family == *family);
        assert!(is_tried, "FAMILIES in tests/it/providers/families.rs has no {family}");
    }
}

#[test]
fn a_model_that_may_call_nothing_is_told_so_and_still_knows_the_tools() {
    for kind in FAMILIES {
        let server =
            Endpoint::new(|_, _| Answer::streaming(Body::Chunks(vec![kind.stream.into()])));
        let request = Request { choice: ToolChoice::None, ..request() };
        let body: Json = serde_json::from_str(&provider(kind, &server).payload(&request)).unwrap();
        let (choice, none) = match kind.family {
            Family::Openai | Family::Responses => (&body["tool_choice"], serde_json::json!("none")),
            Family::Anthropic => (&body["tool_choice"], serde_json::json!({"type": "none"})),
            Family::Gemini => {
                (&body["toolConfig"]["functionCallingConfig"]["mode"], serde_json::json!("NONE"))
            }
            Family::Ollama => (&body["tools"], Json::Null),
        };
        assert_eq!(*choice, none, "{body}");
        assert_eq!(body["tools"].is_array(), kind.family != Family::Ollama);
    }
}

#[test]
fn each_kind_of_server_is_told_the_tool_and_the_form_that_are_wanted() {
    let form = serde_json::json!({"type": "object"});
    for kind in FAMILIES {
        let server = Endpoint::new(|_, _| Answer::new(500, ""));
        let provider = provider(kind, &server);
        let asked = |choice: ToolChoice| -> Json {
            let output = Some(OutputSchema::new("answer", form.clone()));
            let request = Request { choice, output, ..request() };
            serde_json::from_str(&provider.payload(&request)).unwrap()
        };
        let any = asked(ToolChoice::Any);
        let one = asked(ToolChoice::Tool("read_file".to_owned()));
        match kind.family {
            Family::Openai => {
                assert_eq!(any["tool_choice"], "required");
                assert_eq!(one["tool_choice"]["function"]["name"], "read_file");
                assert_eq!(one["response_format"]["json_schema"]["schema"], form);
            }
            Family::Responses => {
                assert_eq!(any["tool_choice"], "required");
                assert_eq!(one["tool_choice"]["name"], "read_file");
                assert_eq!(one["text"]["format"]["schema"], form);
            }
            Family::Anthropic => {
                assert_eq!(any["tool_choice"]["type"], "any");
                assert_eq!(one["tool_choice"]["name"], "read_file");
                assert_eq!(one["output_config"]["format"]["schema"], form);
            }
            Family::Gemini => {
                let config = |body: &Json| body["toolConfig"]["functionCallingConfig"].clone();
                assert_eq!(config(&any)["mode"], "ANY");
                assert_eq!(config(&one)["allowedFunctionNames"][0], "read_file");
                assert_eq!(one["generationConfig"]["responseJsonSchema"], form);
            }
            Family::Ollama => {
                assert_eq!(one["tools"][0]["function"]["name"], "read_file");
                assert_eq!(one["format"], form);
            }
        }
    }
}

#[test]
fn an_account_without_money_is_not_asked_again() {
    for kind in FAMILIES {
        let server = Endpoint::new(|_, _| {
            let said = kind.refusal.replace("MESSAGE", "insufficient_quota: see your plan");
            Answer::new(429, said).header("Retry-After", "0")
        });
        let (_, failure) = runtime().block_on(asked(&provider(kind, &server)));
        let failure = failure.unwrap();
        let told = (failure.kind, server.asked().len());
        assert_eq!(told, (ErrorKind::QuotaExhausted, 1), "{failure}");
    }
}

#[test]
fn a_connection_that_the_server_closed_between_turns_is_opened_again() {
    for kind in FAMILIES {
        let server = Endpoint::new(move |_, before| match before {
            // The second request comes on the connection of the first, and is not answered.
            1 => Answer::streaming(Body::Closed),
            _ => Answer::streaming(Body::Chunks(vec![kind.stream.into()])),
        });
        let provider = provider(kind, &server);
        let waits = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        runtime().block_on(async {
            assert_eq!(asked(&provider).await.1, None);
            let heard = waits.clone();
            let on_wait = OnWait::new(move |_| {
                heard.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            });
            let request = Request { on_wait, ..request() };
            let mut whole = Response::default();
            let mut reply = provider.chat(&request).await.unwrap();
            whole.read(&mut *reply).await.unwrap();
            assert!(whole.stop.is_some());
        });
        assert_eq!(server.asked().len(), 3, "{:?}", kind.family);
        assert_eq!(waits.load(std::sync::atomic::Ordering::SeqCst), 0, "nobody is troubled");
    }
}

#[test]
fn the_figures_of_a_window_that_is_too_long_are_read_wherever_they_are_said() {
    for kind in FAMILIES {
        let error = |message: &str| kind.refusal.replace("MESSAGE", message);
        let said = error("prompt is too long: 209353 tokens > 199999 maximum");
        let (_, failure) = ask(kind, move || Answer::new(400, said.clone()));
        let overflow = failure.unwrap().overflow.unwrap();
        assert_eq!((overflow.limit, overflow.input), (Some(199_999), Some(209_353)));
    }
    let kind = &FAMILIES[0];
    // As LM Studio does: accepted, and refused in the stream.
    let streamed = "data: {\"error\": {\"message\": \"Trying to keep the first 9000 tokens when \
                    context the overflows. However, the model is loaded with context length of only \
                    4096 tokens, which is not enough.\"}}\n\n";
    let (_, failure) =
        ask(kind, move || Answer::streaming(Body::Chunks(vec![streamed.as_bytes().to_vec()])));
    let failure = failure.unwrap();
    assert_eq!(failure.kind, ErrorKind::ContextTooLong, "{failure}");
    assert_eq!(failure.overflow.unwrap().limit, Some(4096));
}

#[test]
fn a_pause_that_never_ends_is_not_waited_for() {
    let kind = &FAMILIES[0];
    for seconds in ["3600", "18446744073709551615"] {
        let (_, failure) = ask(kind, move || Answer::new(429, "").header("Retry-After", seconds));
        let failure = failure.unwrap();
        let wanted = Duration::from_secs(seconds.parse().unwrap());
        assert_eq!((failure.kind, failure.retry_after), (ErrorKind::RateLimited, Some(wanted)));
    }
}

#[test]
fn a_refusal_that_is_cut_tells_no_part_of_the_key() {
    let kind = &FAMILIES[0];
    // The words for people are cut after some, the body where no more of it is read.
    for filling in ["x".repeat(295), format!("x{}", " ".repeat((16 << 10) - 3))] {
        let body = format!("{filling}k-123 is wrong");
        let (_, failure) = ask(kind, move || Answer::new(400, body.clone()));
        let said = failure.unwrap().to_string();
        assert!(said.contains("answered 400: x") && !said.contains("k-"), "{said}");
    }
}

#[test]
fn a_server_that_sends_without_a_pause_holds_nobody_else_up() {
    let kind = &FAMILIES[0];
    let server = Endpoint::new(|_, before| match before {
        0 => Answer::streaming(Body::Provisional),
        _ => Answer::streaming(Body::Chunks(vec![kind.stream.into()])),
    });
    let (quick, request) = (Duration::from_secs(3), request());
    let provider = provider(kind, &server).waiting(Times { begin: quick, ..TIMES });
    runtime().block_on(async {
        let mut asking = std::pin::pin!(provider.chat(&request));
        let (begun, mut longest) = (Instant::now(), Duration::ZERO);
        let failure = loop {
            let before = Instant::now();
            tokio::select! {
                biased;
                answer = &mut asking => break answer.err().unwrap(),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
            longest = longest.max(before.elapsed());
        };
        assert_eq!(failure.kind, ErrorKind::Unavailable, "{failure}");
        assert!(begun.elapsed() < quick * 2, "it took {:?}", begun.elapsed());
        assert!(longest < Duration::from_secs(1), "others waited {longest:?}");
    });
    // Nor does a later call wait for what the server still sends for this one.
    assert_eq!(runtime().block_on(asked(&provider)).1, None);
}

#[test]
fn a_key_that_an_answer_repeats_is_hidden() {
    let said = |text: &str| {
        let delta = serde_json::json!({ "content": text });
        let event = serde_json::json!({ "choices": [{ "index": 0, "delta": delta }] });
        format!("data: {event}\n\n").into_bytes()
    };
    let server = Endpoint::new(move |_, _| {
        let last =
            "data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n";
        let pieces = [said("it is sk-0123456"), said("789abcdef, or sk-0"), last.into()];
        Answer::streaming(Body::Chunks(pieces.into()))
    });
    let key = KeySource::Command("echo sk-0123456789abcdef".to_owned());
    let provider = HttpProvider::new(Family::Openai, "here", &server.url, "test-model", key);
    let (whole, failure) = runtime().block_on(asked(&provider.waiting(TIMES)));
    assert_eq!((&*whole.text, failure), ("it is …, or sk-0", None));
}

#[test]
fn what_follows_the_reason_for_the_end_is_waited_for_as_long_as_it_comes() {
    let piece = |delta: &str, reason: &str| {
        let choice = format!("{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}");
        format!("data: {{\"choices\":[{choice}]}}\n\n").into_bytes()
    };
    let pieces = vec![
        [piece("{\"content\":\"one\"}", "null"), piece("{}", "\"stop\"")].concat(),
        piece("{\"content\":\", two\"}", "null"),
        piece("{\"content\":\", three\"}", "null"),
    ];
    let end = Duration::from_secs(3);
    let server =
        Endpoint::new(move |_, _| Answer::streaming(Body::Paced(pieces.clone(), end * 3 / 5)));
    let patient = provider(&FAMILIES[0], &server).waiting(Times { end, ..TIMES });
    let (whole, failure) = runtime().block_on(asked(&patient));
    assert_eq!((&*whole.text, failure), ("one, two, three", None));
}

#[test]
fn an_answer_in_endless_pieces_is_refused() {
    let event = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n";
    let (kind, events) = (&FAMILIES[0], event.repeat(100));
    let (_, failure) = ask(kind, move || Answer::streaming(Body::Endless(events.clone())));
    let failure = failure.unwrap();
    assert_eq!(failure.kind, ErrorKind::Malformed, "{failure}");
    assert!(failure.what.contains("more than 262144 pieces"), "{failure}");
    // The most that is read is not too many.
    let last = b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let most = [&event.repeat(262_143)[..], last].concat();
    let (_, failure) = ask(kind, move || Answer::streaming(Body::Chunks(vec![most.clone()])));
    assert_eq!(failure, None);
}

#[test]
fn what_came_before_a_failure_is_kept() {
    for kind in FAMILIES {
        let begun = kind.stream.as_bytes()[..kind.stream.find(kind.after_text).unwrap()].to_vec();
        let (cut, silent) = (begun.clone(), begun.clone());
        let check = |(whole, failure): (Response, Option<ProviderError>), expected, said: &str| {
            let failure = failure.unwrap();
            assert_eq!((&*whole.text, whole.stop), ("Grüße 😀, done.", None), "{failure}");
            assert_eq!(failure.kind, expected, "{:?}: {failure}", kind.family);
            assert!(failure.to_string().contains(said), "{failure}");
        };
        let closed = ask(kind, move || Answer::streaming(Body::Cut(cut.clone())));
        check(closed, ErrorKind::Unavailable, "the connection failed");
        let ended = begun.clone();
        let ended = ask(kind, move || Answer::streaming(Body::Chunks(vec![ended.clone()])));
        check(ended, ErrorKind::Unavailable, "broke off in the middle");
        let wrong = [&begun[..], kind.failure.as_bytes()].concat();
        let told = ask(kind, move || Answer::streaming(Body::Chunks(vec![wrong.clone()])));
        check(told, ErrorKind::Unavailable, "the answer broke off: overloaded");
        for garbage in ["data: {]\n\n{]\n", "data: 7\n\n7\n", "<html>\n"] {
            // In a stream of events, a line without a known field says nothing.
            let is_ignored = garbage.starts_with('<') && kind.family != Family::Ollama;
            let (expected, said) = match is_ignored {
                true => (ErrorKind::Unavailable, "broke off in the middle"),
                false => (ErrorKind::Malformed, "an"),
            };
            let wrong = [&begun[..], garbage.as_bytes()].concat();
            let garbage = ask(kind, move || Answer::streaming(Body::Chunks(vec![wrong.clone()])));
            check(garbage, expected, said);
        }
        let no_text = [&begun[..], b"data: \xff\xfe\n\n"].concat();
        let no_text = ask(kind, move || Answer::streaming(Body::Chunks(vec![no_text.clone()])));
        check(no_text, ErrorKind::Malformed, "not JSON");
        let server = Endpoint::new(move |_, _| Answer::streaming(Body::Silent(silent.clone())));
        let times = Times { silence: Duration::from_millis(50), ..TIMES };
        let impatient = provider(kind, &server).waiting(times);
        check(runtime().block_on(asked(&impatient)), ErrorKind::Unavailable, "nothing more came");
        until("the connection to be closed", || server.left() == 1);
    }
}

#[test]
fn servers_that_are_none_are_told() {
    for kind in FAMILIES {
        let check = |answer: fn() -> Answer, expected| {
            let (whole, failure) = ask(kind, answer);
            assert_eq!((whole, failure.unwrap().kind), (Response::default(), expected));
        };
        check(|| Answer::new(200, "<html>hello</html>"), ErrorKind::Malformed);
        check(|| Answer::new(200, ""), ErrorKind::Unavailable);
        let nobody =
            HttpProvider::new(kind.family, "here", "http://127.0.0.1:1", "m", KeySource::None);
        let (_, failure) = runtime().block_on(asked(&nobody));
        assert_eq!(failure.unwrap().kind, ErrorKind::Unavailable);
        let server = Endpoint::new(|_, _| Answer { after: TIMES.begin, ..Answer::new(200, "") });
        let times = Times { begin: Duration::from_millis(50), ..TIMES };
        let (_, failure) = runtime().block_on(asked(&provider(kind, &server).waiting(times)));
        assert!(failure.unwrap().to_string().contains("no answer came in time"));
    }
}

#[test]
fn a_server_that_falls_silent_after_a_refusal_is_told_with_it() {
    let kind = &FAMILIES[0];
    let asked_before = std::sync::atomic::AtomicBool::new(false);
    let server = Endpoint::new(move |_, _| match asked_before.swap(true, Ordering::Relaxed) {
        false => Answer::new(500, "no memory"),
        true => Answer { after: TIMES.begin, ..Answer::new(200, "") },
    });
    let times = Times { begin: Duration::from_secs(1), ..TIMES };
    let (_, failure) = runtime().block_on(asked(&provider(kind, &server).waiting(times)));
    let told = failure.unwrap().to_string();
    let expected = "it answered 500: no memory; when asked again, no answer came in time";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn dropping_an_answer_stops_it() {
    for kind in FAMILIES {
        let server = Endpoint::new(|_, _| Answer::streaming(Body::Endless(kind.piece.into())));
        let provider = provider(kind, &server);
        runtime().block_on(async {
            let request = request();
            let mut reply = provider.chat(&request).await.unwrap();
            while !matches!(reply.next().await.unwrap(), Some(StreamEvent::Text(_))) {}
            assert_eq!(server.left(), 0);
            drop(reply);
            // The runtime closes the connection.
            tokio::task::yield_now().await;
        });
        until("the server to see it", || server.left() == 1);
    }
}

#[test]
fn long_answers_come_whole_and_in_order() {
    for kind in FAMILIES {
        // Megabytes in pieces, and as many in one.
        let pieces = rounds(200, 1000);
        let piece = |text: &str| kind.piece.replace("\"x\"", &format!("\"{text}\"")).into_bytes();
        let padding = "x".repeat(10_000);
        let chunks: Vec<Vec<u8>> = (0..pieces).map(|n| piece(&format!("<{n}>{padding}"))).collect();
        let (whole, _) = ask(kind, move || Answer::streaming(Body::Chunks(chunks.clone())));
        let expected: String = (0..pieces).map(|n| format!("<{n}>{padding}")).collect();
        assert!(whole.text == expected, "{:?}: {}", kind.family, whole.text.len());
        let one = piece(&"x".repeat(pieces * 10_000));
        let (whole, _) = ask(kind, move || Answer::streaming(Body::Chunks(vec![one.clone()])));
        assert_eq!(whole.text.len(), pieces * 10_000);
    }
}

#[test]
fn a_hundred_answers_at_once_lose_nothing() {
    let kind = &FAMILIES[0];
    let pieces = (0..200).map(|n| kind.piece.replace("\"x\"", &format!("\"<{n}>\"")).into_bytes());
    let mut chunks: Vec<Vec<u8>> = pieces.collect();
    chunks.push(b"data: [DONE]\n\n".to_vec());
    let server = Endpoint::new(move |_, _| Answer::streaming(Body::Chunks(chunks.clone())));
    let provider = std::sync::Arc::new(provider(kind, &server));
    let expected: String = (0..200).map(|n| format!("<{n}>")).collect();
    runtime().block_on(async {
        let ask = |_| {
            let provider = std::sync::Arc::clone(&provider);
            tokio::spawn(async move { asked(&*provider).await })
        };
        for answer in (0..100).map(ask).collect::<Vec<_>>() {
            let (whole, failure) = answer.await.unwrap();
            assert_eq!((&whole.text, failure), (&expected, None));
        }
    });
}

#[test]
fn the_models_that_there_are_can_be_listed() {
    for kind in FAMILIES {
        let (path, list) = kind.models;
        let server = Endpoint::listing(move |_, before| match before {
            0 => Answer::new(503, "").header("Retry-After", "0"),
            1 => Answer::new(200, list),
            2 => Answer::new(200, "{\"models\": 1, \"data\": [{}]}"),
            _ => Answer::new(401, ""),
        });
        let provider = provider(kind, &server);
        runtime().block_on(async {
            let listed = provider.models().await.unwrap();
            let names: Vec<&str> = listed.iter().map(|model| &*model.name).collect();
            assert_eq!(names, ["m-1", "m-2"], "{:?}", kind.family);
            assert_eq!(provider.models().await.unwrap_err().kind, ErrorKind::Malformed);
            assert_eq!(provider.models().await.unwrap_err().kind, ErrorKind::Authentication);
        });
        assert_eq!(server.asked()[1].path, path);
    }
}

#[test]
fn a_list_of_more_models_than_there_are_is_refused() {
    for kind in FAMILIES {
        let (_, list) = kind.models;
        let server = Endpoint::listing(move |_, _| {
            let mut list: Json = serde_json::from_str(list).unwrap();
            for entries in list.as_object_mut().unwrap().values_mut().filter_map(Json::as_array_mut)
            {
                *entries = vec![entries[0].clone(); 10_001];
            }
            Answer::new(200, list.to_string())
        });
        let error = runtime().block_on(provider(kind, &server).models()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed);
        assert_eq!(error.what, "the list has more than 10000 models", "{:?}", kind.family);
    }
}

#[test]
fn connections_are_used_again() {
    for kind in FAMILIES {
        let connections = || {
            let server =
                Endpoint::new(|_, _| Answer::streaming(Body::Chunks(vec![kind.stream.into()])));
            let provider = provider(kind, &server);
            runtime().block_on(async {
                for _ in 0..20 {
                    assert_eq!(asked(&provider).await.1, None);
                }
            });
            server.connections()
        };
        // On a busy machine, a call can come before the connection of the last one is free again.
        let rounds: Vec<usize> = (0..5).map(|_| connections()).take_while(|it| *it > 1).collect();
        assert!(rounds.len() < 5, "{:?}: {rounds:?}", kind.family);
    }
}

#[test]
fn another_model_of_a_provider_shares_its_key_and_its_connection() {
    for kind in FAMILIES {
        let server =
            Endpoint::new(|_, _| Answer::streaming(Body::Chunks(vec![kind.stream.into()])));
        let home = Home::new();
        let asked_for = home.path("asked-for");
        let command = format!("echo k-123; echo once >> {}", asked_for.display());
        let key = KeySource::Command(command);
        let base = base(kind, &server);
        let provider = HttpProvider::new(kind.family, "here", base, "test-model", key);
        let other = provider.with_model("other-model");
        assert_eq!((other.name(), other.model()), ("here", "other-model"));
        runtime().block_on(async {
            assert_eq!(asked(&provider).await.1, None);
            assert_eq!(asked(&*other).await.1, None);
        });
        let heard = server.asked().remove(1);
        let named = [heard.path.as_str(), heard.body["model"].as_str().unwrap_or_default()];
        assert!(named.iter().any(|said| said.contains("other-model")), "{heard:?}");
        assert_eq!(heard.headers.get(kind.key.0).map(String::as_str), Some(kind.key.1));
        assert_eq!(std::fs::read_to_string(&asked_for).unwrap(), "once\n");
    }
}

#[test]
fn a_model_that_takes_no_temperature_is_asked_without_one() {
    for kind in FAMILIES {
        let refusal = kind.refusal.replace("MESSAGE", "`temperature` is not supported");
        let server = Endpoint::new(move |_, before| match before {
            0 => Answer::new(400, refusal.clone()),
            _ => Answer::streaming(Body::Chunks(vec![kind.stream.into()])),
        });
        let provider = provider(kind, &server);
        runtime().block_on(async {
            assert_eq!(asked(&provider).await.1, None);
            assert_eq!(asked(&provider).await.1, None);
        });
        let with = |asked: &Asked| asked.body.to_string().contains("temperature");
        let heard: Vec<bool> = server.asked().iter().map(with).collect();
        assert_eq!(heard, [true, false, false], "{:?}", kind.family);
        assert!(!provider.payload(&request()).contains("temperature"));
    }
}

#[test]
fn ollama_is_told_for_how_many_tokens_to_make_room() {
    let kind = FAMILIES.iter().find(|kind| kind.family == Family::Ollama).unwrap();
    let server = Endpoint::new(|_, _| Answer::new(500, ""));
    let serving = Serving { context: Some(16_384), ..Serving::default() };
    let provider = provider(kind, &server).serving(serving);
    let payload: Json = serde_json::from_str(&provider.payload(&request())).unwrap();
    assert_eq!(payload["options"]["num_ctx"], 16_384);
}

/// Whatever may be in a log, in any order.
fn any_history(random: &mut Random) -> Vec<ChatMessage> {
    let texts = ["", " \n", "a text", "{\"a\": 1}", "λ 😀"];
    let ids = ["", "a", "call_1", "abcDEF123", "toolu_01", "a b/ä"];
    let arguments = ["", "{}", "{\"a\":", "[1]", "null", "words"];
    let said = |random: &mut Random| {
        let text = texts[random.below(texts.len())];
        let role = [Role::System, Role::User, Role::Assistant, Role::Tool][random.below(4)];
        let call = |random: &mut Random| ToolCall {
            id: ids[random.below(ids.len())].to_owned(),
            name: ids[random.below(ids.len())].to_owned(),
            arguments: arguments[random.below(arguments.len())].to_owned(),
        };
        let calls = if role == Role::Assistant { random.below(3) } else { 0 };
        let id = (role == Role::Tool).then(|| ids[random.below(ids.len())].to_owned());
        ChatMessage {
            tool_calls: (0..calls).map(|_| call(random)).collect(),
            tool_call_id: id,
            ..ChatMessage::new(role, text)
        }
    };
    (0..random.below(16)).map(|_| said(random)).collect()
}

#[test]
fn whatever_was_said_no_strict_server_refuses_it() {
    let server = Endpoint::new(|_, _| Answer::new(500, ""));
    let mut random = Random(12);
    for _ in 0..500 {
        let messages = any_history(&mut random);
        let stable = random.below(messages.len() + 1);
        let tools = if random.below(2) == 0 { request().tools } else { Vec::new() };
        let request = Request { messages, stable, tools, ..Request::default() };
        for kind in FAMILIES {
            let payload = provider(kind, &server).payload(&request);
            let body = serde_json::from_str(&payload).unwrap();
            assert_eq!(strict::check(kind.path, &body), Ok(()), "{request:#?}");
        }
    }
}
