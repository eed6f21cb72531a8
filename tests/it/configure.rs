//! Providers that a client adds while the server runs, through the program itself.

use std::fs::File;
use std::path::Path;

use contexture_program::internals::server::auth::{Admission, SecretHash};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::endpoint::{Answer, Asked, Body, Endpoint};
use crate::support::*;

/// A key that nothing else looks like.
const KEY: &str = "sk-qUx7-n0body-sees-this";

/// A piece of a text, and the end, as OpenAI's interface has them.
fn saying(text: &str) -> Answer {
    let piece = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    Answer::streaming(Body::Chunks(vec![piece.into_bytes(), b"data: [DONE]\n\n".to_vec()]))
}

fn params(url: &str, more: &str) -> String {
    format!("(:name \"here\" :kind \"openai\" :model \"m-1\" :base-url {url:?} {more})")
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a file below the folder has the key.
#[track_caller]
fn check_unseen(folder: &Path) -> usize {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            seen += check_unseen(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let found = memchr::memmem::find(&bytes, KEY.as_bytes());
            assert_eq!(found, None, "{} has the key", path.display());
            seen += 1;
        }
    }
    seen
}

/// A server that repeats the key in whatever it says went wrong.
///
/// It says `refusals` times that the key is wrong, since a key that a command prints is fetched
/// again.
fn telling(refusals: usize) -> Endpoint {
    // An answer that has begun is not asked for again.
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    let broken = format!("{begun}data: {{\"error\":{{\"message\":\"{KEY} is used up\"}}}}\n\n");
    let answered = std::sync::atomic::AtomicUsize::new(0);
    let next = move || answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    Endpoint::listing(move |asked, _| match asked.method == "GET" {
        true if asked.path == "/v1/models" => {
            Answer::new(200, "{\"data\": [{\"id\": \"m-1\"}, {\"id\": \"m-2\"}]}")
        }
        true => Answer::new(404, KEY),
        false => match next() {
            before @ 0 => told(before, &broken),
            before if before <= refusals => told(1, &broken),
            before => told(before + 1 - refusals, &broken),
        },
    })
}

/// What that server says to questions, by how many came before.
fn told(before: usize, broken: &str) -> Answer {
    match before {
        0 => saying("hello"),
        1 => Answer::new(401, format!("{{\"error\": \"no such key {KEY}\"}}")),
        2 => Answer::streaming(Body::Chunks(vec![broken.as_bytes().to_vec()])),
        3 => Answer::new(200, format!("<html>{KEY}</html>")),
        _ => Answer::new(429, KEY).header("Retry-After", "3600"),
    }
}

/// What is said of the key while it is used. The settings say where it comes from.
fn said_in_use(client: &mut Client, server: &Endpoint, settings: &str) -> String {
    client.ok("open-session", "(:name \"s\")");
    let row = client.ok("configure-provider", &params(&server.url, settings));
    let models = client.ok("list-providers", "(:models t :provider \"here\")");
    assert_eq!(models["models"], serde_json::json!([{"name": "m-1"}, {"name": "m-2"}]));
    assert_eq!(text(&client.ok("chat", "(:content \"hi\")")["content"]), "hello");
    let mut said = row.to_string();
    for (kind, shown) in [
        ("authentication", "no such key …"),
        ("unavailable", "… is used up"),
        ("malformed", "not an event stream"),
        ("rate-limited", "429: …"),
    ] {
        let failure = client.fails("chat", "(:content \"more\")");
        assert_eq!(failure.kind(), kind, "{failure:?}");
        assert!(failure.message.contains(shown), "{failure:?}");
        said += &format!("{failure:?}");
    }
    said += &client.ok("chat", "(:content \"x\" :dry-run t)").to_string();
    for method in ["list-providers", "initialize", "session-report", "get-messages"] {
        said += &format!("{:?}", client.call(method, "nil"));
    }
    said
}

