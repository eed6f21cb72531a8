//! What is outside has an end: names in errors, files that a command line names, programs that the
//! server starts, and PDFs.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use serde_json::json;

use crate::agents_over_http::Site;
use crate::mcp::{Agent, layer, project};
use crate::support::*;

/// Length of a long name in bytes.
const LONG: usize = 200_000;
/// Maximum length of an answer to a request with a long name.
const MOST: usize = 40_000;

/// Returns requests with a long name in each place that takes one. The version of the protocol is none:
/// rmcp repeats one that it does not know.
fn with_long_names(tools: &Json) -> Vec<(String, Json)> {
    let long = "x/".repeat(LONG / 2);
    let mut all = vec![
        (long.clone(), json!({})),
        ("tools/call".into(), json!({ "name": long, "arguments": {} })),
        ("tools/call".into(), json!({ "name": 1, long.clone(): 1 })),
        ("tools/call".into(), json!({ "name": { long.clone(): 1 } })),
        ("prompts/get".into(), json!({ "name": long })),
        ("prompts/get".into(), json!({ "name": "handoff", "arguments": { "session": long } })),
        ("prompts/get".into(), json!({ "name": "context", "arguments": { long.clone(): long } })),
        ("resources/read".into(), json!({ "uri": long })),
        ("resources/subscribe".into(), json!({ "uri": long })),
        ("logging/setLevel".into(), json!({ "level": long })),
        ("tools/list".into(), json!({ "cursor": long })),
        (
            "completion/complete".into(),
            json!({ "ref": { "type": "ref/prompt", "name": long },
                    "argument": { "name": long, "value": long } }),
        ),
    ];
    let flat = long.replace('/', "y");
    for uri in [
        format!("contexture://{flat}/context"),
        format!("contexture://app/item/{flat}"),
        format!("contexture://app/item/ctx-{}", "9".repeat(LONG)),
        format!("contexture://app/session/{flat}/facts"),
        format!("contexture://app/{flat}"),
    ] {
        all.push(("resources/read".into(), json!({ "uri": uri })));
    }
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        let mut usual = json!({});
        for name in &required {
            usual[name.as_str().unwrap()] = "a".into();
        }
        let mut call = |property: &str, value: Json| {
            let mut arguments = usual.clone();
            arguments[property] = value;
            all.push(("tools/call".into(), json!({ "name": name, "arguments": arguments })));
        };
        call(&long, 1.into());
        for property in properties.keys() {
            call(property, long.clone().into());
            call(property, format!("ctx-{}", "9".repeat(LONG)).into());
            call(property, format!("ses-{0}/msg-{0}", "9".repeat(LONG)).into());
            call(property, json!({ long.clone(): 1 }));
        }
    }
    all
}

#[test]
fn no_answer_to_an_agent_repeats_a_long_name() {
    let home = Home::new();
    let server = home.listening(&[]);
    layer(&mut server.unix(Dialect::Native), &home);
    for mut agent in [Agent::with(&home, &[]), Agent::without_session(&home)] {
        let tools = agent.ok("tools/list", &json!({}))["tools"].take();
        let all = with_long_names(&tools);
        assert!(all.len() > 50, "{}", all.len());
        for (method, params) in all {
            let id = agent.send(&method, &params);
            let answer = agent.answer(id).to_string();
            let place: String = format!("{method} {params}").chars().take(120).collect();
            assert!(answer.len() < MOST, "{place}: {} bytes", answer.len());
        }
        assert!(agent.tool("context", json!({})).contains("project app"));
    }
}

#[test]
fn no_answer_over_http_repeats_a_long_name() {
    let home = Home::new();
    let site = Site::new(&home);
    let root = project(&home);
    let query = format!("?project={}", root.display());
    let headers = site.session(&query);
    let mut agent = Agent::with(&home, &[]);
    let tools = agent.ok("tools/list", &json!({}))["tools"].take();
    for (method, params) in with_long_names(&tools) {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (_, answer) = site.post(&query, &headers, &message);
        let place: String = format!("{method} {params}").chars().take(120).collect();
        assert!(answer.len() < MOST, "{place}: {} bytes", answer.len());
    }
    // Whatever is asked for at whatever address.
    let long = "x".repeat(LONG);
    for request in [
        format!("GET /{long} HTTP/1.1\r\n{}Connection: close\r\n\r\n", site.honest()),
        format!("GET /mcp?{long} HTTP/1.1\r\n{}Connection: close\r\n\r\n", site.honest()),
        format!("{long} /mcp HTTP/1.1\r\n{}Connection: close\r\n\r\n", site.honest()),
        format!("GET /mcp HTTP/1.1\r\n{}{long}: a\r\nConnection: close\r\n\r\n", site.honest()),
        format!("GET /mcp HTTP/1.1\r\nHost: {long}\r\nConnection: close\r\n\r\n"),
    ] {
        let (_, answer) = site.send(&request);
        assert!(answer.len() < MOST, "{} bytes", answer.len());
    }
}

