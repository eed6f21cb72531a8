//! How much the models of a server take: asked of it, read off its refusals, and kept.

use crate::endpoint::{Answer, Asked, Body, Endpoint};
use crate::support::*;

/// As if each word was two tokens and a template added ten: unlike our count.
fn counted(asked: &Asked) -> usize {
    let said =
        |message: &Json| message["content"].as_str().map_or(0, |text| text.split(' ').count());
    asked.body["messages"].as_array().unwrap().iter().map(said).sum::<usize>() * 2 + 10
}

/// A model that takes `limit` tokens and says so as llama.cpp does. What it is asked about models is
/// answered with `list`.
pub(crate) fn taking(limit: usize, list: &'static str) -> Endpoint {
    Endpoint::listing(move |asked, _| {
        if asked.method == "GET" {
            let found = asked.path == "/v1/models" && !list.is_empty();
            return if found { Answer::new(200, list) } else { Answer::new(404, "{}") };
        }
        let tokens = counted(asked);
        if tokens > limit {
            let message = format!(
                "request ({tokens} tokens) exceeds the available context size ({limit} tokens), \
                 try increasing it"
            );
            let error = serde_json::json!({"error": {
                "code": 400, "message": message, "type": "exceed_context_size_error",
                "n_prompt_tokens": tokens, "n_ctx": limit,
            }});
            return Answer::new(400, error.to_string());
        }
        let end = format!(
            "data: {{\"choices\": [{{\"delta\": {{\"content\": \"yes\"}}, \"finish_reason\": \
             \"stop\"}}], \"usage\": {{\"prompt_tokens\": {tokens}, \"completion_tokens\": \
             1}}}}\n\ndata: [DONE]\n\n"
        );
        Answer::streaming(Body::Chunks(vec![end.into_bytes()]))
    })
}

pub(crate) fn begin(home: &Home, server: &Endpoint, more: &str) -> Client {
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    let params =
        format!("(:name \"here\" :kind openai :model \"gguf\" :base-url {:?} {more})", server.url);
    client.ok("configure-provider", &params);
    client
}

fn fill(client: &mut Client) {
    for number in 0..30 {
        let content = format!("message {number} {}", "word ".repeat(100));
        client.ok("add-message", &format!("(:role :assistant :content {content:?})"));
    }
}

/// How many windows were sent.
fn sent(server: &Endpoint) -> usize {
    server.asked().iter().filter(|asked| asked.method == "POST").count()
}

#[test]
fn a_window_is_fitted_to_the_limit_that_a_refusal_names_and_stays_so() {
    let server = taking(1024, "");
    let home = Home::new();
    let mut client = begin(&home, &server, "");
    fill(&mut client);
    let answer = client.ok("chat", "(:content \"hi\")");
    assert_eq!(answer["content"], "yes");
    assert_eq!(sent(&server), 2, "one refusal says enough");
    let row = client.ok("list-providers", "nil")[0].clone();
    assert_eq!((&row["limit"], row["limit_from"].as_str()), (&1024.into(), Some("refusal")));
    // The next turn, and another session, begin with a window that fits.
    client.ok("chat", "(:content \"more\")");
    client.ok("open-session", "(:name \"t\")");
    fill(&mut client);
    client.ok("chat", "(:content \"hi\")");
    assert_eq!(sent(&server), 4);
}

#[test]
fn a_server_that_tells_its_limit_is_never_sent_more() {
    let list =
        "{\"data\": [{\"id\": \"gguf\", \"meta\": {\"n_ctx\": 1024, \"n_ctx_train\": 32768}}]}";
    let server = taking(1024, list);
    let home = Home::new();
    let mut client = begin(&home, &server, "");
    fill(&mut client);
    let shown = client.ok("chat", "(:content \"hi\" :dry-run t)");
    assert_eq!((&shown["limit"], shown["limit_from"].as_str()), (&1024.into(), Some("server")));
    for number in 0..3 {
        let answer = client.ok("chat", &format!("(:content \"{number}\")"));
        assert_eq!(answer["content"], "yes");
    }
    let about: Vec<String> = server
        .asked()
        .iter()
        .filter(|asked| asked.method == "GET")
        .map(|a| a.path.clone())
        .collect();
    assert_eq!((about.as_slice(), sent(&server)), (&["/v1/models".to_owned()][..], 3));
}