/// What is said to calls with the key that are refused.
fn said_to_refused(client: &mut Client, server: &Endpoint) -> String {
    let in_list = params(&server.url, &format!(":api-key ({KEY:?})"));
    let both = params(&server.url, &format!(":api-key {KEY:?} :api-key-env \"A\""));
    let in_url = params(&format!("http://me:{KEY}@127.0.0.1/v1"), "");
    let headers = [
        format!("{KEY:?}"),
        format!("({KEY:?})"),
        format!("((:name {:?} :value \"x\"))", format!("X-Key: {KEY}")),
        format!("((:name \"x\" :value ({KEY:?})))"),
        format!("((:name \"x\" :value {KEY:?} :env \"A\"))"),
        format!("((:name \"x\" :value {:?}))", format!("{KEY}\u{7f}")),
        format!("((:name \"host\" :value {KEY:?}))"),
    ];
    let headers = headers.map(|headers| params(&server.url, &format!(":headers {headers}")));
    let in_proxy = params(&server.url, &format!(":proxy \"http://me:{KEY}@h\""));
    let in_extra = params(&server.url, &format!(":extra {:?}", format!("{{\"k\": {KEY}}}")));
    let mut refused = |params: &String| format!("{:?}", client.fails("configure-provider", params));
    let all = [in_list, both, in_url, in_proxy, in_extra];
    all.iter().chain(&headers).map(&mut refused).collect()
}

/// What is said to messages with the key that are none.
fn said_to_broken(home: &Home) -> String {
    let mut said = String::new();
    for (dialect, broken) in [
        (Dialect::Native, format!("(:id 7 :method configure-provider :params (:api-key {KEY:?} ]")),
        (Dialect::Native, format!("(:id 7 :method x :params (:api-key \"{KEY}))")),
        (Dialect::Json, format!("{{\"id\": 7, \"params\": {{\"api_key\": {KEY:?}, }}}}")),
        (Dialect::Json, format!("{{\"id\": 7, \"params\": {{\"api_key\": {KEY}}}}}")),
    ] {
        let mut other = Client::over_stdio(home.command(&["serve", "--stdio"]), dialect);
        other.write(format!("{broken}\n").as_bytes());
        said += &other.message().to_string();
        other.close();
    }
    said
}

/// A variable of the server's environment that has the key.
const VARIABLE: &str = "CONTEXTURE_TEST_SECRET";

/// Checks that the key, which comes from where the settings say, arrives in this header and
/// nowhere else.
#[track_caller]
fn check_secret(settings: &str, header: &str, sent: &str) {
    let server = telling(if settings.contains("command") { 2 } else { 1 });
    let home = Home::new();
    let log = home.path("log");
    let mut command = home.command(&["serve", "--stdio"]);
    command.env("CONTEXTURE_LOG", "trace").env(VARIABLE, KEY);
    command.stderr(File::create(&log).unwrap());
    let mut client = Client::over_stdio(command, Dialect::Native);
    let said = said_in_use(&mut client, &server, settings)
        + &said_to_refused(&mut client, &server)
        + &said_to_broken(&home);
    assert!(!said.contains(KEY), "{said}");
    let asked = server.asked();
    let value = |asked: &Asked| asked.headers.get(header).cloned().unwrap_or_default();
    assert!(asked.iter().all(|asked| value(asked) == sent), "{asked:?}");
    client.end();
    assert!(std::fs::read_to_string(&log).unwrap().contains("TRACE"), "everything was logged");
    // The log, the database and what is written before it.
    assert!(check_unseen(&home.path("")) >= 3);
    // Nor is it there when the server is started again.
    let mut client = home.stdio(&[]);
    assert!(is_nil(&client.ok("list-providers", "nil")));
    assert_eq!(client.fails("chat", "(:content \"hi\")").kind(), "unconfigured");
}

#[test]
fn a_key_is_sent_to_its_server_and_seen_nowhere_else() {
    let elsewhere = Home::new();
    let file = elsewhere.write("secret", KEY);
    let (print, bearer) = (format!("cat {file}"), format!("Bearer {KEY}"));
    check_secret(&format!(":api-key {KEY:?}"), "authorization", &bearer);
    check_secret(&format!(":api-key {KEY:?} :key-header \"X-Gate\""), "x-gate", KEY);
    check_secret(&format!(":api-key-env {VARIABLE:?}"), "authorization", &bearer);
    check_secret(&format!(":api-key-command {print:?}"), "authorization", &bearer);
    let headers = |source: &str| format!(":headers ((:name \"X-Gate\" {source}))");
    check_secret(&headers(&format!(":value {KEY:?}")), "x-gate", KEY);
    check_secret(&headers(&format!(":env {VARIABLE:?}")), "x-gate", KEY);
    check_secret(&headers(&format!(":command {print:?}")), "x-gate", KEY);
    let value = format!(":headers ((:name \"Authorization\" :value {bearer:?}))");
    check_secret(&value, "authorization", &bearer);
}

