//! The clients that are generated from the schema, in Python and TypeScript: they hold the recorded
//! conversations, and a chat with tools, approvals, cancelling and a second connection.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use contexture_program::internals::value::Value;
use contexture_program::internals::value::sexp;
use serde_json::json;

use crate::docs::page;
use crate::schema::document;
use crate::support::*;
use crate::tiers::may_use;

/// Arguments of the server for a recorded conversation; see `tests/wire/README.md`.
const RECORDED: [&str; 7] =
    ["--ephemeral", "--fixed-time", "1700000000", "--tokenizer", "estimate", "serve", "--stdio"];

/// Maximum number of lines of the client in Python.
const MOST_LINES: usize = 2500;

const ANSWERS: &str = "[[answer]]\nwhen = \"use tools\"\n\
     calls = [{ name = \"add_text\", arguments = '{\"content\": \"x\"}' }]\n\
     [[answer]]\nwhen = \"hang\"\ntext = \"begun\"\nhang = true\n\
     [[answer]]\ntext = \"fine\"\n";

#[test]
fn the_client_in_python_holds_conversations() {
    let talk = Conversations::new();
    let client = generated("clients/python/generate", &[]);
    let lines = client.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines <= MOST_LINES, "{lines} lines");
    std::fs::write(talk.home.path("contexture_client.py"), client).unwrap();
    let script = source("tests/clients/test_client.py");
    let folder = talk.home.path("");
    let mut command = Command::new("python3");
    command.arg(script).arg(folder).arg(&talk.steps).arg(&talk.socket).arg("-");
    talk.hold(command);
}

#[test]
fn the_client_in_typescript_is_typed_and_holds_conversations() {
    let compiler = found("tsc").filter(|_| found("node").is_some());
    if !may_use("compiler of TypeScript (node-typescript)", compiler.is_some()) {
        return;
    }
    let talk = Conversations::new();
    let folder = talk.home.path("ts");
    std::fs::create_dir(&folder).unwrap();
    let client = generated("node", &["clients/typescript/generate"]);
    std::fs::write(folder.join("contexture_client.ts"), client).unwrap();
    std::fs::copy(source("tests/clients/test_client.ts"), folder.join("test_client.ts")).unwrap();
    let mut compile = Command::new(compiler.unwrap());
    compile.args(["--strict", "--target", "es2020", "--module", "commonjs", "test_client.ts"]);
    succeed(compile.current_dir(&folder));
    let mut command = Command::new("node");
    command.arg(folder.join("test_client.js")).arg(&talk.steps).arg(&talk.socket);
    talk.hold(command);
}

/// A server for a chat, and the recorded conversations with the answers that JSON clients get.
struct Conversations {
    home: Home,
    steps: PathBuf,
    socket: PathBuf,
    _server: Listening,
}

impl Conversations {
    fn new() -> Self {
        let home = Home::new();
        let script = home.write("answers.toml", ANSWERS);
        let provider = format!(
            "[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m-1\"\n\
             script = {script:?}\n"
        );
        crate::model::configure(&home, &provider);
        let steps = home.path("steps.json");
        std::fs::write(&steps, recorded(&Home::new()).to_string()).unwrap();
        let server = home.listening(&[]);
        let socket = home.path("s.sock");
        Self { home, steps, socket, _server: server }
    }

    /// Runs a program of the client, after the arguments that it has.
    #[track_caller]
    fn hold(&self, mut command: Command) {
        command.arg(self.home.path("files")).arg(env!("CARGO_BIN_EXE_contexture")).args(RECORDED);
        assert_eq!(succeed(&mut command), "all is as it should be\n");
    }
}

/// The calls of the recorded conversations, by file, with the answers that they get in JSON.
fn recorded(home: &Home) -> Json {
    let document = document();
    let mut conversations = serde_json::Map::new();
    for entry in std::fs::read_dir(source("tests/wire")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sexp") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = page(path.to_str().unwrap());
        let mut client = Client::over_stdio(home.command(&RECORDED), Dialect::Json);
        let lines = text.lines().filter_map(|line| line.strip_prefix("> "));
        let steps: Vec<Json> =
            lines.filter_map(|line| step(&document, &mut client, line)).collect();
        conversations.insert(name, steps.into());
    }
    assert!(conversations.values().flat_map(|steps| steps.as_array()).flatten().count() > 30);
    conversations.into()
}

/// A call as a JSON client makes it, with its answer; `None` for a line that is no call with an id.
fn step(document: &Json, client: &mut Client, line: &str) -> Option<Json> {
    let message = sexp::read(line).ok()?;
    let (Some(Value::Int(_)), Some(Value::Symbol(method))) =
        (message.get("id"), message.get("method"))
    else {
        return None;
    };
    let params = message.get("params").map_or("nil".to_owned(), sexp::print);
    let said = read_json(&request(Dialect::Json, "1", method, &params));
    let params = match &said["params"] {
        Json::Null => json!({}),
        params => params.clone(),
    };
    let answer =
        match client.call(method, &sexp::print(message.get("params").unwrap_or(&Value::Nil))) {
            Ok(result) => json!({ "result": result }),
            Err(Failure { code, message, data }) => {
                json!({ "error": { "code": code, "message": message, "data": data } })
            }
        };
    let known = &document["methods"][&**method]["params"];
    let has = |name: &String| known["properties"].get(name).is_some();
    let required = known["required"].as_array().into_iter().flatten();
    let typed = known.is_object()
        && params.as_object().unwrap().keys().all(has)
        && required.into_iter().all(|name| params.get(name.as_str().unwrap()).is_some());
    Some(json!({ "method": &**method, "params": params, "typed": typed, "answer": answer }))
}

/// The output of a generator for the schema.
fn generated(program: &str, args: &[&str]) -> Vec<u8> {
    let mut generator = Command::new(program);
    generator.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    generator.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut generator = generator.spawn().unwrap();
    let input = generator.stdin.take().unwrap();
    serde_json::to_writer(input, &document()).unwrap();
    let output = generator.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said.into_owned()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The place of a program, if it is installed.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
