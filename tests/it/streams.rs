//! Answers of a model on their way through the whole server: many at once, bad ones, and clients
//! that are slow to read.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use crate::endpoint::{Answer, Asked, Body, Endpoint};
use crate::support::*;

const END: &[u8] = b"data: [DONE]\n\n";

/// A piece of an answer, as OpenAI's interface has it.
fn piece(text: &str) -> Vec<u8> {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n").into_bytes()
}

fn saying(text: &str) -> Answer {
    Answer::streaming(Body::Chunks(vec![piece(text), END.to_vec()]))
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// The last thing that the user said.
fn question(asked: &Asked) -> String {
    let messages = asked.body["messages"].as_array().unwrap();
    text(&messages.last().unwrap()["content"]).to_owned()
}

fn configure(client: &mut Client, server: &Endpoint) {
    let params = "(:name \"here\" :kind \"openai\" :model \"m\" :base-url";
    client.ok("configure-provider", &format!("{params} {:?})", server.url));
}

fn said(client: &mut Client, session: &str) -> Vec<String> {
    let messages = client.ok("get-messages", &format!("(:session {session:?})"));
    let line = |message: &Json| text(&message["content"]).to_owned();
    messages.as_array().into_iter().flatten().map(line).collect()
}

/// What is answered to a question, in pieces that tell themselves apart.
fn numbered(question: &str) -> Vec<String> {
    (0..300).map(|n| format!("<{question} {n}>")).collect()
}

/// An answer of numbered pieces, not all of which come at once.
fn numbered_answer(asked: &Asked) -> Answer {
    let pieces = numbered(&question(asked));
    let mut chunks: Vec<Vec<u8>> =
        pieces.chunks(7).map(|some| some.iter().flat_map(|text| piece(text)).collect()).collect();
    chunks.push(END.to_vec());
    Answer::streaming(Body::Chunks(chunks))
}

/// Reads until each of these calls is answered, and checks that all came that belongs to each.
#[track_caller]
fn check_streams(client: &mut Client, calls: &HashMap<i64, String>) {
    let mut heard: HashMap<i64, String> = HashMap::new();
    let mut answered = 0;
    while answered < calls.len() {
        let message = client.message();
        let progress = &message["params"];
        if let Some(id) = progress["id"].as_i64() {
            heard.entry(id).or_default().push_str(text(&progress["text"]));
        } else if let Some(question) = message["id"].as_i64().and_then(|id| calls.get(&id)) {
            let expected = numbered(question).concat();
            let id = message["id"].as_i64().unwrap();
            assert!(heard.remove(&id).as_ref() == Some(&expected), "{question}: pieces are lost");
            assert!(text(&message["result"]["content"]) == expected, "{message}");
            answered += 1;
        }
    }
}

#[test]
fn a_hundred_answers_at_once_come_whole_and_in_order() {
    const LIMIT: u64 = 160 << 20;
    let model = Endpoint::new(|asked, _| numbered_answer(asked));
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut first = server.unix(Dialect::Native);
    configure(&mut first, &model);
    // All by one client, and then each by a client of its own.
    for number in 0..200 {
        first.ok("open-session", &format!("(:name \"s-{number}\")"));
    }
    let begin = |client: &mut Client, number: usize| {
        let question = format!("s-{number}");
        let params = format!("(:session {question:?} :content {question:?})");
        (client.send("chat", &params), question)
    };
    let calls = (0..100).map(|number| begin(&mut first, number)).collect();
    check_streams(&mut first, &calls);
    let mut clients: Vec<Client> = (0..100).map(|_| server.unix(Dialect::Json)).collect();
    let begun = clients.iter_mut().zip(100..);
    let begun: Vec<_> = begun.map(|(client, number)| begin(client, number)).collect();
    for (client, call) in clients.iter_mut().zip(begun) {
        check_streams(client, &HashMap::from([call]));
    }
    let peak = server.process.peak_memory();
    assert!(peak < LIMIT, "{} MiB were held", peak >> 20);
}

#[test]
fn a_client_that_is_slow_to_read_still_gets_every_piece() {
    const PIECES: usize = 8000;
    let padding = "x".repeat(1000);
    let model = Endpoint::new(move |_, _| {
        let mut chunks: Vec<Vec<u8>> =
            (0..PIECES).map(|n| piece(&format!("<{n}>{padding}"))).collect();
        chunks.push(END.to_vec());
        Answer::streaming(Body::Chunks(chunks))
    });
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut other = server.unix(Dialect::Native);
    configure(&mut other, &model);
    other.ok("open-session", "(:name \"s\")");
    let mut slow = UnixStream::connect(&server.socket).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.write_all(b"{\"id\": 1, \"method\": \"chat\", \"params\": {\"session\": \"s\", \"content\": \"hi\"}}\n")
        .unwrap();
    until("the model to be asked", || !model.asked().is_empty());
    // Meanwhile more comes than is kept for a client that does not read. The server waits far longer
    // for such a client, also on a busy machine.
    for _ in 0..300 {
        other.ok("ping", "nil");
    }
    let before = server.process.peak_memory();
    let mut next = 0;
    for line in BufReader::new(slow).lines() {
        let message: Json = serde_json::from_str(&line.unwrap()).unwrap();
        if message["id"] == 1 {
            assert!(message["error"].is_null(), "{}", message["error"]);
            break;
        }
        let text = text(&message["params"]["text"]);
        assert!(text.starts_with(&format!("<{next}>")), "{next} is lost, got {}", &text[..20]);
        next += 1;
    }
    assert_eq!(next, PIECES);
    assert!(before < 100 << 20, "{} MiB were held for it", before >> 20);
}

#[test]
fn those_that_wait_for_a_model_keep_nobody_else_waiting() {
    let model = Endpoint::new(|_, _| Answer::streaming(Body::Silent(piece("begun"))));
    let home = Home::new();
    home.write("a.txt", "a");
    let mut client = home.ephemeral(&[]);
    configure(&mut client, &model);
    let waiting: Vec<i64> = (0..20)
        .map(|number| {
            client.ok("open-session", &format!("(:name \"s-{number}\")"));
            client.send("chat", &format!("(:session \"s-{number}\" :content \"hi\")"))
        })
        .collect();
    // Each says so much and no more.
    for _ in 0..20 {
        assert_eq!(text(&client.notification("progress")["text"]), "begun");
    }
    assert_eq!(model.asked().len(), 20);
    let folder = home.path("files").display().to_string();
    client.ok("add-tree", &format!("(:path {folder:?} :mode :listing)"));
    for id in waiting {
        client.send("cancel", &format!("(:id {id})"));
        assert_eq!(client.reply(id).unwrap_err().code, -32800);
    }
    until("every connection to be closed", || model.left() == 20);
    until("what had come to be kept", || said(&mut client, "s-19").len() == 2);
    assert_eq!(said(&mut client, "s-19"), ["hi", "begun"]);
}

/// A turn with this answer fails so, keeps so much, and the next one succeeds.
#[track_caller]
fn check(answer: impl Fn() -> Answer + Send + Sync + 'static, kind: &str, kept: &[&str]) {
    // What was asked in vain stands before what is asked now, in one message.
    let model = Endpoint::new(move |asked, _| match question(asked).ends_with("again") {
        true => saying("good"),
        false => answer(),
    });
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    configure(&mut client, &model);
    client.ok("open-session", "(:name \"s\")");
    let failure = client.fails("chat", "(:content \"hi\")");
    assert_eq!(failure.kind(), kind, "{failure:?}");
    // A question to which nothing came leaves the conversation.
    let all: Vec<&str> = ["hi"].iter().chain(kept).copied().filter(|_| !kept.is_empty()).collect();
    assert_eq!(said(&mut client, "s"), all);
    assert_eq!(text(&client.ok("chat", "(:content \"again\")")["content"]), "good");
    assert_eq!(said(&mut client, "s").len(), all.len() + 2);
}

#[test]
fn a_bad_answer_leaves_the_session_usable_and_the_text_unlost() {
    // As `Retry-After` says, nobody waits for a second attempt.
    let refusal = |status, body: &'static str| {
        move || Answer::new(status, body).header("Retry-After", "3600")
    };
    check(refusal(401, "{\"error\": \"wrong key\"}"), "authentication", &[]);
    check(refusal(404, "{\"error\": \"the model does not exist\"}"), "bad-request", &[]);
    check(refusal(429, "slow down"), "rate-limited", &[]);
    check(refusal(500, ""), "unavailable", &[]);
    check(refusal(200, ""), "unavailable", &[]);
    check(refusal(200, "<html>hello</html>"), "malformed", &[]);
    let cut = || Answer::streaming(Body::Cut([piece("Grü"), piece("ße")].concat()));
    check(cut, "unavailable", &["Grüße"]);
    // Closed in the middle of a character.
    let cut = || {
        let mut bytes = [piece("Gr"), piece("ü")].concat();
        let at = bytes.iter().rposition(|byte| *byte == 0xc3).unwrap();
        bytes.truncate(at + 1);
        Answer::streaming(Body::Cut(bytes))
    };
    check(cut, "unavailable", &["Gr"]);
    let garbage = || {
        let bytes = [piece("begun"), b"data: {]\n\n".to_vec()].concat();
        Answer::streaming(Body::Chunks(vec![bytes]))
    };
    check(garbage, "malformed", &["begun"]);
    let no_text = || {
        let bytes = [piece("begun"), b"data: \xff\xfe\n\n".to_vec()].concat();
        Answer::streaming(Body::Chunks(vec![bytes]))
    };
    check(no_text, "malformed", &["begun"]);
}