#[test]
fn the_doctor_tells_how_servers_are_asked_and_shows_no_values() {
    let home = Home::new();
    let config = format!(
        "[[providers]]\nname = \"gate\"\nkind = \"anthropic\"\nmodel = \"m\"\n\
         base-url = \"http://127.0.0.1:1\"\nkey-header = \"authorization\"\neffort = \"low\"\n\
         extra = '{{\"top_k\": 5}}'\nproxy = \"none\"\nfirst-byte = 9\nsilence = 8\n\
         headers = [{{ name = \"X-One\", value = {KEY:?} }}, {{ name = \"X-Two\", env = \"TWO\" }}]\n"
    );
    crate::model::configure(&home, &config);
    let told = home.command(&["doctor"]).output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let expected = "key in the header authorization, effort low, extra members top_k, proxy none, \
                    first-byte 9 s, silence 8 s, header x-one given, \
                    header x-two from the variable TWO";
    assert!(told.contains(expected) && !told.contains(KEY), "{told}");
    let mut client = home.ephemeral(&[]);
    let row = client.ok("list-providers", "nil")[0].clone();
    assert_eq!(text(&row["settings"]), expected);
    for wrong in [
        format!("headers = {KEY:?}"),
        format!("headers = [{KEY:?}]"),
        format!("headers = [{{ name = \"x\", valeu = {KEY:?} }}]"),
        format!("api-key = {KEY:?}"),
        format!("api-key = [{KEY:?}]"),
    ] {
        let config =
            format!("[[providers]]\nname = \"a\"\nkind = \"ollama\"\nmodel = \"m\"\n{wrong}\n");
        crate::model::configure(&home, &config);
        let told = home.command(&["doctor"]).output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains("[[providers]]") || told.contains("line 5"), "{told}");
        assert!(!told.contains(KEY), "{told}");
    }
}

/// What a client is answered that had to show a secret, or that had not.
fn answered(admission: Admission, message: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(far);
        let server = crate::scripted::server();
        tokio::spawn(async move { server.serve(reader, writer, admission).await });
        let (near_reader, mut near_writer) = tokio::io::split(near);
        near_writer.write_all(message.as_bytes()).await.unwrap();
        let mut line = String::new();
        BufReader::new(near_reader).read_line(&mut line).await.unwrap();
        line
    })
}

#[test]
fn the_servers_environment_commands_and_files_are_not_for_clients_over_tcp() {
    let call = |more: &str| {
        format!("(:id 1 :method configure-provider :params {})\n", params("http://h/v1", more))
    };
    let offered = || Admission::Offered(Some(SecretHash::new("s3cret")));
    let demanded = || Admission::Demanded(SecretHash::new("s3cret"));
    for (more, param) in [
        (":api-key-command \"id\"", "api-key-command"),
        (":api-key-env \"HOME\"", "api-key-env"),
        (":script \"/none\"", "script"),
        (":headers ((:name \"x\" :env \"HOME\"))", "headers"),
        (":headers ((:name \"x\" :command \"id\"))", "headers"),
        (":ca-file \"/none\"", "ca-file"),
    ] {
        let own = answered(Admission::Granted, &call(more));
        assert!(!own.contains("is not allowed over TCP"), "{own}");
        let shown = format!("s3cret\n{}", call(more));
        for (admission, said) in [
            (Admission::Offered(None), call(more)),
            (offered(), call(more)),
            (offered(), shown.clone()),
            (demanded(), shown),
        ] {
            let refused = answered(admission, &said);
            let expected = format!("{param} is not allowed over TCP");
            assert!(refused.contains(&expected), "{refused}");
        }
    }
}