#[test]
fn an_item_as_a_resource_is_cut_as_by_the_tool() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let manager = layer(&mut emacs, &home);
    let id = emacs.add(&manager, &"some words of a line\n".repeat(50_000));
    let mut agent = Agent::with(&home, &[]);
    let read = agent.ok("resources/read", &json!({ "uri": format!("contexture://app/item/{id}") }));
    let text = read["contents"][0]["text"].as_str().unwrap().to_owned();
    let tool = agent.tool("read", json!({ "what": id }));
    assert!(text.len() < 40_000 && text.contains("Cut here; read on with"), "{}", text.len());
    assert!(tool.ends_with(&text));
}

#[test]
fn memories_that_an_agent_finds_are_short() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    layer(&mut emacs, &home);
    for number in 0..20 {
        let content = format!("port {number} {}", "of the database ".repeat(3_000));
        emacs.ok("remember", &format!("(:content {content:?})"));
    }
    let found = Agent::with(&home, &[]).tool("search", json!({ "query": "port database" }));
    assert!(found.contains(" memories") && found.len() < MOST, "{} bytes", found.len());
}

#[test]
fn only_the_server_says_what_is_a_picture() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let id = client.add("m", "text");
    let picture = "(:hash \"00\" :kind \"png\" :bytes 1 :width 1 :height 1)";
    let error =
        client.fails("add-item", &format!("(:content \"x\" :metadata (:picture {picture}))"));
    assert_eq!(error.param(), "metadata.picture", "{error:?}");
    let change = format!("(:manager \"m\" :id {id:?} :metadata (:picture {picture}))");
    assert_eq!(client.fails("update-items", &change).param(), "metadata.picture");
    client.end();
}

/// What is no regular file is refused at once, whatever command it is for.
#[test]
fn a_command_line_names_no_pipe_and_no_device() {
    let home = Home::new();
    let pipe = home.file("pipe.jsonl");
    make_fifo(&pipe);
    for file in [pipe.to_str().unwrap(), "/dev/zero"] {
        for args in [
            &["--config", file, "doctor"][..],
            &["--config", file, "serve", "--stdio"],
            &["--config", file, "call", "ping"],
            &["restore", file],
            &["compact", file],
            &["compact", file, "--read", "msg-1"],
            &["import", file],
            &["render", file],
            &["--state", file, "doctor"],
            &["--state", file, "call", "ping"],
        ] {
            let mut process = Process::start(home.command(args));
            let status = process.wait();
            let mut said = process.end_and_log();
            let stdout = process.child.stdout.as_mut().unwrap();
            std::io::Read::read_to_string(stdout, &mut said).unwrap();
            assert!(!status.success(), "{args:?}: {said}");
            let words = ["regular file", "the folder", "File exists"];
            assert!(words.iter().any(|word| said.contains(word)), "{args:?}: {said}");
        }
    }
}

/// A Git that waits for a pipe ends with the server, however that ends.
#[cfg(target_os = "linux")]
#[test]
fn git_ends_with_the_server() {
    let home = Home::new();
    let root = project(&home);
    std::fs::remove_dir_all(root.join(".git")).unwrap();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(&root).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        assert!(command.args(args).output().unwrap().status.success());
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    let pipe = root.join(".git/packed-refs");
    make_fifo(&pipe);
    let head = root.join(".git/HEAD");
    std::fs::write(head, "ref: refs/heads/absent\n").unwrap();
    let mut server = home.listening(&[]);
    let mut client = server.unix(Dialect::Native);
    client.send("repo-map", &format!("(:project {:?})", root.to_str().unwrap()));
    let parent = server.process.pid().to_string();
    let mut child = None;
    until("Git to begin", || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let is_ours = |stat: &str| {
            let (name, rest) = stat.rsplit_once(')').unwrap_or_default();
            name.ends_with("(git") && rest.split_whitespace().nth(1) == Some(&parent)
        };
        let mut stats = all.map(|entry| entry.path().join("stat"));
        child = stats.find(|stat| std::fs::read_to_string(stat).is_ok_and(|it| is_ours(&it)));
        child.is_some()
    });
    // Others are answered meanwhile.
    server.unix(Dialect::Native).ok("ping", "nil");
    server.process.kill();
    until("Git to end", || {
        let stat = std::fs::read_to_string(child.as_ref().unwrap());
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
    });
}