#[test]
fn a_server_that_says_nothing_can_be_given_up() {
    let model = Endpoint::new(|_, before| match before {
        0 => Answer { after: PATIENCE, ..saying("late") },
        _ => saying("good"),
    });
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    configure(&mut client, &model);
    client.ok("open-session", "(:name \"s\")");
    let id = client.send("chat", "(:content \"hi\")");
    until("the model to be asked", || model.asked().len() == 1);
    client.send("cancel", &format!("(:id {id})"));
    assert_eq!(client.reply(id).unwrap_err().code, -32800);
    until("the next turn", || client.call("chat", "(:content \"again\")").is_ok());
    assert_eq!(said(&mut client, "s"), ["again", "good"]);
}

#[test]
fn a_server_of_something_else_is_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream.unwrap().write_all(b"SSH-2.0-OpenSSH_9.9\r\n\xff\xfe\r\n"));
        }
    });
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let params = format!("(:name \"here\" :kind \"openai\" :model \"m\" :base-url {url:?})");
    client.ok("configure-provider", &params);
    client.ok("open-session", "(:name \"s\")");
    let failure = client.fails("chat", "(:content \"hi\")");
    assert_eq!(failure.kind(), "unavailable", "{failure:?}");
    assert!(failure.message.contains("the connection failed"), "{failure:?}");
    assert_eq!(said(&mut client, "s"), [""; 0]);
}