#[test]
fn what_cannot_be_made_to_fit_is_told_in_the_words_of_the_server() {
    let server = taking(300, "");
    let home = Home::new();
    let mut client = begin(&home, &server, "");
    let long = "word ".repeat(500);
    let failure = client.fails("chat", &format!("(:content {long:?})"));
    assert_eq!(failure.kind(), "context-too-long", "{failure:?}");
    let words = "exceeds the available context size (300 tokens)";
    assert!(failure.message.contains(words), "{failure:?}");
    assert!(!failure.message.contains("budget"), "nobody set one: {failure:?}");
    // From now on it is known before anything is sent.
    let before = sent(&server);
    let failure = client.fails("chat", &format!("(:content {long:?})"));
    assert_eq!((failure.kind(), sent(&server)), ("context-too-long", before), "{failure:?}");
    assert!(failure.message.contains("the model accepts"), "{failure:?}");
}

#[test]
fn a_question_that_a_server_refused_stands_in_the_way_of_none() {
    let server = taking(300, "");
    let home = Home::new();
    let mut client = begin(&home, &server, "");
    let long = format!("first {}", "word ".repeat(500));
    let failure = client.fails("chat", &format!("(:content {long:?})"));
    assert_eq!((failure.kind(), &failure.data["question"]), ("context-too-long", &"msg-1".into()));
    // It was stored before the server told its limit. It is in the log, and is sent no more.
    assert!(is_nil(&client.ok("get-messages", "nil")));
    assert_eq!(client.ok("get-messages", "(:view :log)").as_array().unwrap().len(), 1);
    assert_eq!(client.ok("chat", "(:content \"hi\")")["content"], "yes");
    let last = server.asked().last().unwrap().body.to_string();
    assert!(!last.contains("first word"), "{last}");
    // The next is said before it is stored.
    let failure = client.fails("chat", &format!("(:content {long:?})"));
    assert!(failure.data["question"].is_null(), "{failure:?}");
    assert_eq!(client.ok("get-messages", "(:view :log)").as_array().unwrap().len(), 3);
    assert_eq!(client.ok("chat", "(:content \"more\")")["content"], "yes");
    // Neither does a first message that came from elsewhere.
    client.ok("open-session", "(:name \"t\")");
    client.ok("add-message", &format!("(:role :user :content {long:?})"));
    assert_eq!(client.ok("chat", "(:content \"hi\")")["content"], "yes");
    client.ok("prune-context", "(:max-tokens 50)");
    assert_eq!(client.ok("chat", "(:content \"more\")")["content"], "yes");
}

#[test]
fn a_server_that_is_slow_to_tell_its_limit_holds_up_one_turn_a_little() {
    let server = Endpoint::listing(|asked, _| match &*asked.method {
        "GET" => Answer::streaming(Body::Silent(b"{".to_vec())),
        _ => Answer::streaming(Body::Chunks(vec![
            b"data: {\"choices\":[{\"delta\":{\"content\":\"yes\"}}]}\n\ndata: [DONE]\n\n".to_vec(),
        ])),
    });
    let home = Home::new();
    let mut client = begin(&home, &server, "");
    for _ in 0..2 {
        assert_eq!(client.ok("chat", "(:content \"hi\")")["content"], "yes");
    }
    let about = server.asked().iter().filter(|asked| asked.method == "GET").count();
    assert_eq!((about, sent(&server)), (1, 2), "who does not answer is not asked again");
}