#[test]
fn providers_change_over_tcp_only_for_who_showed_the_secret() {
    let more = ":api-key \"k\"";
    let call =
        format!("(:id 1 :method configure-provider :params {})\n", params("http://h/v1", more));
    let shown = format!("s3cret\n{call}");
    let secret = || SecretHash::new("s3cret");
    for (admission, said) in [
        (Admission::Granted, &call),
        (Admission::Offered(Some(secret())), &shown),
        (Admission::Demanded(secret()), &shown),
    ] {
        let taken = answered(admission, said);
        assert!(taken.contains(":key :set"), "{taken}");
    }
    for admission in [Admission::Offered(None), Admission::Offered(Some(secret()))] {
        let refused = answered(admission, &call);
        assert!(refused.contains(":kind :not-allowed"), "{refused}");
    }
}

#[track_caller]
fn check_refused(client: &mut Client, more: &str, param: &str, expected: &str) {
    let given: Vec<&str> = more.split(' ').filter(|word| word.starts_with(':')).collect();
    let usual = [(":name", "\"a\""), (":kind", "\"ollama\""), (":model", "\"m\"")];
    let usual = usual.iter().filter(|(name, _)| !given.contains(name));
    let usual: String = usual.map(|(name, value)| format!("{name} {value} ")).collect();
    let failure = client.fails("configure-provider", &format!("({usual}{more})"));
    assert_eq!((failure.code, failure.param()), (-32602, param), "{failure:?}");
    assert!(failure.message.contains(expected), "{failure:?}");
}

#[test]
fn what_is_wrong_with_a_provider_is_said_as_for_the_file() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let mut refused = |more: &str, param: &str, expected: &str| {
        check_refused(&mut client, more, param, expected);
    };
    refused(":kind \"gpt\"", "kind", "kind must be one of openai, responses, anthropic, gemini");
    refused(":name \"\"", "name", "must not be empty");
    refused(":model \" \"", "model", "model must not be empty");
    refused(":base-url \"x\"", "base-url", "base-url must begin with http://");
    refused(":base-url \"http://h/v1?key=k\"", "base-url", "must not contain a key");
    refused(":kind \"scripted\"", "script", "script is missing");
    refused(":kind \"scripted\" :script \"here.toml\"", "script", "absolute");
    refused(":kind \"scripted\" :script \"/none/x.toml\"", "script", "/none/x.toml: No such file");
    refused(
        ":kind \"scripted\" :script \"/dev/zero\"",
        "script",
        "/dev/zero: it is not a regular file",
    );
    refused(":script \"/x\"", "script", "only for the kind scripted");
    refused(":api-key \" \"", "api-key", "must be a string that is not empty");
    refused(":api-key-env \"A\" :api-key-command \"b\"", "api-key-env", "keep only one of them");
    refused(":answer-tokens 0", "answer-tokens", "must be 1 or more");
    refused(":temperature 3", "temperature", "must be from 0 to 2, got 3");
    refused(":top-p 0", "top-p", "must be above 0 and at most 1");
    refused(":effort :huge", "effort", "off, low, medium, high");
    refused(":first-byte 0", "first-byte", "must be from 1 to 86400 seconds");
    refused(":extra \"[1]\"", "extra", "must be the JSON text of an object");
    refused(":extra \"{\\\"messages\\\": 1}\"", "extra", "must not have messages");
    refused(":proxy \"h:8080\"", "proxy", "proxy must begin with http://");
    refused(":api-version \"1\"", "api-version", "only for the kinds openai and responses");
    refused(":key-header \"a b\"", "key-header", "must be the name of a header");
    refused(":headers ((:name \"host\" :value \"x\"))", "headers", "is set by Contexture itself");
    refused(":headers ((:name \"x\"))", "headers", "needs one of value, env and command");
    let anthropic = ":kind \"anthropic\" :temperature 0.5";
    refused(&format!("{anthropic} :effort :low"), "temperature", "cannot be combined with effort");
    refused(&format!("{anthropic} :top-p 0.5"), "top-p", "cannot be combined with temperature");
    let scripted = ":kind \"scripted\" :script \"/x\"";
    refused(&format!("{scripted} :effort :low"), "effort", "is only for servers");
    refused(":price-input 1", "price-input", "and price-output must both be 0 or more");
    refused(":price-input -1 :price-output 1", "price-input", "both be 0 or more");
    assert!(is_nil(&client.ok("list-providers", "nil")), "nothing was added");
}