#[test]
fn a_chunk_may_end_inside_a_character() {
    let whole = [piece("Grüße 😀"), END.to_vec()].concat();
    let bytes = whole.clone();
    let model = Endpoint::new(move |_, before| {
        let (left, right) = bytes.split_at(before + 1);
        Answer::streaming(Body::Chunks(vec![left.to_vec(), right.to_vec()]))
    });
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    configure(&mut client, &model);
    client.ok("open-session", "(:name \"s\")");
    // An empty chunk would be the end.
    for _ in 1..whole.len() {
        assert_eq!(text(&client.ok("chat", "(:content \"hi\")")["content"]), "Grüße 😀");
    }
}

#[test]
fn an_answer_of_ten_megabytes_is_kept_whole() {
    let long = "0123456789".repeat(1 << 20);
    let answer = long.clone();
    let model = Endpoint::new(move |_, before| match before {
        0 => saying(&answer),
        _ => saying("short"),
    });
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    configure(&mut client, &model);
    client.ok("open-session", "(:name \"s\")");
    assert!(text(&client.ok("chat", "(:content \"hi\")")["content"]) == long);
    assert!(said(&mut client, "s")[1] == long);
    assert_eq!(text(&client.ok("chat", "(:content \"more\")")["content"]), "short");
}

#[test]
fn of_two_turns_of_a_session_the_second_is_refused() {
    let model = Endpoint::new(|_, before| match before {
        0 => Answer::streaming(Body::Silent(piece("begun"))),
        _ => saying("good"),
    });
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut first = server.unix(Dialect::Native);
    let mut second = server.tcp(Dialect::Json);
    configure(&mut first, &model);
    first.ok("open-session", "(:name \"s\")");
    let id = first.send("chat", "(:session \"s\" :content \"one\")");
    assert_eq!(text(&first.notification("progress")["text"]), "begun");
    let refused = second.fails("chat", "(:session \"s\" :content \"two\")");
    assert_eq!(refused.kind(), "session-busy", "{refused:?}");
    assert_eq!(said(&mut second, "s"), ["one"]);
    first.send("cancel", &format!("(:id {id})"));
    until("the connection to be closed", || model.left() == 1);
    until("the session to be free", || said(&mut second, "s").len() == 2);
    until("the next turn", || second.call("chat", "(:session \"s\" :content \"two\")").is_ok());
    assert_eq!(said(&mut second, "s"), ["one", "begun", "two", "good"]);
}

