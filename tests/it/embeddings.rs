//! Memories and messages found by what they mean: with a server of embeddings, and with one that fails.

use std::time::Duration;

use crate::endpoint::{Answer, Asked, Endpoint};
use crate::support::*;

/// Words of alike meaning have the same place in a vector.
const MEANINGS: &[&[&str]] = &[
    &["car", "automobile", "vehicle"],
    &["fruit", "apple", "pear"],
    &["database", "sqlite", "storage"],
    &["colour", "red", "blue"],
];

/// How long a memory may take to get its vector, and a call to give up.
const TIMEOUT: &str = "timeout = 60";

fn vector(text: &str) -> Vec<f32> {
    let counted = |words: &&[&str]| words.iter().filter(|word| text.contains(**word)).count();
    let mut vector: Vec<f32> = MEANINGS.iter().map(|words| counted(words) as f32).collect();
    // What has none of these words means something else, each like the others.
    vector.push(if vector.iter().all(|count| *count == 0.0) { 1.0 } else { 0.0 });
    vector
}

fn embeddings(asked: &Asked) -> Answer {
    let texts = asked.body["input"].as_array().unwrap();
    let data = texts.iter().enumerate().map(|(index, text)| {
        serde_json::json!({"index": index, "embedding": vector(text.as_str().unwrap())})
    });
    let data: Vec<Json> = data.collect();
    Answer::new(200, serde_json::json!({"object": "list", "data": data}).to_string())
}

fn configure(home: &Home, url: &str, more: &str) {
    let folder = home.path("config/contexture");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("[embeddings]\nurl = \"{url}\"\nmodel = \"test-embed\"\n{more}\n");
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

fn found(result: &Json) -> Vec<&str> {
    let memories = result["memories"].as_array().map(Vec::as_slice).unwrap_or_default();
    memories.iter().map(|memory| memory["content"].as_str().unwrap()).collect()
}

fn query(text: &str) -> String {
    format!("(:query {})", quoted(text))
}

fn remember(client: &mut Client, text: &str) -> Json {
    client.ok("remember", &format!("(:content {})", quoted(text)))
}

#[test]
fn what_means_the_same_is_found_and_what_has_the_words_too_comes_first() {
    let server = Endpoint::new(|asked, _| embeddings(asked));
    let home = Home::new();
    configure(&home, &server.url, TIMEOUT);
    let mut client = home.ephemeral(&[]);
    for text in ["the automobile is fast", "an apple a day", "my car is in the garage"] {
        assert_eq!(remember(&mut client, text)["embedding"], "used");
    }
    let result = client.ok("ground-query", &query("where is the car"));
    assert_eq!(result["embedding"], "used");
    assert_eq!(found(&result), ["my car is in the garage", "the automobile is fast"]);
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.path == "/v1/embeddings"));
    assert!(asked.iter().all(|asked| asked.body["model"] == "test-embed"));
    assert!(asked.iter().all(|asked| !asked.headers.contains_key("authorization")));
}

#[test]
fn a_turn_is_grounded_by_meaning() {
    let server = Endpoint::new(|asked, _| embeddings(asked));
    let home = Home::new();
    configure(&home, &server.url, TIMEOUT);
    let mut client = home.ephemeral(&[]);
    let id = remember(&mut client, "we store rows with sqlite")["id"].clone();
    client.ok("open-session", "(:name \"s\")");
    let turn = client.ok("process-turn", "(:content \"which database do they use?\")");
    assert_eq!((&turn["embedding"], &turn["grounding_used"][0]), (&"used".into(), &id));
}

#[test]
fn without_configuration_nothing_is_said_of_embeddings() {
    let mut client = Home::new().ephemeral(&[]);
    assert!(remember(&mut client, "an apple").get("embedding").is_none());
    let result = client.ok("ground-query", &query("an apple"));
    assert!(result.get("embedding").is_none());
    assert_eq!(found(&result), ["an apple"]);
}

/// Words find what they find, and the result says what is wrong with the embeddings.
#[track_caller]
fn check_failure(url: &str, more: &str, expected: &str) {
    let home = Home::new();
    configure(&home, url, more);
    let mut client = home.ephemeral(&[]);
    remember(&mut client, "an apple a day");
    remember(&mut client, "the automobile is fast");
    let result = client.ok("ground-query", &query("apple pie"));
    assert_eq!(found(&result), ["an apple a day"]);
    let said = result["embedding"].as_str().unwrap();
    assert!(said.starts_with("failed: ") && said.contains("\"test-embed\""), "{said}");
    assert!(said.contains(url) && said.contains(expected), "{said}");
}