/// A `pdftotext` that waits until it is told to go on.
#[test]
fn nobody_waits_for_the_text_of_a_pdf() {
    let home = Home::new();
    let gate = home.file("gate");
    make_fifo(&gate);
    let said = "cat >/dev/null; printf 'The port\\f'";
    let script = home.write("bin/pdftotext", format!("#!/bin/sh\nread x < {gate:?}\n{said}\n"));
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
    let mut command = home.command(&["serve", "--stdio"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", home.file("bin").display()));
    let mut client = Client::over_stdio(command, Dialect::Native);
    let file = home.write("a.pdf", "%PDF-1.4\n");
    let id = client.send("add-file", &format!("(:manager \"m\" :path {file:?})"));
    for _ in 0..3 {
        client.add("m", "text");
        assert_eq!(client.contents("m").last().unwrap(), "text");
    }
    File::options().write(true).open(&gate).unwrap().write_all(b"\n").unwrap();
    let item = client.reply(id).unwrap();
    assert!(item["content"].as_str().unwrap().contains("The port"), "{item}");
    // What has no end is not read, and the item says so.
    std::fs::write(&script, "#!/bin/sh\nyes\n").unwrap();
    let item = client.ok("add-file", &format!("(:manager \"m\" :path {file:?})"));
    let content = item["content"].as_str().unwrap();
    assert!(content.contains("its text was not read: it is longer than"), "{content}");
    client.end();
}

/// Methods that no other test of names can follow.
const ENDS: [&str; 2] = ["shutdown", "exchange"];

#[test]
fn no_error_of_any_method_repeats_a_long_name() {
    let home = Home::new();
    let schema: Json = serde_json::from_str(&home.succeed(&["schema"])).unwrap();
    let mut command = home.command(&["serve", "--stdio"]);
    command.stderr(std::process::Stdio::null());
    let mut client = Client::over_stdio(command, Dialect::Json);
    client.ok("open-session", "(:name \"s\")");
    let long = "x/".repeat(LONG / 2);
    let mut id = 1_000;
    let mut refused = 0;
    for (name, method) in schema["methods"].as_object().unwrap() {
        if ENDS.contains(&name.as_str()) {
            continue;
        }
        let properties = method["params"]["properties"].as_object().cloned().unwrap_or_default();
        let required = method["params"]["required"].as_array().cloned().unwrap_or_default();
        let mut usual = json!({});
        for parameter in required.iter().map(|name| name.as_str().unwrap()) {
            let kind = properties[parameter].to_string();
            let is_text = kind.contains("\"string\"") || kind.contains("$ref");
            usual[parameter] = if is_text { "a".into() } else { 1.into() };
        }
        let names = properties.keys().map(String::as_str).chain([&*long]);
        for parameter in names {
            let id_of = |kind: &str| Json::from(format!("{kind}-{}", "9".repeat(LONG)));
            for value in [long.clone().into(), json!([long]), json!({ &long: 1 }), id_of("ctx")] {
                let mut params = usual.clone();
                params[parameter] = value;
                id += 1;
                let call = json!({ "jsonrpc": "2.0", "id": id, "method": name, "params": params });
                client.write(format!("{call}\n").as_bytes());
                let answer = loop {
                    let line = client.line().expect("the server goes on");
                    let message: Json = serde_json::from_str(&line).unwrap();
                    if message["id"] == id && message.get("method").is_none() {
                        break message;
                    }
                };
                if let Some(error) = answer.get("error") {
                    refused += 1;
                    let bytes = error.to_string().len();
                    let shown: String = parameter.chars().take(40).collect();
                    assert!(bytes < MOST, "{name} {shown}: {bytes} bytes");
                }
            }
        }
    }
    assert!(refused > 1_000, "{refused}");
    client.end();
}

#[test]
fn a_backup_replaces_no_part_of_the_state() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.add("m", "kept");
    client.end();
    let pipe = home.file("pipe");
    make_fifo(&pipe);
    for name in ["contexture.db", "machine-key"] {
        let file = home.state().join(name);
        let said = home.fail(&["backup", "--force", file.to_str().unwrap()]);
        assert!(said.contains("in the state folder itself"), "{said}");
    }
    let said = home.fail(&["backup", "--force", pipe.to_str().unwrap()]);
    assert!(said.contains("not a regular file"), "{said}");
    home.succeed(&["backup", home.file("b.db").to_str().unwrap()]);
    assert_eq!(home.stdio(&[]).contents("m"), ["kept"]);
}

/// Clients that read nothing are hung up on once they leave too much unread together. Who reads is
/// served.
#[test]
fn what_is_unread_is_bounded_for_all_clients_together() {
    let home = Home::new();
    let mut server = home.listening(&["--tokenizer", "estimate"]);
    let mut reader = server.unix(Dialect::Native);
    let text = "x".repeat(2_000_000);
    for _ in 0..20 {
        reader.ok("add-item", &format!("(:content \"{text}\" :brief t)"));
    }
    let ask = |_| {
        let mut deaf = UnixStream::connect(&server.socket).unwrap();
        deaf.write_all(b"(:id 1 :method list-items)\n").unwrap();
        deaf
    };
    let mut deaf: Vec<UnixStream> = (0..12).map(ask).collect();
    // Empty lines are ignored, and cannot be sent to who hung up.
    let mut hung_up = || deaf.iter_mut().filter_map(|deaf| deaf.write_all(b"\n").err()).count();
    until("six clients left", || hung_up() == 6);
    let listed = reader.ok("list-items", "nil");
    assert_eq!(listed.as_array().unwrap().len(), 20);
    until("five clients left", || hung_up() == 7);
    let peak = server.process.peak_memory();
    assert!(peak < 3 << 29, "{peak}");
    server.process.kill();
}