#[test]
fn signed_thoughts_stay_with_their_message_and_go_to_no_other_server() {
    const SIGNED: &str = "c2lnbmVk";
    let calling = format!(
        r#"data: {{"type":"message_start","message":{{"usage":{{"input_tokens":1}}}}}}

data: {{"type":"content_block_start","index":0,"content_block":{{"type":"thinking","thinking":"Hmm","signature":""}}}}

data: {{"type":"content_block_delta","index":0,"delta":{{"type":"signature_delta","signature":"{SIGNED}"}}}}

data: {{"type":"content_block_start","index":1,"content_block":{{"type":"tool_use","id":"toolu_1","name":"list_context","input":{{}}}}}}

data: {{"type":"content_block_stop","index":1}}

data: {{"type":"message_delta","delta":{{"stop_reason":"tool_use"}},"usage":{{"output_tokens":1}}}}

data: {{"type":"message_stop"}}

"#
    );
    let plain = r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"done"}}

data: {"type":"message_stop"}

"#;
    let model = Endpoint::new(move |_, before| {
        let said = if before == 0 { calling.clone() } else { plain.to_owned() };
        Answer::streaming(Body::Chunks(vec![said.into_bytes()]))
    });
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let params = "(:name \"here\" :kind \"anthropic\" :model \"m\" :base-url";
    client.ok("configure-provider", &format!("{params} {:?})", model.root));
    client.ok("open-session", "(:name \"s\")");
    let answer = client.ok("chat", "(:content \"hi\" :tools t :allow (\"list_context\"))");
    assert_eq!((text(&answer["content"]), &answer["rounds"]), ("done", &Json::from(2)));
    client.ok("chat", "(:content \"more\")");
    let asked = model.asked();
    let messages = asked[1].body["messages"].as_array().unwrap();
    let [.., question, called, result] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(text(&question["content"][0]["text"]), "hi");
    let blocks = serde_json::json!([
        {"type": "thinking", "thinking": "Hmm", "signature": SIGNED},
        {"type": "tool_use", "id": "toolu_1", "name": "list_context", "input": {}}]);
    assert_eq!(called["content"], blocks);
    // The next request begins with all of this, so it is to be cached.
    assert_eq!(text(&result["content"][0]["type"]), "tool_result");
    assert_eq!(text(&result["content"][0]["cache_control"]["type"]), "ephemeral");
    // The next turn begins with the same bytes. Clients are not shown what is only for the server.
    let later = asked[2].body["messages"].as_array().unwrap();
    assert!(later.iter().any(|said| said["content"] == blocks), "{}", asked[2].body);
    assert!(!client.ok("get-messages", "nil").to_string().contains(SIGNED));
    client.end();
    // A server that starts anew still has it; another model gets the usual form.
    let mut client = home.stdio(&[]);
    client.ok("configure-provider", &format!("{params} {:?})", model.root));
    client.ok("chat", "(:session \"s\" :content \"and more\")");
    client.ok("chat", "(:session \"s\" :content \"and more\" :model \"other\")");
    let asked = model.asked();
    assert!(asked[3].body.to_string().contains(SIGNED), "{}", asked[3].body);
    assert!(asked[4].body.to_string().contains("\"tool_use\""), "{}", asked[4].body);
    assert!(!asked[4].body.to_string().contains(SIGNED));
    client.end();
}

#[test]
fn that_a_busy_server_is_waited_for_is_told() {
    let server = Endpoint::new(|_, before| match before {
        0 => {
            Answer::new(429, "{\"error\": {\"message\": \"slow down\"}}").header("Retry-After", "0")
        }
        _ => saying("at last"),
    });
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    configure(&mut client, &server);
    client.ok("open-session", "(:name \"s\")");
    client.send("chat", "(:content \"hi\")");
    let told = client.message();
    assert_eq!(text(&told["params"]["kind"]), "retry", "{told}");
    let phrase = text(&told["params"]["text"]);
    assert!(phrase.contains("slow down") && phrase.contains("trying again"), "{phrase}");
    assert_eq!(text(&client.message()["params"]["text"]), "at last");
}