#[track_caller]
fn check_answer(answer: impl Fn() -> Answer + Send + Sync + 'static, expected: &str) {
    check_failure(&Endpoint::new(move |_, _| answer()).url, TIMEOUT, expected);
}

#[test]
fn whatever_fails_words_still_find() {
    check_failure("http://127.0.0.1:1/v1", TIMEOUT, "the connection failed");
    check_answer(|| Answer::new(400, r#"{"error": {"message": "bad"}}"#), "it answered 400: bad");
    check_answer(|| Answer::new(404, r#"{"error": "no model"}"#), "check the url and the name");
    check_answer(|| Answer::new(307, "").header("Location", "http://127.0.0.1:1/"), "307");
    check_answer(|| Answer::new(200, "<html>hello</html>"), "not a list of embeddings");
    check_answer(
        || Answer::new(200, r#"{"data": []}"#),
        "the number of embeddings (0) differs from the number of texts (1)",
    );
    check_answer(|| Answer::new(200, r#"{"data": [{"embedding": []}]}"#), "an embedding is empty");
    check_answer(|| Answer::new(200, "{").header("Content-Length", "9"), "failed");
    check_answer(
        || Answer::new(429, "").header("Retry-After", "3600"),
        "it answered 429; try again in 3600 s",
    );
}

#[test]
fn a_slow_server_is_not_waited_for() {
    let slow = || Answer { after: Duration::from_secs(5), ..Answer::new(200, "") };
    check_failure(
        &Endpoint::new(move |_, _| slow()).url,
        "timeout = 0.3",
        "no answer came in time",
    );
}

#[test]
fn vectors_of_another_length_are_not_compared() {
    let lengths = Endpoint::new(|asked, _| match asked.body["input"][0].as_str() {
        Some("vehicle apple") => Answer::new(200, r#"{"data": [{"embedding": [1, 1, 1]}]}"#),
        _ => embeddings(asked),
    });
    let home = Home::new();
    configure(&home, &lengths.url, TIMEOUT);
    let mut client = home.ephemeral(&[]);
    for text in ["the automobile is fast", "an apple a day"] {
        remember(&mut client, text);
    }
    let result = client.ok("ground-query", &query("vehicle apple"));
    assert_eq!(found(&result), ["an apple a day"]);
}

#[test]
fn a_server_that_is_busy_for_a_moment_is_asked_again() {
    let server = Endpoint::new(|asked, before| match before {
        0 => Answer::new(503, "busy").header("Retry-After", "0"),
        1 => Answer::new(429, "busy"),
        _ => embeddings(asked),
    });
    let home = Home::new();
    configure(&home, &server.url, TIMEOUT);
    let mut client = home.ephemeral(&[]);
    assert_eq!(client.ok("ground-query", &query("car"))["embedding"], "used");
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn keys_are_sent_and_shown_to_nobody() {
    let server = Endpoint::new(|asked, _| {
        let key = asked.headers.get("authorization").map_or("", String::as_str);
        let message = format!("no such key {key}");
        Answer::new(401, serde_json::json!({"error": {"message": message}}).to_string())
    });
    let home = Home::new();
    for (setting, wrong) in [
        ("api-key-env = \"TEST_KEY\"", "it answered 401: no such key Bearer …; check the key"),
        ("api-key-command = \"echo sk-secret-1\"", "it answered 401: no such key Bearer …; check"),
        ("api-key-command = \"exit 1\"", "failed with exit status: 1"),
        ("api-key-env = \"UNSET_KEY\"", "the environment variable UNSET_KEY is empty or not set"),
    ] {
        configure(&home, &server.url, &format!("{TIMEOUT}\n{setting}"));
        let mut command = home.command(&["serve", "--stdio"]);
        command.env("TEST_KEY", "sk-secret-1").env("CONTEXTURE_LOG", "trace");
        // Without encryption, no certificates are needed.
        command.env("SSL_CERT_FILE", "/none").env("SSL_CERT_DIR", "/none");
        let mut client = Client::over_stdio(command, Dialect::Native);
        let result = client.ok("ground-query", &query("car"));
        let said = result["embedding"].as_str().unwrap();
        assert!(said.contains(wrong), "{said}");
        client.close();
        let log = client.process().end_and_log();
        assert!(!log.is_empty() && !log.contains("sk-secret"), "{log}");
    }
    let sent: Vec<_> =
        server.asked().iter().map(|asked| asked.headers.get("authorization").cloned()).collect();
    // A key from a command is fetched again once after it was refused.
    assert_eq!(sent, vec![Some("Bearer sk-secret-1".to_owned()); 3]);
    let doctor = String::from_utf8(home.run(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains("BAD [embeddings]: the environment variable UNSET_KEY"), "{doctor}");
}

#[test]
fn older_memories_get_vectors_in_the_background() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    // Some of them are more than the server takes.
    for text in ["the automobile is fast", "too long", "an apple a day"] {
        remember(&mut client, text);
    }
    client.end();
    let server = Endpoint::new(|asked, _| {
        match asked.body["input"].as_array().unwrap().iter().any(|text| text == "too long") {
            true => Answer::new(400, "maximum context length"),
            false => embeddings(asked),
        }
    });
    configure(&home, &server.url, TIMEOUT);
    let mut client = home.stdio(&[]);
    until("the memories to be found by meaning", || {
        let result = client.ok("ground-query", &query("vehicle"));
        found(&result) == ["the automobile is fast"]
    });
    client.end();
}

#[test]
fn a_memory_that_got_no_vector_gets_it_later() {
    let server = Endpoint::new(|asked, before| match before {
        0 => Answer::new(200, "garbage"),
        _ => embeddings(asked),
    });
    let home = Home::new();
    configure(&home, &server.url, TIMEOUT);
    let mut client = home.ephemeral(&[]);
    let said = remember(&mut client, "the automobile is fast");
    assert!(said["embedding"].as_str().unwrap().starts_with("failed: "));
    until("the memory to be found by meaning", || {
        !found(&client.ok("ground-query", &query("vehicle"))).is_empty()
    });
}

#[test]
fn calls_keep_their_order_and_can_be_cancelled_while_they_wait() {
    let server = Endpoint::new(|asked, _| {
        let slow = asked.body["input"][0] == "slow";
        Answer {
            after: Duration::from_millis(if slow { 10_000 } else { 100 }),
            ..embeddings(asked)
        }
    });
    let home = Home::new();
    configure(&home, &server.url, TIMEOUT);
    let mut client = home.ephemeral(&[]);
    let first = client.send("ground-query", &query("car"));
    let second = client.send("list-memories", "nil");
    assert_eq!(client.message()["id"], first);
    assert_eq!(client.message()["id"], second);
    let slow = client.send("ground-query", &query("slow"));
    let after = client.send("ping", "nil");
    client.ok("cancel", &format!("(:id {slow})"));
    assert_eq!(client.reply(slow).unwrap_err().code, -32800);
    client.reply(after).unwrap();
}

/// A home with a model that says what it was sent, and this server of embeddings.
fn with_a_model(url: &str, more: &str) -> Home {
    let home = Home::new();
    configure(&home, url, more);
    let script = home.write("answers.toml", "[[answer]]\necho = true\n");
    let config = home.path("config/contexture/config.toml");
    let provider = format!(
        "\n[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m\"\nscript = {script:?}\n"
    );
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + &provider).unwrap();
    home
}

#[test]
fn a_chat_is_grounded_by_meaning() {
    let server = Endpoint::new(|asked, _| embeddings(asked));
    let home = with_a_model(&server.url, TIMEOUT);
    let mut client = home.ephemeral(&[]);
    remember(&mut client, "we store rows with sqlite");
    client.ok("open-session", "(:name \"s\")");
    for question in ["which database do they use?", "and in which colour?"] {
        let asked = format!("(:content {})", quoted(question));
        let answer = client.ok("chat", &asked);
        assert_eq!(answer["turn"]["embedding"], "used", "{answer}");
        assert!(answer["content"].as_str().unwrap().contains(question), "{answer}");
        assert!(answer["content"].as_str().unwrap().contains("rows with sqlite"), "{answer}");
    }
    client.ok("chat", "(:content \"what would be sent?\" :dry-run t)");
    let texts =
        server.asked().into_iter().flat_map(|asked| asked.body["input"].as_array().cloned());
    assert!(!texts.flatten().any(|text| text == "what would be sent?"), "a dry run sends nothing");
    assert_eq!(client.set_aside("progress"), 2, "only texts were told");
}

#[test]
fn a_chat_goes_on_by_words_alone_when_embeddings_fail_or_are_slow() {
    let slow = || Answer { after: Duration::from_secs(2), ..Answer::new(500, "") };
    for (answer, timeout, why) in [
        (Box::new(|| Answer::new(500, "")) as Box<dyn Fn() -> Answer + Send + Sync>, "20", "500"),
        (Box::new(slow), "0.2", "in time"),
    ] {
        let server = Endpoint::new(move |_, _| answer());
        let home = with_a_model(&server.url, &format!("timeout = {timeout}"));
        let mut client = home.ephemeral(&[]);
        client.ok("remember", "(:content \"the apple is red\")");
        client.ok("open-session", "(:name \"s\")");
        let answer = client.ok("chat", "(:content \"which apple?\")");
        assert!(answer["content"].as_str().unwrap().contains("the apple is red"), "{answer}");
        let told = answer["turn"]["embedding"].as_str().unwrap();
        assert!(told.starts_with("failed: ") && told.contains(why), "{told}");
        let status = client.notification("progress");
        assert_eq!(status["kind"], "status", "{status}");
        let text = status["text"].as_str().unwrap();
        assert!(text.contains("by words only, since the embedding failed: "), "{text}");
    }
}

/// Opens a session with many messages, one of which is about a car.
fn talk(client: &mut Client) {
    client.ok("open-session", "(:name \"s\")");
    let message = |number: usize| match number {
        7 => "(:role :assistant :content \"the automobile is fast\")".to_owned(),
        _ => format!("(:content \"an apple a day, number {number}\")"),
    };
    let messages: Vec<String> = (0..40).map(message).collect();
    client.ok("add-message", &format!("(:messages ({}))", messages.join(" ")));
}

/// Builds a window that has room for few messages.
fn window(client: &mut Client, strategy: &str) -> Json {
    let asked = format!("(:query \"which vehicle?\" :strategy {strategy} :max-tokens 120)");
    client.ok("build-window", &asked)
}

fn has_the_car(window: &Json) -> bool {
    let parts = window["parts"].as_array().unwrap();
    parts.iter().any(|part| part["content"] == "the automobile is fast")
}

#[test]
fn windows_have_messages_that_mean_what_is_asked() {
    let server = Endpoint::new(|asked, _| embeddings(asked));
    let home = Home::new();
    configure(&home, &server.url, TIMEOUT);
    let mut client = home.stdio(&[]);
    talk(&mut client);
    for strategy in [":query", ":tiered"] {
        until("the message to be found by meaning", || {
            let window = window(&mut client, strategy);
            assert_eq!(window["embedding"], "used");
            has_the_car(&window)
        });
    }
    client.end();
    let before = server.asked().len();
    let mut client = home.stdio(&[]);
    assert!(has_the_car(&window(&mut client, ":query")), "vectors are kept");
    let later = server.asked();
    let again =
        later[before..].iter().any(|asked| asked.body["input"].to_string().contains("apple"));
    assert!(!again, "{later:?}");
    client.end();
}

#[test]
fn windows_without_the_server_are_those_by_words_alone() {
    let mut plain = Home::new().ephemeral(&[]);
    talk(&mut plain);
    let home = Home::new();
    configure(&home, "http://127.0.0.1:1/v1", TIMEOUT);
    let mut client = home.ephemeral(&[]);
    talk(&mut client);
    for strategy in [":query", ":tiered"] {
        let (mut by_words, mut without) =
            (window(&mut plain, strategy), window(&mut client, strategy));
        assert!(!has_the_car(&without));
        let said = without.as_object_mut().unwrap().remove("embedding").unwrap();
        assert!(said.as_str().unwrap().starts_with("failed: "), "{said}");
        for window in [&mut by_words, &mut without] {
            window.as_object_mut().unwrap().remove("version");
        }
        assert_eq!(by_words, without);
    }
}