#[test]
fn providers_are_added_replaced_and_put_first() {
    let server = Endpoint::new(|asked, _| {
        let model = asked.body["model"].as_str().unwrap_or_default();
        saying(&format!("I am {model}"))
    });
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let add = |client: &mut Client, name: &str, model: &str, more: &str| {
        let what = format!("(:name {name:?} :kind openai :model {model:?}");
        client.ok("configure-provider", &format!("{what} :base-url {:?} {more})", server.url))
    };
    let listed = |client: &mut Client| {
        let list = client.ok("list-providers", "nil");
        let row = |row: &Json| format!("{} {}", text(&row["name"]), text(&row["model"]));
        list.as_array().unwrap().iter().map(row).collect::<Vec<_>>().join(", ")
    };
    client.ok("open-session", "(:name \"s\")");
    let row = add(&mut client, "one", "m-1", "");
    assert_eq!((&row["default"], text(&row["key"])), (&Json::Bool(true), "none-needed"));
    assert_eq!(text(&row["base_url"]), server.url);
    add(&mut client, "two", "m-2", ":price-input 1 :price-output 2 :answer-tokens 7");
    assert_eq!(listed(&mut client), "one m-1, two m-2");
    assert_eq!(text(&client.ok("chat", "(:content \"hi\")")["content"]), "I am m-1");
    add(&mut client, "two", "m-3", ":default t");
    assert_eq!(listed(&mut client), "two m-3, one m-1");
    assert_eq!(text(&client.ok("chat", "(:content \"hi\")")["content"]), "I am m-3");
    add(&mut client, "one", "m-4", "");
    assert_eq!(listed(&mut client), "two m-3, one m-4");
    let chosen = client.ok("chat", "(:content \"hi\" :provider \"one\")");
    assert_eq!(text(&chosen["content"]), "I am m-4");
    let row = add(&mut client, "key", "m", ":api-key-env \"CONTEXTURE_NO_SUCH_KEY\"");
    assert_eq!((text(&row["key"]), text(&row["key_from"])), ("missing", "environment"));
    let row = add(&mut client, "key", "m", ":api-key-command \"echo k\"");
    assert_eq!((text(&row["key"]), text(&row["key_from"])), ("set", "command"));
    for number in 3..100 {
        add(&mut client, &format!("p-{number}"), "m", "");
    }
    let more = "(:name \"more\" :kind \"ollama\" :model \"m\")";
    assert_eq!(client.fails("configure-provider", more).kind(), "too-many-providers");
    add(&mut client, "one", "m-5", "");
}

#[test]
fn models_are_listed_or_the_reason_is_told() {
    let server = Endpoint::listing(|_, before| match before {
        0 => Answer::new(401, "no"),
        1 => Answer::new(200, "[]"),
        _ => Answer::streaming(Body::Silent(b"{".to_vec())),
    });
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    assert_eq!(client.fails("list-providers", "(:models t)").kind(), "unconfigured");
    client.ok("configure-provider", &params(&server.url, ""));
    assert_eq!(
        client.fails("list-providers", "(:models t :provider \"x\")").kind(),
        "no-such-provider"
    );
    let refused = client.fails("list-providers", "(:models t)");
    assert_eq!(refused.kind(), "authentication");
    assert!(refused.message.starts_with("here with the model \"m-1\": it answered 401"));
    assert_eq!(client.fails("list-providers", "(:models t)").kind(), "malformed");
    // It waits for the network beside other calls, and is given up when it is cancelled.
    let waiting = client.send("list-providers", "(:models t)");
    until("the server to be asked", || server.asked().len() == 3);
    client.ok("ping", "nil");
    client.send("cancel", &format!("(:id {waiting})"));
    assert_eq!(client.reply(waiting).unwrap_err().code, -32800);
    until("the connection to be closed", || server.left() == 1);
}
